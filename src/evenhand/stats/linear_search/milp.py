"""The mixed-integer programs C.5, C.6 and (P') of the reference, built for and solved by HiGHS.

For each distinct row of features x_c: D_c in {0, 1} with x_c'b <= C_c D_c - margin (1 - D_c) and x_c'b >= -C_c (1 -
D_c), where b lies in [-1, 1] (half of it for a coefficient with a sign) and C_c is the largest possible abs(x_c'b). The
strict inequality of (C.4) requires the margin and features scaled to [0, 1]; without them b = 0 allows any selection.
Rows with the same features share one D.

Classification: size_g U_g = base_g + sum a D. Calibration (P'): U_g = sum_c (sum of y in c) s_gc with s_gc = t_g D_c
written linearly and sum_c n_gc s_gc = 1.

The solver starts from the sweep's classifier. Its solution is not trusted: the coefficients are repaired by the margin
program, and all results are recomputed from them. Proofs of optimality are rare above 100 rows; reaching the time limit
is the normal outcome, and the bound shows the remaining gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import permutations
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, EvenhandError, require_extra, require_share
from evenhand.messages import Message
from evenhand.stats.linear_search.messages import say
from evenhand.stats.linear_search.problem import (
    OPTIMAL,
    TIME_LIMIT,
    LinearCandidate,
    SearchProblem,
    SolverReport,
    judged,
    widest_margin,
)
from evenhand.stats.linear_search.sweep import best_direction
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_SLACK = 1e-9  # presolve would reject a candidate that just meets a floor; it is judged exactly afterwards
_LEAST_MARGIN = 1e-9
_REFUTED = 1e-6


@dataclass(eq=False, kw_only=True)
class Program:
    """The columns (variables) and rows (constraints) of a mixed-integer program, added in blocks."""

    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)
    integer: list[BoolArray] = field(default_factory=list)
    row_lower: list[FloatArray] = field(default_factory=list)
    row_upper: list[FloatArray] = field(default_factory=list)
    entries: list[tuple[IntArray, IntArray, FloatArray]] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(self, lower: ArrayLike, upper: ArrayLike, *, integer: bool = False) -> IntArray:
        """Add variables with these bounds and return their numbers."""
        low, high = np.broadcast_arrays(*(np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in (lower, upper)))
        self.lower.append(low)
        self.upper.append(high)
        self.integer.append(np.full(low.size, integer))
        self.columns += low.size
        return np.arange(self.columns - low.size, self.columns)

    def add_rows(
        self, count: int, lower: ArrayLike, upper: ArrayLike, *terms: tuple[ArrayLike, ArrayLike, ArrayLike]
    ) -> None:
        """Add `count` constraints; each term is (constraint, variable, coefficient), broadcast against each other."""
        for row, column, value in terms:
            r, c, v = np.broadcast_arrays(np.asarray(row), np.asarray(column), np.asarray(value, dtype=np.float64))
            nonzero = v.ravel() != 0
            self.entries.append((r.ravel()[nonzero] + self.rows, c.ravel()[nonzero], v.ravel()[nonzero]))
        for ends, limit in ((self.row_lower, lower), (self.row_upper, upper)):
            ends.append(np.broadcast_to(np.asarray(limit, dtype=np.float64), (count,)))
        self.rows += count


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchProgram:
    """The program of a search, with the numbers of its variables by role.

    Attributes
    ----------
    program
        The program.
    beta
        Intercept and slopes.
    decide
        D, one for each distinct row of features.
    value
        U, one per group.
    gap
        t, the largest difference; for the goal of fairness only.
    share
        The variables t_g for calibration, otherwise empty.
    parts
        For calibration, each group's variables s and the distinct rows to which they belong.
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
        """Return the values of all variables for the coefficients of a classifier."""
        solution = np.zeros(self.program.columns)
        solution[self.beta] = np.append(intercept, slopes)
        chosen = problem.scaled @ slopes + intercept >= 0
        by_cell = np.zeros(self.decide.size)
        by_cell[self.cell[chosen]] = 1.0
        solution[self.decide] = by_cell
        solution[self.value] = values = problem.values(chosen)
        solution[self.gap] = values.max() - values.min()
        for g, (part, cells) in enumerate(self.parts):
            solution[self.share[g]] = 1.0 / np.count_nonzero(chosen & (problem.group == g))
            solution[part] = solution[self.share[g]] * by_cell[cells]
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
    box = np.array(problem.box)
    beta = program.add_columns(box[:, 0], box[:, 1])
    decide = program.add_columns(np.zeros(len(points)), 1.0, integer=True)
    value = program.add_columns(problem.floors - _SLACK, np.inf)
    _add_classifier(program, problem, points, beta=beta, decide=decide, margin=margin)
    if problem.capacity is not None:
        sizes = np.bincount(cell, minlength=len(points))
        program.add_rows(1, problem.capacity, problem.capacity, (0, decide, sizes))
    groups = len(problem.names)
    share = np.arange(0)
    parts: tuple[tuple[IntArray, IntArray], ...] = ()
    if problem.step:
        share = program.add_columns(1.0 / np.bincount(problem.group, minlength=groups), 1.0)
        parts = tuple(
            _add_mean(program, problem, cell, decide=decide, value=value, share=share, g=g) for g in range(groups)
        )
    else:
        gains = np.bincount(problem.group * len(points) + cell, problem.gains, groups * len(points))
        row = np.arange(groups)
        terms = (row, value, problem.size), (row[:, np.newaxis], decide, -gains.reshape(groups, -1))
        program.add_rows(groups, problem.base, problem.base, *terms)
    gap = _add_gap(program, problem, value)
    return SearchProgram(
        program=program, beta=beta, decide=decide, value=value, gap=gap, share=share, parts=parts, cell=cell
    )


