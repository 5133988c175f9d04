"""A linear classifier that was found, judged by what its coefficients do to the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.linear_search.problem import SearchProblem
from evenhand.stats.types import BoolArray, FloatArray


@dataclass(frozen=True)
class SolverReport:
    """What the solver of the mixed-integer program has to say.

    Attributes
    ----------
    status
        "optimal", "time limit", or another of the solver's words; with ", refuted" where the sweep has a classifier
        better than the solver's bound (one with less than the margin, or a fault of the solver).
    claimed
        The objective of the solver's own decisions: the gap, or the value to be raised; nan when it found none.
    bound
        No linear classifier (with the margin) does better: at least this gap, or at most this value; nan if refuted.
    relative_gap
        The distance between claim and bound as a share of the claim; 0 when the claim is proved.
    reproduced
        Whether the solver's own coefficients make the solver's decisions. Often not: tolerance times big-M.
    polished
        Whether the margin program found coefficients that do.
    seconds
        The time it took.
    """

    status: str
    claimed: float
    bound: float
    relative_gap: float
    reproduced: bool
    polished: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class LinearCandidate:
    """A linear classifier: select when intercept + x'coefficients >= 0.

    All figures are computed from the coefficients on the training rows as they were given, not taken from a solver.

    Attributes
    ----------
    coefficients, intercept
        The classifier.
    values
        (G,) the values of the groups on the training rows.
    feasible
        Whether floors, gap limit and capacity are met there.
    directions
        How many directions the sweep looked at.
    found_by
        "sweep" or "milp".
    solver
        The solver's report, when it ran.

    Examples
    --------
    >>> LinearCandidate(np.array([2.0]), -1.0, np.array([0.5, 0.7]), True, 10, "sweep").decide([[0.5], [0.4]])
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

    def decide(self, features: npt.ArrayLike) -> BoolArray:
        """Return (n,) whether each row is selected."""
        return decisions(np.asarray(features, dtype=np.float64), self.coefficients, self.intercept)


def decisions(features: FloatArray, coefficients: FloatArray, intercept: float) -> BoolArray:
    """Return whether each row is selected; excluded features are not looked at.

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
    """Return the candidate with its values, computed from its coefficients on the rows as they were given."""
    coefficients, raw_intercept = problem.raw(slopes, intercept)
    chosen = decisions(problem.given, coefficients, raw_intercept)
    values = problem.values(chosen)
    violation, _ = problem.judge(values)
    fits = problem.capacity is None or int(chosen.sum()) == problem.capacity
    return LinearCandidate(coefficients, raw_intercept, values, bool(violation == 0) and fits, directions, found_by)
