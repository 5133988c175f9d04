"""Tilted draws against all assignments, exact levels far in the tails, and another stream."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from evenhand.stats.permutation import compare_means
from evenhand.stats.permutation.cells import TwoGroupCells, two_group_cells
from evenhand.stats.permutation.means import Contrast
from evenhand.stats.permutation.tilted import draw_tails, tilt_of
from evenhand.stats.types import FloatArray


def fraud(rng: np.random.Generator, people: int) -> FloatArray:
    return np.where(rng.random(people) < 0.025, 1 - 0.03 * rng.random(people), rng.beta(1, 20, people))


def cells_of(values: FloatArray, first: int, **how: FloatArray) -> TwoGroupCells:
    in_a = np.arange(values.size) < first
    cells = two_group_cells(values, in_a, ~in_a, **how)
    assert cells is not None
    return cells.oriented()[0]


def assignments(cells: TwoGroupCells) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the first group's columns, and (number, C) who is in it, of every assignment."""
    people = np.repeat(np.arange(cells.values.size), cells.counts.sum(axis=0))
    chosen = np.array(list(combinations(people.tolist(), int(cells.people[0, 0]))))
    member = np.zeros((len(chosen), cells.values.size))
    np.add.at(member, (np.arange(len(chosen))[:, np.newaxis], chosen), 1.0)
    return (member @ cells.columns)[:, np.newaxis], member


@pytest.mark.parametrize("values", ["continuous", "ties", "rare"])
@pytest.mark.parametrize("first", [6, 9])
def test_tails_are_those_of_all_assignments(values: str, first: int) -> None:
    rng = np.random.default_rng(1)
    pooled = {
        "continuous": rng.exponential(size=15),
        "ties": np.round(rng.random(15), 1),
        "rare": np.append(np.round(rng.random(13) / 5, 2), [0.9, 1.0]),
    }[values]
    cells = cells_of(pooled, first)
    sums, _ = assignments(cells)
    exact, drawn = cells.statistics(sums), draw_tails(cells, 0.05, 2e-3, 19_999)
    for t in np.quantile(exact, [0.0008, 0.005, 0.03, 0.5, 0.97, 0.995, 0.9992]).astype(np.float32):
        tails = float((exact <= t).mean()), float((exact >= t).mean())
        assert drawn.weights is not None
        found = drawn.weights[drawn.values <= t].sum() / 19_999, drawn.weights[drawn.values >= t].sum() / 19_999
        assert found == pytest.approx(tails, rel=0.12, abs=1e-5)


@pytest.mark.parametrize("side", [-1, 1])
def test_the_mean_weight_is_that_of_all_assignments(side: int) -> None:
    cells = cells_of(np.round(np.random.default_rng(2).random(12), 1), 5)
    tilt = tilt_of(cells, side, (0.05, 0.001))
    _, member = assignments(cells)
    assert tilt.log_mean == pytest.approx(np.log(np.exp(member @ tilt.log_odds).mean()), abs=1e-9)
    drawn = tilt.draw(1, 40_000, np.eye(cells.values.size))[:, 0]
    odds = np.exp(member @ tilt.log_odds)
    assert drawn.sum(axis=1) == pytest.approx(cells.people[:, 0].min())
    assert drawn.mean(axis=0) == pytest.approx(np.average(member, axis=0, weights=odds), abs=0.012)


@pytest.mark.parametrize("kind", ["people", "cells", "strata and weights"])
def test_tails_are_those_of_many_plain_draws(kind: str) -> None:
    rng = np.random.default_rng(3)
    values = np.round(fraud(rng, 3_000), 1) if kind == "cells" else fraud(rng, 700)
    how = {"strata": rng.integers(0, 3, 700), "weights": rng.choice([0.5, 1.0, 3.0], 700)} if "strata" in kind else {}
    cells = cells_of(values, values.size // 5, **how)
    assert cells.shuffling_is_faster == (kind != "cells")
    plain, drawn = cells.draw(200_000), draw_tails(cells, 0.05, 2e-4, 19_999)
    assert drawn.weights is not None
    for tail in (0.001, 0.0002):
        low, high = np.quantile(plain, [tail, 1 - tail]).astype(np.float32)
        for plainly, here in ((plain <= low, drawn.values <= low), (plain >= high, drawn.values >= high)):
            error = np.sqrt(plainly.sum()) + 0.1 * plainly.sum()
            assert drawn.weights[here].sum() / 19_999 * 200_000 == pytest.approx(plainly.sum(), abs=4 * error)


def test_levels_are_exact_far_in_the_tails() -> None:
    pooled = np.append(np.random.default_rng(4).exponential(size=16), [6.0, 9.0])
    cells = cells_of(pooled, 7)
    sums, member = assignments(cells)
    t, p_values = cells.statistics(sums), []
    far = np.flatnonzero((t <= np.quantile(t, 0.002)) | (t >= np.quantile(t, 0.998)))
    for which in far:
        in_a = member[which] > 0
        p_values.append(compare_means(cells.values, in_a, ~in_a, level=1e-4).p_value)
    for level in (1e-4, 2e-4, 5e-4, 1e-3):
        assert (np.array(p_values) < level).sum() <= 1.1 * level * t.size
        assert (np.array(p_values) < level).sum() >= 0.5 * level * t.size


def test_another_stream_gives_nearly_the_same_p_value(monkeypatch: pytest.MonkeyPatch) -> None:
    values = fraud(np.random.default_rng(5), 2_080)
    values[:80] += 0.07
    in_a = np.arange(2_080) < 80
    found, key = [], TwoGroupCells.key
    for other in range(6):
        monkeypatch.setattr(TwoGroupCells, "key", lambda *it, other=other: key(*it) + other)
        found.append(compare_means(values, in_a, ~in_a, level=1e-5).p_value)
    assert 1e-9 < min(found) < 1e-3
    assert max(found) / min(found) < 1.5


@pytest.mark.parametrize("level", [1e-3, 1e-4, 1e-5])
def test_limits_exclude_equality_exactly_if_p_is_below_alpha(level: float) -> None:
    rng = np.random.default_rng(6)
    for shift in (0.0, 0.05, 0.1, 0.15, 0.2, 0.4):
        values = fraud(rng, 300)
        values[:60] += shift
        in_a = np.arange(300) < 60
        contrast: Contrast
        for contrast in ("difference", "ratio"):
            found = compare_means(values, in_a, ~in_a, level=level, contrast=contrast)
            for alpha in (level, found.p_value, found.p_value * 1.001, 0.01, 0.05):
                low, high = found.limits(alpha)
                assert (low > (contrast == "ratio") or high < (contrast == "ratio")) == (found.p_value < alpha)
