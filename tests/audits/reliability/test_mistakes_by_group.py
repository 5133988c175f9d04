"""Mistakes that differ by group: how often, in which way, learned from a pilot; in Python and in an audit file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, EvenhandError

from .conftest import curve, reliability


def risk(rows: Any) -> Any:
    return rows[:, 0] / 100 + rows[:, 1] / 20


def values(result: Any) -> Any:
    return np.array([np.nan if record.value is None else record.value for record in result.values])


class Frames:
    """A model that keeps the frames it is asked about."""

    def __init__(self) -> None:
        self.frames: list[pd.DataFrame] = []

    def predict(self, rows: pd.DataFrame) -> Any:
        self.frames.append(rows)
        return rows.age.to_numpy(float) / 100 + rows.priors.to_numpy(float) / 20


BY_GROUP: dict[str, Any] = {"features": ["age", "priors", "sex"], "noise": {"age": 3, "priors": 1, "sex": "flip"}}


def model_of(people: pd.DataFrame) -> Any:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="a linear model is fitted")
    model = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-12)
    return model.fit(people[BY_GROUP["features"]].to_numpy(float), people.again)


@pytest.mark.parametrize("shares", ["bernoulli", "exact"])
def test_the_linear_shortcut_and_the_rows_agree(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], shares: Any
) -> None:
    model = model_of(people)
    own = {"age": 9, "sex": {"values": [0, 1], "chances": [[0, 1], [0, 1]]}}
    by_group = {"group": {"A": {"times": 2, "noise": own}, "B": 0.5}}
    asked = {**BY_GROUP, **quick, "attribution": True, "shares": shares, "group_noise": by_group}
    linear = reliability({"m": model}, table, **asked)
    by_rows = reliability({"m": lambda rows: model.predict_proba(rows)[:, 1]}, table, **asked)
    assert (linear.models[0].method, by_rows.models[0].method) == ("linear", "rows")
    np.testing.assert_allclose(values(linear), values(by_rows), atol=1e-9)
    parts = [np.array([r.value for r in found.attribution], dtype=float) for found in (linear, by_rows)]
    np.testing.assert_allclose(parts[0], parts[1], atol=1e-9)


def error(found: Any, group: str) -> list[float]:
    return [record.value for record in curve(found, "mean_squared_error", group)]


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["bernoulli", "exact"])
def test_how_often_depends_on_the_group(people: pd.DataFrame, quick: dict[str, Any], shares: Any) -> None:
    """Twice as often at 0.1 is as often as once at 0.2; people of other groupings are counted as they come."""
    big = pd.concat([people] * 20, ignore_index=True)
    table = eh.Table(big, groups=["group", "sex"])
    asked: dict[str, Any] = {
        "features": ["age", "priors"],
        "noise": {"age": 3, "priors": 1},
        **quick,
        "shares": shares,
        "noise_levels": [0.1, 0.2],
        "replicates": 20,
    }
    plain = reliability({"m": risk}, table, **asked)
    twice = reliability({"m": risk}, table, **asked, group_noise={"group": {"A": 2}})
    assert error(twice, "A")[0] == pytest.approx(error(plain, "A")[1], rel=0.05)
    assert error(twice, "B") == pytest.approx(error(plain, "B"), rel=0.05)
    share = (big.group == "A").groupby(big.sex).mean()
    for sex in (0, 1):
        wanted = error(plain, f"sex = {sex}")[0] * (1 + share[sex])
        assert error(twice, f"sex = {sex}")[0] == pytest.approx(wanted, rel=0.08)
    never = reliability({"m": risk}, table, **asked, group_noise={"group": {"A": 0}})
    assert error(never, "A") == [0.0, 0.0]


def test_a_group_goes_wrong_in_its_own_way(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["number"] = np.arange(len(people))
    model = Frames()
    reliability(
        {"m": model},
        eh.Table(people, groups="group"),
        features=["number", "age", "job", "priors"],
        rows="frame",
        noise={"age": {"sd": 2, "maximum": 59}},
        group_noise={"group": {"A": {"noise": {"age": {"sd": 40, "minimum": 70}, "job": "flip"}}}},
        **quick | {"noise_levels": [0.5]},
    )
    rows = pd.concat(model.frames).merge(people, on="number", suffixes=("", "_true"))
    error, other_job = rows.age - rows.age_true, rows.job != rows.job_true
    of_a = rows.group == "A"
    assert (error[~of_a].abs() < 12).all()
    assert error[~of_a].any()
    assert (rows[of_a & (error != 0)].age >= 70).all()  # the least value of their own noise
    assert other_job[of_a].any()
    assert not other_job[~of_a].any()
    assert (rows.priors == rows.priors_true).all()


def test_published_noise_by_group(table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors", "sex"], "noise": ["raez-2024/all/5", "raez-2024-text/all/5"]}
    still = {"age": {"sd": 0}, "priors": {"sd": 0}}
    found = reliability({"m": risk}, table, **asked, **quick, group_noise={"group": {"A": {"noise": still}}})
    for setting in asked["noise"]:
        error = {g: curve(found, "mean_squared_error", g, setting=setting)[-1].value for g in "AB"}
        assert error["A"] == 0.0
        assert error["B"] > 0.001


def pilot(people: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Ages in A are off by 6 in half of the cases, those in B never."""
    rng = np.random.default_rng(seed)
    first = people.iloc[:200]
    wrong = (first.group == "A") & (rng.random(200) < 0.5)
    return pd.DataFrame({"group": first.group, "age_a": first.age, "age_b": first.age + 6 * wrong})


