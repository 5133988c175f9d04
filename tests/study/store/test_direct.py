"""The short way to SQLite: the same results, the same errors, and nothing half done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import TextClause, select, text

from evenhand.study.store.database import Database, Direct, parse_url
from evenhand.study.store.records import StoreError

_INSERT = text("INSERT INTO t (a, b) VALUES (:a, :b) RETURNING b")
_COUNT = text("SELECT count(*) FROM t")
_BY_B = select(text("a"), text("b")).select_from(text("t")).where(text("b = :b"))
_TWICE = select(text("a")).select_from(text("t")).where(text("a = :a OR b = :a"))


@pytest.fixture
def database(tmp_path: Path) -> Database:
    found = Database(parse_url(str(tmp_path / "a.db")))
    with found.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL)")
    return found


def rows(database: Database) -> int:
    with database.page_reading() as direct:
        assert isinstance(direct, Direct)
        return int(direct.execute(_COUNT, {}).scalar_one())


def test_results(database: Database) -> None:
    with database.page_writing() as direct:
        assert direct.execute(_INSERT, {"b": "x'é", "a": 1}).scalar_one() == "x'é"
        assert direct.execute(_BY_B, {"b": "x'é"}).first() == (1, "x'é")
        assert direct.execute(_BY_B, {"b": "?"}).first() is None
        assert direct.execute(_TWICE, {"a": 1}).all() == [(1,)]
        assert direct.execute(text("UPDATE t SET b = 'y'"), {}).rowcount == 1
        with pytest.raises(LookupError):
            direct.execute(_BY_B, {"b": "gone"}).one()
    assert rows(database) == 1


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        (_INSERT, {"a": 1, "b": None}, "it refused a value"),
        (text("SELECT a FROM nowhere"), {}, "no such table: nowhere"),
    ],
)
def test_an_error_is_a_sentence_and_undoes_all(
    database: Database, statement: TextClause, values: dict[str, Any], words: str
) -> None:
    def write() -> None:
        with database.page_writing() as direct:
            direct.execute(_INSERT, {"a": 2, "b": "kept?"})
            direct.execute(statement, values)

    with pytest.raises(StoreError, match=words):
        write()
    assert rows(database) == 0
    with database.page_writing() as direct:  # the turn of the next writer has come
        direct.execute(_INSERT, {"a": 3, "b": "z"})
    assert rows(database) == 1


def test_what_breaks_off_is_undone(database: Database) -> None:
    def write() -> None:
        with database.page_writing() as direct:
            direct.execute(_INSERT, {"a": 2, "b": "kept?"})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert rows(database) == 0


def test_a_missing_parameter_is_no_silent_null(database: Database) -> None:
    with pytest.raises(KeyError), database.page_reading() as direct:
        direct.execute(_BY_B, {})
