"""The study server under load and under faults.

The goal, on two cores and either database: 100 answers a second with a p99 below 500 ms. A large study has fewer than
10 answers a second; 3,000 people at once who take half a minute for a page have 100.

A server process with an effort study on SQLite or PostgreSQL; people arrive, consent, answer page after page and
finish, and others follow. Answers are due at the times of a Poisson process; the load runs on the same machine.
`answer` is the time from when an answer was due until it was acknowledged, `with page` until the next page had arrived;
p50 and p99 are in milliseconds. The kill: SIGKILL to all server processes in the middle of the load, then a restart,
and everybody continues; every acknowledged answer must then be stored with the content that was sent, and nothing else.
Broken: every connection to PostgreSQL is ended once a second. The highest rate: the rate rises in steps until p99 of
`with page` exceeds 500 ms, or answers fall behind, twice. `CPU` is the use of the server's processes as a share of one
core; `others` is that of unrelated processes on the machine: figures measured beside others are lower bounds of the
performance.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
import uvloop
from sqlalchemy import create_engine, select

from benchmarks.speed._study.client import Load, Record
from benchmarks.speed._study.server import Server, busy_seconds, database_seconds, postgres, sync_seconds
from evenhand.study.store.database import parse_url
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS, RECRUITS

STEPS = 16
END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evenhand'"
GOAL = 100.0
LIMIT = 0.5
COLUMNS = {
    "database": 12,
    "what": 14,
    "asked/s": 8,
    "held/s": 8,
    "answer p50": 11,
    "p99": 6,
    "with page p50": 14,
    " p99": 6,
    "errors": 7,
    "acknowledged": 13,
    "stored": 8,
    "lost": 5,
    "CPU": 6,
    "others": 7,
    "MB": 6,
}
Stored = dict[tuple[str, int], dict[str, object]]


@dataclass
class Setting:
    """The settings of a measurement: people on the site, rate, seconds, server processes."""

    people: int
    rate: float
    seconds: float
    step_seconds: float
    workers: int


def stored_answers(database: str) -> Stored:
    """Return the payloads by recruitment id and step, read directly from the database."""
    asked = (
        select(RECRUITS.c.recruitment_id, ANSWERS.c.step_index, ANSWERS.c.payload)
        .join_from(ANSWERS, PARTICIPANTS, ANSWERS.c.participant_id == PARTICIPANTS.c.id)
        .join(RECRUITS, RECRUITS.c.participant_id == PARTICIPANTS.c.id)
    )
    engine = create_engine(parse_url(database))
    with engine.connect() as connection:
        found = {(row[0], row[1]): json.loads(row[2]) for row in connection.execute(asked)}
    engine.dispose()
    return found


def same(sent: dict[str, str], stored: dict[str, object] | None) -> bool:
    """Return whether a stored answer equals the one sent."""
    if stored is None:
        return False
    for name, value in sent.items():
        if name == "factors":
            if stored["factor_trajectory"] != 1 or stored["factor_aggregate"] != 0:
                return False
        elif name in ("predicted", "risk"):
            if abs(float(str(stored[name])) - int(value) / 100) > 1e-9:
                return False
        elif str(stored[name]) != value:
            return False
    return True


def row(*cells: object) -> str:
    """Return a row of the table; missing values are left empty."""
    told = zip(cells, COLUMNS.values(), "<<" + ">" * (len(COLUMNS) - 2), strict=True)
    return "".join(f"{'' if cell is None else cell!s:{side}{width}}" for cell, width, side in told)


@dataclass
class Measured:
    """A finished load: its recording, its seconds, and the server's use of CPU."""

    record: Record
    seconds: float
    cpu: float | None = None
    others: float | None = None
    memory: float | None = None
    kept: Stored | None = None

    def cells(self) -> tuple[object, ...]:
        """Return the table cells, from the achieved rate on."""
        record = self.record
        seconds = [np.percentile(part, [50, 99]) for part in (record.answer, record.both)]
        times = [f"{1e3 * value:.0f}" for value in np.concatenate(seconds)]
        stored = lost = None
        if self.kept is not None:
            stored = f"{len(self.kept):,}"
            lost = sum(not same(sent, self.kept.get(key)) for key, sent in record.acknowledged.items())
        return (
            f"{len(record.answer) / self.seconds:.0f}",
            *times,
            len(record.problems),
            f"{len(record.acknowledged):,}",
            stored,
            lost,
            *(None if used is None else f"{used:.0%}" for used in (self.cpu, self.others)),
            None if self.memory is None else f"{self.memory:.0f}",
        )


