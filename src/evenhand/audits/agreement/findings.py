"""The agreement findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from evenhand.audits.agreement.records import GapRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Statistic
from evenhand.core.compared import Compared
from evenhand.core.findings import Finding, judge, size_of_gap
from evenhand.core.numbers import shown, shown_interval
from evenhand.core.spec import Threshold

SAME = 1e-12
"""Values that differ by less are the same but for rounding."""


@dataclass(frozen=True)
class _Telling:
    """What the sentences need: values of groups, statistics, settings, groups by grouping, gaps that are tested."""

    values: Mapping[tuple[str | None, str, str], StatisticRecord]
    known: Mapping[str, Statistic]
    spec: AgreementSpec
    groups: Mapping[str, int]
    tests: int


def make_findings(
    statistics: Sequence[StatisticRecord],
    gaps: Sequence[GapRecord],
    groupings: Sequence[Compared],
    known: Mapping[str, Statistic],
    spec: AgreementSpec,
) -> tuple[Finding, ...]:
    """Return findings: what the raters reach on the whole, every threshold, and the other gaps that are tested.

    Between two groups the worst pair is the gap to the reference group, and told once.
    """
    whole = [r for r in statistics if r.grouping is None]
    asked = [r for r in whole if known[r.statistic].headline or spec.statistics is not None]
    values = {(r.grouping, r.group, r.statistic): r for r in statistics}
    groups = {grouping.name: len(grouping.groups) for grouping in groupings}
    two = {name for name, size in groups.items() if size == 2}
    once = [gap for gap in gaps if gap.against == "reference" or gap.grouping not in two]
    told = [gap for gap in once if gap.statistic in {r.statistic for r in asked}]
    telling = _Telling(values, known, spec, groups, sum(gap.p_adjusted is not None for gap in told))
    findings = [_whole(record, telling) for record in asked or whole]
    judged: set[tuple[str, str, str]] = set()
    for threshold in spec.thresholds:
        findings += _judged(threshold, gaps, groupings, telling)
        places = [g.name for g in groupings if threshold.grouping in (None, g.name)]
        judged |= {(place, threshold.metric, "reference" if place in two else threshold.against) for place in places}
    rest = [gap for gap in told if (gap.grouping, gap.statistic, gap.against) not in judged]
    return (*findings, *(_gap(gap, None, telling) for gap in rest))


def _judged(
    threshold: Threshold, gaps: Sequence[GapRecord], groupings: Sequence[Compared], telling: _Telling
) -> Iterator[Finding]:
    """Yield the findings of one threshold: at least one for every grouping that it limits."""
    for grouping in groupings:
        if threshold.grouping not in (None, grouping.name):
            continue
        wanted = (grouping.name, threshold.metric, threshold.against)
        own = [gap for gap in gaps if (gap.grouping, gap.statistic, gap.against) == wanted]
        yield from (_gap(gap, threshold, telling) for gap in own)
        if not own:
            title = telling.known[threshold.metric].title
            claim = (
                f"By {grouping.name}: fewer than two groups have {telling.spec.min_count} people or more, so that no "
                f"gap in {title} can be tested."
            )
            where = (grouping.name, sum(grouping.sizes))
            yield _finding(None, threshold, threshold.metric, where, claim, claim, telling)


def _whole(record: StatisticRecord, telling: _Telling) -> Finding:
    spec, title = telling.spec, telling.known[record.statistic].title
    claim = f"{title} of the {len(spec.raters)} raters is {shown(record.value)}"
    if record.value is None:
        claim = f"{title} of the {len(spec.raters)} raters is {record.status}"
    sure = f" ({100 * spec.confidence:g}% interval {shown_interval(record.low, record.high)})"
    if record.low is None:
        sure = f" ({record.status})" if record.value is not None else ""
    return Finding(
        audit="agreement",
        model=None,
        grouping=None,
        stratum=None,
        metric=record.statistic,
        kind="value",
        against="raters",
        claim=f"{claim}.",
        sentence=f"{claim}{sure}; n = {record.n:,}.",
        unit="",
        value=record.value,
        low=record.low,
        high=record.high,
        n=record.n,
        threshold=None,
        verdict="no_threshold",
        caveat=telling.known[record.statistic].caveat,
    )


def _gap(gap: GapRecord, threshold: Threshold | None, telling: _Telling) -> Finding:
    claim = f"By {gap.grouping}: {_ends(gap, telling)}{_direction(gap, threshold, telling)}"
    certainty = "" if gap.value is None else f" ({_certainty(gap, threshold, telling)})"
    sentence = f"{claim}{certainty}; n = {gap.n:,}."
    return _finding(gap, threshold, gap.statistic, (gap.grouping, gap.n), f"{claim}.", sentence, telling)


def _ends(gap: GapRecord, telling: _Telling) -> str:
    """Say what the statistic is in the two groups."""
    title = telling.known[gap.statistic].title
    if gap.value is None:
        return f"the gap in {title} between {gap.group} and {gap.reference} is {gap.status}"
    own, base = (shown(telling.values[gap.grouping, g, gap.statistic].value) for g in (gap.group, gap.reference))
    if abs(gap.value) <= SAME:
        return f"{title} is the same for {gap.group} and {gap.reference}, {own}"
    if gap.against == "worst_pair":
        some = "of the groups that can be tested, " if gap.status.startswith("unbounded above") else ""
        return f"{some}{title} is highest for {gap.group}, {own}, and lowest for {gap.reference}, {base}"
    return f"{title} is {own} for {gap.group} and {base} for {gap.reference}"


def surely(gap: GapRecord, spec: AgreementSpec) -> bool:
    """Return whether a gap is beyond chance, all that are tested together considered."""
    return gap.p_adjusted is not None and gap.p_adjusted < 1.0 - spec.confidence


def _direction(gap: GapRecord, threshold: Threshold | None, telling: _Telling) -> str:
    """Say what the gap means: less agreement where the statistic is nothing else, else no more than lower."""
    if gap.value is None:
        return ""
    if gap.p_value is None:
        return f"; not tested, as {gap.status.partition(': ')[2]}"
    if abs(gap.value) <= SAME:
        return ""
    if not surely(gap, telling.spec):
        return "" if threshold is not None else "; no clear difference"
    statistic = telling.known[gap.statistic]
    lower, higher = (gap.group, gap.reference) if gap.value < 0 else (gap.reference, gap.group)
    if statistic.direct:
        return f"; raters agree less about {lower} than about {higher}"
    return f"; it is lower for {lower}, which can come from {statistic.elsewhere} and need not mean less agreement"


def _certainty(gap: GapRecord, threshold: Threshold | None, telling: _Telling) -> str:
    """Return the gap with the interval that the finding rests on, and the p-value."""
    joint = threshold is not None or gap.against == "worst_pair"
    low, high = (gap.all_low, gap.all_high) if joint else (gap.low, gap.high)
    parts = f"gap {_amount(gap.value or 0.0)}"
    if low is not None or high is not None:
        groups = telling.groups[gap.grouping]
        what = f"{comb(groups, 2)} pairs" if gap.against == "worst_pair" else f"{groups - 1} groups"
        jointly = f" for all {what} together" if joint and groups > 2 else ""
        parts += f", {100 * telling.spec.confidence:g}% interval {shown_interval(low, high)}{jointly}"
    if gap.p_adjusted is None:
        return parts
    p = "p < 0.001" if gap.p_adjusted < 0.001 else f"p = {gap.p_adjusted:.3f}"
    return f"{parts}; {p}{f' adjusted for {telling.tests} tests' if telling.tests > 1 else ''}"


def _amount(value: float) -> str:
    """Return a gap to three places, or four where it is small; never as a 0 that it is not."""
    if SAME < abs(value) < 5e-5:
        return "of less than 0.0001"
    return "0" if abs(value) <= SAME else f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.4f}"


def _finding(
    gap: GapRecord | None,
    threshold: Threshold | None,
    metric: str,
    where: tuple[str, int],
    claim: str,
    sentence: str,
    telling: _Telling,
) -> Finding:
    value = low = high = None
    against: str = "worst_pair" if threshold is None else threshold.against
    if gap is not None:
        value, low, high, against = gap.value, gap.low, gap.high, gap.against
        if threshold is not None:  # a verdict is for all groups together
            low, high = gap.all_low, gap.all_high
    return Finding(
        audit="agreement",
        model=None,
        grouping=where[0],
        stratum=None,
        metric=metric,
        kind="difference",
        against=against,
        claim=claim,
        sentence=sentence,
        unit="",
        value=value,
        low=low,
        high=high,
        n=where[1],
        threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, *size_of_gap("difference", value, low, high)),
        caveat=telling.known[metric].caveat,
    )