def test_a_pilot_by_group(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    asked = {"features": ["age", "priors"], **quick, "noise_levels": [1.0], "replicates": 30}
    settings = {"data": pilot(people), "suffixes": ["_a", "_b"]}
    shared = reliability({"m": risk}, table, noise={"pilot": settings}, **asked)
    apart = reliability({"m": risk}, table, noise={"pilot": {**settings, "by": "group"}}, **asked)
    error = {g: curve(apart, "mean_squared_error", g)[0].value for g in "AB"}
    both = {g: curve(shared, "mean_squared_error", g)[0].value for g in "AB"}
    small = settings["data"]
    rate = (small[small.group == "A"].age_b > small[small.group == "A"].age_a).mean()
    assert error["A"] == pytest.approx(rate * 0.06**2, rel=0.1)
    assert error["B"] == 0.0
    assert both["A"] == pytest.approx(both["B"], rel=0.15)
    notes = "\n".join(map(str, apart.notes))
    sizes = small.group.value_counts()
    assert f"separately for A ({sizes['A']} people of the pilot) and B ({sizes['B']} people of the pilot)" in notes
    few = reliability({"m": risk}, table, noise={"pilot": {**settings, "by": "group", "enough": 100}}, **asked)
    notes = "\n".join(map(str, few.notes))
    assert (
        f"learned separately for B ({sizes['B']} people of the pilot); all others get those of the whole pilot" in notes
    )
    assert f"Fewer than 100 people of the pilot are A ({sizes['A']})." in notes
    assert curve(few, "mean_squared_error", "B")[0].value == 0.0
    assert curve(few, "mean_squared_error", "A")[0].value == pytest.approx(both["A"], rel=0.15)
    with pytest.raises(ConfigError, match="`by` names the grouping 'grup'; did you mean 'group'"):
        reliability({"m": risk}, table, noise={"pilot": {**settings, "by": "grup"}}, **asked)
    for frame, message in (
        (small.drop(columns="group"), "`pilot` learns by 'group' and has no column 'group'"),
        (small.assign(group="A"), "`pilot`: group column 'group' has only one group"),
    ):
        with pytest.raises(EvenhandError, match=message):
            reliability({"m": risk}, table, noise={"pilot": {**settings, "data": frame, "by": "group"}}, **asked)
    with pytest.raises(ConfigError, match="`group_noise` is about 'sex' and `pilot` learns by 'group'"):
        reliability(
            {"m": risk},
            eh.Table(people, groups=["group", "sex"]),
            noise={"pilot": {**settings, "by": "group"}},
            group_noise={"sex": {"1": 2}},
            **asked,
        )


def test_a_pilot_by_group_and_what_one_is_told_besides(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]
) -> None:
    found = reliability(
        {"m": risk},
        table,
        features=["age", "priors"],
        **quick | {"noise_levels": [0.5], "replicates": 30},
        noise={"pilot": {"data": pilot(people), "suffixes": ["_a", "_b"], "by": "group"}},
        group_noise={"group": {"A": 2, "B": {"noise": {"priors": {"sd": 3}}}}},
    )
    error = {g: curve(found, "mean_squared_error", g)[0].value for g in "AB"}
    small = pilot(people)
    rate = (small[small.group == "A"].age_b > small[small.group == "A"].age_a).mean()
    assert error["A"] == pytest.approx(rate * 0.06**2, rel=0.1)
    assert error["B"] == pytest.approx(0.5 * 9 / 20**2, rel=0.3)


