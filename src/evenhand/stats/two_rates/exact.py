"""Exact unconditional p-values and limits of two rates, cached."""

from __future__ import annotations

from functools import lru_cache

GAMMA = 1e-6  # the chance that the pooled rate lies outside of those that are searched; no p-value is smaller
_CACHED = 1 << 16

Counts = tuple[int, int, int, int]


@lru_cache(maxsize=_CACHED)
def pooled_span(yes: int, people: int) -> tuple[float, float]:
    """Return exact limits of a pooled rate with confidence 1 - GAMMA.

    The number of successes of people with different rates is less variable than that of as many people with the mean
    rate (Hoeffding 1956), so these are limits of the mean rate also if the groups differ.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(yes, people - yes + 1, GAMMA / 2)) if yes > 0 else 0.0
    high = float(betaincinv(yes + 1, people - yes, 1.0 - GAMMA / 2)) if yes < people else 1.0
    return low, high


@lru_cache(maxsize=_CACHED)
def upper_tail(counts: Counts, position: float, is_ratio: bool) -> float:
    """Return the one-sided p-value of x of m against y of n, small if the contrast is above `position`."""
    from evenhand.stats.two_rates.kernels import largest_tail

    x, m, y, n = counts
    most = largest_tail(_floats(counts), (position, is_ratio), pooled_span(x + y, m + n), 2.0)
    return min(1.0, most + GAMMA)


@lru_cache(maxsize=_CACHED)
def is_beyond_tail(counts: Counts, position: float, is_ratio: bool, tail: float) -> bool:
    """Return whether the p-value of `upper_tail` is below `tail`."""
    from evenhand.stats.two_rates.kernels import largest_tail

    x, m, y, n = counts
    enough = tail - GAMMA
    return (
        enough > 0 and largest_tail(_floats(counts), (position, is_ratio), pooled_span(x + y, m + n), enough) < enough
    )


@lru_cache(maxsize=_CACHED)
def lowest_position(counts: Counts, is_ratio: bool, tail: float) -> float:
    """Return the lowest position with a one-sided p-value of at least `tail`."""
    from scipy.special import ndtri

    from evenhand.stats.two_rates.kernels import exact_limit, score_limit

    x, m, y, n = counts
    guess = score_limit(_floats(counts), is_ratio, -float(ndtri(tail)))
    return float(exact_limit((_floats(counts), is_ratio, pooled_span(x + y, m + n), tail, GAMMA), guess))


def complemented(counts: Counts) -> Counts:
    """Return the counts or their equivalent complement, whichever has the smaller group first."""
    x, m, y, n = counts
    return min(counts, (n - y, n, m - x, m), key=lambda each: (each[1], each))


def _floats(counts: Counts) -> tuple[float, float, float, float]:
    x, m, y, n = counts
    return float(x), float(m), float(y), float(n)