class Bench:
    """The measurements on one database."""

    def __init__(self, name: str, study: Path, database: str, setting: Setting) -> None:
        self.name, self.database, self.setting = name, database, setting
        self.server = Server(study, database, setting.workers)

    async def steady(self) -> None:
        """Hold the rate for a while, then compare the acknowledged answers with the stored ones."""
        load = Load(self.server.port, self.setting.people, steps=STEPS)
        await load.settle()
        before = set(stored_answers(self.database))
        found = await self._measured(load, self.setting.rate, self.setting.seconds)
        found.kept = {key: value for key, value in stored_answers(self.database).items() if key not in before}
        self._print("steady", self.setting.rate, found)
        held, p99 = len(found.record.answer) / found.seconds, float(np.percentile(found.record.answer, 99))
        if self.setting.rate >= GOAL:
            verdict = "reached" if p99 < LIMIT and held >= 0.95 * self.setting.rate else "missed"
            print(f"{'':<12}goal of {GOAL:.0f}/s with a p99 below {1e3 * LIMIT:.0f} ms: {verdict}")
        load.close()

    async def _measured(self, load: Load, rate: float, seconds: float) -> Measured:
        before, started = self._used(), time.perf_counter()
        gc.disable()
        record = await load.run(rate, seconds)
        gc.enable()
        taken = time.perf_counter() - started
        cpu, others = ((now - then) / taken for now, then in zip(self._used(), before, strict=True))
        return Measured(record, max(seconds, taken), cpu, others, self.server.use().memory)

    def _used(self) -> tuple[float, float]:
        """Return the CPU seconds of the server, and those of unrelated processes."""
        ours = self.server.use().cpu
        return ours, busy_seconds() - ours - time.process_time() - database_seconds()

    def _print(self, what: str, rate: float, found: Measured) -> None:
        print(row(self.name, what, f"{rate:.0f}", *found.cells()), flush=True)
        for problem in found.record.problems[:5]:
            print(f"{'':<12}{problem}")

    async def kill(self) -> None:
        """Kill the server in the middle of the load and restart it; everybody continues."""
        load = Load(self.server.port, self.setting.people, steps=STEPS, seed=1)
        await load.settle()
        load.expect_faults = True
        before, seconds = set(stored_answers(self.database)), self.setting.seconds / 2
        started = time.perf_counter()
        work = asyncio.ensure_future(load.run(self.setting.rate, seconds))
        await asyncio.sleep(seconds / 2)
        killed = time.perf_counter()
        self.server.kill()
        await asyncio.to_thread(self.server.start)
        away = time.perf_counter() - killed
        found = Measured(await work, time.perf_counter() - started)
        found.kept = {key: value for key, value in stored_answers(self.database).items() if key not in before}
        self._print("kill -9", self.setting.rate, found)
        extra, again = len(found.kept.keys() - found.record.acknowledged.keys()), found.record.resent
        print(f"{'':<12}away for {away:.1f} s; {again:,} requests sent again; {extra} stored but not acknowledged")
        load.close()

    async def broken(self) -> None:
        """End every connection to PostgreSQL once a second in the middle of the load."""
        if not self.database.startswith("postgresql"):
            return
        load = Load(self.server.port, self.setting.people, steps=STEPS, seed=3)
        await load.settle()
        before, ended = set(stored_answers(self.database)), 0
        work = asyncio.ensure_future(self._measured(load, self.setting.rate, self.setting.seconds / 2))
        async with await psycopg.AsyncConnection.connect(self.database, autocommit=True) as other:
            while not work.done():
                ended += (await other.execute(END_ALL)).rowcount
                await asyncio.sleep(1)
        found = await work
        found.kept = {key: value for key, value in stored_answers(self.database).items() if key not in before}
        self._print("broken", self.setting.rate, found)
        print(f"{'':<12}{ended:,} connections were ended; the longest answer took {max(found.record.answer):.1f} s")
        load.close()

    async def highest(self) -> None:
        """Raise the rate until answers take too long."""
        best: tuple[int, Measured] | None = None
        load = Load(self.server.port, self.setting.people, steps=STEPS, seed=2)
        await load.settle()
        rate, failed = int(self.setting.rate / 2), 0
        while failed < 2:  # one slow spell may be the machine's
            found = await self._measured(load, rate, self.setting.step_seconds)
            p99, held = float(np.percentile(found.record.both, 99)), len(found.record.both) / found.seconds
            if p99 > LIMIT or held < 0.95 * rate or found.record.problems:
                failed += 1
            else:
                best, rate, failed = (rate, found), rate + 50, 0
        if best is not None:
            self._print("highest", *best)
        errors = len(found.record.problems)
        print(f"{'':<12}at {rate}/s: {held:.0f}/s held, p99 with page {1e3 * p99:.0f} ms, {errors} errors", flush=True)
        load.close()


