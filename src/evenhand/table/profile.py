"""A preview of a table: the content of each column in its first rows."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.messages import Message
from evenhand.stats.types import BoolArray, IntArray
from evenhand.table.engines import Frame
from evenhand.table.forms import identifier
from evenhand.table.frames import TableData
from evenhand.table.keys import BLANKS, NUMBERS, Kind, kinds_of, plain_value, yes_or_no
from evenhand.table.labels import COMMA_NUMBER, MISSING_WORDS, PERCENT
from evenhand.table.sources import FileOptions, MisreadTypeError, engine_errors, open_source

SAMPLE = 100_000
_MOST_VALUES = 50
_COLUMNS_AT_ONCE = 500
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """The content of one column.

    Parameters
    ----------
    name, kind : the column and the kind of its values.
    rows, missing, distinct : the number of rows read, of missing values, and of distinct values.
    low, high : smallest and largest number; None for text.
    values : the distinct values if there are few, most frequent first.
    decimal_commas : whether it is text consisting of numbers, some with a decimal comma.
    missing_words : the words for missing values in text that otherwise consists of numbers.
    percent_signs : whether it is text consisting of numbers with a percent sign.
    """

    name: str
    kind: Kind
    rows: int
    missing: int = 0
    distinct: int = 0
    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] = ()
    decimal_commas: bool = False
    missing_words: tuple[str, ...] = ()
    percent_signs: bool = False

    @property
    def two_valued(self) -> bool:
        """Whether it contains exactly two values, which are 0/1, booleans or yes/no words."""
        if self.distinct != 2:
            return False
        return all(yes_or_no(value) is not None for value in self.values)

    @property
    def unique(self) -> bool:
        """Whether all values are distinct and none is missing."""
        return self.missing == 0 and self.distinct == self.rows > 1

    @property
    def is_number(self) -> bool:
        """Whether it contains numbers."""
        return self.kind in NUMBERS


@dataclass(frozen=True, eq=False)
class Look:
    """The first rows of a table: the content of each column, and relations between columns.

    Parameters
    ----------
    columns : the content of each column, by name.
    rows : the number of rows read.
    notes : remarks on the file.
    """

    columns: dict[str, ColumnProfile]
    rows: int
    notes: tuple[Message, ...]
    _cells: dict[str, tuple[npt.NDArray[Any], BoolArray]]

    def unique_together(self, first: str, second: str) -> bool:
        """Return whether no two rows agree in both columns."""
        pairs = np.column_stack([_codes(*self._cells[name]) for name in (first, second)])
        return len(np.unique(pairs, axis=0)) == self.rows

    def exclusive(self, names: list[str]) -> bool:
        """Return whether at most one of these 0/1 columns is 1 in every row."""
        ones = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            values, absent = self._cells[name]
            ones[~absent] += [yes_or_no(value) is True for value in values[~absent].tolist()]
        return bool((ones <= 1).all())


def profile(data: TableData, options: FileOptions | None = None) -> list[ColumnProfile]:
    """Return the profile of each column, from the first 100,000 rows of a table.

    Examples
    --------
    >>> [(c.name, c.kind, c.two_valued) for c in profile({"race": ["A", "B", "A"], "hired": [1, 0, 1]})]
    [('race', 'text', False), ('hired', 'whole', True)]
    """
    return list(look(data, options).columns.values())


def look(data: TableData, options: FileOptions | None = None) -> Look:
    """Return the first 100,000 rows of a table, with the profile of each column.

    Examples
    --------
    >>> seen = look({"person": [1, 1, 2], "year": [1, 2, 1]})
    >>> seen.columns["person"].unique, seen.unique_together("person", "year")
    (False, True)
    """
    chosen = options or FileOptions()
    try:
        return _look(data, chosen)
    except MisreadTypeError:
        return _look(data, chosen.model_copy(update={"types_from_all_rows": True}))


def _look(data: TableData, options: FileOptions) -> Look:
    source = open_source(data, options)
    with engine_errors():
        frame = source.head(SAMPLE)
        kinds = kinds_of(frame.collect_schema())
        rows, cells = _fetched(frame, kinds)
    if rows == 0:
        raise DataError("the data has no rows.")
    columns = {name: _column(name, kinds[name], rows, *cells[name]) for name in kinds}
    return Look(columns, rows, source.notes, cells)


def _fetched(frame: Frame, kinds: dict[str, Kind]) -> tuple[int, dict[str, tuple[npt.NDArray[Any], BoolArray]]]:
    """Return the values of every column as an array, with a mask of missing values."""
    rows, cells = 0, dict[str, tuple[npt.NDArray[Any], BoolArray]]()
    for first in range(0, len(kinds), _COLUMNS_AT_ONCE):
        part = dict(list(kinds.items())[first : first + _COLUMNS_AT_ONCE])
        names = [name for name, kind in part.items() if kind != "other"]
        rows, found = _fetched_part(_only(frame, names) if names and len(part) < len(kinds) else frame, part)
        cells |= found
    return rows, cells


def _only(frame: Frame, names: Sequence[str]) -> Frame:
    """Return some columns; for DuckDB by SQL, because expressions slow down with the number of columns."""
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_duckdb():
        part: Frame = nw.from_native(frame.to_native().project(", ".join(map(identifier, names))))
        return part
    return frame.select(*names)


def _fetched_part(frame: Frame, kinds: Mapping[str, Kind]) -> tuple[int, dict[str, tuple[npt.NDArray[Any], BoolArray]]]:
    plain = {f"column{i}": (name, kind) for i, (name, kind) in enumerate(kinds.items())}
    selected = frame.select(
        rows=nw.lit(1), **{key: plain_value(name, kind) for key, (name, kind) in plain.items() if kind != "other"}
    )
    if isinstance(selected, nw.LazyFrame) and selected.implementation.is_duckdb():
        fetched = {
            key: (np.ma.getdata(v), np.ma.getmaskarray(v)) for key, v in selected.to_native().fetchnumpy().items()
        }
    else:
        collected = selected.collect() if isinstance(selected, nw.LazyFrame) else selected
        fetched = {key: _array(collected.get_column(key)) for key in collected.columns}
    rows = len(fetched["rows"][0])
    no_values = np.zeros(0, dtype=object), np.ones(rows, dtype=np.bool_)
    return rows, {
        name: no_values if kind == "other" else (fetched[key][0], _absent(*fetched[key], kind))
        for key, (name, kind) in plain.items()
    }


def _array(column: nw.Series[Any]) -> tuple[npt.NDArray[Any], BoolArray]:
    absent = column.is_null().to_numpy()
    return np.asarray(column.to_numpy()), np.asarray(absent, dtype=np.bool_)


def _absent(values: npt.NDArray[Any], absent: BoolArray, kind: Kind) -> BoolArray:
    if kind == "real":
        return absent | np.isnan(np.where(absent, np.nan, values).astype(np.float64))
    if kind == "text":
        return absent | np.array([isinstance(v, str) and not v.strip(BLANKS) for v in values.tolist()], dtype=np.bool_)
    return absent


def _codes(values: npt.NDArray[Any], absent: BoolArray) -> IntArray:
    """Return an integer code for each value, with -1 for missing values."""
    codes = np.full(len(absent), -1, dtype=np.int64)
    present = values[~absent]
    codes[~absent] = np.unique(present.astype(str) if present.dtype == object else present, return_inverse=True)[1]
    return codes


def _column(name: str, kind: Kind, rows: int, values: npt.NDArray[Any], absent: BoolArray) -> ColumnProfile:
    if kind == "other":
        return ColumnProfile(name=name, kind=kind, rows=rows)
    present = values[~absent]
    missing = rows - len(present)
    if kind == "text" or not len(present):
        return _text(name, kind, rows, missing, Counter(present.tolist()))
    if present.dtype == object and kind != "boolean":
        present = present.astype(np.float64) if kind in NUMBERS else present.astype(str)
    distinct, counts = np.unique(present.astype(np.bool_) if kind == "boolean" else present, return_counts=True)
    low, high = (float(distinct[0]), float(distinct[-1])) if kind in NUMBERS else (None, None)
    top = distinct[np.argsort(-counts, kind="stable")].tolist() if len(distinct) <= _MOST_VALUES else []
    if kind == "whole":
        top = [int(value) for value in top]
    return ColumnProfile(
        name=name,
        kind=kind,
        rows=rows,
        missing=missing,
        distinct=len(distinct),
        low=low,
        high=high,
        values=tuple(top),
    )


def _text(name: str, kind: Kind, rows: int, missing: int, counts: Counter[str]) -> ColumnProfile:
    top = sorted(counts, key=lambda value: (-counts[value], value)) if len(counts) <= _MOST_VALUES else []
    commas, missing_words, percents = _odd_numbers(counts)
    return ColumnProfile(
        name=name,
        kind=kind,
        rows=rows,
        missing=missing,
        distinct=len(counts),
        values=tuple(top),
        decimal_commas=commas,
        missing_words=missing_words,
        percent_signs=percents,
    )


def _odd_numbers(texts: Collection[str]) -> tuple[bool, tuple[str, ...], bool]:
    """Return whether text is numbers with decimal commas, its missing-value words, and whether it is percent."""
    odd = [text for text in texts if not _NUMBER.fullmatch(text)]
    words = tuple(sorted(text for text in odd if text.strip(BLANKS).casefold() in MISSING_WORDS))
    commas, percents = (sum(bool(form.fullmatch(text)) for text in odd) for form in (COMMA_NUMBER, PERCENT))
    others = len(odd) - len(words)
    if len(texts) > len(words) and commas == others:
        return commas > 0, words, percents > 0 and percents == others
    return False, (), percents > 0 and percents == others


def words(name: str) -> list[str]:
    """Split a column name into lower-case words without accents.

    Examples
    --------
    >>> words("riskScore_XGB"), words("Âge du client")
    (['risk', 'score', 'xgb'], ['age', 'du', 'client'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("ß", "ss"))
    plain = unicodedata.normalize("NFKD", spaced).encode("ascii", "ignore").decode()
    return [word for word in re.split(r"[^a-z0-9]+", plain.lower()) if word]
