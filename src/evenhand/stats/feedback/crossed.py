"""Bootstrap of critics and cases, with a normal approximation for many answers.

Critics share cases and cases share critics, so answers are not independent, and neither critics nor cases alone are the
sample. Critics and cases are therefore resampled independently: the weight of an answer is the product of its critic's
and its case's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.random import Generator

from evenhand.errors import require_at_least, require_choice
from evenhand.stats.draws import Draws
from evenhand.stats.feedback.answers import Answers, numbered
from evenhand.stats.types import FloatArray, IntArray

Resampled = Literal["both", "critics", "cases"]
RESAMPLED: tuple[Resampled, ...] = get_args(Resampled)
"""What is resampled: critics and cases, only critics (the cases are all there are), or only cases."""

MassStatistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""statistic(masses (..., kinds, groups, K, answers)) -> (..., T)."""

FEW_ANSWERS = 50_000
"""Up to this many answers, every mass is resampled answer by answer."""
SURE = 5.0
"""With more answers, masses of at least this many standard errors are drawn from their normal distribution."""
_CHUNK_NUMBERS = 4_000_000
_ROUNDING = 1e-13


def crossed_bootstrap(
    answers: Answers,
    statistic: MassStatistic,
    *,
    rng: Generator,
    draws: int = 2_000,
    resampled: Resampled = "both",
    kind: IntArray | None = None,
) -> Draws:
    """Return a statistic of resamples of critics and cases.

    In each resample critics and cases are drawn independently with replacement, as many as in the sample, and an answer
    has the weight (draws of its critic) x (draws of its case). The masses of all resamples are two matrix products:
    sparse answers by drawn critics, then sums over drawn cases. The variance is that of critics plus that of cases plus
    three times that of single answers; `CrossedDraws` removes the excess.

    With more than `FEW_ANSWERS` answers, only masses of less than `SURE` standard errors are resampled answer by
    answer. The other masses are drawn from their conditional normal distribution with the bootstrap's mean and exact
    covariance (`Masses.covariance`), so the cost of a resample no longer grows with the number of answers.

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
        The resampled units: 'both', 'critics' if the cases are the whole population of interest, or 'cases'.
    kind
        (critics,) the kind of each critic, a code from 0. Critics are then drawn within their kind, and the kinds'
        masses stay separate.

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
    >>> answers = Answers(
    ...     critic=critic, case=case, answer=disagree, group=one, label=one, groups=1, critics=30, feedback=Feedback(2)
    ... )
    >>> def share(masses): return masses[..., 0, 0, 0, 1:] / masses[..., 0, 0, 0, :].sum(axis=-1, keepdims=True)
    >>> [float(crossed_bootstrap(answers, share, rng=np.random.default_rng(1), resampled=what).stderr()[0].round(3))
    ...  for what in ("critics", "both")]
    [0.0, 0.108]
    """
    require_choice("resampled", resampled, RESAMPLED)
    require_at_least("draws", draws, 2)
    return _draws(Masses.from_answers(answers, kind), statistic, rng, draws, resampled)


def _draws(masses: Masses, statistic: MassStatistic, rng: Generator, draws: int, resampled: Resampled) -> Draws:
    with np.errstate(all="ignore"):
        estimate = statistic(masses.whole)
        values = [statistic(drawn) for drawn in masses.resamples(draws, resampled, rng)]
    return Draws(estimate, np.concatenate(values))


