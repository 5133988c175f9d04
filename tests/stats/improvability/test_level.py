"""The level of both fairness tests at the boundary of the null.

`benchmarks/coverage/improvability_level.py` measures all of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.improvability import Criteria, Pair, Rows, SplitTest, bootstrap_values, get_utility

CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))
SAMPLES = 400


def sample(gap0: float, gap1: float, rng: np.random.Generator, n: int = 600) -> Rows:
    """Draw rows with these gaps in truth, and a clear gain in accuracy."""
    group = rng.integers(2, size=n)
    y, place = rng.standard_normal(n), rng.random(n)
    terms = np.zeros((n, 1, 2, 2))
    for t, (level, gap, chosen) in enumerate(((5.0, gap0, place < 0.2), (8.0, gap1, (place > 0.1) & (place < 0.3)))):
        terms[:, 0, t, 1] = chosen
        terms[:, 0, t, 0] = np.where(chosen, y + level + gap * group, 0.0)
    return Rows(group, terms, ("a", "b"), ("calibration",))


@pytest.mark.parametrize("delta", [*(pytest.param(delta, marks=pytest.mark.slow) for delta in (0.0, 0.5)), 0.9])
def test_the_signed_test_keeps_its_level_and_the_published_one_does_not(delta: float) -> None:
    rng = np.random.default_rng([7, int(10 * delta)])
    rejected = np.zeros(2)
    for _ in range(SAMPLES):
        rows = sample(0.9, (1 - delta) * 0.9, rng)
        draws = bootstrap_values(rows, resamples=199, rng=rng, method="rows", threads=1)
        signed = SplitTest(draws=draws, criteria=CRITERIA, worst=[Pair(1, 0)]).components(fairness=delta)
        published = SplitTest(draws=draws, criteria=CRITERIA, worst=[Pair(1, 0)], fairness_test="published").components(
            fairness=delta
        )
        rejected += [signed.p <= 0.05, published.p <= 0.05]
    signed_level, published_level = rejected / SAMPLES
    assert signed_level < 0.05 + 3 * np.sqrt(0.05 * 0.95 / SAMPLES)
    if delta == 0.9:
        assert published_level > 0.09
