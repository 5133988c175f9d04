"""What every synthetic table keeps to: its arguments, its seed, and the known truth that it samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from evenhand.datasets import defendants_truth, households_truth, make_defendants, make_households
from evenhand.errors import ConfigError


class Synthetic(NamedTuple):
    make: Callable[..., Any]
    truth: Callable[[], Any]
    outcome: str
    rows: int


TABLES = {
    "households": Synthetic(make_households, households_truth, "missed_payment", 1_000_000),
    "defendants": Synthetic(make_defendants, defendants_truth, "rearrested", 500_000),
}
MODELS = [(table, model) for table, synthetic in TABLES.items() for model in synthetic.truth()]

each_table = pytest.mark.parametrize("table", TABLES)


@pytest.fixture(scope="module")
def large() -> Callable[[str], Any]:
    """Many rows of each table, enough to see the truth to three digits."""
    made: dict[str, Any] = {}

    def rows_of(table: str) -> Any:
        if table not in made:
            made[table] = TABLES[table].make(TABLES[table].rows, seed=20, backend="pandas")
        return made[table]

    return rows_of


@each_table
def test_same_seed_same_table_on_every_backend(table: str) -> None:
    make = TABLES[table].make
    in_pandas = make(500, seed=7, backend="pandas")
    in_polars = make(500, seed=7, backend="polars")
    in_arrow = make(500, seed=7, backend="pyarrow")
    assert isinstance(in_polars, pl.DataFrame)
    assert isinstance(in_arrow, pa.Table)
    assert in_polars.to_dict(as_series=False) == in_arrow.to_pydict() == in_pandas.to_dict("list")
    assert not in_polars.equals(make(500, seed=8, backend="polars"))


@each_table
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`n` must be an integer of at least 1; got 0"),
        ({"n": 2.5}, "`n` must be an integer of at least 1; got 2.5"),
        ({"n": True}, "`n` must be an integer of at least 1; got True"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
        ({"seed": None}, "`seed` must be an integer of at least 0; got None"),
        ({"n": 5, "backend": "pola"}, "did you mean 'polars'"),
    ],
)
def test_wrong_arguments(table: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TABLES[table].make(**arguments)


@each_table
def test_one_row_and_numpy_integers(table: str) -> None:
    assert len(TABLES[table].make(np.int64(1), np.int32(3), backend="pandas")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("table", "model"), MODELS)
@pytest.mark.parametrize("grouping", ["overall", "race", "sex", "age_group"])
def test_a_large_table_agrees_with_the_truth(
    large: Callable[[str], Any], table: str, model: str, grouping: str
) -> None:
    people, outcome, size = large(table), TABLES[table].outcome, TABLES[table].rows
    key = np.full(size, "all") if grouping == "overall" else people[grouping].to_numpy()
    truth = TABLES[table].truth()[model][grouping]
    assert set(truth) == set(key)
    for group, expected in truth.items():
        rows = people[key == group]
        score, positive = rows[f"risk_{model}"].to_numpy(), rows[outcome].to_numpy() == 1
        selected = score > 0.5
        assert_rate(len(rows), size, expected["share"])
        assert_rate(positive.sum(), positive.size, expected["outcome_rate"])
        assert_rate(selected.sum(), selected.size, expected["selection_rate"])
        assert_rate(selected[positive].sum(), positive.sum(), expected["tpr"])
        assert_rate(selected[~positive].sum(), (~positive).sum(), expected["fpr"])
        assert abs(score.mean() - expected["mean_score"]) < 4.5 * score.std() / math.sqrt(score.size)


def assert_rate(hits: float, size: float, truth: float) -> None:
    assert abs(hits / size - truth) <= 4.5 * math.sqrt(truth * (1.0 - truth) / size)


@each_table
def test_the_truth_adds_up(table: str) -> None:
    for by_grouping in TABLES[table].truth().values():
        overall = by_grouping["overall"]["all"]
        for groups in by_grouping.values():
            assert math.fsum(group["share"] for group in groups.values()) == pytest.approx(1.0)
            for figure in ("outcome_rate", "selection_rate", "mean_score"):
                mixed = math.fsum(group["share"] * group[figure] for group in groups.values())
                assert mixed == pytest.approx(overall[figure])
            for group in groups.values():
                selected = group["outcome_rate"] * group["tpr"] + (1 - group["outcome_rate"]) * group["fpr"]
                assert selected == pytest.approx(group["selection_rate"])
