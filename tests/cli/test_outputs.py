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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("g,d\n" + "A,1\nB,0\nA,1\nB,1\n" * 10)
    (tmp_path / "audit.toml").write_text(AUDIT_TOML)
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize(
    ("redirection", "codes"),
    [
        (">/dev/full", (2, 2)),
        ("2>/dev/full", (0, 2)),
        (">/dev/full 2>/dev/full", (2, 2)),
        (">&-", (0, 2)),
        ("2>&-", (0, 2)),
        (">&- 2>&- <&-", (0, 2)),
    ],
)
def test_an_output_that_is_full_or_closed_is_no_broken_threshold_and_no_bug(
    redirection: str, codes: tuple[int, int], place: Path
) -> None:
    for name, code in zip(("audit.toml", "nothing.toml"), codes, strict=True):
        command = f"exec {sys.executable} -m evenhand audit {name} --out out {redirection}"
        done = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == code, (name, done)
        assert "Traceback" not in done.stderr + done.stdout
        if redirection == ">/dev/full" and name == "audit.toml":
            assert done.stderr == "Error: the output cannot be written: No space left on device.\n"


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
def test_a_date_of_the_build_that_is_none_is_told_before_numpy_is_loaded(date: str, place: Path) -> None:
    words = [sys.executable, "-m", "evenhand", "audit", "audit.toml", "--out", "out"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": date}
    done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        f"Error: the environment variable SOURCE_DATE_EPOCH must be a number of seconds since 1970; got {date!r}.\n",
    )
