"""Individual fairness in the critics' eyes, from pairs of similar cases judged by one critic.

A pair (i, j) of similar cases has the system's labels y_i and y_j; the critic has labels z_i and z_j in mind. The two
are *treated alike* if y_i = y_j, and *held alike* if z_i = z_j. The system treats them unfairly, in this critic's eyes,
if only one of these holds: held alike but treated apart, or held apart but treated alike. An answer leaves a set of
labels open for z (`Feedback.admissible`); if two sets have no common label, the critic certainly holds the cases apart;
if both contain only the same label, the critic certainly holds them alike; otherwise either is possible.

An answer is *split* if the critic agrees with only one of the two labels. With two labels, a pair is split exactly if
it is unfair: if a critic agrees with both labels or with neither, z_i = z_j exactly if y_i = y_j; if the critic agrees
with only one label, exactly one of the two labels changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from evenhand.errors import DataError, EvenhandError
from evenhand.stats.feedback.answers import Answers
from evenhand.stats.intervals import logit_t, tail_share
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MOST_PAIRS = 20_000_000
SPLIT, APART, ALIKE = "split_answers", "held_alike_treated_apart", "held_apart_treated_alike"
PAIR_METRICS = (SPLIT, APART, ALIKE)
"""Shares of similar pairs: split answers; treated apart though held alike; treated alike though held apart."""


class PairShare(NamedTuple):
    """Bounds of a share of pairs, and confidence limits for any value between them; nan if undefined."""

    lower: float
    upper: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LikePairs:
    """Pairs of similar cases judged by one critic.

    Attributes
    ----------
    critic, first, second
        (P,) the critic, and the two cases, the first with the smaller code.
    weight
        (P,) the product of the weights of the two answers; 1 without weights.
    least, most
        For each of `PAIR_METRICS`, (P,) masks of the pairs that certainly, and that possibly, belong to the kind.
    """

    critic: IntArray = field(repr=False)
    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    weight: FloatArray = field(repr=False)
    least: dict[str, BoolArray] = field(repr=False)
    most: dict[str, BoolArray] = field(repr=False)

    def __len__(self) -> int:
        return self.critic.size

    def where(self, keep: BoolArray) -> LikePairs:
        """Return the pairs where `keep` is True."""
        least, most = ({name: values[keep] for name, values in part.items()} for part in (self.least, self.most))
        critic, weight = self.critic[keep], self.weight[keep]
        cases = {"first": self.first[keep], "second": self.second[keep]}
        return replace(self, critic=critic, weight=weight, least=least, most=most, **cases)

    @cached_property
    def critics(self) -> int:
        """The number of critics who judged a pair of similar cases."""
        return np.unique(self.critic).size

    @cached_property
    def cases(self) -> int:
        """The number of cases in pairs of similar cases."""
        return np.unique(np.concatenate([self.first, self.second])).size

    def share(self, metric: str, confidence: float = 0.95, *, cases_are_all: bool = False) -> PairShare:
        """Return the share of pairs of a kind, with its bounds and confidence limits.

        Both bounds are shares of pairs; pairs that share a critic or a case are dependent. With e the deviations from a
        share and S their sums over the pairs of a critic, of a case, of two cases, of a critic and a case,

            V = sum S_critic² + (sum S_case² - sum S_two²) - (sum S_critic,case² - sum e²)

        sums e e' over all pairs of pairs that share a critic or a case; V is set to at least the variance from critics
        alone and from cases alone. Each sum over G clusters is multiplied by G / (G - 1). The limits are Student's t on
        the logit scale, two-sided below the lower and above the upper bound; its degrees of freedom are the smallest of
        G - 1 and 2 (sum S²)² / (sum S⁴ - (sum S²)² / G), for the sums over critics and over cases. For a share of 0 (or
        1) the other limit is the exact limit for m independent pairs, with m the smaller of the number of critics and
        half the number of cases.

        Parameters
        ----------
        metric
            One of `PAIR_METRICS`.
        confidence
            The confidence of the limits.
        cases_are_all
            Whether only critics are sampled.

        References
        ----------
        A. C. Cameron, J. B. Gelbach and D. L. Miller (2011), Robust inference with multiway clustering, Journal of
        Business and Economic Statistics 29. M. Fafchamps and F. Gubert (2007), The formation of risk sharing networks,
        Journal of Development Economics 83.
        """
        if not len(self) or not self.weight.any():
            return PairShare(*[float("nan")] * 4)
        ends = [self._limits(part[metric], confidence, cases_are_all) for part in (self.least, self.most)]
        return PairShare(ends[0][0], ends[1][0], ends[0][1], ends[1][2])

    def _limits(self, kind: BoolArray, confidence: float, cases_are_all: bool) -> tuple[float, float, float]:
        total = float(self.weight.sum())
        value = float(self.weight @ kind) / total
        clusters = [self.critics, *([] if cases_are_all else [self.cases])]
        several = [number for number in clusters if number > 1]
        if not several:
            return value, float("nan"), float("nan")
        if value in (0.0, 1.0):
            reach = 1.0 - tail_share(confidence) ** (1.0 / self._independent(cases_are_all))
            return (value, 0.0, reach) if value == 0.0 else (value, 1.0 - reach, 1.0)
        apart = self.weight * (kind - value) / total
        variance, freedom = self._variance(apart, cases_are_all)
        low, high = logit_t(value, np.sqrt(variance), freedom, confidence)
        return value, float(low), float(high)

    def _independent(self, cases_are_all: bool) -> float:
        return self.critics if cases_are_all else max(1.0, min(self.critics, self.cases / 2))

    def _variance(self, apart: FloatArray, cases_are_all: bool) -> tuple[float, float]:
        """Return the variance of a share and its degrees of freedom."""
        critics = _Sums(apart, self.critic)
        if cases_are_all:
            return critics.corrected, critics.freedom
        ends = np.concatenate([self.first, self.second])
        cases, two = _Sums(apart, ends), _Sums(apart, self.first, self.second)
        of_cases = cases.corrected - two.squares * cases.corrected / (cases.squares or 1.0)
        if self.critics == 1:
            return max(of_cases, 0.0), cases.freedom
        both = _Sums(apart, np.tile(self.critic, 2), ends).squares - float(apart @ apart)
        freedom = min(critics.freedom, cases.freedom)
        return max(critics.corrected + of_cases - both, critics.corrected, of_cases), freedom


class _Sums:
    """Sums S of deviations over G clusters: sum S², its corrected value (times G / (G - 1)), and degrees of freedom."""

    def __init__(self, apart: FloatArray, *keys: IntArray) -> None:
        codes = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].ravel()
        summed = np.bincount(codes, np.tile(apart, codes.size // apart.size))
        many, self.squares = summed.size, float(summed @ summed)
        self.corrected = self.squares * many / max(many - 1, 1)
        excess = float((summed**4).sum()) - self.squares**2 / many
        self.freedom = min(many - 1.0, 2.0 * self.squares**2 / excess) if excess > 0 else many - 1.0


def find_like_pairs(answers: Answers, traits: FloatArray, tolerances: Sequence[float]) -> LikePairs:
    """Return all pairs of similar cases judged by one critic.

    Two cases are similar if no trait differs by more than its tolerance. Answers are sorted by critic and first trait.
    All answers are compared at once with the answers one position later, then two positions later and so on, until no
    first trait is near enough, so there is no loop over pairs.

    Parameters
    ----------
    answers
        The answers.
    traits
        (cases, T) the traits as numbers; a case with a nan is similar to no other case.
    tolerances
        (T,) the largest differences of similar cases, at least 0.

    Examples
    --------
    >>> from evenhand.stats.feedback import Feedback
    >>> answers = Answers(
    ...     critic=np.zeros(3, dtype=int), case=np.arange(3), answer=np.array([0, 1, 0]), group=np.zeros(3, dtype=int),
    ...     label=np.array([0, 0, 1]), groups=1, critics=1, feedback=Feedback(2),
    ... )
    >>> found = find_like_pairs(answers, np.array([[30.0], [32.0], [33.0]]), [2.0])
    >>> list(zip(found.first.tolist(), found.second.tolist()))  # 30 and 33 are too far apart
    [(0, 1), (1, 2)]
    >>> [float(found.most[name].mean()) for name in PAIR_METRICS]  # both are split: alike held apart, apart held alike
    [1.0, 0.5, 0.5]
    """
    if traits.ndim != 2 or traits.shape != (answers.cases, len(tolerances)) or not len(tolerances):
        raise DataError("`traits` must have a row for each case and a column for each tolerance, at least one.")
    if not all(np.isfinite(far) and far >= 0 for far in tolerances):
        raise EvenhandError(
            "`tolerances` must be numbers of at least 0; got {tolerances}.", tolerances=list(tolerances)
        )
    usable = np.flatnonzero(np.isfinite(traits[answers.case]).all(axis=1))
    order = usable[np.lexsort((traits[answers.case[usable], 0], answers.critic[usable]))]
    pairs = _near_rows(answers.critic[order], traits[answers.case[order]], np.asarray(tolerances, dtype=np.float64))
    first, second = order[pairs[0]], order[pairs[1]]
    swap = answers.case[first] > answers.case[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    sort = np.lexsort((answers.case[second], answers.case[first], answers.critic[first]))
    return _judged(answers, first[sort], second[sort])


def _near_rows(critic: IntArray, traits: FloatArray, tolerances: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the positions of similar rows, from rows sorted by critic and first trait."""
    room = tolerances * (1.0 + 1e-12) + 1e-12  # rounding separates no pair
    pairs: list[tuple[IntArray, IntArray]] = []
    number, start = 0, np.arange(critic.size)
    for lag in count(1):
        start = start[start + lag < critic.size]
        ahead = start + lag
        near = (critic[start] == critic[ahead]) & (traits[ahead, 0] - traits[start, 0] <= room[0])
        start = start[near]  # a first trait too far ahead is so at every longer lag
        if not start.size:
            break
        like = (np.abs(traits[start + lag] - traits[start]) <= room).all(axis=1)
        pairs.append((start[like], start[like] + lag))
        number += int(like.sum())
        if number > MOST_PAIRS:
            raise DataError(
                "more than {MOST_PAIRS:,} pairs of cases are like one another; name more columns, or smaller "
                "tolerances.",
                MOST_PAIRS=MOST_PAIRS,
            )
    no_rows = np.zeros(0, dtype=np.int64)
    firsts, seconds = zip(*pairs, strict=True) if pairs else ((no_rows,), (no_rows,))
    return np.concatenate(firsts), np.concatenate(seconds)


