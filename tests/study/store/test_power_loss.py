"""A loss of power keeps every acknowledged answer: what was written and synced is recorded, and every crash replayed.

A program stores answers, and says of each that it is saved, while strace records its writes and syncs. A crash can come
after any of them. What a sync covered is on the disk then; of the rest a disk keeps nothing, all, or sectors here and
there, in any order; a file without a synced folder may be gone. Each such disk is opened as a server would after the
power is back, and must hold what had been said to be saved.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the study server needs evenhand[study]")

SECTOR = 512
PEOPLE, ANSWERS = 4, 8
PROGRAM = f"""
import asyncio, os, sys
from types import SimpleNamespace
from evenhand.study.flow.design import Step
from evenhand.study.store import open_store

recruitment = SimpleNamespace(completion_code=None, abandon_after=4.0, most_people=None, quotas={{}})
design = SimpleNamespace(name="arrests", kind="effort", conditions={{"": 1.0}}, places=None, seed=7, parts={{}},
                         fingerprint="f" * 64, spec=SimpleNamespace(
                             scale=["word"] * 6, recruitment=recruitment, about=SimpleNamespace(names=(), numbers=())))
said = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
with open_store(sys.argv[1]) as store:
    study = store.register(design)

    async def answer(number):
        person = study.participants.enrol(f"key {{number}}")
        for index in range({ANSWERS}):
            step = Step(key=f"pair:{{index}}", kind="pair", item=str(index), subject="A", position=index)
            await asyncio.to_thread(study.answers.save, person, step, index, {{"overall": number}}, revision=0)
            os.write(said, f"<{{person.id}} {{step.key}}>".encode())
            person = study.participants.by_token(person.token)

    async def everybody():
        await asyncio.gather(*map(answer, range({PEOPLE})))

    asyncio.run(everybody())
