"""The mixed-integer programs C.5, C.6 and (P') of the reference, written for HiGHS.

For each distinct row of features x_c: D_c in {0, 1} with x_c'b <= C_c D_c - margin (1 - D_c) and
x_c'b >= -C_c (1 - D_c), where b lies in [-1, 1] (half of it for a coefficient with a sign) and C_c is the most that
abs(x_c'b) can be. The strict inequality of (C.4) needs the margin, and features scaled to [0, 1]; without them b = 0
selects anybody. Rows with the same features share one D.

Classification: size_g U_g = base_g + sum a D. Calibration (P'): U_g = sum_c (sum of y in c) s_gc with s_gc = t_g D_c
written linearly and sum_c n_gc s_gc = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
import numpy.typing as npt

from evenhand.stats.linear_search.margin import bounds
from evenhand.stats.linear_search.problem import SearchProblem
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_SLACK = 1e-9  # presolve would round away a candidate that just meets a floor; it is judged exactly afterwards


@dataclass(eq=False)
class Program:
    """Columns and rows of a mixed-integer program, gathered block by block."""

    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)
    integer: list[BoolArray] = field(default_factory=list)
    row_lower: list[FloatArray] = field(default_factory=list)
    row_upper: list[FloatArray] = field(default_factory=list)
    entries: list[tuple[IntArray, IntArray, FloatArray]] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(self, lower: npt.ArrayLike, upper: npt.ArrayLike, *, integer: bool = False) -> IntArray:
        """Add variables and return their numbers."""
        low, high = np.broadcast_arrays(*(np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in (lower, upper)))
        self.lower.append(low)
        self.upper.append(high)
        self.integer.append(np.full(low.size, integer))
        self.columns += low.size
        return np.arange(self.columns - low.size, self.columns)

    def add_rows(
        self,
        count: int,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        *terms: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    ) -> None:
        """Add `count` constraints; a term is (constraint, variable, coefficient), broadcast against each other."""
        for row, column, value in terms:
            r, c, v = np.broadcast_arrays(np.asarray(row), np.asarray(column), np.asarray(value, dtype=np.float64))
            kept = v.ravel() != 0
            self.entries.append((r.ravel()[kept] + self.rows, c.ravel()[kept], v.ravel()[kept]))
        for ends, given in ((self.row_lower, lower), (self.row_upper, upper)):
            ends.append(np.broadcast_to(np.asarray(given, dtype=np.float64), (count,)))
        self.rows += count


@dataclass(frozen=True, eq=False)
class SearchProgram:
    """The program of a search, and where its variables are.

    Attributes
    ----------
    program
        The program.
    beta
        Intercept and slopes.
    decide
        D, one for each distinct row of features.
    value
        U, one a group.
    gap
        t, the largest difference; for the goal of fairness only.
    share
        For calibration the t_g, else empty.
    parts
        For calibration, for each group its s and the distinct rows they belong to.
    cell
        (n,) the distinct row of each row.
    """

    program: Program
    beta: IntArray
    decide: IntArray
    value: IntArray
    gap: IntArray
    share: IntArray
    parts: tuple[tuple[IntArray, IntArray], ...]
    cell: IntArray

    def start(self, problem: SearchProblem, slopes: FloatArray, intercept: float) -> FloatArray:
        """Return the value of every variable for given coefficients."""
        solution = np.zeros(self.program.columns)
        solution[self.beta] = np.append(intercept, slopes)
        chosen = problem.scaled @ slopes + intercept >= 0
        by_cell = np.zeros(self.decide.size)
        by_cell[self.cell[chosen]] = 1.0
        solution[self.decide] = by_cell
        solution[self.value] = values = problem.values(chosen)
        solution[self.gap] = values.max() - values.min()
        for g, (own, cells) in enumerate(self.parts):
            solution[self.share[g]] = 1.0 / np.count_nonzero(chosen & (problem.group == g))
            solution[own] = solution[self.share[g]] * by_cell[cells]
        return solution


def build_program(problem: SearchProblem, margin: float) -> SearchProgram:
    """Return the mixed-integer program of a search.

    Examples
    --------
    >>> from evenhand.stats.linear_search import search_problem
    >>> x = np.array([[0.0], [1.0], [1.0], [3.0]])
    >>> problem = search_problem(x, [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], "ab")
    >>> made = build_program(problem, 1e-4)
    >>> made.decide.size, made.program.columns, made.program.rows
    (3, 8, 10)
    """
    points, cell = np.unique(problem.scaled, axis=0, return_inverse=True)
    cell = cell.ravel()
    program = Program()
    box = np.array(bounds(problem))
    beta = program.add_columns(box[:, 0], box[:, 1])
    decide = program.add_columns(np.zeros(len(points)), 1.0, integer=True)
    value = program.add_columns(problem.floors - _SLACK, np.inf)
    _add_classifier(program, problem, points, beta, decide, margin)
    if problem.capacity is not None:
        sizes = np.bincount(cell, minlength=len(points))
        program.add_rows(1, problem.capacity, problem.capacity, (0, decide, sizes))
    groups = len(problem.names)
    share = np.arange(0)
    parts: tuple[tuple[IntArray, IntArray], ...] = ()
    if problem.step:
        share = program.add_columns(1.0 / np.bincount(problem.group, minlength=groups), 1.0)
        parts = tuple(_add_mean(program, problem, cell, decide, value, share, g) for g in range(groups))
    else:
        gains = _by_cell(problem, cell, problem.gains, len(points))
        at = np.arange(groups)
        program.add_rows(
            groups, problem.base, problem.base, (at, value, problem.size), (at[:, np.newaxis], decide, -gains)
        )
    gap = _add_gap(program, problem, value)
    return SearchProgram(program, beta, decide, value, gap, share, parts, cell)


def _add_classifier(
    program: Program, problem: SearchProblem, points: FloatArray, beta: IntArray, decide: IntArray, margin: float
) -> None:
    """Tie D to the sign of x'b."""
    design = np.column_stack([np.ones(len(points)), points])
    box = np.array(bounds(problem))
    most, least = design @ box[:, 1], design @ box[:, 0]  # x is not negative
    at = np.arange(len(points))
    score = (at[:, np.newaxis], beta, design)
    program.add_rows(len(points), -np.inf, -margin, score, (at, decide, -(most + margin)))
    program.add_rows(len(points), least, np.inf, score, (at, decide, least))


