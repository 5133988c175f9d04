"""A real panel: the wages of 545 men over eight years, as the page on real trajectories uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, person_scores
from evenhand.stats.effort import effort_scores

wage_panel: Any = pytest.importorskip(
    "linearmodels.datasets.wage_panel", reason="the panel is part of linearmodels, which is not installed"
)

YEARS = list(range(1980, 1987))
COLUMNS = [f"wage_{year}" for year in YEARS]
OPTIONS: dict[str, Any] = {"unit": 1, "scale": 40, "weights": [0.5, 0.6577]}


@pytest.fixture(scope="module")
def panel() -> Any:
    data = wage_panel.load()
    race = np.select([data["black"] == 1, data["hisp"] == 1], ["Black", "Hispanic"], "Other")
    return data.assign(wage=np.exp(data["lwage"]), race=race)


@pytest.fixture(scope="module")
def wages(panel: Any) -> Any:
    return panel.loc[panel["year"] < 1987, ["nr", "year", "wage"]]


@pytest.fixture(scope="module")
def men(panel: Any, wages: Any) -> Any:
    wide = wages.pivot(index="nr", columns="year", values="wage").set_axis(COLUMNS, axis=1).reset_index()
    low = (wide[COLUMNS] < 5).mean(axis=1)
    education = panel.groupby("nr")["educ"].first().to_numpy()
    race = panel.groupby("nr")["race"].first().to_numpy()
    return wide.assign(race=race, past_years=low, schooling=1 - education / education.max())


@pytest.fixture(scope="module")
def table(men: Any) -> eh.Table:
    return eh.Table(men, id="nr", groups="race", predictions={"past_years": "past_years", "schooling": "schooling"})


@pytest.fixture(scope="module")
def result(table: eh.Table) -> EffortResult:
    return eh.effort(table, trajectory=COLUMNS, **OPTIONS)


def by_person(table: eh.Table, column: str = "effort") -> dict[str, float]:
    scores = person_scores(table, trajectory=COLUMNS, **OPTIONS)
    return dict(zip(scores["id"], scores[column], strict=True))


def pairs_of(result: EffortResult) -> list[Any]:
    """Return the worst pairs, whoever of the two stands first."""
    return [(pair.model, pair.weight, {pair.id_a, pair.id_b}, round(pair.value, 12)) for pair in result.pairs]


def test_the_panel_is_whole(panel: Any) -> None:
    assert panel.shape[0] == 545 * 8
    assert panel["nr"].nunique() == 545
    assert (panel.groupby("nr")["year"].apply(sorted).map(tuple) == tuple(range(1980, 1988))).all()
    assert panel.groupby("nr")["race"].nunique().max() == 1
    sizes = panel.loc[panel["year"] == 1980, "race"].value_counts().to_dict()
    assert sizes == {"Other": 397, "Hispanic": 85, "Black": 63}
    assert not panel.isna().any(axis=None)


def test_only_two_of_the_seven_years_enter_effort(men: Any, table: eh.Table, result: EffortResult) -> None:
    by_hand = 1 / (1 + np.exp(-(men["wage_1986"] - men["wage_1981"]) / 5))
    found = by_person(table)
    assert [found[str(nr)] for nr in men["nr"]] == pytest.approx(by_hand.tolist(), abs=1e-14)
    unused = {name: men[name] * 3 + 1 for name in COLUMNS if name not in ("wage_1981", "wage_1986")}
    changed = eh.Table(men.assign(**unused), id="nr", groups="race", predictions={"past_years": "past_years"})
    assert by_person(changed) == found
    assert by_person(changed, "aggregate") != by_person(table, "aggregate")
    assert any(
        "Only two of the 7 time steps enter effort: wage_1981 and wage_1986" in note.text for note in result.notes
    )


def test_the_telescoped_sum_is_the_mean_acceleration(men: Any) -> None:
    cumulative = men[COLUMNS].to_numpy().cumsum(axis=1)
    acceleration = np.diff(cumulative, n=2, axis=1).mean(axis=1)
    by_hand = 1 / (1 + np.exp(-acceleration))
    np.testing.assert_allclose(effort_scores(men[COLUMNS].to_numpy()), by_hand, rtol=0, atol=1e-12)
    np.testing.assert_allclose(effort_scores(men[COLUMNS].to_numpy(), times=YEARS), by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", ["past_years", "schooling"])
@pytest.mark.parametrize("weight", [0.5, 0.6577])
def test_individual_fairness_equals_all_pairs_by_hand(
    men: Any, result: EffortResult, model: str, weight: float
) -> None:
    x = men[COLUMNS].to_numpy()
    e = 1 / (1 + np.exp(-(x[:, -1] - x[:, 1]) / 5))
    s = 2 / (1 + np.exp(-x.sum(axis=1) / 40)) - 1
    m = men[model].to_numpy()
    i, j = np.triu_indices(len(men), 1)
    excess = np.abs(m[i] - m[j]) - np.sqrt(weight * (e[i] - e[j]) ** 2 + (1 - weight) * (s[i] - s[j]) ** 2)
    record = result.get("values", metric="eaif", model=model, weight=weight)
    assert record.pairs == len(i) == 148_240
    assert record.value == pytest.approx(1 - np.maximum(excess, 0).mean(), abs=1e-12)
    assert record.violated == pytest.approx((excess > 1e-12).mean(), abs=1e-12)


def test_parity_by_effort_equals_group_means_by_hand(men: Any, table: eh.Table, result: EffortResult) -> None:
    found = by_person(table)
    bins = (men["nr"].astype(str).map(found) / 0.1).round(9) // 1
    means = men.groupby([bins.rename("bin"), "race"])["past_years"].agg(["size", "mean"])
    large = means.loc[means["size"] >= 10, "mean"].groupby("bin").agg(["size", "min", "max"])
    expected = large.loc[large["size"] >= 2, "min"] / large.loc[large["size"] >= 2, "max"]
    own = {
        round(r.bin_low * 10): r.value
        for r in result.rows("gaps", metric="eagf", model="past_years")
        if r.bin_low is not None and r.value is not None
    }
    assert own == pytest.approx(expected.to_dict(), abs=1e-12)
    assert sorted(own) == [4, 5, 6]


def test_a_long_table_gives_what_columns_give(wages: Any, table: eh.Table, result: EffortResult) -> None:
    shuffled = wages.sample(frac=1, random_state=0)
    long = eh.effort(table, history={"data": shuffled, "time": "year", "value": "wage"}, **OPTIONS)
    ours, theirs = result.tables, long.tables
    for name in ("values", "gaps", "curve", "spread", "people"):
        assert len(ours[name]) == len(theirs[name]) > 0, name
        for one, other in zip(ours[name], theirs[name], strict=True):
            for field in one.columns():
                value, same = getattr(one, field), getattr(other, field)
                assert value == (pytest.approx(same, rel=1e-12) if isinstance(value, float) else same), (name, field)
    assert pairs_of(long) == pairs_of(result)
    assert {(p.id, p.time, p.value) for p in long.trajectories} == {
        (p.id, p.time, p.value) for p in result.trajectories
    }


def test_the_published_inertia_has_no_rate_for_these_groups(table: eh.Table) -> None:
    with pytest.raises(eh.EvenhandError, match=r"no rate for 'Hispanic', 'Other' of column 'race'"):
        eh.effort(table, trajectory=COLUMNS, inertia="nces-2012")
