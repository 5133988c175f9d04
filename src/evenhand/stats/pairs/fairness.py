"""Individual fairness of scores given effort: for rows, for grouped data from a data engine, and at several weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.intervals import tail_share
from evenhand.stats.pairs import approximate
from evenhand.stats.pairs.device import CARD_ROWS, Device, card_sums, card_values, is_card
from evenhand.stats.pairs.distance import EUCLIDEAN, Distance
from evenhand.stats.pairs.exact import block_sums, enumerated_sums, sort_points, tile_sums
from evenhand.stats.pairs.grid import GridMoments, bin_people, excess_table, extrapolated_means, grid_excess
from evenhand.stats.pairs.inputs import (
    TOLERANCE,
    ScoredPeople,
    check_people,
    check_weight,
    distinct,
    hashes,
    merge_people,
)
from evenhand.stats.pairs.result import PairFairness, limits, summarise, weighted_spread, widened
from evenhand.stats.types import FloatArray
from evenhand.stats.workers import Progress, thread_count

Method = Literal["auto", "strips", "blocks", "grid", "sampled"]
METHODS: tuple[Method, ...] = get_args(Method)
Name = TypeVar("Name", bound=Hashable)

_EXACT_ROWS = 200_000  # distinct rows for strips by default: 2e10 pairs, seconds
ROW_SUM = 60  # cost of one row and point in blocks, in pairs of strips
_GLANCE = 500_000  # people whose values are checked first
_MOST_ROW_SUMS = 500_000_000  # row sums for blocks by default: again seconds
EXACT_ROWS = 20_000  # distinct people for comparing all pairs: 2e8 pairs, a twentieth of a second
_PAIRS = 2**16  # random pairs for correcting the grid


def individual_fairness(
    score: ArrayLike,
    effort: ArrayLike,
    aggregate: ArrayLike,
    weight: float = 0.5,
    *,
    survey_weight: ArrayLike | None = None,
    method: Method = "auto",
    confidence: float = 0.95,
    threads: int | None = None,
    rng: Generator | None = None,
    progress: Progress | None = None,
    distance: Distance = EUCLIDEAN,
    device: Device = "cpu",
) -> PairFairness:
    """Return effort-aware individual fairness: whether similar effort and aggregate imply similar scores.

    With d_ij = sqrt(w (E_i - E_j)² + (1-w) (S_i - S_j)²) and D_ij = abs(M_i - M_j), the value is the mean over all
    pairs i < j of F_ij = 1 - max(0, D_ij - d_ij), weighted by v_i v_j under survey weights v. As a U-statistic it has a
    standard error from the row means h_i = mean_j F_ij alone (the jackknife): se = 2 sd(h) (n-1) / ((n-2) sqrt(n)), and
    the interval 1 - (1-U) exp(± t se / (1-U)) with n - 1 degrees of freedom and se widened for variation of pairs
    beyond people (`evenhand.stats.pairs.result.widened`). In simulations (`benchmarks/coverage/eaif_coverage.py`) it
    covers .98 and more if unfairness is spread over the people, .97 and more with random decisions, but .70 at 20
    people, .86 at 50 and .98 at 200 if one person in twenty causes nearly all of it.

    Parameters
    ----------
    score
        Scores M in [0, 1], one per person.
    effort
        Effort E, one per person; see `evenhand.stats.effort.effort_scores`.
    aggregate
        Aggregate S, one per person; see `evenhand.stats.effort.aggregate_scores`.
    weight
        Weight w of effort in the distance, in [0, 1]; the paper has 0.5, and 0.6577 and 0.6037 from its human study.
    survey_weight
        The weight of each person, 0 or more. Only ratios matter.
    method
        'strips': exact over all pairs. 'blocks': exact, and fast if (effort, aggregate) has few distinct values.
        'grid': by FFT of the histogram for any number of people, with an error estimate. 'sampled': 4 million random
        pairs. 'auto' uses blocks if they are cheap, otherwise strips up to 200,000 distinct people, otherwise the grid;
        the choice depends only on the data, never on the time.
    confidence
        Two-sided confidence.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    rng
        Source of randomness for the grid's correction and for sampled pairs; by default a fixed seed.
    progress
        Called as `progress(done, total)` from time to time; an exception in it ends the computation.
    distance
        The distance between people in effort and aggregate; by default the paper's. With a custom function, NumPy
        compares all pairs up to 20,000 people and random pairs above; other methods do not accept custom functions.
    device
        The device for strips: 'cpu'; 'cuda', a graphics card, for which method 'auto' uses strips up to 5 million
        distinct people; or 'auto', which uses a card if available. All other methods use the processor.

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
    people, weight = distance.transform(check_people(score, effort, aggregate, survey_weight), check_weight(weight))
    source = np.random.default_rng(0) if rng is None else rng
    card = is_card(device)
    chosen = _chosen(people, method, card)
    if chosen == "grid":
        return approximate.individual_fairness_grid(
            people, weight, confidence=confidence, rng=source, threads=threads, progress=progress
        )
    if chosen == "sampled":
        return approximate.individual_fairness_sampled(
            people, weight, confidence=confidence, rng=source, progress=progress
        )
    if card and chosen == "strips":
        ((sums, violated),) = card_sums([(people, weight)], progress)
    else:
        sums, violated = _exact_sums(people, weight, chosen, threads, progress)
    return summarise(people, weight, sums, violated=violated, method=chosen, confidence=confidence)