@dataclass(frozen=True)
class CrossedDraws:
    """Three bootstraps: of critics and cases together, of critics alone and of cases alone.

    An answer drawn with its critic and with its case has weights of variance 1 + 1 + 1 instead of 1. So with V, V_c and
    V_k the variances of the three bootstraps, V - V_c - V_k is the part of single answers, and V_c + V_k minus that
    part is the variance with every part counted once. For means this is the two-way variance of Cameron, Gelbach and
    Miller. If the three bootstraps share the counts of critics and cases in each resample, the part of single answers
    is the variance of both - critics - cases + estimate. This is more precise than the difference of three variances;
    that difference would need about five times the resamples for the same precision.

    Attributes
    ----------
    both, critics, cases
        The three bootstraps of the same T statistics.
    shared
        Whether the bootstraps share their counts.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011), Robust inference with multiway clustering, Journal of Business
    and Economic Statistics 29. A. B. Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1.
    """

    both: Draws
    critics: Draws
    cases: Draws
    shared: bool

    def part(self, columns: slice) -> CrossedDraws:
        """Return the draws of a slice of the statistics."""
        both, critics, cases = (draws.part(columns) for draws in (self.both, self.critics, self.cases))
        return CrossedDraws(both, critics, cases, self.shared)

    def map(self, function: Callable[[FloatArray], FloatArray]) -> CrossedDraws:
        """Apply a function that maps statistics (..., T) to (..., S) to all draws."""
        every = (self.both, self.critics, self.cases)
        both, critics, cases = (Draws(function(draws.estimate), function(draws.values)) for draws in every)
        return CrossedDraws(both, critics, cases, self.shared)

    def components(self) -> FloatArray:
        """Return (3, T) the nonnegative variance components of critics, cases and single answers."""
        both, critics, cases = (draws.stderr() ** 2 for draws in (self.both, self.critics, self.cases))
        answers = self._of_single_answers if self.shared else np.maximum(both - critics - cases, 0.0)
        return np.stack([np.maximum(critics - answers, 0.0), np.maximum(cases - answers, 0.0), answers])

    @property
    def _of_single_answers(self) -> FloatArray:
        estimate = self.both.estimate
        with np.errstate(invalid="ignore"):
            interaction = self.both.values - self.critics.values - self.cases.values + estimate
        return np.asarray(Draws(np.where(np.isfinite(estimate), 0.0, np.nan), interaction).stderr() ** 2)

    def stderr(self) -> FloatArray:
        """Return (T,) the standard errors of the statistics."""
        return np.asarray(np.sqrt(self.components().sum(axis=0)))


def crossed_draws(
    answers: Answers, statistic: MassStatistic, *, rng: Generator, draws: int = 2_000, kind: IntArray | None = None
) -> CrossedDraws:
    """Return three bootstraps: of both, of critics and of cases; see `crossed_bootstrap`."""
    require_at_least("draws", draws, 2)
    masses = Masses.from_answers(answers, kind)
    if masses.code.size > FEW_ANSWERS:
        both, critics, cases = (_draws(masses, statistic, rng, draws, what) for what in RESAMPLED)
        return CrossedDraws(both, critics, cases, shared=False)
    with np.errstate(all="ignore"):
        estimate = statistic(masses.whole)
        values = [[statistic(drawn) for drawn in every] for every in masses.resampled_answers(draws, RESAMPLED, rng)]
    both, critics, cases = (Draws(estimate, np.concatenate(drawn)) for drawn in zip(*values, strict=True))
    return CrossedDraws(both, critics, cases, shared=True)


