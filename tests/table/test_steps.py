"""A table is opened, checked and read in steps, none of which changes what another one holds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.table import Prediction, Table
from evenhand.table.checking import check_table
from evenhand.table.engines import collect, count_transfers
from evenhand.table.files import FileOptions
from evenhand.table.labels import hide_groups
from evenhand.table.opening import open_table
from evenhand.table.roles import make_roles
from evenhand.table.sources import open_source

ROLES: dict[str, Any] = {"groups": "g", "outcome": "y", "predictions": {"m": "s"}}
DATA: dict[str, list[Any]] = {
    "g": [" A", "B", "A ", "", "C", "A"],
    "y": [" yes", "no", "no", "yes", "yes ", "no"],
    "s": [0.2, 0.9, 0.6, 0.7, 0.1, 0.8],
    "w": [1.0, 2.0, 0.0, 1.0, 3.0, 1.0],
}
LONG = 25_000  # rows of a file: more than DuckDB infers types from


def sql_of(table: Table) -> str:
    """Return the SQL that counts a table's rows by group and outcome."""
    names = {f"key{position}": key.expression for position, key in enumerate(table.group_keys())}
    counted = table.complete_rows().select(**names, outcome=table.outcome_state(), code=table.group_codes("g"))
    return str(counted.to_native().sql_query())


@pytest.fixture
def late_fraction(tmp_path: Path) -> str:
    """Write a file in which a column that no role names is whole in its first rows, and not in its last."""
    path = tmp_path / "people.csv"
    rows = [f"{'AB'[row % 2]},{row % 2},{(row % 10) / 10},{row}" for row in range(LONG)]
    path.write_text("\n".join(["g,y,s,income", *rows, "A,1,0.5,7.5"]) + "\n")
    return str(path)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_a_table_in_a_database_leaves_other_tables_as_they_are(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis", reason="databases need evenhand[database]")
    first = Table(DATA, **ROLES)
    before = sql_of(first)
    pd.DataFrame(DATA).to_parquet(tmp_path / "people.parquet", index=False)
    remote = Table(ibis.duckdb.connect().read_parquet(tmp_path / "people.parquet"), **ROLES)
    second = Table(DATA, **ROLES)
    assert remote.source.portable_sql
    assert not second.source.portable_sql
    assert sql_of(second) == sql_of(first) == before
    assert "regexp_replace" not in before
    assert (
        remote.cells.labels
        == second.cells.labels
        == {"g": ("A", "B", "C", "(missing)")}
        | {name: labels for name, labels in first.cells.labels.items() if name != "g"}
    )
    assert remote.cells.digest() == second.cells.digest() == first.cells.digest()


def test_opening_checks_nothing_and_checking_changes_nothing_that_was_opened() -> None:
    roles = make_roles(**{**ROLES, "weight": "w", "outcome": "absent"})
    opened = open_table(DATA, FileOptions(), roles)
    assert opened.roles is roles
    with pytest.raises(DataError, match="outcome column 'absent' is not in the data"):
        check_table(opened)
    assert opened.roles is roles
    opened = open_table(DATA, FileOptions(), make_roles(**{**ROLES, "weight": "w"}))
    frame = opened.source.frame
    checked = check_table(opened)
    assert opened.source.frame is frame
    assert tuple(map(str, opened.source.notes)) == ()
    assert checked.opened.source.notes[0].text == "1 row has a weight of 0 and counts as nobody."
    assert checked.weights.nonzero_weight_filter is not None
    assert (checked.cells.rows, checked.dropped) == (5, 0)
    for step, name in ((opened, "roles"), (checked, "cells"), (checked.opened.source, "frame")):
        with pytest.raises(FrozenInstanceError):
            setattr(step, name, None)


@pytest.mark.parametrize("name", ["cells", "data", "dropped", "kinds", "roles", "rows", "source"])
def test_nothing_of_a_table_can_be_set(name: str) -> None:
    table = Table(DATA, **ROLES)
    with pytest.raises(AttributeError):
        setattr(table, name, None)


def test_a_later_type_is_read_without_a_change_of_the_table(late_fraction: str) -> None:
    table = Table(late_fraction, **ROLES)
    notes, kinds, frame = table.source.notes, dict(table.kinds), table.source.frame
    assert kinds["income"] == "unread"
    rows = table.person_rows(["income"])
    assert rows.numbers["income"].max() == LONG - 1
    assert np.isin(7.5, rows.numbers["income"])
    assert (table.source.notes, dict(table.kinds)) == (notes, kinds)
    assert table.source.frame is frame
    kept = table.complete_rows().select(nw.col("income").cast(nw.Float64).max())
    assert kept.to_native().fetchall() == [(LONG - 1,)]
    typed = Table(pd.read_csv(late_fraction), **ROLES)
    typed.person_rows(["income"])
    assert table.digest() == typed.digest()


def test_notes_stay_when_types_are_inferred_again(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{'A' if row % 2 else ' B'},{row % 2},{(row % 10) / 10},{row % 3},{row}" for row in range(LONG)]
    path.write_text("\n".join(["g,y,s,w,income", *rows, "A,1,0.5,1,7.5"]) + "\n")
    table = Table(str(path), **ROLES, weight="w")
    notes = table.source.notes
    assert [note.text.split(" have ")[0] for note in notes][:1] == ["8,334 rows"]
    people = table.person_rows(["income"])
    assert len(people.numbers["income"]) == table.rows
    assert people.weight is not None
    assert people.weight.min() == 1.0
    assert table._reader() is not table
    assert table._reader().source.notes == notes


def test_tables_of_other_groups_or_data_are_new_ones() -> None:
    table = Table(DATA, **ROLES)
    hidden = hide_groups(table, {"g": ["B"]})
    assert hidden.cells.labels["g"] == ("A", "C", "(missing)")
    assert table.cells.labels["g"] == ("A", "B", "C", "(missing)")
    fewer = table.with_data({name: column[:2] for name, column in DATA.items()})
    assert (fewer.rows, table.rows) == (2, 6)
    assert "B" not in hidden.with_data(DATA).cells.labels["g"]


def test_tab_completion_shows_names_for_users_only() -> None:
    table = Table(DATA, **ROLES)
    names = dir(table)
    assert {"rows", "cells", "models", "groupings", "prediction", "from_arrays"} < set(names)
    assert not {"with_type_retry", "record_models", "record_rows", "with_groups", "complete_rows"} & set(names)
    assert not [name for name in names if name.startswith("_")]
    assert all(hasattr(table, name) for name in names)
    assert set(dir(table.prediction("m"))) == set(Prediction.model_fields)
    assert eh.Table is Table


def test_what_engines_send_is_counted() -> None:
    frame = open_source(pd.DataFrame(DATA)).frame.lazy()
    with count_transfers() as outer:
        collect(frame.select("g", "s"))
        with count_transfers() as inner:
            collect(frame.select("y").head(2))
    collect(frame)
    assert (outer, outer.values) == ([6], 12)
    assert (inner, inner.values) == ([2], 2)
