"""`init` and then `audit` on tables of real data: a usable proposal or an honest question, never a guess as a fact."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools/init_tables.py"))


@pytest.mark.parametrize("case", TOOL["CASES"], ids=lambda case: case.name)
def test_a_usable_proposal_or_an_honest_question(case: Any) -> None:
    found = TOOL["try_table"](case)
    data = found.raw["data"]
    predictions = data["predictions"] if isinstance(data.get("predictions"), dict) else {}
    assert set(predictions) <= set(case.predictions)
    assert data.get("outcome", "") in ("", *case.outcome)
    assert "favourable" not in data
    if found.open:
        names = ", ".join(setting.split("`")[1] for setting in found.open)
        assert found.as_written == f"refused: {names}"
    else:
        assert found.as_written.startswith("ran, ")
    if case.answer:
        assert found.answered.startswith("ran, ") or found.answered == "refused: threshold"
    assert found.row() in TOOL["PAGE"].read_text(encoding="utf-8"), "run: python tools/init_tables.py"
