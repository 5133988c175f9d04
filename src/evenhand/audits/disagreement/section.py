"""The disagreement part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.disagreement.charts import (
    MOST_GROUPS,
    agreement_panels,
    critic_panels,
    error_panel,
    gap_panels,
    rate_panels,
    stakeholder_panels,
)
from evenhand.audits.disagreement.gaps import NEW_CASES
from evenhand.audits.disagreement.methods import methods_of
from evenhand.audits.disagreement.notions import WORDS
from evenhand.audits.disagreement.stakeholders import DISAGREEMENT
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Section
from evenhand.errors import count
from evenhand.stats.feedback import INDEFINITE

if TYPE_CHECKING:
    from evenhand.audits.disagreement.records import GapRecord, StakeholderRecord
    from evenhand.audits.disagreement.result import DisagreementResult

_MOST_DIFFERENCES = 12


def disagreement_section(result: DisagreementResult) -> Section:
    """Return the section of a report for this result."""
    groupings = list(dict.fromkeys(gap.grouping for gap in result.gaps))
    parts: list[Figure | DisplayTable] = [_gap_figure(result, groupings), _meaning_table(result), _gap_table(result)]
    for grouping in groupings:
        parts += [_rate_figure(result, grouping), _rate_table(result, grouping)]
    if any(gap.stakeholder is not None and gap.critic is None for gap in result.gaps):
        parts += list(_stakeholder_parts(result, groupings))
    if result.critics:
        parts += [_critic_figure(result, grouping) for grouping in groupings if critic_panels(result, grouping)]
        parts += [_truth_table(result)] if result.truth else []
    if result.plan:
        parts.append(_plan_table(result))
    return Section(result.title, result.question, tuple(parts), tuple(methods_of(result)), result.notes)


def _percent(result: DisagreementResult) -> str:
    return f"{100 * result.spec.confidence:g}%"


def _points(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"


def _points_range(low: float | None, high: float | None) -> str:
    return DASH if low is None or high is None else f"{_points(low)} to {_points(high)}"


def _title(notion: str) -> str:
    return WORDS[notion].title


def _gap_figure(result: DisagreementResult, groupings: list[str]) -> Figure:
    open_ones = result.truth and any(gap.kind == "bounded" for gap in result.gaps if gap.critic is None)
    truth = " Dark ticks: the truth, by the critics' own labels." if open_ones else ""
    caption = (
        "The largest difference between two groups, over all labels. Points: what the answers tell exactly. Thick "
        f"bars: what they leave open; all of it is possible. Thin lines: {_percent(result)} intervals, which add that "
        f"critics and cases are samples.{truth}"
    )
    words = " ".join(f.claim for f in result.findings if f.metric != DISAGREEMENT and f.stratum is None)
    return Figure("Gaps as the critics see them", caption, words, tuple(gap_panels(result, groupings)))


def _meaning_table(result: DisagreementResult) -> DisplayTable:
    pooled = [gap for gap in result.gaps if gap.stakeholder is None and gap.critic is None]
    rows = []
    for notion in dict.fromkeys(gap.notion for gap in pooled):
        own = [gap for gap in pooled if gap.notion == notion]
        kinds = {gap.kind for gap in own if gap.kind is not None}
        rows.append((_title(notion), WORDS[notion].asks, _told(kinds, own[0])))
    columns = ("Notion", "What it asks", "What the answers tell")
    return DisplayTable("What agreeing and disagreeing can tell", columns, tuple(rows), (False,) * 3)


def _told(kinds: set[str], gap: GapRecord) -> str:
    if not kinds:
        return "nothing here: see the remarks"
    if kinds == {"bounded"}:
        words = "bounds: who disagrees does not say which label would be right"
    elif "bounded" in kinds:
        words = "bounds; exact in some groupings"
    else:
        words = "all of it" if kinds == {"definite"} else "all of it here, since nothing is left open"
    return f"{words}; its gap is that of {_title(gap.same_as).lower()}" if gap.same_as is not None else words


def _gap_table(result: DisagreementResult) -> DisplayTable:
    truth = any(gap.truth is not None for gap in result.gaps)
    rows = []
    for gap in result.gaps:
        if gap.critic is not None:
            continue
        same = f"the same number as {_title(gap.same_as).lower()}" if gap.same_as is not None else ""
        rows.append(
            (
                gap.grouping,
                gap.stakeholder or "all",
                _title(gap.notion),
                gap.kind or DASH,
                gap.label or DASH,
                gap.group_high or DASH,
                gap.group_low or DASH,
                f"{gap.n:,}",
                _points(gap.value) if gap.kind != "bounded" else _points_range(gap.lower, gap.upper),
                _points_range(gap.low, gap.high),
                *((_points(gap.truth),) if truth else ()),
                same if gap.status == "ok" else gap.status,
            )
        )
    columns = (
        "Grouping",
        "Critics",
        "Notion",
        "Known",
        "Label",
        "Higher",
        "Lower",
        "Answers",
        "Gap, points",
        f"{_percent(result)} interval",
        *(("Truth",) if truth else ()),
        "Remark",
    )
    numeric = (False,) * 7 + (True,) * (4 if truth else 3) + (False,)
    return DisplayTable("Every gap", columns, tuple(rows), numeric, folded=True)


def _rate_figure(result: DisagreementResult, grouping: str) -> Figure:
    groups = len({rate.group for rate in result.rates if rate.grouping == grouping})
    caption = "Rates of every label. Points: exact. Thick bars: what the answers leave open. Thin lines: intervals."
    if groups > MOST_GROUPS:
        caption += f" The {MOST_GROUPS} groups with the most answers of {groups} are drawn; the table has them all."
    own = [
        g for g in result.gaps if (g.grouping, g.stakeholder, g.critic) == (grouping, None, None) and g.same_as is None
    ]
    words = " ".join(
        f"{_title(gap.notion)}: {gap.group_high} above {gap.group_low} by up to {_points(gap.upper)} points."
        for gap in own
        if gap.upper is not None
    )
    return Figure(f"Rates by {grouping}", caption, words, tuple(rate_panels(result, grouping)))


def _rate_table(result: DisagreementResult, grouping: str) -> DisplayTable:
    rows = []
    for rate in result.rates:
        if rate.grouping != grouping:
            continue
        exact = rate.lower == rate.upper
        known = shown(rate.value, percent=True) if exact else shown_interval(rate.lower, rate.upper, percent=True)
        rows.append(
            (
                rate.stakeholder or "all",
                _title(rate.notion),
                rate.label or DASH,
                rate.group,
                f"{rate.n:,}",
                known,
                shown_interval(rate.low, rate.high, percent=True),
                "" if rate.status == "ok" else rate.status,
            )
        )
    columns = ("Critics", "Notion", "Label", "Group", "Answers", "Rate", f"{_percent(result)} interval", "Remark")
    numeric = (False,) * 4 + (True,) * 3 + (False,)
    return DisplayTable(f"Every rate by {grouping}", columns, tuple(rows), numeric, folded=True)


def _stakeholder_parts(result: DisagreementResult, groupings: list[str]) -> Iterator[Figure | DisplayTable]:
    words = " ".join(finding.claim for finding in result.findings if finding.metric == DISAGREEMENT)
    yield Figure(
        "How often each kind of critics agrees",
        f"The share of decisions that they agree with, by group. Lines: {_percent(result)} intervals. The kinds need "
        "not have seen the same cases; the tests below compare them on those that both saw.",
        words,
        tuple(agreement_panels(result, groupings)),
    )
    yield Figure(
        "Gaps as each kind of critics sees them",
        "Points: exact. Thick bars: what the answers leave open. Thin lines: intervals. Few critics make wide "
        "intervals and, by chance, large gaps.",
        words,
        tuple(stakeholder_panels(result, groupings)),
    )
    tested = [record for record in result.stakeholders if record.p_adjusted is not None]
    first = sorted(tested, key=lambda r: (r.p_adjusted or 0.0, -abs(r.statistic or 0.0)))[:_MOST_DIFFERENCES]
    caption = "Where two kinds of critics differ most surely, on the cases that both have seen"
    yield _difference_table(result, first, caption, folded=False)
    yield _difference_table(result, result.stakeholders, "Every comparison of two kinds of critics", folded=True)


def _difference_table(
    result: DisagreementResult,
    records: list[StakeholderRecord] | tuple[StakeholderRecord, ...],
    caption: str,
    *,
    folded: bool,
) -> DisplayTable:
    rows = []
    for r in records:
        what = "disagree with" if r.metric == DISAGREEMENT else f"gap in {_title(r.metric).lower()}"
        where = f" “{r.label}” given to {r.group}" if r.metric == DISAGREEMENT and r.label is not None else ""
        difference = DASH if r.value is None else f"{100 * r.value:+.1f}".replace("-", "−")
        interval = _points_range(r.low, r.high).replace("-", "−")
        rows.append(
            (
                r.grouping,
                r.stakeholder_a,
                r.stakeholder_b,
                what + where,
                f"{r.cases:,}",
                difference,
                interval,
                _p(r.p_value),
                _p(r.p_adjusted),
                "" if r.status == "ok" else r.status,
            )
        )
    columns = (
        "Grouping",
        "Critics",
        "Others",
        "What",
        "Shared cases",
        "Difference, points",
        f"{_percent(result)} interval",
        "p",
        "Adjusted p",
        "Remark",
    )
    return DisplayTable(caption, columns, tuple(rows), (False,) * 4 + (True,) * 5 + (False,), folded=folded)


def _p(value: float | None) -> str:
    return DASH if value is None else "below 0.001" if value < 0.001 else f"{value:.3f}"


def _critic_figure(result: DisagreementResult, grouping: str) -> Figure:
    panels = critic_panels(result, grouping)
    errors = error_panel(result, grouping)
    known = [r for r in result.critics if r.grouping == grouping and r.value is not None]
    critics = len({record.critic for record in known})
    everyone = len({record.critic for record in result.critics if record.grouping == grouping})
    caption = (
        f"The gap that each of {count(critics, 'critic')} sees, on their own answers. Points: the estimate, which is "
        "the middle of the bounds where there are any. Bands: the bounds. The fewer answers a critic gave, the more of "
        "it is chance."
    )
    if critics < everyone:
        caption += f" {everyone - critics} of {everyone:,} critics answered no case of some group and have none."
    words = " ".join(
        f"{_title(t.notion)}: the estimate is off by {_points(t.mean_error)} points on average."
        for t in result.truth
        if t.grouping == grouping and t.mean_error is not None
    )
    return Figure(
        f"Critic by critic, by {grouping}",
        caption,
        words or caption,
        (*panels, *([errors] if errors is not None else [])),
    )


def _truth_table(result: DisagreementResult) -> DisplayTable:
    rows = [
        (
            r.grouping,
            _title(r.notion),
            f"{r.critics:,}",
            _points(r.mean_error),
            _points(r.worst_error),
            shown(r.inside, percent=True),
            "" if r.status == "ok" else r.status,
        )
        for r in result.truth
        if r.notion in INDEFINITE
    ]
    columns = (
        "Grouping",
        "Notion",
        "Critics",
        "Mean absolute error, points",
        "Largest",
        "True gap within bounds",
        "Remark",
    )
    caption = "Estimates of single critics against the truth, by their own labels"
    return DisplayTable(caption, columns, tuple(rows), (False, False) + (True,) * 4 + (False,))


def _plan_table(result: DisagreementResult) -> DisplayTable:
    new = [record for record in result.plan if record.design == NEW_CASES]
    same = {(r.grouping, r.notion): r for r in result.plan if r.design != NEW_CASES}
    rows = []
    for r in new:
        other = same[r.grouping, r.notion]
        enough = "narrow enough" if r.answers == 0 else ""
        hurdle = next((record.status for record in (r, other) if record.status != "ok"), "")
        remark = enough or hurdle.removeprefix("not reachable: ")
        rows.append(
            (
                r.grouping,
                _title(r.notion),
                _points(r.width),
                *(_number(n) for n in (r.critics, r.cases, r.answers)),
                *(_number(n) for n in (other.critics, other.answers)),
                remark,
            )
        )
    columns = (
        "Grouping",
        "Notion",
        "Width now, points",
        "More critics",
        "New cases",
        "More answers",
        "Critics if cases stay",
        "Answers if cases stay",
        "Remark",
    )
    target = 100 * (result.spec.target_width or 0.0)
    caption = f"How many more answers would narrow the intervals to {target:g} points"
    return DisplayTable(caption, columns, tuple(rows), (False,) * 2 + (True,) * 6 + (False,))


def _number(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"
