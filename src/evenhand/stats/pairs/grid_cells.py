"""Individual fairness of people who stay in a data engine: from all different people, or from a grid and a sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import blocks, strips
from evenhand.stats.pairs.fairness import ROW_SUM
from evenhand.stats.pairs.grid import GridMoments, autocorrelation, excess_table, kernel_mean
from evenhand.stats.pairs.grid_rows import correct, row_excess
from evenhand.stats.pairs.merge import distinct, hashes, merge_people
from evenhand.stats.pairs.people import TOLERANCE, People, check_people, check_weight
from evenhand.stats.pairs.result import PairFairness, limits, weighted_spread
from evenhand.stats.pairs.sampled import WIDTHS
from evenhand.stats.types import FloatArray


def individual_fairness_counts(
    score: npt.ArrayLike,
    effort: npt.ArrayLike,
    aggregate: npt.ArrayLike,
    heaviness: npt.ArrayLike,
    squares: npt.ArrayLike,
    weight: float = 0.5,
    *,
    n: int,
    confidence: float = 0.95,
) -> PairFairness:
    """Return individual fairness, exactly, from all different people and how much of everybody each stands for.

    Equal people are never unfair to each other, so the sum over pairs of different rows is that over all pairs; there
    are (V² - sum v²) / 2 of them by weight, V = sum v.

    Parameters
    ----------
    score, effort, aggregate
        One entry for all people who are alike.
    heaviness
        The sum of their weights; how many they are, without weights.
    squares
        The sum of their squared weights; how many they are, without weights.
    weight
        Weight of effort in the distance.
    n
        How many people there are.
    confidence
        Two-sided confidence.

    Examples
    --------
    >>> from evenhand.stats.pairs import individual_fairness
    >>> found = individual_fairness_counts([0.1, 0.9], [0, 0.3], [0, 0], [2, 2], [2, 2], 1.0, n=4)
    >>> every = individual_fairness([0.1, 0.1, 0.9, 0.9], [0, 0, 0.3, 0.3], [0, 0, 0, 0], 1.0)
    >>> round(found.value, 9) == round(every.value, 9), round(found.violated, 9) == round(every.violated, 9)
    (True, True)
    """
    heavy = np.asarray(heaviness, dtype=np.float64)
    people = check_people(score, effort, aggregate, heavy)
    weight = check_weight(weight)
    method = "blocks" if _few_points(people) else "strips"
    if method == "blocks":
        sorted_points = blocks.sort_points(people)
        merged = sorted_points.merged
        sums, violated = blocks.pair_sums(sorted_points, weight)
    else:
        merged = merge_people(people)
        sums, violated = strips.pair_sums(merged, weight)
    total = float(heavy.sum())
    unit = total / people.total  # survey weights are scaled to a mean of 1
    own = np.asarray(squares, dtype=np.float64)
    all_pairs = (total**2 - float(own.sum())) / 2.0
    excess = unit**2 * float(np.sum(people.weights * sums[merged.row])) / 2.0 / all_pairs
    means = 1.0 - unit * sums[merged.row] / total
    return _result(
        excess, unit**2 * violated / all_pairs, means, own, total**2 / float(own.sum()), 0.0, n, confidence, method
    )


def individual_fairness_cells(
    moments: GridMoments,
    score: npt.ArrayLike,
    effort: npt.ArrayLike,
    aggregate: npt.ArrayLike,
    survey_weight: npt.ArrayLike | None,
    weight: float = 0.5,
    *,
    n: int,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    clustering: float = 1.0,
) -> PairFairness:
    """Return individual fairness from the grid of everybody and a random sample of them.

    The value is that of the grid, less what the grid adds on random pairs of the sample; the standard error is
    2 sd(h) sqrt(sum v²) / sum v, with sd(h) of the row means of the sample and v the weights of everybody.

    Parameters
    ----------
    moments
        The grid of everybody; see `GridMoments.from_cells`.
    score, effort, aggregate, survey_weight
        The sample, one row a person: people who are alike are as many rows as they are people in the sample.
    weight
        Weight of effort in the distance.
    n
        How many people the grid holds.
    confidence
        Two-sided confidence.
    rng
        Source of randomness for the pairs; by default a fixed one.
    clustering
        How many rows of the sample were drawn together on average; the error is wider by its square root.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs import grid_moments, individual_fairness
    >>> x = np.random.default_rng(0).random((3, 20_000))
    >>> found = individual_fairness_cells(grid_moments(*x), *x[:, :5_000], None, n=20_000)
    >>> exact = individual_fairness(*x)
    >>> bool(abs(found.value - exact.value) < found.error < 1e-4), bool(abs(found.stderr / exact.stderr - 1) < 0.05)
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
    heavy = float(moments.mass.sum())
    means = 1.0 - row_excess(people, moments, weight) / heavy
    error = WIDTHS * float(np.sqrt(clustering)) * off.excess_stderr + TOLERANCE
    return _result(
        value - off.excess,
        violated - off.violated,
        means,
        people.weights**2,
        heavy**2 / moments.squares,
        error,
        n,
        confidence,
        "grid",
    )


def _few_points(people: People) -> bool:
    """Tell whether blocks are the cheaper way, as `individual_fairness` would."""
    rows, points = hashes(people.score, people.effort, people.aggregate), hashes(people.effort, people.aggregate)
    return ROW_SUM * distinct(points) <= distinct(rows) // 2


def _result(
    excess: float,
    violated: float,
    means: FloatArray,
    squares: FloatArray,
    kish: float,
    error: float,
    n: int,
    confidence: float,
    method: str,
) -> PairFairness:
    """Return the result; se² = 4 sum v² (h - mean h)² / V², with h the row means."""
    excess = min(1.0, max(0.0, excess))
    stderr = 2.0 * weighted_spread(means, squares) / float(np.sqrt(kish))
    low, high = limits(1.0 - excess, stderr, kish - 1.0, confidence, error)
    return PairFairness(
        1.0 - excess,
        low,
        high,
        stderr if excess > 0 else float("nan"),
        n,
        n * (n - 1) // 2,
        min(1.0, max(0.0, violated)),
        method,
        error,
        means,
        squares,
        kish,
    )
