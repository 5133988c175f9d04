"""A lightweight load generator of people answering pages, for `study_load.py`: raw HTTP/1.1 over kept connections.

Answers are due at times drawn beforehand (a Poisson process), independent of the server. Each answer comes from the
person who has waited longest on the site. Latencies count from the time an answer was due, not from when it was sent,
so a slow server does not slow down its own measurement (no coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np

CSRF = re.compile(rb'name="csrf" value="([^"]*)"')
CHOICE = re.compile(rb'name="choice" value="([^"]*)"')
COOKIE = re.compile(rb"\r\nset-cookie: ([^;\r]*)", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
LOCATION = re.compile(rb"\r\nlocation: ([^\r]*)", re.IGNORECASE)


@dataclass
class Reply:
    """The server's reply to a request."""

    status: int
    location: str
    cookie: str | None
    body: bytes


class Away(Exception):  # noqa: N818
    """The server does not respond."""


class Connection:
    """A kept connection, reopened after errors."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> Reply:
        """Send a request once and return the reply; raise `Away` without a reply."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
            assert self.reader is not None
            self.writer.write(request)
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            body = await self.reader.readexactly(int(length[1])) if length else b""
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Away(type(error).__name__) from None
        location, cookie = LOCATION.search(head), COOKIE.search(head)
        return Reply(
            int(head[9:12]), location[1].decode() if location else "", cookie[1].decode() if cookie else None, body
        )

    def close(self) -> None:
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


@dataclass
class Record:
    """The measurements of a load: latencies, problems, and a ledger of acknowledged answers."""

    answer: list[float] = field(default_factory=list)
    both: list[float] = field(default_factory=list)
    due: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    resent: int = 0
    requests: int = 0
    enrolled: int = 0
    acknowledged: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)


class Person:
    """A simulated participant of the study."""

    def __init__(self, load: Load, stays: int | None) -> None:
        self.load, self.stays = load, stays
        self.id = f"load-{secrets.token_hex(8)}"
        self.connection = Connection(load.port)
        self.cookie = self.csrf = ""
        self.path, self.page = "", b""
        self.answers = 0

    async def request(self, method: str, path: str, fields: dict[str, str] | None = None) -> Reply:
        """Send a request until it is answered, like a person who reloads and resubmits the form."""
        body = urlencode(fields or {}).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.load.port}\r\n"
        head += f"cookie: {self.cookie}\r\n" if self.cookie else ""
        if method == "POST":
            head += f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n"
            head += f"origin: http://127.0.0.1:{self.load.port}\r\n"
        request = f"{head}\r\n".encode() + body
        end = time.monotonic() + self.load.patience
        while True:
            self.load.record.requests += 1
            try:
                reply = await self.connection.send(request)
                break
            except Away as error:
                if time.monotonic() > end:
                    raise
                self.load.record.resent += 1
                if not self.load.expect_faults:
                    self.load.record.problems.append(f"{method} {path}: {error}")
                await asyncio.sleep(0.05)
        if reply.cookie:
            self.cookie = reply.cookie
        if reply.status >= 400:
            self.load.record.problems.append(f"{method} {path}: {reply.status}")
        return reply

    async def enter(self) -> None:
        """Enter the study, agree, and open the first page."""
        await self.request("GET", f"/?PROLIFIC_PID={self.id}")
        consent = await self.request("GET", "/consent")
        found = CSRF.search(consent.body)
        self.csrf = found[1].decode() if found else ""
        taken = await self.request("POST", "/consent", {"csrf": self.csrf, "agree": "yes"})
        self.path = taken.location
        self.page = (await self.request("GET", self.path)).body
        self.load.record.enrolled += 1

    async def answer(self, due: float) -> bool:
        """Answer the open page and open the next page; return whether the person has another page to answer."""
        record, index = self.load.record, int(self.path.rpartition("/")[2])
        fields = self.fill()
        reply = await self.request("POST", self.path, {"csrf": self.csrf, "revision": "0", **fields})
        acknowledged = time.perf_counter()
        if reply.status == 303 and "?" not in reply.location:
            record.acknowledged[self.id, index] = fields
        else:
            record.problems.append(f"{self.path} was answered with {reply.status} {reply.location}")
        self.path = reply.location
        self.page = (await self.request("GET", self.path)).body
        record.due.append(due)
        record.answer.append(acknowledged - due)
        record.both.append(time.perf_counter() - due)
        self.answers += 1
        return self.path.startswith("/step/") and (self.stays is None or self.answers < self.stays)

    def fill(self) -> dict[str, str]:
        """Return the form fields for the open page."""
        if b'name="trajectory"' in self.page:
            names = ("trajectory", "aggregate", "overall")
            return {name: str(random.randint(1, 6)) for name in names} | {  # noqa: S311
                "factors": "trajectory",
                "predicted": str(random.randint(0, 100)),  # noqa: S311
                "risk": str(random.randint(0, 100)),  # noqa: S311
                "reason": f"Why I think so: {secrets.token_hex(24)}",
            }
        if b'name="choice"' in self.page:
            return {"choice": random.choice(CHOICE.findall(self.page)).decode()}  # noqa: S311
        if b'name="answer"' in self.page:
            return {"answer": "agree", "reason": f"Why I think so: {secrets.token_hex(24)}"}
        return {}


class Load:
    """People on the site, and the answers that become due."""

    def __init__(self, port: int, people: int, *, steps: int, seed: int = 0, patience: float = 30.0) -> None:
        self.port, self.people, self.steps, self.patience = port, people, steps, patience
        self.record = Record()
        self.expect_faults = False
        self.rng = np.random.default_rng(seed)
        self.idle: deque[Person] = deque()
        self.late: deque[float] = deque()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ending = False

    async def settle(self) -> None:
        """Admit the first people with different lengths of stay, so that people come and go evenly afterwards."""
        gate = asyncio.Semaphore(8)

        async def one(number: int) -> None:
            async with gate:
                person = Person(self, 1 + number % self.steps)
                await person.enter()
                self.idle.append(person)

        await asyncio.gather(*(one(number) for number in range(self.people)))

    async def run(self, rate: float, seconds: float) -> Record:
        """Run answers at a rate for a period, wait for the last answer, and return the record."""
        self.record = Record()
        due = np.cumsum(self.rng.exponential(1 / rate, int(rate * seconds * 1.2) + 10))
        start = time.perf_counter()
        for moment in due[due < seconds]:
            wait = start + moment - time.perf_counter()
            if wait > 0.0005:
                await asyncio.sleep(wait)
            if self.idle:
                self._spawn(self._answer(self.idle.popleft(), start + moment))
            else:
                self.late.append(start + moment)
        while self.late or self.tasks:
            await asyncio.sleep(0.02)
        return self.record

    async def _answer(self, person: Person, due: float) -> None:
        stays = await person.answer(due)
        while stays and self.late:
            stays = await person.answer(self.late.popleft())
        if stays:
            self.idle.append(person)
            return
        person.connection.close()
        newcomer = Person(self, None)
        await newcomer.enter()
        if self.late:
            await self._answer(newcomer, self.late.popleft())
        else:
            self.idle.append(newcomer)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.record.problems.append(f"{type(task.exception()).__name__}: {task.exception()}")

    def close(self) -> None:
        """Close all connections."""
        for person in self.idle:
            person.connection.close()
