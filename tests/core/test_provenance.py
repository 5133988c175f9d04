"""The record of the data: its hash follows every column that any audit read, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh

ROWS = 120
SECTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "parity": ({"resamples": 100, "within": ["district"]}, ("risk", "late", "district")),
    "effort": ({"trajectory": ["x1", "x2", "x3"], "inertia": "burden"}, ("x1", "x2", "x3", "burden", "risk")),
    "agreement": ({"raters": ["first", "second"], "resamples": 100}, ("first", "second")),
    "disagreement": ({"decision": "label", "disagree": "objects", "critic": "critic"}, ("label", "objects", "critic")),
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"x{year}": rng.integers(1, 9, ROWS).astype(float) for year in (1, 2, 3)})
    return frame.assign(
        group=np.where(np.arange(ROWS) % 3 == 0, "a", "b"),
        late=rng.integers(0, 2, ROWS),
        risk=rng.random(ROWS).round(6),
        district=np.where(np.arange(ROWS) % 4 == 0, "north", "south"),
        burden=rng.integers(1, 4, ROWS).astype(float),
        first=rng.integers(0, 2, ROWS),
        second=rng.integers(0, 2, ROWS),
        label=rng.integers(0, 2, ROWS),
        objects=rng.integers(0, 2, ROWS),
        critic=[f"c{i % 6}" for i in range(ROWS)],
        unused=0,
    )


def data_hash(frame: Any, *names: str) -> str:
    table = eh.Table(frame, groups="group", outcome="late", predictions={"m": "risk"})
    sections: dict[str, Any] = {name: SECTIONS[name][0] for name in names}
    return str(eh.audit(table, **sections).data["hash"])


def changed(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the data with one column tripled, or where it is no amount, with some of its values changed."""
    if column.startswith("x") or column == "burden":
        return frame.assign(**{column: 3 * frame[column]})
    if column == "risk":
        return frame.assign(risk=frame["risk"] / 3)
    return frame.assign(**{column: [*frame[column][1:], frame[column][0]]})


@pytest.mark.parametrize("name", SECTIONS)
def test_a_change_of_any_column_that_an_audit_read_changes_the_hash(name: str) -> None:
    before = data_hash(people(), name)
    for column in SECTIONS[name][1]:
        assert data_hash(changed(people(), column), name) != before, column


def test_neither_the_order_of_rows_or_audits_nor_an_unused_column_changes_the_hash() -> None:
    frame = people()
    before = data_hash(frame, *SECTIONS)
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert data_hash(shuffled.rename(columns={"unused": "useless"}), *reversed(SECTIONS)) == before
