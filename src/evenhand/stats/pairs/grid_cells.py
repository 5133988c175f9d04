"""Individual fairness of people who stay in a data engine: a grid of all of them, and a sample of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError
from evenhand.stats.pairs.grid import GridMoments, autocorrelation, excess_table, kernel_mean
from evenhand.stats.pairs.grid_rows import correct, row_excess
from evenhand.stats.pairs.people import TOLERANCE, check_people, check_weight
from evenhand.stats.pairs.result import PairFairness, limits
from evenhand.stats.pairs.sampled import WIDTHS


def individual_fairness_cells(
    moments: GridMoments, score: npt.ArrayLike, effort: npt.ArrayLike, aggregate: npt.ArrayLike,
    survey_weight: npt.ArrayLike | None, weight: float = 0.5, *, n: int, confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> PairFairness:  # fmt: skip
    """Return individual fairness from the grid of everybody and a random sample of them.

    The value is that of the grid, less what the grid adds on random pairs of the sample; the standard error is
    2 sd(h) sqrt(sum v²) / sum v, with sd(h) of the row means of the sample and v the weights of everybody.

    Parameters
    ----------
    moments
        The grid of everybody; see `GridMoments.from_cells`.
    score, effort, aggregate, survey_weight
        The sample; equal people can be one row with their joint weight.
    weight
        Weight of effort in the distance.
    n
        How many people the grid holds.
    confidence
        Two-sided confidence.
    rng
        Source of randomness for the pairs; by default a fixed one.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs import grid_moments, individual_fairness
    >>> x = np.random.default_rng(0).random((3, 20_000))
    >>> found = individual_fairness_cells(grid_moments(*x), *x[:, :5_000], None, n=20_000)
    >>> exact = individual_fairness(*x)
    >>> abs(found.value - exact.value) < found.error < 1e-4, abs(found.stderr / exact.stderr - 1) < 0.05
    (True, True)
    """
    people = check_people(score, effort, aggregate, survey_weight)
    if n < len(people):
        raise EvenhandError(f"`n` must be at least the {len(people):,} people of the sample; got {n:,}.")
    weight = check_weight(weight)
    value, violated = 0.0, 0.0
    for grid, share in ((moments.coarser(), -1.0 / 3.0), (moments, 4.0 / 3.0)):
        apart, table = autocorrelation(grid), excess_table(grid, weight)
        value += share * kernel_mean(grid, apart, table)
        violated = kernel_mean(grid, apart, (table > TOLERANCE).astype(np.float64))
    source = np.random.default_rng(0) if rng is None else rng
    off = correct(people, moments, weight, sample=True, rng=source)
    excess = min(1.0, max(0.0, value - off.excess))
    heavy = float(moments.mass.sum())
    means = 1.0 - row_excess(people, moments, weight) / heavy
    spread = float(
        np.sqrt(np.average((means - np.average(means, weights=people.weights)) ** 2, weights=people.weights))
    )
    kish = heavy**2 / moments.squares
    stderr, error = 2.0 * spread / np.sqrt(kish), WIDTHS * off.excess_stderr + 1e-12
    low, high = limits(1.0 - excess, stderr, kish - 1.0, confidence, error)
    return PairFairness(
        1.0 - excess, low, high, stderr if excess > 0 else float("nan"), n, n * (n - 1) // 2,
        min(1.0, max(0.0, violated - off.violated)), "grid", error, means, people.survey, kish,
    )  # fmt: skip
