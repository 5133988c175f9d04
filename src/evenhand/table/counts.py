"""Tables of counts: a row for several people is repeated once for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from evenhand.errors import DataError, problem
from evenhand.messages import Message
from evenhand.table.engines import Frame, collect, remote_engine_name
from evenhand.table.keys import NUMBERS, as_number, unusable
from evenhand.table.messages import say
from evenhand.table.sources import Source, engine_errors, fetch
from evenhand.table.validation import Validation

if TYPE_CHECKING:
    from evenhand.table.table import Table

MOST_IN_MEMORY = 20_000_000
MOST_IN_FILES = 1_000_000_000
"""The largest total of a count column, for tables in memory and for files."""

COUNT_NAMES = frozenset(
    (
        *("n", "num", "number", "count", "counts", "cnt", "tally", "headcount", "anzahl"),
        *("freq", "freqs", "frequency", "frequencies", "fweight", "haeufigkeit"),
    )
)
"""The usual names of count columns, in lower case."""

_ROWS_LOOKED_AT = 10_000
_BLOCK = 2_048


def count_problems(check: Validation, column: str) -> Iterator[Message]:
    """Yield the problems of a count column, which must have a nonnegative whole number in each row."""
    start = problem("count column {column!r}", column=column)
    value, absent = nw.col(column).cast(nw.Float64), check.absent(column)
    wrong = {"negative": (value < 0) & ~absent, "not a whole number": (value != value.floor()) & ~absent}
    marks = {"missing": absent, **wrong}
    with engine_errors():
        marked = check.source.frame.select(
            people=nw.when(~absent).then(value), **{name: as_number(mark) for name, mark in marks.items()}
        )
        facts = fetch(marked.select(rows=nw.len(), **{name: nw.col(name).sum() for name in ("people", *marks)}))
    rows = int(facts["rows"][0])
    for name, mark in marks.items():
        if bad := int(facts[name][0] or 0):
            where = check.named(bad, rows, mark)
            yield problem(
                "{start} is {fault} in {where}; it must say how many people each row stands for.",
                start=start,
                fault=name,
                where=where,
            )
    people, most = float(facts["people"][0] or 0.0), _most(check.source)
    if rows and people == 0:
        yield problem("{start} is 0 in every row: the table has nobody.", start=start)
    elif people > most:
        yield problem(
            "{start} adds up to {people:,.0f} people, and at most {most:,} can be audited here; give the counts as "
            "survey `weight`, or keep fewer columns and add up their rows.",
            start=start,
            people=people,
            most=most,
        )


def repeat_rows(source: Source, column: str) -> Source:
    """Return the source with every row repeated according to its count, and a note.

    The counts of the repeated rows are 1, so that repeating them again changes nothing.
    """
    engine = remote_engine_name(source.frame)
    if engine is not None:
        raise DataError(
            "`count` is {column!r}, and counts are read from files and data frames in memory, not from {engine}; "
            "repeat the rows there.",
            column=column,
            engine=engine,
        )
    with engine_errors():
        repeated = _repeated(source.frame, column)
        ends = [int(fetch(frame.select(n=nw.len()))["n"][0]) for frame in (source.frame, repeated)]
    note = say("stand_for", n=ends[0], people=ends[1], column=column)
    return replace(source, frame=repeated, notes=tuple(dict.fromkeys((*source.notes, note))))


def _repeated(frame: Frame, column: str) -> Frame:
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_duckdb():
        quoted = '"' + column.replace('"', '""') + '"'
        count = f"{quoted}::bigint"  # in blocks, since DuckDB keeps the whole list of a row in memory
        blocks = f"unnest(list_append(list_resize([]::bigint[], {count} // {_BLOCK}, {_BLOCK}), {count} % {_BLOCK}))"
        rows = frame.to_native().project(f"* replace ({blocks} as {quoted})")
        rows = rows.project(f"* replace (unnest(range({quoted})) as {quoted})")
        repeated: Frame = nw.from_native(rows.project(f"* replace (1::bigint as {quoted})"))
        return repeated
    rows = collect(frame) if isinstance(frame, nw.LazyFrame) else frame
    counts = rows.get_column(column).to_numpy().astype(np.int64)
    return rows[np.repeat(np.arange(len(counts)), counts)].with_columns(nw.lit(1).alias(column))


def _most(source: Source) -> int:
    lazy = isinstance(source.frame, nw.LazyFrame) and source.frame.implementation.is_duckdb()
    return MOST_IN_FILES if lazy else MOST_IN_MEMORY


def count_notes(table: Table) -> Iterator[Message]:
    """Yield a warning if a column without a role is probably a count column."""
    if table.roles.count is not None or table.roles.weight is not None or table.rows > _ROWS_LOOKED_AT:
        return
    for column in table.kinds:
        free = column not in table.roles.columns and not unusable(column)
        if free and column.lower() in COUNT_NAMES and table.holds_counts(column):
            yield say("may_be_counts", column=column, rows=table.rows)


def holds_counts(source: Source, column: str) -> bool:
    """Return whether a column contains only nonnegative whole numbers, with some above 1."""
    if source.kinds().get(column) not in NUMBERS:
        return False
    value = nw.col(column).cast(nw.Float64)
    with engine_errors():
        facts = fetch(
            source.frame.select(
                low=value.min(), high=value.max(), wrong=as_number((value != value.floor()) | value.is_null()).sum()
            )
        )
    return bool(facts["wrong"][0] == 0 and facts["low"][0] >= 0 and facts["high"][0] > 1)
