"""Differences of two shares of the same people: a published interval, the likelihood by brute force, and coverage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multinomial

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.paired import paired_difference

CASES = [(1, 7, 21), (7, 1, 21), (12, 2, 50), (3, 0, 40), (0, 3, 40), (86, 150, 1600), (5, 5, 12)]


def test_published_limits() -> None:
    """Hyper-responsiveness of the airways of 21 children (Bentur et al. 2009), by Fagerland and others (2014)."""
    assert paired_difference(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("gained", "lost", "people"), CASES)
def test_at_the_limits_the_score_test_rejects_just_so(gained: int, lost: int, people: int, confidence: float) -> None:
    """The share of people lost is found by maximising the likelihood, not by the formula."""
    same, seen = people - gained - lost, (gained - lost) / people
    for limit in paired_difference(gained, lost, people, confidence):

        def unlikely(share: float, limit: float = limit) -> float:
            shares = np.array([share + limit, share, 1 - 2 * share - limit])
            counts = np.array([gained, lost, same])
            if (shares < 0).any():
                return 1e9
            return -float((counts[counts > 0] * np.log(np.maximum(shares[counts > 0], 1e-300))).sum())

        ends = (max(0.0, -limit), (1 - limit) / 2)
        share = float(minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-13}).x)
        error = np.sqrt((2 * share + limit * (1 - limit)) / people)
        assert abs(seen - limit) / error == pytest.approx(normal_quantile(confidence), rel=1e-4)


@pytest.mark.parametrize("people", [1, 21, 10_000])
def test_where_nobody_or_everybody_is_decided_otherwise_the_limits_are_known(people: int) -> None:
    z2 = normal_quantile(0.95) ** 2
    assert paired_difference(0, 0, people) == pytest.approx((-z2 / (people + z2), z2 / (people + z2)))
    assert paired_difference(people, 0, people) == pytest.approx(((people - z2) / (people + z2), 1.0))


@pytest.mark.parametrize(("gained", "lost", "people"), CASES)
def test_laws(gained: int, lost: int, people: int) -> None:
    low, high = paired_difference(gained, lost, people)
    assert -1 <= low < (gained - lost) / people < high <= 1
    assert paired_difference(lost, gained, people) == pytest.approx((-high, -low))
    wide = paired_difference(gained, lost, people, 0.99)
    assert wide[0] < low
    assert high < wide[1]


@pytest.mark.parametrize("shares", [(0.05, 0.02), (0.01, 0.01), (0.3, 0.2), (0.0, 0.03)])
def test_the_lower_limit_is_seldom_above_the_truth(shares: tuple[float, float]) -> None:
    """Over all samples of 60 people: a one-sided error of 2.5 % at most 4 %."""
    n, truth, missed = 60, shares[0] - shares[1], 0.0
    chances = multinomial(n, [*shares, 1 - sum(shares)])
    for gained, lost in product(range(n + 1), repeat=2):
        if gained + lost <= n:
            chance = float(chances.pmf([gained, lost, n - gained - lost]))
            if chance > 1e-9:
                missed += chance * (paired_difference(gained, lost, n)[0] > truth)
    assert missed < 0.04


@pytest.mark.parametrize("numbers", [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
def test_numbers_that_cannot_be_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(EvenhandError, match="must be numbers of some of the people"):
        paired_difference(*numbers)
