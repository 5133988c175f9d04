"""Faults: a process that is killed, a disk that fails, a database that is not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import exc, text
from sqlalchemy.pool import QueuePool

from evenhand.errors import ConfigError, EvenhandError
from evenhand.study.flow.design import Step
from evenhand.study.store import Store, StoreError, Study, StudyClosed, database, open_store
from evenhand.study.store.records import ConnectionLost

PAIR = Step(key="pair:1/A", kind="pair", item="1", subject="A", position=1)
PAYLOAD = {"trajectory": 1, "aggregate": 3, "overall": 2}

WRITER = """
import os, sys, threading
from evenhand.study.flow.design import Step
from evenhand.study.store import open_store

study = open_store(sys.argv[1]).study("arrests")

def answer(number):
    person = study.participants.enrol(f"{os.getpid()} {number}")
    for index in range(100_000):
        step = Step(key=f"pair:{index}/A", kind="pair", item=str(index), subject="A", position=index + 1)
        payload = {"trajectory": 1, "aggregate": 2, "overall": index % 6 + 1, "reason": "x" * (index % 300)}
        saved = study.answers.save(person, step, index, payload, revision=0)
        if saved.status == "saved":
            os.write(1, f"{person.code} {index}\\n".encode())

for number in range(4):
    threading.Thread(target=answer, args=(number,)).start()
