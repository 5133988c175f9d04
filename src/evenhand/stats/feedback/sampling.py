"""The bootstrap of critics and cases at once.

Critics share cases and cases share critics, so answers are not independent, and neither critics nor cases alone are the
sample. Both are drawn again, independently: an answer counts as often as its critic times as often as its case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.random import Generator

from evenhand.errors import require_at_least, require_choice
from evenhand.stats.bootstrap import Draws
from evenhand.stats.feedback.answers import Answers
from evenhand.stats.types import FloatArray, IntArray

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
