"""The report section on parity: charts, tables, and methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.audits.parity import charts
from evenhand.audits.parity.errors_chart import error_figure
from evenhand.charts import MOST_ROWS, Grid
from evenhand.core.display import (
    DESCRIBES,
    Cell,
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
from evenhand.messages.formats import Format, show, show_confidence, show_tick
from evenhand.table.roles import TIMES

if TYPE_CHECKING:
    from evenhand.audits.parity.definition import ParityMetric
    from evenhand.audits.parity.result import CalibrationRecord, ParityGap, ParityResult
    from evenhand.audits.parity.spec import ParitySpec

_STRATA_NOTE = (
    "Standardised values are what each group would have if it had everybody's mix of strata, over the strata that all "
    "groups share."
)


def parts(result: ParityResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    metrics, confidence = result.metrics, result.spec.confidence
    if charts.gap_metrics(result):
        yield _gap_figure(result)
    for grouping in result.groupings:
        values = result.rows("values", grouping=grouping, stratum=None)
        gaps = _each_contrast_once(result.rows("gaps", grouping=grouping, stratum=None))
        yield _value_figure(result, grouping)
        yield value_table(values, metrics, f"Every value by {grouping}", confidence)
        yield gap_table(
            gaps,
            metrics,
            f"Every gap by {grouping}: the difference or ratio between a group and its reference, rates in points",
            confidence,
        )
    if (errors := error_figure(result, result.groupings[0])) is not None:
        yield errors
    if result.calibration:
        yield _calibration_figure(result, result.groupings[0])
        yield _calibration_table(result, result.groupings[0])
    if result.spec.within:
        within = [gap for gap in result.rows("gaps", against="worst_pair") if gap.stratum is not None]
        yield gap_table(within, metrics, f"Gaps within strata of {TIMES.join(result.spec.within)}", confidence)
    yield _metric_table(result)


def _metric_table(result: ParityResult) -> DisplayTable:
    """Return the table of metrics with their meaning, formula and source."""
    known = result.spec.known_metrics()
    computed = (known[name] for name in dict.fromkeys(record.metric for record in result.values))
    columns: Mapping[str, Callable[[ParityMetric], Cell]] = {
        "Metric": lambda metric: metric.title,
        "Name": lambda metric: metric.name,
        "Meaning": lambda metric: metric.meaning,
        "Formula": lambda metric: None if metric.formula == metric.meaning else metric.formula,
        "Source": lambda metric: metric.reference,
    }
    return make_table("The metrics", columns, tuple(metric for metric in computed if metric.method != "custom"))


def _each_contrast_once(gaps: Sequence[ParityGap]) -> list[ParityGap]:
    """Return the gaps to list; with two groups only the worst pair, because all gaps are one contrast."""
    to_overall = Counter((gap.model, gap.metric, gap.kind) for gap in gaps if gap.against == "overall")
    return [gap for gap in gaps if gap.against == "worst_pair" or to_overall[gap.model, gap.metric, gap.kind] != 2]


def _gap_figure(result: ParityResult) -> Figure:
    gaps = result.rows("gaps", kind="difference", against="worst_pair", stratum=None)
    rates = [gap for gap in gaps if gap.value is not None and result.metrics[gap.metric].unit == "share"]
    caption = (
        "Points: the difference between the highest and the lowest group, in percentage points. Bars: simultaneous "
        "intervals. In brackets: the people behind each rate."
    )
    description = ""
    if rates:
        largest = max(rates, key=lambda gap: gap.value or 0.0)
        description = (
            f"The largest is {show(largest.value, 'points')} percentage points in "
            f"{result.metrics[largest.metric].title_in_sentence} by {largest.grouping} under "
            f"{largest.model}, {largest.group} against {largest.reference}."
        )
    panels = tuple(charts.gap_panels(result, result.groupings))
    shown = ("difference", "worst_pair", None)
    findings = [finding for finding in result.findings if (finding.kind, finding.against, finding.stratum) == shown]
    shows = figure_sentence(findings, charts.gap_metrics(result), result.spec.finding_alpha)
    return Figure("Largest gap between any two groups", caption, description, panels, shows)


def _value_figure(result: ParityResult, grouping: str) -> Figure:
    drawn = charts.charted_groups(result, grouping)
    total = len({record.group for record in result.rows("values", grouping=grouping)})
    panels = tuple(charts.value_panels(result, grouping))
    marks = (
        "Bars or points: values. Lines"
        if any(isinstance(panel, Grid) or panel.bars for panel in panels)
        else "Points: values. Bars"
    )
    caption = f"{marks}: {show_confidence(result.spec.confidence)} intervals of each group on its own."
    if total > MOST_ROWS:
        caption += f" The {len(drawn)} largest of {total:,} groups are drawn; the table has them all."
    description = " ".join(_extremes(result, grouping, metric) for metric in charts.headline_metrics(result))
    findings = [f for f in result.findings if (f.grouping, f.stratum) == (grouping, None) and f.kind is not None]
    shows = figure_sentence(findings, charts.headline_metrics(result), result.spec.finding_alpha)
    return Figure(f"Values by {grouping}", caption, description, panels, shows)


def _extremes(result: ParityResult, grouping: str, name: str) -> str:
    """Describe the highest and the lowest group in a panel."""
    metric = result.metrics[name]
    in_points = metric.style() == "percent"
    style, unit = "points" if in_points else metric.style(), " percentage points" if in_points else ""
    coordinates = {"grouping": grouping, "metric": name, "kind": "difference", "against": "worst_pair", "stratum": None}
    sentences = [
        f"{gap.model}: highest {gap.group}, lowest {gap.reference}, {show(gap.value, style)}{unit} apart"
        for gap in result.rows("gaps", **coordinates)
        if gap.value is not None
    ]
    return f"{metric.title}: {'; '.join(sentences)}." if sentences else ""


def _calibration_figure(result: ParityResult, grouping: str) -> Figure:
    numbers = charts.are_numbers(result)
    reading = (
        "On the dashed line prediction and outcome agree; above it predictions are too low, below it too high."
        if numbers
        else "On the dashed line score and outcome agree; above it scores are too low, below it too high."
        if charts.are_probabilities(result)
        else "Where the lines differ, the same score means different things in different groups."
    )
    what, limits = ("mean outcome", "") if numbers else ("share with the positive outcome", "Wilson ")
    grey = ", the others in grey" if len({record.model for record in result.calibration}) == 1 else ""
    caption = (
        f"The {what} among people in the same bin of the {'prediction' if numbers else 'score'}, a panel for each group"
        f"{grey}. {reading} Bins with at least {result.spec.min_count} people are drawn, with {limits}intervals."
    )
    panels = tuple(charts.calibration_panels(result, grouping))
    return Figure(f"Calibration by {grouping}", caption, _calibration_in_words(result, grouping), panels, DESCRIBES)


def _calibration_in_words(result: ParityResult, grouping: str) -> str:
    """Describe each group's bin with the largest distance between score and outcome, largest groups first.

    For scores outside 0 to 1, describe the outcome in the lowest and the highest bin.
    """
    groups: dict[tuple[str, str], list[CalibrationRecord]] = {}
    for record in result.rows("calibration", grouping=grouping):
        if record.n >= result.spec.min_count and record.value is not None and record.mean_score is not None:
            groups.setdefault((record.model, record.group), []).append(record)
    describe = _farthest_bin if charts.are_probabilities(result) else _outer_bins
    largest_first = sorted(groups.items(), key=lambda item: -sum(record.n for record in item[1]))
    return " ".join(f"{model}, {group}: {describe(bins)}." for (model, group), bins in largest_first)


def _farthest_bin(bins: Sequence[CalibrationRecord]) -> str:
    worst = max(bins, key=lambda record: abs((record.value or 0.0) - (record.mean_score or 0.0)))
    return (
        f"score and outcome are farthest apart in the bin from {worst.bin_low:g} to {worst.bin_high:g}, with a mean "
        f"score of {show(worst.mean_score)} and the positive outcome for {show(worst.value, 'percent')} "
        f"(n = {worst.n:,})"
    )


def _outer_bins(bins: Sequence[CalibrationRecord]) -> str:
    first, last = min(bins, key=lambda record: record.bin_low), max(bins, key=lambda record: record.bin_low)
    return (
        f"the outcome is positive for {show(first.value, 'percent')} in the lowest bin (n = {first.n:,}) and "
        f"{show(last.value, 'percent')} in the highest (n = {last.n:,})"
    )


def _calibration_table(result: ParityResult, grouping: str) -> DisplayTable:
    numbers = charts.are_numbers(result)
    bin_name, mean, outcome = (
        ("Prediction", "Mean prediction", "Mean outcome")
        if numbers
        else ("Score bin", "Mean score", "Share with outcome")
    )
    style: Format = "number" if numbers else "percent"
    columns = {
        "Model": lambda r: r.model,
        "Group": lambda r: r.group,
        bin_name: lambda r: f"{show_tick(r.bin_low)} to {show_tick(r.bin_high)}",
        "n": lambda r: Number(r.n, "count"),
        mean: lambda r: Number(r.mean_score),
        outcome: lambda r: Number(r.value, style),
        "Interval": lambda r: Range(r.low, r.high, style),
    }
    return make_table(f"Calibration by {grouping}", columns, result.rows("calibration", grouping=grouping))


def methods(result: ParityResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    spec = result.spec
    computed = [spec.known_metrics()[name] for name in dict.fromkeys(record.metric for record in result.values)]
    if any(note.id == "parity.clustered" for note in result.notes):
        yield from _cluster_methods()
    else:
        yield from _methods_of_people(spec, computed)
    if result.spec.within:
        yield Method(
            "Standardised over strata",
            f"{_STRATA_NOTE} A stratum counts by the people a metric is about: for a true positive rate those with the "
            "positive outcome. The choice of strata follows the data and is held fixed in the resamples.",
        )
    yield Method(
        "Small and missing groups",
        f"A group with fewer than {spec.min_count} people in a metric's denominator is shown but left out of gaps; "
        "people whose group is missing are a row of their own.",
    )


def _methods_of_people(spec: ParitySpec, computed: Sequence[ParityMetric]) -> Iterator[Method]:
    """Yield the methods for independent rows."""
    if any(metric.of_number is not None for metric in computed):
        yield from _number_methods()
    rates = [metric for metric in computed if metric.of_number is None]
    yield from _rate_methods(spec, rates) if rates else ()
    if rates and (spec.custom or spec.within):
        yield Method(
            "Resampled intervals",
            f"Metrics of your own and values standardised over strata have BCa intervals from {spec.resamples:,} "
            "multinomial resamples of the cells, which depend on no seed; their worst pair has one max-t band over all "
            "pairs. Gaps of two rates standardised over strata are tested by permuting people within their strata.",
            "Efron 1987, JASA 82; Westfall and Young 1993, Resampling-Based Multiple Testing",
        )


def _rate_methods(spec: ParitySpec, computed: Sequence[ParityMetric]) -> Iterator[Method]:
    yield from _auto_methods() if spec.interval == "auto" else [_bootstrap_method(spec)]
    if spec.interval == "auto" and any(metric.method == "function" for metric in computed):
        yield _function_method()


def _auto_methods() -> Iterator[Method]:
    yield Method(
        "Intervals of one group",
        "Wilson's score interval for a rate; Student's t on the logit scale for a mean score and, with DeLong's "
        "standard error, for an AUC. With survey weights a rate's sample size is Kish's or the linearised one, "
        "whichever is smaller.",
        "Wilson 1927, JASA 22; DeLong et al. 1988, Biometrics 44; Korn and Graubard 1998, Survey Methodology 24",
    )
    yield Method(
        "Two rates without survey weights",
        "The score test of Miettinen and Nurminen and the limits that invert it: exact if fewer than 30 people with "
        "the rarer outcome are expected in the smaller group.",
        "Miettinen and Nurminen 1985, Statistics in Medicine 4; Chan and Zhang 1999, Biometrics 55",
    )
    yield Method(
        "Two means, or rates with survey weights",
        "The studentised permutation of people, or for many people its approximation by moments, and the limits that "
        "invert it.",
        "Janssen 1997, Statistics and Probability Letters 36; Chung and Romano 2013, Annals of Statistics 41",
    )
    yield Method(
        "Two other values",
        "AUC and functions of rates: from the two groups' own limits (MOVER).",
        "Donner and Zou 2012, Statistical Methods in Medical Research 21",
    )
    yield Method(
        "Against everybody",
        "Everybody is the group and the rest: test and limits are those of the group against the rest, times the "
        "rest's share. For an AUC the delta method with DeLong's covariance and Student's t.",
    )
    yield _worst_pair_method()


def _worst_pair_method() -> Method:
    return Method(
        "Worst pair",
        "The highest group against the lowest. A maximum over groups is biased away from equality, so the end of its "
        "interval near equality, and its p-value, hold for all pairs of the groups compared (Bonferroni). They are "
        "simultaneous over the pairs of one metric, one grouping and one model, not over several of these.",
        "Berger 1982, Technometrics 24; benchmarks/coverage/parity_level.py shows the coverage",
    )


def _cluster_methods() -> Iterator[Method]:
    yield Method(
        "Rows in clusters",
        "The variance of every value is the sum of squared influences of the clusters, each left out in turn; for "
        "shares and means it is CR2. Degrees of freedom are Satterthwaite's. A rate has Wilson's limits with as many "
        "people as give this variance, and Student's t; a mean of numbers has Hall's correction for skewness, a "
        "quantile the order statistics of an effective number of people. A gap has limits from the two groups' own "
        "(MOVER) with their correlation, and its p-value is the level at which they begin to exclude equality. A group "
        "needs 10 clusters.",
        "Bell and McCaffrey 2002, Survey Methodology 28; Imbens and Kolesár 2016, Review of Economics and Statistics "
        "98; Zou 2007, Psychological Methods 12",
    )
    yield _worst_pair_method()


def _number_methods() -> Iterator[Method]:
    yield Method(
        "Means of numbers",
        "Of one group Student's t, corrected for skewness by Hall's transformation. Two groups are compared by the "
        "studentised permutation of people, and the limits that invert it. No range of the numbers is assumed. Where "
        "one person makes up more than half of a group's variance, the mean is no headline, and the median leads. The "
        "root mean squared error has limits from those of the mean squared error (MOVER).",
        "Hall 1992, JRSS B 54; Janssen 1997, Statistics and Probability Letters 36; Chung and Romano 2013, Annals of "
        "Statistics 41",
    )
    yield Method(
        "Medians and other quantiles",
        "Of one group exact limits from order statistics; with survey weights those of Kish's effective number of "
        "people. Two groups are compared by both groups' exact limits (MOVER), which hold more often than stated where "
        "there are few people or many ties.",
        "Thompson 1936, Annals of Mathematical Statistics 7; Woodruff 1952, JASA 47; Zou and Donner 2008, Statistics "
        "in Medicine 27",
    )


def _function_method() -> Method:
    return Method(
        "F1 and balanced accuracy",
        "Functions of rates: F1 of the share of true positives among people selected or with the positive outcome, "
        "balanced accuracy of the true positive and the true negative rate. Their limits follow from those of the "
        "rates (MOVER).",
        "Zou and Donner 2008, Statistics in Medicine 27",
    )


def _bootstrap_method(spec: ParitySpec) -> Method:
    return Method(
        "Intervals",
        f"{spec.interval} bootstrap intervals from {spec.resamples:,} multinomial resamples of the cells, "
        "which depend on no seed; AUC has DeLong's limits. The worst pair has one max-t band over all pairs. Where "
        "resamples do not vary, as with a rate of 0, there is no interval.",
        "Efron 1987, JASA 82; Westfall and Young 1993, Resampling-Based Multiple Testing",
    )
