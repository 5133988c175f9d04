"""Agreement about people who come in clusters: laws, and errors against a formula and statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import evenhand as eh
from evenhand.audits.agreement.result import AgreementResult
from evenhand.errors import DataError


def rows(clusters: int = 80, each: int = 4, seed: int = 0, *, kind: str = "binary", mixed: bool = False) -> Any:
    """Return two raters' ratings of rows that are alike within a cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), each)
    level = rng.normal(size=clusters)[cluster]
    truth = level + rng.normal(size=len(cluster))
    hard = np.where(level > 0, 0.9, 0.3)
    first, second = (truth + hard * rng.normal(size=len(cluster)) for _ in range(2))
    if kind == "binary":
        first, second = ((rating > 0).astype(int) for rating in (first, second))
    group = rng.integers(0, 2, len(cluster)) if mixed else cluster % 2
    return {
        "group": np.where(group == 0, "A", "B"),
        "person": np.char.add("p", cluster.astype(str)),
        "a": first.round(2),
        "b": second.round(2),
    }


def audited(data: Any, cluster: str | None = "person", **settings: Any) -> AgreementResult:
    scale = "binary" if set(np.unique(data["a"])) <= {0, 1} else "interval"
    table = eh.Table(data, groups="group", cluster=cluster)
    return eh.agreement(table, **{"raters": ["a", "b"], "scale": scale, "resamples": 400, **settings})


def numbers(result: AgreementResult) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return value, limits and p-value of every record."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {
        (v.metric, v.group): (v.value, v.low, v.high) for v in result.values
    }
    found |= {(g.metric, g.against, g.group): (g.value, g.low, g.high, g.p_value) for g in result.gaps}
    return {key: tuple(np.nan if x is None else x for x in each) for key, each in found.items()}


def repeated(data: Any, times: int) -> Any:
    return {name: np.repeat(values, times) for name, values in data.items()}


@pytest.mark.parametrize("kind", ["binary", "scores"])
def test_repeating_rows_within_their_clusters_changes_little(kind: str) -> None:
    names = ["kappa", "agreement"] if kind == "binary" else ["icc_1", "concordance"]
    data = rows(kind=kind)
    once, again = (numbers(audited(each, metrics=names, reference="A")) for each in (data, repeated(data, 5)))
    for key, expected in once.items():
        if key[0] != "icc_1":  # which has n - 1 in it
            assert again[key] == pytest.approx(expected, abs=0.03 if kind == "binary" else 0.1, nan_ok=True), key


def test_single_rows_as_clusters_have_nearly_the_limits_of_independent_rows() -> None:
    data = rows(600, 1)
    alone, independent = (numbers(audited(data, cluster)) for cluster in ("person", None))
    for key in [("kappa", "A"), ("agreement", "A"), ("kappa", "reference", "B"), ("agreement", "reference", "B")]:
        assert alone[key][:3] == pytest.approx(independent[key][:3], abs=0.03), key


@pytest.mark.parametrize("kind", ["binary", "scores"])
@pytest.mark.parametrize("mixed", [False, True])
def test_nothing_depends_on_names_or_order(kind: str, mixed: bool) -> None:
    data = rows(kind=kind, mixed=mixed)
    order = np.random.default_rng(9).permutation(len(data["group"]))
    shuffled = {name: values[order] for name, values in data.items()}
    shuffled["person"] = np.char.add("z", np.char.replace(shuffled["person"], "p", ""))
    found, other = numbers(audited(data)), numbers(audited(shuffled))
    assert found.keys() == other.keys()
    for key, expected in found.items():
        assert other[key] == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True), key


def test_the_error_of_agreement_is_that_of_a_clustered_regression() -> None:
    data = rows(2_000, 4, mixed=True)
    agrees = (data["a"] == data["b"]).astype(float)
    design = sm.add_constant((data["group"] == "B").astype(float))
    codes = np.unique(data["person"], return_inverse=True)[1]
    expected = sm.OLS(agrees, design).fit(cov_type="cluster", cov_kwds={"groups": codes})
    gap = audited(data, metrics=["agreement"], reference="A").get("gaps", against="reference")
    assert gap.value == pytest.approx(expected.params[1])
    assert gap.low is not None
    assert gap.high is not None
    assert (gap.high - gap.low) / 2 / 1.96 == pytest.approx(expected.bse[1], rel=0.03)


