"""Answers of critics on cases: what an answer says about the label that a critic has in mind; and their bootstrap.

The system gives label l, the critic thinks of a label z that nobody sees, and answers. Each pair of label and answer
leaves a set of labels open. That set is all that the bounds need to know, so every kind of feedback is one kernel.

Critics share cases and cases share critics, so answers are not independent, and neither critics nor cases alone are the
sample. Both are drawn again, independently: an answer counts as often as its critic times as often as its case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, DataError, require_at_least, require_choice
from evenhand.stats.bootstrap import Draws
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
        The number of labels K that the system may give, seen or not; numbered from 0, in order where they have one.
    kind
        'agreement': agree or disagree. 'direction': right, too high or too low, for ordered labels. 'label': the
        critic says the label itself, as in validation data; nothing is left open, and every rate is exact.
    tolerance
        A critic agrees when the two labels are at most this many steps apart; needs ordered labels.

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
                f"`labels` must be at least 2; got {self.labels}: with one label there is nothing to disagree about."
            )
        if not 0 <= self.tolerance < self.labels - 1:
            raise ConfigError(
                f"`tolerance` must be from 0 to {self.labels - 2} steps with {self.labels} labels, or nobody could "
                f"disagree; got {self.tolerance}."
            )
        if self.tolerance and self.kind == "label":
            raise ConfigError("`tolerance` has no meaning when critics say the label itself; leave it at 0.")

    @property
    def answers(self) -> int:
        """The number of possible answers: 2, 3, or one for each label."""
        return {"agreement": 2, "direction": 3, "label": self.labels}[self.kind]

    @cached_property
    def admissible(self) -> BoolArray:
        """(K, answers, K) whether the critic's label may be z when the system gave l and the critic answered f."""
        step = np.arange(self.labels) - np.arange(self.labels)[:, np.newaxis]
        if self.kind == "label":
            return np.broadcast_to(np.eye(self.labels, dtype=np.bool_), (self.labels,) * 3).copy()
        agree = np.abs(step) <= self.tolerance
        rest = (~agree,) if self.kind == "agreement" else (step < -self.tolerance, step > self.tolerance)
        return np.stack([agree, *rest], axis=1)

    @cached_property
    def possible(self) -> BoolArray:
        """(K, answers) whether the answer can be given: nothing is too high at the lowest label."""
        return np.asarray(self.admissible.any(axis=2))

    @cached_property
    def agreeing(self) -> BoolArray:
        """(K, answers) whether the answer is the one that agrees with the system."""
        if self.kind == "label":
            return np.eye(self.labels, dtype=np.bool_)
        return np.broadcast_to(np.arange(self.answers) == AGREE, (self.labels, self.answers))

    def answers_of(self, joint: ArrayLike) -> FloatArray:
        """Return the masses (..., K, answers) that critics give whose labels have the masses (..., K, K).

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
        """Return the masses as an array of floats (..., K, answers); refuse what cannot be.

        Examples
        --------
        >>> Feedback(2, "direction").check([[3, 1, 0], [2, 0, 0]])
        Traceback (most recent call last):
        evenhand.errors.DataError: answer 1 (too high) cannot be given to label 0; correct or remove such answers.
        """
        mass = np.asarray(masses, dtype=np.float64)
        if mass.shape[-2:] != (self.labels, self.answers):
            raise DataError(
                f"`masses` must have the shape (..., {self.labels} labels, {self.answers} answers); got {mass.shape}."
            )
        if not np.all(mass >= 0):
            raise DataError("`masses` must not be negative or missing; count the answers again.")
        wrong = np.argwhere((mass > 0).any(axis=tuple(range(mass.ndim - 2))) & ~self.possible)
        if wrong.size:
            label, answer = wrong[0]
            name = ("agree", "disagree") if self.kind == "agreement" else ("right", "too high", "too low")
            raise DataError(
                f"answer {answer} ({name[answer]}) cannot be given to label {label}; correct or remove such answers."
            )
        return mass


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
        answer, group, label = self.answer[keep], self.group[cases], self.label[cases]
        weight = None if self.weight is None else self.weight[keep]
        return Answers(critic, case, answer, group, label, self.groups, critics.size, self.feedback, weight)

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


# The bootstrap of critics and cases -----------------------------------------------------------------------------------


Resampled = Literal["both", "critics", "cases"]
RESAMPLED: tuple[Resampled, ...] = get_args(Resampled)
"""What is a sample: critics and cases, only critics (the cases are all there are), or only cases."""

MassStatistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""statistic(masses (..., kinds, groups, K, answers)) -> (..., T)."""

