"""Small studies of both kinds, as their researchers would write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.study.flow.design import Design, load_design
from evenhand.study.template import study_template

CASES = """case,label,race,age,charge,priors
{rows}
"""


@pytest.fixture(scope="session")
def income() -> eh.study.Instrument:
    households = eh.datasets.make_households(1_500, seed=1)
    table = eh.Table(households, id="household", groups="race", predictions={"m": "risk_logistic"})
    return eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=5, step=100)


@pytest.fixture
def effort(tmp_path: Path, income: eh.study.Instrument) -> Callable[..., Design]:
    def make(**changes: str) -> Design:
        income.save(tmp_path / "income.json")
        income.save(tmp_path / "arrests.json")
        return _written(tmp_path, study_template("effort"), changes)

    return make


@pytest.fixture
def feedback(tmp_path: Path) -> Callable[..., Design]:
    def make(*, cases: int = 43, **changes: str) -> Design:
        rows = "\n".join(
            f"{i},{'high' if i % 2 else 'low'},{'ab'[i % 3 == 0]},{20 + i},x,{i % 4}" for i in range(cases)
        )
        (tmp_path / "cases.csv").write_text(CASES.format(rows=rows), encoding="utf-8")
        small = {"per_critic = 50": "per_critic = 10", "per_case = 20": "per_case = 3"}
        return _written(tmp_path, study_template("disagreement"), small | changes)

    return make


def _written(folder: Path, text: str, changes: dict[str, str]) -> Design:
    """Write a study with some of its text replaced, and load it."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return load_design(eh.study.read_study(folder / "study.toml"))
