"""Families: which claims of a run hold when all of them are considered together.

A run has two families of claims. Findings without a threshold that claim a difference have p-values adjusted for all of
them (Holm): the chance that any of them claims what is not there is at most alpha. Verdicts are the other family: "does
not meet" is said where it holds after Holm over all verdicts of the run; "meets" is held for each alone, because it is
wrong only where the one gap that breaks the limit is missed (an intersection-union argument). So a section without
thresholds changes no verdict, and one more threshold can only turn "does not meet" into insufficient evidence.

"Worse off" in the tables of gaps is said by the false discovery rate over all tables of the run.

References
----------
S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
R. L. Berger (1982), Multiparameter hypothesis testing and acceptance sampling, Technometrics 24.
Y. Benjamini and M. Bogomolov (2014), Selective inference on multiple families of hypotheses, Journal of the Royal
Statistical Society B 76.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from evenhand.core.records import Gap, Value, limits_to_judge
from evenhand.core.thresholds import Threshold, Verdict, judge_all
from evenhand.messages import Message
from evenhand.messages.shared import say
from evenhand.stats.multiplicity import adjusted_in_tables, adjusted_p

if TYPE_CHECKING:
    from evenhand.core.findings import Claim, Finding

G = TypeVar("G", bound=Gap)

Clarity = Literal["clear", "unclear", "untested"]
"""Whether a difference is beyond chance, its whole family considered; where a limit is broken it is clear."""


@dataclass(frozen=True)
class Question:
    """Something that a run asks: whether a claim stands, or whether it meets a threshold; at level alpha."""

    audit: str
    claim: Claim
    threshold: Threshold | None
    alpha: float

    def judged(self) -> tuple[Value | Gap, Verdict]:
        """Return the record that tells the verdict, and the verdict by limits at the audit's confidence."""
        return judge_all(self.threshold, self.claim.records)

    def judged_at(self, alpha: float) -> tuple[Value | Gap, Verdict] | None:
        """Return the record and the verdict by limits at this level; None where they are known at one level only."""
        records = [record for e in self.claim.estimates if (record := e.at(1.0 - alpha)) is not None]
        return judge_all(self.threshold, records) if len(records) == len(self.claim.estimates) else None


@dataclass(frozen=True)
class Family:
    """The claims that an adjusted p-value or a verdict holds for together: how many, and of which audits."""

    size: int
    of: Literal["tested_findings", "verdicts"]
    audits: tuple[str, ...]

    @property
    def number(self) -> Message:
        """How many there are, as in '8 tested findings'."""
        return say(self.of, n=self.size)

    @property
    def message(self) -> Message:
        """The family, as in '8 tested findings of parity and effort'."""
        alone = len(self.audits) == 1 and self.of == "tested_findings"
        return say("family_of_alone" if alone else "family_of", number=self.number, audits=self.audits or ("no audit",))


@dataclass(frozen=True)
class Answer:
    """What a run says to a question.

    Parameters
    ----------
    record : the record that is told.
    verdict, alone : the verdict, and what it would be without the others of the run.
    clarity : whether there is a difference beyond chance; None where nothing is claimed.
    p_adjusted : the p-value adjusted for the family.
    family : what the adjusted p-value or the verdict holds for together.
    widened : where a limit is broken by itself but not among all verdicts, the record by the wider limits of these;
        None where they are not known.
    """

    record: Value | Gap
    verdict: Verdict = "no_threshold"
    alone: Verdict = "no_threshold"
    clarity: Clarity | None = None
    p_adjusted: float | None = None
    family: Family | None = None
    widened: Value | Gap | None = None


def answer(questions: Sequence[Question]) -> list[Answer]:
    """Return what is said to all questions of a run, in their order."""
    asked = [position for position, question in enumerate(questions) if question.threshold is None]
    judged = [position for position, question in enumerate(questions) if question.threshold is not None]
    found = _findings([questions[position] for position in asked])
    ruled = _verdicts([questions[position] for position in judged])
    answers = dict(zip((*asked, *judged), (*found, *ruled), strict=True))
    return [answers[position] for position in range(len(questions))]


def _findings(questions: Sequence[Question]) -> Iterator[Answer]:
    """Yield what is said of claims without a threshold: Holm over all that were tested."""
    p_values = [question.claim.tested for question in questions]
    adjusted = adjusted_p([np.nan if p is None else p for p in p_values])
    family = _family(sum(p is not None for p in p_values), "tested_findings", questions)
    level = min((question.alpha for question in questions), default=1.0)  # a family keeps the strictest of its levels
    for question, p, own in zip(questions, adjusted, p_values, strict=True):
        record = question.claim.records[0]
        if own is None:
            yield Answer(record, clarity="untested")
        else:
            clarity: Clarity = "clear" if p <= level else "unclear"
            yield Answer(record, clarity=clarity, p_adjusted=float(p), family=family)


