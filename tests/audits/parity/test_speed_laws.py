"""What makes the parity audit fast must not show in its numbers: batches, slices, sums that are added once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.parity import resampled
from evenhand.audits.parity.gather import GroupCells, Totals
from evenhand.audits.parity.metrics import METRICS
from evenhand.stats.draws import Draws, upper_quantile
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.types import FloatArray, Interval

RESAMPLES = 200


def people(size: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    outcome = rng.random(size) < 0.4
    return {
        "group": np.array(list("abcde"))[rng.integers(5, size=size)],
        "factor": np.array(["x", "y"])[rng.integers(2, size=size)],
        "outcome": outcome.astype(int),
        "score": np.clip(0.3 + 0.3 * outcome + 0.2 * rng.standard_normal(size), 0, 1),
        "weight": rng.gamma(3.0, size=size),
    }


def table(prediction: str = "score", **roles: Any) -> eh.Table:
    data = people()
    data["decision"] = (data["score"] > 0.5).astype(int)
    return eh.Table(data, outcome="outcome", groups=["group"], predictions={"m": prediction}, **roles)


def f1(cells: Totals) -> FloatArray:
    return 2 * cells.tp / (2 * cells.tp + cells.fp + cells.fn)


@pytest.mark.slow
@pytest.mark.parametrize("interval", ["auto", "percentile", "basic", "bca"])
@pytest.mark.parametrize("within", [(), ("factor",)])
def test_one_metric_and_one_group_at_a_time_give_the_same_records(
    interval: Any, within: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> dict[str, Any]:
        settings: dict[str, Any] = {"interval": interval, "within": within, "custom": {"f1": f1}}
        return eh.parity(table(), resamples=RESAMPLES, **settings).to_dict()

    at_once = run()
    monkeypatch.setattr(resampled, "_MOST_DRAWS", 1)
    monkeypatch.setattr(resampled, "_SLICE", 1)
    assert run() == at_once


def max_t(draws: Draws, confidence: float) -> Interval:
    """Return joint intervals estimate ± q stderr, with q the quantile of the largest deviation in standard errors."""
    spread = draws.stderr()
    included = (spread > 0) & (spread > draws.rounding()) & np.isfinite(draws.estimate)
    if not included.any():
        return Interval(*np.full((2, draws.estimate.size), np.nan))
    distance = np.abs(draws.values[:, included] - draws.estimate[included]) / spread[included]
    critical = upper_quantile(np.fmax.reduce(distance, axis=1), confidence)
    half = np.where(included, critical * spread, np.nan)
    return Interval(draws.estimate - half, draws.estimate + half)


def test_max_t_is_one_band_for_all() -> None:
    values = np.random.default_rng(9).normal(size=(20_000, 4)) * [1.0, 2.0, 5.0, 0.1]
    limits = max_t(Draws(np.zeros(4), values), 0.95)
    critical = normal_quantile(0.95 ** (1 / 4))  # of four independent normals
    np.testing.assert_allclose(limits.high, critical * np.array([1.0, 2.0, 5.0, 0.1]), rtol=0.03)
    inside = (np.abs(values) <= limits.high).all(axis=1).mean()
    assert inside == pytest.approx(0.95, abs=1e-3)


def test_max_t_leaves_out_what_has_no_stderr() -> None:
    values = np.random.default_rng(10).normal(size=(2000, 4))
    values[:, 1] = 3.0
    values[5:, 2] = np.nan
    values[0, 3] = np.inf
    limits = max_t(Draws(np.array([0.0, 3.0, 0.0, 0.0]), values), 0.95)
    alone = max_t(Draws(np.zeros(1), values[:, :1]), 0.95)
    assert np.isnan(limits.low[1:]).all()
    assert np.isnan(limits.high[1:]).all()
    assert (limits.low[0], limits.high[0]) == (alone.low[0], alone.high[0])


@pytest.mark.parametrize("kind", ["plain", "with ties", "with undefined draws", "without spread"])
def test_the_band_of_all_pairs_is_max_t_of_their_differences(kind: str) -> None:
    rng = np.random.default_rng(1)
    estimate = rng.random(6)
    values = estimate + 0.1 * rng.standard_normal((500, 6))
    if kind == "with ties":
        estimate, values = estimate.round(1), values.round(1)
    elif kind == "with undefined draws":
        values[:10, 2], values[:400, 4], estimate[5] = np.nan, np.nan, np.nan
    elif kind == "without spread":
        values[:] = estimate
    i, j = np.triu_indices(6, 1)
    with np.errstate(all="ignore"):
        expected = max_t(Draws(estimate[i] - estimate[j], values[:, i] - values[:, j]), 0.9)
        found, p = resampled._pairwise_band(estimate, values, 0.9)
    np.testing.assert_allclose(found.low, expected.low, rtol=1e-12)
    np.testing.assert_allclose(found.high, expected.high, rtol=1e-12)
    apart = (found.low > 0) | (found.high < 0)
    assert bool(apart.any()) == (p < 0.1 - 1e-9)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.ratio is not None])
def test_sums_added_once_give_the_metric_of_its_coefficients(name: str) -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(1, 50, size=(7, 3, 4, 2, 2, 3)).astype(float)  # resamples, strata, groups, cells, values
    sums = resampled.Sums.build((3, 4, 2, 2), first[..., 0].reshape(7, 48), first.reshape(7, 48, 3))
    above, below = METRICS[name].coefficients()
    groups = np.concatenate([first, first.sum(axis=2, keepdims=True)], axis=2)
    by_stratum = (groups * above).sum(axis=(-3, -2, -1)) / (groups[..., 0] * below).sum(axis=(-2, -1))
    support = np.array([True, False, True])
    share = (first[..., 0] * below).sum(axis=(2, 3, 4)) * support
    expected = (by_stratum * share[..., None]).sum(axis=1) / share.sum(axis=1)[:, None]
    np.testing.assert_allclose(resampled.metric_values(sums, METRICS[name], None, support), expected.T, rtol=1e-12)


def test_a_function_of_rates_is_standardised_through_its_rates() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 50, size=(7, 48)).astype(float)
    sums, support = resampled.Sums.build((3, 4, 2, 2), counts, counts[..., :0]), np.array([True, False, True])
    tpr, tnr, both = (
        resampled.metric_values(sums, METRICS[name], None, support) for name in ("tpr", "tnr", "balanced_accuracy")
    )
    np.testing.assert_allclose(both, (tpr + tnr) / 2, rtol=1e-12)


def test_only_weights_and_scores_are_drawn_beside_counts() -> None:
    def values(prediction: str, **roles: Any) -> int:
        of = table(prediction, **roles)
        cells = of.score_cells("m") if prediction == "score" else of.counts("m")
        return int(GroupCells.build(cells, "m", ["group"], ()).moments().first.shape[1])

    assert (values("decision"), values("decision", weight="weight"), values("score")) == (0, 3, 3)
