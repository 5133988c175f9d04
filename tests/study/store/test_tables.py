"""The tables: made once, also by several servers at once; a database of another version is left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import inspect, text

from evenhand.study.store import StoreError, open_store
from evenhand.study.store.database import Database, parse_url
from evenhand.study.store.tables import METADATA, VERSION, make_tables, version_of


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    opened = Database(parse_url(store_url))
    yield opened
    opened.close()


def tables(database: Database) -> set[str]:
    with database.reading() as connection:
        return set(inspect(connection).get_table_names())


def test_the_tables_are_made_once(database: Database) -> None:
    for _ in range(2):
        make_tables(database)
        assert tables(database) == set(METADATA.tables)
    with database.reading() as connection:
        assert version_of(connection) == VERSION


def test_a_database_of_another_version_is_refused_and_left_alone(database: Database, store_url: str) -> None:
    make_tables(database)
    with database.writing() as connection:
        connection.execute(text("UPDATE evenhand_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="was made by another version of evenhand; use that version"):
        open_store(store_url)
    with database.reading() as connection:
        assert version_of(connection) == "9999"


def test_making_them_that_fails_leaves_nothing_behind(database: Database, store_url: str) -> None:
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE sessions (mine TEXT)"))
    with pytest.raises(StoreError, match=r"cannot be used: .*already exists"):
        open_store(store_url)
    assert tables(database) == {"sessions"}


def test_servers_that_start_at_once_make_them_once(store_url: str, make_design: Any) -> None:
    def start(_: int) -> int:
        with open_store(store_url) as store:
            return store.register(make_design()).participants.enrol("key").id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(start, range(8)))) == 1


def test_processes_that_start_at_once_make_them_once(store_url: str) -> None:
    code = "import sys; from evenhand.study.store import open_store; open_store(sys.argv[1]).close()"
    command = [sys.executable, "-c", code, store_url]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in started] == [""] * 2
    with open_store(store_url) as store:
        assert store.studies() == []