_CHUNK_NUMBERS = 4_000_000


def crossed_bootstrap(
    answers: Answers,
    statistic: MassStatistic,
    *,
    rng: Generator,
    draws: int = 2_000,
    resampled: Resampled = "both",
    kind: IntArray | None = None,
) -> Draws:
    """Return the statistics of resamples in which critics and cases are drawn again.

    In each resample critics and cases are drawn with replacement, as many as there are and independently of one
    another, and an answer has the weight (times its critic is drawn) x (times its case is drawn). The masses of all
    resamples are two matrix products: sparse answers by drawn critics, then sums over drawn cases. The variance is that
    of critics plus that of cases plus three times that of single answers; `CrossedDraws` takes the excess off.

    Parameters
    ----------
    answers
        The answers.
    statistic
        Maps masses (..., kinds, groups, K, answers) to (..., T); nan where undefined. There is one kind of critics
        unless `kind` is given.
    rng
        Source of randomness.
    draws
        Number of resamples.
    resampled
        What is drawn again: 'both', 'critics' when the cases are the whole target, or 'cases'.
    kind
        (critics,) the kind of each critic, a code from 0. Critics are then drawn within their kind, and the masses kept
        apart.

    References
    ----------
    A. B. Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1. P. McCullagh (2000), Resampling and
    exchangeable arrays, Bernoulli 6.

    Examples
    --------
    >>> from evenhand.stats.feedback.answers import Feedback
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.divmod(np.arange(600), 20)  # 30 critics, the same 20 cases
    >>> disagree = (seed.random(20)[case] < 0.3).astype(int)  # all critics think alike
    >>> one = np.zeros(20, dtype=int)
    >>> answers = Answers(critic, case, disagree, one, one, 1, 30, Feedback(2))
    >>> def share(masses): return masses[..., 0, 0, 0, 1:] / masses[..., 0, 0, 0, :].sum(axis=-1, keepdims=True)
    >>> [float(crossed_bootstrap(answers, share, rng=np.random.default_rng(1), resampled=what).stderr()[0].round(3))
    ...  for what in ("critics", "both")]
    [0.0, 0.108]
    """
    require_choice("resampled", resampled, RESAMPLED)
    require_at_least("draws", draws, 2)
    kinds = np.zeros(answers.critics, dtype=np.int64) if kind is None else kind
    with np.errstate(all="ignore"):
        estimate = statistic(answers.by(kinds, _many(kinds)))
        values = [statistic(masses) for masses in _resamples(answers, kinds, draws, resampled, rng)]
    return Draws(estimate, np.concatenate(values))


@dataclass(frozen=True)
class CrossedDraws:
    """Resamples of critics and cases at once, of critics alone and of cases alone: what each adds to the variance.

    An answer drawn with its critic and with its case has the weights' variance 1 + 1 + 1 where 1 is due. So with V, V_c
    and V_k the variances of the three bootstraps, V - V_c - V_k is the part of single answers, and V_c + V_k less that
    part the variance with every part counted once. For means this is the two-way variance of Cameron, Gelbach and
    Miller.

    Attributes
    ----------
    both, critics, cases
        The three bootstraps of the same T statistics.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011), Robust inference with multiway clustering, Journal of Business
    and Economic Statistics 29. A. B. Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1.
    """

    both: Draws
    critics: Draws
    cases: Draws

    def part(self, columns: slice) -> CrossedDraws:
        """Return the draws of some of the statistics."""
        return CrossedDraws(*(draws.part(columns) for draws in (self.both, self.critics, self.cases)))

    def map(self, function: Callable[[FloatArray], FloatArray]) -> CrossedDraws:
        """Return the draws of statistics (..., S) that are a function of these (..., T)."""
        every = (self.both, self.critics, self.cases)
        return CrossedDraws(*(Draws(function(draws.estimate), function(draws.values)) for draws in every))

    def components(self) -> FloatArray:
        """Return (3, T) the variances that critics, cases and single answers add; none is below 0."""
        both, critics, cases = (draws.stderr() ** 2 for draws in (self.both, self.critics, self.cases))
        answers = np.maximum(both - critics - cases, 0.0)
        return np.stack([np.maximum(critics - answers, 0.0), np.maximum(cases - answers, 0.0), answers])

    def stderr(self) -> FloatArray:
        """Return (T,) the standard errors."""
        return np.asarray(np.sqrt(self.components().sum(axis=0)))


