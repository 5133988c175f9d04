"""Limits for looking again and again: the martingale at the ends, and gaps and changes one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta

from evenhand.stats.sequences import gap_drift, period_gaps, rate_sequence, spent

Limits = tuple[float, float]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_at_the_ends_the_martingale_reaches_one_over_alpha(confidence: float) -> None:
    s, n = np.array([3.0, 30.0, 1.0, 499.0]), np.array([10.0, 100.0, 7.0, 500.0])
    for end in rate_sequence(s, n, confidence):
        martingale = betaln(1 + s, 1 + n - s) - s * np.log(end) - (n - s) * np.log1p(-end)
        np.testing.assert_allclose(np.exp(martingale), 1 / (1 - confidence), rtol=1e-6)


def test_limits_of_nothing_none_and_all() -> None:
    low, high = rate_sequence([0, 0, 10], [0, 10, 10])
    assert low.tolist()[:2] == [0.0, 0.0]
    assert (high[0], high[2]) == (1.0, 1.0)
    edge = 1 - (0.05 / 11) ** (1 / 10)  # (1 - p)^10 is 0.05 B(1, 11) = 0.05 / 11
    assert (low[2], high[1]) == pytest.approx((1 - edge, edge))


def test_what_looks_may_spend_adds_up_to_alpha() -> None:
    parts = spent(0.05, np.arange(1, 1_001))
    assert parts[:3] == pytest.approx([0.05 / 2, 0.05 / 6, 0.05 / 12])
    assert parts.sum() == pytest.approx(0.05 * 1_000 / 1_001)


def exact(hits: float, people: float, alpha: float) -> Limits:
    low = beta.ppf(alpha / 2, hits, people - hits + 1) if hits > 0 else 0.0
    high = beta.ppf(1 - alpha / 2, hits + 1, people - hits) if hits < people else 1.0
    return float(low), float(high)


def mover(p: float, of_p: Limits, q: float, of_q: Limits) -> Limits:
    """Zou and Donner: the distances of both rates to their limits, as the sides of a triangle."""
    low = p - q - np.hypot(p - of_p[0], of_q[1] - q)
    return float(low), float(p - q + np.hypot(of_p[1] - p, q - of_q[0]))


def test_gaps_of_periods_by_hand() -> None:
    a, n, b, m = (40, 70, 0), (100, 90, 20), (40, 45, 20), (100, 80, 20)
    gap, limits = period_gaps(a, n, b, m, 0.05)
    for k in range(3):
        alpha = 0.05 / ((k + 1) * (k + 2))
        p, q = a[k] / n[k], b[k] / m[k]
        expected = mover(p, exact(a[k], n[k], alpha), q, exact(b[k], m[k], alpha))
        assert gap[k] == pytest.approx(p - q)
        assert (limits.low[k], limits.high[k]) == pytest.approx(expected, abs=1e-9)


def mean_gap(periods: list[tuple[float, float, float, float]], alpha: float) -> tuple[float, Limits]:
    weights = [n * m / (n + m) for _, n, _, m in periods]
    sides = []
    for hits, people in ((0, 1), (2, 3)):
        rate = sum(w * one[hits] / one[people] for w, one in zip(weights, periods, strict=True)) / sum(weights)
        worth = sum(weights) ** 2 / sum(w**2 / one[people] for w, one in zip(weights, periods, strict=True))
        sides.append((rate, exact(rate * worth, worth, alpha)))
    (p, of_p), (q, of_q) = sides
    return p - q, mover(p, of_p, q, of_q)


def test_changes_of_a_gap_by_hand_without_periods_that_have_nobody() -> None:
    a, n, b, m = (40, 5, 38, 70, 0), (100, 9, 90, 110, 40), (40, 0, 41, 0, 30), (100, 0, 120, 80, 60)
    found = gap_drift(a, n, b, m, 0.05)
    used = [0, 2, 3, 4]
    periods = [(float(a[i]), float(n[i]), float(b[i]), float(m[i])) for i in used]
    asked = [(look, start) for look in range(1, 4) for start in range(1, look + 1)]
    assert found.look.tolist() == [used[look] for look, _ in asked]
    assert found.start.tolist() == [used[start] for _, start in asked]
    for at, (look, start) in enumerate(asked):
        s = look - start + 1
        alpha = 0.05 / (look**2 * s * (s + 1))
        (old, of_old), (new, of_new) = mean_gap(periods[:start], alpha), mean_gap(periods[start : look + 1], alpha)
        expected = mover(new, of_new, old, of_old)
        assert found.change[at] == pytest.approx(new - old)
        assert (found.limits.low[at], found.limits.high[at]) == pytest.approx(expected, abs=1e-7)
        assert found.nearest[at] == pytest.approx(max(expected[0], -expected[1]), abs=1e-7)


def test_one_period_or_none_has_no_change() -> None:
    for people in ([], [10.0], [0.0, 10.0]):
        found = gap_drift([0.0] * len(people), people, [0.0] * len(people), people, 0.05)
        assert (found.look.size, found.change.size, found.nearest.size) == (0, 0, 0)
