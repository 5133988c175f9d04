"""Comparison of two rates: one test and the matching interval, for differences and ratios."""

from evenhand.stats.two_rates.comparison import RateComparison, compare_rates
from evenhand.stats.two_rates.extremes import extreme_bound, smallest_p

__all__ = ["RateComparison", "compare_rates", "extreme_bound", "smallest_p"]
