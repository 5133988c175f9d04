"""A first look at a table: what each column holds, from its first rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from evenhand.errors import DataError
from evenhand.table.keys import NUMBERS, Kind, is_absent, kinds_of, plain_value, yes_or_no
from evenhand.table.sources import FileOptions, MisreadTypeError, engine_errors, fetch, open_source

SAMPLE = 100_000
_MOST_VALUES = 50


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    Parameters
    ----------
    name, kind : the column and the kind of its values.
    rows, missing, distinct : rows looked at, how many are missing, how many different values there are.
    low, high : smallest and largest number (None for text).
    values : the values themselves where there are few, most frequent first.
    """

    name: str
    kind: Kind
    rows: int
    missing: int
    distinct: int
    low: float | None
    high: float | None
    values: tuple[Any, ...]

    @property
    def two_valued(self) -> bool:
        """Whether it holds 0/1, booleans or yes/no words only."""
        if self.distinct != 2:
            return False
        return all(yes_or_no(value) is not None for value in self.values)

    @property
    def unique(self) -> bool:
        """Whether no value repeats."""
        return self.missing == 0 and self.distinct == self.rows > 1


def profile(data: Any, options: FileOptions | None = None) -> list[ColumnProfile]:
    """Look at the first 100,000 rows of a table.

    Examples
    --------
    >>> [(c.name, c.kind, c.two_valued) for c in profile({"race": ["A", "B", "A"], "hired": [1, 0, 1]})]
    [('race', 'text', False), ('hired', 'whole', True)]
    """
    chosen = options or FileOptions()
    try:
        return _profile(data, chosen)
    except MisreadTypeError:
        return _profile(data, chosen.model_copy(update={"types_from_all_rows": True}))


def _profile(data: Any, options: FileOptions) -> list[ColumnProfile]:
    source = open_source(data, options)
    with engine_errors():
        frame: Any = source.head(SAMPLE)
        kinds = kinds_of(frame.collect_schema())
        rows = int(fetch(frame.select(n=nw.len()))["n"][0])
        if rows == 0:
            raise DataError("the data has no rows.")
        return [_column(frame, name, kind, rows) for name, kind in kinds.items()]


def _column(frame: Any, name: str, kind: Kind, rows: int) -> ColumnProfile:
    if kind == "other":
        return ColumnProfile(name, kind, rows, 0, 0, None, None, ())
    present = frame.filter(~is_absent(name, kind)).select(value=plain_value(name, kind))
    counted = present.group_by("value").agg(nw.len().alias("n"))
    total = fetch(counted.select(distinct=nw.len(), n=nw.col("n").sum()))
    distinct, known = int(total["distinct"][0]), int(total["n"][0] or 0)
    low = high = None
    if kind in NUMBERS and known:
        ends = fetch(counted.select(low=nw.col("value").min(), high=nw.col("value").max()))
        low, high = float(ends["low"][0]), float(ends["high"][0])
    few = distinct <= _MOST_VALUES
    top = fetch(counted.sort("n", "value", descending=[True, False]).head(_MOST_VALUES))["value"] if few else []
    return ColumnProfile(name, kind, rows, rows - known, distinct, low, high, tuple(top))
