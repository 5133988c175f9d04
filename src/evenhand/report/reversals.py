"""Gaps that reverse their direction within strata, as at Berkeley."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED
from evenhand.messages.formats import show
from evenhand.report.concerns import values_line
from evenhand.report.frequencies import GroupValues, group_values, told_values
from evenhand.report.front import is_established
from evenhand.report.leave_one_out import strata_of, without_each
from evenhand.report.wording import PageWording
from evenhand.table.roles import TIMES

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


@dataclass(frozen=True)
class Reversal:
    """A gap that reverses its direction within strata.

    Parameters
    ----------
    finding : the pooled gap.
    sentence : a sentence with the pooled and the standardised values.
    factor : the name of the stratifying factor.
    adjusted : the standardised gap between the same two groups.
    """

    finding: Finding
    sentence: str
    factor: str
    adjusted: float | None = None

    def tells(self, other: Finding | None) -> bool:
        """Return whether another finding is about the same model, grouping and metric."""
        own = self.finding
        place = (own.model, own.grouping, own.metric)
        return other is not None and (other.model, other.grouping, other.metric) == place


def reversal_of(audit: Audit, wording: PageWording) -> Reversal | None:
    """Return the largest established gap with a standardised gap of opposite sign, or None."""
    for finding in sorted(_pooled_findings(audit), key=lambda finding: -abs(finding.value or 0.0)):
        crude, adjusted = group_values(audit, finding), group_values(audit, finding, STANDARDISED)
        if crude is not None and adjusted is not None and _points_the_other_way(crude, adjusted):
            return _told(audit, finding, adjusted, wording)
    return None


def _pooled_findings(audit: Audit) -> list[Finding]:
    """Return the established findings on pooled gaps of audits that also compare within strata."""
    stratified = {name for name, result in audit.results.items() if getattr(result.spec, "within", ())}
    pooled = (finding for finding in audit.findings if finding.audit in stratified and finding.stratum is None)
    return [finding for finding in pooled if finding.significance == "directed"]


def _points_the_other_way(crude: GroupValues, adjusted: GroupValues) -> bool:
    """Return whether the pair of the pooled gap has the opposite order after standardisation."""
    before, after = (pair_difference(groups, crude.pair) for groups in (crude, adjusted))
    return before is not None and after is not None and before * after < 0


def pair_difference(groups: GroupValues, pair: tuple[str, ...]) -> float | None:
    """Return the value of a pair's first group minus the value of its second, or None if a value is unknown."""
    values = {value.group: value.value or 0.0 for value in groups.values}
    if len(pair) < 2 or not set(pair) <= values.keys():
        return None
    return values[pair[0]] - values[pair[1]]


def _told(audit: Audit, finding: Finding, adjusted: GroupValues, wording: PageWording) -> Reversal:
    factor = TIMES.join(getattr(audit.results[finding.audit].spec, "within", ()))
    shown = [value for value in adjusted.values if value.group in (finding.group, finding.reference)]
    groups = told_values(adjusted, wording, shown)
    people = [sum(value.n for value in each.values) for each in (adjusted, group_values(audit, finding) or adjusted)]
    part = "_part" if people[0] < people[1] else ""
    words = {"n": people[0], "people": people[1]} if part else {}
    standardised = wording.say(f"standardised{part}", "answer", factor=factor, groups=groups, **words)
    pooled = values_line(audit, finding, wording)
    known = any(is_established(f) and _is_within(f, finding) for f in audit.findings)
    key = "reversed" if known else "reversed_unsure"
    sentence = wording.say(key, "answer", pooled=pooled, standardised=standardised, factor=factor)
    whole = " ".join([sentence, *_without_one(audit, finding, adjusted, factor, wording)])
    return Reversal(finding, whole, factor, pair_difference(adjusted, adjusted.pair))


def _is_within(other: Finding, finding: Finding) -> bool:
    """Return whether a finding is about the standardised version of another finding's gap."""
    place = attrgetter("model", "grouping", "metric")
    return other.stratum == STANDARDISED and place(other) == place(finding)


def _without_one(
    audit: Audit, finding: Finding, adjusted: GroupValues, factor: str, wording: PageWording
) -> Iterator[str]:
    """Yield a sentence on the gap that remains without the most influential stratum.

    The sentence says whether this stratum causes most of the gap within strata (less than half remains) or all of it
    (nothing remains, or the order changes).
    """
    within, style = pair_difference(adjusted, adjusted.pair) or 0.0, adjusted.metric.style("difference")
    left = [
        ((pair_difference(values, adjusted.pair) or 0.0) / within, name)
        for name, values in without_each(strata_of(audit, finding, adjusted), adjusted)
    ]
    if not left:
        return
    share, name = min(left)
    amount = wording.number(show(abs(share * within), style))
    amount = wording.say("points", amount=amount) if style == "points" else amount
    key = "stands" if share >= _HALF else "mostly" if share >= 0 else "by_one"
    yield wording.say(f"reversed_{key}", "answer", factor=factor, stratum=name, amount=amount)


_HALF = 0.5
