"""The problem of searching for a linear classifier, and the evaluation of a classifier on its rows.

A linear classifier selects a row if intercept + x'b >= 0. The search minimises the gap between groups for classifiers
at least as accurate as the status quo in every group (C.5 of the reference), or maximises the accuracy for one group,
without reducing the other groups' accuracy and with a smaller gap (C.6). The utility, which is the same for accuracy
and fairness, is calibration or any utility whose w does not depend on the decision. The decision may be one of two
amounts.

Reference: E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the fairness-improvability of
algorithms, appendix C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import Utility, capacity_count, check_groups, get_utility, group_values, ratios
from evenhand.stats.types import BoolArray, FloatArray, IntArray

SearchGoal = Literal["fairness"] | int
"""The smallest gap, or the highest value for one group (its number)."""

_MET = 1e-12

OPTIMAL, TIME_LIMIT = "optimal", "time limit"
"""Outcomes of a solver."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchProblem:
    """Training rows with features scaled to [0, 1], and the requirements on a candidate.

    The value of group g is (base_g + sum a) / (size_g + sum s) over its selected rows: for classification base counts
    the zeros, a = 2 y - 1 and s = 0; for calibration base and size are 0, a = y and s = 1.

    Attributes
    ----------
    given
        (n, d) the original features.
    scaled
        (n, p) the permitted features that vary, scaled to [0, 1].
    used
        (p,) the indices of the scaled features among the d features.
    low, width
        (p,) the smallest value and the range of each scaled feature.
    signs
        (p,) 1 or -1 where a coefficient must not be negative or positive, otherwise 0.
    group
        (n,) group codes.
    names
        The names of the groups.
    gains
        (n,) a.
    base, size
        (G,) the sums with no row selected.
    step
        s, 0 or 1.
    goal
        "fairness", or the group whose accuracy is maximised.
    floors
        (G,) the smallest allowed values; -inf without a floor.
    gap_limit
        The largest gap allowed.
    capacity
        The number of rows to select, or None for any number.
    """

    given: FloatArray
    scaled: FloatArray
    used: IntArray
    low: FloatArray
    width: FloatArray
    signs: IntArray
    group: IntArray
    names: tuple[str, ...]
    gains: FloatArray
    base: FloatArray
    size: FloatArray
    step: float
    goal: SearchGoal
    floors: FloatArray
    gap_limit: float
    capacity: int | None

    def __len__(self) -> int:
        return self.group.size

    def values(self, decisions: BoolArray) -> FloatArray:
        """Return (..., G) each group's value under decisions (..., n); nan if undefined."""
        chosen = np.asarray(decisions, dtype=np.float64)
        by_group = [chosen[..., self.group == g] for g in range(len(self.names))]
        sums = [by_group[g] @ self.gains[self.group == g] for g in range(len(self.names))]
        numbers = [part.sum(axis=-1) for part in by_group]
        top, bottom = np.stack(sums, axis=-1), np.stack(numbers, axis=-1)
        return ratios(np.stack([self.base + top, self.size + self.step * bottom], axis=-1))

    def judge(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the violation of floors and gap limit by values (..., G), and the objective to be minimised."""
        gap = values.max(axis=-1) - values.min(axis=-1)
        short = np.maximum(self.floors - values, 0.0).sum(axis=-1) + np.maximum(gap - self.gap_limit, 0.0)
        objective = gap if self.goal == "fairness" else -values[..., self.goal]
        undefined = np.isnan(gap)
        violation = np.where(undefined, np.inf, np.where(short <= _MET, 0.0, short))
        return violation, np.where(undefined, np.inf, objective)

    @property
    def box(self) -> list[tuple[float, float]]:
        """The bounds of the intercept and of each slope in the scaled features."""
        return [(-1.0, 1.0)] + [(0.0 if sign > 0 else -1.0, 0.0 if sign < 0 else 1.0) for sign in self.signs.tolist()]

    def raw(self, slopes: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return coefficients and intercept for the original features."""
        coefficients = np.zeros(self.given.shape[1])
        coefficients[self.used] = slopes / self.width
        return coefficients, float(intercept - (slopes / self.width) @ self.low)


def search_problem(
    features: ArrayLike,
    outcome: ArrayLike,
    status_quo: ArrayLike,
    group: ArrayLike,
    names: Sequence[str],
    *,
    utility: str | Utility = "classification",
    amounts: tuple[float, float] = (0.0, 1.0),
    columns: Mapping[str, FloatArray] | None = None,
    goal: SearchGoal = "fairness",
    iota: float = 0.0,
    capacity: float | None = None,
    monotone: ArrayLike | None = None,
    excluded: ArrayLike | None = None,
) -> SearchProblem:
    """Return the problem of improving on a status quo's decisions on the training rows.

    Parameters
    ----------
    features
        (n, d) finite numbers.
    outcome, status_quo, group
        (n,) outcomes, decisions 0 or 1 and group codes.
    names
        The names of the groups.
    utility
        The utility of accuracy and fairness: calibration, or any utility that is better when higher and whose w does
        not depend on the decision (classification, profit between two prices, formulas), so that values are linear in
        the decisions.
    amounts
        The two possible decisions, such as two prices; the second is for selected rows.
    columns
        The columns that the utility names.
    goal
        "fairness": minimise the gap, with values of at least the status quo's plus iota (C.5, and P' for calibration).
        A group's number: maximise its value, with the other groups' values at least the status quo's plus iota and a
        gap of at most the status quo's minus iota (C.6).
    iota
        The smallest improvement over the status quo on these rows. With 0 a candidate may just meet the floor, where a
        test on other rows has no power.
    capacity
        The share of rows to select; None for any number.
    monotone
        (d,) 1 for features that may only favour selection, -1 for features that may only count against it, otherwise 0.
    excluded
        (d,) mask of features that must not be used.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = search_problem(x, [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], "ab")
    >>> problem.scaled.ravel().round(2), problem.floors
    (array([0.  , 0.33, 0.67, 1.  ]), array([0.5, 0.5]))
    """
    if not (np.isfinite(iota) and iota >= 0):
        raise ConfigError("`iota` must be at least 0; got {iota!r}.", iota=iota)
    codes = check_groups(group, len(names))
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 2 or len(x) != codes.size:
        raise DataError(
            "features must have {rows} rows and one column per feature; got shape {shape}.",
            rows=codes.size,
            shape=str(x.shape),
        )
    y = np.asarray(outcome, dtype=np.float64)
    chosen = get_utility(utility)
    old = group_values(*chosen.terms(y, status_quo, columns), codes, len(names))
    floors, gap_limit = _targets(old, goal, iota, names)
    signs, used = _allowed(x, monotone, excluded)
    low = x[:, used].min(axis=0)
    width = x[:, used].max(axis=0) - low
    gains, base, size, step = _sums(chosen, y, codes, groups=len(names), amounts=amounts, columns=columns)
    scaled = np.ascontiguousarray((x[:, used] - low) / width)
    places = None if capacity is None else capacity_count(capacity, codes.size)
    return SearchProblem(
        given=x,
        scaled=scaled,
        used=used,
        low=low,
        width=width,
        signs=signs[used],
        group=codes,
        names=tuple(names),
        gains=gains,
        base=base,
        size=size,
        step=step,
        goal=goal,
        floors=floors,
        gap_limit=gap_limit,
        capacity=places,
    )


def _targets(old: FloatArray, goal: SearchGoal, iota: float, names: Sequence[str]) -> tuple[FloatArray, float]:
    """Return each group's floor and the limit of the gap, from the status quo's values."""
    if np.isnan(old).any():
        raise DataError(
            "the status quo selects nobody of group '{group}' on the training rows, so there is no value to "
            "improve on.",
            group=names[int(np.argmax(np.isnan(old)))],
        )
    floors = old + iota
    if goal == "fairness":
        return floors, float("inf")
    if goal not in range(old.size):
        raise ConfigError(
            "`goal` must be 'fairness' or a group from 0 to {value}; got {goal!r}.", value=old.size - 1, goal=goal
        )
    floors[goal] = -np.inf
    return floors, float(old.max() - old.min() - iota)


def _sums(
    utility: Utility,
    y: FloatArray,
    group: IntArray,
    *,
    groups: int,
    amounts: tuple[float, float],
    columns: Mapping[str, FloatArray] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the gains a, and base, size and step s of a `SearchProblem`."""
    if np.isnan(y).any():
        raise DataError(
            "row {row} has no outcome; the search needs that of every training row.",
            row=int(np.flatnonzero(np.isnan(y))[0]),
        )
    if utility.name == "classification" and not np.isin(y, (0.0, 1.0)).all():
        raise DataError(
            "classification needs an outcome of 0 or 1; got {value:g}.", value=y[~np.isin(y, (0.0, 1.0))][0]
        )
    (u0, w0), (u1, w1) = (utility.terms(y, np.full(y.size, amount), columns) for amount in amounts)
    if not u0.any() and not w0.any() and (w1 == 1).all():  # of the selected only, as calibration
        return u1, np.zeros(groups), np.zeros(groups), 1.0
    if utility.better == "lower" or not np.array_equal(w0, w1):  # to select nobody makes no error
        raise ConfigError(
            "the linear searches know calibration, and utilities that are better when higher and whose w "
            "does not depend on the decision; {name} is another. Use another rule.",
            name=utility.name,
        )
    base, size = (np.bincount(group, weights=term, minlength=groups).astype(np.float64) for term in (u0, w0))
    return u1 - u0, base, size, 0.0


def _allowed(x: FloatArray, monotone: ArrayLike | None, excluded: ArrayLike | None) -> tuple[IntArray, IntArray]:
    """Return the sign constraint of every feature, and the indices of the permitted features that vary."""
    d = x.shape[1]
    signs = np.zeros(d, dtype=np.int64) if monotone is None else np.asarray(monotone, dtype=np.int64)
    out = np.zeros(d, dtype=np.bool_) if excluded is None else np.asarray(excluded, dtype=np.bool_)
    if signs.shape != (d,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ConfigError("`monotone` must hold -1, 0 or 1 for each of the {d} features.", d=d)
    if out.shape != (d,):
        raise ConfigError("`excluded` must hold yes or no for each of the {d} features.", d=d)
    odd = np.argwhere(~np.isfinite(x) & ~out)
    if odd.size:
        raise DataError(
            "features must be finite; row {row}, column {column} holds {value}.",
            row=int(odd[0, 0]),
            column=int(odd[0, 1]),
            value=x[tuple(odd[0])],
        )
    used = np.flatnonzero(~out)
    used = used[np.ptp(x[:, used], axis=0) > 0]
    if used.size == 0:
        raise ConfigError("no feature is left for the search: all of them are excluded or the same in every row.")
    return signs, used


@dataclass(frozen=True, kw_only=True)
class SolverReport:
    """The report of the mixed-integer solver.

    Attributes
    ----------
    status
        `OPTIMAL`, `TIME_LIMIT`, or another status of the solver.
    claimed
        The objective of the solver's own decisions: the gap, or the value to be maximised; nan without a solution.
    bound
        The bound for all linear classifiers with the margin: at least this gap, or at most this value; nan if refuted.
    relative_gap
        The distance between claim and bound as a share of the claim; 0 for a proved optimum.
    reproduced
        Whether the solver's coefficients reproduce the solver's decisions. Often they do not, because the tolerance is
        multiplied by big-M.
    polished
        Whether the margin program found coefficients that reproduce these decisions.
    seconds
        The running time.
    refuted
        Whether the sweep found a classifier better than the solver's bound, with a smaller margin or because of a fault
        of the solver.
    """

    status: str
    claimed: float
    bound: float
    relative_gap: float
    reproduced: bool
    polished: bool
    seconds: float
    refuted: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearCandidate:
    """A linear classifier that selects a row if intercept + x'coefficients >= 0.

    All figures are computed from the coefficients on the unscaled training rows, not by a solver.

    Attributes
    ----------
    coefficients, intercept
        The coefficients and the intercept for the original features.
    values
        (G,) the values of the groups on the training rows.
    feasible
        Whether floors, gap limit and capacity are met on the training rows.
    directions
        The number of directions tried by the sweep.
    found_by
        "sweep" or "milp".
    solver
        The solver's report, or None without a solver.

    Examples
    --------
    >>> LinearCandidate(
    ...     coefficients=np.array([2.0]),
    ...     intercept=-1.0,
    ...     values=np.array([0.5, 0.7]),
    ...     feasible=True,
    ...     directions=10,
    ...     found_by="sweep",
    ... ).decide([[0.5], [0.4]])
    array([ True, False])
    """

    coefficients: FloatArray
    intercept: float
    values: FloatArray
    feasible: bool
    directions: int
    found_by: str
    solver: SolverReport | None = None

    @property
    def gap(self) -> float:
        """The largest difference between groups on the training rows."""
        return float(self.values.max() - self.values.min())

    def decide(self, features: ArrayLike) -> BoolArray:
        """Return (n,) mask of the selected rows."""
        return decisions(np.asarray(features, dtype=np.float64), self.coefficients, self.intercept)


def decisions(features: FloatArray, coefficients: FloatArray, intercept: float) -> BoolArray:
    """Return a mask of the selected rows; features with coefficient 0 are ignored.

    Examples
    --------
    >>> decisions(np.array([[1.0, np.nan]]), np.array([1.0, 0.0]), -1.0)
    array([ True])
    """
    used = np.flatnonzero(coefficients)
    return np.asarray(features[:, used] @ coefficients[used] + intercept >= 0)


def judged(
    problem: SearchProblem, slopes: FloatArray, intercept: float, *, directions: int, found_by: str
) -> LinearCandidate:
    """Return the candidate with its values computed from its coefficients on the original rows."""
    coefficients, raw_intercept = problem.raw(slopes, intercept)
    chosen = decisions(problem.given, coefficients, raw_intercept)
    values = problem.values(chosen)
    violation, _ = problem.judge(values)
    fits = problem.capacity is None or int(chosen.sum()) == problem.capacity
    return LinearCandidate(
        coefficients=coefficients,
        intercept=raw_intercept,
        values=values,
        feasible=bool(violation == 0) and fits,
        directions=directions,
        found_by=found_by,
    )


def widest_margin(problem: SearchProblem, decisions: BoolArray) -> tuple[FloatArray, float, float]:
    """Return slopes, intercept and the widest margin m between selected and unselected rows.

    x'b >= m for the selected rows and x'b <= -m for the other rows; m is maximised over b in [-1, 1] (with sign
    constraints) by a linear program. Solvers of the mixed-integer program return coefficients that misjudge a few of
    their own rows, because a tolerance is multiplied by a large constant; this repairs them. A margin of 0 or less
    means that no linear classifier makes these decisions.

    Examples
    --------
    >>> from evenhand.stats.linear_search import search_problem
    >>> x = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> problem = search_problem(x, [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], "ab")
    >>> slopes, intercept, margin = widest_margin(problem, x[:, 0] > 2)
    >>> slopes, round(intercept, 6), round(margin, 6)
    (array([1.]), -0.5, 0.25)
    """
    from scipy.optimize import linprog

    side = np.where(decisions, 1.0, -1.0)[:, np.newaxis]
    rows = -side * np.column_stack([np.ones(len(problem)), problem.scaled])
    rows = np.unique(np.column_stack([rows, np.ones(len(problem))]), axis=0)
    size = problem.scaled.shape[1]
    cost = np.append(np.zeros(size + 1), -1.0)
    solution = linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=[*problem.box, (None, 1.0)], method="highs")
    if solution.x is None:
        return np.zeros(size), 0.0, 0.0
    return np.asarray(solution.x[1:-1]), float(solution.x[0]), float(solution.x[-1])
