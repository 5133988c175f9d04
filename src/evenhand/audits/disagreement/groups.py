"""The groups of a grouping that are compared, and the answers on their cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audits.disagreement.panel import Panel
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.errors import count
from evenhand.stats.feedback import AGREE, DISAGREE, TOLERANT, Answers, Feedback
from evenhand.stats.feedback import FeedbackMetric as Notion
from evenhand.stats.types import BoolArray, IntArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table


@dataclass(frozen=True, eq=False)
class Grouping:
    """One grouping of the cases.

    Parameters
    ----------
    name : its name.
    groups : the groups that have a value, in order.
    compared : (groups,) whether the group has enough cases to be compared.
    group : (cases,) the group of each case, -1 where it is missing.
    cases, answers : (groups,) the number of each group's cases and answers.
    missing : the number of answers on cases without a group.
    """

    name: str
    groups: tuple[str, ...]
    compared: tuple[bool, ...]
    group: IntArray
    cases: IntArray
    answers: IntArray
    missing: int

    @property
    def chosen(self) -> tuple[str, ...]:
        """The groups that are compared."""
        return tuple(group for group, chosen in zip(self.groups, self.compared, strict=True) if chosen)


def find_groupings(table: Table, panel: Panel, spec: DisagreementSpec) -> list[Grouping]:
    """Return the groupings of a table, with the size of every group."""
    found = []
    for name, columns in table.groupings.items():
        code, labels = panel.groups.joint(columns)
        known = tuple(label for label in labels if label != MISSING)
        group = np.where(code < len(known), code, -1)
        cases = np.bincount(group[group >= 0], minlength=len(known))
        by_answer = group[panel.case]
        answers = np.bincount(by_answer[by_answer >= 0], minlength=len(known))
        compared = tuple(bool(n >= spec.min_count) for n in cases)
        found.append(Grouping(name, known, compared, group, cases, answers, int((by_answer < 0).sum())))
    return found


def left_out_records(panel: Panel, groupings: list[Grouping], spec: DisagreementSpec) -> Iterator[dict[str, Any]]:
    """Yield what was left out, and why."""
    whole = [
        *panel.dropped,
        (panel.unanswered, "cases that nobody answered"),
        (panel.repeated, "answers that repeat another of the same critic on the same case"),
        (panel.superseded, "answers that a later one of the same critic replaced"),
    ]
    for n, reason in whole:
        if n:
            yield {"model": None, "grouping": None, "group": None, "n": n, "reason": reason}
    for grouping in groupings:
        if grouping.missing:
            yield _record(grouping.name, MISSING, grouping.missing, "missing group: not compared")
        for group, n, cases, compared in zip(
            grouping.groups, grouping.answers, grouping.cases, grouping.compared, strict=True
        ):
            if not compared:
                reason = f"small group, {count(int(cases), 'case')}: not compared (fewer than {spec.min_count})"
                yield _record(grouping.name, group, int(n), reason)


def _record(grouping: str, group: str, n: int, reason: str) -> dict[str, Any]:
    return {"model": None, "grouping": grouping, "group": group, "n": n, "reason": reason}


@dataclass(frozen=True, eq=False)
class Voices:
    """Answers for the kernels, of all critics or of some, on the cases of a grouping.

    Parameters
    ----------
    answers : the answers; the kernels number critics and cases from 0.
    truth : the critics' own labels on the same cases, or None.
    critics : the panel's number of each critic.
    groups : the names of the groups.
    """

    answers: Answers
    truth: Answers | None
    critics: IntArray
    groups: tuple[str, ...]

    def of(self, chosen: BoolArray) -> Voices:
        """Return the voices of some of the panel's critics."""
        keep = chosen[self.critics][self.answers.critic]
        truth = None if self.truth is None else self.truth.where(keep)
        return Voices(self.answers.where(keep), truth, self.critics[chosen[self.critics]], self.groups)

    def truth_for(self, notion: Notion) -> Answers | None:
        """Return the critics' own labels; for a tolerant notion whether they are near enough to the system's."""
        if self.truth is None or notion not in TOLERANT:
            return self.truth
        feedback = Feedback(self.answers.feedback.labels, "agreement", self.answers.feedback.tolerance)
        far = np.abs(self.truth.answer - self.truth.label[self.truth.case]) > feedback.tolerance
        return replace(self.truth, answer=np.where(far, DISAGREE, AGREE), feedback=feedback)


def voices_of(panel: Panel, grouping: Grouping, *, compared: bool = True) -> Voices:
    """Return the answers on the cases of a grouping: of the groups that are compared, or of all that have a value."""
    wanted = np.array(grouping.compared, dtype=np.bool_) | (not compared)
    place = np.append(np.where(wanted, np.cumsum(wanted) - 1, -1), -1)  # the last is for the missing
    group = place[grouping.group]
    keep = group[panel.case] >= 0
    whole = Answers(
        panel.critic,
        panel.case,
        panel.answer,
        np.maximum(group, 0),
        panel.label,
        max(int(wanted.sum()), 1),
        len(panel.critics),
        panel.feedback,
        panel.weight,
    )
    truth = None
    if panel.truth is not None:
        truth = replace(whole, answer=panel.truth, feedback=Feedback(len(panel.labels.names), "label"))
    critics = np.arange(len(panel.critics))
    groups = tuple(name for name, chosen in zip(grouping.groups, wanted, strict=True) if chosen)
    if keep.all():
        return Voices(whole, truth, critics, groups)
    used = np.unique(panel.critic[keep])
    return Voices(whole.where(keep), None if truth is None else truth.where(keep), used, groups)
