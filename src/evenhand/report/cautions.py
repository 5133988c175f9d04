"""What must be said beside the statements of the front page: what they do not show, and what could have been missed."""

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
    """Yield what a finding does not show, where its audit has a sentence for that: its metric's, and that of all."""
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
    """The gap in shares that may be the largest.

    Parameters
    ----------
    finding : the finding on it.
    most : how large it may be.
    of : the number of gaps in shares.
    """

    finding: Finding
    most: float
    of: int


def widest_gap(findings: Sequence[Finding]) -> Widest | None:
    """Return the gap in shares whose limit is the farthest; None where no gap in shares has limits.

    No gap is larger with the confidence of each limit alone: only the truly largest one could be, and that would be
    outside its own limits.
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
    """Yield how large a difference may be that was not found: of all gaps in shares, else of the first number."""
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
