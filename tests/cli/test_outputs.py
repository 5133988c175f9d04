"""An output that is full or closed, and names that are too long: exit code 2 and a sentence, or the code of the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]

AUDIT_TOML = """\
[data]
source = "people.csv"
groups = ["g"]
predictions = { m = "d" }
[parity]
metrics = ["selection_rate"]
"""
NO_DATE = "Error: the environment variable SOURCE_DATE_EPOCH must be a number of seconds since 1970; got {!r}.\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("g,d\n" + "A,1\nB,0\nA,1\nB,1\n" * 10)
    (tmp_path / "audit.toml").write_text(AUDIT_TOML)
    return tmp_path


AUDIT, LIST = "audit audit.toml --out out", "data list"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize(
    ("command", "redirection", "code"),
    [
        (LIST, ">/dev/full", 2),
        (LIST, "2>/dev/full", 0),
        (AUDIT, ">/dev/full 2>/dev/full", 2),
        (LIST, ">&-", 0),
        (LIST, "2>&-", 0),
        (AUDIT, ">&- 2>&- <&-", 0),
        ("audit nothing.toml", "2>/dev/full", 2),
        ("audit nothing.toml", "2>&-", 2),
    ],
)
def test_an_output_that_is_full_or_closed_is_no_broken_threshold_and_no_bug(
    command: str, redirection: str, code: int, place: Path
) -> None:
    words = ["sh", "-c", f"exec {sys.executable} -m evenhand {command} {redirection}"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == code
    full = redirection == ">/dev/full"
    assert done.stderr == ("Error: the output cannot be written: No space left on device.\n" if full else "")
    assert (place / "out/report.html").exists() is (command == AUDIT)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "words",
    [
        ("init", "people.csv", "--groups", "g", "--decisions", "d", "--yes", "--out"),
        ("pack", "out", "--out"),
        ("study", "new", "--kind", "effort"),
        ("audit", "audit.toml", "--out"),
    ],
)
def test_a_name_that_is_too_long_is_told(words: tuple[str, ...], cli: Cli) -> None:
    assert cli("audit", "audit.toml", "--out", "out").returncode == 0
    done = cli(*words, "x" * 4_000)
    assert done.returncode == 2
    assert done.stderr.endswith(" File name too long.\n")
    assert len(done.stderr) < 4_200


@pytest.mark.parametrize("date", ["abc", "", "1e9", "-1", "9" * 30])
def test_a_date_of_the_build_that_is_none_is_told(
    date: str, cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
    done = cli("audit", "audit.toml", "--out", "out")
    assert (done.returncode, done.stderr) == (2, NO_DATE.format(date))


def test_a_date_of_the_build_that_is_none_is_told_before_numpy_is_loaded(place: Path) -> None:
    words = [sys.executable, "-m", "evenhand", "audit", "audit.toml", "--out", "out"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "abc"}
    done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, NO_DATE.format("abc"))
