"""Cautions beside the statements of the front page: their limitations, and possibly missed differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.audits import REGISTRY
from evenhand.core.findings import Finding
from evenhand.core.records import limits_to_judge
from evenhand.messages import Argument
from evenhand.messages.formats import DASH
from evenhand.report.concerns import values_line
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def cautions(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield the audit's sentences on the limitations of a finding: of its metric, and of the whole audit."""
    catalogue = REGISTRY[finding.audit].messages if finding.audit in REGISTRY else None
    metric = audit.results[finding.audit].metrics[finding.metric]
    if catalogue is None:
        return
    if metric.moves_with and "moves_with" in catalogue:
        yield wording.message(catalogue("moves_with", title=metric.title, moves_with=metric.moves_with))
    if "caution" in catalogue:
        yield wording.message(catalogue("caution"))


@dataclass(frozen=True)
class Widest:
    """The gap in shares that could be the largest.

    Parameters
    ----------
    finding : the finding on the gap.
    most : the upper limit of the gap's size.
    of : the number of gaps in shares.
    """

    finding: Finding
    most: float
    of: int


def widest_gap(findings: Sequence[Finding]) -> Widest | None:
    """Return the gap in shares with the farthest limit, or None if no gap in shares has limits.

    With the confidence of a single limit, no gap is larger: if one were, the truly largest gap would be outside its
    own limits.
    """
    ends = [
        (max(abs(low or 0.0), abs(high)), finding)
        for finding in findings
        if finding.kind == "difference" and finding.style == "points"
        for low, high in [limits_to_judge(finding)]
        if high is not None and (low is not None or finding.against == "worst_pair")
    ]
    if not ends:
        return None
    most, finding = max(ends, key=lambda each: each[0])
    return Widest(finding, most, len(ends))


def could_be_missed(audit: Audit, findings: Sequence[Finding], wording: PageWording) -> Iterator[str]:
    """Yield the largest difference that could have been missed, in all gaps in shares or in the first finding."""
    widest, finding = widest_gap(findings), findings[0]
    alphas = {result.spec.finding_alpha for result in audit.results.values()}
    confidence = 1.0 - max(alphas)
    if widest is not None:
        yield wording.say(
            "none_above",
            "answer",
            n=widest.of,
            gap=widest.most,
            confidence=confidence,
            values=values_line(audit, widest.finding, wording),
            number=widest.finding.number,
        )
    elif wording.interval(finding) != DASH and not finding.is_limit:
        values = values_line(audit, finding, wording)
        one_sided = "" if (finding.bound_low, finding.bound_high) == (None, None) else "_one_sided"
        words: dict[str, Argument] = {
            "interval": wording.interval(finding),
            "confidence": confidence,
            "number": finding.number,
        }
        yield wording.say(f"interval_of_one{one_sided}", "answer", values=values, **words)
        if others := len(findings) - 1:
            yield wording.say("intervals_of_others", "answer", n=others)