def individual_fairness_of_models(
    scores: Mapping[Name, FloatArray],
    effort: FloatArray,
    aggregate: FloatArray,
    weights: Sequence[float],
    *,
    survey_weight: FloatArray | None = None,
    progress: Progress | None = None,
    distance: Distance = EUCLIDEAN,
    method: Method = "auto",
    confidence: float = 0.95,
    rng: Generator | None = None,
) -> dict[tuple[Name, float], PairFairness]:
    """Return `individual_fairness` for every model and weight on a graphics card, in as few launches as possible.

    Parameters
    ----------
    scores
        The scores of each model.
    effort, aggregate, survey_weight, progress, distance, method, confidence, rng
        As for `individual_fairness`, whose `device` is 'cuda' here.
    weights
        Weights of effort in the distance.
    """
    results, strips = {}, {}
    checked = {model: check_people(score, effort, aggregate, survey_weight) for model, score in scores.items()}
    for model, weight in product(scores, weights):
        people, placed_weight = distance.transform(checked[model], check_weight(weight))
        if _chosen(people, method, card=True) == "strips":
            strips[model, weight] = people, placed_weight
        else:
            results[model, weight] = individual_fairness(
                scores[model],
                effort,
                aggregate,
                weight,
                survey_weight=survey_weight,
                distance=distance,
                method=method,
                confidence=confidence,
                rng=rng,
            )
    for case, (sums, violated) in zip(strips, card_sums(list(strips.values()), progress), strict=True):
        results[case] = summarise(*strips[case], sums, violated=violated, method="strips", confidence=confidence)
    return {case: results[case] for case in product(scores, weights)}


def _chosen(people: ScoredPeople, method: Method, card: bool) -> str:
    """Return the requested method, or the default method for these people."""
    if people.own is not None:
        return _choose_own(people, method)
    return _choose(people, CARD_ROWS if card else _EXACT_ROWS) if method == "auto" else method


def _exact_sums(
    people: ScoredPeople, weight: float, method: str, threads: int | None = None, progress: Progress | None = None
) -> tuple[FloatArray, float]:
    """Return each person's sum of v_j max(0, D_ij - d_ij), and the total weight of violated pairs."""
    if method == "enumerated":
        return enumerated_sums(people, weight)
    if method == "blocks":
        points = sort_points(people)
        sums, violated = block_sums(points, weight, threads=threads, progress=progress)
        return sums[points.merged.row], violated
    merged = merge_people(people)
    sums, violated = tile_sums(merged, weight, threads=threads, progress=progress)
    return sums[merged.row], violated


def _choose_own(people: ScoredPeople, method: Method) -> Literal["enumerated", "sampled"]:
    """Return the method for a custom distance function."""
    if method not in ("auto", "sampled"):
        raise EvenhandError(
            "a distance of your own cannot be compared by {method!r}; take 'auto' or 'sampled'.", method=method
        )
    return "enumerated" if method == "auto" and len(people) <= EXACT_ROWS else "sampled"


