"""Individual fairness of scores given effort: the door to the exact methods, the grid and the sample."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from evenhand.errors import require_choice
from evenhand.stats.intervals import tail_share
from evenhand.stats.pairs import blocks, strips
from evenhand.stats.pairs.grid_rows import individual_fairness_grid
from evenhand.stats.pairs.merge import distinct, hashes, merge_people
from evenhand.stats.pairs.people import People, check_people, check_weight
from evenhand.stats.pairs.result import PairFairness, summarise
from evenhand.stats.pairs.sampled import individual_fairness_sampled
from evenhand.stats.pairs.workers import Progress, thread_count

Method = Literal["auto", "strips", "blocks", "grid", "sampled"]
METHODS: tuple[Method, ...] = get_args(Method)

_EXACT_ROWS = 200_000  # distinct rows that strips take on by themselves: 2e10 pairs, seconds
ROW_SUM = 60  # what one row against one point costs in blocks, in pairs of strips
_GLANCE = 500_000  # people whose values are looked at first
_MOST_ROW_SUMS = 500_000_000  # and what blocks take on by themselves: again seconds


def individual_fairness(
    score: npt.ArrayLike,
    effort: npt.ArrayLike,
    aggregate: npt.ArrayLike,
    weight: float = 0.5,
    *,
    survey_weight: npt.ArrayLike | None = None,
    method: Method = "auto",
    confidence: float = 0.95,
    threads: int | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> PairFairness:
    """Return effort-aware individual fairness: how far near effort and aggregate go with near scores.

    With d_ij = sqrt(w (E_i - E_j)² + (1-w) (S_i - S_j)²) and D_ij = abs(M_i - M_j) it is the mean over all pairs i < j
    of F_ij = 1 - max(0, D_ij - d_ij), weighted by v_i v_j under survey weights v. As a U-statistic it has a standard
    error from the row means h_i = mean_j F_ij alone (the jackknife): se = 2 sd(h) (n-1) / ((n-2) sqrt(n)), and the
    interval 1 - (1-U) exp(± t se / (1-U)) with n - 1 degrees of freedom. In simulations (`benchmarks/eaif_coverage.py`)
    it covers .94 to .96 from 10 people on where unfairness is spread over the people (.93 to .99 with survey weights),
    but .65 at 20 people, .80 at 50 and .95 at 200 where one person in twenty causes nearly all of it.

    Parameters
    ----------
    score
        Scores M in [0, 1], one a person.
    effort
        Effort E, one a person; see `evenhand.stats.effort.effort_scores`.
    aggregate
        Aggregate S, one a person; see `evenhand.stats.effort.aggregate_scores`.
    weight
        Weight w of effort in the distance, in [0, 1]; the paper has 0.5, and 0.6577 and 0.6037 from its human study.
    survey_weight
        What each person counts for, 0 or more. Only ratios matter.
    method
        'strips': exact over all pairs. 'blocks': exact, and quick when (effort, aggregate) has few different values.
        'grid': by FFT of the histogram for any number of people, with an error estimate. 'sampled': 4 million random
        pairs. 'auto' takes blocks when they are cheap, else strips up to 200,000 different people, else the grid;
        the choice depends on the data only, never on the clock.
    confidence
        Two-sided confidence.
    threads
        Number of threads; by default one for each core. The result does not depend on it.
    rng
        Source of randomness for the grid's correction and for sampled pairs; by default a fixed one.
    progress
        Called as `progress(done, total)` from time to time; what it raises ends the computation.

    References
    ----------
    Nguyen, Xu, Che et al., Effort-aware fairness, equations 12 and 13. W. Hoeffding (1948), A class of statistics with
    asymptotically normal distribution, Annals of Mathematical Statistics 19. J. N. Arvesen (1969), Jackknifing
    U-statistics, Annals of Mathematical Statistics 40.

    Examples
    --------
    >>> result = individual_fairness([0.2, 0.9, 0.4], effort=[0.1, 0.5, 0.4], aggregate=[0.0, 0.0, 0.0], weight=1.0)
    >>> round(result.value, 6), round(result.violated, 6), result.method  # excesses 0.3, 0 and 0.4
    (0.766667, 0.666667, 'strips')
    >>> result.row_means.round(3)
    array([0.85, 0.65, 0.8 ])
    """
    require_choice("method", method, METHODS)
    tail_share(confidence)
    thread_count(threads)
    people = check_people(score, effort, aggregate, survey_weight)
    weight = check_weight(weight)
    source = np.random.default_rng(0) if rng is None else rng
    chosen = _choose(people) if method == "auto" else method
    if chosen == "grid":
        return individual_fairness_grid(
            people, weight, confidence=confidence, rng=source, threads=threads, progress=progress
        )
    if chosen == "sampled":
        return individual_fairness_sampled(people, weight, confidence=confidence, rng=source, progress=progress)
    if chosen == "blocks":
        points = blocks.sort_points(people)
        merged = points.merged
        sums, violated = blocks.pair_sums(points, weight, threads=threads, progress=progress)
    else:
        merged = merge_people(people)
        sums, violated = strips.pair_sums(merged, weight, threads=threads, progress=progress)
    return summarise(people, sums[merged.row], violated, chosen, confidence)


def _choose(people: People) -> Method:
    """Return the method by the number of different rows and of different (effort, aggregate) points."""
    if len(people) > 2 * _GLANCE:  # the numbers can only be larger than in a part
        every = slice(None, None, len(people) // _GLANCE)
        rows, points = _counts(people, every)
        if rows > _EXACT_ROWS and points * rows > _MOST_ROW_SUMS:
            return "grid"
    rows, points = _counts(people, slice(None))
    row_sums = points * rows
    if ROW_SUM * row_sums <= rows * rows // 2 and row_sums <= _MOST_ROW_SUMS:
        return "blocks"
    return "strips" if rows <= _EXACT_ROWS else "grid"


def _counts(people: People, part: slice) -> tuple[int, int]:
    """Return how many different rows and how many different (effort, aggregate) points there are."""
    score, effort, aggregate, _ = people.part(part)
    return distinct(hashes(score, effort, aggregate)), distinct(hashes(effort, aggregate))