def crossed_draws(
    answers: Answers, statistic: MassStatistic, *, rng: Generator, draws: int = 2_000, kind: IntArray | None = None
) -> CrossedDraws:
    """Return the three bootstraps that tell critics, cases and single answers apart; see `crossed_bootstrap`."""
    both, critics, cases = (
        crossed_bootstrap(answers, statistic, rng=rng, draws=draws, resampled=what, kind=kind) for what in RESAMPLED
    )
    return CrossedDraws(both, critics, cases)


def _many(kinds: IntArray) -> int:
    return int(kinds.max(initial=0)) + 1


def _resamples(
    answers: Answers, kinds: IntArray, draws: int, resampled: Resampled, rng: Generator
) -> Iterator[FloatArray]:
    """Yield the masses (some draws, kinds, groups, K, answers) of the resamples, as many as memory allows at once."""
    from scipy.sparse import csr_array

    order = np.argsort(answers.stratum, kind="stable")  # cases of one group and label side by side
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    present, starts = np.unique(answers.stratum[order], return_index=True)
    blocks = _many(kinds) * answers.feedback.answers
    row = (kinds[answers.critic] * answers.feedback.answers + answers.answer) * answers.cases + position[answers.case]
    weight = np.ones(row.size) if answers.weight is None else answers.weight
    matrix = csr_array((weight, (row, answers.critic)), shape=(blocks * answers.cases, answers.critics))
    for size in _chunks(draws, blocks * answers.cases + answers.critics):
        everybody = np.ones((size, answers.critics))
        drawn = everybody if resampled == "cases" else _counts_within(kinds, size, rng)
        sums = np.asarray(matrix @ drawn.T).reshape(blocks, answers.cases, size)
        if resampled != "critics":
            sums *= _counts(answers.cases, size, rng).T
        masses = np.zeros((size, _many(kinds), answers.groups * answers.feedback.labels, answers.feedback.answers))
        summed = np.add.reduceat(sums, starts, axis=1).reshape(_many(kinds), answers.feedback.answers, -1, size)
        masses[:, :, present, :] = summed.transpose(3, 0, 2, 1)
        yield masses.reshape(size, _many(kinds), *answers.shape)


def _chunks(draws: int, numbers: int) -> Iterator[int]:
    step = max(1, min(draws, _CHUNK_NUMBERS // max(numbers, 1)))
    yield from (min(step, draws - start) for start in range(0, draws, step))


def _counts(n: int, draws: int, rng: Generator) -> FloatArray:
    """Return (draws, n) how often each of n is drawn in n draws with replacement: multinomial counts."""
    picked = rng.integers(0, n, size=(draws, n)) + n * np.arange(draws)[:, np.newaxis]
    return np.bincount(picked.ravel(), minlength=draws * n).astype(np.float64).reshape(draws, n)


def _counts_within(kinds: IntArray, draws: int, rng: Generator) -> FloatArray:
    """Return (draws, critics) how often each critic is drawn, each kind of critics on its own."""
    counts = np.empty((draws, kinds.size))
    for kind in range(_many(kinds)):
        members = np.flatnonzero(kinds == kind)
        if members.size:
            counts[:, members] = _counts(members.size, draws, rng)
    return counts