def _choose(people: ScoredPeople, most: int = _EXACT_ROWS) -> Method:
    """Return the default method by the numbers of distinct rows and of distinct (effort, aggregate) points."""
    if len(people) > 2 * _GLANCE:  # all people have at least as many as a part
        every = slice(None, None, len(people) // _GLANCE)
        rows, points = _counts(people, every)
        if rows > most and points * rows > _MOST_ROW_SUMS:
            return "grid"
    rows, points = _counts(people, slice(None))
    row_sums = points * rows
    if ROW_SUM * row_sums <= rows * rows // 2 and row_sums <= _MOST_ROW_SUMS:
        return "blocks"
    return "strips" if rows <= most else "grid"


def _counts(people: ScoredPeople, part: slice) -> tuple[int, int]:
    """Return the numbers of distinct rows and of distinct (effort, aggregate) points."""
    score, effort, aggregate, _ = people.part(part)
    return distinct(hashes(score, effort, aggregate)), distinct(hashes(effort, aggregate))


def individual_fairness_counts(
    score: ArrayLike,
    effort: ArrayLike,
    aggregate: ArrayLike,
    *,
    total_weight: ArrayLike,
    squares: ArrayLike,
    weight: float = 0.5,
    n: int,
    confidence: float = 0.95,
) -> PairFairness:
    """Return exact individual fairness from the distinct people and their total weights.

    Pairs of equal people have no excess, so the sum over pairs of distinct rows equals the sum over all pairs; the
    total weight of all pairs is (V² - sum v²) / 2, V = sum v.

    Parameters
    ----------
    score, effort, aggregate
        One entry for each set of equal people.
    total_weight
        The total weight of each set; without weights, its number of people.
    squares
        The sum of squared weights of each set; without weights, its number of people.
    weight
        Weight of effort in the distance.
    n
        The number of people.
    confidence
        Two-sided confidence.

    Examples
    --------
    >>> from evenhand.stats.pairs import individual_fairness
    >>> found = individual_fairness_counts(
    ...     [0.1, 0.9], [0, 0.3], [0, 0], total_weight=[2, 2], squares=[2, 2], weight=1.0, n=4
    ... )
    >>> every = individual_fairness([0.1, 0.1, 0.9, 0.9], [0, 0, 0.3, 0.3], [0, 0, 0, 0], 1.0)
    >>> round(found.value, 9) == round(every.value, 9), round(found.violated, 9) == round(every.violated, 9)
    (True, True)
    """
    weights = np.asarray(total_weight, dtype=np.float64)
    people = check_people(score, effort, aggregate, weights)
    weight = check_weight(weight)
    rows, points = _counts(people, slice(None))
    method = "blocks" if ROW_SUM * points <= rows // 2 else "strips"
    sums, violated = _exact_sums(people, weight, method)
    total = float(weights.sum())
    unit = total / people.total  # survey weights are scaled to a mean of 1
    squared = np.asarray(squares, dtype=np.float64)
    all_pairs = (total**2 - float(squared.sum())) / 2.0
    excess = unit**2 * float(np.sum(people.weights * sums)) / 2.0 / all_pairs
    compared = _Compared(
        people=people,
        weight=weight,
        excess=excess,
        violated=unit**2 * violated / all_pairs,
        row_means=1.0 - unit * sums / total,
        squares=squared,
        effective=total**2 / float(squared.sum()),
        error=0.0,
    )
    return compared.result(n, confidence, method)


def individual_fairness_cells(
    moments: GridMoments,
    score: ArrayLike,
    effort: ArrayLike,
    aggregate: ArrayLike,
    *,
    survey_weight: ArrayLike | None,
    weight: float = 0.5,
    n: int,
    confidence: float = 0.95,
    rng: Generator | None = None,
    clustering: float = 1.0,
) -> PairFairness:
    """Return individual fairness from the grid of all people and a random sample of them.

    The value is the grid's value minus its bias on random pairs of the sample. The standard error is 2 sd(h) sqrt(sum
    v²) / sum v, with sd(h) from the row means h of the sample and v the weights of all people.

    Parameters
    ----------
    moments
        The grid of all people; see `GridMoments.from_cells`.
    score, effort, aggregate, survey_weight
        The sample, with one row per person; equal people are separate rows.
    weight
        Weight of effort in the distance.
    n
        The number of people in the grid.
    confidence
        Two-sided confidence.
    rng
        Source of randomness for the pairs; by default a fixed seed.
    clustering
        The mean number of sample rows drawn together; the error is multiplied by its square root.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs import bin_people, check_people, individual_fairness
    >>> x = np.random.default_rng(0).random((3, 20_000))
    >>> found = individual_fairness_cells(bin_people(check_people(*x)), *x[:, :5_000], survey_weight=None, n=20_000)
    >>> exact = individual_fairness(*x)
    >>> bool(abs(found.value - exact.value) < found.error < 1e-4), bool(abs(found.stderr / exact.stderr - 1) < 0.05)
    (True, True)
    """
    people = check_people(score, effort, aggregate, survey_weight)
    if n < len(people):
        raise EvenhandError(
            "`n` must be at least the {number:,} people of the sample; got {n:,}.", number=len(people), n=n
        )
    weight = check_weight(weight)
    value, violated = extrapolated_means(moments, weight)
    source = np.random.default_rng(0) if rng is None else rng
    off = approximate.correct(people, moments, weight, sample=True, rng=source)
    total_weight = float(moments.mass.sum())
    compared = _Compared(
        people=people,
        weight=weight,
        excess=value - off.excess,
        violated=violated - off.violated,
        row_means=1.0 - approximate.row_excess(people, moments, weight) / total_weight,
        squares=people.weights**2,
        effective=total_weight**2 / moments.squares,
        error=approximate.WIDTHS * float(np.sqrt(clustering)) * off.excess_stderr + TOLERANCE,
    )
    return compared.result(n, confidence, "grid")


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compared:
    """Means over the pairs of people, with the data for their standard error.

    Parameters
    ----------
    people, weight : the compared people, and the weight of effort in their distance.
    excess, violated : the mean of max(0, D - d) over all pairs, and the share of pairs with D > d.
    row_means, squares : each row's mean h of F, and the sum of squared weights v² of the people it represents.
    effective : the effective number of people, V² / sum v².
    error : a bound of the difference between `excess` and the mean over all pairs.
    """

    people: ScoredPeople
    weight: float
    excess: float
    violated: float
    row_means: FloatArray
    squares: FloatArray
    effective: float
    error: float

    def result(self, n: int, confidence: float, method: str) -> PairFairness:
        """Return the result for n people, with se² = 4 sum v² (h - mean h)² / V²."""
        excess, violated = (min(1.0, max(0.0, share)) for share in (self.excess, self.violated))
        stderr = 2.0 * weighted_spread(self.row_means, self.squares) / float(np.sqrt(self.effective))
        spread = widened(stderr, (self.people,), self.weight, self.effective)
        low, high = limits(1.0 - excess, spread, self.effective - 1.0, confidence, self.error)
        return PairFairness(
            value=1.0 - excess,
            low=low,
            high=high,
            stderr=stderr if excess > 0 else float("nan"),
            n=n,
            pairs=n * (n - 1) // 2,
            violated=violated,
            method=method,
            error=self.error,
            row_means=self.row_means,
            survey_weight=self.squares,
            sampled_from=self.effective,
            people=self.people,
            weight=self.weight,
            spread=spread,
            freedom=self.effective - 1.0,
        )


def fairness_by_weight(
    score: FloatArray,
    effort: FloatArray,
    aggregate: FloatArray,
    weights: Sequence[float],
    survey_weight: FloatArray | None = None,
    *,
    exact_rows: int = EXACT_ROWS,
    seed: int = 0,
    distance: Distance = EUCLIDEAN,
    device: Device = "cpu",
) -> tuple[FloatArray, FloatArray]:
    """Return individual fairness at each weight, and the numerical error of each value.

    Up to `exact_rows` distinct people the values are exact. Above, one grid serves all weights. Its bias is estimated
    on 65,536 random pairs (the same for all weights) and subtracted, and the error is four standard errors of this
    estimate. The values are therefore unbiased even with atoms, where the grid's own extrapolation step is too small.

    Parameters
    ----------
    score, effort, aggregate, survey_weight
        One number per person; see `evenhand.stats.pairs.individual_fairness`.
    weights
        Weights of effort in the distance.
    exact_rows
        The largest number of distinct people for comparing all pairs.
    seed
        Seed of the random pairs.
    distance
        The distance between people; by default the paper's.
    device
        'cuda': all weights in one launch of a graphics card, exact up to 5 million distinct people.

    Examples
    --------
    >>> import numpy as np
    >>> score, effort, aggregate = np.random.default_rng(0).random((3, 2_000))
    >>> exact, none = fairness_by_weight(score, effort, aggregate, [0.0, 0.5])
    >>> near, error = fairness_by_weight(score, effort, aggregate, [0.0, 0.5], exact_rows=100)
    >>> bool((none == 0).all()), bool((abs(near - exact) < error).all()), bool((error < 1e-4).all())
    (True, True, True)
    """
    if distance.function is None and is_card(device) and _different(score, effort, aggregate, CARD_ROWS) <= CARD_ROWS:
        everybody = check_people(score, effort, aggregate, survey_weight)
        return card_values([distance.transform(everybody, check_weight(w)) for w in weights]), np.zeros(len(weights))
    if distance.function is not None or _different(score, effort, aggregate, exact_rows) <= exact_rows:
        results = [
            individual_fairness(score, effort, aggregate, w, survey_weight=survey_weight, distance=distance)
            for w in weights
        ]
        return np.array([result.value for result in results]), np.array([result.error for result in results])
    plain = check_people(score, effort, aggregate, survey_weight)
    values, errors = np.empty(len(weights)), np.empty(len(weights))
    for indices in distance.same_coordinates(weights):  # weights with equal coordinates share a grid
        placed = [distance.transform(plain, weights[number]) for number in indices]
        people = placed[0][0]
        fine = bin_people(people, bounds=approximate.common_on_points(people))
        inner = [weight for _, weight in placed]
        values[indices], errors[indices] = corrected_grid(fine, people, inner, np.random.default_rng(seed))
    return values, errors


def corrected_grid(
    fine: GridMoments, people: ScoredPeople, weights: Sequence[float], rng: Generator, *, sample: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return individual fairness at each weight from a grid corrected on random pairs, and its numerical error.

    If the people are a sample of the people on the grid, the variance between people adds at most 4 / n times the
    variance between pairs; the error includes this maximum.
    """
    coarse = fine.coarser()
    excess = grid_excess(coarse, fine, weights).value
    added, stderr = _corrections(people, coarse, fine, weights, rng)
    wider = np.sqrt(1.0 + 4.0 * _PAIRS / len(people)) if sample else 1.0
    return 1.0 - np.clip(excess - added, 0.0, 1.0), approximate.WIDTHS * wider * stderr + TOLERANCE


def _corrections(
    people: ScoredPeople, coarse: GridMoments, fine: GridMoments, weights: Sequence[float], rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the bias of the extrapolated grid at each weight, and its standard error on random pairs."""
    from evenhand.stats.pairs.kernels import deviations

    pairs = tuple(approximate.gathered(people, rows) for rows in approximate.PairDraw(people).pairs(_PAIRS, rng))
    corrections, out = [], np.empty((_PAIRS, 2))
    for weight in weights:
        rough, close = excess_table(coarse, weight), excess_table(fine, weight)
        deviations(pairs, weight, TOLERANCE, fine.scale, (rough, close, close), fine.shape, out)
        corrections.append((out[:, 0].mean(), out[:, 0].std(ddof=1) / np.sqrt(_PAIRS)))
    added, stderr = np.array(corrections).reshape(-1, 2).T
    return added, stderr


def _different(score: FloatArray, effort: FloatArray, aggregate: FloatArray, enough: int) -> int:
    """Return the number of distinct people, or a lower bound of it above `enough`."""
    if score.size <= enough:
        return int(score.size)
    part = slice(None, None, max(1, score.size // (4 * enough)))
    in_part = distinct(hashes(score[part], effort[part], aggregate[part]))
    return in_part if in_part > enough else distinct(hashes(score, effort, aggregate))
