"""The report section on reliability: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.reliability.charts import (
    Run,
    attribution_panels,
    companion_panels,
    curve_panels,
    drawn_groups,
    gap_panels,
    groups_of,
    model_gap_panels,
    model_value_panels,
    part_panels,
    runs,
)
from evenhand.audits.reliability.evidence import (
    LEAST_FOR_RATIOS,
    LEAST_IN_A_FOLD,
    LEAST_PEOPLE,
)
from evenhand.audits.reliability.metrics import METRICS
from evenhand.core.display import (
    DESCRIBES,
    DisplayTable,
    Figure,
    Method,
    Number,
    Range,
    figure_sentence,
    gap_table,
    make_table,
    value_table,
)
from evenhand.core.findings import Finding
from evenhand.core.records import matching
from evenhand.messages import Message
from evenhand.messages.formats import show, show_confidence

if TYPE_CHECKING:
    from evenhand.audits.reliability.result import ReliabilityGap, ReliabilityResult, ReliabilityValue

MOST_DRAWN, MOST_EXPLAINED = 4, 2
"""The maximum numbers of simulations that are drawn, and that are drawn with explanations; tables show all."""

_PAPER = "T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24"
_BELOW = (
    "Below 0 the group's metric is lower. Only PABAK and the spread-adjusted ICC measure what mistakes do and nothing "
    "else."
)


def parts(result: ReliabilityResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    if len(result.spec.model) > 1:
        yield from _models_compared(result)
    yield _model_table(result)
    for number, run in enumerate(runs(result)[:MOST_DRAWN]):
        yield from _figures(result, run)
        if number < MOST_EXPLAINED:
            yield from _explanations(result, run)
    if result.mitigation:
        yield _mitigation_table(result)
    yield from _moved_tables(result)
    yield _gap_table(result)
    yield _value_table(result)
    if result.attribution:
        yield _attribution_table(result)


# Figures --------------------------------------------------------------------------------------------------------------


def _figures(result: ReliabilityResult, run: Run) -> Iterator[Figure]:
    confidence, of = show_confidence(result.spec.confidence), _title_of(result, run)
    drawn, every = drawn_groups(result, run.grouping), groups_of(result, run.grouping)
    largest = f" The {len(drawn)} largest of {len(every)} groups are drawn." if len(drawn) < len(every) else ""
    yield Figure(
        f"Reliability by noise level{of}",
        "Agreement of the results with and without mistakes; 1 is full agreement. Bands are "
        f"{confidence} bands over people, jointly for all noise levels of a group.{largest}{_not_drawn(result, run)}",
        _at_the_highest_level(result, run),
        tuple(curve_panels(result, run)),
        _shows(result, run),
        {record.group: record.n for record in matching(result.values, **run.columns)},
    )
    gaps = [gap for gap in matching(result.gaps, against="reference", **run.columns) if gap.group is not None]
    if gaps:
        yield Figure(
            f"Gaps{of}",
            f"Each group minus {gaps[0].reference}. {_BELOW} The {confidence} bands hold at all noise levels of a "
            f"metric and group together. The findings count all tests of the run; a band does not.{largest}",
            " ".join(str(f.headline) for f in _run_findings(result, run)),
            tuple(gap_panels(result, run)),
            _shows(result, run),
        )


def _run_findings(result: ReliabilityResult, run: Run) -> list[Finding]:
    """Return the findings of a simulation."""
    places = ((f, (f.model, f.coordinates.get("setting"), f.grouping)) for f in result.findings)
    return [finding for finding, key in places if key == tuple(run)]


def _shows(result: ReliabilityResult, run: Run) -> Message:
    return figure_sentence(_run_findings(result, run), result.spec.metrics, result.spec.finding_alpha)


def _explanations(result: ReliabilityResult, run: Run) -> Iterator[Figure]:
    of = _title_of(result, run)
    if {"kappa", "pabak"} <= set(result.spec.metrics):
        yield Figure(
            f"Why kappa and PABAK differ{of}",
            "Prevalence: kappa plus the part that unequal numbers of the two decisions make. Bias: kappa plus the part "
            "that a shift of the decisions makes. The two parts add up to PABAK minus kappa exactly.",
            _means_in_words(
                result,
                run,
                ("prevalence_part", "bias_part"),
                "{group}: of PABAK minus kappa, prevalence makes {0} and bias {1} on average.",
            ),
            tuple(part_panels(result, run)),
            DESCRIBES,
            aside=True,
        )
    if {"icc_a1", "icc_spread"} & set(result.spec.metrics):
        yield Figure(
            f"What ICC is made of{of}",
            "ICC compares the squared errors of scores with the spread of a group's own scores. A group can have "
            "smaller errors and still the lower ICC.",
            _means_in_words(
                result,
                run,
                ("mean_squared_error", "variance_first"),
                "{group}: the mean squared error is {0} on average, the variance of scores {1}.",
            ),
            tuple(companion_panels(result, run)),
            DESCRIBES,
            aside=True,
        )
    records = matching(result.attribution, **run.columns)
    if records:
        yield Figure(
            f"What the measured gap is made of{of}",
            f"The gap at noise level {records[0].noise_level:g}, shared out among the features that go wrong (Shapley "
            "values; they add up to the gap). To the right, mistakes in the feature make the group more reliable "
            "than the reference; to the left, less. Lines are for other random mistakes, not for other people. It is "
            "accounting, not a cause.",
            _features_in_words(result, run),
            tuple(attribution_panels(result, run)),
            DESCRIBES,
            aside=True,
        )


def _title_of(result: ReliabilityResult, run: Run) -> str:
    """Return the title suffix of a simulation's figures: empty if it is the only one."""
    return "" if len(runs(result)) == 1 else f": {run}"


