"""Families of claims: adjustment for all claims of a run.

A run has two families of claims. The first is the tested findings: their p-values are adjusted for all of them (Holm),
so the probability that any of them claims a nonexistent difference is at most alpha. A finding with a threshold is in
this family, too, because a difference is stated even if it meets a lenient limit. The second family is the verdicts:
"does not meet" is given if it holds after Holm's adjustment over all verdicts of the run. "Meets" needs no adjustment,
because it is wrong only if the one gap that violates the limit is missed (an intersection-union argument). For the
same reason, one-sided limits at alpha suffice for "meets". So a section without thresholds changes no verdict, and an
additional threshold can only turn "does not meet" into insufficient evidence. In the tables, a gap stated by a finding
has the finding's adjusted p-value and direction. For all other gaps, "worse off" is controlled by the false discovery
rate over the tables of the run.

References
----------
S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
R. L. Berger (1982), Multiparameter hypothesis testing and acceptance sampling, Technometrics 24.
Y. Benjamini and M. Bogomolov (2014), Selective inference on multiple families of hypotheses, Journal of the Royal
Statistical Society B 76.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from evenhand.core.records import Gap, Value, coordinates_of, limits_to_judge
from evenhand.core.thresholds import Threshold, Verdict, judge_all
from evenhand.messages import Message
from evenhand.messages.shared import say
from evenhand.stats.multiplicity import adjusted_in_tables, adjusted_p

if TYPE_CHECKING:
    from evenhand.core.findings import Claim, Finding

G = TypeVar("G", bound=Gap)

MOST_FINDINGS = 100.0
"""The number of findings up to which simulated p-values are precise enough for Holm's levels."""

Limits = tuple[float | None, float | None]
"""A lower and an upper limit; None for a missing side."""

Significance = Literal["directed", "significant", "not_significant", "untested"]
"""The significance of a difference in its family; "directed" also establishes which two groups differ.

A violated limit is significant.
"""


@dataclass(frozen=True)
class ClaimCheck:
    """A claim to test at the level `test_alpha` and, if it has a threshold, to judge at the level `alpha`."""

    audit: str
    claim: Claim
    threshold: Threshold | None
    alpha: float
    test_alpha: float | None = None

    @property
    def tested(self) -> float | None:
        """The p-value of equality; None if the claim is not tested or its verdict is withheld."""
        return None if self.threshold is not None and self.claim.withheld is not None else self.claim.tested

    def establishes_direction(self, level: float) -> bool:
        """Return whether the stated pair of groups differs significantly at a level."""
        if self.tested is not None and self.tested > level:
            return False
        if self.claim.named_by == "p_value":
            return True
        record = self.claim.estimates[0].at(1.0 - level)
        if not isinstance(record, Gap):
            return False
        differs = getattr(record, "differs", None)  # also if the worse-off side is unknown
        return record.worse_off is not None if differs is None else bool(differs)

    @property
    def test_key(self) -> Hashable:
        """A key shared by checks that state the outcome of the same test, such as a difference and its ratio."""
        key = self.claim.test_key
        return id(self.claim) if key is None else (self.audit, key, self.claim.tested)

    def judged(self) -> tuple[Value | Gap, Verdict]:
        """Return the record that decides the verdict, and the verdict at the audit's confidence."""
        record, verdict = self._judged_alone()
        return record, "insufficient_evidence" if verdict == "meets" and self.breaking() else verdict

    def _judged_alone(self) -> tuple[Value | Gap, Verdict]:
        """Return the deciding record and the verdict, ignoring groups that were not compared."""
        record, verdict = judge_all(self.threshold, self.claim.records)
        return record, "meets" if verdict == "insufficient_evidence" and self.one_sided() is not None else verdict

    def one_sided(self) -> Limits | None:
        """Return the one-sided limits at alpha if they meet the threshold, else None.

        A gap of either direction has both limits.
        """
        if self.threshold is None or not self.claim.one_sided:
            return None
        judged = self.judged_at(2.0 * self.alpha)
        if judged is None or judged[1] != "meets":
            return None
        low, high = judged[0].low, judged[0].high
        if isinstance(judged[0], Gap) and judged[0].against != "worst_pair":
            return low, high
        return (low, None) if self.threshold.side == "min" else (None, high)

    def breaking(self) -> tuple[Value, ...]:
        """Return the groups too small to be compared that violate a threshold met by the compared groups."""
        if self.threshold is None or self._judged_alone()[1] != "meets":
            return ()
        return self.claim.omitted.breaking(self.threshold)

    def judged_at(self, alpha: float) -> tuple[Value | Gap, Verdict] | None:
        """Return the deciding record and the verdict at a level; None if limits are known at one level only."""
        records = [record for e in self.claim.estimates if (record := e.at(1.0 - alpha)) is not None]
        return judge_all(self.threshold, records) if len(records) == len(self.claim.estimates) else None


