"""What published margins say about the counts behind them, against the bounds of Fréchet."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats import disclosure
from evenhand.stats.disclosure import People, _System, is_safe

RACE, SEX, BOTH = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.arange(4)
PEOPLE = People(np.array([3, 4, 5, 6]), (RACE, SEX, BOTH), (np.zeros(4, dtype=np.int64),))


def test_two_margins_narrow_a_count_to_its_bounds() -> None:
    system = _System.of(PEOPLE, [RACE, SEX])
    for cell, (row, column) in enumerate([(7, 8), (7, 10), (11, 8), (11, 10)]):
        width = min(row, column) - max(0, row + column - 18)
        assert system.width(system.groups[2] == cell) == pytest.approx(width)


def test_a_grouping_is_safe_where_no_small_count_can_be_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = np.zeros(2, dtype=np.bool_)
    assert is_safe(PEOPLE, [shown, shown, None], 7)
    assert not is_safe(PEOPLE, [shown, shown, None], 8)  # seven of a race are small, and told
    for most in ("MOST_UNKNOWNS", "MOST_PROGRAMS"):
        with monkeypatch.context() as patched:
            patched.setattr(disclosure, most, 3)
            assert not is_safe(PEOPLE, [shown, shown, None], 7)
