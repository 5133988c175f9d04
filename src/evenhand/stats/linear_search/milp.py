"""Solve the mixed-integer programs with HiGHS: started from the sweep, polished, and judged by the coefficients.

A solver's word is not taken: its coefficients are repaired by the margin program and everything is computed again from
them. Proofs of optimality are rare above 100 rows; reaching the time limit is the normal outcome, and the bound says
what is left.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import ConfigError, EvenhandError, require_extra
from evenhand.stats.linear_search.candidate import LinearCandidate, SolverReport, judged
from evenhand.stats.linear_search.margin import widest_margin
from evenhand.stats.linear_search.problem import SearchProblem
from evenhand.stats.linear_search.program import SearchProgram, build_program
from evenhand.stats.linear_search.sweep import best_direction
from evenhand.stats.types import FloatArray

_LEAST_MARGIN = 1e-9
_REFUTED = 1e-6


class _Solved(NamedTuple):
    """What HiGHS found: its word, the variables or None, the bound, the gap and the time."""

    status: str
    solution: FloatArray | None
    bound: float
    gap: float
    seconds: float


def solve_milp(
    problem: SearchProblem,
    rng: np.random.Generator,
    *,
    time_limit: float = 60.0,
    relative_gap: float = 1e-4,
    margin: float = 1e-4,
    directions: int = 20_000,
    threads: int = 1,
) -> LinearCandidate:
    """Return the best linear classifier that the sweep and HiGHS find together.

    Parameters
    ----------
    problem
        What to reach.
    rng
        Source of randomness of the sweep.
    time_limit
        Seconds that HiGHS may take.
    relative_gap
        The distance between incumbent and bound, as a share, at which it may stop.
    margin
        How far from 0 the score of a row that is not selected must be, with features in [0, 1] and coefficients in
        [-1, 1].
    directions
        The budget of the sweep that HiGHS starts from; 0 for none.
    threads
        Number of threads of HiGHS.

    Returns
    -------
    LinearCandidate
        The better of the two, by what its coefficients do; `solver` has status, bound and gap. Never worse than the
        sweep alone.

    Raises
    ------
    MissingExtraError
        HiGHS is not installed.
    EvenhandError
        There is no such classifier, or none was found in the time.

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
        raise ConfigError(f"`time_limit` must be above 0 seconds; got {time_limit!r}.")
    if not 0 < margin < 1:
        raise ConfigError(f"`margin` must be between 0 and 1; got {margin!r}.")
    swept = best_direction(problem, rng, directions=directions) if directions else None
    made = build_program(problem, margin)
    solved = _run(problem, made, _start(problem, made, swept), time_limit, relative_gap, threads)
    found, report = _checked(problem, made, solved)
    known = [one for one in (swept, found) if one is not None and one.feasible]
    if not known:
        raise EvenhandError(_why_nothing(problem, solved, time_limit, margin))
    best = min(known, key=lambda one: float(problem.judge(one.values)[1]))
    return replace(best, solver=_consistent(problem, report, best), directions=directions)


def _consistent(problem: SearchProblem, report: SolverReport, best: LinearCandidate) -> SolverReport:
    """Return the report, without a bound that the best classifier refutes."""
    reached = float(problem.judge(best.values)[1])
    least = report.bound if problem.goal == "fairness" else -report.bound
    if not reached < least - _REFUTED:
        return report
    return replace(report, status=f"{report.status}, refuted", bound=float("nan"), relative_gap=float("nan"))


def _start(problem: SearchProblem, made: SearchProgram, swept: LinearCandidate | None) -> FloatArray | None:
    """Return the sweep's classifier, polished, as a solution of the program."""
    if swept is None or not swept.feasible:
        return None
    slopes, intercept, width = widest_margin(problem, swept.decide(problem.given))
    return made.start(problem, slopes, intercept) if width > _LEAST_MARGIN else None


def _checked(
    problem: SearchProblem, made: SearchProgram, solved: _Solved
) -> tuple[LinearCandidate | None, SolverReport]:
    """Return the solver's classifier, repaired and judged anew, and the report."""
    report = SolverReport(solved.status, float("nan"), solved.bound, solved.gap, False, False, solved.seconds)
    if solved.solution is None:
        return None, report
    wanted = (solved.solution[made.decide] > 0.5)[made.cell]
    objective = float(problem.judge(problem.values(wanted))[1])
    beta = solved.solution[made.beta]
    plain = judged(problem, beta[1:], float(beta[0]), directions=0, found_by="milp")
    slopes, intercept, width = widest_margin(problem, wanted)
    polished = judged(problem, slopes, intercept, directions=0, found_by="milp") if width > _LEAST_MARGIN else plain
    report = replace(
        report,
        claimed=objective if problem.goal == "fairness" else -objective,
        reproduced=bool((plain.decide(problem.given) == wanted).all()),
        polished=bool((polished.decide(problem.given) == wanted).all()),
    )
    return polished if report.polished else plain, report


def _run(
    problem: SearchProblem, made: SearchProgram, start: FloatArray | None, time_limit: float, gap: float, threads: int
) -> _Solved:
    highspy: Any = import_module("highspy")
    solver = highspy.Highs()
    solver.silent()
    # Presolve of some versions cuts off optima of such programs (HiGHS issues 1725, 3094): off, so that bounds hold.
    options = {"presolve": "off", "time_limit": time_limit, "mip_rel_gap": gap, "threads": threads, "random_seed": 0}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highspy, problem, made))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    solver.run()
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    status = solver.modelStatusToString(solver.getModelStatus()).lower().removesuffix(" reached")
    return _Solved(
        status=status,
        solution=np.array(solver.getSolution().col_value) if found else None,
        bound=float(info.mip_dual_bound),
        gap=float(info.mip_gap),
        seconds=float(solver.getRunTime()),
    )


def _model(highspy: Any, problem: SearchProblem, made: SearchProgram) -> Any:
    """Return the program in HiGHS's own form."""
    from scipy.sparse import csr_array

    program = made.program
    row, column, value = (np.concatenate(parts) for parts in zip(*program.entries, strict=True))
    matrix = csr_array((value, (row, column)), shape=(program.rows, program.columns))
    cost = np.zeros(program.columns)
    cost[made.gap if problem.goal == "fairness" else made.value[problem.goal]] = 1.0
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


def _why_nothing(problem: SearchProblem, solved: _Solved, time_limit: float, margin: float) -> str:
    floors = ", ".join(
        f"{floor:.4g} for '{name}'"
        for name, floor in zip(problem.names, problem.floors, strict=True)
        if np.isfinite(floor)
    )
    asked = f"values of at least {floors}" + (
        "" if np.isinf(problem.gap_limit) else f" and a gap of at most {problem.gap_limit:.4g}"
    )
    if "infeasible" in solved.status:
        return (
            f"no linear classifier of these features reaches {asked} under the constraints (proved, up to a margin of "
            f"{margin:g}); lower `iota`, use more features or drop a constraint."
        )
    return (
        f"no linear classifier that reaches {asked} was found in {time_limit:g} s (HiGHS: {solved.status}); allow more "
        "time or more directions, or lower `iota`."
    )
