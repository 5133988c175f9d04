"""Arrays, Series and frames stand wherever a column name may: the same numbers, and never rows of another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError, EvenhandError

N = 120
DRAW = np.random.default_rng(3)
SEX, RACE = DRAW.choice(["f", "m"], N), DRAW.choice(["A", "B"], N)
Y, SCORE, WEIGHT = DRAW.integers(0, 2, N), DRAW.random(N), DRAW.uniform(0.5, 2, N)
ROLES: dict[str, Any] = {"outcome": "y", "groups": ["sex"], "predictions": {"m": "score"}, "weight": "w"}

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "column": lambda values: np.asarray(values)[:, np.newaxis],
    "pandas": pd.Series,
    "categories": lambda values: (
        pd.Series(values).astype("category") if values.dtype.kind == "U" else pd.Series(values)
    ),
    "polars": pl.Series,
    "arrow": pa.array,
    "list": lambda values: list(values),
}
FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mapping": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def gaps(table: eh.Table) -> list[tuple[Any, ...]]:
    result = eh.parity(table, metrics=["selection_rate", "tpr"])
    return [(gap.group, gap.reference, gap.metric, gap.kind, gap.value, gap.low, gap.high) for gap in result.gaps]


@pytest.fixture(scope="module")
def by_name() -> list[tuple[Any, ...]]:
    return gaps(eh.Table({"y": Y, "sex": SEX, "score": SCORE, "w": WEIGHT}, **ROLES))


PAIRS = [*((frame, "numpy") for frame in FRAMES), *(("pandas", holder) for holder in HOLDERS if holder != "numpy")]


@pytest.mark.parametrize(("frame", "holder"), [*PAIRS, ("polars", "pandas"), ("arrow", "polars"), ("mapping", "arrow")])
def test_an_array_gives_the_numbers_of_a_column(frame: str, holder: str, by_name: list[tuple[Any, ...]]) -> None:
    hold = HOLDERS[holder]
    table = eh.Table(
        FRAMES[frame]({"other": np.arange(N)}),
        outcome=hold(Y),
        groups={"sex": hold(SEX)},
        predictions={"m": hold(SCORE)},
        weight=hold(WEIGHT),
    )
    assert gaps(table) == by_name
    assert table.models == ("m",)
    assert table.backend == (None if frame == "mapping" else "pyarrow" if frame == "arrow" else frame)


def test_lists_of_one_value_are_values_and_no_names() -> None:
    with pytest.raises(eh.EvenhandError, match="only one group"):
        eh.Table.from_arrays(y_true=[1], y_pred=[1], sample_weight=[2.0], sensitive_features=["f"])


def test_from_arrays_takes_what_fairlearn_takes(by_name: list[tuple[Any, ...]]) -> None:
    given: dict[str, Any] = {"y_true": Y, "sample_weight": WEIGHT}
    features = pd.Series(SEX, name="sex")
    scores = eh.Table.from_arrays(**given, y_score=SCORE, sensitive_features=features)
    assert gaps(scores) == by_name
    decisions = eh.Table.from_arrays(**given, y_pred=(SCORE > 0.5).astype(float), sensitive_features=features)
    assert [gap[4] for gap in gaps(decisions)] == pytest.approx([gap[4] for gap in by_name])
    assert not decisions.has_scores("y_pred")
    several = eh.Table.from_arrays(
        y_true=list(Y),
        y_pred={"a": Y, "b": SCORE > 0.5},
        y_score=SCORE,
        sensitive_features=pd.DataFrame({"sex": SEX, "race": RACE}),
    )
    assert several.models == ("a", "b", "y_score")
    assert list(several.groupings) == ["sex", "race"]


def test_the_words_of_the_outcome_are_those_of_the_decision() -> None:
    words = np.array(["bad", "good"])
    table = eh.Table.from_arrays(
        y_true=words[Y], y_pred=words[(SCORE > 0.5).astype(int)], sensitive_features=SEX, positive="good"
    )
    plain = eh.Table.from_arrays(y_true=Y, y_pred=SCORE > 0.5, sensitive_features=SEX)
    assert gaps(table) == gaps(plain)


@pytest.mark.parametrize("hold", [np.asarray, pd.Series, lambda values: pd.Series(values, name="anything")])
def test_groups_may_be_arrays_intersections_too(hold: Callable[[Any], Any]) -> None:
    sex, race = hold(SEX), hold(RACE)
    table = eh.Table({"x": SCORE}, groups=[sex, race, [sex, race]], predictions="x")
    names = list(table.groupings)
    assert names[2] == f"{names[0]} × {names[1]}"
    assert table.cells.rows == N


def test_a_series_keeps_its_name_and_a_column_of_the_data_is_not_copied() -> None:
    frame = pd.DataFrame({"sex": SEX, "y": Y, "score": SCORE})
    table = eh.Table(frame, outcome=frame["y"], groups=frame["sex"], predictions={"m": frame["score"]})
    assert (table.roles.outcome, list(table.groupings)) == ("y", ["sex"])
    assert table.prediction("m").column == "m"
    other = eh.Table(frame, outcome=pd.Series(1 - Y, name="y"), groups="sex", predictions="score")
    assert other.roles.outcome == "y (2)"


def test_settings_of_a_prediction_take_an_array() -> None:
    table = eh.Table(
        {"sex": SEX}, groups="sex", predictions={"m": {"column": SCORE * 10, "range": [0, 10], "threshold": 5}}
    )
    assert table.prediction("m").range == (0, 10)
    assert eh.Table({"sex": SEX}, groups="sex", predictions=SCORE).models == ("model",)


def test_missing_values_stay_missing() -> None:
    sex: list[str | None] = [None, *SEX[1:].tolist()]
    for hold in (pd.Series, pl.Series, pa.array, list):
        table = eh.Table({"x": SCORE}, groups={"sex": hold(sex)}, predictions="x")
        assert table.cells.labels["sex"] == ("f", "m", "(missing)")


def test_rows_of_another_order_are_refused() -> None:
    frame = pd.DataFrame({"sex": SEX, "score": SCORE}, index=np.arange(N)[::-1])
    with pytest.raises(DataError, match=r"`outcome` is a Series with another index than the data"):
        eh.Table(frame, outcome=pd.Series(Y), groups="sex", predictions="score")
    eh.Table(frame, outcome=pd.Series(Y, index=frame.index), groups="sex", predictions="score")
    with pytest.raises(DataError, match=r"`y_pred` 'y_pred' is a Series with another index than `y_true`"):
        eh.Table.from_arrays(y_true=pd.Series(Y), y_pred=pd.Series(Y, index=frame.index), sensitive_features=SEX)


def test_what_does_not_fit_is_said() -> None:
    frame = pd.DataFrame({"sex": SEX, "score": SCORE})
    table: dict[str, Any] = {"groups": "sex", "predictions": "score"}
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (frame, {"outcome": Y[:-1]}, "`outcome` has 119 values, but the data has 120 rows"),
        (frame, {"predictions": {"m": np.c_[SCORE, SCORE]}}, r"shape (120, 2): take the column of the positive class"),
        (frame, {"groups": {"g": "sex"}}, "name columns in a list"),
        ("data.csv", {"outcome": Y}, "`outcome` is an array, but the data is a file"),
        (pl.LazyFrame({"sex": SEX, "score": SCORE}), {"outcome": Y}, "but the data is a LazyFrame"),
    ]
    for data, roles, message in wrong:
        with pytest.raises(EvenhandError) as error:
            eh.Table(data, **{**table, **roles})
        assert message in str(error.value)
    with pytest.raises(ConfigError, match="needs `y_pred`"):
        eh.Table.from_arrays(y_true=Y, sensitive_features=SEX)


def test_settings_that_name_columns_take_arrays() -> None:
    table = eh.Table({"sex": SEX, "score": SCORE}, outcome=Y, groups="sex", predictions="score")
    decided = (SCORE > 0.5).astype(int)
    by_array = eh.agreement(table, raters={"ann": Y, "bob": decided}, resamples=100)
    named = eh.Table({"sex": SEX, "ann": Y, "bob": decided}, groups="sex")
    by_column = eh.agreement(named, raters=["ann", "bob"], resamples=100)
    assert by_array.spec.raters == ("ann", "bob")
    assert by_array.values == by_column.values
    assert eh.parity(table, within=RACE, resamples=100).spec.within == ("within",)
    assert eh.audit(table, agreement={"raters": [Y, decided], "resamples": 100})["agreement"].rows("values")
    assert "ann" not in table.kinds, "the table itself stays as it was"


def test_data_without_roles_is_told_the_line_to_type() -> None:
    frame = pd.DataFrame({"sex": SEX, "score": SCORE})
    with pytest.raises(ConfigError, match=r"Wrap it in eh.Table\(\.\.\.\).*eh.parity\(eh.Table\(df, groups="):
        eh.parity(frame)
    with pytest.raises(ConfigError, match=r"eh.audit\(eh.Table\(df, "):
        eh.audit(frame)
    with pytest.raises(ConfigError, match=r"eh.reliability\(model, eh.Table\(df, "):
        eh.reliability("logistic", frame)  # type: ignore[call-arg]


def test_an_audit_of_a_table_alone_is_parity() -> None:
    table = eh.Table({"sex": SEX, "score": SCORE}, outcome=Y, groups="sex", predictions="score")
    alone = eh.audit(table)
    assert list(alone.results) == ["parity"]
    assert alone.to_json() == eh.audit(table, parity={}).to_json()
    limited = eh.audit(table, thresholds=[{"metric": "tpr", "max": 0.5}])
    assert str(limited.findings[0].threshold) == "at most 50 points"
