"""The parity part of a report: charts, tables and how the numbers were computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.parity.charts import (
    MOST_GROUPS,
    are_probabilities,
    calibration_panels,
    charted_groups,
    gap_panels,
    group_panels,
    headline_metrics,
)
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Method, Section
from evenhand.table.roles import TIMES

if TYPE_CHECKING:
    from evenhand.audits.parity.records import GapRecord
    from evenhand.audits.parity.result import ParityResult

_STRATA_NOTE = (
    "Standardised values are what each group would have if it had everybody's mix of strata, over the strata that all "
    "groups share."
)


def parity_section(result: ParityResult) -> Section:
    """Return the section of a report for this result."""
    groupings = list(dict.fromkeys(record.grouping for record in result.groups))
    parts: list[Figure | DisplayTable] = [_gap_figure(result, groupings)]
    for grouping in groupings:
        parts += [_group_figure(result, grouping), _value_table(result, grouping), _gap_table(result, grouping)]
    if result.calibration:
        parts.append(_calibration_figure(result, groupings[0]))
        parts += [_calibration_table(result, grouping) for grouping in groupings[:1]]
    if result.spec.within:
        parts.append(_strata_table(result))
    return Section(
        title=result.title,
        question=result.question,
        parts=tuple(parts),
        methods=tuple(_methods(result)),
        notes=result.notes,
    )


def _metric_title(name: str) -> str:
    return METRICS[name].title if name in METRICS else name


def _is_percent(name: str) -> bool:
    return name in METRICS and METRICS[name].percent


def _gap_figure(result: ParityResult, groupings: list[str]) -> Figure:
    largest = _largest_gap(result)
    caption = "Points: the difference between the highest and the lowest group. Lines: simultaneous intervals."
    words = ""
    if largest is not None and largest.value is not None:
        words = (
            f"The largest is {shown(largest.value, percent=True)} in {METRICS[largest.metric].title_in_sentence} by "
            f"{largest.grouping} under {largest.model}, {largest.group_high} against {largest.group_low}."
        )
    return Figure("Largest gap between any two groups", caption, words, tuple(gap_panels(result, groupings)))


def _largest_gap(result: ParityResult) -> GapRecord | None:
    gaps = [
        gap
        for gap in result.gaps
        if (gap.kind, gap.against, gap.stratum) == ("difference", "worst_pair", None)
        and gap.value is not None
        and _is_percent(gap.metric)
    ]
    return max(gaps, key=lambda gap: gap.value or 0.0, default=None)


def _group_figure(result: ParityResult, grouping: str) -> Figure:
    metrics = headline_metrics(result)
    shown_groups = charted_groups(result, grouping)
    total = len({r.group for r in result.groups if r.grouping == grouping})
    caption = f"Points: values. Lines: {100 * result.spec.confidence:g}% intervals of each group on its own."
    if total > MOST_GROUPS:
        caption += f" The {len(shown_groups)} largest of {total:,} groups are drawn; the table has them all."
    words = " ".join(_extremes(result, grouping, metric) for metric in metrics)
    return Figure(f"Values by {grouping}", caption, words, tuple(group_panels(result, grouping, metrics)))


def _extremes(result: ParityResult, grouping: str, metric: str) -> str:
    """Say in words which groups a panel shows at its ends."""
    sentences = []
    for gap in result.gaps:
        same = (gap.grouping, gap.metric, gap.kind, gap.against, gap.stratum)
        if same == (grouping, metric, "difference", "worst_pair", None) and gap.value is not None:
            size = shown(gap.value, percent=_is_percent(metric))
            sentences.append(f"{gap.model}: highest {gap.group_high}, lowest {gap.group_low}, {size} apart")
    return f"{_metric_title(metric)}: {'; '.join(sentences)}." if sentences else ""


def _value_table(result: ParityResult, grouping: str) -> DisplayTable:
    rows = [
        (
            record.model,
            _metric_title(record.metric),
            record.group,
            f"{record.n:,}",
            shown(record.value, percent=_is_percent(record.metric)),
            shown_interval(record.low, record.high, percent=_is_percent(record.metric)),
            "" if record.status == "ok" else record.status,
        )
        for record in result.groups
        if record.grouping == grouping and record.stratum is None
    ]
    columns = ("Model", "Metric", "Group", "n", "Value", f"{100 * result.spec.confidence:g}% interval", "Remark")
    numeric = (False, False, False, True, True, True, False)
    return DisplayTable(f"Every value by {grouping}", columns, tuple(rows), numeric, folded=True)


def _gap_table(result: ParityResult, grouping: str) -> DisplayTable:
    rows = [_gap_row(gap) for gap in result.gaps if gap.grouping == grouping and gap.stratum is None]
    interval = f"{100 * result.spec.confidence:g}% interval"
    columns = ("Model", "Metric", "Kind", "Group", "Against", "Worse off", "Gap", interval, "Remark")
    caption = f"Every gap by {grouping}: group minus, or over, what it is set against; differences of rates in points"
    return DisplayTable(caption, columns, tuple(rows), (False,) * 6 + (True, True, False), folded=True)


def _gap_row(gap: GapRecord) -> tuple[str, ...]:
    """Return a gap as group, what it is set against, size and interval."""
    scale, places = (100.0, 1) if _is_percent(gap.metric) and gap.kind == "difference" else (1.0, 3)
    signed = "+" if gap.kind == "difference" and gap.against != "worst_pair" else ""
    value, low, high = (
        None if end is None else f"{end * scale:{signed}.{places}f}".replace("-", "−")
        for end in (gap.value, gap.low, gap.high)
    )
    pair = (gap.group_high, gap.group_low) if gap.kind == "difference" else (gap.group_low, gap.group_high)
    group, other = pair if gap.group is None else (gap.group, pair[0] if pair[1] == gap.group else pair[1])
    against = {"worst_pair": " (worst pair)", "reference": " (reference)", "overall": ""}[gap.against]
    return (
        gap.model,
        _metric_title(gap.metric),
        gap.kind,
        group or DASH,
        f"{other or DASH}{against}",
        gap.worse_off or DASH,
        value or DASH,
        f"{low or DASH} to {high or DASH}" if low or high else DASH,
        "" if gap.status == "ok" else gap.status,
    )


def _strata_table(result: ParityResult) -> DisplayTable:
    rows = [
        (gap.grouping, gap.stratum or DASH, *_gap_row(gap))
        for gap in result.gaps
        if gap.stratum is not None and gap.against == "worst_pair"
    ]
    columns = (
        "Grouping",
        "Stratum",
        "Model",
        "Metric",
        "Kind",
        "Group",
        "Against",
        "Worse off",
        "Gap",
        "Interval",
        "Remark",
    )
    caption = f"Gaps within strata of {TIMES.join(result.spec.within)}"
    return DisplayTable(caption, columns, tuple(rows), (False,) * 8 + (True, True, False), folded=True)


def _calibration_figure(result: ParityResult, grouping: str) -> Figure:
    caption = (
        "The share with the positive outcome among people in the same score bin. "
        + (
            "On the dashed line score and outcome agree; above it scores are too low, below it too high. "
            if are_probabilities(result)
            else "Where the lines differ, the same score means different things in different groups. "
        )
        + f"Bins with at least {result.spec.min_count} people are drawn, with Wilson intervals."
    )
    words = "The table below holds every point of the chart."
    return Figure(f"Calibration by {grouping}", caption, words, tuple(calibration_panels(result, grouping)))


def _calibration_table(result: ParityResult, grouping: str) -> DisplayTable:
    rows = [
        (
            r.model,
            r.group,
            f"{r.bin_low:g} to {r.bin_high:g}",
            f"{r.n:,}",
            shown(r.mean_score),
            shown(r.value, percent=True),
            shown_interval(r.low, r.high, percent=True),
        )
        for r in result.calibration
        if r.grouping == grouping
    ]
    columns = ("Model", "Group", "Score bin", "n", "Mean score", "Share with outcome", "Interval")
    numeric = (False,) * 3 + (True,) * 4
    return DisplayTable(f"Calibration by {grouping}", columns, tuple(rows), numeric, folded=True)


def _methods(result: ParityResult) -> Iterator[Method]:
    for name in dict.fromkeys(record.metric for record in result.groups):
        if name in METRICS:
            metric = METRICS[name]
            yield Method(
                f"{metric.title} ({name})",
                f"{metric.meaning[:1].upper()}{metric.meaning[1:]}: {metric.formula}.",
                metric.citation,
            )
    yield from _auto_methods() if result.spec.interval == "auto" else _bootstrap_methods(result)
    if result.spec.custom or result.spec.within:
        yield Method(
            "Resampled intervals",
            "Metrics of your own and values standardised over strata have BCa intervals from "
            f"{result.spec.resamples:,} "
            f"multinomial resamples of the cells, seed {result.spec.seed}; their worst pair has one max-t "
            "band over all "
            "pairs.",
            "Efron 1987, JASA 82; Westfall and Young 1993, Resampling-Based Multiple Testing",
        )
    if result.spec.within:
        yield Method(
            "Standardised over strata",
            f"{_STRATA_NOTE} A stratum counts by the people a metric is about: for a true positive rate those with the "
            "positive outcome. The choice of strata follows the data and is held fixed in the resamples.",
        )
    yield Method(
        "Small and missing groups",
        f"A group with fewer than {result.spec.min_count} people in a metric's denominator is shown but left "
        "out of gaps; "
        "people whose group is missing are a row of their own.",
    )


def _auto_methods() -> Iterator[Method]:
    yield Method(
        "Intervals of one group",
        "Wilson's score interval for a rate; Student's t on the logit scale for a mean score and, with DeLong's "
        "standard error, for an AUC. With survey weights a rate's sample size is Kish's or the linearised one, "
        "whichever is smaller.",
        "Wilson 1927, JASA 22; DeLong et al. 1988, Biometrics 44; Korn and Graubard 1998, Survey Methodology 24",
    )
    yield Method(
        "Difference and ratio to the reference group",
        "From the two groups' own limits (MOVER). Each on its own, not simultaneous.",
        "Newcombe 1998, Statistics in Medicine 17; Donner and Zou 2012, Statistical Methods in Medical Research 21",
    )
    yield Method(
        "Against everybody",
        "Everybody is the group and the rest: the limits follow from those of the group against the rest, times the "
        "rest's share, whose own error is added. For an AUC the delta method with DeLong's covariance and Student's t.",
    )
    yield Method(
        "Worst pair",
        "The highest group against the lowest. A maximum over groups is biased away from equality, so its interval "
        "comes from simultaneous intervals of all pairs of the groups compared (Bonferroni), each from the two "
        "groups' own limits, exact ones for rates. It is simultaneous over the pairs of one metric, one "
        "grouping and one model, not over several of these.",
        "benchmarks/coverage.py shows the coverage",
    )


def _bootstrap_methods(result: ParityResult) -> Iterator[Method]:
    yield Method(
        "Intervals",
        f"{result.spec.interval} bootstrap intervals from {result.spec.resamples:,} multinomial resamples of "
        "the cells, "
        f"seed {result.spec.seed}; AUC has DeLong's limits. The worst pair has one max-t band over all pairs. Where "
        "resamples do not vary, as with a rate of 0, there is no interval.",
        "Efron 1987, JASA 82; Westfall and Young 1993, Resampling-Based Multiple Testing",
    )
