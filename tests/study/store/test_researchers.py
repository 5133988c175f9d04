"""Researchers: passwords, sessions, attempts to log in, and the log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from evenhand.study.store import Store, Study, open_store


def test_passwords(study: Study) -> None:
    assert study.researchers.password_hash("anna") is None
    study.researchers.set_password("anna", "$argon2id$one")
    study.researchers.set_password("ben", "$argon2id$two")
    study.researchers.set_password("anna", "$argon2id$three")
    assert study.researchers.password_hash("anna") == "$argon2id$three"
    assert study.researchers.names() == ["anna", "ben"]
    assert study.researchers.password_hash("\x00") is None


def test_one_of_many_servers_sets_the_first_password(study: Study) -> None:
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda number: study.researchers.set_first_password("anna", f"hash {number}"), range(8)))
    assert sum(told) == 1
    assert study.researchers.password_hash("anna") == f"hash {told.index(True)}"
    assert not study.researchers.set_first_password("anna", "later")


def test_sessions(study: Study, start: datetime) -> None:
    study.researchers.set_password("anna", "hash")
    token = study.researchers.open_session("anna", seconds=600, now=start)
    other = study.researchers.open_session("anna", seconds=600, now=start)
    found = study.researchers.session(token, now=start + timedelta(seconds=599))
    assert found is not None
    assert (found.name, found.opened_at, found.expires_at) == ("anna", start, start + timedelta(seconds=600))
    assert study.researchers.session(token, now=start + timedelta(seconds=600)) is None
    assert study.researchers.session("wrong", now=start) is None
    assert study.researchers.session("\ud800\x00", now=start) is None
    study.researchers.end_session(token)
    study.researchers.end_session(token)
    assert study.researchers.session(token, now=start) is None
    assert study.researchers.session(other, now=start) is not None
    study.researchers.set_password("anna", "new hash")
    assert study.researchers.session(other, now=start) is None, "a new password ends what an old one opened"


def test_the_database_holds_no_token_and_no_address(study: Study) -> None:
    token = study.researchers.open_session("anna")
    study.researchers.note_attempt("address:192.0.2.1")
    with study._database.reading() as connection:
        rows = [
            *connection.execute(text("SELECT * FROM sessions")),
            *connection.execute(text("SELECT * FROM attempts")),
        ]
    assert len(rows) == 2
    assert token not in str(rows)
    assert "192.0.2.1" not in str(rows)


def test_sessions_that_are_over_are_deleted(study: Study, start: datetime) -> None:
    study.researchers.open_session("anna", seconds=60, now=start)
    study.researchers.open_session("anna", seconds=60, now=start + timedelta(hours=1))
    with study._database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM sessions")).scalar() == 1


def test_attempts(study: Study, start: datetime) -> None:
    left = [study.researchers.note_attempt("name:anna", limit=3, window=60, now=start) for _ in range(5)]
    assert left == [2, 1, 0, -1, -2]
    assert study.researchers.note_attempt("name:ben", limit=3, window=60, now=start) == 2
    after = start + timedelta(seconds=60)
    assert study.researchers.note_attempt("name:anna", limit=3, window=60, now=after) == 2
    study.researchers.forget_attempts("name:anna")
    assert study.researchers.note_attempt("name:anna", limit=3, window=60, now=after) == 2


def test_attempts_that_are_over_are_deleted(study: Study, start: datetime) -> None:
    for number in range(5):
        study.researchers.note_attempt(f"address:{number}", now=start)
    study.researchers.note_attempt("address:new", now=start + timedelta(hours=1))
    with study._database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM attempts")).scalar() == 1


def test_attempts_at_the_same_moment_do_not_slip_past(study: Study, store_url: str, make_design: Any) -> None:
    with open_store(store_url) as second_store, ThreadPoolExecutor(8) as pool:
        servers = [study, second_store.register(make_design())]
        left = list(
            pool.map(lambda number: servers[number % 2].researchers.note_attempt("name:anna", limit=5), range(20))
        )
    assert sorted(left, reverse=True) == list(range(4, -16, -1))


def test_studies_keep_their_researchers_apart(store: Store, make_design: Any) -> None:
    one, two = store.register(make_design(name="one")), store.register(make_design(name="two"))
    one.researchers.set_password("anna", "hash")
    token = one.researchers.open_session("anna")
    one.researchers.log("anna", "close")
    assert two.researchers.password_hash("anna") is None
    assert two.researchers.session(token) is None
    assert two.researchers.actions() == []


@pytest.mark.parametrize("detail", ["plain", "two\nlines\x00", "\ud800"], ids=["plain", "lines", "surrogate"])
def test_the_log(study: Study, start: datetime, detail: str) -> None:
    study.researchers.log("anna", "export", "csv", now=start)
    study.researchers.log("anna", "withdraw", detail, now=start + timedelta(seconds=1))
    newest, oldest = study.researchers.actions()
    assert (newest.action, newest.at) == ("withdraw", start + timedelta(seconds=1))
    assert newest.detail.isprintable()
    assert (oldest.researcher, oldest.action, oldest.detail) == ("anna", "export", "csv")
    assert len(study.researchers.actions(limit=1)) == 1
