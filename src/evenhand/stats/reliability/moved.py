"""Effects of mistakes on a person's position: changed risk levels, and moves past similar people.

Every estimate is a mean over replicates with an influence value for each person. The influences give the standard
errors of an estimate and of the difference of two estimates without resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.stats.intervals import t_quantile
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

LEAST_MOVED = 5.0
"""The effective number of changed people, (sum d)² / sum d² of their shares d of changed runs, for an interval."""


def risk_level(scores: FloatArray, cuts: FloatArray) -> IntArray:
    """Return the risk level of each score: the number of cut-offs below the score.

    Examples
    --------
    >>> risk_level(np.array([0.1, 0.3, 0.31, 0.9]), np.array([0.3, 0.6])).tolist()
    [0, 0, 1, 2]
    """
    return np.asarray(np.searchsorted(cuts, scores, side="left"), dtype=np.int64)


def weighted_parts(table: FloatArray, distances: FloatArray) -> dict[str, FloatArray]:
    """Return weighted kappa, weighted PABAK, and the prevalence and bias parts of their difference.

    With D the distances of the levels, o the shares of pairs of levels, r and s its margins, m = (r + s) / 2 and d = (r
    - s) / 2, the disagreement by chance is r'Ds = m'Dm - d'Dd, and u = sum D / q² with even margins. Then

        kappa = 1 - sum D o / r'Ds        weighted PABAK = 1 - sum D o / u
        weighted PABAK - kappa = (1 - kappa)(1 - m'Dm / u) + (1 - kappa) d'Dd / u

    exactly: the prevalence part and the bias part, which is 0 or less for linear and quadratic distances. With two
    levels this is Byrt, Bishop and Carlin's relation, (1 - kappa) PI² - (1 - kappa) BI².

    Parameters
    ----------
    table
        (..., q, q) counts or shares of people by their level without and with mistakes.
    distances
        (q, q), symmetric, 0 on the diagonal.

    References
    ----------
    J. Cohen (1968), Weighted kappa, Psychological Bulletin 70. T. Byrt, J. Bishop and J. B. Carlin (1993), Bias,
    prevalence and kappa, Journal of Clinical Epidemiology 46. The parts for more than two levels are ours.

    Examples
    --------
    >>> found = weighted_parts(np.array([[40.0, 5.0], [10.0, 45.0]]), 1.0 - np.eye(2))
    >>> {name: round(float(value), 4) for name, value in found.items()}
    {'kappa': 0.7, 'pabak': 0.7, 'prevalence_part': 0.0008, 'bias_part': -0.0008}
    """
    share = table / table.sum(axis=(-1, -2), keepdims=True)
    first, second = share.sum(axis=-1), share.sum(axis=-2)
    mean, half = (first + second) / 2.0, (first - second) / 2.0
    even = distances.mean()
    observed = np.einsum("...ij,ij->...", share, distances)
    with np.errstate(all="ignore"):
        kappa = 1.0 - observed / np.einsum("...i,ij,...j->...", first, distances, second)
        prevalence = (1.0 - kappa) * (1.0 - np.einsum("...i,ij,...j->...", mean, distances, mean) / even)
        bias = (1.0 - kappa) * np.einsum("...i,ij,...j->...", half, distances, half) / even
    return {"kappa": kappa, "pabak": 1.0 - observed / even, "prevalence_part": prevalence, "bias_part": bias}


def level_metrics(table: FloatArray) -> dict[str, FloatArray]:
    """Return the metrics of a table (..., q, q) of risk levels without and with mistakes, by name.

    `agreement` is the share of people whose level does not change; `stays 0` and so on are the same share among the
    people of each level.

    Examples
    --------
    >>> found = level_metrics(np.diag([3.0, 2.0, 5.0]))
    >>> float(found["agreement"]), float(found["stays 2"]), float(found["weighted_kappa_linear"])
    (1.0, 1.0, 1.0)
    """
    q = table.shape[-1]
    apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))).astype(np.float64)
    parts = weighted_parts(table, apart)
    metrics = {"weighted_kappa_linear": parts.pop("kappa"), "weighted_pabak": parts.pop("pabak"), **parts}
    metrics["weighted_kappa_quadratic"] = weighted_parts(table, apart**2)["kappa"]
    metrics["kappa"] = weighted_parts(table, 1.0 - np.eye(q))["kappa"]
    diagonal = np.einsum("...ii->...i", table)
    with np.errstate(all="ignore"):
        metrics["agreement"] = diagonal.sum(axis=-1) / table.sum(axis=(-1, -2))
        stays = diagonal / table.sum(axis=-1)
    return {**metrics, **{f"stays {level}": stays[..., level] for level in range(q)}}


@dataclass(frozen=True)
class InfluenceEstimate:
    """The mean of a number over replicates, with the influence of each person.

    Attributes
    ----------
    value
        The number; nan if undefined in a replicate.
    influence
        (people,) n times the derivative of the number by each person's weight.
    moved
        The effective number of changed people.
    """

    value: float
    influence: FloatArray
    moved: float

    @property
    def stderr(self) -> float:
        """The standard error over people."""
        return _stderr(self.influence)

    def interval(self, confidence: float, least: float = -1.0) -> Interval | None:
        """Return value ± t se on the scale of log(1 - value), which stays in range; None if too few people changed."""
        if not np.isfinite(self.value) or self.stderr == 0 or self.moved < LEAST_MOVED or self.value >= 1:
            return None
        half = t_quantile(np.count_nonzero(self.influence) - 1, confidence) * self.stderr / (1.0 - self.value)
        low, high = 1.0 - (1.0 - self.value) * np.exp(half), 1.0 - (1.0 - self.value) * np.exp(-half)
        return Interval(np.asarray(max(low, least)), np.asarray(high))

    def difference(self, other: InfluenceEstimate, confidence: float) -> Interval | None:
        """Return confidence limits of this estimate minus another, which may share people."""
        apart = self.influence - other.influence
        if self.interval(confidence) is None or other.interval(confidence) is None:
            return None
        freedom = min(np.count_nonzero(self.influence), np.count_nonzero(other.influence)) - 1
        half = t_quantile(freedom, confidence) * _stderr(apart)
        gap = self.value - other.value
        return Interval(np.asarray(gap - half), np.asarray(gap + half))


def _stderr(influence: FloatArray) -> float:
    n = influence.size
    return float(np.sqrt((influence**2).sum() / (n * max(n - 1.0, 1.0))))


def _resting_on(damage: FloatArray) -> float:
    squares = float((damage**2).sum())
    return float(damage.sum() ** 2 / squares) if squares > 0 else 0.0


def level_estimates(first: IntArray, second: IntArray, levels: int, inside: BoolArray) -> dict[str, InfluenceEstimate]:
    """Return the risk-level metrics of a group's members, with their influences.

    Parameters
    ----------
    first, second
        (replicates, people) levels without and with mistakes.
    levels
        The number of levels.
    inside
        (people,) the members of the group.

    Examples
    --------
    >>> first, second = np.array([[0, 0, 1, 1, 2, 2]]), np.array([[0, 1, 1, 1, 2, 0]])
    >>> found = level_estimates(first, second, 3, np.ones(6, dtype=bool))
    >>> round(found["agreement"].value, 3), round(found["stays 1"].value, 3)
    (0.667, 1.0)
    """
    cell = (first * levels + second)[:, inside]
    tables = np.stack([np.bincount(row, minlength=levels**2) for row in cell]).reshape(-1, levels, levels)
    slopes = _slopes(level_metrics, tables.astype(np.float64))
    damage = (first != second)[:, inside].mean(axis=0)
    people, estimates = inside.size, {}
    for name, value in level_metrics(tables.astype(np.float64)).items():
        influence = np.zeros(people)
        influence[inside] = people * np.take_along_axis(slopes[name], cell, axis=1).mean(axis=0)
        estimates[name] = InfluenceEstimate(float(value.mean()), influence, _resting_on(damage))
    return estimates


def _slopes(metrics: Callable[[FloatArray], Mapping[str, FloatArray]], tables: FloatArray) -> dict[str, FloatArray]:
    """Return the derivative (replicates, q²) of each metric by one more person in a cell, by a complex step."""
    q, tiny = tables.shape[-1], 1e-20
    steps = np.eye(q * q).reshape(q * q, 1, q, q) * (1j * tiny)
    return {name: np.imag(value).T / tiny for name, value in metrics(tables + steps).items()}


# Passing --------------------------------------------------------------------------------------------------------------


def passing(score: FloatArray, moved: FloatArray, alike: float, inside: BoolArray) -> InfluenceEstimate:
    """Return the share of similar pairs in which a mistake moves the person past the similar one.

    Two people i and j are similar if their scores without mistakes, x_i and x_j, differ by at most `alike`. The mistake
    about i moves i past j if |y_i - x_j| > alike, with y_i the score of i with mistakes and x_j the score of j without
    mistakes. The value is the share of ordered pairs of similar people (i in the group, j any other person) in which
    this happens, averaged over replicates; 0 means that nobody is moved past a similar person. It is computed from
    ranges of positions in the sorted scores, never from pairs: the people similar to i before and after the mistake
    each form such a range.

    Parameters
    ----------
    score
        (people,) scores without mistakes.
    moved
        (replicates, people) scores with mistakes.
    alike
        The largest difference between the scores of similar people.
    inside
        (people,) the people whose mistakes count.

    Examples
    --------
    >>> score, moved = np.array([0.50, 0.51, 0.52, 0.90]), np.array([[0.50, 0.60, 0.52, 0.10]])
    >>> passing(score, moved, 0.015, np.ones(4, dtype=bool)).value
    0.5
    """
    return Reach(score, moved, alike).passing(inside)


class Reach:
    """The people similar to each person without and with mistakes, sorted once for all groups.

    Parameters
    ----------
    score, moved, alike : as for `passing`.
    """

    def __init__(self, score: FloatArray, moved: FloatArray, alike: float) -> None:
        self.order = np.argsort(score, kind="stable")
        x = score[self.order]
        self.low, self.high = _range_of(x, x - alike, x + alike)
        self.after = [self._after(x, replicate[self.order], alike) for replicate in moved]

    def _after(self, x: FloatArray, y: FloatArray, alike: float) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the range of people still similar to each person after a mistake, and if it contains the person."""
        start, stop = self.low.copy(), self.high.copy()
        off = np.flatnonzero(y != x)
        upper, lower = np.maximum(x[off], y[off]), np.minimum(x[off], y[off])
        start[off], stop[off] = _range_of(x, upper - alike, lower + alike)
        return start, np.maximum(start, stop), np.abs(y - x) <= alike

    def passing(self, inside: BoolArray) -> InfluenceEstimate:
        """Return the share of similar pairs in which mistakes move a group's member past the similar person."""
        people, is_member = self.order.size, inside[self.order]
        near = (self.high - self.low - 1.0) * is_member  # without the person
        counted_near = _cover(self.low[is_member], self.high[is_member], people) - is_member
        pairs = near.sum()
        if pairs == 0:
            return InfluenceEstimate(float("nan"), np.zeros(people), 0.0)
        passes, passed_by, damage = np.zeros(people), np.zeros(people), np.zeros(people)
        for start, stop, is_near in self.after:
            itself = is_near & is_member
            passed = near - (stop - start - itself) * is_member
            passes += passed
            passed_by += counted_near - (_cover(start[is_member], stop[is_member], people) - itself)
            damage += passed > 0
        passes, passed_by = passes / len(self.after), passed_by / len(self.after)
        value = float(passes.sum() / pairs)
        influence = np.empty(people)
        influence[self.order] = people * (passes + passed_by - value * (near + counted_near)) / pairs
        return InfluenceEstimate(value, influence, _resting_on(damage / len(self.after)))


def _range_of(ordered: FloatArray, least: FloatArray, most: FloatArray) -> tuple[IntArray, IntArray]:
    return np.searchsorted(ordered, least, side="left"), np.searchsorted(ordered, most, side="right")


def _cover(start: IntArray, stop: IntArray, places: int) -> FloatArray:
    """Return the number of ranges [start, stop) that contain each position."""
    ends = np.bincount(start, minlength=places + 1) - np.bincount(stop, minlength=places + 1)
    return np.asarray(np.cumsum(ends)[:places], dtype=np.float64)
