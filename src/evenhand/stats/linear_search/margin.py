"""The margin program: of all coefficients that make given decisions, those that make them most clearly."""

from __future__ import annotations

import numpy as np

from evenhand.stats.linear_search.problem import SearchProblem
from evenhand.stats.types import BoolArray, FloatArray


def widest_margin(problem: SearchProblem, decisions: BoolArray) -> tuple[FloatArray, float, float]:
    """Return slopes, intercept and margin m > 0 with x'b >= m for the selected and x'b <= -m for the others.

    Maximise m over b in [-1, 1] (signs as constrained): a linear program. Solvers of the mixed-integer program return
    coefficients that misjudge a few of their own rows, because a tolerance is multiplied by a large constant; this
    repairs them. A margin of 0 or less means that no linear classifier makes these decisions.

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
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=[*bounds(problem), (None, 1.0)], method="highs")
    if found.x is None:
        return np.zeros(size), 0.0, 0.0
    return np.asarray(found.x[1:-1]), float(found.x[0]), float(found.x[-1])


def bounds(problem: SearchProblem) -> list[tuple[float, float]]:
    """Return the bounds of the intercept and of each slope in the scaled features."""
    return [(-1.0, 1.0)] + [(0.0 if sign > 0 else -1.0, 0.0 if sign < 0 else 1.0) for sign in problem.signs.tolist()]
