"""Which groups to hide so that no small count can be read from published tables, or worked out by difference.

People are given as cells: how many share every group and every state (outcome, decision, score bin). For each grouping
and each *table*, a set of states that is crossed with the groups, the count of every group and state is published. A
count from 1 to `least - 1` is small. The rule, a threshold rule with whole groups hidden (Willenborg and de Waal 2001,
Elements of Statistical Disclosure Control, ch. 4):

1. every group of which a count is small is hidden: its people go into one rest, for which all is published as for a
   group. Groups are added to the rest, the smallest first, until it holds two groups or more and has no small count;
2. a reader who adds and subtracts everything published solves a system A x = b, x >= 0. For every small count that is
   hidden, linear programs find the least and the largest value that the system allows. Where they are less than
   `least` apart, one more group of the grouping joins the rest; a grouping with fewer than two groups left is withheld.

In one grouping of its own the second step never bites: people of the rest can change places between its groups without
any published number changing, so that a hidden count may be anything from 0 to the rest's. It matters for
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
"""Beyond these nothing is tried: a grouping whose safety is not shown is not published."""


@dataclass(frozen=True)
class People:
    """Counts of people by group and state.

    Parameters
    ----------
    n : (cells,) how many people.
    groups : for each grouping, the (cells,) group of each cell, from 0.
    states : for each published table, the (cells,) state of each cell, from 0; one that is all 0 stands for totals.
    """

    n: IntArray
    groups: tuple[IntArray, ...]
    states: tuple[IntArray, ...]

    def counts(self, group: IntArray, state: IntArray) -> IntArray:
        """Return the (groups, states) counts of one table."""
        shape = int(group.max(initial=0)) + 1, int(state.max(initial=0)) + 1
        flat = np.bincount(group * shape[1] + state, weights=self.n, minlength=shape[0] * shape[1])
        return flat.astype(np.int64).reshape(shape)


def hide_small_groups(people: People, least: int) -> list[BoolArray | None]:
    """Return for each grouping which groups are hidden, so that nobody can tell a small count; None: withhold it all.

    Groupings are taken in their order, each beside those before it: give single columns first.

    Examples
    --------
    >>> n = np.array([50, 60, 40, 4])
    >>> people = People(n, (np.array([0, 1, 2, 3]),), (np.zeros(4, dtype=np.int64),))
    >>> hide_small_groups(people, 10)[0].tolist()  # the last is small; the third keeps it from being a difference
    [False, False, True, True]
    """
    kept: list[BoolArray | None] = []
    for group in people.groups:
        hidden: BoolArray | None = np.zeros(int(group.max(initial=0)) + 1, dtype=np.bool_)
        while hidden is not None:
            hidden = _without_small(people, group, hidden, least)
            if hidden is None or is_safe(people, [*kept, hidden], least):
                break
            hidden = _one_more(people, group, hidden)
        kept.append(hidden)
    while not is_safe(people, kept, least):  # a count of a grouping that is withheld, from others
        kept[max(at for at, hidden in enumerate(kept) if hidden is not None)] = None
    return kept


def _without_small(people: People, group: IntArray, hidden: BoolArray, least: int) -> BoolArray | None:
    """Hide groups until no published count is small; None where fewer than two would be left."""
    tables = [people.counts(group, state) for state in people.states]
    small = np.any([is_small(table, least).any(axis=1) for table in tables], axis=0)
    now: BoolArray | None = hidden | small
    while now is not None and now.any():
        rest_is_small = any(is_small(table[now].sum(axis=0), least).any() for table in tables)
        if now.sum() > 1 and not rest_is_small:
            break
        now = _one_more(people, group, now)
    return now if now is not None and (~now).sum() > 1 else None


def is_small(counts: IntArray, least: int) -> BoolArray:
    """Tell which counts are small: from 1 to one less than the least."""
    return np.asarray((counts > 0) & (counts < least), dtype=np.bool_)


def _one_more(people: People, group: IntArray, hidden: BoolArray) -> BoolArray | None:
    """Hide the smallest group that is not hidden yet; None where fewer than two would be left."""
    sizes = np.bincount(group, weights=people.n, minlength=len(hidden))
    order = np.lexsort((np.arange(len(hidden)), sizes, hidden))
    changed = hidden.copy()
    changed[order[0]] = True
    return changed if (~changed).sum() > 1 else None


def merged(group: IntArray, hidden: BoolArray) -> IntArray:
    """Return the group of each cell with all hidden groups as one, the last."""
    place = np.where(hidden, (~hidden).sum(), np.cumsum(~hidden) - 1)
    return np.asarray(place[group], dtype=np.int64)


def is_safe(people: People, hidden: Sequence[BoolArray | None], least: int) -> bool:
    """Tell whether no linear program narrows a small count that is hidden to fewer than `least` values.

    `hidden` is about the first groupings; those after them are not published, and not asked about.
    """
    pairs = list(zip(people.groups, hidden, strict=False))
    shown = [merged(group, gone) for group, gone in pairs if gone is not None]
    if len(shown) < 2 or all(gone is not None and not gone.any() for _, gone in pairs):
        return True  # one grouping: see above; nothing hidden: nothing is small
    system = _System.of(people, shown)
    asked = list(system.small_counts(people, len(pairs), least))
    if system.matrix.shape[1] > MOST_UNKNOWNS or len(asked) > MOST_PROGRAMS:
        return False
    return all(system.width(wanted) >= least - 1e-6 for wanted in asked)


@dataclass(frozen=True)
class _System:
    """What is published as equations, ``matrix @ x == right``, in the unknown counts x of all combinations.

    The unknowns are all combinations of groups that occur with all combinations of states that occur. A reader who
    does not know which occur can narrow a count less, so this is the careful choice.
    """

    groups: tuple[IntArray, ...]
    states: tuple[IntArray, ...]
    matrix: Any
    right: IntArray

    @classmethod
    def of(cls, people: People, shown: Sequence[IntArray]) -> _System:
        from scipy.sparse import csr_array, vstack

        every = np.column_stack([*people.groups, *shown]), np.column_stack(people.states)
        by_group, by_state = (np.unique(part, axis=0) for part in every)
        here, there = (part.reshape(-1) for part in np.indices((len(by_group), len(by_state))))
        states = tuple(by_state[there].T)
        rows, right = [], []
        for at, group in enumerate(shown):
            of_unknown = by_group[here, len(people.groups) + at]
            for table in _finest(by_state):
                counts, state = people.counts(group, people.states[table]), states[table]
                row = of_unknown * counts.shape[1] + state
                entries = np.ones(len(row)), (row, np.arange(len(row)))
                rows.append(csr_array(entries, shape=(counts.size, len(row))))
                right.append(counts.reshape(-1))
        groups = tuple(by_group[here, at] for at in range(len(people.groups)))
        return cls(groups, states, vstack(rows).tocsr(), np.concatenate(right))

    def small_counts(self, people: People, groupings: int, least: int) -> Iterator[BoolArray]:
        """Yield the unknowns that add up to each small count of the first groupings."""
        for group, of_unknown in list(zip(people.groups, self.groups, strict=True))[:groupings]:
            for published, state in zip(people.states, self.states, strict=True):
                for g, s in np.argwhere(is_small(people.counts(group, published), least)):
                    yield (of_unknown == g) & (state == s)

    def width(self, wanted: BoolArray) -> float:
        """Return how far apart the least and the largest sum of some unknowns are that the equations allow."""
        from scipy.optimize import linprog

        ends: list[Any] = [
            linprog(sign * wanted.astype(np.float64), A_eq=self.matrix, b_eq=self.right, method="highs")
            for sign in (1.0, -1.0)
        ]
        solved = all(end.status == 0 for end in ends)  # it always can be: the true counts solve it
        return float(-ends[1].fun - ends[0].fun) if solved else 0.0


def _finest(states: IntArray) -> list[int]:
    """Return the tables (columns of states) whose counts do not follow from those of another one."""
    sizes = [len(np.unique(column)) for column in states.T]

    def follows(table: int, other: int) -> bool:
        implied = len(np.unique(states[:, [other, table]], axis=0)) == sizes[other]
        return implied and (sizes[other] > sizes[table] or other < table)

    every = range(len(sizes))
    return [table for table in every if not any(follows(table, other) for other in every if other != table)]
