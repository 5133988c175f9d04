"""Another process writes to the file: nobody who only reads has to wait for it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("method", ["POST", "incomplete POST", "GET"])
def test_a_writer_elsewhere_holds_up_nobody_who_reads(feedback: Any, tmp_path: Path, method: str) -> None:
    writer, reader = feedback.browser(), feedback.browser("203.0.113.8")
    url = writer.begin().headers["location"]
    url = writer.answer(url).headers["location"]  # past the instructions
    fields = writer.fields(url, **({"answer": ""} if method == "incomplete POST" else {}))
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as other:
        if method == "GET":
            other.execute(
                "UPDATE participants SET seen_at = seen_at - 7200, since = since - 7200, steady = steady - 7200"
            )
        other.execute("BEGIN IMMEDIATE")

        async def both() -> tuple[Any, float]:
            options = {} if method == "GET" else {"data": fields}
            waiting = asyncio.create_task(writer._send(method.split()[-1], url, options))
            await asyncio.sleep(0.2)
            began = time.monotonic()
            assert (await reader._send("GET", "/consent", {})).status_code == 200
            spent = time.monotonic() - began
            assert not waiting.done()
            other.execute("ROLLBACK")
            return await waiting, spent

        response, spent = asyncio.run(asyncio.wait_for(both(), 25))
    assert response.status_code == (200 if method == "GET" else 303)
    assert spent < 2
    if method == "POST":
        assert response.headers["location"] != url
