"""The public functions are typed: a type checker accepts right calls and refuses wrong ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def _mypy(path: Path) -> list[tuple[int, str]]:
    """Return the lines and codes of the errors that mypy finds in a file, each once."""
    cache = ROOT / ".mypy_cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "--no-error-summary", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(rf"{re.escape(path.name)}:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    assert done.returncode == (1 if found else 0), done.stdout + done.stderr
    return list(dict.fromkeys((int(line), code) for line, code in found))


def test_right_calls_are_accepted() -> None:
    assert _mypy(HERE / "right_calls.py") == []


def test_wrong_calls_are_refused() -> None:
    path = HERE / "wrong_calls.py"
    lines = enumerate(path.read_text().splitlines(), start=1)
    expected = [(number, line.partition("  # ")[2]) for number, line in lines if "  # " in line]
    assert _mypy(path) == expected


def test_the_stub_is_current() -> None:
    done = subprocess.run([sys.executable, "tools/stubs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
