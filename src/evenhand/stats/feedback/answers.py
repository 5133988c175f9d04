"""Critics' answers on cases, and the critic labels that are compatible with each answer.

The system gives label l, the critic has an unobserved label z in mind, and answers. Each pair of label and answer is
compatible with a set of labels z. The bounds depend only on that set, so one kernel serves every kind of feedback.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, DataError, require_choice
from evenhand.stats.types import BoolArray, FloatArray, IntArray

FeedbackKind = Literal["agreement", "direction", "label"]
FEEDBACK_KINDS: tuple[FeedbackKind, ...] = ("agreement", "direction", "label")

AGREE, DISAGREE = 0, 1
"""The codes of the answers in agreement feedback."""
RIGHT, TOO_HIGH, TOO_LOW = 0, 1, 2
"""The codes of the answers in feedback with a direction."""


@dataclass(frozen=True)
class Feedback:
    """The kind of feedback on a system with K labels.

    Attributes
    ----------
    labels
        The number of labels K that the system may give, observed or not; numbered from 0, in order if they have one.
    kind
        'agreement': agree or disagree. 'direction': right, too high or too low, for ordered labels. 'label': the critic
        names the label, as in validation data; nothing is left open, and every rate is exact.
    tolerance
        A critic agrees if the two labels are at most this many steps apart; needs ordered labels.

    Examples
    --------
    >>> Feedback(3).admissible[1].astype(int)  # the system said 1: agree leaves {1} open, disagree {0, 2}
    array([[0, 1, 0],
           [1, 0, 1]])
    >>> Feedback(3, "direction").admissible[1].astype(int)  # right {1}, too high {0}, too low {2}
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 1]])
    """

    labels: int
    kind: FeedbackKind = "agreement"
    tolerance: int = 0

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, FEEDBACK_KINDS)
        if self.labels < 2:
            raise ConfigError(
                "`labels` must be at least 2; got {labels}: with one label there is nothing to disagree about.",
                labels=self.labels,
            )
        if not 0 <= self.tolerance < self.labels - 1:
            raise ConfigError(
                "`tolerance` must be from 0 to {value} steps with {labels} labels, or nobody could disagree; "
                "got {tolerance}.",
                value=self.labels - 2,
                labels=self.labels,
                tolerance=self.tolerance,
            )
        if self.tolerance and self.kind == "label":
            raise ConfigError("`tolerance` has no meaning when critics say the label itself; leave it at 0.")

    @property
    def answers(self) -> int:
        """The number of possible answers: 2, 3, or one for each label."""
        return {"agreement": 2, "direction": 3, "label": self.labels}[self.kind]

    @cached_property
    def admissible(self) -> BoolArray:
        """(K, answers, K) mask: whether the critic's label may be z after answer f to system label l."""
        step = np.arange(self.labels) - np.arange(self.labels)[:, np.newaxis]
        if self.kind == "label":
            return np.broadcast_to(np.eye(self.labels, dtype=np.bool_), (self.labels,) * 3).copy()
        agree = np.abs(step) <= self.tolerance
        disagreements = (~agree,) if self.kind == "agreement" else (step < -self.tolerance, step > self.tolerance)
        return np.stack([agree, *disagreements], axis=1)

    @cached_property
    def possible(self) -> BoolArray:
        """(K, answers) mask of possible answers; for example, "too high" is impossible at the lowest label."""
        return np.asarray(self.admissible.any(axis=2))

    @cached_property
    def agreeing(self) -> BoolArray:
        """(K, answers) mask of answers that agree with the system."""
        if self.kind == "label":
            return np.eye(self.labels, dtype=np.bool_)
        return np.broadcast_to(np.arange(self.answers) == AGREE, (self.labels, self.answers))

    def answers_of(self, joint: ArrayLike) -> FloatArray:
        """Return the masses (..., K, answers) of the answers that critics with these labels give.

        Parameters
        ----------
        joint
            (..., K, K) the mass of each pair of the system's label and the critic's.

        Examples
        --------
        >>> Feedback(3, "direction").answers_of([[4, 1, 0], [2, 5, 0], [1, 1, 3]])
        array([[4., 0., 1.],
               [5., 2., 0.],
               [3., 2., 0.]])
        """
        mass = np.asarray(joint, dtype=np.float64)
        return np.asarray(np.einsum("...lz,lfz->...lf", mass, self.admissible.astype(np.float64)))

    def check(self, masses: ArrayLike) -> FloatArray:
        """Return the masses as a float array (..., K, answers); raise if they are impossible.

        Examples
        --------
        >>> Feedback(2, "direction").check([[3, 1, 0], [2, 0, 0]])
        Traceback (most recent call last):
        evenhand.errors.DataError: answer 1 (too high) cannot be given to label 0; correct or remove such answers.
        """
        mass = np.asarray(masses, dtype=np.float64)
        if mass.shape[-2:] != (self.labels, self.answers):
            raise DataError(
                "`masses` must have the shape (..., {labels} labels, {answers} answers); got {shape}.",
                labels=self.labels,
                answers=self.answers,
                shape=mass.shape,
            )
        if not np.all(mass >= 0):
            raise DataError("`masses` must not be negative or missing; count the answers again.")
        wrong = np.argwhere((mass > 0).any(axis=tuple(range(mass.ndim - 2))) & ~self.possible)
        if wrong.size:
            label, answer = wrong[0]
            name = ("agree", "disagree") if self.kind == "agreement" else ("right", "too high", "too low")
            raise DataError(
                "answer {answer} ({name}) cannot be given to label {label}; correct or remove such answers.",
                answer=answer,
                name=name[answer],
                label=label,
            )
        return mass


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """Critics' answers on cases; group and label belong to the case, the answer to critic and case.

    Attributes
    ----------
    critic, case, answer
        (n,) codes from 0. A critic answers a case at most once.
    group, label
        (cases,) the group of each case and the label that the system gave it: codes from 0.
    groups, critics
        The numbers of groups and critics, with or without answers.
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
        return self.stratum.take(self.case) * self.feedback.answers + self.answer

    @cached_property
    def counted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (critics, groups, K) whether a critic answered, and the numbers of cases and of answers per cell.

        Answers of weight 0 do not count; all others count once.
        """
        cells, shape = self.groups * self.feedback.labels, (self.groups, self.feedback.labels)
        keep = slice(None) if self.weight is None else self.weight > 0
        critic, case, cell = self.critic[keep], self.case[keep], self.cell[keep]
        answered = np.bincount(critic * cells + cell // self.feedback.answers, minlength=self.critics * cells) > 0
        by_case = np.bincount(self.stratum[numbered(case, self.cases)[0]], minlength=cells)
        masses = np.bincount(cell, minlength=cells * self.feedback.answers)
        by_critic = answered.reshape(self.critics, *shape).astype(np.float64)
        return by_critic, by_case.reshape(shape).astype(np.float64), masses.reshape(self.shape).astype(np.float64)

    def where(self, keep: BoolArray) -> Answers:
        """Return the answers where `keep` is True, with the remaining critics and cases renumbered.

        Parameters
        ----------
        keep
            (n,) mask of the answers to keep. Critics and cases without answers are dropped.
        """
        critics, critic = numbered(self.critic[keep], self.critics)
        cases, case = numbered(self.case[keep], self.cases)
        answer, weight = self.answer[keep], None if self.weight is None else self.weight[keep]
        group, label, size = self.group[cases], self.label[cases], critics.size
        return replace(
            self, critic=critic, critics=size, case=case, group=group, label=label, answer=answer, weight=weight
        )

    def masses(self) -> FloatArray:
        """Return (groups, K, answers) the number, or total weight, of the answers."""
        return np.asarray(self._sums(self.cell, 1)[0])

    def by_critic(self) -> FloatArray:
        """Return (critics, groups, K, answers) the masses of every critic."""
        return self.by(np.arange(self.critics), self.critics)

    def by(self, kind: IntArray, kinds: int) -> FloatArray:
        """Return (kinds, groups, K, answers) the masses of each kind of critics, such as stakeholders.

        Parameters
        ----------
        kind
            (critics,) the kind of each critic, a code from 0.
        kinds
            The number of kinds.
        """
        size = int(np.prod(self.shape))
        return self._sums(kind.take(self.critic) * size + self.cell, kinds)

    def _sums(self, code: IntArray, kinds: int) -> FloatArray:
        counts = np.bincount(code, weights=self.weight, minlength=kinds * int(np.prod(self.shape)))
        return counts.astype(np.float64).reshape(kinds, *self.shape)


def numbered(codes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the used codes, in order, and the codes renumbered without the unused ones.

    Examples
    --------
    >>> numbered(np.array([4, 1, 4]), 6)
    (array([1, 4]), array([1, 0, 1]))
    """
    seen: BoolArray = np.bincount(codes, minlength=size) > 0
    return np.flatnonzero(seen), codes if seen.all() else (np.cumsum(seen) - 1).take(codes)


def _in_range(name: str, codes: IntArray, size: int) -> None:
    if codes.size and not (codes.min() >= 0 and codes.max() < size):
        bad = codes[(codes < 0) | (codes >= size)][0]
        raise DataError("`{name}` must be codes from 0 to {value}; got {bad}.", name=name, value=size - 1, bad=bad)
