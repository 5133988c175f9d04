"""Search for a linear classifier that is fairer than the status quo and no less accurate."""

from evenhand.stats.linear_search.candidate import LinearCandidate, SolverReport
from evenhand.stats.linear_search.margin import widest_margin
from evenhand.stats.linear_search.milp import solve_milp
from evenhand.stats.linear_search.problem import (
    SEARCH_UTILITIES,
    SearchGoal,
    SearchProblem,
    SearchUtility,
    search_problem,
)
from evenhand.stats.linear_search.sweep import sweep_directions

__all__ = [
    "SEARCH_UTILITIES",
    "LinearCandidate",
    "SearchGoal",
    "SearchProblem",
    "SearchUtility",
    "SolverReport",
    "search_problem",
    "solve_milp",
    "sweep_directions",
    "widest_margin",
]
