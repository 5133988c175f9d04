"""Random pairs: an estimate that shares no code with the exact methods, as a check on them.

2^21 people are drawn, each with two partners. The two partners of one person also show how much of the variance is
between people, which is what the interval needs: E[(x_ij - X)(x_ik - X)] = E[(mean_i - X)²]. The standard error holds
both that variance and the noise of the draws; the numerical error is four standard errors of the draws alone.
"""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.people import TOLERANCE, People
from evenhand.stats.pairs.result import PairFairness, limits
from evenhand.stats.pairs.workers import Progress
from evenhand.stats.types import FloatArray, IntArray

_DRAWS = 2**21
_CHUNK = 2**17
WIDTHS = 4.0  # the numerical error stated is this many standard errors


def individual_fairness_sampled(
    people: People, weight: float, *, confidence: float, rng: np.random.Generator, progress: Progress | None = None
) -> PairFairness:
    """Return individual fairness from random pairs.

    Parameters
    ----------
    people
        The people.
    weight
        Weight of effort in the distance.
    confidence
        Two-sided confidence.
    rng
        Source of randomness.
    progress
        Called with the pairs done and all pairs to draw.

    Examples
    --------
    >>> score, effort = np.linspace(0, 1, 50), np.linspace(0, 0.5, 50)
    >>> result = individual_fairness_sampled(
    ...     People(score, effort, np.zeros(50)), 1.0, confidence=0.95, rng=np.random.default_rng(0)
    ... )
    >>> bool(abs(result.value - (1 - 0.5 * 17 / 49)) < result.error)
    True
    """
    draw = PairDraw(people)
    leverage = _leverage(people)
    sums = np.zeros(6)
    for start in range(0, _DRAWS, _CHUNK):
        i, j = draw.pairs(_CHUNK, rng)
        x, y = (excess_of(people, weight, i, partner) for partner in (j, draw.partners(i, rng)))
        both, hits = (x + y) / 2.0, ((x > 0).astype(np.float64) + (y > 0)) / 2.0
        lever = leverage if isinstance(leverage, float) else leverage[i]
        terms = (both, both * both, hits, lever * x * y, lever * both, lever + 0.0 * both)
        sums += [float(term.sum()) for term in terms]
        if progress is not None:
            progress(2 * (start + _CHUNK), 2 * _DRAWS)
    mean, square, violated, product, crossed, lever_mean = (sums / _DRAWS).tolist()
    noise = float(np.sqrt(max(0.0, square - mean**2) / _DRAWS))
    between = max(0.0, product - 2.0 * mean * crossed + mean**2 * lever_mean)  # E[leverage (x - mean)(y - mean)]
    n = people.counted
    stderr = float(np.sqrt((n - 1) / n * between + noise**2)) if n > 2 and mean > 0 else float("nan")
    freedom = people.total**2 / float(np.sum(people.weights**2)) - 1.0
    low, high = limits(1.0 - mean, stderr, freedom, confidence, 0.0)
    return PairFairness(
        value=1.0 - mean,
        low=low,
        high=high,
        stderr=stderr,
        n=n,
        pairs=2 * _DRAWS,
        violated=violated,
        method="sampled",
        error=WIDTHS * noise,
        survey_weight=people.survey,
    )


def _leverage(people: People) -> FloatArray | float:
    """Return 4 G g_i / (G - 2 g_i)², whose mean over draws times (h_i - U)² is the sum in `result.jackknife`."""
    n = people.counted
    if people.survey is None or n < 3:
        return 4.0 * n / max(n - 2, 1) ** 2
    weight = people.survey * people.others
    total = weight.sum()
    return np.asarray(4.0 * total * weight / (total - 2.0 * weight) ** 2)


class PairDraw:
    """Draws pairs i != j with probability proportional to v_i v_j, with replacement.

    Examples
    --------
    >>> people = People(np.zeros(3), np.zeros(3), np.zeros(3), np.array([0.0, 1.0, 1.0]))
    >>> i, j = PairDraw(people).pairs(1000, np.random.default_rng(0))
    >>> sorted(set(i.tolist())), bool((i + j == 3).all())
    ([1, 2], True)
    """

    def __init__(self, people: People) -> None:
        self._size = len(people)
        self._weight = people.survey
        if self._weight is not None:
            self._upto = np.cumsum(self._weight)
            self._first_upto = np.cumsum(self._weight * (self._upto[-1] - self._weight))  # in a pair with another

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return two arrays of people."""
        if self._weight is None:
            i = rng.integers(0, self._size, size)
        else:
            places = np.sort(rng.random(size)) * self._first_upto[-1]  # sorted, the search stays in cache
            i = self._found(self._first_upto, places)
            rng.shuffle(i)
        return i, self.partners(i, rng)

    def partners(self, i: IntArray, rng: np.random.Generator) -> IntArray:
        """Return another partner for each of the people: a place among all weights but the person's own."""
        if self._weight is None:
            j = rng.integers(0, self._size - 1, i.size)
            return np.asarray(j + (j >= i), dtype=np.int64)
        own, end = self._weight[i], self._upto[i]
        places = rng.random(i.size) * (self._upto[-1] - own)
        places = np.where(places >= end - own, places + own, places)
        order = np.argsort(places, kind="stable")
        j = np.empty_like(i)
        j[order] = self._found(self._upto, places[order])
        return np.where(j == i, self._beside(i), j)  # rounding at the ends of the person's own place

    def _found(self, upto: FloatArray, places: FloatArray) -> IntArray:
        last = int(np.flatnonzero(self._weight)[-1]) if self._weight is not None else self._size - 1
        return np.minimum(np.searchsorted(upto, places, side="right"), last).astype(np.int64)

    def _beside(self, i: IntArray) -> IntArray:
        """Return the next person with a weight, or the one before for the last."""
        somebody = np.flatnonzero(np.asarray(self._weight))
        at = np.searchsorted(somebody, i)
        return np.asarray(somebody[np.where(at + 1 < somebody.size, at + 1, at - 1)], dtype=np.int64)


def excess_of(people: People, weight: float, i: IntArray, j: IntArray) -> FloatArray:
    """Return max(0, D - d) of pairs of people; 0 where D exceeds d by rounding only.

    Examples
    --------
    >>> people = People(np.array([0.1, 0.9]), np.array([0.0, 0.3]), np.zeros(2))
    >>> excess_of(people, 1.0, np.array([0]), np.array([1]))
    array([0.5])
    """
    distance = np.sqrt(
        weight * (people.effort[i] - people.effort[j]) ** 2
        + (1.0 - weight) * (people.aggregate[i] - people.aggregate[j]) ** 2
    )
    excess = np.abs(people.score[i] - people.score[j]) - distance
    return np.where(excess > TOLERANCE, excess, 0.0)
