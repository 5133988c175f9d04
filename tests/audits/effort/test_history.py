"""Trajectories from a long table: one row for each person and time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.core.display import DisplayTable
from evenhand.errors import ConfigError, DataError

YEARS = [f"income_{year}" for year in range(2019, 2023)]
HISTORY = {"time": "year", "value": "income"}


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(120, seed=2, backend="pandas")
    return frame


@pytest.fixture(scope="module")
def long(wide: pd.DataFrame) -> pd.DataFrame:
    melted = wide.melt(id_vars="household", value_vars=YEARS, var_name="year", value_name="income")
    return melted.assign(year=melted.year.str.removeprefix("income_").astype(int)).sample(frac=1, random_state=0)


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(data, **{"id": "household", "groups": "sex", "predictions": {"m": "risk_xgboost"}, **roles})


def numbers(result: Any) -> dict[str, Any]:
    tables = result.tables
    return {name: tables[name] for name in ("values", "gaps", "people", "pairs")}


def test_long_and_wide_give_the_same_numbers(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    expected = numbers(eh.effort(make_table(wide), trajectory=YEARS, unit=10_000, scale=200_000))
    for data in (long, long.to_dict("list")):
        found = eh.effort(make_table(wide), history={"data": data, **HISTORY}, unit=10_000, scale=200_000)
        assert numbers(found) == expected


def test_time_stamps_of_a_history_count(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    later = long.assign(year=long.year.replace({2022: 2024}))
    found = eh.effort(make_table(wide), history={"data": later, **HISTORY}, unit=10_000, scale=200_000)
    stamps = [2019, 2020, 2021, 2024]
    expected = eh.effort(make_table(wide), trajectory=YEARS, times=stamps, unit=10_000, scale=200_000)
    assert numbers(found) == numbers(expected)


def test_audit_toml_names_a_file_beside_it(wide: pd.DataFrame, long: pd.DataFrame, tmp_path: Path) -> None:
    wide.drop(columns=YEARS).to_csv(tmp_path / "people.csv", index=False)
    long.rename(columns={"household": "who"}).to_csv(tmp_path / "incomes.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "people.csv"\nid = "household"\ngroups = ["sex"]\npredictions = { m = "risk_xgboost" }\n'
        "[effort]\nunit = 10_000\nscale = 200_000\n"
        '[effort.history]\nsource = "incomes.csv"\nid = "who"\ntime = "year"\nvalue = "income"\n'
    )
    audit = eh.audit(tmp_path / "audit.toml")
    expected = eh.effort(make_table(wide), trajectory=YEARS, unit=10_000, scale=200_000)
    assert numbers(audit["effort"]) == numbers(expected)
    assert audit.to_dict()["config"]["effort"]["history"]["source"] == "incomes.csv"
    assert str(tmp_path) not in audit.to_json()


def test_people_not_in_the_table_are_told_and_gaps_refused_or_dropped(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    history = {"data": long, **HISTORY}
    result = eh.effort(make_table(wide.head(100)), history=history, unit=10_000, scale=200_000)
    assert "The history has 20 people who are not among those of the table; they are not used." in [
        note.text for note in result.notes
    ]
    holes = {"data": long[~((long.year == 2021) & long.household.isin(wide.household[:3]))], **HISTORY}
    with pytest.raises(DataError, match=r"missing in 3 rows of 120 \('income at 2021' in 3\)"):
        eh.effort(make_table(wide), history=holes)
    assert eh.effort(make_table(wide, missing="drop"), history=holes).values[0].n == 117


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": "yaer"}, "`time` of `history` is 'yaer', which is not in the data; did you mean 'year'"),
        ({"id": "income"}, "no id of `history` is in the table; its column 'income'"),
        ({"value": "name"}, "`value` of `history` must be a column of numbers; 'name' is not"),
        ({"data": None}, "exactly one of `data` and `source`"),
        ({"whit": 1}, "there is no such setting"),
    ],
)
def test_wrong_histories_are_told(wide: pd.DataFrame, long: pd.DataFrame, change: dict[str, Any], message: str) -> None:
    data = long.assign(name="x")
    with pytest.raises((ConfigError, DataError), match=message):
        eh.effort(make_table(wide), history={"data": data, **HISTORY, **change})


def test_others_do_not_stretch_time_and_ids_may_be_numbers(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    other = pd.DataFrame({"household": [-1], "year": [1999], "income": [1]})
    as_floats = pd.concat([long, other]).assign(household=lambda frame: frame.household.astype(float))
    found = eh.effort(make_table(wide), history={"data": as_floats, **HISTORY}, unit=10_000, scale=200_000)
    expected = eh.effort(make_table(wide), trajectory=YEARS, unit=10_000, scale=200_000)
    assert numbers(found) == numbers(expected)


def test_a_person_twice_at_one_time_is_told(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    twice = pd.concat([long, long.head(1)])
    first = long.iloc[0]
    with pytest.raises(DataError, match=f"has 2 rows for '{first.household}' at year {first.year}"):
        eh.effort(make_table(wide), history={"data": twice, **HISTORY})


def test_two_times_no_id_and_both_kinds_are_refused(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    history = {"data": long, **HISTORY}
    with pytest.raises(DataError, match="at least 3 time steps; `history` has 2"):
        eh.effort(make_table(wide), history={"data": long[long.year > 2020], **HISTORY})
    with pytest.raises(ConfigError, match="name the table's `id` column"):
        eh.effort(make_table(wide, id=None), history=history)
    with pytest.raises(ConfigError, match="either `trajectory`"):
        eh.effort(make_table(wide), history=history, trajectory=YEARS)
    with pytest.raises(ConfigError, match="either `trajectory`"):
        eh.effort(make_table(wide))
    lost = long.assign(year=long.year.astype(float))
    lost.loc[lost.index[0], "year"] = np.nan
    with pytest.raises(DataError, match="lacks an id or a time in 1 row"):
        eh.effort(make_table(wide), history={"data": lost, **HISTORY})


def test_the_hash_of_the_data_covers_the_history(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    def hashed(data: pd.DataFrame) -> str:
        table = make_table(wide)
        eh.effort(table, history={"data": data, **HISTORY}, unit=10_000, scale=200_000)
        return table.digest()

    assert hashed(long) == hashed(long.sample(frac=1, random_state=5)) != hashed(long.assign(income=long.income * 3))


def test_a_result_holds_no_rows_of_the_history(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    result = eh.effort(make_table(wide), history={"data": long, **HISTORY}, unit=10_000, scale=200_000, robustness=True)
    assert result.spec.history is not None
    assert result.spec.history.data is None
    again = eh.EffortResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.to_dict() == result.to_dict()
    assert [str(part) for part in again.section().parts if isinstance(part, DisplayTable)] == [
        str(part) for part in result.section().parts if isinstance(part, DisplayTable)
    ]
    assert again.plot("specifications").to_svg(name="x") == result.plot("specifications").to_svg(name="x")
