"""Validated inputs for comparing people, with survey weights of mean 1 and equal people merged.

The mutual excess of equal people is 0, so one row with their total weight replaces them exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import BoolArray, FloatArray, IntArray

# D and d are equal in many tables (scores that repeat the effort, values on a scale) but rarely bit-identical: a pair
# counts only if D exceeds d by more than this, so that rounding has no effect.
TOLERANCE = 1e-12
MOST_PAIRS = 2**16
_ODD = 0.3819660112501051  # the golden section, which is irrational
_HASHED = 2**14  # rows at once; they fit into a processor's cache
_Hashes = npt.NDArray[np.uint64]
OwnDistance = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ScoredPeople:
    """Scores, effort, aggregate and survey weights of n people.

    Attributes
    ----------
    score, effort, aggregate
        (n,) finite numbers; scores in [0, 1].
    survey
        (n,) survey weights, scaled to a mean of 1 over the positive weights; None if all weights are equal.
    diamond
        Whether distances are city-block, w abs(e) + (1 - w) abs(s), instead of Euclidean.
    own
        A custom distance function of the efforts and aggregates of both people.
    """

    score: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    survey: FloatArray | None = None
    diamond: bool = False
    own: OwnDistance | None = None

    def __len__(self) -> int:
        return self.score.size

    @cached_property
    def counted(self) -> int:
        """The number of people with a weight above 0."""
        return len(self) if self.survey is None else int(np.count_nonzero(self.survey))

    @property
    def weights(self) -> FloatArray:
        """(n,) the survey weights, or ones without weights."""
        return np.ones(len(self)) if self.survey is None else self.survey

    @cached_property
    def total(self) -> float:
        """The sum of the weights."""
        return float(len(self)) if self.survey is None else float(self.survey.sum())

    @cached_property
    def kish(self) -> float:
        """Kish's effective number of people; with equal weights, the number of people."""
        return float(len(self)) if self.survey is None else self.total**2 / float(np.sum(self.survey**2))

    @property
    def others(self) -> FloatArray | float:
        """The total weight of all other people, for each person (or one number for all)."""
        return self.total - (1.0 if self.survey is None else self.survey)

    def part(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return score, effort, aggregate and survey weight of a slice; the weight is empty if all are equal."""
        survey = np.empty(0) if self.survey is None else self.survey[rows]
        return self.score[rows], self.effort[rows], self.aggregate[rows], survey

    @cached_property
    def pair_weight(self) -> float:
        """The sum of v_i v_j over all pairs i < j."""
        if self.survey is None:
            return len(self) * (len(self) - 1) / 2.0
        return float(np.sum(self.survey * self.others)) / 2.0


def check_people(
    score: ArrayLike, effort: ArrayLike, aggregate: ArrayLike, survey_weight: ArrayLike | None = None
) -> ScoredPeople:
    """Return the validated people, or raise an `EvenhandError`.

    Examples
    --------
    >>> check_people([0.2, 1.2], [0.0, 0.0], [0.0, 0.0])
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: `score` must be between 0 and 1; person 1 has 1.2.
    """
    values = [_column(name, x) for name, x in (("score", score), ("effort", effort), ("aggregate", aggregate))]
    sizes = [column.size for column in values]
    if len(set(sizes)) != 1:
        raise EvenhandError(
            "`score`, `effort` and `aggregate` must have one number per person; got {sizes:,}, {sizes_2:,} "
            "and {sizes_3:,}.",
            sizes=sizes[0],
            sizes_2=sizes[1],
            sizes_3=sizes[2],
        )
    if sizes[0] < 2:
        raise EvenhandError(
            "Individual fairness compares pairs and needs at least 2 people; got {sizes}.", sizes=sizes[0]
        )
    outside = np.flatnonzero((values[0] < 0) | (values[0] > 1))
    if outside.size:
        raise EvenhandError(
            "`score` must be between 0 and 1; person {outside} has {values:g}.",
            outside=outside[0],
            values=values[0][outside[0]],
        )
    survey = None if survey_weight is None else _survey(survey_weight, sizes[0])
    return ScoredPeople(score=values[0], effort=values[1], aggregate=values[2], survey=survey)


def check_weight(weight: float) -> float:
    """Return the validated weight of effort in the distance, or raise an `EvenhandError`.

    Examples
    --------
    >>> check_weight(1.5)
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: `weight` must be between 0 and 1; got 1.5.
    """
    if not 0.0 <= weight <= 1.0:
        raise EvenhandError("`weight` must be between 0 and 1; got {weight!r}.", weight=weight)
    return float(weight)


def _column(name: str, values: ArrayLike) -> FloatArray:
    column = np.ascontiguousarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise EvenhandError(
            "`{name}` must have one number per person; got an array of shape {shape}.", name=name, shape=column.shape
        )
    if not np.isfinite(column.sum()) and not np.isfinite(column).all():
        bad = int(np.flatnonzero(~np.isfinite(column))[0])
        raise EvenhandError(
            "`{name}` must be finite; person {bad} has {column}.", name=name, bad=bad, column=column[bad]
        )
    return column


def _survey(values: ArrayLike, people: int) -> FloatArray | None:
    weights = _column("survey_weight", values)
    if weights.size != people:
        raise EvenhandError(
            "`survey_weight` must have one number per person; got {size:,} for {people:,}.",
            size=weights.size,
            people=people,
        )
    if weights.min() < 0:
        bad = int(np.flatnonzero(weights < 0)[0])
        raise EvenhandError(
            "`survey_weight` must be 0 or more; person {bad} has {weights:g}.", bad=bad, weights=weights[bad]
        )
    positive = np.count_nonzero(weights)
    if positive < 2:
        raise EvenhandError("`survey_weight` must be above 0 for at least 2 people; got {positive}.", positive=positive)
    if weights.min() == weights.max():
        return None  # everybody counts the same
    return np.asarray(weights / (weights.sum() / positive))


def excess_of(people: ScoredPeople, weight: float, i: IntArray, j: IntArray) -> FloatArray:
    """Return max(0, D - d) for pairs of people; 0 if D exceeds d only by rounding.

    Examples
    --------
    >>> people = ScoredPeople(np.array([0.1, 0.9]), np.array([0.0, 0.3]), np.zeros(2))
    >>> excess_of(people, 1.0, np.array([0]), np.array([1]))
    array([0.5])
    """
    excess = np.abs(people.score[i] - people.score[j]) - distance_of(people, weight, i, j)
    return np.where(excess > TOLERANCE, excess, 0.0)


def distance_of(people: ScoredPeople, weight: float, i: IntArray, j: IntArray) -> FloatArray:
    """Return the distance d in effort and aggregate for pairs of people.

    Examples
    --------
    >>> people = ScoredPeople(np.array([0.1, 0.9]), np.array([0.0, 0.3]), np.array([0.0, 0.4]))
    >>> distance_of(people, 0.5, np.array([0]), np.array([1])).round(4)
    array([0.3536])
    """
    if people.own is not None:
        return own_distance(people.own, people.effort[i], people.aggregate[i], people.effort[j], people.aggregate[j])
    effort, aggregate = people.effort[i] - people.effort[j], people.aggregate[i] - people.aggregate[j]
    if people.diamond:
        return np.asarray(weight * np.abs(effort) + (1.0 - weight) * np.abs(aggregate))
    return np.asarray(np.sqrt(weight * effort**2 + (1.0 - weight) * aggregate**2))


def own_distance(own: OwnDistance, *columns: FloatArray) -> FloatArray:
    """Return the values of a custom distance function, or raise if they are invalid."""
    try:
        distances = np.asarray(own(*columns), dtype=np.float64)
    except Exception as error:
        raise EvenhandError(
            "the distance function failed: {name}: {error}", name=type(error).__name__, error=error
        ) from error
    shape = np.broadcast_shapes(*(column.shape for column in columns))
    if distances.shape != shape:
        raise EvenhandError(
            "the distance function must return one number a pair, {shape}; got shape {shape_2}.",
            shape=shape,
            shape_2=distances.shape,
        )
    if not (np.isfinite(distances).all() and (distances >= 0).all()):
        bad = distances[~(np.isfinite(distances) & (distances >= 0))].flat[0]
        raise EvenhandError(
            "the distance function must return finite numbers of 0 or more; it returned {bad:g}.", bad=bad
        )
    return distances


def some_pairs(*columns: FloatArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of people, or 65,536 random pairs if there are more, whatever the order of the rows.

    Examples
    --------
    >>> [side.size for side in some_pairs(np.zeros(4))], [side.size for side in some_pairs(np.arange(1000.0))]
    ([6, 6], [65536, 65536])
    """
    size = columns[0].size
    if size * (size - 1) // 2 <= MOST_PAIRS:
        i, j = np.triu_indices(size, 1)
        return np.asarray(i, dtype=np.int64), np.asarray(j, dtype=np.int64)
    order = _mixed_order(columns)
    rng = np.random.default_rng(0)
    first, other = rng.integers(0, size, MOST_PAIRS), rng.integers(0, size - 1, MOST_PAIRS)
    return order[first], order[other + (other >= first)]


def _mixed_order(columns: tuple[FloatArray, ...]) -> IntArray:
    """Return people in a pseudo-random order that does not depend on the order of the rows.

    The order follows a hash of rounded values, because on another processor an effort may differ in its last bit, which
    should change neither the drawn people nor the order of additions. People with equal rounded values are ordered by a
    hash of all digits; equal people are adjacent, in the order of the rows.
    """
    rough = hashes(*(_rounded(column) for column in columns))
    order = np.argsort(rough)  # not stable, which is faster: ties are ordered below
    equal = np.diff(rough[order]) == 0
    tied = np.flatnonzero(np.append(False, equal) | np.append(equal, False))
    members = order[tied]
    exact = hashes(*(column[members] for column in columns))
    order[tied] = members[np.lexsort((members, exact, rough[members]))]
    return order


def _rounded(column: FloatArray) -> FloatArray:
    """Return numbers rounded to about six digits, at boundaries that numbers with few digits do not hit.

    Examples
    --------
    >>> _rounded(np.array([0.5, 0.5 + 1e-12, 0.50001, -0.5]))
    array([ 524288.,  524288.,  524298., -524288.])
    """
    _, exponent = np.frexp(np.abs(column).max(initial=0.0))
    return np.floor(np.ldexp(column, 20 - int(exponent)) + _ODD)


@dataclass(frozen=True, eq=False, kw_only=True)
class Merged:
    """The distinct rows of (score, effort, aggregate), in an order independent of the order of people.

    Attributes
    ----------
    score, effort, aggregate
        (rows,) the distinct values.
    weight
        (rows,) the total weight of the people on each row.
    first
        (rows,) the number of one person on each row.
    row
        (n,) the row of each person.
    diamond
        Whether distances are city-block.
    """

    score: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    weight: FloatArray
    first: IntArray
    row: IntArray
    diamond: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of distances as an argument of the compiled loops: (0,) for city-block, () for Euclidean."""
        return (0,) if self.diamond else ()

    def __len__(self) -> int:
        return self.score.size


def merge_people(people: ScoredPeople, order: IntArray | None = None) -> Merged:
    """Return the distinct rows of people with their total weights.

    Parameters
    ----------
    people
        The people.
    order
        An order in which equal people are adjacent; by default the order of hashes of the three values.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.array([0.1, 0.7, 0.1])
    >>> merged = merge_people(ScoredPeople(score, np.zeros(3), np.zeros(3)))
    >>> sorted(zip(merged.score.tolist(), merged.weight.tolist()))
    [(0.1, 2.0), (0.7, 1.0)]
    >>> merged.score[merged.row]
    array([0.1, 0.7, 0.1])
    """
    if order is None:
        order = _mixed_order((people.score, people.effort, people.aggregate))
    new = starts(people.score[order], people.effort[order], people.aggregate[order])
    start = np.flatnonzero(new)
    row = np.empty(len(people), dtype=np.int64)
    row[order] = np.cumsum(new) - 1
    first = order[start]
    if people.survey is None:
        weight = np.diff(np.append(start, len(people))).astype(np.float64)
    else:
        weight = np.add.reduceat(people.survey[order], start)
    return Merged(
        score=people.score[first],
        effort=people.effort[first],
        aggregate=people.aggregate[first],
        weight=weight,
        first=first,
        row=row,
        diamond=people.diamond,
    )


def starts(*columns: FloatArray) -> BoolArray:
    """Return whether each row differs from the previous row.

    Examples
    --------
    >>> import numpy as np
    >>> starts(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0]))
    array([ True, False,  True])
    """
    new = np.ones(columns[0].size, dtype=np.bool_)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def hashes(*columns: FloatArray) -> _Hashes:
    """Return a 64-bit hash of each row; collisions reduce merging but never make it wrong.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, -0.0])
    >>> h = hashes(x, np.zeros(3))
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    hashed = np.zeros(columns[0].size, dtype=np.uint64)
    for start in range(0, hashed.size, _HASHED):
        mixed = hashed[start : start + _HASHED]
        for column in columns:
            mixed += (column[start : start + _HASHED] + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
            for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
                mixed ^= mixed >> np.uint64(shift)
                mixed *= np.uint64(factor)
            mixed ^= mixed >> np.uint64(32)
    return hashed


def distinct(hashed: _Hashes) -> int:
    """Return the number of distinct hashes; sorts the hashes in place.

    Examples
    --------
    >>> import numpy as np
    >>> distinct(np.array([3, 1, 3], dtype=np.uint64))
    2
    """
    hashed.sort()
    return int(np.count_nonzero(hashed[1:] != hashed[:-1])) + 1
