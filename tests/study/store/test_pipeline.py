"""Statements of many pages on one connection to PostgreSQL: batches, failures within one, and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.util.concurrency import greenlet_spawn

from evenhand.study.flow.design import Step
from evenhand.study.store import StoreError, Study, open_store
from evenhand.study.store.database import Database, parse_url
from evenhand.study.store.pipeline import Pipeline

ECHO = text("SELECT CAST(:a AS bigint), CAST(:b AS double precision), CAST(:c AS text)")
DIVIDE = text("SELECT 1 / CAST(:a AS integer)")
SLEEP = text("SELECT CAST(pg_sleep(CAST(:a AS double precision)) AS text)")
NOTE = text("INSERT INTO noted (number) VALUES (CAST(:a AS integer)) RETURNING number")
TRANSACTION = text("SELECT CAST(txid_current() AS bigint), CAST(:a AS integer)")


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    opened = Database(parse_url(postgres_url))
    with opened.writing() as connection:
        connection.execute(text("CREATE TABLE noted (number integer PRIMARY KEY)"))
    yield opened
    opened.close()


def change(database: Database, statement: Any, **values: Any) -> Awaitable[Any]:
    """Send one statement as a page does; return its rows, or the error."""

    def send() -> list[Any]:
        with database.page_change() as shared:
            assert isinstance(shared, Pipeline)
            return shared.execute(statement, values).all()

    return greenlet_spawn(send)


def together(*work: Awaitable[Any]) -> list[Any]:
    async def gather() -> list[Any]:
        return await asyncio.gather(*work, return_exceptions=True)

    return asyncio.run(gather())


@pytest.mark.parametrize("values", [(2**40, 0.1 + 0.2, "é'\\%(a)s$1 😀"), (-1, 1e-300, ""), (None, None, None)])
def test_values_come_back_as_they_were_sent(database: Database, values: tuple[Any, ...]) -> None:
    assert together(change(database, ECHO, **dict(zip("abc", values, strict=True)))) == [[values]]


def test_statements_that_wait_together_are_one_transaction(database: Database) -> None:
    numbers = together(*(change(database, TRANSACTION, a=number) for number in range(200)))
    assert [rows[0][1] for rows in numbers] == list(range(200))
    assert len({rows[0][0] for rows in numbers}) <= 6


def test_one_that_fails_fails_alone(database: Database) -> None:
    work = [change(database, NOTE, a=number) for number in range(10)]
    work[3:3] = [change(database, DIVIDE, a=0), change(database, NOTE, a=0)]
    got = together(*work)
    assert [isinstance(one, StoreError) for one in got] == [number in (3, 4) for number in range(12)]
    assert all(str(one).endswith("it refused a value.") for one in got[3:5])
    assert together(change(database, NOTE, a=10), change(database, DIVIDE, a=1)) == [[(10,)], [(1,)]]
    with database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM noted")).scalar() == 11


def test_a_lost_connection_is_told_to_all_who_wait_and_replaced(database: Database, postgres_url: str) -> None:
    async def lose() -> list[Any]:
        waiting = [asyncio.ensure_future(change(database, SLEEP, a=30.0)) for _ in range(3)]
        await asyncio.sleep(0.2)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evenhand'"
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            await other.execute(end)
        lost = await asyncio.gather(*waiting, return_exceptions=True)
        return [*lost, await change(database, NOTE, a=1)]

    *lost, after = asyncio.run(lose())
    assert all(isinstance(one, StoreError) for one in lost)
    assert after == [(1,)]


def test_a_server_that_says_nothing_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert database._lines is not None
    monkeypatch.setattr(database._lines[1], "_patience", 0.2)
    (said,) = together(change(database, SLEEP, a=5.0))
    assert "no answer for 0.2 s" in str(said)
    assert together(change(database, NOTE, a=1)) == [[(1,)]]


def test_nobody_there_is_one_sentence_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(parse_url("postgresql://nobody:secret@127.0.0.1:1/none"))
    said = together(*(change(database, NOTE, a=number) for number in range(5)))
    assert all(isinstance(one, StoreError) and "secret" not in str(one) for one in said)
    database.close()


def test_large_values_go_through_in_parts(database: Database) -> None:
    parts = [str(number) * 60_000 for number in range(10)] * 6
    got = together(*(change(database, ECHO, a=1, b=1.0, c=part) for part in parts))
    assert [rows[0][2] for rows in got] == parts


def test_answers_of_many_people_at_once(postgres_url: str, make_design: Callable[..., Any]) -> None:
    step = Step(key="pair:1/A", kind="pair", item="1", subject="A", position=1)
    payload = {"trajectory": 1, "aggregate": 3, "overall": 2}
    with open_store(postgres_url) as store:
        study: Study = store.register(make_design())
        people = [study.participants.enrol(str(number)) for number in range(40)]

        async def save(twice: int) -> list[str]:
            saving = [
                study.run_page(
                    lambda wait=True, person=person: study.answers.save(person, step, 0, payload, revision=0, wait=wait)
                )
                for person in people
                for _ in range(twice)
            ]
            return [saved.status for saved in await asyncio.gather(*saving)]

        told = asyncio.run(save(2))
        assert (told.count("saved"), told.count("repeated")) == (40, 40)
        assert len(study.results.responses().person) == 40
