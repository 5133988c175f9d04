"""Sets of five: every promise of the design checked on what was chosen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.stats.effort import trajectory_measure
from evenhand.study import Instrument, design_sets, load_instrument

YEARS = [f"income_{year}" for year in range(2019, 2023)]


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(3_000, seed=1, backend="pandas")
    return frame


def table_of(data: pd.DataFrame, **roles: Any) -> eh.Table:
    return eh.Table(data, id="household", groups=["race", "sex"], predictions={"m": "risk_logistic"}, **roles)


@pytest.fixture(scope="module")
def made(households: pd.DataFrame) -> Instrument:
    return design_sets(table_of(households), YEARS, sets=18, step=100, seed=2)


def test_every_set_keeps_its_limits(households: pd.DataFrame, made: Instrument) -> None:
    """Worked out again from the values that people would see."""
    values = households[YEARS].to_numpy(float)
    slope_sd, total_sd = trajectory_measure(values, "slope").std(), values.sum(axis=1).std()
    assert made.unit_trajectory == pytest.approx(slope_sd)
    assert len(made.sets) == 18
    for one in made.sets:
        assert [subject.role for subject in one.subjects] == ["K", "A", "B", "C", "D"]
        shown = np.array([subject.values for subject in one.subjects])
        slope, total = trajectory_measure(shown, "slope"), shown.sum(axis=1)
        t, s = np.abs(slope - slope[0])[1:] / slope_sd, np.abs(total - total[0])[1:] / total_sd
        assert (t[[0, 2]] <= 0.25).all()
        assert (t[[1, 3]] >= 1).all()
        assert (s[[0, 1]] <= 0.25).all()
        assert (s[[2, 3]] >= 1).all()
        assert (np.sign(slope[[2, 4]]) == -np.sign(slope[0])).all()
        assert (np.sign(slope[[1, 3]]) == np.sign(slope[0])).all()
        quality = one.quality
        assert quality.similar_trajectory == pytest.approx(t[[0, 2]].max())
        assert quality.different_trajectory == pytest.approx(t[[1, 3]].min())
        assert quality.different_aggregate == pytest.approx(s[[2, 3]].min())
        margins = [*(0.25 - t[[0, 2]]) / 0.25, *(0.25 - s[[0, 1]]) / 0.25, *(t[[1, 3]] - 1), *(s[[2, 3]] - 1)]
        assert quality.margin == pytest.approx(min(margins))
        assert quality.margin >= 0
        assert quality.crossing == pytest.approx(np.corrcoef(t, s)[0, 1])


def test_only_the_first_step_of_a_is_changed_and_it_is_marked(households: pd.DataFrame, made: Instrument) -> None:
    rows = households.assign(household=households.household.astype(str)).set_index("household")
    for one in made.sets:
        for subject in one.subjects:
            real = rows.loc[subject.id, YEARS].to_numpy(float)
            assert subject.perturbed == (subject.role == "A")
            np.testing.assert_array_equal(subject.values[1:], real[1:])
            assert (subject.values[0] == real[0]) == (not subject.perturbed)
            if subject.perturbed:
                assert abs(subject.values[0] - real[0]) == pytest.approx(max(100, round(0.0005 * real[0]) * 100))
            assert subject.group == rows.loc[subject.id, "race"]
        reference, copy = one.subjects[:2]
        assert reference.id == copy.id
        assert reference.score == pytest.approx(rows.loc[reference.id, "risk_logistic"])
        assert copy.score is None


def test_nobody_is_in_two_sets(made: Instrument) -> None:
    people = [subject.id for one in made.sets for subject in one.subjects if not subject.perturbed]
    assert len(people) == len(set(people)) == 4 * 18


def test_groups_take_turns(made: Instrument) -> None:
    references = pd.Series([one.subjects[0].group for one in made.sets]).value_counts()
    large = ["White", "Black", "Hispanic"]
    assert references[large].max() - references[large].min() <= 1
    assert sum(made.balance.values()) == 4 * 18
    assert max(made.balance[group] for group in large) <= 2 * min(made.balance[group] for group in large)


def test_the_seed_decides(households: pd.DataFrame, made: Instrument) -> None:
    again = design_sets(table_of(households.sample(frac=1, random_state=1)), YEARS, sets=18, step=100, seed=2)
    assert again.to_dict() == made.to_dict()
    other = design_sets(table_of(households), YEARS, sets=18, step=100, seed=3)
    assert other.sets != made.sets


def test_there_and_back_through_a_file(made: Instrument, tmp_path: Path) -> None:
    path = made.save(tmp_path / "income.json")
    assert load_instrument(path) == made
    assert json.loads(path.read_text(encoding="utf-8"))["sets"][0]["subjects"][1]["perturbed"] is True
    frame = made.to_frame("pandas")
    assert len(frame) == 5 * 18
    assert frame.perturbed.sum() == 18
    assert frame[YEARS].notna().all(axis=None)
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(DataError, match="no instrument that design_sets"):
        load_instrument(tmp_path / "bad.json")
    with pytest.raises(DataError, match="could not be read"):
        load_instrument(tmp_path / "none.json")


def test_counts_such_as_arrests_stay_counts() -> None:
    data = eh.datasets.make_defendants(3_000, seed=2, backend="pandas")
    years = [column for column in data.columns if column.startswith("arrests_")]
    table = eh.Table(data, id=data.columns[0], groups="race")
    made = design_sets(table, years, sets=4, measure="acceleration", similar_aggregate=0.5)
    for one in made.sets:
        shown = np.array([subject.values for subject in one.subjects])
        assert (shown >= 0).all()
        assert (shown == np.round(shown)).all()
        assert abs(shown[1, 0] - shown[0, 0]) == 1


def test_gaps_and_unknown_groups_are_left_out_and_told(households: pd.DataFrame) -> None:
    gaps = households.copy()
    gaps[YEARS[1]] = gaps[YEARS[1]].astype(float)
    gaps.loc[gaps.index[:7], YEARS[1]] = np.nan
    gaps.loc[gaps.index[10:13], "race"] = None
    made = design_sets(table_of(gaps), YEARS, sets=2, step=100)
    assert tuple(map(str, made.notes)) == (
        "7 people with a gap in the trajectory were left out.",
        "3 people with an unknown group were left out.",
    )
    written = json.loads(json.dumps(made.to_dict()))
    assert Instrument.from_dict(written).notes == made.notes


def test_a_table_without_groups() -> None:
    data = eh.datasets.make_households(800, seed=1)
    made = design_sets(eh.Table(data, id="household"), YEARS, sets=2, step=100)
    assert made.balance == {}
    assert made.sets[0].subjects[0].score is None


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"similar_trajectory": 2.0},
            ConfigError,
            "`similar_trajectory` must be below `different_trajectory`; got 2 and 1",
        ),
        ({"balance": "rcae"}, ConfigError, "did you mean 'race'"),
        ({"model": "n"}, ConfigError, "`model` got 'n'"),
        ({"set": 3}, ConfigError, "did you mean 'sets'"),
        ({"different_aggregate": 500.0}, DataError, "nobody fitting was left as .* C [0-9]+ times"),
        ({"perturb": 0.5, "similar_trajectory": 1e-9}, DataError, "left as A .* measure='acceleration'"),
    ],
)
def test_what_cannot_be_is_told(households: pd.DataFrame, change: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        design_sets(table_of(households.head(400)), YEARS, **{"step": 100, **change})


def test_tables_that_do_not_fit_are_told(households: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="names no id column"):
        design_sets(eh.Table(households, groups="race"), YEARS)
    with pytest.raises(ConfigError, match="at least 3 time steps"):
        design_sets(table_of(households), YEARS[:2])
    with pytest.raises(DataError, match="holds 3 with a whole trajectory"):
        design_sets(table_of(households.head(3)), YEARS)
    flat = households.head(50).assign(**dict.fromkeys(YEARS, 5))
    with pytest.raises(DataError, match="are equal"):
        design_sets(table_of(flat), YEARS)


def test_of_several_draws_the_best_crossed_is_kept(households: pd.DataFrame) -> None:
    crossings = []
    for draws in (1, 20):
        made = design_sets(table_of(households), YEARS, sets=12, step=100, seed=3, draws=draws)
        crossings.append(np.mean([abs(one.quality.crossing or 0.0) for one in made.sets]))
    assert crossings[1] < crossings[0] / 3


def test_a_copy_that_cannot_be_alike_is_explained() -> None:
    data = eh.datasets.make_defendants(500, seed=1)
    table = eh.Table(data, id="defendant", groups="race")
    with pytest.raises(DataError, match=r"moves the trajectory by 0\.\d+ and the total by 0\.\d+ standard deviations"):
        design_sets(table, [f"arrests_year{year}" for year in range(1, 5)])
