"""The agreement findings in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.audits.agreement.records import GapRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Statistic
from evenhand.core.findings import Finding, judge, size_of_gap
from evenhand.core.numbers import shown, shown_interval
from evenhand.core.spec import Threshold


def make_findings(
    statistics: Sequence[StatisticRecord],
    gaps: Sequence[GapRecord],
    known: Mapping[str, Statistic],
    spec: AgreementSpec,
) -> tuple[Finding, ...]:
    """Return a finding for the headline statistics of everybody, and for gaps: those with a limit or a headline."""
    whole = [r for r in statistics if r.grouping is None and known[r.statistic].headline]
    told = [g for g in gaps if known[g.statistic].headline or _threshold(g, spec) is not None]
    if not whole:  # others were asked for
        whole = [r for r in statistics if r.grouping is None and known[r.statistic].compared]
        told = list(gaps)
    values = {(r.grouping, r.group, r.statistic): r for r in statistics}
    return (*(_whole(r, known, spec) for r in whole), *(_gap(g, values, known, spec) for g in told))


def _threshold(gap: GapRecord, spec: AgreementSpec) -> Threshold | None:
    for threshold in spec.thresholds:
        if threshold.metric == gap.statistic and threshold.grouping in (None, gap.grouping):
            return threshold
    return None


def _whole(record: StatisticRecord, known: Mapping[str, Statistic], spec: AgreementSpec) -> Finding:
    title = known[record.statistic].title
    claim = f"{title} of the {len(spec.raters)} raters is {shown(record.value)}"
    if record.value is None:
        claim = f"{title} of the {len(spec.raters)} raters is {record.status}"
    sure = f" ({100 * spec.confidence:g}% interval {shown_interval(record.low, record.high)})"
    if record.low is None:
        sure = f" ({record.status})" if record.value is not None else ""
    return Finding(
        audit="agreement", model=None, grouping=None, stratum=None, metric=record.statistic, kind="value",
        against="raters", claim=f"{claim}.", sentence=f"{claim}{sure}; n = {record.n:,}.", unit="", value=record.value,
        low=record.low, high=record.high, n=record.n, threshold=None, verdict="no_threshold",
        caveat=known[record.statistic].caveat,
    )  # fmt: skip


def _gap(
    gap: GapRecord, values: Mapping[tuple[str | None, str, str], StatisticRecord], known: Mapping[str, Statistic],
    spec: AgreementSpec,
) -> Finding:  # fmt: skip
    title, threshold = known[gap.statistic].title, _threshold(gap, spec)
    ends = " and ".join(
        f"{shown(values[gap.grouping, group, gap.statistic].value)} for {group}" for group in (gap.group, gap.reference)
    )
    claim = f"by {gap.grouping}: {title} is {ends}"
    certainty = ""
    if gap.value is None:
        claim = f"by {gap.grouping}: the gap in {title} between {gap.group} and {gap.reference} is {gap.status}"
    elif gap.low is None or gap.high is None:
        certainty = f" ({gap.status})"
    else:
        lower = gap.group if gap.value < 0 else gap.reference
        sure = gap.low > 0 or gap.high < 0
        claim += f"; raters agree less about {lower}" if sure else "; no clear difference"
        p_value = "" if gap.p_value is None else "p < 0.001" if gap.p_value < 0.001 else f"p = {gap.p_value:.3f}"
        interval = shown_interval(gap.low, gap.high)
        certainty = f" (gap {shown(gap.value)}, {100 * spec.confidence:g}% interval {interval}; {p_value})"
    return Finding(
        audit="agreement", model=None, grouping=gap.grouping, stratum=None, metric=gap.statistic, kind="difference",
        against="reference", claim=f"{claim}.", sentence=f"{claim}{certainty}; n = {gap.n:,}.", unit="",
        value=gap.value, low=gap.low, high=gap.high, n=gap.n, threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, *size_of_gap("difference", gap.value, gap.low, gap.high)),
        caveat=known[gap.statistic].caveat,
    )  # fmt: skip
