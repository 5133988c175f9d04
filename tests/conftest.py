"""What every test can rely on."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from glob import glob
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import evenhand as eh

_NUMBERS = count(1)


def pytest_sessionstart() -> None:
    """Collect no garbage while tests are collected: all of that stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, but never look again at the libraries and tests that are there now."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let go of everything: libraries complain at the end of what was not collected."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Undo that `nohup` and a background job start the tests, and what the tests start, with SIGINT ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# A PostgreSQL of our own for the tests that ask for one: a cluster in a temporary folder, gone at the end


def _program(name: str) -> str | None:
    """Return where a program of PostgreSQL is: on the path, or where Debian keeps those of the server."""
    folders = sorted(glob("/usr/lib/postgresql/*/bin"), key=lambda folder: float(folder.split("/")[-2]), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(command: list[str]) -> None:
    """Run a program of PostgreSQL, which refuses to be root: then as the user postgres."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_user, *command], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr}")


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[str]:
    """Start a cluster with a user `evenhand` and password; return its address without a database."""
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed; EVENHAND_INSTALL=1 make test installs it on Debian")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no `runuser` to change the user with")
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        password, port = folder / "password", _free_port()
        password.write_text("evenhand-Pass%word\n")
        os.chmod(password, 0o644)
        data = str(folder / "data")
        _run(
            [
                initdb,
                "-D",
                data,
                "-U",
                "evenhand",
                "-A",
                "scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                f"--pwfile={password}",
            ]
        )
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=on -c max_connections=200"
        _run([pg_ctl, "-D", data, "-w", "-t", "60", "-l", str(folder / "log"), "-o", options, "start"])
        try:
            yield f"postgresql://evenhand:evenhand-Pass%25word@127.0.0.1:{port}"
        finally:
            _run([pg_ctl, "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_cluster: str) -> Iterator[str]:
    """Return the address of an empty database of this test's own."""
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(f"{postgres_cluster}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres_cluster}/{name}"
    with psycopg.connect(f"{postgres_cluster}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


# A report of all six audits, as small as it can be and still say something in each


@pytest.fixture(scope="session")
def six_audits() -> eh.Audit:
    """Return an audit with six sections: people of three races and two sexes, one race worse off throughout."""
    rng, n = np.random.default_rng(3), 400
    race, sex = rng.choice(["Asian", "Black", "White"], n, p=[0.2, 0.3, 0.5]), rng.choice(["Female", "Male"], n)
    black = race == "Black"
    outcome = (rng.random(n) < 0.4).astype(int)
    score = np.clip(rng.beta(2, 3, n) + 0.2 * (outcome - 0.4) + 0.2 * black, 0, 1).round(6)
    first = (rng.random(n) < score).astype(int)
    columns = {
        "id": np.arange(n),
        "race": race,
        "sex": sex,
        "outcome": outcome,
        "score": score,
        "age": rng.normal(0, 10, n).round(2),
        "income": rng.normal(0, 10, n).round(2),
        **{f"y{year}": rng.uniform(20, 60, n).round(2) for year in (1, 2, 3)},
        "rater_a": first,
        "rater_b": np.where(rng.random(n) < 0.9 - 0.3 * black, first, 1 - first),
        "label": rng.choice(["high", "low"], n),
        "critic": [f"critic {number % 20}" for number in range(n)],
        "disagree": (rng.random(n) < 0.2 + 0.3 * black).astype(int),
        "hired": (rng.random(n) < 0.4).astype(int),
        "other": (rng.random(n) < 0.4).astype(int),
    }
    table = eh.Table(
        {name: np.asarray(column).tolist() for name, column in columns.items()},
        id="id",
        outcome="outcome",
        groups=["race", "sex"],
        predictions={"boosting": "score"},
        favourable="not_selected",
    )
    noise = {"features": {"age": 5, "income": 5}, "noise_levels": [0.1, 0.3]}
    return eh.audit(
        table,
        parity={"resamples": 200},
        effort={"trajectory": ["y1", "y2", "y3"], "scale": 100},
        disagreement={"decision": "label", "critic": "critic", "disagree": "disagree", "resamples": 100},
        reliability={"model": _score, "features": ["age", "income"], "noise": noise, "replicates": 3, "resamples": 100},
        agreement={"raters": ["rater_a", "rater_b"], "resamples": 100},
        improvability={"status_quo": "hired", "grouping": "sex", "candidates": "other", "resamples": 200},
        thresholds=[
            {"metric": "demographic_parity_difference", "max": 0.1, "grouping": "race"},
            {"audit": "effort", "metric": "eaif", "min": 0.85},
            {"audit": "disagreement", "metric": "calibration", "grouping": "race", "max": 0.1},
            {"audit": "reliability", "metric": "pabak", "max": 0.05},
            {"audit": "agreement", "metric": "kappa", "grouping": "sex", "max": 0.1},
            {"audit": "improvability", "metric": "improvable_fairness", "max": 0.1},
        ],
        report={"title": "Sechs Teile", "thresholds_by": "niemand", "scope": "Alles ist erfunden."},
    )


def _score(rows: Any) -> Any:
    return 1 / (1 + np.exp(-(rows[:, 0] + rows[:, 1]) / 10))