# Masses and their resamples -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses of answers, with methods to resample their critics and cases.

    Attributes
    ----------
    answers
        The answers.
    kind
        (critics,) the kind of each critic, a code from 0.
    kinds
        The number of kinds.

    Examples
    --------
    >>> from evenhand.stats.feedback.answers import Feedback
    >>> critic, case = np.divmod(np.arange(6), 3)  # two critics, the same three cases of one group and label
    >>> one = np.zeros(3, dtype=int)
    >>> answers = Answers(
    ...     critic=critic,
    ...     case=case,
    ...     answer=np.array([0, 0, 1, 0, 1, 1]),
    ...     group=one,
    ...     label=one,
    ...     groups=1,
    ...     critics=2,
    ...     feedback=Feedback(1 + 1),
    ... )
    >>> Masses.from_answers(answers).covariance("critics")[:2, :2]  # they agree with 2 and 1, drawn 0 to 2 times
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    answers: Answers
    kind: IntArray
    kinds: int

    @classmethod
    def from_answers(cls, answers: Answers, kind: IntArray | None = None) -> Masses:
        """Return the masses of answers; without `kind`, all critics are of one kind."""
        kinds = np.zeros(answers.critics, dtype=np.int64) if kind is None else kind
        return cls(answers, kinds, int(kinds.max(initial=0)) + 1)

    @cached_property
    def whole(self) -> FloatArray:
        """(kinds, groups, K, answers) the masses of the sample."""
        return self.answers.by(self.kind, self.kinds)

    @cached_property
    def code(self) -> IntArray:
        """(n,) the index of each answer's mass: one code for kind of critic, group, label and answer."""
        return self.kind.take(self.answers.critic) * int(np.prod(self.answers.shape)) + self.answers.cell

    def covariance(self, resampled: Resampled) -> FloatArray:
        """Return the exact bootstrap covariance (C, C) of the C masses.

        Of n critics drawn n times, E[u_i u_j] = 1 + [i = j] - 1 / n, and 1 for critics of different kinds; likewise for
        m cases. With S the masses, A_c, A_k and A the sums over critics, cases and single answers of the products of
        their masses, and 1 / n set to 0 between kinds:

        - critics alone: C_c = A_c - S S' / n; cases alone: C_k = A_k - S S' / m;
        - both: C_k + (1 - 1 / m) C_c + A - A_k / n.

        Requires that a critic answers a case at most once.

        References
        ----------
        A. B. Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1.
        """
        by_critic, by_case, single = self._products
        size, outer = int(np.prod(self.answers.shape)), np.outer(self.whole, self.whole)
        drawn = np.repeat(1.0 / np.maximum(np.bincount(self.kind, minlength=self.kinds), 1), size)
        of_kind = np.repeat(np.arange(self.kinds), size)
        share = np.where(np.equal.outer(of_kind, of_kind), drawn, 0.0)
        critics, cases = by_critic - share * outer, by_case - outer / self.answers.cases
        if resampled == "both":
            return np.asarray(cases + (1.0 - 1.0 / self.answers.cases) * critics + single - share * by_case)
        return np.asarray(critics if resampled == "critics" else cases)

    @cached_property
    def _products(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return three (C, C) arrays: the products of masses summed over critics, cases and single answers."""
        answers, size, weight = self.answers, self.whole.size, self.answers.weight
        single = self.whole if weight is None else np.bincount(self.code, weights=weight**2, minlength=size)
        by_critic = _summed_products(answers.critic, answers.critics, self.code, size, weight)
        by_case = _summed_products(answers.case, answers.cases, self.code, size, weight)
        return by_critic, by_case, np.diag(single.ravel())

    def resamples(self, draws: int, resampled: Resampled, rng: Generator) -> Iterator[FloatArray]:
        """Yield the resampled masses in batches of shape (draws, kinds, groups, K, answers)."""
        if self.code.size <= FEW_ANSWERS:
            yield from (drawn for (drawn,) in self.resampled_answers(draws, [resampled], rng))
            return
        sizes = np.bincount(self.kind, minlength=self.kinds), self.answers.cases
        mean = self.whole.ravel()
        present = np.flatnonzero(mean)
        relative = self.covariance(resampled)[np.ix_(present, present)] / np.outer(mean[present], mean[present])
        is_large = np.diagonal(relative) <= SURE**-2
        values = np.zeros((draws, mean.size))
        small, large = present[~is_large], present[is_large]
        deviation = np.zeros((draws, small.size))
        if small.size:
            parts = self._select(small).resampled_answers(draws, [resampled], rng, sizes)
            values[:, small] = np.concatenate([drawn for (drawn,) in parts]).reshape(draws, -1)[:, small]
            deviation = values[:, small] / mean[small] - 1.0
        follows = relative[np.ix_(is_large, ~is_large)] @ np.linalg.pinv(
            relative[np.ix_(~is_large, ~is_large)], hermitian=True
        )
        residual = relative[np.ix_(is_large, is_large)] - follows @ relative[np.ix_(~is_large, is_large)]
        noise = rng.standard_normal((draws, large.size)) @ _root(residual)
        values[:, large] = np.maximum(1.0 + deviation @ follows.T + noise, 0.0) * mean[large]
        yield values.reshape(draws, *self.whole.shape)

    def _select(self, cells: IntArray) -> Masses:
        """Return the masses of the listed cells, with only the critics and cases of their answers."""
        keep = np.isin(self.code, cells)
        return Masses(
            self.answers.where(keep), self.kind[numbered(self.answers.critic[keep], self.kind.size)[0]], self.kinds
        )

    def resampled_answers(
        self, draws: int, resampled: Sequence[Resampled], rng: Generator, sizes: tuple[IntArray, int] | None = None
    ) -> Iterator[list[FloatArray]]:
        """Yield the resampled masses computed answer by answer, in batches that fit in memory.

        Parameters
        ----------
        draws, rng
            The number of resamples, and the source of randomness.
        resampled
            The resampled units; each entry gets an array of masses, computed from the same counts.
        sizes
            The numbers of critics of each kind and of cases in the whole sample, if they differ from the numbers here.
        """
        from scipy.sparse import csr_array

        answers = self.answers
        order = np.argsort(answers.stratum, kind="stable")  # makes cases of one group and label contiguous
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        present, starts = np.unique(answers.stratum[order], return_index=True)
        blocks = self.kinds * answers.feedback.answers
        block = self.kind[answers.critic] * answers.feedback.answers + answers.answer
        weight = np.ones(block.size) if answers.weight is None else answers.weight
        coordinates = block * answers.cases + position[answers.case], answers.critic
        matrix = csr_array((weight, coordinates), shape=(blocks * answers.cases, answers.critics))
        number = sizes or (np.bincount(self.kind, minlength=self.kinds), answers.cases)

        def masses(by_case: FloatArray, cases: FloatArray | None) -> FloatArray:
            """Return masses from the sums (blocks * cases, draws) over drawn critics and the counts of drawn cases."""
            sums = by_case.reshape(blocks, answers.cases, -1)
            summed = np.add.reduceat(sums if cases is None else sums * cases, starts, axis=1)
            found = np.zeros((size, self.kinds, answers.groups * answers.feedback.labels, answers.feedback.answers))
            found[:, :, present, :] = summed.reshape(self.kinds, answers.feedback.answers, -1, size).transpose(
                3, 0, 2, 1
            )
            return found.reshape(size, *self.whole.shape)

        everybody = np.asarray(matrix @ np.ones((answers.critics, 1)))
        for size in _chunks(draws, blocks * answers.cases + answers.critics):
            drawn, cases = everybody, None
            if set(resampled) != {"cases"}:
                drawn = np.asarray(matrix @ _counts_within(self.kind, number[0], size, rng).T)
            if set(resampled) != {"critics"}:
                cases = _counts(answers.cases, number[1], size, rng).T
            yield [
                masses(everybody if what == "cases" else drawn, None if what == "critics" else cases)
                for what in resampled
            ]


def _summed_products(row: IntArray, rows: int, code: IntArray, many: int, weight: FloatArray | None) -> FloatArray:
    """Return (many, many) the products of two codes' sums within a row, summed over rows."""
    # Counts add up exactly in any order, and up to four times the answers need no more memory than a sparse matrix.
    if rows * many <= (code.size if weight is not None else 4 * code.size):
        sums = np.bincount(row * many + code, weights=weight, minlength=rows * many).astype(np.float64)
        return np.asarray(sums.reshape(rows, many).T @ sums.reshape(rows, many))
    from scipy.sparse import csr_array

    weight = np.ones(code.size) if weight is None else weight
    matrix = csr_array((weight, (row, code)), shape=(rows, many))
    return np.asarray((matrix.T @ matrix).toarray())


def _root(covariance: FloatArray) -> FloatArray:
    """Return the symmetric square root of a covariance matrix, with eigenvalues at rounding level set to 0."""
    value, vector = np.linalg.eigh(covariance)
    return np.asarray((vector * np.sqrt(np.where(value > _ROUNDING, value, 0.0))) @ vector.T)


def _chunks(draws: int, numbers: int) -> Iterator[int]:
    step = max(1, min(draws, _CHUNK_NUMBERS // max(numbers, 1)))
    yield from (min(step, draws - start) for start in range(0, draws, step))


def _counts(n: int, among: int, draws: int, rng: Generator) -> FloatArray:
    """Return (draws, n) the counts of n members in samples of size `among` drawn with replacement from `among`."""
    size = np.full(draws, n) if n == among else rng.binomial(among, n / among, draws)
    picked = rng.integers(0, n, size=int(size.sum())) + np.repeat(n * np.arange(draws), size)
    return np.bincount(picked, minlength=draws * n).astype(np.float64).reshape(draws, n)


def _counts_within(kind: IntArray, among: IntArray, draws: int, rng: Generator) -> FloatArray:
    """Return (draws, critics) the resampling counts of critics, drawing each kind separately."""
    counts = np.empty((draws, kind.size))
    for number, size in enumerate(among.tolist()):
        members = np.flatnonzero(kind == number)
        if members.size:
            counts[:, members] = _counts(members.size, size, draws, rng)
    return counts
