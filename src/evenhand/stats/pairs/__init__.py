"""Effort-aware individual fairness over all pairs of people: exact if fast enough, otherwise with an error."""

from evenhand.stats.pairs.device import CARD_ROWS, DEVICES, Device, card_worst_pairs, is_card, name_of
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
    individual_fairness_of_models,
)
from evenhand.stats.pairs.grid import SIZE, Bounds, GridMoments, bin_people, grid_excess
from evenhand.stats.pairs.inputs import check_people, hashes, starts
from evenhand.stats.pairs.result import PairFairness, compare, limits
from evenhand.stats.pairs.spread import FairnessOfModels, shrinkages, spread_of

__all__ = [
    "CARD_ROWS",
    "DEVICES",
    "EUCLIDEAN",
    "EXACT_ROWS",
    "METHODS",
    "NORMS",
    "SIZE",
    "Bounds",
    "Device",
    "Direction",
    "Distance",
    "FairnessOfModels",
    "GridMoments",
    "Norm",
    "PairFairness",
    "Reversals",
    "bin_people",
    "card_worst_pairs",
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
    "individual_fairness_of_models",
    "is_card",
    "learn_metric",
    "limits",
    "name_of",
    "shrinkages",
    "spread_of",
    "starts",
    "worst_pairs",
    "worst_reversals",
]