@dataclass(frozen=True)
class Family:
    """The family of an adjusted p-value or verdict: its number of claims, and their audits."""

    size: int
    of: Literal["tested_findings", "verdicts"]
    audits: tuple[str, ...]

    @property
    def number(self) -> Message:
        """The number of claims as a message, such as '8 tested findings'."""
        return say(self.of, n=self.size)

    @property
    def message(self) -> Message:
        """The family as a message, such as '8 tested findings of parity and effort'."""
        alone = len(self.audits) == 1 and self.of == "tested_findings"
        return say("family_of_alone" if alone else "family_of", number=self.number, audits=self.audits or ("no audit",))


@dataclass(frozen=True)
class ClaimOutcome:
    """The outcome of one check.

    Parameters
    ----------
    record : the record that the finding states.
    verdict, alone : the verdict, and the verdict without adjustment for the other claims of the run.
    significance : whether the difference is significant; None if a claim with a threshold is not tested.
    p_adjusted : the p-value adjusted for the family.
    family : the family of claims that the p-value is adjusted for.
    verdict_family : the family of claims that the verdict is adjusted for.
    bounds : the one-sided limits by which the claim meets its threshold; None if two-sided limits decide.
    widened : the record with the wider limits of its family, which decide if the threshold is violated before
        adjustment; None if these limits are unknown.
    """

    record: Value | Gap
    verdict: Verdict = "no_threshold"
    alone: Verdict = "no_threshold"
    significance: Significance | None = None
    p_adjusted: float | None = None
    family: Family | None = None
    verdict_family: Family | None = None
    bounds: Limits | None = None
    widened: Value | Gap | None = None


def check_claims(checks: Sequence[ClaimCheck]) -> list[ClaimOutcome]:
    """Return the outcomes of all checks of a run, in the same order."""
    outcomes = _test(checks)
    judged = [position for position, check in enumerate(checks) if check.threshold is not None]
    verdicts = _verdicts([checks[position] for position in judged], [outcomes[position] for position in judged])
    for position, outcome in zip(judged, verdicts, strict=True):
        outcomes[position] = outcome
    return outcomes


def _test(checks: Sequence[ClaimCheck]) -> list[ClaimOutcome]:
    """Return the outcomes of the tests for a difference, adjusted by Holm over all tests."""
    p_values = {check.test_key: p for check in checks if (p := check.tested) is not None}
    adjusted = dict(zip(p_values, adjusted_p(list(p_values.values())).tolist(), strict=True))
    made = [check for check in checks if check.tested is not None]
    family = _family(len(p_values), "tested_findings", made)
    level = min((check.test_alpha or check.alpha for check in made), default=1.0)  # the strictest of its levels
    directed = {id(check) for check in _directed(made, len(p_values), level)}

    def outcome(check: ClaimCheck) -> ClaimOutcome:
        record = check.claim.records[0]
        if check.tested is None:
            return ClaimOutcome(record, significance="untested" if check.threshold is None else None)
        p = adjusted[check.test_key]
        clear: Significance = "directed" if id(check) in directed and isinstance(record, Gap) else "significant"
        return ClaimOutcome(
            record, significance=clear if p <= level else "not_significant", p_adjusted=p, family=family
        )

    return [outcome(check) for check in checks]


def _directed(checks: Sequence[ClaimCheck], tests: int, alpha: float) -> list[ClaimCheck]:
    """Return the checks that establish which two groups differ, at a level adjusted for all tests.

    The level is alpha divided by the number of open tests. A test of two groups is closed when it establishes its
    direction. A test of several pairs remains open, because its other pairs may be equal. So the probability that a
    run wrongly names any pair is at most alpha (Holm's argument, over tests that contain an equal pair).
    """
    closed: set[Hashable] = set()
    while True:
        level = alpha / max(tests - len(closed), 1)
        directed = [check for check in checks if check.test_key in closed or check.establishes_direction(level)]
        now_closed = {check.test_key for check in directed if check.claim.pairs == 1}
        if now_closed == closed:
            return directed
        closed = now_closed


