"""Findings: plain sentences with the number, its interval, the people behind it and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from evenhand.core.numbers import DASH
from evenhand.core.spec import Threshold

Verdict = Literal["meets", "does_not_meet", "insufficient_evidence", "no_threshold"]

SHORT_VERDICTS: dict[Verdict, str] = {
    "meets": "Meets",
    "does_not_meet": "Does not meet",
    "insufficient_evidence": "Insufficient evidence",
    "no_threshold": "",
}

VERDICT_WORDS: dict[Verdict, str] = {
    "meets": "meets the threshold",
    "does_not_meet": "does not meet the threshold",
    "insufficient_evidence": "insufficient evidence",
    "no_threshold": "no threshold set",
}


@dataclass(frozen=True)
class Finding:
    """One thing the audit found.

    Parameters
    ----------
    audit, model, grouping, stratum, metric, kind, against : what was measured (null where it does not apply).
    claim : what was found, in words, without the gap's own number.
    sentence : the whole finding in words, with number, interval and people.
    unit : 'points' for a difference of percentages, else empty.
    value, low, high : the number and its interval.
    n : the people behind it.
    threshold : the limit in words, or null.
    verdict : whether the interval lies within the limit, beyond it, or covers both.
    caveat : what the number does not show.
    """

    audit: str
    model: str | None
    grouping: str | None
    stratum: str | None
    metric: str
    kind: str
    against: str
    claim: str
    sentence: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    threshold: str | None
    verdict: Verdict
    caveat: str

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a flat record."""
        return asdict(self)


def shown_amount(finding: Finding) -> tuple[str, str]:
    """Return a finding's number and interval as they are written, in the finding's unit."""
    points = finding.unit == "points"
    scale, places = (100.0, 1) if points else (1.0, 3)
    ends = [abs(end) for end in (finding.value, finding.low, finding.high) if end is not None]
    if not points and max(ends, default=0.0) < 0.01:
        places = 4
    value, low, high = (
        None if end is None else f"{end * scale:.{places}f}" for end in (finding.value, finding.low, finding.high)
    )
    interval = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}" if high else DASH
    return f"{value} points" if points and value else value or DASH, interval


def size_of_gap(
    kind: str, value: float | None, low: float | None, high: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return a signed gap as a distance from equality: |difference|, or a ratio turned so that it is at most 1.

    Examples
    --------
    >>> size_of_gap("difference", -0.3, -0.34, -0.26)
    (0.3, 0.26, 0.34)
    >>> size_of_gap("ratio", 4.0, 2.0, None)
    (0.25, 0.0, 0.5)
    """
    if value is None or (low is None and high is None):
        return value, None, None
    lowest, highest = (-inf if low is None else low), (inf if high is None else high)
    if kind == "difference":
        return abs(value), max(lowest, -highest, 0.0), max(abs(lowest), abs(highest))
    below = [min(end, 1 / end) if end > 0 else 0.0 for end in (max(lowest, 0.0), highest)]
    turned = min(value, 1 / value) if value > 0 else 0.0
    return turned, min(below), 1.0 if lowest <= 1 <= highest else max(below)


def judge(threshold: Threshold | None, value: float | None, low: float | None, high: float | None) -> Verdict:
    """Compare an interval with a limit: wholly within, wholly beyond, or not decided by this much data.

    Examples
    --------
    >>> judge(Threshold(metric="selection_rate", min=0.8), 0.7, 0.62, 0.78)
    'does_not_meet'
    >>> judge(Threshold(metric="selection_rate", min=0.8), 0.79, 0.7, 0.9)
    'insufficient_evidence'
    """
    if threshold is None:
        return "no_threshold"
    if value is None or (low is None and high is None):
        return "insufficient_evidence"
    lowest, highest = (-inf if low is None else low), (inf if high is None else high)
    if threshold.min is not None:
        return (
            "meets"
            if lowest >= threshold.min
            else "does_not_meet"
            if highest < threshold.min
            else "insufficient_evidence"
        )
    limit = float(threshold.max or 0.0)
    return "meets" if highest <= limit else "does_not_meet" if lowest > limit else "insufficient_evidence"
