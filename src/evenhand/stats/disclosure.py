"""Selection of groups to hide so that no small count can be read or derived from published tables.

The input is the number of people with every combination of group and state (outcome, decision, score bin). For each
grouping and each *table*, a set of states crossed with the groups, the count of every group and state is published. A
count from 1 to `least - 1` is small. The rule is a threshold rule that hides whole groups (Willenborg and de Waal 2001,
Elements of Statistical Disclosure Control, ch. 4):

1. every group with a small count is hidden: its people are merged into one rest, which is published like a group.
   Groups are added to the rest, smallest first, until it contains two groups or more and has no small count;
2. a reader who adds and subtracts everything published solves a system A x = b, x >= 0. For every hidden small count,
   linear programs find the smallest and the largest value that the system allows. If they differ by less than `least`,
   one more group of the grouping joins the rest; a grouping with fewer than two groups left is withheld.

For a single grouping the second step never applies: people of the rest can be exchanged between its groups without
changing any published number, so that a hidden count may be anything from 0 to the rest's count. It matters for
intersections, where race, sex and race x sex are published side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.stats.types import BoolArray, IntArray

MOST_UNKNOWNS = 20_000
MOST_PROGRAMS = 600
"""Larger systems are not solved: a grouping whose safety is not shown is not published."""


@dataclass(frozen=True)
class CountedPeople:
    """Counts of people by group and state.

    Parameters
    ----------
    n : (cells,) the number of people.
    groups : for each grouping, the (cells,) group of each cell, from 0.
    states : for each published table, the (cells,) state of each cell, from 0; all 0 for totals.
    """

    n: IntArray
    groups: tuple[IntArray, ...]
    states: tuple[IntArray, ...]

    def counts(self, group: IntArray, state: IntArray) -> IntArray:
        """Return the (groups, states) counts of one table."""
        shape = int(group.max(initial=0)) + 1, int(state.max(initial=0)) + 1
        flat = np.bincount(group * shape[1] + state, weights=self.n, minlength=shape[0] * shape[1])
        return flat.astype(np.int64).reshape(shape)


def hide_small_groups(people: CountedPeople, least: int) -> list[BoolArray | None]:
    """Return for each grouping the groups to hide so that no small count can be derived; None to withhold it.

    Groupings are processed in order, each together with all earlier groupings, so pass single columns first.

    Examples
    --------
    >>> n = np.array([50, 60, 40, 4])
    >>> people = CountedPeople(n, (np.array([0, 1, 2, 3]),), (np.zeros(4, dtype=np.int64),))
    >>> hide_small_groups(people, 10)[0].tolist()  # the last is small; the third keeps it from being a difference
    [False, False, True, True]
    """
    chosen: list[BoolArray | None] = []
    for group in people.groups:
        hidden: BoolArray | None = np.zeros(int(group.max(initial=0)) + 1, dtype=np.bool_)
        while hidden is not None:
            hidden = _without_small(people, group, hidden, least)
            if hidden is None or is_safe(people, [*chosen, hidden], least):
                break
            hidden = _one_more(people, group, hidden)
        chosen.append(hidden)
    while not is_safe(people, chosen, least):  # counts of a withheld grouping may follow from others
        chosen[max(i for i, hidden in enumerate(chosen) if hidden is not None)] = None
    return chosen


def _without_small(people: CountedPeople, group: IntArray, hidden: BoolArray, least: int) -> BoolArray | None:
    """Return a mask that hides groups until no published count is small; None if fewer than two would remain."""
    tables = [people.counts(group, state) for state in people.states]
    small = np.any([is_small(table, least).any(axis=1) for table in tables], axis=0)
    hidden_now: BoolArray | None = hidden | small
    while hidden_now is not None and hidden_now.any():
        rest_is_small = any(is_small(table[hidden_now].sum(axis=0), least).any() for table in tables)
        if hidden_now.sum() > 1 and not rest_is_small:
            break
        hidden_now = _one_more(people, group, hidden_now)
    return hidden_now if hidden_now is not None and (~hidden_now).sum() > 1 else None


def is_small(counts: IntArray, least: int) -> BoolArray:
    """Return a mask of small counts, from 1 to `least` - 1."""
    return np.asarray((counts > 0) & (counts < least), dtype=np.bool_)


def _one_more(people: CountedPeople, group: IntArray, hidden: BoolArray) -> BoolArray | None:
    """Return the mask with the smallest visible group also hidden; None if fewer than two would remain."""
    sizes = np.bincount(group, weights=people.n, minlength=len(hidden))
    order = np.lexsort((np.arange(len(hidden)), sizes, hidden))
    changed = hidden.copy()
    changed[order[0]] = True
    return changed if (~changed).sum() > 1 else None


def merged(group: IntArray, hidden: BoolArray) -> IntArray:
    """Return the group of each cell, with all hidden groups merged into the last group."""
    merged_code = np.where(hidden, (~hidden).sum(), np.cumsum(~hidden) - 1)
    return np.asarray(merged_code[group], dtype=np.int64)


def is_safe(people: CountedPeople, hidden: Sequence[BoolArray | None], least: int) -> bool:
    """Return whether every hidden small count remains ambiguous by at least `least`, by linear programs.

    `hidden` covers the first groupings; later groupings are not published and not checked.
    """
    pairs = list(zip(people.groups, hidden, strict=False))
    shown = [merged(group, hidden_groups) for group, hidden_groups in pairs if hidden_groups is not None]
    if len(shown) < 2 or all(hidden_groups is not None and not hidden_groups.any() for _, hidden_groups in pairs):
        return True  # one grouping is safe (see above), as is a table with nothing hidden
    system = _System.from_published(people, shown)
    sums = list(system.small_counts(people, len(pairs), least))
    if system.matrix.shape[1] > MOST_UNKNOWNS or len(sums) > MOST_PROGRAMS:
        return False
    return all(system.width(unknowns) >= least - 1e-6 for unknowns in sums)


@dataclass(frozen=True)
class _System:
    """The published counts as equations ``matrix @ x == right`` in the unknown counts x of all combinations.

    The unknowns are all combinations of observed groups with observed states. A reader who does not know which
    combinations occur can narrow a count less, so this is conservative.
    """

    groups: tuple[IntArray, ...]
    states: tuple[IntArray, ...]
    matrix: Any
    right: IntArray

    @classmethod
    def from_published(cls, people: CountedPeople, shown: Sequence[IntArray]) -> _System:
        from scipy.sparse import csr_array, vstack

        combinations = np.column_stack([*people.groups, *shown]), np.column_stack(people.states)
        by_group, by_state = (np.unique(part, axis=0) for part in combinations)
        group_index, state_index = (part.reshape(-1) for part in np.indices((len(by_group), len(by_state))))
        states = tuple(by_state[state_index].T)
        rows, right = [], []
        for i, group in enumerate(shown):
            group_of_unknown = by_group[group_index, len(people.groups) + i]
            for table in _finest(by_state):
                counts, state = people.counts(group, people.states[table]), states[table]
                row = group_of_unknown * counts.shape[1] + state
                entries = np.ones(len(row)), (row, np.arange(len(row)))
                rows.append(csr_array(entries, shape=(counts.size, len(row))))
                right.append(counts.reshape(-1))
        groups = tuple(by_group[group_index, i] for i in range(len(people.groups)))
        return cls(groups, states, vstack(rows).tocsr(), np.concatenate(right))

    def small_counts(self, people: CountedPeople, groupings: int, least: int) -> Iterator[BoolArray]:
        """Yield a mask of the unknowns that add up to each small count of the first groupings."""
        for group, group_of_unknown in list(zip(people.groups, self.groups, strict=True))[:groupings]:
            for published, state in zip(people.states, self.states, strict=True):
                for g, s in np.argwhere(is_small(people.counts(group, published), least)):
                    yield (group_of_unknown == g) & (state == s)

    def width(self, unknowns: BoolArray) -> float:
        """Return the difference between the largest and the smallest sum of some unknowns under the equations."""
        from scipy.optimize import linprog

        ends: list[Any] = [
            linprog(sign * unknowns.astype(np.float64), A_eq=self.matrix, b_eq=self.right, method="highs")
            for sign in (1.0, -1.0)
        ]
        solved = all(end.status == 0 for end in ends)  # always true: the true counts are a solution
        return float(-ends[1].fun - ends[0].fun) if solved else 0.0


def _finest(states: IntArray) -> list[int]:
    """Return the tables (columns of states) whose counts do not follow from another table's."""
    sizes = [len(np.unique(column)) for column in states.T]

    def follows(table: int, other: int) -> bool:
        implied = len(np.unique(states[:, [other, table]], axis=0)) == sizes[other]
        return implied and (sizes[other] > sizes[table] or other < table)

    every = range(len(sizes))
    return [table for table in every if not any(follows(table, other) for other in every if other != table)]