def test_groups_of_several_columns_and_without_a_group(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people.loc[people.index[:30], "group"] = None
    table = eh.Table(people, groups=["group", "sex", ["group", "sex"]])
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}, **quick}
    found = reliability({"m": risk}, table, **asked, group_noise={"group × sex": {"A × 1": 0}})
    error = {r.group: r.value for r in found.values if r.metric == "mean_squared_error" and r.noise_level == 0.3}
    assert error["A × sex = 1"] == 0.0
    assert error["A × sex = 0"] > 0.0  # type: ignore[operator]


def test_rows_in_another_order_give_the_same(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    asked = {**BY_GROUP, **quick, "group_noise": {"group": {"A": {"times": 2, "noise": {"age": 9}}}}, "shares": "exact"}
    one, other = (
        reliability({"m": risk}, eh.Table(frame, groups="group"), **asked)
        for frame in (people, people.sample(frac=1, random_state=1))
    )
    assert one.values == other.values
    assert one.gaps == other.gaps


def test_an_audit_file_with_mistakes_by_group(people: pd.DataFrame, tmp_path: Path, quick: dict[str, Any]) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    pilot(people).to_csv(tmp_path / "pilot.csv", index=False)
    head = """
[data]
source = "people.csv"
outcome = "again"
groups = ["group"]

[reliability]
model = "logistic"
features = ["age", "priors"]
replicates = 4
resamples = 100
attribution = false

[reliability.noise]
noise_levels = [0.1, 0.3]
"""
    given = (
        "[reliability.noise.features]\nage = 3\n"
        "[reliability.noise.group_noise.group]\nA = { times = 2, noise = { priors = 1 } }\nB = 0.5\n"
    )
    learned = '[reliability.noise.pilot]\nsource = "pilot.csv"\nsuffixes = ["_a", "_b"]\nby = "group"\n'
    table = eh.Table(people, outcome="again", groups="group")
    asked: dict[str, Any] = {"features": ["age", "priors"], **quick, "noise_levels": [0.1, 0.3]}
    for part, settings in (
        (given, {"noise": {"age": 3}, "group_noise": {"group": {"A": {"times": 2, "noise": {"priors": 1}}, "B": 0.5}}}),
        (learned, {"noise": {"pilot": {"data": pilot(people), "suffixes": ["_a", "_b"], "by": "group"}}}),
    ):
        (tmp_path / "audit.toml").write_text(head + part)
        found: Any = eh.audit(tmp_path / "audit.toml")["reliability"]
        assert found.values == reliability("logistic", table, **asked, **settings).values