def _add_classifier(
    program: Program, problem: SearchProblem, points: FloatArray, *, beta: IntArray, decide: IntArray, margin: float
) -> None:
    """Add the constraints that make D the sign of x'b, with the margin."""
    design = np.column_stack([np.ones(len(points)), points])
    box = np.array(problem.box)
    most, least = design @ box[:, 1], design @ box[:, 0]  # x is not negative
    row = np.arange(len(points))
    score = (row[:, np.newaxis], beta, design)
    program.add_rows(len(points), -np.inf, -margin, score, (row, decide, -(most + margin)))
    program.add_rows(len(points), least, np.inf, score, (row, decide, least))


def _add_mean(
    program: Program,
    problem: SearchProblem,
    cell: IntArray,
    *,
    decide: IntArray,
    value: IntArray,
    share: IntArray,
    g: int,
) -> tuple[IntArray, IntArray]:
    """Add U_g, the mean outcome of the selected in group g, with s = t D in linear form."""
    members = problem.group == g
    cells, member = np.unique(cell[members], return_inverse=True)
    sizes = np.bincount(member.ravel())
    totals = np.bincount(member.ravel(), weights=problem.gains[members])
    part = program.add_columns(np.zeros(cells.size), 1.0)
    row = np.arange(cells.size)
    program.add_rows(1, 0.0, 0.0, (0, value[g], 1.0), (0, part, -totals))
    program.add_rows(1, 1.0, 1.0, (0, part, sizes))
    program.add_rows(cells.size, -np.inf, 0.0, (row, part, 1.0), (row, share[g], -1.0))
    program.add_rows(cells.size, -np.inf, 0.0, (row, part, 1.0), (row, decide[cells], -1.0))
    program.add_rows(cells.size, -1.0, np.inf, (row, part, 1.0), (row, share[g], -1.0), (row, decide[cells], -1.0))
    return part, cells


def _add_gap(program: Program, problem: SearchProblem, value: IntArray) -> IntArray:
    """Limit the difference of all ordered pairs of groups by the variable t, or by the gap limit."""
    pairs = np.array(list(permutations(range(len(problem.names)), 2)))
    row = np.arange(len(pairs))
    difference = ((row, value[pairs[:, 0]], 1.0), (row, value[pairs[:, 1]], -1.0))
    if problem.goal != "fairness":
        program.add_rows(len(pairs), -np.inf, problem.gap_limit + _SLACK, *difference)
        return np.arange(0)
    gap = program.add_columns(0.0, np.inf)
    program.add_rows(len(pairs), -np.inf, 0.0, *difference, (row, gap, -1.0))
    return gap


