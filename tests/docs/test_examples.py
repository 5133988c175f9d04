"""The examples run. `examples/audit.toml` runs with its README, in test_pages."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_quickstart_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["parity_quickstart.py", str(tmp_path / "out")])
    runpy.run_path(str(EXAMPLES / "parity_quickstart.py"), run_name="__main__")
    assert "by race: selection rate is" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))["data"]["rows"] == 5_000
    assert (tmp_path / "out/report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_no_data_is_committed() -> None:
    allowed = {"README.md", ".gitignore", "audit.toml", "households.csv", "out"}
    ignored = (EXAMPLES / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "households.csv" in ignored
    assert {
        path.name for path in EXAMPLES.iterdir() if path.suffix not in {".py", ".ipynb"} and path.name != "__pycache__"
    } <= allowed
