"""Effort-aware individual fairness: all pairs of people, exactly where that takes seconds, else with a stated error."""

from evenhand.stats.pairs.direction import (
    Direction,
    Reversals,
    compare_groups,
    count_reversals,
    worst_reversals,
)
from evenhand.stats.pairs.distance import EUCLIDEAN, NORMS, Distance, Norm, learn_metric
from evenhand.stats.pairs.exact import worst_pairs
from evenhand.stats.pairs.fairness import (
    EXACT_ROWS,
    METHODS,
    corrected_grid,
    fairness_by_weight,
    individual_fairness,
    individual_fairness_cells,
    individual_fairness_counts,
)
from evenhand.stats.pairs.grid import SIZE, Bounds, GridMoments, bin_people, grid_excess
from evenhand.stats.pairs.inputs import check_people, hashes, starts
from evenhand.stats.pairs.result import PairFairness, compare, limits

__all__ = [
    "EUCLIDEAN",
    "EXACT_ROWS",
    "METHODS",
    "NORMS",
    "SIZE",
    "Bounds",
    "Direction",
    "Distance",
    "GridMoments",
    "Norm",
    "PairFairness",
    "Reversals",
    "bin_people",
    "check_people",
    "compare",
    "compare_groups",
    "corrected_grid",
    "count_reversals",
    "fairness_by_weight",
    "grid_excess",
    "hashes",
    "individual_fairness",
    "individual_fairness_cells",
    "individual_fairness_counts",
    "learn_metric",
    "limits",
    "starts",
    "worst_pairs",
    "worst_reversals",
]
