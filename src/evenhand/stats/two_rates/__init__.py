"""Two rates: one test, and the interval that inverts it, for differences and ratios."""

from evenhand.stats.two_rates.comparison import RateComparison, compare_rates

__all__ = ["RateComparison", "compare_rates"]
