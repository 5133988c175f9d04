"""The studentised permutation of two groups: one test and the interval that inverts it, for any mean of people."""

from evenhand.stats.permutation.groups import GroupedValues
from evenhand.stats.permutation.means import MeanComparison, compare_means, compare_moments

__all__ = ["GroupedValues", "MeanComparison", "compare_means", "compare_moments"]
