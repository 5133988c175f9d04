"""Fairness-improvability: could the decisions be fairer without being less accurate?"""

from evenhand.stats.improvability.capacity import Selection, capacity_count, select_top
from evenhand.stats.improvability.cells import Cells, merge_rows
from evenhand.stats.improvability.combination import RULES, Combined, Rule, Split, combine_splits, random_splits
from evenhand.stats.improvability.power import (
    deviations,
    planned_effects,
    power_curve,
    sample_size,
    unknown_candidate,
)
from evenhand.stats.improvability.resampling import ValueDraws, bootstrap_values
from evenhand.stats.improvability.rows import CANDIDATE, STATUS_QUO, Pair, Rows, check_counts, make_rows, worst_pair
from evenhand.stats.improvability.split import (
    ACCURACY_OF,
    FAIRNESS_TESTS,
    AccuracyOf,
    Components,
    Criteria,
    FairnessTest,
    Goal,
    SplitTest,
    largest_delta,
)
from evenhand.stats.improvability.utilities import UTILITIES, Utility, get_utility, group_values

__all__ = [
    "ACCURACY_OF",
    "CANDIDATE",
    "FAIRNESS_TESTS",
    "RULES",
    "STATUS_QUO",
    "UTILITIES",
    "AccuracyOf",
    "Cells",
    "Combined",
    "Components",
    "Criteria",
    "FairnessTest",
    "Goal",
    "Pair",
    "Rows",
    "Rule",
    "Selection",
    "Split",
    "SplitTest",
    "Utility",
    "ValueDraws",
    "bootstrap_values",
    "capacity_count",
    "check_counts",
    "combine_splits",
    "deviations",
    "get_utility",
    "group_values",
    "largest_delta",
    "make_rows",
    "merge_rows",
    "planned_effects",
    "power_curve",
    "random_splits",
    "sample_size",
    "select_top",
    "unknown_candidate",
    "worst_pair",
]
