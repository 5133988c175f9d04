"""Search for a linear classifier that is fairer than the status quo and at least as accurate."""

from evenhand.stats.linear_search.milp import solve_milp
from evenhand.stats.linear_search.problem import (
    OPTIMAL,
    TIME_LIMIT,
    LinearCandidate,
    SearchProblem,
    search_problem,
    widest_margin,
)
from evenhand.stats.linear_search.sweep import best_direction, sweep_directions

__all__ = [
    "OPTIMAL",
    "TIME_LIMIT",
    "LinearCandidate",
    "SearchProblem",
    "best_direction",
    "search_problem",
    "solve_milp",
    "sweep_directions",
    "widest_margin",
]
