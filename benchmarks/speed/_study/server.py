"""A study server in its own process, on SQLite or a separate PostgreSQL, for `study_load.py`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

CLOCK = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """The resource use of a process: CPU seconds, and peak memory in MB."""

    cpu: float
    memory: float


class Server:
    """A process of `evenhand study serve` on one database, which can be killed and restarted."""

    def __init__(self, study: Path, database: str, workers: int = 1) -> None:
        self.study, self.database, self.workers, self.port = study, database, workers, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        """Start the server, by default waiting until it responds."""
        command = [
            sys.executable,
            "-m",
            "evenhand",
            "study",
            "serve",
            str(self.study),
            "--database",
            self.database,
            "--port",
            str(self.port),
            "--rate",
            "0",
            "--connections",
            "0",
            "--enrolments",
            "0",
            "--workers",
            str(self.workers),
        ]
        log = open(self.study.parent / "server.log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        log.close()
        end = time.monotonic() + 60
        while wait and not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server did not start: {(self.study.parent / 'server.log').read_text()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/api/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        """Kill all of the server's processes at once, without any cleanup."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop the server like Ctrl-C."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def use(self) -> Use:
        """Return the total resource use of all processes of the server."""
        assert self.process is not None
        found = [_use(pid) for pid in _session(self.process.pid)]
        return Use(sum(one.cpu for one in found), sum(one.memory for one in found))


def busy_seconds() -> float:
    """Return the CPU seconds used by all processes of the machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / CLOCK


def database_seconds() -> float:
    """Return the CPU seconds used by the processes of PostgreSQL."""
    used = 0.0
    for entry in Path("/proc").glob("[0-9]*/comm"):
        try:
            used += _use(int(entry.parent.name)).cpu if entry.read_text().strip() == "postgres" else 0.0
        except OSError:
            continue
    return used


def _session(leader: int) -> list[int]:
    pids = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            pids.append(int(entry.parent.name))
    return pids


def _use(pid: int) -> Use:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return Use(0.0, 0.0)
    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
    return Use((int(fields[11]) + int(fields[12])) / CLOCK, int(peak) / 1024)


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def program(name: str) -> str | None:
    """Return the path of a PostgreSQL program, from Debian's server folders or the search path."""
    folders = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))


@contextmanager
def postgres(folder: Path) -> Iterator[str | None]:
    """Run a separate PostgreSQL that syncs every commit; yield its address, or None if it is not installed."""
    initdb, control = program("initdb"), program("pg_ctl")
    if initdb is None or control is None:
        yield None
        return
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        for parent in (folder.parent, folder):
            parent.chmod(0o755)
    data, port = str(folder / "data"), free_port()
    as_postgres([initdb, "-D", data, "-U", "evenhand", "-A", "trust", "-E", "UTF8"])
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=300"
    as_postgres([control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"])
    try:
        yield f"postgresql://evenhand@127.0.0.1:{port}"
    finally:
        as_postgres([control, "-D", data, "-m", "fast", "-w", "stop"])


def as_postgres(command: list[str]) -> None:
    """Run a PostgreSQL program, as the user postgres if we are root, which PostgreSQL refuses."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_user, *command], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {done.stderr.decode()}")


def sync_seconds(folder: Path, times: int = 200) -> float:
    """Return the time in seconds that the disk takes to sync a small write."""
    path = folder / "sync"
    with path.open("wb") as file:
        started = time.perf_counter()
        for _ in range(times):
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
        taken = time.perf_counter() - started
    path.unlink()
    return taken / times