def _verdicts(checks: Sequence[ClaimCheck], tests: Sequence[ClaimOutcome]) -> Iterator[ClaimOutcome]:
    """Yield tests with their verdicts: "does not meet" is adjusted by Holm, all other verdicts are not.

    A violation that is not significant after Holm's adjustment is "not confirmed".
    """
    alone = [("insufficient_evidence" if q.claim.withheld is not None else q.judged()[1]) for q in checks]
    total = sum(q.claim.withheld is None and any(map(_has_limits, q.claim.records)) for q in checks)
    broken = {position for position, verdict in enumerate(alone) if verdict == "does_not_meet"}
    confirmed = _holm(checks, broken, total)
    family = _family(total, "verdicts", checks)
    for position, (check, test, unadjusted) in enumerate(zip(checks, tests, alone, strict=True)):
        verdict: Verdict = "not_confirmed" if position in broken - confirmed.keys() else unadjusted
        others = confirmed.get(position, total - len(confirmed))
        yield replace(
            test,
            record=check.judged()[0],
            verdict=verdict,
            alone=unadjusted,
            significance=_significance_beside(verdict, check, test, total),
            verdict_family=family,
            bounds=check.one_sided() if verdict == "meets" else None,
            widened=_widened(check, others) if position in broken else None,
        )


def _significance_beside(verdict: Verdict, check: ClaimCheck, test: ClaimOutcome, verdicts: int) -> Significance | None:
    """Return the significance of a difference with a verdict; the violation of a limit is significant."""
    record = check.claim.records[0]
    if verdict != "does_not_meet" or getattr(record, "signed", False):
        return test.significance
    directed = test.significance == "directed" or check.establishes_direction(check.alpha / verdicts)
    return "directed" if directed and isinstance(record, Gap) else "significant"


def _widened(check: ClaimCheck, others: int) -> Value | Gap | None:
    """Return the record with limits at the level of Holm's step; None if limits are known at one level only."""
    judged = check.judged_at(check.alpha / others)
    return None if judged is None else judged[0]


def _holm(checks: Sequence[ClaimCheck], broken: set[int], total: int) -> dict[int, int]:
    """Return the positions of the limits violated after Holm's adjustment over all verdicts of the run.

    The values are the numbers by which alpha was divided for each limit.
    """
    confirmed: dict[int, int] = {}
    while more := [i for i in broken - confirmed.keys() if _still_broken(checks[i], total - len(confirmed))]:
        confirmed |= dict.fromkeys(more, total - len(confirmed))
    return confirmed


def _still_broken(check: ClaimCheck, others: int) -> bool:
    """Return whether a limit is violated at the level of Holm's step; False if limits are known at one level only."""
    if others <= 1:
        return True
    judged = check.judged_at(check.alpha / others)
    return judged is not None and judged[1] == "does_not_meet"


def _has_limits(record: Value | Gap) -> bool:
    return record.value is not None and limits_to_judge(record) != (None, None)


def _family(size: int, of: Literal["tested_findings", "verdicts"], checks: Sequence[ClaimCheck]) -> Family:
    return Family(size, of, tuple(dict.fromkeys(check.audit for check in checks)))


def family_sentences(findings: Iterable[Finding], gaps: Iterable[Gap], alphas: Sequence[float]) -> Iterator[Message]:
    """Yield a sentence for each family of findings, and for "worse off" in tables of gaps.

    `alphas` are the levels of the audits. Findings have the strictest level; verdicts and tables have the level of
    their audit.
    """
    strictest, share = min(alphas), max(alphas)
    families = (family for finding in findings for family in (finding.verdict_family, finding.family))
    for family in dict.fromkeys(family for family in families if family is not None):
        number = family.args["number"]
        if isinstance(number, Message) and number.args["n"] != 0:
            yield _promise(family, number, share if number.id == "core.verdicts" else strictest)
    if any(gap.worse_off is not None for gap in gaps):
        yield say("worse_off_rows", share=share)


