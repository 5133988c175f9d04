"""What published margins say about the counts behind them, against the bounds of Fréchet."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats import disclosure
from evenhand.stats.disclosure import CountedPeople, _finest, _one_more, _System, hide_small_groups, is_safe, merged

RACE, SEX, BOTH = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.arange(4)
PEOPLE = CountedPeople(np.array([3, 4, 5, 6]), (RACE, SEX, BOTH), (np.zeros(4, dtype=np.int64),))


def test_two_margins_narrow_a_count_to_its_bounds() -> None:
    system = _System.from_published(PEOPLE, [RACE, SEX])
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


def test_a_hidden_block_of_an_intersection_is_as_wide_as_its_least_margin() -> None:
    """Of three races and sexes four small counts are hidden, whose rows and columns add up to 5 and 7."""
    n = np.array([2, 3, 10, 3, 4, 10, 10, 10, 10])
    race, sex = np.divmod(np.arange(9), 3)
    people = CountedPeople(n, (race, sex, np.arange(9)), (np.zeros(9, dtype=np.int64),))
    shown, hidden = np.zeros(3, dtype=np.bool_), np.isin(np.arange(9), [0, 1, 3, 4])
    system = _System.from_published(people, [race, sex, merged(np.arange(9), hidden)])
    assert [system.width(system.groups[2] == cell) for cell in (0, 1, 3, 4, 8)] == pytest.approx([5, 5, 5, 5, 0])
    assert is_safe(people, [shown, shown, hidden], 5)
    assert not is_safe(people, [shown, shown, hidden], 6)


def test_the_rest_grows_until_it_holds_two_groups_and_no_small_count() -> None:
    def hidden(n: list[int], least: int) -> list[int] | None:
        people = CountedPeople(np.array(n), (np.arange(len(n)),), (np.zeros(len(n), dtype=np.int64),))
        (found,) = hide_small_groups(people, least)
        return None if found is None else np.flatnonzero(found).tolist()

    assert hidden([50, 60, 40], 10) == []
    assert hidden([50, 60, 40, 10], 10) == []  # ten are not small
    assert hidden([50, 60, 40, 9], 10) == [2, 3]
    assert hidden([50, 60, 0, 9], 10) is None  # of nobody there is nothing to hide, and 9 with 0 are still small
    assert hidden([50, 60, 70, 4, 5], 10) == [0, 3, 4]  # together nine
    assert hidden([50, 60, 70, 5, 5], 10) == [3, 4]
    assert hidden([50, 60, 4], 10) is None


def test_hidden_groups_become_the_last_one() -> None:
    group = np.array([0, 1, 2, 3, 1])
    assert merged(group, np.array([False, True, False, True])).tolist() == [0, 2, 1, 2, 2]


def test_the_smallest_group_that_is_shown_is_the_next_to_be_hidden() -> None:
    people = CountedPeople(np.array([9, 3, 7, 3]), (np.arange(4),), (np.zeros(4, dtype=np.int64),))
    none = np.zeros(4, dtype=np.bool_)
    once = _one_more(people, np.arange(4), none)
    assert once is not None
    assert np.flatnonzero(once).tolist() == [1]
    twice = _one_more(people, np.arange(4), once)
    assert twice is not None
    assert np.flatnonzero(twice).tolist() == [1, 3]
    assert _one_more(people, np.arange(4), twice) is None


def test_a_table_that_follows_from_another_is_left_out() -> None:
    """The second column is coarser than the first, the third says the same as the first."""
    fine = np.array([0, 1, 2, 3])
    assert _finest(np.column_stack([fine, fine // 2, 3 - fine])) == [0]
    assert _finest(np.column_stack([fine // 2, fine % 2])) == [0, 1]