"""

CALL = re.compile(
    r"^(?P<name>\w+)\((?:AT_FDCWD<[^>]*>, )?(?:\d+<(?P<file>[^>]*)>|(?P<path>\"[^\"]*\"))(?P<rest>.*)$", re.DOTALL
)
"""A call of strace -y: its name, its file by handle or by name, and what follows."""


@dataclass(frozen=True)
class Event:
    """What the program did: `write`, `cut`, `create`, `unlink`, `sync` of a file (or a folder), or `say`."""

    kind: str
    file: str = ""
    data: bytes = b""
    offset: int = 0
    began: int = 0
    """Of a sync: how many events there were when it began; only these it covers."""


def unescaped(text: str) -> bytes:
    """Return the bytes that strace -xx writes as `\\x41...`."""
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


def events_of(log: Path, folder: Path) -> list[Event]:
    """Return the events of a log in order: a word that is said when it begins, a write or a sync when it is over."""
    events: list[Event] = []
    begun: dict[str, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    for line in log.read_text(encoding="ascii").splitlines():
        process, _, text = line.partition(" ")
        text, started = text.strip(), len(events)
        if text.endswith("<unfinished ...>"):
            begun[process] = (text.removesuffix("<unfinished ...>"), started)
            if not is_said(text):
                continue
            text = begun[process][0] + ") = 0"
        elif text.startswith("<... "):
            head, started = begun.pop(process)
            if is_said(head):
                continue
            text = head + text.partition("resumed>")[2]
        call = CALL.match(text)
        if call is None or re.search(r"\) += -1", text):
            continue
        file = unescaped(call["file"] or call["path"]).decode()
        if Path(file).is_relative_to(folder):
            events += _event(call["name"], file, call["rest"], started, sizes)
    return events


def is_said(call: str) -> bool:
    """Tell whether a call says that an answer is saved."""
    return call.startswith("write(") and unescaped(call.partition("<")[2].partition(">")[0]).endswith(b"/said")


def _event(name: str, file: str, rest: str, started: int, sizes: dict[str, int]) -> Iterator[Event]:
    if name in ("write", "pwrite64"):
        data, *numbers = rest.removeprefix(", ").split(", ")
        content = unescaped(data)
        if file.endswith("said"):
            yield Event("say", file, content)
            return
        offset = int(numbers[1].split(")")[0]) if name == "pwrite64" else sizes.get(file, 0)
        sizes[file] = max(sizes.get(file, 0), offset + len(content))
        yield Event("write", file, content, offset)
    elif name == "ftruncate":
        sizes[file] = int(rest.removeprefix(", ").split(")")[0])
        yield Event("cut", file, offset=sizes[file])
    elif name in ("fsync", "fdatasync"):
        yield Event("sync", file, began=started)
    elif name == "unlink":
        yield Event("unlink", file)
    elif "O_CREAT" in rest:
        yield Event("create", file)


@dataclass
class Disk:
    """Files as a disk holds them: what is surely there, and what was written since and may be there or not."""

    sure: dict[str, bytearray] = field(default_factory=dict)
    loose: dict[str, list[tuple[int, Event]]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """The files whose names are surely in the folder."""

    def take(self, number: int, event: Event) -> None:
        """Follow one event."""
        if event.kind == "create":
            self.sure.setdefault(event.file, bytearray())
        elif event.kind in ("write", "cut"):
            self.loose.setdefault(event.file, []).append((number, event))
        elif event.kind == "unlink":  # as if it were on the disk at once: the file can only come back with less in it
            self.sure.pop(event.file, None)
            self.loose.pop(event.file, None)
            self.named.discard(event.file)
        elif event.kind == "sync" and event.file in self.sure:
            waiting = self.loose.pop(event.file, [])
            for before, change in waiting:
                if before < event.began:
                    apply(self.sure[event.file], change)
            self.loose[event.file] = [(before, change) for before, change in waiting if before >= event.began]
        elif event.kind == "sync":
            self.named |= {file for file in self.sure if str(Path(file).parent) == event.file}

    def after_crash(self, how: str, rng: np.random.Generator) -> dict[str, bytes]:
        """Return the files after a crash that keeps `none`, `all` or `some` of what was not synced."""
        files: dict[str, bytes] = {}
        for name, content in self.sure.items():
            if how == "none" and name not in self.named:
                continue
            now = bytearray(content)
            for _, change in self.loose.get(name, []):
                if how == "all":
                    apply(now, change)
                elif how == "some":
                    for part in sectors(change):
                        if rng.random() < 0.5:
                            apply(now, part)
            files[name] = bytes(now)
        return files


def apply(content: bytearray, change: Event) -> None:
    """Write or cut as a file system does: a gap is filled with zeros."""
    if change.kind == "cut":
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
        return
    content.extend(bytes(max(0, change.offset - len(content))))
    content[change.offset : change.offset + len(change.data)] = change.data


def sectors(change: Event) -> Iterator[Event]:
    """Yield the parts of a write that a disk writes one at a time."""
    if change.kind == "cut":
        yield change
    for start in range(0, len(change.data), SECTOR):
        yield Event("write", change.file, change.data[start : start + SECTOR], change.offset + start)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """Return the folder of a program that stored answers, and what it did there."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed; EVENHAND_INSTALL=1 make test installs it on Debian")
    folder = tmp_path_factory.mktemp("disk")
    log = folder.parent / "strace.log"
    calls = "trace=openat,write,pwrite64,ftruncate,fsync,fdatasync,unlink,writev,pwritev,rename"
    watched = ["strace", "-f", "-y", "-xx", "-s", "200000", "-e", calls, "-e", "signal=none", "-o", str(log)]
    program = [sys.executable, "-c", PROGRAM, str(folder / "study.db"), str(folder / "said")]
    done = subprocess.run([*watched, *program], capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("strace may not watch a program here")
    assert done.returncode == 0, done.stderr
    return folder, events_of(log, folder)


def answers_on(files: dict[str, bytes], folder: Path) -> set[tuple[int, str]]:
    """Return the answers that a server finds on a disk after the power is back; the file must be whole."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    with sqlite3.connect(folder / "study.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = set(connection.execute("SELECT participant_id, step FROM answers"))
    connection.close()
    return found


@pytest.mark.parametrize("how", ["none", "all", "some"])
def test_no_acknowledged_answer_is_lost(record: tuple[Path, list[Event]], tmp_path: Path, how: str) -> None:
    _, events = record
    disk, said, rng = Disk(), set[tuple[int, str]](), np.random.default_rng(7)
    crashes = 0
    for number, event in enumerate(events):
        if event.kind == "say":
            person, step = event.data.decode().strip("<>").split(" ")
            said.add((int(person), step))
        else:
            disk.take(number, event)
        if said:
            crashes += 1
            kept = answers_on(disk.after_crash(how, rng), tmp_path / "after")
            assert said <= kept, f"crash after event {number}, {event.kind} {Path(event.file).name}: {said - kept} lost"
    assert len(said) == PEOPLE * ANSWERS
    assert crashes > PEOPLE * ANSWERS


def test_the_replay_notices_an_answer_that_was_not_synced(record: tuple[Path, list[Event]], tmp_path: Path) -> None:
    """The check itself can fail: without the syncs of the log, answers are lost."""
    _, events = record
    disk = Disk()
    for number, event in enumerate(events):
        if event.kind != "say" and not (event.kind == "sync" and event.file.endswith("-wal")):
            disk.take(number, event)
        if event.kind == "say" and number > len(events) // 2:
            break
    with pytest.raises((AssertionError, sqlite3.DatabaseError)):
        assert len(answers_on(disk.after_crash("none", np.random.default_rng(7)), tmp_path / "after")) >= ANSWERS


def test_an_answer_whose_sync_failed_is_not_acknowledged(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed; EVENHAND_INSTALL=1 make test installs it on Debian")
    fail = "inject=fsync,fdatasync:error=EIO:when=30+"
    watched = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-e", fail, "-o", str(tmp_path / "log")]
    in_one_thread = PROGRAM.replace("await asyncio.to_thread(study.answers.save, ", "study.answers.save(")
    program = [sys.executable, "-c", in_one_thread, str(tmp_path / "study.db"), str(tmp_path / "said")]
    done = subprocess.run([*watched, *program], capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("strace may not watch a program here")
    assert done.returncode != 0
    assert "study.db' cannot be used: disk I/O error" in done.stderr
    said = set(re.findall(r"<(\d+) (pair:\d+)>", (tmp_path / "said").read_text()))
    with sqlite3.connect(tmp_path / "study.db") as connection:
        stored = {(str(who), step) for who, step in connection.execute("SELECT participant_id, step FROM answers")}
    connection.close()
    assert 0 < len(said) < PEOPLE * ANSWERS
    assert said <= stored
