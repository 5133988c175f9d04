"""The report section on disagreement: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from evenhand.audits.disagreement.charts import (
    MOST_GROUPS,
    RATES,
    agreement_panels,
    critic_panels,
    distinct_metrics,
    gap_panels,
    pair_panels,
    stakeholder_panels,
    value_panels,
)
from evenhand.audits.disagreement.estimate import NEW_CASES, SAME_CASES
from evenhand.audits.disagreement.findings import goes_either_way
from evenhand.audits.disagreement.metrics import DISAGREEMENT, METRICS, PAPER
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
    remark,
    value_table,
)
from evenhand.core.findings import without_kind
from evenhand.core.methods import method
from evenhand.core.records import OK, open_range
from evenhand.errors import count
from evenhand.messages.formats import show, show_confidence
from evenhand.stats.feedback import INDEFINITE

if TYPE_CHECKING:
    from evenhand.audits.disagreement.result import (
        AnswerPlan,
        DisagreementGap,
        DisagreementResult,
        DisagreementValue,
        StakeholderGap,
    )

_MOST_DIFFERENCES = 12
_method = partial(method, "evenhand.audits.disagreement")
_Number = TypeVar("_Number", "DisagreementGap", "DisagreementValue")
_EXACT_OR_OPEN = "Points: exact. Thick bars: what the answers leave open. Thin lines: intervals."


def parts(result: DisagreementResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    yield _gap_figure(result)
    yield _meaning_table(result)
    yield _gap_table(result)
    for grouping in result.groupings:
        yield _value_figure(result, grouping)
        yield _value_table(result, grouping)
    if any(gap.stakeholder is not None for gap in result.gaps):
        yield from _stakeholder_parts(result)
    if result.shows_individuals:
        yield from _critic_figures(result)
    if result.pairs:
        yield from _pair_parts(result)
    if result.truth:
        yield _truth_table(result)
    if result.plan:
        yield _plan_table(result)


# Gaps and rates -------------------------------------------------------------------------------------------------------


def _gap_figure(result: DisagreementResult) -> Figure:
    bounded = any(gap.identified == "bounded" for gap in result.gaps)
    truth = " Dark ticks: the truth, by the critics' own labels." if result.truth and bounded else ""
    caption = (
        "The largest difference between two groups, over all labels. Points: gaps that the answers fix exactly. Thick "
        f"bars: the range that they leave open. Thin lines: {show_confidence(result.spec.confidence)} "
        f"intervals, which add that critics and cases are samples.{truth}"
    )
    gap_findings = [f for f in result.findings if f.metric != DISAGREEMENT and "stakeholder" not in f.coordinates]
    panels = [panel for grouping in result.groupings for panel in gap_panels(result, grouping)]
    shows = figure_sentence(gap_findings, distinct_metrics(result.gaps), result.spec.finding_alpha)
    return Figure(
        "Gaps as the critics see them", caption, " ".join(str(f.headline) for f in gap_findings), tuple(panels), shows
    )


def _meaning_table(result: DisagreementResult) -> DisplayTable:
    pooled = result.rows("gaps", stakeholder=None)
    rows = []
    for metric in dict.fromkeys(gap.metric for gap in pooled):
        gaps = [gap for gap in pooled if gap.metric == metric]
        kinds = {gap.identified for gap in gaps if gap.identified is not None}
        rows.append((METRICS[metric].title, METRICS[metric].asks, _identification_text(kinds, gaps[0].same_as)))
    columns = ("Metric", "What it asks", "What the answers show")
    return DisplayTable("What agreeing and disagreeing can show", columns, tuple(rows))


def _identification_text(kinds: set[str], same_as: str | None) -> str:
    if not kinds:
        return "nothing here: see the remarks"
    if kinds == {"bounded"}:
        words = "bounds: who disagrees does not say which label would be right"
    elif "bounded" in kinds:
        words = "bounds; exact in some groupings"
    else:
        words = "all of it" if kinds == {"definite"} else "all of it here, since nothing is left open"
    return f"{words}; its gap is that of {METRICS[same_as].title_in_sentence}" if same_as is not None else words


def _open_range(record: DisagreementGap | DisagreementValue) -> Range | None:
    """Return the open range of a number, or None if the number is exact."""
    bounds = open_range(record)
    style = METRICS[record.metric].style(getattr(record, "kind", None))
    return None if bounds is None else Range(*bounds, style)


def _without_middle(records: Sequence[_Number]) -> list[_Number]:
    """Return records without inexact values, because the middle of wide bounds is not informative."""
    return [record if open_range(record) is None else replace(record, value=None) for record in records]


def _gap_table(result: DisagreementResult) -> DisplayTable:
    extra = {
        "Critics": lambda r: r.stakeholder or "all",
        "Label": lambda r: r.label,
        "Known": lambda r: r.identified,
        "Left open": _open_range,
        "Truth": lambda r: Number(r.truth, "points"),
        "Same number as": lambda r: None if r.same_as is None else METRICS[r.same_as].title_in_sentence,
    }
    gaps = _without_middle(result.gaps)
    return gap_table(gaps, METRICS, "Every gap, in points", result.spec.confidence, extra=extra)


def _value_figure(result: DisagreementResult, grouping: str) -> Figure:
    groups = len({rate.group for rate in result.rows("values", grouping=grouping)})
    caption = f"Rates of every label. {_EXACT_OR_OPEN}"
    if groups > MOST_GROUPS:
        caption += f" The {MOST_GROUPS} groups with the most answers of {groups} are drawn; the table has them all."
    gaps = result.rows("gaps", grouping=grouping, stakeholder=None, same_as=None)
    rates = result.rows("values", grouping=grouping)
    description = " ".join(
        _gap_in_words(gap, either_way=goes_either_way(gap, rates)) for gap in gaps if gap.upper is not None
    )
    grouping_findings = [f for f in result.findings if f.grouping == grouping and "stakeholder" not in f.coordinates]
    shows = figure_sentence(grouping_findings, RATES, result.spec.finding_alpha)
    return Figure(f"Rates by {grouping}", caption, description, tuple(value_panels(result, grouping)), shows)


def _gap_in_words(gap: DisagreementGap, *, either_way: bool) -> str:
    """Return a sentence with the size of a gap, or with its bounds and an open direction."""
    title, bounds = METRICS[gap.metric].title, open_range(gap)
    if bounds is None:
        return f"{title}: {gap.group} above {gap.reference} by {show(gap.value, 'points')} points."
    low, high = (show(bound, "points") for bound in bounds)
    way = "which group is higher is open; the most is " if either_way else ""
    return f"{title}: {low} to {high} points, {way}{gap.group} above {gap.reference}."


def _value_table(result: DisagreementResult, grouping: str) -> DisplayTable:
    extra = {"Critics": lambda r: r.stakeholder or "all", "Label": lambda r: r.label, "Left open": _open_range}
    rates = _without_middle(result.rows("values", grouping=grouping))
    return value_table(rates, METRICS, f"Every rate by {grouping}", result.spec.confidence, extra=extra)


# Kinds of critics, and single critics ---------------------------------------------------------------------------------


def _stakeholder_parts(result: DisagreementResult) -> Iterator[Figure | DisplayTable]:
    kind_findings = [finding for finding in result.findings if finding.metric == DISAGREEMENT]
    description = " ".join(str(f.headline) for f in kind_findings)
    shows = figure_sentence(kind_findings, (DISAGREEMENT,), result.spec.finding_alpha)
    yield Figure(
        "How often each kind of critics agrees",
        f"The share of decisions that they agree with, by group. Lines: {show_confidence(result.spec.confidence)} "
        "intervals. The kinds need not have seen the same cases; the tests below compare them on those that both saw.",
        description,
        tuple(panel for grouping in result.groupings for panel in agreement_panels(result, grouping)),
        shows,
    )
    yield Figure(
        "Gaps as each kind of critics sees them",
        f"{_EXACT_OR_OPEN} Few critics make wide intervals and, by chance, large gaps.",
        description,
        tuple(panel for grouping in result.groupings for panel in stakeholder_panels(result, grouping)),
        DESCRIBES,
        aside=True,
    )
    tested = [record for record in result.stakeholders if record.p_adjusted is not None]
    clearest = sorted(tested, key=lambda r: (r.p_adjusted or 0.0, -abs(r.statistic or 0.0)))[:_MOST_DIFFERENCES]
    caption = (
        "Where two kinds of critics differ most clearly, on the cases that both have seen, in points; p is adjusted "
        "for the comparisons of a grouping alone"
    )
    if clearest:
        yield _stakeholder_table(result, clearest, caption, folded=False)
    caption = "Every comparison of two kinds of critics: how often they disagree, and the gaps that they see"
    yield _stakeholder_table(result, result.stakeholders, caption, folded=True)


def _stakeholder_table(
    result: DisagreementResult, records: Sequence[StakeholderGap], caption: str, *, folded: bool
) -> DisplayTable:
    extra = {
        "Critics": lambda r: r.stakeholder,
        "Compared with critics": lambda r: r.stakeholder_reference,
        "Label": lambda r: r.label,
    }
    return gap_table(records, METRICS, caption, result.spec.confidence, extra=extra, folded=folded)


def _critic_figures(result: DisagreementResult) -> Iterator[Figure]:
    for grouping in result.groupings:
        panels = critic_panels(result, grouping)
        records = result.rows("critics", grouping=grouping)
        everyone = len({record.critic for record in records})
        critics = len({record.critic for record in records if record.value is not None})
        caption = (
            f"The gap that each of {count(critics, 'critic')} sees, on their own answers. Points: the estimate, which "
            "is the middle of the bounds where there are any. Bands: the bounds. The fewer answers a critic gave, the "
            "more of it is chance."
        )
        if critics < everyone:
            caption += f" {everyone - critics} of {everyone:,} critics answered no case of some group and have none."
        description = " ".join(
            f"{METRICS[r.metric].title}: the estimate is off by {show(r.mean_error, 'points')} points on average."
            for r in result.rows("truth", grouping=grouping)
            if r.mean_error is not None
        )
        if panels:
            yield Figure(f"Critic by critic, by {grouping}", caption, description or caption, tuple(panels), DESCRIBES)


def _pair_parts(result: DisagreementResult) -> Iterator[Figure | DisplayTable]:
    panels = pair_panels(result, None)
    shares = [r for r in result.pairs if r.stakeholder is None and r.value is not None]
    described = " ".join(
        f"{METRICS[r.metric].title}: {show(r.lower, 'percent')} to {show(r.upper, 'percent')} of the pairs."
        for r in shares
    )
    if panels:
        caption = (
            f"Pairs of cases with {_likeness(result)} that one critic judged. Split answers: the critic agrees with "
            "one of the two decisions only. Held alike, treated apart: the critic has one label in mind for both, the "
            f"system gave two. Held apart, treated alike: the other way round. {_EXACT_OR_OPEN}"
        )
        yield Figure("Like cases, as critics judge them", caption, described, tuple(panels))
    yield _pair_table(result)


def _likeness(result: DisagreementResult) -> str:
    like = result.spec.like or {}
    return ", ".join(f"{name} at most {far:g} apart" if far else f"the same {name}" for name, far in like.items())


def _pair_table(result: DisagreementResult) -> DisplayTable:
    columns = {
        "Critics": lambda r: r.stakeholder or "all",
        "Metric": lambda r: METRICS[r.metric].title,
        "Share": lambda r: Number(r.value if r.lower == r.upper else None, "percent"),
        "Left open": lambda r: None if r.lower == r.upper else Range(r.lower, r.upper, "percent"),
        f"{show_confidence(result.spec.confidence)} interval": lambda r: Range(r.low, r.high, "percent"),
        "Any two cases": lambda r: Number(r.any_pair, "percent"),
        "Pairs": lambda r: Number(r.n, "count"),
        "Critics who judged some": lambda r: Number(r.critics, "count"),
        "Remark": lambda r: remark(r.status),
    }
    caption = f"Pairs of like cases ({_likeness(result)}) that one critic judged"
    return make_table(caption, columns, result.pairs, always=("Critics", "Metric", "Share", "Pairs"), folded=False)


def _truth_table(result: DisagreementResult) -> DisplayTable:
    columns = {
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: METRICS[r.metric].title,
        "Critics": lambda r: Number(r.critics, "count"),
        "Mean absolute error, points": lambda r: Number(r.mean_error, "points"),
        "Largest": lambda r: Number(r.worst_error, "points"),
        "True gap within bounds": lambda r: Number(r.inside, "percent"),
        "Remark": lambda r: remark(r.status),
    }
    records = [record for record in result.truth if record.metric in INDEFINITE]
    caption = "Estimates of single critics against the truth, by their own labels"
    return make_table(caption, columns, records, always=("Metric", "Critics"), folded=False)


def _plan_table(result: DisagreementResult) -> DisplayTable:
    same_cases = {(r.grouping, r.metric): r for r in result.plan if r.design == SAME_CASES}

    def other(record: AnswerPlan) -> AnswerPlan:
        return same_cases[record.grouping, record.metric]

    def outlook(record: AnswerPlan) -> str:
        hurdle = next((r.status for r in (record, other(record)) if r.status != OK), OK)
        reachable = hurdle.id != "disagreement.not_reachable"
        return "narrow enough" if record.answers == 0 else remark(hurdle if reachable else without_kind(hurdle))

    columns = {
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: METRICS[r.metric].title,
        "Width now, points": lambda r: Number(r.width, "points"),
        "More critics": lambda r: Number(r.critics, "count"),
        "New cases": lambda r: Number(r.cases, "count"),
        "More answers": lambda r: Number(r.answers, "count"),
        "Critics if cases stay": lambda r: Number(other(r).critics, "count"),
        "Answers if cases stay": lambda r: Number(other(r).answers, "count"),
        "Remark": outlook,
    }
    target = 100 * (result.spec.answers.target_width or 0.0)
    caption = f"How many more answers would narrow the intervals to {target:g} points"
    return make_table(caption, columns, result.rows("plan", design=NEW_CASES), always=tuple(columns), folded=False)


# Methods --------------------------------------------------------------------------------------------------------------


def methods(result: DisagreementResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    spec, tolerance = result.spec, result.spec.answers.tolerance
    within = f"; agree means at most {tolerance} steps apart" if tolerance else ""
    yield _method("compared", tolerance=within, paper=PAPER)
    for metric in distinct_metrics(result.gaps):
        row = METRICS[metric]
        yield Method(row.title, f"{row.formula} within each group. {row.asks}", row.reference)
    yield _method(f"bounds_{spec.bounds}", paper=PAPER)
    yield _method("gap")
    drawn = "Critics and cases are both" if spec.answers.cases == "sample" else "Critics are"
    yield _method("intervals", drawn=drawn, resamples=spec.resamples)
    if result.stakeholders:
        yield _method("kinds")
    if result.pairs:
        yield _method("pairs")
    yield _method("cannot_show")
