"""The direction sweep, which tries many directions of a linear classifier with all thresholds.

For one direction the rows are sorted by their score, and cumulative sums give the values of all n + 1 cuts. With a
capacity there is only one cut. The first directions are least-squares and random directions; later directions
concentrate around the best ones. The budget is a number of directions, so a search is reproducible. It works for any
number of rows, and finds in seconds what a mixed-integer solver finds in a minute, but without a proof.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from evenhand.errors import EvenhandError, require_at_least
from evenhand.messages import Message
from evenhand.stats.linear_search.messages import say
from evenhand.stats.linear_search.problem import _MET, LinearCandidate, SearchProblem, judged
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import Step, run_chains

_APART = 1e-9  # cuts between scores nearer than this share of their range would not survive rounding
_ELITE = 16
_FRESH = 0.2  # the share of directions of a round that are drawn anew
_SMALLEST_STEP, _LARGEST_STEP = 1e-4, 1.0
_BATCH = 512
_SLICE_NUMBERS = 100_000  # scores and their order stay in cache


def sweep_directions(
    problem: SearchProblem, rng: Generator, *, directions: int = 20_000, threads: int | None = None
) -> LinearCandidate:
    """Return the best linear classifier within a budget of directions.

    Parameters
    ----------
    problem
        The search problem.
    rng
        Source of randomness. The result depends on it, on the problem and on the budget only.
    directions
        The budget. 10,000 directions take about 0.1 s for 100 rows, 2 s for 5,000 and 10 s for 16,000 on one core.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.

    Raises
    ------
    EvenhandError
        No direction meets the floors and constraints.

    Examples
    --------
    >>> from evenhand.stats.linear_search import search_problem
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.standard_normal((200, 2)), np.arange(200) % 2
    >>> y = (x[:, 0] + 0.5 * rng.standard_normal(200) > 0).astype(float)
    >>> problem = search_problem(x, y, x[:, 1] > 0, group, "ab")
    >>> found = sweep_directions(problem, rng, directions=2_000)
    >>> found.feasible, found.gap < 0.01
    (True, True)
    """
    best = best_direction(problem, rng, directions=directions, threads=threads)
    if not best.feasible:
        raise EvenhandError(_nothing_found(problem, best, directions))
    return best


def best_direction(
    problem: SearchProblem, rng: Generator, *, directions: int, threads: int | None = None
) -> LinearCandidate:
    """Return the best classifier of the sweep, even if it does not meet the floors."""
    require_at_least("directions", directions, 1)
    elite, merit = np.empty((0, problem.scaled.shape[1])), np.empty((0, 3))
    done = 0
    while done < directions:
        batch = _batch(problem, elite, done, min(_BATCH, directions - done), rng)
        done += len(batch)
        elite, merit = np.vstack([batch, elite]), np.vstack([_evaluate(problem, batch, threads), merit])
        best = _best(merit)
        elite, merit = elite[best], merit[best]
    if not np.isfinite(merit[0, 2]):
        none = "no_cut" if problem.capacity is None else "no_cut_capacity"
        raise EvenhandError(say(none, directions=done, rows=problem.capacity))
    return judged(problem, elite[0], -float(merit[0, 2]), directions=done, found_by="sweep")


def _best(merit: FloatArray) -> IntArray:
    """Return the indices of the best directions, the newest one for each merit so that the search can drift."""
    _, first = np.unique(merit[:, :2], axis=0, return_index=True)
    return first[:_ELITE]


def _batch(problem: SearchProblem, elite: FloatArray, done: int, size: int, rng: Generator) -> FloatArray:
    """Return directions to try: first least-squares and random directions, later mostly near the best."""
    spread = problem.scaled.std(axis=0)
    p = spread.size
    fresh = rng.standard_normal((size, p)) / spread
    if done == 0:
        starting = _starting_directions(problem)
        fresh[: len(starting)] = starting[:size]
    else:
        near = size - int(_FRESH * size)
        chosen = elite[rng.integers(len(elite), size=near)]
        step = np.exp(rng.uniform(np.log(_SMALLEST_STEP), np.log(_LARGEST_STEP), size=(near, 1)))
        length = np.sqrt(np.mean((chosen * spread) ** 2, axis=1, keepdims=True))
        changed_features = rng.random((near, p)) < np.where(rng.random((near, 1)) < 0.5, 1.0, 1.5 / p)
        fresh[:near] = chosen + changed_features * step * length * fresh[:near]
    allowed = np.where(problem.signs == 0, fresh, problem.signs * np.abs(fresh))
    return np.asarray(allowed / np.maximum(np.abs(allowed).max(axis=1, keepdims=True), 1e-300))


def _starting_directions(problem: SearchProblem) -> FloatArray:
    """Return least-squares directions (all rows, equally weighted groups, each group) and single features.

    Gains rise with the outcome for every utility, so they replace the outcome.
    """
    sizes = np.bincount(problem.group, minlength=len(problem.names))
    weights = [np.ones(len(problem)), 1.0 / sizes[problem.group]]
    weights += [(problem.group == g).astype(np.float64) for g in range(len(problem.names))]
    centred = problem.scaled - problem.scaled.mean(axis=0)
    fitted = []
    for weight in weights:
        root = np.sqrt(weight)[:, np.newaxis]
        design = np.column_stack([np.ones(len(problem)), centred]) * root
        fitted.append(np.linalg.lstsq(design, problem.gains * root[:, 0], rcond=None)[0][1:])
    single = np.eye(centred.shape[1])
    return np.vstack([[slopes for slopes in fitted if np.abs(slopes).max() > 0] or single[:1], single, -single])


def _evaluate(problem: SearchProblem, batch: FloatArray, threads: int | None) -> FloatArray:
    """Return (B, 3) violation, objective and threshold of each direction's best cut."""
    merit = np.empty((len(batch), 3))
    step = max(1, min(64, _SLICE_NUMBERS // len(problem)))

    def work(part: slice) -> None:
        scores = batch[part] @ problem.scaled.T
        merit[part] = _all_cuts(problem, scores) if problem.capacity is None else _one_cut(problem, scores)

    parts = [slice(first, min(first + step, len(batch))) for first in range(0, len(batch), step)]
    chains: list[list[Step]] = [[(part.stop - part.start, partial(work, part))] for part in parts]
    run_chains(chains, len(batch), threads=threads)
    return merit


def _all_cuts(problem: SearchProblem, scores: FloatArray) -> FloatArray:
    from evenhand.stats.compiled import scan_thresholds

    merit = np.empty((len(scores), 3))
    goal = -1 if problem.goal == "fairness" else problem.goal
    rows = problem.group, problem.gains, problem.base, problem.size, problem.step
    limits = problem.floors, problem.gap_limit, _MET
    scan_thresholds(scores, np.argsort(scores, axis=1), rows, goal, limits, _APART, merit)
    return merit


def _one_cut(problem: SearchProblem, scores: FloatArray) -> FloatArray:
    """Return the merit of the cut that selects the capacity; the violation is inf if ties prevent it."""
    assert problem.capacity is not None  # noqa: S101 -- for the type checker
    rows = scores.shape[1]
    position = rows - problem.capacity
    parted = np.partition(scores, (position - 1, position), axis=1)
    below, above = parted[:, position - 1], parted[:, position]
    cut = 0.5 * (below + above)
    violation, objective = problem.judge(problem.values(scores > cut[:, np.newaxis]))
    apart = above - below > _APART * (scores.max(axis=1) - scores.min(axis=1))
    merit = np.column_stack([violation, objective, np.where(np.isfinite(violation), cut, np.inf)])
    return np.where(apart[:, np.newaxis], merit, np.inf)


def _nothing_found(problem: SearchProblem, best: LinearCandidate, directions: int) -> Message:
    reached = tuple(
        say("reached", group=name, value=float(value), needed=float(floor))
        for name, value, floor in zip(problem.names, best.values, problem.floors, strict=True)
        if np.isfinite(floor)
    )
    if np.isfinite(problem.gap_limit):
        gaps = {"gap": float(best.gap), "most": float(problem.gap_limit)}
        return say("none_among_gap", directions=directions, reached=reached, **gaps)
    return say("none_among", directions=directions, reached=reached)
