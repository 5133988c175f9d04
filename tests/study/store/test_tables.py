"""Migrations: up from nothing, up from an older database with people in it, two servers at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from evenhand.study.flow.design import Step
from evenhand.study.store import StoreError, open_store
from evenhand.study.store.database import Database, parse_url
from evenhand.study.store.tables import HEAD, METADATA, VERSION_TABLE, migrate, revision_of

SETTINGS = '{"conditions": {"": 1.0}, "places": null, "seed": 7, "points": 6, "abandon_after": 14400.0}'
PAYLOAD = '{"aggregate":3,"overall":2,"trajectory":1}'
OLD_ROWS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        """INSERT INTO studies (name, kind, fingerprint, settings, secret, completion_code, created_at)
           VALUES ('arrests', 'effort', 'f', :settings, :secret, 'CODE', 1.5)""",
        {"settings": SETTINGS, "secret": b"secret"},
    ),
    (
        """INSERT INTO participants (study_id, enrolment, code, token, condition, place, language, reached, since,
           enrolled_at, seen_at) VALUES (1, 'e', 'paaaaaaaaaa', 'token', '', 0, 'en', 1, 5.25, 2.5, 5.25)""",
        {},
    ),
    ("INSERT INTO recruits (participant_id, study_id, recruitment_id) VALUES (1, 1, '5f1a')", {}),
    (
        """INSERT INTO answers (participant_id, step, step_index, kind, item, subject, position, seconds, payload,
           revision, saved_at) VALUES (1, 'pair 1', 0, 'pair', '1', 'A', 1, 2.75, :payload, 1, 5.25)""",
        {"payload": PAYLOAD},
    ),
)
"""People and answers as revision 0001 had them."""


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    opened = Database(parse_url(store_url))
    yield opened
    opened.close()


def tables(database: Database) -> set[str]:
    with database.reading() as connection:
        return set(inspect(connection).get_table_names())


def test_the_schema_after_all_migrations_is_the_one_in_the_code(database: Database) -> None:
    migrate(database)
    with database.reading() as connection:
        options = {"compare_type": True, "compare_server_default": True, "version_table": VERSION_TABLE}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []
        assert revision_of(connection) == HEAD
    migrate(database)


def test_a_schema_that_differs_is_seen(database: Database) -> None:
    """The comparison above can fail."""
    migrate(database)
    with database.writing() as connection:
        connection.execute(text("DROP TABLE drafts"))
        connection.execute(text("ALTER TABLE actions ADD COLUMN extra TEXT"))
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert len(compare_metadata(context, METADATA)) == 2


def test_up_from_an_older_database_with_people_in_it(database: Database, store_url: str) -> None:
    migrate(database, "0001")
    assert "actions" not in tables(database)
    with database.writing() as connection:
        for statement, values in OLD_ROWS:
            connection.execute(text(statement), values)
    with pytest.raises(StoreError, match="is not of this version; start the server once to bring it up"):
        open_store(store_url, migrate=False)
    with open_store(store_url) as store:
        study = store.study("arrests")
        person = study.participants.by_token("token")
        assert person is not None
        assert study.participants.by_recruitment_id("5f1a") == person
        assert study.results.responses().numbers("overall").tolist() == [2.0]
        assert study.results.responses().numbers("seconds").tolist() == [2.75]
        study.researchers.log("anna", "export", "csv")
        assert [action.action for action in study.researchers.actions()] == ["export"]
        assert study.participants.enrol("new").id == 2
        assert person.fingerprint is None
        assert (
            study.answers.save(
                person, Step(key="pair 2", kind="pair", item="1", subject="B", position=1), 1, {}, revision=0
            ).status
            == "saved"
        )
    with database.reading() as connection:
        assert revision_of(connection) == HEAD


def test_a_newer_database_is_refused_and_left_alone(database: Database, store_url: str) -> None:
    migrate(database)
    with database.writing() as connection:
        connection.execute(text("UPDATE evenhand_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="was made by another version of evenhand; install the newest one"):
        open_store(store_url)
    with database.reading() as connection:
        assert revision_of(connection) == "9999"


def test_a_migration_that_fails_leaves_nothing_behind(database: Database, store_url: str) -> None:
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE sessions (mine TEXT)"))
    with pytest.raises(StoreError, match=r"cannot be used: .*already exists"):
        open_store(store_url)
    assert tables(database) == {"sessions"}


def test_servers_that_start_at_once_migrate_once(store_url: str, make_design: Any) -> None:
    def start(_: int) -> int:
        with open_store(store_url) as store:
            return store.register(make_design()).participants.enrol("key").id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(start, range(8)))) == 1


def test_processes_that_start_at_once_migrate_once(store_url: str) -> None:
    code = "import sys; from evenhand.study.store import open_store; open_store(sys.argv[1]).close()"
    command = [sys.executable, "-c", code, store_url]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in started] == [""] * 2
    with open_store(store_url, migrate=False) as store:
        assert store.studies() == []
