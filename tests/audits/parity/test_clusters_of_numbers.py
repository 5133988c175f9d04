"""Numbers, such as salaries, whose rows come in clusters: laws, and errors against statsmodels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import evenhand as eh
from evenhand.audits.parity.result import ParityResult

METRICS = ["mean", "median", "quantile_90", "mean_error", "mae", "rmse", "within_tolerance"]


def rows(clusters: int = 60, each: int = 5, seed: int = 0, *, mixed: bool = False) -> dict[str, Any]:
    """Return salaries of people with several years each."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(clusters), each)
    group = rng.integers(0, 2, len(person)) if mixed else person % 2
    pay = np.exp(10 + 0.4 * rng.normal(size=clusters)[person] + 0.2 * rng.normal(size=len(person))).round(2)
    return {
        "sex": np.where(group == 0, "F", "M"),
        "site": np.array(["north", "south"])[rng.integers(0, 2, len(person))],
        "person": np.char.add("p", person.astype(str)),
        "pay": pay,
        "truth": (pay * np.exp(0.1 * rng.normal(size=len(person)))).round(2),
        "weight": rng.uniform(0.5, 2.0, len(person)).round(2),
    }


def audited(data: Any, cluster: str | None = "person", weight: str | None = None, **settings: Any) -> Any:
    table = eh.Table(
        data,
        groups="sex",
        outcome="truth",
        predictions={"pay": {"column": "pay", "kind": "number"}},
        cluster=cluster,
        weight=weight,
    )
    return eh.parity(table, **{"metrics": METRICS, "tolerance": 2_000.0, **settings})


def limits(result: ParityResult) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return value, limits and p-value of every value and gap."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for value in result.values:
        found[value.metric, value.stratum, value.group] = (value.value, value.low, value.high)
    for gap in result.gaps:
        key = (gap.metric, gap.kind, gap.against, gap.stratum, gap.group)
        found[key] = (gap.value, gap.low, gap.high, gap.p_value)
    return {key: tuple(np.nan if number is None else number for number in numbers) for key, numbers in found.items()}


def repeated(data: dict[str, Any], times: int) -> dict[str, Any]:
    return {name: np.repeat(values, times) for name, values in data.items()}


def test_repeating_rows_within_their_clusters_changes_nothing() -> None:
    once, again = (limits(audited(data, metrics=["mean", "mae", "rmse"])) for data in (rows(), repeated(rows(), 4)))
    for key, expected in once.items():
        assert again[key] == pytest.approx(expected, rel=2e-3, abs=2e-3), key


def test_single_rows_as_clusters_have_the_limits_of_independent_rows() -> None:
    alone, independent = (audited(rows(200, 1), cluster, metrics=["mean", "rmse"]) for cluster in ("person", None))
    for value, expected in zip(alone.values, independent.values, strict=True):
        assert (value.value, value.low, value.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_order_statistics_of_single_rows_are_near_the_exact_ones() -> None:
    alone, independent = (audited(rows(400, 1), cluster, metrics=["median"]) for cluster in ("person", None))
    for value, expected in zip(alone.values, independent.values, strict=True):
        assert value.value == expected.value
        width = expected.high - expected.low
        assert [value.low, value.high] == pytest.approx([expected.low, expected.high], abs=0.2 * width)


@pytest.mark.parametrize("mixed", [False, True])
def test_nothing_depends_on_names_or_order(mixed: bool) -> None:
    data = rows(mixed=mixed)
    order = np.random.default_rng(9).permutation(len(data["sex"]))
    shuffled = {name: values[order] for name, values in data.items()}
    shuffled["person"] = np.char.add("z", np.char.replace(shuffled["person"], "p", ""))
    found, other = (limits(audited(part, within="site")) for part in (data, shuffled))
    assert found.keys() == other.keys()
    for key, expected in found.items():
        assert other[key] == pytest.approx(expected, rel=1e-8, abs=1e-9, nan_ok=True), key


def test_equal_weights_are_no_weights() -> None:
    data = rows() | {"weight": np.full(300, 3.0)}
    found, other = (limits(audited(data, weight=weight)) for weight in (None, "weight"))
    for key, expected in found.items():
        assert other[key] == pytest.approx(expected, rel=1e-8, abs=1e-9, nan_ok=True), key


def test_many_clusters_agree_with_statsmodels() -> None:
    """Least squares of the salary on the group, with weights and standard errors clustered by person."""
    data = rows(4_000, 4, mixed=True)
    data["pay"] = 20_000 + 3_000 * np.log(data["pay"])  # symmetric, so that limits are the estimate ± 1.96 errors
    design = sm.add_constant((data["sex"] == "F").astype(float))
    model = sm.WLS(data["pay"], design, weights=data["weight"])
    expected = model.fit(cov_type="cluster", cov_kwds={"groups": np.unique(data["person"], return_inverse=True)[1]})
    gap = audited(data, weight="weight", metrics=["mean"], reference="M").get(
        "gaps", kind="difference", against="reference"
    )
    assert gap.value == pytest.approx(expected.params[1], rel=1e-9)
    assert (gap.high - gap.low) / 2 / 1.96 == pytest.approx(expected.bse[1], rel=0.01)


def test_p_is_below_alpha_exactly_where_the_interval_excludes_equality() -> None:
    for seed in range(6):
        for gap in audited(rows(24, 6, seed)).gaps:
            if gap.against != "worst_pair" and None not in (gap.low, gap.high, gap.p_value):
                equal = 0.0 if gap.kind == "difference" else 1.0
                assert (gap.p_value < 0.05) == (gap.low > equal or gap.high < equal), gap


def test_four_rows_per_person_are_less_certain_than_four_people() -> None:
    with_clusters, without = (audited(repeated(rows(100, 1), 4), cluster) for cluster in ("person", None))
    for metric in ("mean", "median", "mae"):
        wide, narrow = (result.get("values", group="F", metric=metric) for result in (with_clusters, without))
        assert wide.value == narrow.value
        assert wide.high - wide.low > 1.6 * (narrow.high - narrow.low)


def test_few_clusters_are_shown_and_not_compared() -> None:
    result = audited(rows(18, 10))
    value = result.get("values", group="F", metric="median")
    assert value.value is not None
    assert (value.low, value.high, value.status.id) == (None, None, "core.few_clusters")
    assert all(gap.value is None for gap in result.gaps)


def test_many_clusters_are_the_same_in_every_engine(tmp_path: Path) -> None:
    data = pd.DataFrame(rows(1_500, 2))
    data.to_parquet(tmp_path / "rows.parquet")
    found = [limits(audited(source, metrics=["mean", "median"])) for source in (data, tmp_path / "rows.parquet")]
    assert found[0] == found[1]


def test_calibration_allows_for_clusters() -> None:
    with_clusters, without = (audited(repeated(rows(200, 1), 6), cluster).calibration for cluster in ("person", None))
    pairs = [(a, b) for a, b in zip(with_clusters, without, strict=True) if None not in (a.low, a.high, b.low, b.high)]
    assert len(pairs) >= 10
    assert np.median([(a.high - a.low) / (b.high - b.low) for a, b in pairs]) > 1.8