class _Solved(NamedTuple):
    """The result of HiGHS: status, variables (or None), bound, gap, time, and whether the program is infeasible."""

    status: str
    solution: FloatArray | None
    bound: float
    gap: float
    seconds: float
    infeasible: bool = False


def solve_milp(
    problem: SearchProblem,
    rng: Generator,
    *,
    time_limit: float = 60.0,
    relative_gap: float = 1e-4,
    margin: float = 1e-4,
    directions: int = 20_000,
    threads: int = 1,
) -> LinearCandidate:
    """Return the best linear classifier found by the sweep and HiGHS.

    Parameters
    ----------
    problem
        The search problem.
    rng
        Source of randomness for the sweep.
    time_limit
        The largest running time of HiGHS in seconds.
    relative_gap
        The relative distance between incumbent and bound at which HiGHS may stop.
    margin
        The smallest distance below 0 of the score of a row that is not selected, with features in [0, 1] and
        coefficients in [-1, 1].
    directions
        The number of directions of the initial sweep; 0 for no sweep.
    threads
        Number of threads of HiGHS.

    Returns
    -------
    LinearCandidate
        The better of the two, judged by the decisions of its coefficients; `solver` has status, bound and gap. It is
        never worse than the sweep alone.

    Raises
    ------
    MissingExtraError
        HiGHS is not installed.
    EvenhandError
        No such classifier exists, or none was found within the time limit.

    Examples
    --------
    >>> from evenhand.stats.linear_search import search_problem
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.standard_normal((40, 2)), np.arange(40) % 2
    >>> y = (x[:, 0] + 0.5 * rng.standard_normal(40) > 0).astype(float)
    >>> problem = search_problem(x, y, x[:, 1] > 0, group, "ab")
    >>> found = solve_milp(problem, rng, time_limit=10)
    >>> found.feasible, found.solver.status, found.gap
    (True, 'optimal', 0.0)
    """
    require_extra("highspy", "models", "The mixed-integer search")
    if not time_limit > 0:
        raise ConfigError("`time_limit` must be above 0 seconds; got {time_limit!r}.", time_limit=time_limit)
    require_share("margin", margin)
    swept = best_direction(problem, rng, directions=directions) if directions else None
    built = build_program(problem, margin)
    solved = _run(
        problem, built, _start(problem, built, swept), time_limit=time_limit, gap=relative_gap, threads=threads
    )
    solution, report = _checked(problem, built, solved)
    candidates = [candidate for candidate in (swept, solution) if candidate is not None and candidate.feasible]
    if not candidates:
        raise EvenhandError(_why_nothing(problem, solved, time_limit, margin))
    best = min(candidates, key=lambda candidate: float(problem.judge(candidate.values)[1]))
    return replace(best, solver=_consistent(problem, report, best), directions=directions)


def _consistent(problem: SearchProblem, report: SolverReport, best: LinearCandidate) -> SolverReport:
    """Return the report, without the bound if the best classifier violates it."""
    reached = float(problem.judge(best.values)[1])
    least = report.bound if problem.goal == "fairness" else -report.bound
    if not reached < least - _REFUTED:
        return report
    return replace(report, refuted=True, bound=float("nan"), relative_gap=float("nan"))


def _start(problem: SearchProblem, built: SearchProgram, swept: LinearCandidate | None) -> FloatArray | None:
    """Return the sweep's classifier, repaired, as a solution of the program; None if it is infeasible."""
    if swept is None or not swept.feasible:
        return None
    slopes, intercept, width = widest_margin(problem, swept.decide(problem.given))
    return built.start(problem, slopes, intercept) if width > _LEAST_MARGIN else None