def _not_drawn(result: ReliabilityResult, run: Run) -> str:
    """Return a sentence on the undrawn simulations for the first figure; empty for all other figures."""
    every = runs(result)
    if len(every) <= MOST_EXPLAINED or run != every[0]:
        return ""
    return (
        f" Of the {len(every)} combinations of model, noise and grouping, curves and gaps are drawn for the first "
        f"{min(MOST_DRAWN, len(every))} and explained for the first {MOST_EXPLAINED}; the tables have all."
    )


def _at_the_highest_level(result: ReliabilityResult, run: Run) -> str:
    """Describe the groups' values of each metric at the highest noise level."""
    records = matching(result.values, **run.columns)
    top = max(record.noise_level for record in records)
    sentences = []
    for name in result.spec.metrics:
        values = [f"{show(r.value)} for {r.group}" for r in records if (r.metric, r.noise_level) == (name, top)]
        sentences.append(f"{METRICS[name].title} is {', '.join(values)}")
    return f"At noise level {top:g}: {'; '.join(sentences)}."


def _means_in_words(result: ReliabilityResult, run: Run, metrics: Sequence[str], sentence: str) -> str:
    """Describe each group's means of two metrics over the noise levels above 0."""
    sentences = []
    for group in groups_of(result, run.grouping):
        means = (_mean(matching(result.values, group=group, metric=name, **run.columns)) for name in metrics)
        sentences.append(sentence.format(*(show(mean) for mean in means), group=group))
    return " ".join(sentences)


def _mean(records: Sequence[ReliabilityValue]) -> float | None:
    values = [record.value for record in records if record.noise_level > 0]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined and len(defined) == len(values) else None


def _features_in_words(result: ReliabilityResult, run: Run) -> str:
    sentences = []
    records = [r for r in matching(result.attribution, **run.columns) if r.value is not None]
    for name, group in dict.fromkeys((r.metric, r.group) for r in records):
        largest = sorted((r for r in records if (r.metric, r.group) == (name, group)), key=lambda r: -abs(r.value or 0))
        listed = ", ".join(f"{r.feature} {show(r.value, 'signed')}" for r in largest[:4])
        sentences.append(f"{METRICS[name].title}, {group}: {listed}.")
    return " ".join(sentences)


def _models_compared(result: ReliabilityResult) -> Iterator[Figure]:
    for setting, grouping in dict.fromkeys((run.setting, run.grouping) for run in runs(result)):
        yield _model_values(result, setting, grouping)
        means = matching(result.gaps, noise_level=None, against="reference", setting=setting, grouping=grouping)
        gaps = [gap for gap in means if gap.group is not None]
        if gaps:
            yield _model_gaps(result, setting, grouping, gaps)


