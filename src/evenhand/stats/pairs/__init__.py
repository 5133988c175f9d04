"""Effort-aware individual fairness: all pairs of people, exactly where that takes seconds, else with a stated error."""

from evenhand.stats.pairs.by_weight import fairness_by_weight
from evenhand.stats.pairs.fairness import METHODS, individual_fairness
from evenhand.stats.pairs.grid import GridExcess, GridMoments, grid_excess, grid_moments
from evenhand.stats.pairs.grid_cells import individual_fairness_cells, individual_fairness_counts
from evenhand.stats.pairs.grid_rows import grid_correction
from evenhand.stats.pairs.result import PairDifference, PairFairness, compare
from evenhand.stats.pairs.worst import WorstPairs, worst_pairs

__all__ = [
    "METHODS",
    "GridExcess",
    "GridMoments",
    "PairDifference",
    "PairFairness",
    "WorstPairs",
    "compare",
    "fairness_by_weight",
    "grid_correction",
    "grid_excess",
    "grid_moments",
    "individual_fairness",
    "individual_fairness_cells",
    "individual_fairness_counts",
    "worst_pairs",
]