def measure(name: str, study: Path, database: str, setting: Setting, parts: list[str]) -> None:
    """Print the table rows of one database."""
    bench = Bench(name, study, database, setting)
    bench.server.start()
    try:
        for part in parts:
            uvloop.run(getattr(bench, part)())
    finally:
        bench.server.stop()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people and seconds")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--part", choices=["steady", "kill", "broken", "highest"], help="only this one")
    parser.add_argument("--rate", type=float, help="answers a second")
    parser.add_argument("--seconds", type=float, help="seconds of the steady load")
    parser.add_argument("--workers", type=int, default=1, help="server processes")
    given = parser.parse_args()
    rate, seconds = given.rate or (50.0 if given.quick else GOAL), given.seconds or (6.0 if given.quick else 40.0)
    setting = Setting(60 if given.quick else 500, rate, seconds, 3.0 if given.quick else 12.0, given.workers)
    every = ["steady", "kill", "broken"] if given.quick else ["steady", "kill", "broken", "highest"]
    parts = [given.part] if given.part else every
    folder = Path(tempfile.mkdtemp(prefix="evenhand-load-"))
    try:
        with ExitStack() as stack:
            study = make_study(folder)
            print(
                f"{setting.people} people on the site; {given.workers} server process(es); {os.cpu_count()} cores"
                f" shared with the load; load average before: {os.getloadavg()[0]:.1f}; a sync of the disk takes "
                f"{1e3 * sync_seconds(folder):.1f} ms"
            )
            print(row(*COLUMNS))
            if given.database in (None, "sqlite"):
                measure("sqlite", study, str(folder / "study.db"), setting, parts)
            if given.database in (None, "postgresql"):
                address = stack.enter_context(postgres(folder / "pg"))
                if address is None:
                    print("postgresql  not measured: it is not installed")
                else:
                    measure("postgresql", study, f"{address}/postgres", setting, parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_study(folder: Path) -> Path:
    """Write the effort study that `evenhand study new` writes."""
    from evenhand.study.template import study_template, write_made_up

    write_made_up(folder, "effort")
    (folder / "study.toml").write_text(study_template("effort"), encoding="utf-8")
    return folder / "study.toml"


if __name__ == "__main__":
    main()
