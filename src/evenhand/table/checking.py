"""The second step of a table: validate roles and rows, and count the cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np

from evenhand.errors import DataError
from evenhand.messages import Message
from evenhand.table import keys
from evenhand.table.cells import Cells, TooManyCellsError, reduce
from evenhand.table.counts import count_problems, repeat_rows
from evenhand.table.engines import MAX_CELLS
from evenhand.table.files import MisreadTypeError
from evenhand.table.messages import say
from evenhand.table.opening import OpenedTable
from evenhand.table.sources import Source
from evenhand.table.validation import Validation, sound_roles


@dataclass(frozen=True)
class CheckedWeights:
    """The validated survey weights, or their problems.

    Parameters
    ----------
    exponent : bounds the weights: none exceeds ``2**exponent``.
    problems : the problems of the weights.
    nonzero_weight_filter : filter of rows with a weight above 0, and a note; None if all weights are above 0.
    """

    exponent: int = 0
    problems: Sequence[Message] = ()
    nonzero_weight_filter: tuple[nw.Expr, Message] | None = None

    def apply(self, source: Source) -> Source:
        """Return the source without rows of weight 0."""
        return source if self.nonzero_weight_filter is None else source.with_filter(*self.nonzero_weight_filter)


@dataclass(frozen=True, kw_only=True)
class CheckedTable:
    """A validated table.

    Parameters
    ----------
    opened : the opened table without rows of weight 0, with notes.
    weights : the validated survey weights.
    cells : counts by groups, outcome and decisions, without the rows dropped.
    dropped : the number of rows dropped for a missing outcome or prediction.
    """

    opened: OpenedTable
    weights: CheckedWeights
    cells: Cells
    dropped: int

    def reopened(self, columns: Iterable[str] = (), *, all_rows: bool = False) -> CheckedTable:
        """Return the table with additional columns, or with types inferred from all rows."""
        opened = self.opened.reopened(columns, all_rows=all_rows)
        source = self.weights.apply(opened.source)
        if opened.roles.count is not None:
            source = repeat_rows(source, opened.roles.count)
        source = replace(source, paths=self.opened.source.paths, notes=self.opened.source.notes)
        return replace(self, opened=replace(opened, source=source))


def check_table(opened: OpenedTable) -> CheckedTable:
    """Validate roles and rows, reporting all problems in one `DataError`.

    If a later row of a file does not fit the types of the first rows, types are inferred from all rows.
    """
    try:
        return _check_as_typed(opened)
    except MisreadTypeError:
        if not opened.can_retype:
            raise
        return _check_as_typed(opened.reopened(all_rows=True))


def _check_as_typed(opened: OpenedTable) -> CheckedTable:
    misfits = list(_validation(opened).schema_problems())
    problems = [message for _, message in misfits if message is not None]
    sound = replace(opened, roles=sound_roles(opened.roles, {column for column, _ in misfits}))
    weights = _check_weights(sound)
    sound = replace(sound, source=weights.apply(sound.source))
    counted = _count(sound, weights)
    problems += [*weights.problems, *_count_problems(sound), *_row_problems(sound, counted)]
    if problems or counted is None:
        raise DataError(problems)
    sound, counted = _repeat_counted(sound, weights, counted)
    cells = _without_absent(sound, counted)
    notes = (*sound.source.notes, *_validation(sound).notes(counted))
    checked = replace(opened, source=replace(sound.source, notes=notes))
    return CheckedTable(opened=checked, weights=weights, cells=cells, dropped=counted.rows - cells.rows)


def _repeat_counted(opened: OpenedTable, weights: CheckedWeights, counted: Cells) -> tuple[OpenedTable, Cells]:
    """Return the table and its cells, with every row repeated according to its count."""
    if opened.roles.count is None:
        return opened, counted
    repeated = replace(opened, source=repeat_rows(opened.source, opened.roles.count))
    cells = _count(repeated, weights)
    assert cells is not None  # noqa: S101  # the same cells as before
    return repeated, cells


def _validation(opened: OpenedTable) -> Validation:
    return Validation(opened.roles, opened.kinds, opened.source)


def _check_weights(opened: OpenedTable) -> CheckedWeights:
    column = opened.roles.weight
    if column is None:
        return CheckedWeights()
    problems, exponent, zeros = _validation(opened).weight_problems(column)
    if problems or not zeros:
        return CheckedWeights(0 if problems else exponent, problems)
    return CheckedWeights(exponent, nonzero_weight_filter=(nw.col(column) > 0, say("no_weight", n=zeros)))


def _count_problems(opened: OpenedTable) -> list[Message]:
    column = opened.roles.count
    return [] if column is None else list(count_problems(_validation(opened), column))


def _count(opened: OpenedTable, weights: CheckedWeights) -> Cells | None:
    """Return the cells; None if there are too many."""
    all_keys = [*opened.keys.groups(), *opened.keys.states()]
    weight_sums = [] if weights.problems else opened.keys.weights(weights.exponent)
    try:
        return reduce(opened.source.frame, all_keys, weight_sums, most=MAX_CELLS)
    except TooManyCellsError:
        return None


def _row_problems(opened: OpenedTable, counted: Cells | None) -> list[Message]:
    check = _validation(opened)
    if counted is None:
        return check.crowded_columns()
    problems = list(check.row_problems(counted))
    if opened.roles.id is not None and counted.rows:
        problems += check.id_problems(opened.roles.id, counted.rows)
    if opened.roles.cluster is not None and counted.rows:
        problems += check.cluster_problems(opened.roles.cluster, counted.rows)
    return problems


def _without_absent(opened: OpenedTable, counted: Cells) -> Cells:
    """Return the cells without missing outcomes or predictions."""
    absent = np.zeros(len(counted.n), dtype=np.bool_)
    for key in opened.keys.states():
        labels = counted.labels[key.name]
        absent |= np.array([labels[code] == str(keys.ABSENT) for code in counted.codes[key.name]], dtype=np.bool_)
    cells = counted.where(~absent)
    if cells.rows == 0:
        raise DataError("no rows are left after dropping those with a missing outcome or prediction.")
    return cells