def _checked(
    problem: SearchProblem, built: SearchProgram, solved: _Solved
) -> tuple[LinearCandidate | None, SolverReport]:
    """Return the solver's classifier, repaired and re-evaluated, with the report."""
    report = SolverReport(
        status=solved.status,
        claimed=float("nan"),
        bound=solved.bound,
        relative_gap=solved.gap,
        reproduced=False,
        polished=False,
        seconds=solved.seconds,
    )
    if solved.solution is None:
        return None, report
    wanted = (solved.solution[built.decide] > 0.5)[built.cell]
    objective = float(problem.judge(problem.values(wanted))[1])
    beta = solved.solution[built.beta]
    plain = judged(problem, beta[1:], float(beta[0]), directions=0, found_by="milp")
    slopes, intercept, width = widest_margin(problem, wanted)
    polished = judged(problem, slopes, intercept, directions=0, found_by="milp") if width > _LEAST_MARGIN else plain
    claimed = objective if problem.goal == "fairness" else -objective
    plain_agrees, agrees = (bool((each.decide(problem.given) == wanted).all()) for each in (plain, polished))
    report = replace(report, claimed=claimed, reproduced=plain_agrees, polished=agrees)
    return polished if agrees else plain, report


def _run(
    problem: SearchProblem,
    built: SearchProgram,
    start: FloatArray | None,
    *,
    time_limit: float,
    gap: float,
    threads: int,
) -> _Solved:
    highspy: ModuleType = import_module("highspy")
    solver = highspy.Highs()
    solver.silent()
    # Presolve of some versions cuts off optima of such programs (HiGHS issues 1725, 3094): off, so that bounds hold.
    options = {"presolve": "off", "time_limit": time_limit, "mip_rel_gap": gap, "threads": threads, "random_seed": 0}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highspy, problem, built))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    solver.run()
    info = solver.getInfo()
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    outcome, outcomes = solver.getModelStatus(), highspy.HighsModelStatus
    known = {outcomes.kOptimal: OPTIMAL, outcomes.kTimeLimit: TIME_LIMIT}
    status = known.get(outcome, solver.modelStatusToString(outcome).lower())
    infeasible = outcome in (outcomes.kInfeasible, outcomes.kUnboundedOrInfeasible)
    solution = np.array(solver.getSolution().col_value) if feasible else None
    bound, gap = float(info.mip_dual_bound), float(info.mip_gap)
    return _Solved(status, solution, bound, gap, float(solver.getRunTime()), infeasible)


def _model(highspy: ModuleType, problem: SearchProblem, built: SearchProgram) -> Any:
    """Return the program as a HiGHS model."""
    from scipy.sparse import csr_array

    program = built.program
    row, column, value = (np.concatenate(parts) for parts in zip(*program.entries, strict=True))
    matrix = csr_array((value, (row, column)), shape=(program.rows, program.columns))
    cost = np.zeros(program.columns)
    cost[built.gap if problem.goal == "fairness" else built.value[problem.goal]] = 1.0
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.columns, program.rows
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.concatenate(program.lower), np.concatenate(program.upper)
    model.row_lower_, model.row_upper_ = np.concatenate(program.row_lower), np.concatenate(program.row_upper)
    model.sense_ = highspy.ObjSense.kMinimize if problem.goal == "fairness" else highspy.ObjSense.kMaximize
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    model.integrality_ = [kinds[int(whole)] for whole in np.concatenate(program.integer)]
    return model


def _why_nothing(problem: SearchProblem, solved: _Solved, time_limit: float, margin: float) -> Message:
    floors = tuple(
        say("floor", group=name, value=float(floor))
        for name, floor in zip(problem.names, problem.floors, strict=True)
        if np.isfinite(floor)
    )
    asked = say("floors", floors=floors)
    if np.isfinite(problem.gap_limit):
        asked = say("floors_and_gap", floors=floors, gap=float(problem.gap_limit))
    if solved.infeasible:
        return say("proved_none", asked=asked, margin=margin)
    return say("none_in_time", asked=asked, seconds=time_limit, status=solved.status)
