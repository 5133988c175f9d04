"""Answers of critics on cases as integer codes, and their reduction to masses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.errors import DataError
from evenhand.stats.feedback.kinds import Feedback
from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of critics on cases. Group and label belong to the case, the answer to critic and case.

    Attributes
    ----------
    critic, case, answer
        (n,) who answered, on what, and what: codes from 0. A critic answers a case once at most.
    group, label
        (cases,) the group of each case and the label that the system gave it: codes from 0.
    groups, critics
        How many groups and critics there are, with or without answers.
    feedback
        The kind of feedback.
    weight
        (n,) the weight of each answer; 1 by default.

    Examples
    --------
    >>> answers = Answers(
    ...     critic=np.array([0, 0, 1, 1]), case=np.array([0, 1, 1, 2]), answer=np.array([0, 1, 0, 0]),
    ...     group=np.array([0, 1, 1]), label=np.array([0, 1, 0]), groups=2, critics=2, feedback=Feedback(2),
    ... )
    >>> answers.masses()[1]  # the second group: one agrees and one disagrees with label 1, one agrees with label 0
    array([[1., 0.],
           [1., 1.]])
    """

    critic: IntArray
    case: IntArray
    answer: IntArray
    group: IntArray
    label: IntArray
    groups: int
    critics: int
    feedback: Feedback
    weight: FloatArray | None = None

    def __post_init__(self) -> None:
        if not self.critic.shape == self.case.shape == self.answer.shape or self.critic.ndim != 1:
            raise DataError("`critic`, `case` and `answer` must have one entry for each answer.")
        if self.group.shape != self.label.shape or self.group.ndim != 1:
            raise DataError("`group` and `label` must have one entry for each case.")
        if self.weight is not None and (self.weight.shape != self.critic.shape or not np.all(self.weight >= 0)):
            raise DataError("`weight` must have one number of at least 0 for each answer.")
        _in_range("critic", self.critic, self.critics)
        _in_range("case", self.case, self.cases)
        _in_range("answer", self.answer, self.feedback.answers)
        _in_range("group", self.group, self.groups)
        _in_range("label", self.label, self.feedback.labels)

    @property
    def cases(self) -> int:
        """The number of cases, with or without answers."""
        return len(self.group)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of groups, labels and answers: the shape of the masses."""
        return self.groups, self.feedback.labels, self.feedback.answers

    @cached_property
    def stratum(self) -> IntArray:
        """(cases,) the group and label of each case as one code."""
        return self.group * self.feedback.labels + self.label

    @cached_property
    def cell(self) -> IntArray:
        """(n,) the group, label and answer of each answer as one code."""
        return self.stratum[self.case] * self.feedback.answers + self.answer

    def where(self, keep: BoolArray) -> Answers:
        """Return some of the answers; critics and cases without any are left out, and the others numbered anew.

        Parameters
        ----------
        keep
            (n,) which answers to keep.
        """
        critics, critic = np.unique(self.critic[keep], return_inverse=True)
        cases, case = np.unique(self.case[keep], return_inverse=True)
        return Answers(
            critic,
            case,
            self.answer[keep],
            self.group[cases],
            self.label[cases],
            self.groups,
            critics.size,
            self.feedback,
            None if self.weight is None else self.weight[keep],
        )

    def masses(self) -> FloatArray:
        """Return (groups, K, answers) the number, or weight, of the answers of each kind."""
        return np.asarray(self._sums(self.cell, 1)[0])

    def by_critic(self) -> FloatArray:
        """Return (critics, groups, K, answers) the masses of every critic."""
        return self.by(np.arange(self.critics), self.critics)

    def by(self, kind: IntArray, kinds: int) -> FloatArray:
        """Return (kinds, groups, K, answers) the masses of every kind of critic, as stakeholders.

        Parameters
        ----------
        kind
            (critics,) the kind of each critic, a code from 0.
        kinds
            How many kinds there are.
        """
        size = int(np.prod(self.shape))
        return self._sums(kind[self.critic] * size + self.cell, kinds)

    def _sums(self, code: IntArray, many: int) -> FloatArray:
        counts = np.bincount(code, weights=self.weight, minlength=many * int(np.prod(self.shape)))
        return counts.astype(np.float64).reshape(many, *self.shape)


def _in_range(name: str, codes: IntArray, size: int) -> None:
    if codes.size and not (codes.min() >= 0 and codes.max() < size):
        bad = codes[(codes < 0) | (codes >= size)][0]
        raise DataError(f"`{name}` must be codes from 0 to {size - 1}; got {bad}.")