"""


@pytest.mark.parametrize("servers", [1, 2])
def test_kill_loses_no_acknowledged_answer(store: Store, store_url: str, study: Study, servers: int) -> None:
    secret = study.secret
    command = [sys.executable, "-c", WRITER, store_url]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(servers)]
    told: list[str] = []
    for writer in writers:
        assert writer.stdout is not None
        told += [writer.stdout.readline() for _ in range(60)]
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    for writer in writers:
        told += writer.communicate()[0].splitlines(keepends=True)
        assert writer.returncode == -signal.SIGKILL
    acknowledged = {line.strip() for line in told if line.endswith("\n")}
    assert len(acknowledged) >= 60 * servers
    _wait_until_quiet(study)
    responses = study.results.responses()
    names = responses.people["participant"][responses.person]
    stored = {f"{who} {item}" for who, item in zip(names, responses.answers["item"], strict=True)}
    assert acknowledged <= stored
    # At most one answer a thread was stored without having been told.
    assert len(stored - acknowledged) <= 4 * servers
    assert (responses.numbers("overall") == responses.answers["item"].astype(int) % 6 + 1).all()
    with open_store(store_url) as restarted:
        again = restarted.study("arrests")
        assert again.secret == secret
        for person in (found for found in map(again.participants.by_token, _tokens(store)) if found is not None):
            assert person.reached == sum(code == person.code for code in names)


def _wait_until_quiet(study: Study) -> None:
    """Wait until nothing is added for half a second: PostgreSQL may still commit what a killed writer had sent."""
    before = -1.0
    while study.results.version()[0] != before:
        before = study.results.version()[0]
        time.sleep(0.5)


def _tokens(store: Store) -> list[str]:
    from sqlalchemy import select

    from evenhand.study.store.tables import PARTICIPANTS

    with store.database.reading() as connection:
        return list(connection.execute(select(PARTICIPANTS.c.token)).scalars())


@pytest.fixture
def sqlite_study(tmp_path: Path, make_design: Any) -> Any:
    with open_store(str(tmp_path / "study.db")) as opened:
        yield opened.register(make_design())


def test_postgres_gets_twenty_connections_at_most(postgres_url: str) -> None:
    with open_store(postgres_url) as opened:
        pool = opened.database.engine.pool
        assert isinstance(pool, QueuePool)
        held = [pool.connect() for _ in range(20)]
        pool._timeout = 0.01
        with pytest.raises(exc.TimeoutError):
            pool.connect()
        for one in held:
            one.close()


@pytest.mark.parametrize("wrong", [exc.IntegrityError, exc.DBAPIError, KeyboardInterrupt])
def test_what_fails_or_breaks_off_is_undone(store: Store, wrong: type[BaseException]) -> None:
    note = text(
        "INSERT INTO studies (name, kind, fingerprint, settings, secret, completion_code, created_at)"
        " VALUES (:name, 'effort', '', '', 'x', '', 0)"
    )

    def write() -> None:
        with store.database.writing() as connection:
            connection.execute(note, {"name": "half done"})
            if wrong is KeyboardInterrupt:
                raise wrong
            connection.execute(*((note, {"name": None}) if wrong is exc.IntegrityError else (text("SELECT a FROM b"),)))

    with pytest.raises(KeyboardInterrupt if wrong is KeyboardInterrupt else StoreError):
        write()
    assert store.studies() == []
    with store.database.writing() as connection:  # the turn of the next writer has come
        connection.execute(note, {"name": "whole"})
    assert store.studies() == ["whole"]


def test_sqlite_is_durable_by_its_own_settings(sqlite_study: Study, tmp_path: Path) -> None:
    with sqlite_study._database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2, "a commit is synced before it returns"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    if os.name == "posix":
        assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


def test_connections_that_broke_while_idle_are_replaced(postgres_url: str, make_design: Any) -> None:
    with open_store(postgres_url) as opened:
        study = opened.register(make_design())
        person = study.participants.enrol("key")
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(END_ALL)
        assert study.participants.by_token(person.token) == person
        assert study.answers.save(person, PAIR, 0, PAYLOAD, revision=0).status == "saved"


def test_a_connection_that_breaks_in_use_is_said_to_be_lost_and_takes_the_others_along(
    postgres_url: str, make_design: Any
) -> None:
    with open_store(postgres_url) as opened, psycopg.connect(postgres_url, autocommit=True) as other:
        study = opened.register(make_design())
        with pytest.raises(ConnectionLost) as caught, opened.database.writing() as connection:
            _ = other.execute(END_ALL), connection.execute(text("SELECT 1"))
        _one_sentence(caught.value)
        assert study.participants.enrol("key").place == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://anna:hunter2@db/study", "a study runs on SQLite or PostgreSQL, not on 'mysql'"),
        ("postgresql://anna:hunter2@db:port/study", "the address of the database cannot be read"),
        ("sqlite://", "needs the path of a file"),
        ("sqlite:///:memory:", "needs the path of a file"),
        (":memory:", "needs the path of a file"),
        ("", "needs the path of a file"),
        ("sqlite:///a.db?mode=memory", "needs the path of a file"),
        ("no/such/folder/study.db", "the folder of the database 'no/such/folder/study.db' does not exist"),
    ],
)
def test_a_wrong_address_is_one_sentence(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        open_store(url)
    _one_sentence(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid"])
@pytest.mark.parametrize("url", ["postgresql://anna:hunter2@{}/study", "postgres://anna@{}/study?password=hunter2"])
def test_an_unreachable_database_is_one_sentence(url: str, host: str) -> None:
    with pytest.raises(StoreError, match=rf"^the database 'postgresql://anna@{host}/study' cannot be used: ") as caught:
        open_store(url.format(host))
    _one_sentence(caught.value)


def test_a_wrong_password_is_not_told(postgres_cluster: str) -> None:
    address = postgres_cluster.split("@")[1]
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        open_store(f"postgresql://evenhand:hunter2@{address}/postgres")
    _one_sentence(caught.value)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt' cannot be used: file is not a database") as caught:
        open_store(str(tmp_path / "notes.txt"))
    _one_sentence(caught.value)
    with pytest.raises(ConfigError, match="is a folder"):
        open_store(str(tmp_path))


def test_secrets_are_in_no_repr(study: Study) -> None:
    person = study.participants.enrol("key")
    assert person.token not in repr(person)
    assert str(study.secret) not in repr(study._row)


def test_errors_hold_no_values_of_people(store: Store) -> None:
    with pytest.raises(StoreError) as caught, store.database.writing() as connection:
        connection.execute(text("INSERT INTO recruits VALUES (1, 1, :who)"), {"who": "5f1a-secret"})
    assert "5f1a-secret" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value}"
    _one_sentence(caught.value)


def _one_sentence(error: EvenhandError) -> None:
    said = str(error)
    assert "hunter2" not in said
    assert said.endswith(".")
    assert "\n" not in said
    assert "Traceback" not in said
    assert "sqlalche.me" not in said
    assert error.__suppress_context__ or error.__context__ is None


def test_settings_and_secrets(store: Store, make_design: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = store.register(make_design())
    assert len(study.secret) == 32
    assert len(study.completion_code) == 8
    same = store.register(make_design(completion_code="CODE-1", abandon_after=1.0))
    assert (same.secret, same.completion_code) == (study.secret, "CODE-1")
    assert store.study("arrests").completion_code == "CODE-1"
    assert same.participants.enrol("key").completion_code == "CODE-1"
    monkeypatch.setenv("EVENHAND_STUDY_SECRET", "s" * 32)
    assert study.secret == b"s" * 32
    monkeypatch.setenv("EVENHAND_STUDY_SECRET", "short")
    with pytest.raises(ConfigError, match="EVENHAND_STUDY_SECRET must have at least 32 characters"):
        _ = study.secret


def test_another_design_under_the_same_name(store: Store, make_design: Any) -> None:
    study = store.register(make_design())
    person = study.participants.enrol("key")
    with pytest.raises(ConfigError, match=r"Give the changed study a new name, or accept the change with --accept\.$"):
        store.register(make_design(fingerprint="0" * 64))
    accepted = store.register(make_design(fingerprint="0" * 64), accept=True)
    assert accepted.participants.by_token(person.token) == person
    assert person.fingerprint == "f" * 64
    with pytest.raises(StudyClosed, match="the study 'arrests' was changed; restart this server"):
        study.participants.enrol("new")
    assert study.participants.enrol("key") == person
    assert accepted.participants.enrol("new").fingerprint == "0" * 64
    assert store.register(make_design(fingerprint="0" * 64)).secret == study.secret
    assert store.studies() == ["arrests"]
    with pytest.raises(ConfigError, match=r"there is no study 'arests' in .*; did you mean 'arrests'\?"):
        store.study("arests")


BEFORE = {"kind": "disagreement", "conditions": {"a": 1.0, "b": 1.0}, "places": 5}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"kind": "effort"}, r"the kind \(disagreement before, effort now\)"),
        ({"points": 4}, r"the number of points of the scale \(6 before, 4 now\)"),
        ({"conditions": {"a": 1.0, "c": 1.0}}, r"the conditions that people are in \('b' missing now\)"),
        ({"places": 4}, r"the number of critics to a smaller one \(5 before, 4 now\)"),
    ],
)
def test_what_no_answer_would_survive_is_never_accepted(
    store: Store, make_design: Any, after: dict[str, Any], said: str
) -> None:
    study = store.register(make_design(**BEFORE))
    person = study.participants.enrol("key")
    changed = make_design(**BEFORE | after, fingerprint="0" * 64)
    store.register(changed, accept=True)
    store.register(make_design(**BEFORE), accept=True)
    study.answers.save(
        person, Step(key="case:1", kind="case", item="1", position=1), 0, {"answer": "agree"}, revision=0
    )
    with pytest.raises(ConfigError, match=said) as caught:
        store.register(changed, accept=True)
    assert str(caught.value).endswith("also not with --accept. Give the changed study a new name.")
    assert store.study("arrests")._row == study._row
    more = {"places": 6, "conditions": {"a": 2.0, "b": 1.0, "c": 1.0}}
    assert store.register(make_design(**BEFORE | more, fingerprint="1" * 64), accept=True).participants.by_token(
        person.token
    )


def test_two_servers_make_one_study(store_url: str, make_design: Any) -> None:
    with open_store(store_url) as first, open_store(store_url) as second, ThreadPoolExecutor(8) as pool:
        stores = [first, second] * 8
        secrets = set(pool.map(lambda one: one.register(make_design()).secret, stores))
    assert len(secrets) == 1


def test_an_accepted_design_may_ask_a_step_again(study: Study) -> None:
    """After a change of the plan a key may be due that was answered before: the new answer is kept, not the old."""
    person = study.participants.enrol("key")
    study.answers.save(person, PAIR, 0, PAYLOAD, revision=0)
    saved = study.answers.save(person, PAIR, 1, {**PAYLOAD, "overall": 5}, revision=1)
    assert (saved.status, saved.revision, saved.reached) == ("saved", 2, 2)
    assert study.results.responses().numbers("overall").tolist() == [5.0]


def test_payloads_keep_every_character(study: Study) -> None:
    hostile = {"reason": '=HYPERLINK("http://x") <script>\x00\U0001f600 \u202e\' ""; DROP TABLE answers; --\r\n'}
    person = study.participants.enrol("key")
    study.answers.save(person, PAIR, 0, {**PAYLOAD, **hostile}, revision=0)
    study.answers.save_draft(person, "pair:1/B", hostile)
    stored = study.answers.get(person, PAIR.key)
    assert stored is not None
    assert stored.payload["reason"] == hostile["reason"]
    assert study.answers.page(person, "pair:1/B")[1] == hostile
    assert json.loads(json.dumps(stored.payload)) == stored.payload


@pytest.mark.parametrize("held", ["BEGIN EXCLUSIVE", "PRAGMA locking_mode = EXCLUSIVE"])
def test_a_file_that_another_process_holds_is_one_sentence_in_time(
    tmp_path: Path, make_design: Any, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    path = tmp_path / "study.db"
    open_store(str(path)).close()
    holder = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute(sys.argv[2]);"
    holder += "c.execute('CREATE TABLE IF NOT EXISTS held (x)'); c.execute('INSERT INTO held VALUES (1)');"
    holder += "print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(path), held]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    started = time.monotonic()
    with pytest.raises(StoreError, match=r"another process has held it for 0.3 s; stop that process, or wait"):
        open_store(str(path)).register(make_design())
    assert time.monotonic() - started < 3
    process.communicate()
    with open_store(str(path)) as store:
        assert store.register(make_design()).name == "arrests"
