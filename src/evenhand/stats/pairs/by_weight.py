"""Individual fairness at several weights at once: exact for few people, by a corrected grid for many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.stats.pairs.fairness import individual_fairness
from evenhand.stats.pairs.grid import SIZE, GridMoments, bin_people, excess_table, grid_excess, scale
from evenhand.stats.pairs.grid_rows import aligned_bounds
from evenhand.stats.pairs.merge import distinct, hashes
from evenhand.stats.pairs.people import TOLERANCE, People, check_people
from evenhand.stats.pairs.sampled import WIDTHS, PairDraw
from evenhand.stats.types import FloatArray

EXACT_ROWS = 20_000  # different people up to whom all pairs are compared: 2e8 pairs, a twentieth of a second
_PAIRS = 2**16  # random pairs on which the grid is corrected


def fairness_by_weight(
    score: FloatArray,
    effort: FloatArray,
    aggregate: FloatArray,
    weights: Sequence[float],
    survey_weight: FloatArray | None = None,
    *,
    exact_rows: int = EXACT_ROWS,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return individual fairness at each weight, and how far the numbers may be off.

    Up to `exact_rows` different people it is exact. Above, one grid gives all weights; what it adds to the truth is
    subtracted as estimated on 65,536 random pairs (the same for all weights), and four standard errors of that estimate
    are the error. So it is unbiased with atoms too, where the grid's own extrapolation step says too little.

    Parameters
    ----------
    score, effort, aggregate, survey_weight
        One number a person; see `evenhand.stats.pairs.individual_fairness`.
    weights
        Weights of effort in the distance.
    exact_rows
        Different people up to whom all pairs are compared.
    seed
        Seed of the random pairs.

    Examples
    --------
    >>> import numpy as np
    >>> score, effort, aggregate = np.random.default_rng(0).random((3, 2_000))
    >>> exact, none = fairness_by_weight(score, effort, aggregate, [0.0, 0.5])
    >>> near, error = fairness_by_weight(score, effort, aggregate, [0.0, 0.5], exact_rows=100)
    >>> bool((none == 0).all()), bool((abs(near - exact) < error).all()), bool((error < 1e-4).all())
    (True, True, True)
    """
    if _different(score, effort, aggregate, exact_rows) <= exact_rows:
        values = [individual_fairness(score, effort, aggregate, w, survey_weight=survey_weight).value for w in weights]
        return np.array(values), np.zeros(len(weights))
    people = check_people(score, effort, aggregate, survey_weight)
    bounds = (aligned_bounds(score, SIZE), aligned_bounds(effort, SIZE), aligned_bounds(aggregate, SIZE))
    return corrected_grid(bin_people(people, bounds=bounds), people, weights, np.random.default_rng(seed))


def corrected_grid(
    fine: GridMoments, people: People, weights: Sequence[float], rng: np.random.Generator, *, sample: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return individual fairness at each weight from a grid, corrected on random pairs of people, and its error.

    Where the people are a sample of those on the grid, the variance between people adds at most 4 / n of that between
    pairs, and the error counts all of it.
    """
    coarse = fine.coarser()
    excess = grid_excess(coarse, fine, weights).value
    added, stderr = _corrections(people, coarse, fine, weights, rng)
    wider = np.sqrt(1.0 + 4.0 * _PAIRS / len(people)) if sample else 1.0
    return 1.0 - np.clip(excess - added, 0.0, 1.0), WIDTHS * wider * stderr + TOLERANCE


def _corrections(
    people: People, coarse: GridMoments, fine: GridMoments, weights: Sequence[float], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return what the extrapolated grid adds at each weight, and the standard error of that."""
    from evenhand.stats.pairs.grid_kernels import deviations

    first, second = (
        np.stack([people.score[at], people.effort[at], people.aggregate[at]])
        for at in PairDraw(people).pairs(_PAIRS, rng)
    )
    origin, per_step = scale(fine.bounds, fine.size)
    found, out = [], np.empty((_PAIRS, 2))
    for weight in weights:
        tables = excess_table(coarse, weight), excess_table(fine, weight)
        deviations(first, second, weight, TOLERANCE, origin, per_step, *tables, tables[1], out)
        found.append((out[:, 0].mean(), out[:, 0].std(ddof=1) / np.sqrt(_PAIRS)))
    added, stderr = np.array(found).reshape(-1, 2).T
    return added, stderr


def _different(score: FloatArray, effort: FloatArray, aggregate: FloatArray, enough: int) -> int:
    """Return how many different people there are; when a part of them has more than enough, that part's number."""
    if score.size <= enough:
        return int(score.size)
    part = slice(None, None, max(1, score.size // (4 * enough)))
    found = distinct(hashes(score[part], effort[part], aggregate[part]))
    return found if found > enough else distinct(hashes(score, effort, aggregate))
