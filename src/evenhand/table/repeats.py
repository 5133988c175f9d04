"""Repeated rows: several rows of one person, which intervals would treat as several people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.messages import Message
from evenhand.stats.types import IntArray
from evenhand.table.messages import say
from evenhand.table.rows import DerivedRows, Stages

if TYPE_CHECKING:
    from evenhand.table.table import Table

MANY_VALUES = 100
"""A column needs more distinct values than this to reveal repeated rows."""

DOUBTS = ("table.repeated_rows", "table.may_be_counts", "table.is_outcome")
"""The ids of warnings about a possible misinterpretation of rows or columns, repeated on the front page."""

_MOST = 20_000  # maximum number of compared rows
_LEAST_SHARE = 0.002  # minimum share of repeated rows
_LEAST_PAIRS = 10
CHANCE = "evenhand:chance"


class Twins(NamedTuple):
    """Counts of rows with equal values.

    Parameters
    ----------
    share : the share of rows equal to another row in all columns.
    pairs : the number of pairs of equal rows.
    expected : the number of pairs if rows equal in the first column agreed in the others as often as rows of
        neighbouring values do.
    """

    share: float
    pairs: float
    expected: float

    @property
    def belong_together(self) -> bool:
        """Whether there are too many equal rows for chance: at least twice as many as expected."""
        return self.share >= _LEAST_SHARE and self.pairs >= max(_LEAST_PAIRS, 2.0 * self.expected)


def repeat_notes(table: Table) -> Iterator[Message]:
    """Yield a warning if rows repeat, in a table without ids or counts.

    Rows are compared in all columns with a role, if one column has more than 100 distinct values. In longer tables
    about 20,000 rows are compared. In memory, all rows of some values of that column are drawn by a hash, so
    that equal rows are drawn together; elsewhere the first rows are used, since another pass over a file or a
    database can take seconds.
    """
    if not (table.roles.id is None and table.roles.count is None and table.roles.cluster is None):
        return
    numbers = _numbers(table)
    columns = {**numbers, **_states(table)}
    rows = DerivedRows(table).first(_MOST, columns) if numbers else {}
    name = max(numbers, key=lambda number: len(np.unique(rows[number])), default=None)
    if name is None or len(np.unique(rows[name])) <= MANY_VALUES:
        return
    if table.rows > _MOST and isinstance(table.complete_rows(), nw.DataFrame):
        drawn: Stages = [*hash_stages([numbers[name]]), _MOST / table.rows > nw.col(CHANCE)]
        rows = DerivedRows(table, drawn).values(columns)
    telling = rows.pop(name)
    found = count_twins(telling, list(rows.values()))
    if found.belong_together:
        yield say("repeated_rows", share=found.share, looked=len(telling), column=_plain(name), most=MANY_VALUES)


def count_twins(telling: npt.NDArray[Any], others: Sequence[npt.NDArray[Any]]) -> Twins:
    """Count the rows that are equal in a column with many values and in all others.

    Parameters
    ----------
    telling
        The column with many values.
    others
        The other columns.

    Examples
    --------
    >>> score, group = np.repeat(np.arange(200) / 200, 2), np.repeat(np.arange(200) % 2, 2)
    >>> count_twins(score, [group])
    Twins(share=1.0, pairs=200.0, expected=0.0)
    """
    if len(telling) < 2:
        return Twins(0.0, 0.0, 0.0)
    value = _codes([telling])
    other = _codes(others) if others else np.zeros_like(value)
    kinds = int(other.max()) + 1
    cells, n = np.unique(value * kinds + other, return_counts=True)
    of_value = np.bincount(value)
    equal, tied = (float((sizes * (sizes - 1) // 2).sum()) for sizes in (n, of_value))
    neighbours = float((of_value[1:] * of_value[:-1]).sum())
    place = np.minimum(np.searchsorted(cells, cells + kinds), len(cells) - 1)
    agree = float((n * n[place])[cells[place] == cells + kinds].sum())
    return Twins(float(n[n > 1].sum()) / len(telling), equal, tied * agree / neighbours if neighbours else 0.0)


def hash_stages(numbers: Iterable[nw.Expr]) -> Iterator[Mapping[str, nw.Expr]]:
    """Yield stages that hash each row's numbers to a pseudo-random number in [0, 1), in the column CHANCE."""
    chance = nw.col(CHANCE)
    yield {CHANCE: nw.lit(0.5)}
    for number in [*numbers, nw.lit(0.0), nw.lit(0.0)]:
        yield {CHANCE: (chance + number * 997.13) * 12_345.6789}
        yield {CHANCE: chance - chance.floor()}


def _numbers(table: Table) -> dict[str, nw.Expr]:
    """Return the numeric columns with a role: scores and the survey weight."""
    scores = [table.prediction(model).column for model in table.models if table.has_scores(model)]
    weight = [] if table.roles.weight is None else [table.roles.weight]
    return {f"number:{column}": nw.col(column).cast(nw.Float64) for column in (*scores, *weight)}


def _plain(name: str) -> str:
    return name.partition(":")[2]


def _states(table: Table) -> dict[str, nw.Expr]:
    """Return the groups, the outcome and the decisions as numbers."""
    groups = {f"group:{column}": table.group_codes(column) for column in table.roles.group_columns}
    return {**groups, **{f"state:{name}": state for name, state in table.states().items()}}


def _codes(columns: Sequence[npt.NDArray[Any]]) -> IntArray:
    """Return codes of the distinct rows of several columns, in sorted order."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(new)
    return codes
