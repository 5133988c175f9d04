"""Variance components and limits of intraclass correlations for numeric ratings with missing values.

The model is y = mean + person + rater + error, all three random, with variances s_p, s_r and s_e. A panel with missing
ratings is reduced to sums over people with the same number of ratings, so the work does not grow with the number of
people, and people may have weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.agreement import ratings
from evenhand.stats.intervals import tail_share
from evenhand.stats.types import FloatArray, Interval

MOST_RATERS = 500
"""With more raters the variance components are not estimated: the work grows with the cube."""
_POINTS = 2**13
_PLASTIC = 1.2207440846057596  # the root of x**4 = x + 1, its powers fill the cube evenly
_TINY = 1e-9


def spread_points() -> FloatArray:
    """Return (points, 3) quasi-random numbers that fill the unit cube evenly, without a seed.

    References
    ----------
    H. Niederreiter (1992), Random Number Generation and Quasi-Monte Carlo Methods, chapter 3, on (i alpha mod 1).

    Examples
    --------
    >>> spread_points().shape
    (8192, 3)
    """
    steps = _PLASTIC ** -np.arange(1.0, 4.0)
    return np.asarray((0.5 + np.arange(1, _POINTS + 1)[:, np.newaxis] * steps) % 1.0)


def chi_squares(*freedom: ArrayLike) -> tuple[FloatArray, ...]:
    """Return three arrays (..., points) of evenly spread chi-squared numbers with the degrees of freedom `freedom`.

    Examples
    --------
    >>> [float(numbers.mean().round(1)) for numbers in chi_squares(3, 8, 24)]
    [3.0, 8.0, 24.0]
    """
    from scipy.special import chdtri

    chances = spread_points().T
    return tuple(chdtri(np.asarray(df)[..., np.newaxis], chance) for df, chance in zip(freedom, chances, strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Sums over a panel of scores, by the number of ratings per person; leading axes are simulations (weights).

    Attributes
    ----------
    size : (C,) the observed numbers of ratings.
    people : (..., C) the number of people with each number of ratings.
    both : (..., C, k, k) the number of these people whom both raters of a pair rated.
    scored : (..., C, k) the sum of their totals, by rater.
    totals, squares : (..., C) the sums of their totals and of the squares of these.
    rater : (..., k) the sum of each rater's scores.
    square : (...) the sum of all scores' squares.
    """

    size: FloatArray
    people: FloatArray
    both: FloatArray
    scored: FloatArray
    totals: FloatArray
    squares: FloatArray
    rater: FloatArray
    square: FloatArray

    @property
    def raters(self) -> int:
        """The number of raters."""
        return int(self.rater.shape[-1])

    @property
    def n(self) -> FloatArray:
        """The number of people."""
        return np.asarray(self.people.sum(axis=-1))

    @property
    def count(self) -> FloatArray:
        """The number of ratings."""
        return np.asarray((self.people * self.size).sum(axis=-1))

    @property
    def within(self) -> FloatArray:
        """The sum of squares within people."""
        return np.asarray(np.maximum(self.square - (self.squares / self.size).sum(axis=-1), 0.0))

    def one_way(self) -> FloatArray:
        """Return ICC(1) from the analysis of variance with unequal numbers of ratings; nan if undefined."""
        n, count = self.n, self.count
        with np.errstate(all="ignore"):
            between = ((self.squares / self.size).sum(axis=-1) - self.totals.sum(axis=-1) ** 2 / count) / (n - 1.0)
            within = self.within / (count - n)
            usual = (count - (self.people * self.size**2).sum(axis=-1) / count) / (n - 1.0)
            value = (between - within) / (between + (usual - 1.0) * within)
        return np.asarray(np.where((n > 1) & (count > n) & (between + within > 0), value, np.nan))

    def iccs(self) -> dict[str, FloatArray]:
        """Return every form of the intraclass correlation; nan if undefined.

        The forms for the mean of k raters require k ratings of each person.
        """
        people, rater = _reml(self)
        single = {"1": self.one_way(), "A,1": people / (people + rater + 1.0), "C,1": people / (people + 1.0)}
        k = float(self.size[0]) if self.size.size == 1 else np.nan
        mean = {
            form.replace("1", "k"): k * single_value / (1.0 + (k - 1.0) * single_value)
            for form, single_value in single.items()
        }
        return {**single, **mean}

    def why_undefined(self, form: str) -> ratings.Reasons:
        """Return the reason a form is undefined, or "" if it is defined."""
        checks = [
            (self.n == 0, ratings.Undefined.NOBODY),
            (self.n <= 1, ratings.Undefined.ONE_PERSON),
            (self.square == 0, ratings.Undefined.NO_SPREAD),
            (np.full(self.n.shape, form.endswith("k") and self.size.size > 1), ratings.Undefined.UNEQUAL),
        ]
        if not form.startswith(("1", "k")):
            checks.append((np.full(self.n.shape, self.raters > MOST_RATERS), ratings.Undefined.MANY_RATERS))
            checks.append((~_is_crossed(self), ratings.Undefined.NOT_CROSSED))
        checks.append((np.isnan(self.iccs()[form]), ratings.Undefined.ZERO_DENOMINATOR))
        return ratings.first_reason([(np.asarray(applies), reason) for applies, reason in checks])

    def _with_people(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Z'V⁻¹Z, Z'V⁻¹y and y'V⁻¹y for rater columns Z and V = I + ratio between one person's ratings."""
        less = ratio[..., np.newaxis] / (1.0 + ratio[..., np.newaxis] * self.size)
        ratings_of_rater = np.einsum("...cjj->...j", self.both)
        gram = -np.einsum("...c,...cjk->...jk", less, self.both)
        gram += ratings_of_rater[..., np.newaxis] * np.eye(self.raters)
        seen = self.rater - np.einsum("...c,...cj->...j", less, self.scored)
        return gram, seen, np.asarray(self.square - (less * self.squares).sum(axis=-1))


def panel_of(*raters: ArrayLike, weight: ArrayLike | None = None) -> Panel:
    """Return the `Panel` of scores (people on the last axis, nan if missing) with weights (..., people).

    Examples
    --------
    >>> panel = panel_of([1.0, 2.0, 4.0], [1.0, np.nan, 5.0])
    >>> float(panel.n), float(panel.count), round(float(panel.one_way()), 3)
    (3.0, 5.0, 0.938)
    """
    scores = np.stack(ratings.score_ratings(*raters, missing=True), axis=-1)
    present = ~np.isnan(scores)
    middle = scores[present].mean() if present.any() else 0.0  # sums of squares about the mean lose fewer digits
    presence = present.astype(np.float64)
    centred = np.where(present, scores - middle, 0.0)
    centred[ratings.is_rounding(centred, np.abs(scores[present]).max(initial=0.0))] = 0.0
    weights, ratings_given = ratings.people_weights(weight, len(scores)), present.sum(axis=-1)
    total = centred.sum(axis=-1)
    sizes = (
        np.unique(ratings_given[ratings_given > 0]) if ratings_given.any() else np.ones(1, dtype=np.int64)
    )  # a panel without people
    parts: list[list[Any]] = []
    for size in sizes:
        inside = ratings_given == size
        w, m, t = weights[..., inside], presence[inside], total[inside]
        flat = w.reshape(int(np.prod(w.shape[:-1])), w.shape[-1])
        both = np.stack([m.T @ (row[:, np.newaxis] * m) for row in flat])
        both = both.reshape(*w.shape[:-1], *both.shape[1:])
        parts.append([w.sum(axis=-1), both, w @ (t[:, np.newaxis] * m), w @ t, w @ t**2])
    people, both, scored, totals, squares = (np.stack(part, axis=weights.ndim - 1) for part in zip(*parts, strict=True))
    return Panel(
        size=sizes.astype(np.float64),
        people=people,
        both=both,
        scored=scored,
        totals=totals,
        squares=squares,
        rater=weights @ centred,
        square=np.asarray(weights @ (centred**2).sum(axis=-1)),
    )


# Restricted maximum likelihood ----------------------------------------------------------------------------------------

_STARTS = (0.05, 0.3, 1.0, 4.0, 20.0)
_STEPS = 30
_NEAR = 1e-4


def _deviance(panel: Panel, root: FloatArray) -> FloatArray:
    """Return -2 log restricted likelihood, up to a constant, at the roots (..., 2) of s_p / s_e and s_r / s_e."""
    people, rater = root[..., 0] ** 2, root[..., 1] ** 2
    gram, seen, square = panel._with_people(people)
    inner = np.eye(panel.raters) + rater[..., np.newaxis, np.newaxis] * gram
    right = np.concatenate([gram.sum(axis=-1, keepdims=True), seen[..., np.newaxis]], axis=-1)
    solved = np.linalg.solve(inner, right)
    ones, mean = solved[..., 0].sum(axis=-1), solved[..., 1].sum(axis=-1)
    residual = square - rater * np.einsum("...j,...j->...", seen, solved[..., 1]) - mean**2 / ones
    with np.errstate(all="ignore"):
        spread = (panel.people * np.log1p(people[..., np.newaxis] * panel.size)).sum(axis=-1)
        volume = np.linalg.slogdet(inner)[1]
        return np.asarray(spread + volume + np.log(ones) + (panel.count - 1.0) * np.log(np.maximum(residual, 1e-300)))


def _reml(panel: Panel) -> tuple[FloatArray, FloatArray]:
    """Return the variance ratios that minimise the deviance; simulations start at the solution for their mean."""
    shape = panel.n.shape
    if panel.raters > MOST_RATERS or not (crossed := _is_crossed(panel)).any():
        return np.full(shape, np.nan), np.full(shape, np.nan)
    root = np.broadcast_to(_start(panel), (*shape, 2))
    best, damping = _deviance(panel, root), np.full(shape, 1e-3)
    for _ in range(_STEPS):
        slope, curve = _slopes(panel, root, best)
        size, axes = np.linalg.eigh(curve)
        size = np.maximum(np.abs(size), 1e-8) * (1.0 + damping[..., np.newaxis])
        step = -np.einsum("...ij,...j,...kj,...k->...i", axes, 1.0 / size, axes, slope)
        gain = np.abs((slope * step).sum(axis=-1))
        if ((gain < 1e-13) | (damping > 1e4)).all():
            break
        new = np.abs(root + step)
        reached = _deviance(panel, new)
        better = reached <= best
        root = np.where(better[..., np.newaxis], new, root)
        best = np.where(better, reached, best)
        damping = np.where(better, np.maximum(damping / 10.0, 1e-3), damping * 10.0)
    people, rater = np.moveaxis(np.where(root < 3 * _NEAR, 0.0, root) ** 2, -1, 0)
    return np.where(crossed, people, np.nan), np.where(crossed, rater, np.nan)


def _start(panel: Panel) -> FloatArray:
    """Return (2,) starting roots: the best point of a grid, or the solution for the simulations' mean."""
    if panel.n.ndim == 0:
        grid = np.sqrt([(a, b) for a in _STARTS for b in _STARTS])
        return np.asarray(grid[np.argmin([_deviance(panel, point) for point in grid])])
    axes = tuple(range(panel.n.ndim))
    names = (field.name for field in fields(Panel) if field.name != "size")
    solution = _reml(Panel(size=panel.size, **{name: getattr(panel, name).mean(axis=axes) for name in names}))
    return np.sqrt(np.maximum(np.nan_to_num(np.stack(solution), nan=1.0), 0.01))


def _slopes(panel: Panel, root: FloatArray, deviance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient (..., 2) and the Hessian (..., 2, 2) of the deviance by central differences."""
    step = _NEAR * (1.0 + root)
    step_people, step_raters = step * np.array([1.0, 0.0]), step * np.array([0.0, 1.0])
    up, down, right, backward = (
        _deviance(panel, root + move) for move in (step_people, -step_people, step_raters, -step_raters)
    )
    both = _deviance(panel, root + step_people + step_raters) + _deviance(panel, root - step_people - step_raters)
    gap = np.moveaxis(step, -1, 0)
    slope = np.stack([(up - down) / (2 * gap[0]), (right - backward) / (2 * gap[1])], axis=-1)
    mixed = (both - up - down - right - backward + 2 * deviance) / (2 * gap[0] * gap[1])
    first, second = (up - 2 * deviance + down) / gap[0] ** 2, (right - 2 * deviance + backward) / gap[1] ** 2
    curve = np.stack([np.stack([first, mixed], axis=-1), np.stack([mixed, second], axis=-1)], axis=-2)
    return slope, curve


def _is_crossed(panel: Panel) -> Any:
    """Return whether raters share enough people to separate differences between raters from error."""
    alone = np.einsum("...cjk,c->...jk", panel.both, 1.0 / panel.size)
    between = np.einsum("...cjj->...j", panel.both)[..., np.newaxis] * np.eye(panel.raters) - alone
    size = np.linalg.eigvalsh(between)
    freedom = (size > _TINY * np.maximum(size.max(axis=-1, keepdims=True), 1.0)).sum(axis=-1)
    return (freedom >= 1) & (panel.count - panel.n - freedom >= 1) & (panel.n > 1) & (panel.square > 0)


Squares: TypeAlias = Callable[[FloatArray], FloatArray]


# Limits ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Quadratics:
    """The sums of squares of people and of raters, as functions of one variance ratio.

    At the true s_p / s_e, people(ratio) / s_e has the chi-squared distribution with `freedom_people` degrees of freedom
    for any s_r; at the true s_r / s_e, raters(ratio) / s_e has it with `freedom_raters`, and error / s_e has it with
    `freedom_error` (Wald 1940).
    """

    people: Squares
    raters: Squares
    error: float
    freedom_people: int
    freedom_raters: int
    freedom_error: int
    most_ratings: float
    most_people: float


def quadratics(panel: Panel) -> Quadratics:
    """Return the sums of squares of one unweighted panel as functions of the variance ratios."""
    sizes, both = panel.size, panel.both
    alone = np.einsum("cjk,c->jk", both, 1.0 / sizes)
    between = np.einsum("cjj->j", both)[:, np.newaxis] * np.eye(panel.raters) - alone
    seen = panel.rater - np.einsum("cj,c->j", panel.scored, 1.0 / sizes)
    size, axes = np.linalg.eigh(between)
    large = size > _TINY * max(float(size.max()), 1.0)
    squares, size = (axes[:, large].T @ seen) ** 2 / size[large], size[large]
    error = float(panel.within - squares.sum())
    freedom = int(large.sum())

    def people(ratio: FloatArray) -> FloatArray:
        gram, score, square = panel._with_people(ratio)
        return np.asarray(square - (score * np.linalg.solve(gram, score[..., np.newaxis])[..., 0]).sum(axis=-1) - error)

    return Quadratics(
        people=people,
        raters=lambda ratio: np.asarray((squares / (1.0 + ratio[..., np.newaxis] * size)).sum(axis=-1)),
        error=0.0 if error <= _TINY * float(panel.square) else error,
        freedom_people=int(panel.n) + freedom - panel.raters,
        freedom_raters=freedom,
        freedom_error=int(panel.count - panel.n) - freedom,
        most_ratings=float(sizes.max()),
        most_people=float(size.max(initial=1.0)),
    )


def panel_interval(panel: Panel, form: str, confidence: float) -> Interval:
    """Return the limits of an intraclass correlation of one unweighted panel; nan if undefined.

    Forms 1 and C,1 are exact for normal scores: the ratio s_p / s_e is in the set for which the people's sum of squares
    at that ratio, over the mean square of error, is between the quantiles of F (Wald 1940; Seely and El-Bassiouni
    1983). Form A,1 has no exact limits: the limits of the generalised pivot (Weerahandi 1993; Gilder et al. 2007 for
    panels without gaps) are the quantiles of the ICC with the three sums of squares divided by independent chi-squared
    numbers, at evenly spread points, so that there is no seed. With missing ratings the sums of people and of raters
    are slightly correlated; this is neglected, and `benchmarks/coverage/panels.py` measures the effect.

    References
    ----------
    A. Wald (1940), A note on the analysis of variance with unequal class frequencies, Annals of Mathematical
    Statistics 11. J. F. Seely and Y. El-Bassiouni (1983), Applying Wald's variance component test, Annals of Statistics
    11. S. Weerahandi (1993), Generalized confidence intervals, Journal of the American Statistical Association 88. K.
    Gilder, N. Ting, L. Tian, J. C. Cappelleri and R. C. Hanumara (2007), Confidence intervals on intraclass correlation
    coefficients in a balanced two-factor random design, Journal of Statistical Planning and Inference 137.

    Examples
    --------
    >>> panel = panel_of([9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7])
    >>> [round(float(limit), 3) for limit in panel_interval(panel, "C,1", 0.95)]
    [0.342, 0.946]
    >>> [round(float(limit), 2) for limit in panel_interval(panel, "A,1", 0.95)]
    [0.03, 0.74]
    """
    tail = tail_share(confidence)
    if form.endswith("k"):
        k = panel.size[0]
        low, high = panel_interval(panel, form.replace("k", "1"), confidence)
        return Interval(k * low / (1.0 + (k - 1.0) * low), k * high / (1.0 + (k - 1.0) * high))
    if form == "1":
        return _exact(_one_way_squares(panel), float(panel.within), panel, (panel.n - 1, panel.count - panel.n), tail)
    squares = quadratics(panel)
    if min(squares.freedom_people, squares.freedom_raters, squares.freedom_error) < 1 or panel.raters > MOST_RATERS:
        return Interval(np.asarray(np.nan), np.asarray(np.nan))
    if form == "C,1":
        return _exact(squares.people, squares.error, panel, (squares.freedom_people, squares.freedom_error), tail)
    return _pivot_interval(squares, tail)


def _one_way_squares(panel: Panel) -> Squares:
    def people(ratio: FloatArray) -> FloatArray:
        inner = 1.0 + ratio[..., np.newaxis] * panel.size
        square = (panel.squares / (panel.size * inner)).sum(axis=-1)
        mean = (panel.totals / inner).sum(axis=-1) ** 2 / (panel.people * panel.size / inner).sum(axis=-1)
        return np.asarray(square - mean)

    return people


def _exact(people: Squares, error: float, panel: Panel, freedom: tuple[Any, Any], tail: float) -> Interval:
    from scipy.special import fdtri

    top, bottom = float(freedom[0]), float(freedom[1])
    if error <= 0 or bottom < 1 or top < 1:
        return Interval(np.asarray(np.nan), np.asarray(np.nan))
    scale, most = top * error / bottom, float(panel.size.max())
    low, high = (_solve(people, scale * float(fdtri(top, bottom, share)), most) for share in (1.0 - tail, tail))
    return Interval(np.asarray(low), np.asarray(high))


def _solve(squares: Squares, target: float, most: float) -> float:
    """Return by bisection the correlation r = ratio / (1 + ratio) at which decreasing squares reach a target."""
    low, high = -1.0 / (most - 1.0) if most > 1 else -1e9, 1.0
    low += 1e-12 * (1.0 - low)
    for _ in range(60):
        middle = (low + high) / 2.0
        if float(squares(np.asarray(middle / (1.0 - middle)))) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


_GRID = 120


def _pivot_interval(squares: Quadratics, tail: float) -> Interval:
    chi_error, chi_people, chi_raters = chi_squares(
        squares.freedom_error, squares.freedom_people, squares.freedom_raters
    )
    if squares.error == 0:
        return Interval(np.asarray(np.nan), np.asarray(np.nan))
    unit = squares.error / chi_error
    people = _ratios(squares.people, unit * chi_people, squares.most_ratings)
    raters = _ratios(squares.raters, unit * chi_raters, squares.most_people)
    with np.errstate(all="ignore"):
        low, high = np.quantile(people / (people + raters + 1.0), [tail, 1.0 - tail])
    return Interval(np.asarray(low), np.asarray(high))


def _ratios(squares: Squares, targets: FloatArray, most: float) -> FloatArray:
    """Return the variance ratios at which decreasing squares reach the targets, by interpolation on a fine grid."""
    least = (-1.0 / (most - 1.0) if most > 1 else -20.0) * (1.0 - 1e-6)
    share = np.linspace(0.0, 1.0, _GRID) ** 2  # finer near 0 and near the ends, where the curvature is largest
    grid = np.concatenate([least * (1.0 - share), share, (1.0 - share) * (1.0 - 1e-9)])
    grid = np.unique(grid[grid < 1.0])
    values = np.concatenate(
        [squares(part / (1.0 - part)) for part in np.array_split(grid, 12)]
    )  # in parts, to save memory
    correlation = np.interp(np.log(targets), np.log(np.maximum(values[::-1], 1e-300)), grid[::-1])
    return np.asarray(correlation / (1.0 - correlation))