def _verdicts(questions: Sequence[Question]) -> Iterator[Answer]:
    """Yield the verdicts: "does not meet" by Holm over all that can be judged, the others each alone."""
    alone = [("insufficient_evidence" if q.claim.withheld is not None else q.judged()[1]) for q in questions]
    total = sum(q.claim.withheld is None and any(map(_has_limits, q.claim.records)) for q in questions)
    broken = {position for position, verdict in enumerate(alone) if verdict == "does_not_meet"}
    standing = _holm(questions, broken, total)
    family = _family(total, "verdicts", questions)
    for position, (question, own) in enumerate(zip(questions, alone, strict=True)):
        record, doubtful = question.judged()[0], position in broken - standing
        verdict: Verdict = "insufficient_evidence" if doubtful else own
        clear = verdict == "does_not_meet" and not getattr(question.claim.records[0], "signed", False)
        widened = _widened(question, total - len(standing)) if doubtful else None
        yield Answer(record, verdict, own, "clear" if clear else None, None, family, widened)


def _widened(question: Question, others: int) -> Value | Gap | None:
    """Return the record by limits at the level that Holm asks of it; None where only one level is known."""
    judged = question.judged_at(question.alpha / others)
    return None if judged is None else judged[0]


def _holm(questions: Sequence[Question], broken: set[int], total: int) -> set[int]:
    """Return the positions of the limits that are broken also when all verdicts of the run are considered together."""
    standing: set[int] = set()
    while more := {at for at in broken - standing if _still_broken(questions[at], total - len(standing))}:
        standing |= more
    return standing


def _still_broken(question: Question, others: int) -> bool:
    """Tell whether a limit is broken at the level that Holm asks of it; limits known at one level only are not."""
    if others <= 1:
        return True
    judged = question.judged_at(question.alpha / others)
    return judged is not None and judged[1] == "does_not_meet"


def _has_limits(record: Value | Gap) -> bool:
    return record.value is not None and limits_to_judge(record) != (None, None)


def _family(size: int, of: Literal["tested_findings", "verdicts"], questions: Sequence[Question]) -> Family:
    return Family(size, of, tuple(dict.fromkeys(question.audit for question in questions)))


def in_words(findings: Iterable[Finding], gaps: Iterable[Gap], alphas: Sequence[float]) -> Iterator[Message]:
    """Yield a sentence for each family among findings, and for "worse off" in tables of gaps.

    `alphas` are the levels of the audits: findings keep the strictest of them, verdicts and tables each their own.
    """
    strictest, share = min(alphas), max(alphas)
    for family in dict.fromkeys(finding.family for finding in findings if finding.family is not None):
        number = family.args["number"]
        if isinstance(number, Message) and number.args["n"] != 0:
            yield _promise(family, number, share if number.id == "core.verdicts" else strictest)
    if any(gap.worse_off is not None for gap in gaps):
        yield say("worse_off_rows", share=share)


def _promise(family: Message, number: Message, level: float) -> Message:
    """Return what a family promises, at which level."""
    what = "verdict" if number.id == "core.verdicts" else "finding"
    if number.args["n"] == 1:
        return say(f"one_{what}", family=say("family_of", **family.args), share=level)
    return say(f"several_{what}s", family=family, share=level)


# Tables ---------------------------------------------------------------------------------------------------------------


def adjust_tables(tables: Sequence[Sequence[G]], alphas: Sequence[float]) -> list[tuple[G, ...]]:
    """Return the gaps of a run, a table an audit, with p-values adjusted for all tables and rows.

    An audit proposes who would be worse off; it is said where the adjusted p-value is at most alpha, and nowhere
    without a test. A p-value that an audit has adjusted itself stays as it is.
    """
    p_values = [[gap.p_value if gap.p_adjusted is None else None for gap in table] for table in tables]
    adjusted = adjusted_in_tables([np.array(p, dtype=np.float64) for p in p_values])
    return [
        tuple(_settled_gap(gap, q, alpha) for gap, q in zip(table, by_row.tolist(), strict=True))
        for table, by_row, alpha in zip(tables, adjusted, alphas, strict=True)
    ]


def _settled_gap(gap: G, adjusted: float, alpha: float) -> G:
    p = gap.p_adjusted if isnan(adjusted) else adjusted
    worse_off = gap.worse_off if p is not None and p <= alpha else None
    if (p, worse_off) == (gap.p_adjusted, gap.worse_off):
        return gap
    return replace(gap, p_adjusted=p, worse_off=worse_off)