def test_the_error_of_kappa_is_that_of_its_linearised_values() -> None:
    """Kappa's delta method with cluster totals: Yang and Zhou 2015, Statistics in Medicine 34."""
    data = rows(1_500, 4)
    a, b = data["a"], data["b"]
    _, codes = np.unique(data["person"], return_inverse=True)
    n, p, q, agree = len(a), a.mean(), b.mean(), (a == b).mean()
    chance = p * q + (1 - p) * (1 - q)
    kappa = (agree - chance) / (1 - chance)
    of_chance = (a - p) * (2 * q - 1) + (b - q) * (2 * p - 1)
    psi = ((a == b) - agree) / (1 - chance) - of_chance * (1 - agree) / (1 - chance) ** 2
    stderr = np.sqrt((np.bincount(codes, weights=psi) ** 2).sum()) / n
    value = audited(data, metrics=["kappa"]).get("values", group="(overall)", metric="kappa")
    assert value.value == pytest.approx(kappa)
    assert value.low is not None
    assert value.high is not None
    assert (value.high - value.low) / 2 / 1.96 == pytest.approx(stderr, rel=0.04)


def test_repeated_ratings_look_more_certain_without_clusters() -> None:
    data = repeated(rows(100, 1), 5)
    wide, narrow = (audited(data, cluster).get("values", group="A", metric="kappa") for cluster in ("person", None))
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.7 * (narrow.high - narrow.low)


def test_p_is_below_alpha_exactly_where_the_interval_excludes_equality() -> None:
    for seed in range(4):
        for gap in audited(rows(40, 6, seed), resamples=100).gaps:
            if gap.against != "worst_pair" and gap.low is not None and gap.high is not None and gap.p_value is not None:
                assert (gap.p_value < 0.05) == (gap.low > 0 or gap.high < 0), gap


def test_few_clusters_are_shown_and_not_compared() -> None:
    result = audited(rows(18, 10))
    value = result.get("values", group="A", metric="agreement")
    assert value.value is not None
    assert value.low is None
    assert "core.few_clusters" in str(value.status.args["why"].id)
    assert all(gap.p_value is None for gap in result.gaps)


def test_disagreement_in_one_cluster_tells_nothing_of_others() -> None:
    data = rows(60, 10)
    data["b"] = np.where(data["person"] == "p0", 1 - data["a"], data["a"])
    value = audited(data).get("values", group="A", metric="kappa")
    assert value.low is None
    assert value.status.args["why"].id == "agreement.few_disagreeing"


def test_the_note_names_the_column() -> None:
    note = next(note for note in audited(rows()).notes if note.id == "core.clustered")
    assert note.args == {"cluster": "person", "n": 80}


def test_ratings_in_rows_take_clusters_of_items() -> None:
    data = rows()
    items = len(data["a"])
    long = {
        "item": np.tile(np.arange(items), 2),
        "rater": np.repeat(["a", "b"], items),
        "grade": np.concatenate([data["a"], data["b"]]),
        "group": np.tile(data["group"], 2),
        "person": np.tile(data["person"], 2),
    }
    settings: Any = {"item": "item", "rater": "rater", "rating": "grade", "scale": "binary", "resamples": 400}
    result = eh.agreement(eh.Table(long, groups="group", cluster="person"), **settings)
    wide = numbers(audited(data))
    for key, expected in numbers(result).items():
        assert expected == pytest.approx(wide[key], rel=1e-6, nan_ok=True), key
    long["person"][0] = "p79"
    with pytest.raises(DataError, match="more than one 'cluster'"):
        eh.agreement(eh.Table(long, groups="group", cluster="person"), **settings)
