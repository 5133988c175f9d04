"""The notebooks of examples/ run from top to bottom, show a chart, and are stored without what they printed."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from evenhand.audits import REGISTRY

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools/notebooks.py"))
NOTEBOOKS: list[Path] = TOOL["NOTEBOOKS"]


def test_every_audit_has_its_notebook_and_its_page() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(REGISTRY)
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for name in REGISTRY:
        assert f"\nnotebooks/{name}\n" in index


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_a_chart(path: Path) -> None:
    if path.stem in ("reliability", "improvability"):
        pytest.importorskip("sklearn", reason="models are fitted, of the extra 'models'")
    page = TOOL["page"](path)
    assert page.startswith("# ")
    assert '<svg role="img"' in page
    assert "<ul><li>" in page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook["cells"])
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