def _model_values(result: ReliabilityResult, setting: str, grouping: str) -> Figure:
    where: dict[str, Any] = {"setting": setting, "grouping": grouping}
    top = max(r.noise_level for r in matching(result.values, **where))
    values = [r for r in matching(result.values, noise_level=top, **where) if r.metric in result.spec.metrics]
    return Figure(
        f"Models compared: by {grouping}, noise {setting}",
        f"Agreement at the highest noise level, {top:g}, with intervals over people. More reliable on the whole is "
        f"not fairer by that alone; the table of models shows what a model gives up for it.{_hollow_points(values)}",
        " ".join(f"{r.model}, {METRICS[r.metric].title}, {r.group}: {show(r.value)}." for r in values),
        tuple(model_value_panels(result, setting, grouping, top)),
        DESCRIBES,
    )


def _model_gaps(result: ReliabilityResult, setting: str, grouping: str, gaps: Sequence[ReliabilityGap]) -> Figure:
    setting_findings = [f for f in result.findings if (f.grouping, f.coordinates.get("setting")) == (grouping, setting)]
    return Figure(
        f"Gaps of the models: by {grouping}, noise {setting}",
        f"Each group minus {gaps[0].reference}, averaged over noise levels, with intervals over people. "
        f"{_BELOW}{_hollow_points(gaps)}",
        " ".join(f"{g.model}, {METRICS[g.metric].title}, {g.group}: {show(g.value, 'signed')}." for g in gaps),
        tuple(model_gap_panels(result, setting, grouping)),
        figure_sentence(setting_findings, result.spec.metrics, result.spec.finding_alpha),
    )


def _hollow_points(records: Sequence[ReliabilityValue | ReliabilityGap]) -> str:
    bare = any(record.value is not None and record.low is None for record in records)
    return " A hollow point has no interval." if bare else ""


# Tables ---------------------------------------------------------------------------------------------------------------


def _model_table(result: ReliabilityResult) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Kind": lambda r: r.kind,
        "Source": lambda r: r.source,
        "Folds": lambda r: Number(r.folds, "count"),
        "Threshold": lambda r: Number(r.threshold),
        "Selected": lambda r: Number(r.selected, "percent"),
        "Accuracy": lambda r: Number(r.accuracy, "percent"),
        "AUC": lambda r: Number(r.auc),
        "Features": lambda r: r.features,
    }
    return make_table("The models, without mistakes", columns, result.models, folded=False)


def _gap_table(result: ReliabilityResult) -> DisplayTable:
    extra = {
        "Noise": lambda r: r.setting,
        "Level": lambda r: "mean" if r.noise_level is None else f"{r.noise_level:g}",
        "Levels lower": lambda r: Number(r.share_lower, "percent"),
        "SD of runs": lambda r: Number(r.replicate_sd),
    }
    # At one level there are only joint limits, in their own column.
    gaps = [replace(gap, low=None, high=None) if gap.noise_level is not None else gap for gap in result.gaps]
    caption = "Gaps: the mean over noise levels, and every level"
    return gap_table(gaps, METRICS, caption, result.spec.confidence, extra=extra)


def _value_table(result: ReliabilityResult) -> DisplayTable:
    extra = {
        "Noise": lambda r: r.setting,
        "Level": lambda r: f"{r.noise_level:g}",
        "Over runs": lambda r: Range(r.replicate_low, r.replicate_high),
    }
    values = [replace(record, low=None, high=None) for record in result.values]
    return value_table(values, METRICS, "Every metric at every noise level", result.spec.confidence, extra=extra)


def _mitigation_table(result: ReliabilityResult) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Noise": lambda r: r.setting,
        "Grouping": lambda r: r.grouping,
        "Accuracy": lambda r: Number(r.accuracy, "percent"),
        "Change of accuracy": lambda r: Range(r.accuracy_change_low, r.accuracy_change_high, "signed"),
        "Reliability (PABAK)": lambda r: Number(r.reliability),
        "Change of reliability": lambda r: Range(r.reliability_change_low, r.reliability_change_high, "signed"),
        "Largest gap": lambda r: Number(r.gap, "signed"),
        "Its interval": lambda r: Range(r.gap_low, r.gap_high, "signed"),
        "of": lambda r: r.group,
        "No less accurate": lambda r: "yes" if r.no_less_accurate else "not shown",
        "Chosen": lambda r: "chosen" if r.chosen else "",
    }
    return make_table("Other models: accuracy against reliability", columns, result.mitigation, folded=False)


