"""The reliability findings in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.audits.reliability.records import GapRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.words import CAVEATS, in_sentence
from evenhand.core.findings import Finding, judge, size_of_gap
from evenhand.core.spec import Threshold

_FIXED = "It holds for these models and these mistakes; other models or mistakes may give another gap."


def make_findings(gaps: Sequence[GapRecord], spec: ReliabilitySpec) -> tuple[Finding, ...]:
    """Return a finding for every gap averaged over noise levels."""
    return tuple(_finding(gap, spec, gaps) for gap in gaps if gap.noise_level is None)


def _threshold(gap: GapRecord, spec: ReliabilitySpec) -> Threshold | None:
    for threshold in spec.thresholds:
        fits = threshold.metric == gap.statistic and threshold.model in (None, gap.model)
        if fits and threshold.grouping in (None, gap.grouping):
            return threshold
    return None


def _finding(gap: GapRecord, spec: ReliabilitySpec, gaps: Sequence[GapRecord]) -> Finding:
    threshold = _threshold(gap, spec)
    claim = f"{gap.model}, by {gap.grouping}, noise {gap.setting}: {_claim(gap, _range(gap, gaps))}"
    return Finding(
        audit="reliability", model=gap.model, grouping=gap.grouping, stratum=None, metric=gap.statistic,
        kind="difference", against="reference", claim=f"{claim}.", sentence=f"{claim}{_certainty(gap, spec)}.", unit="",
        value=gap.value, low=gap.low, high=gap.high, n=gap.n, threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, *size_of_gap("difference", gap.value, gap.low, gap.high)),
        caveat=f"{CAVEATS[gap.statistic]} {_FIXED}",
    )  # fmt: skip


def _claim(gap: GapRecord, levels: str) -> str:
    name = in_sentence(gap.statistic)
    if gap.value is None:
        return f"the gap in {name} between {gap.group} and {gap.reference} is {gap.status}"
    lower, higher = (gap.group, gap.reference) if gap.value < 0 else (gap.reference, gap.group)
    amount = f"{name} is {decimals(abs(gap.value))} lower for {lower} than for {higher} on average over {levels}"
    if gap.low is None or gap.high is None:
        return f"{amount}; no resample differs"
    if gap.low <= 0 <= gap.high:
        return f"no clear difference; {amount}"
    return f"mistakes hurt {lower} more; {amount}"


def decimals(value: float) -> str:
    """Return a small difference with enough places to be seen.

    Examples
    --------
    >>> decimals(0.0363), decimals(-0.00051)
    ('0.036', '-0.0005')
    """
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.4f}"


def _range(gap: GapRecord, gaps: Sequence[GapRecord]) -> str:
    """Return the noise levels that a mean is over, in words."""
    place = (gap.model, gap.setting, gap.grouping, gap.group, gap.statistic)
    levels = [
        record.noise_level
        for record in gaps
        if record.noise_level is not None
        and (record.model, record.setting, record.grouping, record.group, record.statistic) == place
    ]
    if len(levels) == 1:
        return f"the noise level {levels[0]:g}"
    return f"{len(levels)} noise levels from {levels[0]:g} to {levels[-1]:g}"


def _certainty(gap: GapRecord, spec: ReliabilitySpec) -> str:
    if gap.value is None or gap.low is None or gap.high is None:
        return f"; n = {gap.n:,}"
    p_value = "" if gap.p_value is None else "; p < 0.001" if gap.p_value < 0.001 else f"; p = {gap.p_value:.3f}"
    return (
        f" ({gap.group} less {gap.reference}: {100 * spec.confidence:g}% interval {decimals(gap.low)} to "
        f"{decimals(gap.high)}{p_value}); n = {gap.n:,}"
    )