def _add_mean(
    program: Program, problem: SearchProblem, cell: IntArray, decide: IntArray, value: IntArray, share: IntArray, g: int
) -> tuple[IntArray, IntArray]:
    """Add U_g = mean outcome of the selected of group g, with s = t D written linearly."""
    own = problem.group == g
    cells, member = np.unique(cell[own], return_inverse=True)
    sizes = np.bincount(member.ravel())
    totals = np.bincount(member.ravel(), weights=problem.gains[own])
    part = program.add_columns(np.zeros(cells.size), 1.0)
    at = np.arange(cells.size)
    program.add_rows(1, 0.0, 0.0, (0, value[g], 1.0), (0, part, -totals))
    program.add_rows(1, 1.0, 1.0, (0, part, sizes))
    program.add_rows(cells.size, -np.inf, 0.0, (at, part, 1.0), (at, share[g], -1.0))
    program.add_rows(cells.size, -np.inf, 0.0, (at, part, 1.0), (at, decide[cells], -1.0))
    program.add_rows(cells.size, -1.0, np.inf, (at, part, 1.0), (at, share[g], -1.0), (at, decide[cells], -1.0))
    return part, cells


def _add_gap(program: Program, problem: SearchProblem, value: IntArray) -> IntArray:
    """Bound the difference of all ordered pairs of groups by t, which is minimised, or by the limit."""
    pairs = np.array(list(permutations(range(len(problem.names)), 2)))
    at = np.arange(len(pairs))
    difference = ((at, value[pairs[:, 0]], 1.0), (at, value[pairs[:, 1]], -1.0))
    if problem.goal != "fairness":
        program.add_rows(len(pairs), -np.inf, problem.gap_limit + _SLACK, *difference)
        return np.arange(0)
    gap = program.add_columns(0.0, np.inf)
    program.add_rows(len(pairs), -np.inf, 0.0, *difference, (at, gap, -1.0))
    return gap


def _by_cell(problem: SearchProblem, cell: IntArray, values: FloatArray, cells: int) -> FloatArray:
    """Return (G, C) the sums of a row value by group and distinct row."""
    groups = len(problem.names)
    sums = np.bincount(problem.group * cells + cell, weights=values, minlength=groups * cells)
    return sums.reshape(groups, cells).astype(np.float64)