def _moved_tables(result: ReliabilityResult) -> Iterator[DisplayTable]:
    """Yield the tables on changes of risk level and order.

    Only the rows of the highest noise level are unfolded.
    """
    from evenhand.audits.reliability.moved import PASSING, TITLES

    confidence = show_confidence(result.spec.confidence)
    columns = {
        "Model": lambda r: r.model,
        "Noise": lambda r: r.setting,
        "Grouping": lambda r: r.grouping,
        "Group": lambda r: r.group,
        "Level": lambda r: f"{r.noise_level:g}",
        "Metric": lambda r: TITLES[r.metric],
        "Risk level": lambda r: r.risk_level,
        "Value": lambda r: Number(r.value),
        f"{confidence} interval": lambda r: Range(r.low, r.high),
        "Gap": lambda r: Number(r.gap, "signed"),
        "Its interval": lambda r: Range(r.gap_low, r.gap_high),
        "People": lambda r: Number(r.n, "count"),
        "Status": lambda r: r.status,
    }
    for title, inside in (
        ("Passing: how often a mistake moves a person past somebody who is no different", True),
        ("Risk levels with and without mistakes", False),
    ):
        records = [r for r in result.moved if (r.metric == PASSING) is inside]
        shown = {name: value for name, value in columns.items() if not inside or name not in ("Metric", "Risk level")}
        if records:
            yield make_table(title, shown, records)


def _attribution_table(result: ReliabilityResult) -> DisplayTable:
    rows: list[dict[str, Any]] = []
    for _, records in groupby(result.attribution, lambda r: (r.model, r.setting, r.grouping, r.group, r.metric)):
        group = [record.to_dict() for record in records]
        defined = [row["value"] for row in group if row["value"] is not None]
        total = sum(defined) if len(defined) == len(group) else None
        nothing = {"share": None, "replicate_low": None, "replicate_high": None}
        rows += [*group, {**group[0], **nothing, "feature": "Sum", "value": total}]
    columns = {
        "Model": lambda r: r["model"],
        "Noise": lambda r: r["setting"],
        "Grouping": lambda r: r["grouping"],
        "Group": lambda r: r["group"],
        "Metric": lambda r: METRICS[r["metric"]].title,
        "Feature": lambda r: r["feature"],
        "Level": lambda r: f"{r['noise_level']:g}",
        "Part of the gap": lambda r: Number(r["value"], "signed"),
        "Share": lambda r: Number(r["share"], "percent"),
        "Over runs": lambda r: Range(r["replicate_low"], r["replicate_high"], "signed"),
        "Method": lambda r: r["method"],
    }
    return make_table("What each feature adds to the gaps", columns, rows)


# Methods --------------------------------------------------------------------------------------------------------------


