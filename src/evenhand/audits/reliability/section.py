"""The reliability part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from evenhand.audits.reliability.charts import (
    Place,
    attribution_panels,
    companion_panels,
    curve_panels,
    gap_panels,
    model_panels,
    part_panels,
    places,
    reference_gaps,
    top_panels,
)
from evenhand.audits.reliability.methods import reliability_methods
from evenhand.audits.reliability.words import TITLES
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Section

if TYPE_CHECKING:
    from evenhand.audits.reliability.records import GapRecord
    from evenhand.audits.reliability.result import ReliabilityResult

MOST_DRAWN, MOST_EXPLAINED = 4, 2
"""Trials (model, setting and grouping) that are drawn, and drawn with what explains them; the tables have all."""

_BELOW = (
    "Below 0 the group's statistic is lower. Only PABAK and the spread-adjusted ICC measure what mistakes do and "
    "nothing else."
)


def reliability_section(result: ReliabilityResult) -> Section:
    """Return the section of a report for this result."""
    parts: list[Figure | DisplayTable] = []
    every = places(result)
    if len(result.spec.model) > 1:
        parts += _models_compared(result)
    parts.append(_model_table(result))
    for number, place in enumerate(every[:MOST_DRAWN]):
        parts += _figures(result, place)
        if number < MOST_EXPLAINED:
            parts += _explanations(result, place)
    parts += [_gap_table(result), _curve_table(result)]
    if result.attribution:
        parts.append(_attribution_table(result))
    return Section(result.title, result.question, tuple(parts), tuple(reliability_methods(result.spec)), result.notes)


def _figures(result: ReliabilityResult, place: Place) -> Iterator[Figure]:
    where, of = _where(result, place)
    sure = f"{100 * result.spec.confidence:g}%"
    yield Figure(
        f"Reliability by noise level{of}",
        f"Agreement of the results with and without mistakes; 1 is full agreement. Bands are {sure} bands over people, "
        f"jointly for all noise levels of a group.{_not_drawn(result, place)}",
        _ends(result, place),
        tuple(curve_panels(result, place)),
    )
    own = [finding for finding in result.findings if finding.claim.startswith(f"{where}: ")]
    if any((gap.model, gap.setting, gap.grouping) == place for gap in result.gaps):
        yield Figure(
            f"Gaps{of}",
            f"Each group less {_reference(result, place)}. {_BELOW} The {sure} bands hold at all noise levels of a "
            "statistic and group together. The findings count all tests of the run; a band does not.",
            " ".join(finding.claim for finding in own),
            tuple(gap_panels(result, place)),
        )


def _explanations(result: ReliabilityResult, place: Place) -> Iterator[Figure]:
    _, of = _where(result, place)
    if {"kappa", "pabak"} <= set(result.spec.statistics):
        yield Figure(
            f"Why kappa and PABAK differ{of}",
            "Prevalence: kappa plus the part that unequal numbers of the two decisions make. Bias: kappa plus the part "
            "that a shift of the decisions makes. The two parts add up to PABAK less kappa exactly.",
            _parts_in_words(result, place),
            tuple(part_panels(result, place)),
        )
    if {"icc_a1", "icc_spread"} & set(result.spec.statistics):
        yield Figure(
            f"What ICC is made of{of}",
            "ICC sets the squared errors of scores against the spread of a group's own scores. A group can have "
            "smaller errors and still the lower ICC.",
            _spread_in_words(result, place),
            tuple(companion_panels(result, place)),
        )
    if any((r.model, r.setting, r.grouping) == place for r in result.attribution):
        record = next(r for r in result.attribution if (r.model, r.setting, r.grouping) == place)
        yield Figure(
            f"Which features make the gap{of}",
            f"The gap at noise level {record.noise_level:g}, shared out among the features that go wrong (Shapley "
            "values; they add up to the gap). To the right, mistakes in the feature make the group more reliable "
            "than the reference; to the left, less. Lines are for other random mistakes, not for other people. It is "
            "accounting, not a cause.",
            _features_in_words(result, place),
            tuple(attribution_panels(result, place)),
        )


def _where(result: ReliabilityResult, place: Place) -> tuple[str, str]:
    """Return what a trial is called in findings, and what its figures add to their titles: nothing if it is alone."""
    where = f"{place[0]}, by {place[2]}, noise {place[1]}"
    return where, "" if len(places(result)) == 1 else f": {where}"


def _not_drawn(result: ReliabilityResult, place: Place) -> str:
    """Say with the first figure what is not drawn."""
    every = places(result)
    if len(every) <= MOST_EXPLAINED or place != every[0]:
        return ""
    return (
        f" Of the {len(every)} combinations of model, noise and grouping, curves and gaps are drawn for the first "
        f"{min(MOST_DRAWN, len(every))} and explained for the first {MOST_EXPLAINED}; the tables have all."
    )


def _reference(result: ReliabilityResult, place: Place) -> str:
    return next(
        (g.reference for g in reference_gaps(result) if (g.model, g.setting, g.grouping) == place),
        "the reference group",
    )


def _ends(result: ReliabilityResult, place: Place) -> str:
    """Say each statistic at the highest noise level."""
    own = [r for r in result.curves if (r.model, r.setting, r.grouping) == place]
    top = max(record.noise_level for record in own)
    said = []
    for name in result.spec.statistics:
        values = [f"{shown(r.value)} for {r.group}" for r in own if (r.statistic, r.noise_level) == (name, top)]
        said.append(f"{TITLES[name]} is {', '.join(values)}")
    return f"At noise level {top:g}: {'; '.join(said)}."


def _mean(result: ReliabilityResult, place: Place, group: str, statistic: str) -> float | None:
    own = [
        r.value
        for r in result.curves
        if (r.model, r.setting, r.grouping) == place
        and (r.group, r.statistic) == (group, statistic)
        and r.noise_level > 0
    ]
    known = [value for value in own if value is not None]
    return sum(known) / len(known) if known and len(known) == len(own) else None


def _groups(result: ReliabilityResult, place: Place) -> list[str]:
    return list(dict.fromkeys(r.group for r in result.curves if (r.model, r.setting, r.grouping) == place))


def _parts_in_words(result: ReliabilityResult, place: Place) -> str:
    said = []
    for group in _groups(result, place):
        prevalence, bias = (shown(_mean(result, place, group, name)) for name in ("prevalence_part", "bias_part"))
        said.append(f"{group}: on average prevalence adds {prevalence} and bias {bias} to kappa.")
    return " ".join(said)


def _spread_in_words(result: ReliabilityResult, place: Place) -> str:
    said = []
    for group in _groups(result, place):
        error, spread = (shown(_mean(result, place, group, name)) for name in ("mean_squared_error", "variance_first"))
        said.append(f"{group}: the mean squared error is {error} on average, the variance of scores {spread}.")
    return " ".join(said)


def _features_in_words(result: ReliabilityResult, place: Place) -> str:
    said = []
    own = [r for r in result.attribution if (r.model, r.setting, r.grouping) == place and r.value is not None]
    for name, group in dict.fromkeys((r.statistic, r.group) for r in own):
        parts = sorted((r for r in own if (r.statistic, r.group) == (name, group)), key=lambda r: -abs(r.value or 0))
        listed = ", ".join(f"{r.feature} {shown(r.value, signed=True)}" for r in parts[:4])
        said.append(f"{TITLES[name]}, {group}: {listed}.")
    return " ".join(said)


def _models_compared(result: ReliabilityResult) -> Iterator[Figure]:
    for setting, grouping in dict.fromkeys((r.setting, r.grouping) for r in result.curves):
        top = max(r.noise_level for r in result.curves if (r.setting, r.grouping) == (setting, grouping))
        of = f": by {grouping}, noise {setting}"
        values = [
            f"{r.model}, {TITLES[r.statistic]}, {r.group}: {shown(r.value)}."
            for r in result.curves
            if (r.setting, r.grouping, r.noise_level) == (setting, grouping, top)
            and r.statistic in TITLES
            and r.statistic in result.spec.statistics
        ]
        yield Figure(
            f"Models compared{of}",
            f"Agreement at the highest noise level, {top:g}, with intervals over people. More reliable on the whole is "
            "not fairer by that alone; the table of models shows what a model gives up for it.",
            " ".join(values),
            tuple(top_panels(result, setting, grouping, top)),
        )
        gaps = [
            g for g in reference_gaps(result) if (g.setting, g.grouping, g.noise_level) == (setting, grouping, None)
        ]
        if gaps:
            said = [f"{g.model}, {TITLES[g.statistic]}, {g.group}: {shown(g.value, signed=True)}." for g in gaps]
            yield Figure(
                f"Gaps of the models{of}",
                f"Each group less {gaps[0].reference}, averaged over noise levels, with intervals over people. "
                f"{_BELOW}",
                " ".join(said),
                tuple(model_panels(result, setting, grouping)),
            )


def _model_table(result: ReliabilityResult) -> DisplayTable:
    rows = [
        (
            r.model,
            r.kind,
            r.source,
            str(r.folds),
            f"{r.threshold:g}",
            shown(r.selected, percent=True),
            shown(r.accuracy, percent=True),
            shown(r.auc),
            r.features,
        )
        for r in result.models
    ]
    columns = ("Model", "Kind", "Source", "Folds", "Threshold", "Selected", "Accuracy", "AUC", "Features")
    numeric = (False,) * 3 + (True,) * 5 + (False,)
    return DisplayTable("The models, without mistakes", columns, tuple(rows), numeric)


def _gap_table(result: ReliabilityResult) -> DisplayTable:
    rows = [
        (
            r.model,
            r.setting,
            r.grouping,
            r.group,
            r.reference,
            TITLES[r.statistic],
            "mean" if r.noise_level is None else f"{r.noise_level:g}",
            f"{r.n:,}",
            shown(r.value, signed=True),
            shown_interval(r.low, r.high, signed=True),
            _p(r.p_value),
            _p(r.p_adjusted),
            shown(r.share_lower, percent=True),
            shown(r.replicate_sd),
            _remark(r),
        )
        for r in result.gaps
    ]
    columns = (
        "Model",
        "Noise",
        "Grouping",
        "Group",
        "Reference",
        "Statistic",
        "Level",
        "n",
        "Gap",
        "Interval",
        "p",
        "Adjusted p",
        "Levels lower",
        "SD of runs",
        "Remark",
    )
    numeric = (False,) * 6 + (True,) * 8 + (False,)
    return DisplayTable("Gaps: the mean over noise levels, and every level", columns, tuple(rows), numeric, folded=True)


def _curve_table(result: ReliabilityResult) -> DisplayTable:
    rows = [
        (
            r.model,
            r.setting,
            r.grouping,
            r.group,
            TITLES[r.statistic],
            f"{r.noise_level:g}",
            f"{r.n:,}",
            shown(r.value),
            shown_interval(r.low, r.high),
            shown_interval(r.replicate_low, r.replicate_high),
            "" if r.status == "ok" else r.status,
        )
        for r in result.curves
    ]
    columns = (
        "Model",
        "Noise",
        "Grouping",
        "Group",
        "Statistic",
        "Level",
        "n",
        "Value",
        "Over people",
        "Over runs",
        "Remark",
    )
    numeric = (False,) * 5 + (True,) * 5 + (False,)
    return DisplayTable("Every statistic at every noise level", columns, tuple(rows), numeric, folded=True)


def _attribution_table(result: ReliabilityResult) -> DisplayTable:
    rows = []
    for _, own in groupby(result.attribution, lambda r: (r.model, r.setting, r.grouping, r.group, r.statistic)):
        parts = list(own)
        rows += [
            (
                r.model,
                r.setting,
                r.grouping,
                r.group,
                TITLES[r.statistic],
                r.feature,
                f"{r.noise_level:g}",
                shown(r.value, signed=True),
                shown(r.share, percent=True),
                shown_interval(r.replicate_low, r.replicate_high, signed=True),
                r.method,
            )
            for r in parts
        ]
        first, known = parts[0], [r.value for r in parts if r.value is not None]
        whole = sum(known) if len(known) == len(parts) else None
        rows.append(
            (
                first.model,
                first.setting,
                first.grouping,
                first.group,
                TITLES[first.statistic],
                "Sum",
                f"{first.noise_level:g}",
                shown(whole, signed=True),
                DASH,
                DASH,
                first.method,
            )
        )
    columns = (
        "Model",
        "Noise",
        "Grouping",
        "Group",
        "Statistic",
        "Feature",
        "Level",
        "Part of the gap",
        "Share",
        "Over runs",
        "Method",
    )
    numeric = (False,) * 6 + (True,) * 4 + (False,)
    return DisplayTable("What each feature adds to the gaps", columns, tuple(rows), numeric, folded=True)


def _remark(gap: GapRecord) -> str:
    told = ["largest of all pairs"] if gap.against == "worst_pair" else []
    return "; ".join([*told, *([] if gap.status == "ok" else [gap.status])])


def _p(value: float | None) -> str:
    return DASH if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