def _promise(family: Message, number: Message, level: float) -> Message:
    """Return the sentence on a family's error rate."""
    what = "verdict" if number.id == "core.verdicts" else "finding"
    if number.args["n"] == 1:
        return say(f"one_{what}", family=say("family_of", **family.args), share=level)
    return say(f"several_{what}s", family=family, share=level, confidence=1.0 - level)


# Tables ---------------------------------------------------------------------------------------------------------------


def adjust_tables(
    tables: Sequence[Sequence[G]], alphas: Sequence[float], stated: Sequence[Sequence[G | None]] = ()
) -> list[tuple[G, ...]]:
    """Return the gaps of a run, one table per audit, with p-values adjusted over all tables and rows.

    The worse-off group that an audit proposes is kept if the adjusted p-value is at most alpha. P-values already
    adjusted by the audit are unchanged. Gaps stated by findings (`stated_gaps`) replace the gaps of the tables, and
    are not part of the family.
    """
    known = stated or [[None] * len(table) for table in tables]
    p_values = [
        [gap.p_value if gap.p_adjusted is None and own is None else None for gap, own in zip(table, owns, strict=True)]
        for table, owns in zip(tables, known, strict=True)
    ]
    adjusted = adjusted_in_tables([np.array(p, dtype=np.float64) for p in p_values])
    return [
        tuple(
            _with_adjusted_p(gap, q, alpha) if own is None else own
            for gap, own, q in zip(table, owns, by_row.tolist(), strict=True)
        )
        for table, owns, by_row, alpha in zip(tables, known, adjusted, alphas, strict=True)
    ]


def stated_gaps(
    gaps: Sequence[G], claims: Iterable[Claim], checks: Sequence[ClaimCheck], outcomes: Sequence[ClaimOutcome]
) -> list[G | None]:
    """Return the gaps of an audit's table that findings state, with the findings' adjusted p-value and direction.

    This includes other gaps of the same test, such as the ratio of a difference. The entry is None for every other
    gap, for gaps with a p-value adjusted by the audit, and for gaps with another p-value than their finding, such as a
    finding on all bins together.
    """
    found = _found(checks, outcomes)
    tested: dict[Hashable, list[ClaimOutcome]] = {}
    for claim in claims if found else ():
        record = claim.records[0]
        own = next((found[test] for test in _tests(replace(checks[0], claim=claim)) if test in found), None)
        if own is None or not isinstance(record, Gap) or record.p_adjusted is not None:
            continue
        if claim.tested == record.p_value:
            tested[_gap_key(record)] = own
    return [None if (own := tested.get(_gap_key(gap))) is None else _settled(gap, own) for gap in gaps]


def _found(checks: Sequence[ClaimCheck], outcomes: Sequence[ClaimOutcome]) -> dict[Hashable, list[ClaimOutcome]]:
    """Return the outcomes of the performed tests, by test."""
    found: dict[Hashable, list[ClaimOutcome]] = {}
    for check, outcome in zip(checks, outcomes, strict=True):
        for test in _tests(check) if outcome.p_adjusted is not None else ():
            found.setdefault(test, []).append(outcome)
    return found


def _tests(check: ClaimCheck) -> Iterator[Hashable]:
    """Yield the keys that a claim shares with other claims on the outcome of its test."""
    yield "test", check.test_key
    if check.claim.key is not None:
        yield "key", check.claim.key, check.claim.tested


def _settled(gap: G, outcomes: Sequence[ClaimOutcome]) -> G:
    """Return a gap with the adjusted p-value of its findings, and the worse-off group if they name it."""
    is_named = any(outcome.significance == "directed" for outcome in outcomes)
    return replace(gap, p_adjusted=outcomes[0].p_adjusted, worse_off=gap.worse_off if is_named else None)


def _gap_key(gap: Gap) -> Hashable:
    """Return the key of a gap; a gap between two models has the same key in both orders."""
    models = frozenset((gap.model, gap.model_reference))
    where = (gap.grouping, gap.group, gap.reference, gap.stratum, gap.metric, gap.kind, gap.against)
    return models, *where, repr(coordinates_of(gap))


def _with_adjusted_p(gap: G, adjusted: float, alpha: float) -> G:
    p = gap.p_adjusted if isnan(adjusted) else adjusted
    worse_off = gap.worse_off if p is not None and p <= alpha else None
    if (p, worse_off) == (gap.p_adjusted, gap.worse_off):
        return gap
    return replace(gap, p_adjusted=p, worse_off=worse_off)