def methods(result: ReliabilityResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    spec = result.spec
    both = "Both raters go wrong." if spec.noise.noisy_raters == 2 else "The first rater enters the data as they are."
    drawn = "afresh at every noise level" if spec.noise.fresh else "once for all levels, so that mistakes only add up"
    yield Method(
        "Simulation",
        f"Two raters enter the features of the same people. {both} Mistakes are drawn {drawn}; "
        f"{spec.replicates:,} replicates. Each distinct row is scored once, and the metrics follow from sums; this "
        "is exactly what scoring everybody at every level gives.",
        _PAPER,
    )
    for name in spec.metrics:
        yield Method(f"{METRICS[name].title} ({name})", f"{METRICS[name].formula}.", METRICS[name].reference)
    yield Method(
        "Decisions and scores",
        "Kappa, PABAK, AC1 and alpha are of decisions, ICC and concordance of scores. PABAK - kappa = (1 - kappa)(PI² "
        "- BI²), with the prevalence index PI = (a - d) / n and the bias index BI = (b - c) / n. ICC(A,1) is close to "
        "1 - E(e²) / spread, with the spread of the group itself; on decisions the spread-adjusted ICC would be PABAK.",
        METRICS["prevalence_part"].reference,
    )
    yield _test()
    yield _intervals(result)
    yield from _moved_methods(result)
    yield from _many_tests(result)
    yield Method(
        "Levels at which a group is lower",
        "The share of noise levels at which a group is lower is given, but it is weak evidence: the levels share "
        "people, models and random numbers, so that one group is often lower at nearly all of them by chance alone.",
    )
    yield Method(
        "Over runs",
        "Standard deviation between replicates, and mean ± t sd / sqrt(R): what other random mistakes would give. It "
        "says nothing about other people.",
    )
    if spec.attribution is not False:
        yield Method(
            "Parts of the gap",
            "Shapley values: what a feature's mistakes add to the gap, averaged over all orders in which features can "
            "go wrong; all coalitions up to 10 features, 20 orders a replicate above. They are of the same replicates "
            "as the curves and add up to the gap. There is no share of a gap whose interval holds 0.",
            "L. S. Shapley (1953), A value for n-person games, Contributions to the Theory of Games II",
        )


def _moved_methods(result: ReliabilityResult) -> Iterator[Method]:
    scoring = result.spec.scoring
    yield Method(
        "Passing rate",
        f"Two people are no different when their scores without mistakes differ by at most {scoring.alike:g}. A "
        "mistake moves one past the other when it puts the score further than that from the other's. The passing rate "
        "of a group is the share of pairs of people who are no different, the first of the group, in which it does; 0 "
        "is best. EaIF asks whether like people are treated alike as they are; this asks how often a mistake undoes "
        "it. Mean over up to 20 replicates, all folds together; limits over people from the influence of each.",
    )
    if scoring.cuts(np.zeros(1)).size or isinstance(scoring.threshold, str):
        yield Method(
            "Risk levels",
            "Weighted kappa compares the levels with and without mistakes by how many levels apart they are. Weighted "
            "PABAK has the same distances and even margins. Their difference is a prevalence part, from uneven levels, "
            "and a bias part, from a shift of the levels, exactly; with two levels these are Byrt's.",
            "J. Cohen (1968), Weighted kappa, Psychological Bulletin 70",
        )


def _test() -> Method:
    return Method(
        "Test and interval of the mean gap",
        "Each person has a value: 1 - 2 d for PABAK and 1 - e² / V for the spread-adjusted ICC, with d the person's "
        "share of changed decisions and e² the mean squared error of the scores, over replicates and noise levels; "
        "for kappa and other ratios, the metric plus the person's influence on it. The gap is the difference of two "
        "groups' means of these values, averaged over folds. Divided by its standard error, it is compared with what "
        "it would be if people were assigned to the groups at random within their fold (9,999 or 99,999 times, or by "
        "moments where people are many). The interval comes from the same distribution, and excludes 0 exactly where "
        "p is below one less the confidence. Where the values of a group do not vary, the limits also allow for what "
        "so few people may have missed; values that are only the least or the largest are compared as rates.",
        "A. Janssen (1997), Statistics & Probability Letters 36; E. Chung and J. P. Romano (2013), Annals of "
        "Statistics 41",
    )


def _intervals(result: ReliabilityResult) -> Method:
    return Method(
        "Bands of curves and of gaps",
        f"People are resampled {result.spec.resamples:,} times within group and fold, each with all their mistakes; "
        "the models stay as they are. What m people of a fold and group add to the spread is multiplied by "
        "sqrt(m / (m - 1)). Bands are value ± q standard errors, with q the quantile of the largest deviation over all "
        "noise levels (sup-t), times Student's over the normal quantile. Where the interval of the mean gap is longer "
        "on a side than the bootstrap's, the band of the gap is, too. Groups with fewer than "
        f"{LEAST_PEOPLE} people, or {LEAST_IN_A_FOLD} in a fold ({LEAST_FOR_RATIOS} for metrics other than PABAK and "
        "the spread-adjusted ICC), have no band of gaps, and these other metrics no test there.",
        "J. Montiel Olea and M. Plagborg-Møller (2019), Simultaneous confidence bands, Journal of Applied Econometrics "
        "34",
    )


def _many_tests(result: ReliabilityResult) -> Iterator[Method]:
    pilot = result.spec.noise.pilot
    if pilot is not None and pilot.by is not None:
        yield Method(
            "Another pilot",
            "Mistakes were learned by group, each replicate from a resample of the pilot. The variance of the gap "
            "between these replicates, less that between replicates that all learn from the pilot itself, is added to "
            "the variance of the gap, and the degrees of freedom are lowered (Satterthwaite); where the second one "
            "is not known well enough it is not taken off. Bands of curves do not allow for another pilot.",
        )
    yield Method(
        "Many tests, and thresholds",
        "A finding is clear when its p-value, adjusted for all findings of the run (Holm), is at most one less the "
        "confidence; the adjusted p-values in tables are for all tables of the run (Benjamini and Bogomolov). An "
        "interval is for its gap alone. A threshold is judged by the largest gap of all pairs of groups, or by each "
        "gap to the reference group, with intervals that hold for all of these together (Bonferroni).",
        "S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6",
    )