def _judged(answers: Answers, first: IntArray, second: IntArray) -> LikePairs:
    """Return `LikePairs` for pairs of answers, with masks of the certain and possible kinds of each pair."""
    feedback = answers.feedback
    sets = feedback.admissible.reshape(-1, feedback.labels).astype(np.int64)
    shared = sets @ sets.T  # the number of labels that both answers leave open
    size = sets.sum(axis=1)
    surely = (shared == 1) & (size == 1) & (size == 1)[:, np.newaxis]
    code = answers.label[answers.case] * feedback.answers + answers.answer
    agrees, codes = feedback.agreeing.ravel()[code], (code[first], code[second])
    same_label = answers.label[answers.case[first]] == answers.label[answers.case[second]]
    may, must, split = shared[codes] > 0, surely[codes], agrees[first] != agrees[second]
    weight = np.ones(first.size) if answers.weight is None else answers.weight[first] * answers.weight[second]
    return LikePairs(
        critic=answers.critic[first],
        first=answers.case[first],
        second=answers.case[second],
        weight=weight,
        least={SPLIT: split, APART: ~same_label & must, ALIKE: same_label & ~may},
        most={SPLIT: split, APART: ~same_label & may, ALIKE: same_label & ~must},
    )


def split_share(answers: Answers) -> float:
    """Return the share of split answers among all pairs of cases judged by one critic; nan without pairs.

    Similarity matters to critics if similar pairs are split less often than pairs overall.

    Examples
    --------
    >>> from evenhand.stats.feedback import Feedback
    >>> answers = Answers(
    ...     critic=np.zeros(4, dtype=int), case=np.arange(4), answer=np.array([0, 1, 0, 0]),
    ...     group=np.zeros(4, dtype=int), label=np.zeros(4, dtype=int), groups=1, critics=1, feedback=Feedback(2),
    ... )
    >>> split_share(answers)
    0.5
    """
    code = answers.label[answers.case] * answers.feedback.answers + answers.answer
    agrees = answers.feedback.agreeing.ravel()[code]
    weight = np.ones(code.size) if answers.weight is None else answers.weight
    yes, no, squares = (
        np.bincount(answers.critic, values, answers.critics)
        for values in (weight * agrees, weight * ~agrees, weight**2)
    )
    pairs = float((((yes + no) ** 2 - squares) / 2).sum())
    return float((yes * no).sum()) / pairs if pairs > 0 else float("nan")
