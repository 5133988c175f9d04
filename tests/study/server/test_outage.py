"""A database that breaks off, hangs or is gone: who answers is served at once, or told to try again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenhand.study.server import app
from evenhand.study.store import open_store
from evenhand.study.store.participants import Participants
from evenhand.study.store.records import ConnectionLost

PEOPLE, ROUNDS = 8, 6
END_ALL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@pytest.fixture
def on_postgres(postgres_url: str, make: Any, feedback_design: Any) -> Iterator[Any]:
    with open_store(postgres_url) as store:
        yield make(store, feedback_design)


def test_answers_go_on_when_the_database_ends_every_connection(on_postgres: Any, postgres_url: str) -> None:
    people = [on_postgres.browser(f"203.0.113.{number}") for number in range(PEOPLE)]
    urls = [one.begin().headers["location"] for one in people]
    ended, waits, statuses = 0, list[float](), list[int]()

    async def answer(person: Any, url: str) -> str:
        fields, began = person.fields_of_form, time.monotonic()
        response = await person._send("POST", url, {"data": fields})
        waits.append(time.monotonic() - began)
        statuses.append(response.status_code)
        return str(response.headers.get("location", url))

    async def one_round(urls: list[str]) -> list[str]:
        nonlocal ended
        answers = [asyncio.ensure_future(answer(*both)) for both in zip(people, urls, strict=True)]
        await asyncio.sleep(0.01)
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
            row = await (await other.execute(END_ALL)).fetchone()
            ended += row[0] if row else 0
        return await asyncio.gather(*answers)

    for _ in range(ROUNDS):
        for person, url in zip(people, urls, strict=True):
            person.fields_of_form = person.fields(url)
        urls = asyncio.run(one_round(urls))
    assert ended >= ROUNDS
    assert max(waits) < 5
    assert set(statuses) <= {303, 503}
    assert statuses.count(303) > 0.9 * len(statuses)
    for person, url in zip(people, urls, strict=True):
        assert person.answer(url).status_code == 303
    steps = [int(url.rpartition("/")[2]) for url in urls]
    with closing(psycopg.connect(postgres_url)) as other, other:
        stored = other.execute("SELECT count(*) FROM answers").fetchone()
    assert stored is not None
    assert stored[0] == sum(steps) + PEOPLE


@pytest.mark.parametrize(("breaks", "status"), [(1, 200), (2, 503)])
def test_a_page_is_tried_twice_where_its_connection_breaks(
    feedback: Any, monkeypatch: pytest.MonkeyPatch, breaks: int, status: int
) -> None:
    browser, by_token, tries = feedback.browser(), Participants.by_token, []
    url = browser.begin().headers["location"]

    def break_first(participants: Participants, token: str) -> Any:
        tries.append(token)
        if len(tries) <= breaks:
            raise ConnectionLost("the database 'study' cannot be used: the connection broke.")
        return by_token(participants, token)

    monkeypatch.setattr(Participants, "by_token", break_first)
    assert browser.get(url).status_code == status
    assert len(tries) == 2


class TestHealth:
    def test_is_good_where_the_database_answers(self, on_postgres: Any) -> None:
        assert on_postgres.browser().get("/api/health").json() == {"status": "ok"}

    def test_is_bad_where_the_database_says_nothing(
        self, on_postgres: Any, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(app, "HEALTH_SECONDS", 0.3)
        with closing(psycopg.connect(postgres_url)) as other:
            other.execute("LOCK TABLE studies IN ACCESS EXCLUSIVE MODE")
            for _ in range(3):
                began = time.monotonic()
                response = on_postgres.browser().get("/api/health")
                assert response.status_code == 503
                assert "database" in response.json()["error"]
                assert time.monotonic() - began < 2
        assert on_postgres.browser().get("/api/health").status_code == 200

    def test_is_bad_where_the_database_is_gone_and_good_when_it_is_back(
        self, on_postgres: Any, postgres_url: str, postgres_cluster: str
    ) -> None:
        name = postgres_url.rpartition("/")[2]
        with psycopg.connect(f"{postgres_cluster}/postgres", autocommit=True) as other:
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            began = time.monotonic()
            assert on_postgres.browser().get("/api/health").status_code == 503
            assert on_postgres.browser().get("/consent").status_code == 503
            assert time.monotonic() - began < 5
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert on_postgres.browser().get("/api/health").status_code == 200
        assert on_postgres.browser().get("/consent").status_code == 200

    def test_is_bad_where_the_file_is_no_database_any_more(self, feedback: Any, tmp_path: Path) -> None:
        for path in tmp_path.glob("study.db*"):
            path.write_bytes(b"nothing" * 10_000)
        assert feedback.browser().get("/api/health").status_code == 503
