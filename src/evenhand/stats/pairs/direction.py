"""Direction of effort: how often the person who came further gets the worse score of a pair.

A pair (i, j) is *comparable*, i ahead of j, if effort_i > effort_j, start_i <= start_j and end_i >= end_j: i came
further, from no better a start to no worse an end. It is *reversed* if i's score is below j's (higher scores are better
for the person here), *concordant* if above, else tied. Scores that follow the level reached, the change or the effort
cause no reversals; a random score reverses as many pairs as it orders correctly, (1 - t) / 2, with t the share of all
pairs with equal scores. Without the condition on the end, scores that follow the level reached would look worse than
chance.

All pairs are counted, exactly: equal people are merged, ordered along a k-d tree within their group and cut into blocks
of 128; two blocks without comparable pairs are skipped. Each block sums its own rows, so the sums are bit-identical on
any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_at_least
from evenhand.stats.intervals import logit_t, tail_share
from evenhand.stats.pairs.exact import BLOCK, near_neighbours
from evenhand.stats.pairs.inputs import TOLERANCE, check_people, starts
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.workers import Progress, Step, run_chains

_STEP_PAIRS = 2**25
_THREAD_PAIRS = 2**20
_DIGITS = 11  # digits of a shortfall, so that rounding breaks no tie
COMPARABLE, REVERSED, CONCORDANT, SHORTFALL = range(4)
_BEHIND = 4


class ReversalShare(NamedTuple):
    """A share of comparable pairs, or the mean shortfall of reversed pairs, with its interval; nan if undefined.

    If no pair is of the kind, `low` is 0 and `high` is an upper limit.
    """

    value: float
    low: float
    high: float
    stderr: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Reversals:
    """Sums over comparable pairs between people ahead and people behind, by person.

    Attributes
    ----------
    sums
        (people, 4) over the pairs of each person, on either side: comparable, reversed, concordant, summed shortfall;
        times the person's weight.
    totals
        (4,) the same sums over all pairs, counting each pair once.
    n
        The number of people who can be in a comparable pair.
    kish
        The effective number of these people.
    matchings
        The number of sets of pairs without common people into which all pairs can be partitioned.
    random
        The expected share of reversed, and of concordant, pairs for a random score.
    """

    sums: FloatArray = field(repr=False)
    totals: FloatArray
    n: int
    kish: float
    matchings: float
    random: float

    @property
    def pairs(self) -> float:
        """The total weight of the comparable pairs; without weights, their number."""
        return float(self.totals[COMPARABLE])

    @property
    def tied(self) -> float:
        """The share of comparable pairs with equal scores."""
        return 1.0 - float(self.totals[REVERSED] + self.totals[CONCORDANT]) / self.pairs if self.pairs else float("nan")

    def mean(self, kind: int) -> float:
        """Return the share of `REVERSED` or `CONCORDANT` pairs, or the mean `SHORTFALL`; nan without pairs."""
        if kind == SHORTFALL:
            return float(self.totals[SHORTFALL] / self.totals[REVERSED]) if self.totals[REVERSED] > 0 else float("nan")
        return min(1.0, float(self.totals[kind]) / self.pairs) if self.pairs else float("nan")

    def reversed(self, confidence: float = 0.95) -> ReversalShare:
        """Return the share of reversed pairs among comparable pairs, with its interval."""
        return self._share(REVERSED, confidence)

    def concordant(self, confidence: float = 0.95) -> ReversalShare:
        """Return the share of concordant pairs among comparable pairs, with its interval."""
        return self._share(CONCORDANT, confidence)

    def shortfall(self, confidence: float = 0.95) -> ReversalShare:
        """Return the mean shortfall of the person ahead in reversed pairs, with its interval."""
        if not self.totals[REVERSED] > 0:
            return ReversalShare(*[float("nan")] * 4)
        return self._with_limits(self.mean(SHORTFALL), self._apart(SHORTFALL, REVERSED), confidence)

    def p_value(self) -> float:
        """Return the p-value of the null that reversed and concordant pairs are equally many.

        This holds for a random score. The test is Student's t of the concordant minus the reversed share, with the
        jackknife's standard error; nan if the standard error is 0 or undefined.
        """
        from scipy.special import stdtr

        if not self.pairs:
            return float("nan")
        apart = self._apart(CONCORDANT, COMPARABLE) - self._apart(REVERSED, COMPARABLE)
        value, stderr = float(self.totals[CONCORDANT] - self.totals[REVERSED]) / self.pairs, self._spread(apart)
        return float(2.0 * stdtr(self._freedom(apart), -abs(value) / stderr)) if stderr > 0 else float("nan")

    def _share(self, kind: int, confidence: float) -> ReversalShare:
        if not self.pairs:
            return ReversalShare(*[float("nan")] * 4)
        value = self.mean(kind)
        if 0.0 < value < 1.0:
            return self._with_limits(value, self._apart(kind, COMPARABLE), confidence)
        # Pairs of different people are independent: none of m such pairs is of the kind with probability (1 - share)^m.
        reach = 1.0 - tail_share(confidence) ** (self.matchings / self.pairs)
        return (
            ReversalShare(value, 0.0, reach, float("nan"))
            if value == 0.0
            else ReversalShare(value, 1.0 - reach, 1.0, float("nan"))
        )

    def _with_limits(self, value: float, apart: FloatArray, confidence: float) -> ReversalShare:
        stderr = self._spread(apart)
        low, high = logit_t(value, stderr, self._freedom(apart), confidence)
        return ReversalShare(value, float(low), float(high), stderr)

    def _apart(self, above: int, below: int) -> FloatArray:
        """Return the change of the ratio of two sums when each person is left out; nan if nothing would be left."""
        over, under = (self.totals[kind] - self.sums[:, kind] for kind in (above, below))
        with np.errstate(all="ignore"):
            apart = over / under - self.totals[above] / self.totals[below]
        return np.where(under > 1e-9 * self.totals[below], apart, np.nan)

    def _spread(self, apart: FloatArray) -> float:
        """Return the jackknife standard error from the changes when each person is left out."""
        return float(np.sqrt((self.n - 1) / self.n * np.sum(apart**2))) if self.n > 2 else float("nan")

    def _freedom(self, apart: FloatArray) -> float:
        """Return the degrees of freedom of the jackknife's variance, at most the effective number of people - 1.

        With a the changes, the degrees of freedom of sum a² are 2 (sum a²)² / (sum a⁴ - (sum a²)² / n), twice the
        square of its mean over its variance (Satterthwaite 1946). They are n for normal changes, and 2 k if k people
        cause all changes.
        """
        squared_changes = apart**2
        squares, fourth = float(np.sum(squared_changes)), float(np.sum(squared_changes**2))
        excess = fourth - squares**2 / self.n
        return min(self.kish - 1.0, 2.0 * squares**2 / excess) if excess > 0 else self.kish - 1.0


@dataclass(frozen=True, eq=False)
class Direction:
    """Counts of all comparable pairs, by person and by group of the other person.

    Attributes
    ----------
    counts
        (people, groups, 8) comparable, reversed, concordant weight and shortfall of the people in each group behind the
        person, then the same four sums for the people ahead.
    group
        (people,) the group of each.
    weight
        (people,) survey weights of mean 1; ones without weights.
    random
        The expected share of reversed pairs for a random score.
    """

    counts: FloatArray = field(repr=False)
    group: IntArray = field(repr=False)
    weight: FloatArray = field(repr=False)
    random: float

    @cached_property
    def everybody(self) -> Reversals:
        """The sums over the comparable pairs of all people."""
        both = self.counts.sum(axis=1)
        ahead, behind = both[:, :_BEHIND], both[:, _BEHIND:]
        everyone = np.ones(len(self.weight), dtype=bool)
        return self._reversals(ahead, behind, self.weight, everyone, everyone)

    def between(self, ahead: int, behind: int) -> Reversals:
        """Return the sums over pairs with the person ahead in group `ahead` and the other in group `behind`."""
        rows = np.flatnonzero((self.group == ahead) | (self.group == behind))
        first, second = self.group[rows] == ahead, self.group[rows] == behind
        of_first = np.where(first[:, np.newaxis], self.counts[rows, behind, :_BEHIND], 0.0)
        of_second = np.where(second[:, np.newaxis], self.counts[rows, ahead, _BEHIND:], 0.0)
        return self._reversals(of_first, of_second, self.weight[rows], first, second)

    def _reversals(
        self, ahead: FloatArray, behind: FloatArray, weights: FloatArray, first: BoolArray, second: BoolArray
    ) -> Reversals:
        """Return the sums over people who may be ahead (`first`) or behind (`second`)."""
        weight, members = weights[:, np.newaxis], weights > 0
        kish = [_kish(weights[side]) for side in (first, second, members)]
        together = bool((first & second).any())
        matchings = kish[2] - 1.0 + kish[2] % 2 if together else max(kish[:2])
        totals = (weight * ahead).sum(axis=0)
        return Reversals(
            sums=(weight * (ahead + behind))[members],
            totals=totals,
            n=int(members.sum()),
            kish=kish[2],
            matchings=matchings,
            random=self.random,
        )


def compare_groups(first: Reversals, second: Reversals, confidence: float = 0.95) -> tuple[ReversalShare, float]:
    """Return the difference of two sets' shares of reversed pairs, and its p-value.

    Both sets contain the same people. The limits combine the limits of both shares (MOVER) with the jackknife's
    correlation. This correlation is negative: a person scored too well causes fewer reversals when ahead and more when
    behind.

    References
    ----------
    G. Y. Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12.
    """
    (share,), p_value = compare_groups_at(first, second, [confidence])
    return share, p_value


def compare_groups_at(
    first: Reversals, second: Reversals, confidences: Sequence[float]
) -> tuple[list[ReversalShare], float]:
    """Return the result of `compare_groups` at several confidences, with one p-value."""
    from scipy.special import stdtr

    if not (first.pairs and second.pairs) or first.sums.shape != second.sums.shape:
        return [ReversalShare(*[float("nan")] * 4)] * len(confidences), float("nan")
    apart = [x._apart(REVERSED, COMPARABLE) for x in (first, second)]
    with np.errstate(all="ignore"):
        norm = np.sqrt(np.sum(apart[0] ** 2) * np.sum(apart[1] ** 2))
        rho = float(np.sum(apart[0] * apart[1]) / norm) if norm > 0 else 0.0
    difference = apart[0] - apart[1]
    value, stderr, shares = first.mean(REVERSED) - second.mean(REVERSED), first._spread(difference), []
    for confidence in confidences:
        a, b = first.reversed(confidence), second.reversed(confidence)
        down, up = ((a.value - a.low, b.high - b.value), (a.high - a.value, b.value - b.low))
        low, high = (np.sqrt(max(0.0, x * x - 2.0 * rho * x * y + y * y)) for x, y in (down, up))
        shares.append(ReversalShare(value, max(-1.0, value - float(low)), min(1.0, value + float(high)), stderr))
    p = float(2.0 * stdtr(first._freedom(difference), -abs(value) / stderr)) if stderr > 0 else float("nan")
    return shares, p


def count_reversals(
    score: ArrayLike,
    effort: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    *,
    group: ArrayLike | None = None,
    survey_weight: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Direction:
    """Count the comparable, reversed and concordant pairs exactly, over all pairs of people.

    Parameters
    ----------
    score
        Scores in [0, 1]; higher is better for the person.
    effort
        Effort, one number per person; see `evenhand.stats.effort.effort_scores`.
    start, end
        First and last value of the trajectory; higher is better.
    group
        The number of each person's group, from 0; by default all people are in one group.
    survey_weight
        The weight of each person, 0 or more. Only ratios matter.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called as `progress(done, total)` from time to time.

    Examples
    --------
    >>> found = count_reversals([0.2, 0.9, 0.5], effort=[0.9, 0.5, 0.1], start=[0, 0, 0], end=[5, 3, 1]).everybody
    >>> found.pairs, found.totals[1:3].tolist()  # the first is ahead of both and scored below both
    (3.0, [2.0, 1.0])
    """
    people = check_people(score, effort, start, survey_weight)
    last = np.ascontiguousarray(end, dtype=np.float64)
    if last.shape != people.score.shape or not np.isfinite(last).all():
        raise EvenhandError(
            "`end` must be one finite number per person; got an array of shape {shape}.", shape=last.shape
        )
    codes = np.zeros(len(people), dtype=np.int64) if group is None else np.asarray(group, dtype=np.int64)
    require_at_least("group", int(codes.min()), 0)
    axes = [snapped(x) for x in (people.effort, people.aggregate, last, people.score)]
    order = np.lexsort([*axes, codes])
    new = starts(*(axis[order] for axis in axes), codes[order].astype(np.float64))
    row = np.empty(len(people), dtype=np.int64)
    row[order] = np.cumsum(new) - 1
    first = order[np.flatnonzero(new)]
    weight = np.asarray(np.bincount(row, people.weights), dtype=np.float64)
    rows = _row_counts(np.stack([axis[first] for axis in axes]), weight, codes[first], threads, progress)
    return Direction(rows[row], codes, people.weights, (1.0 - _tied(axes[3], people.weights)) / 2.0)


def _row_counts(
    points: FloatArray, weight: FloatArray, group: IntArray, threads: int | None, progress: Progress | None
) -> FloatArray:
    """Return (rows, groups, 8) the pair counts of every distinct row."""
    from evenhand.stats.pairs.ahead import count_ahead

    positions, blocks_of = [], []
    for code in range(int(group.max()) + 1):
        members = np.flatnonzero(group == code)
        ordered = members[near_neighbours(points[:3, members])] if members.size else members
        positions.append(np.append(ordered, np.repeat(ordered[-1:], -members.size % BLOCK)))
        blocks_of += [code] * (positions[-1].size // BLOCK)
    position = np.concatenate(positions).astype(np.int64)
    is_first = np.zeros(position.size, dtype=bool)
    is_first[np.unique(position, return_index=True)[1]] = True  # padding repeats a row with weight 0
    points_in_order, weight_in_order = np.take(points, position, axis=1), np.where(is_first, weight[position], 0.0)
    of_block, count = np.array(blocks_of, dtype=np.int64), len(blocks_of)
    out = np.zeros((position.size, int(group.max()) + 1, 8))
    # People behind are counted as people ahead among the negated: most pairs of blocks can hold only one of the two.
    sides = (
        (*_boxed(points_in_order, weight_in_order), out[..., :_BEHIND]),
        (*_boxed(-points_in_order, weight_in_order), out[..., _BEHIND:]),
    )
    size = max(1, _STEP_PAIRS // (position.size * BLOCK))

    def count_blocks(begin: int, after: int) -> None:
        for columns, bounds, out_side in sides:
            count_ahead(columns, bounds, of_block, (begin, after), out_side)

    def chain(number: int) -> Iterator[Step]:
        begin, after = number * size, min(count, (number + 1) * size)
        yield (after - begin) * BLOCK * position.size, partial(count_blocks, begin, after)

    total = position.size**2
    chains = [chain(number) for number in range(-(-count // size))]
    run_chains(chains, total, threads=1 if total < _THREAD_PAIRS else threads, progress=progress)
    rows = np.empty((weight.size, *out.shape[1:]))
    rows[position[is_first]] = out[is_first]
    return rows


def _boxed(
    points_in_order: FloatArray, weight: FloatArray
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, FloatArray]]:
    """Return the columns with their weights, and the bounds of each block."""
    boxes = points_in_order[:3].reshape(3, -1, BLOCK)
    return (*points_in_order, weight), (boxes.min(axis=2).T.copy(), boxes.max(axis=2).T.copy())


def snapped(values: FloatArray) -> FloatArray:
    """Return values with rounding differences removed, so that rounding puts no person ahead.

    Examples
    --------
    >>> snapped(np.array([0.1 + 0.2, 0.3, 1.0])).tolist()
    [0.3, 0.3, 1.0]
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    room = TOLERANCE * max(1.0, float(np.abs(ranked[[0, -1]]).max()))
    begins = np.append(True, np.diff(ranked) > room)
    result = np.empty_like(values)
    result[order] = ranked[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return result


def _tied(score: FloatArray, weight: FloatArray) -> float:
    """Return the share of all pairs with equal scores."""
    weight_by_score = np.bincount(np.unique(score, return_inverse=True)[1], weight)
    squares = float(np.sum(weight**2))
    return (float(np.sum(weight_by_score**2)) - squares) / (float(weight.sum()) ** 2 - squares)


def _kish(weight: FloatArray) -> float:
    return float(weight.sum() ** 2 / np.sum(weight**2)) if weight.any() else 0.0


class ReversedPairs(NamedTuple):
    """Pairs (k, 2) of the person ahead and the person behind, with the shortfalls, largest first."""

    people: IntArray
    shortfall: FloatArray


def worst_reversals(
    score: ArrayLike, effort: ArrayLike, start: ArrayLike, end: ArrayLike, count: int = 10
) -> ReversedPairs:
    """Return the reversed pairs with the largest shortfalls; ties are ordered by the people's numbers.

    The candidates for the person ahead are the `count` people with the largest shortfalls.

    Examples
    --------
    >>> worst = worst_reversals([0.2, 0.9, 0.5], [0.9, 0.5, 0.1], [0, 0, 0], [5, 3, 1], count=1)
    >>> worst.people.tolist(), worst.shortfall.round(6).tolist()
    ([[0, 1]], [0.7])
    """
    from evenhand.stats.pairs.ahead import largest_shortfall

    require_at_least("count", count, 1)
    people = check_people(score, effort, start)
    axes = tuple(snapped(x) for x in (people.effort, people.aggregate, np.asarray(end, np.float64), people.score))
    order = np.argsort(-axes[3], kind="stable")
    most = np.empty(len(people))
    ranked = np.empty(len(people))
    largest_shortfall(tuple(x[order] for x in axes), ranked)
    most[order] = ranked
    ahead = np.lexsort((np.arange(most.size), -np.round(most, _DIGITS)))[:count]
    reversals = []
    e, s, t, m = axes
    for i in ahead[most[ahead] > 0].tolist():
        candidates = np.flatnonzero((e[i] > e) & (s[i] <= s) & (t[i] >= t) & (m > m[i]))
        short = np.round(m[candidates] - m[i], _DIGITS)
        keep = np.lexsort((candidates, -short))[:count]
        reversals += [(-float(short[k]), i, int(candidates[k])) for k in keep.tolist()]
    reversals = sorted(reversals)[:count]
    pairs = np.array([row[1:] for row in reversals], dtype=np.int64).reshape(-1, 2)
    return ReversedPairs(pairs, np.array([-row[0] for row in reversals]))
