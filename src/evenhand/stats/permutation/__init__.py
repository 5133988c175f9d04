"""Studentised permutation of two groups: a test of any mean, and the interval that inverts it."""

from evenhand.stats.permutation.groups import GroupedValues
from evenhand.stats.permutation.means import MeanComparison, compare_means, compare_moments

__all__ = ["GroupedValues", "MeanComparison", "compare_means", "compare_moments"]
