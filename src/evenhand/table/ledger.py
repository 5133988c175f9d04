"""A hash of all data read from a table, independent of row order, engine and order of reads.

Cells are hashed directly, since they have a canonical order. Rows are sorted by a 64-bit mix of all their values. Text
is represented by its rank among the distinct texts, and by the distinct texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import thread_count
from evenhand.table.cells import Cells, ColumnSum
from evenhand.table.coding import Coded
from evenhand.table.keys import Kind, is_absent, label_of
from evenhand.table.rows import DerivedRows

if TYPE_CHECKING:
    from evenhand.table.table import Table

Column: TypeAlias = Coded | npt.NDArray[Any]
_LARGE = 2.0**54
_MIXED = 2**14  # rows mixed at once; they fit into a processor's cache


class Ledger:
    """Digests of all data read from a table; repeated reads do not change them.

    Examples
    --------
    >>> first, second = Ledger(), Ledger()
    >>> first.add_rows("rows", {"income": np.array([3.0, 5.0]), "year": np.array([1, 2])})
    >>> second.add_rows("rows", {"year": np.array([2, 1]), "income": np.array([5.0, 3.0])})
    >>> first.digest() == second.digest()
    True
    >>> second.add_rows("rows", {"income": np.array([9.0, 15.0])})
    >>> first.digest() == second.digest()
    False
    """

    def __init__(self) -> None:
        self._entries: set[str] = set()

    def add(self, kind: str, names: Iterable[str], digest: str) -> None:
        """Record a read: its kind, its columns, and the digest of its result."""
        self._entries.add(json.dumps([kind, sorted(names), digest]))

    def add_rows(
        self, kind: str, columns: Mapping[str, Column], groups: Cells | None = None, weight: FloatArray | None = None
    ) -> None:
        """Record columns read by row, with the groups and survey weights of the rows."""
        named: dict[str, Column] = {f"column {name}": column for name, column in columns.items()}
        if groups is not None:
            named |= {f"group {name}": Coded(codes, groups.labels[name]) for name, codes in groups.codes.items()}
        if weight is not None:
            named["weight"] = weight
        self.add(kind, named, rows_digest(named))

    def digest(self) -> str:
        """Return a single SHA-256 of all reads."""
        return hashlib.sha256("\n".join(sorted(self._entries)).encode()).hexdigest()


def rows_digest(columns: Mapping[str, Column]) -> str:
    """Return the SHA-256 of rows, independent of row order and column order.

    Examples
    --------
    >>> rows = {"a": np.array([0.0, 1.0, np.nan]), "b": Coded(np.array([1, 0, -1]), ("no", "yes"))}
    >>> shuffled = {"b": Coded(np.array([-1, 1, 0]), ("no", "yes")), "a": np.array([np.nan, -0.0, 1.0])}
    >>> rows_digest(rows) == rows_digest(shuffled)
    True
    """
    parts = [(name, *_canonical(columns[name])) for name in sorted(columns)]
    digest = hashlib.sha256(json.dumps([(name, texts) for name, texts, _ in parts]).encode())
    if parts:
        bits = [column for _, _, column in parts]
        mixed = _mix(bits)
        first_bits = (mixed >> np.uint64(61)).astype(np.uint8)
        with ThreadPoolExecutor(thread_count(None)) as threads:  # sorts rows while others are hashed
            order = list(threads.map(lambda part: _sorted_by(mixed, np.flatnonzero(first_bits == part)), range(8)))
            for column in bits:
                for ordered in threads.map(column.take, order):
                    digest.update(ordered.astype("<u8", copy=False).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Bits:
    """The 64 bits of each row's value in a column, stored directly or as codes into distinct numbers."""

    numbers: npt.NDArray[np.uint64]
    codes: IntArray | None = None

    def __len__(self) -> int:
        return len(self.numbers if self.codes is None else self.codes)

    def take(self, rows: IntArray) -> npt.NDArray[np.uint64]:
        """Return the bits of some rows; NumPy's `take` is twice as fast as indexing."""
        return self.numbers.take(rows if self.codes is None else self.codes.take(rows))

    def between(self, start: int, end: int) -> npt.NDArray[np.uint64]:
        """Return the bits of consecutive rows."""
        return self.numbers[start:end] if self.codes is None else self.numbers.take(self.codes[start:end])


def _canonical(column: Column) -> tuple[list[str] | None, _Bits]:
    """Return a column's distinct texts with each row's rank; for numbers, None and the numbers.

    Numbers are floats, with one zero and one not-a-number.
    """
    if not isinstance(column, Coded):
        return None, _Bits(_one_zero(np.asarray(column, dtype=np.float64)).view(np.uint64))
    if not column.values or isinstance(column.values[0], str | bool | np.bool_):
        used = np.bincount(column.codes + 1, minlength=len(column.values) + 1)[1:] > 0
        ranks = column.codes if used.all() else np.append(np.cumsum(used) - 1, -1)[column.codes]
        texts = [value for value, is_used in zip(column.values, used.tolist(), strict=True) if is_used]
        return [text if isinstance(text, str) else label_of(text) for text in texts], _Bits(ranks.view(np.uint64))
    numbers = _one_zero(np.append(np.array(column.values, dtype=np.float64), np.nan))
    return None, _Bits(numbers.view(np.uint64), column.codes)


def _one_zero(numbers: FloatArray) -> FloatArray:
    """Return numbers with a single representation of zero and of nan."""
    numbers = numbers + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers


def _mix(columns: list[_Bits]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit mix of each row, so that sorting by it brings equal rows together."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for start in range(0, mixed.size, _MIXED):
        part = mixed[start : start + _MIXED]
        for bits in columns:
            part ^= bits.between(start, start + _MIXED)
            for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
                part ^= part >> np.uint64(shift)
                part *= np.uint64(factor)
            part ^= part >> np.uint64(32)
    return mixed


def _sorted_by(mixed: npt.NDArray[np.uint64], rows: IntArray) -> IntArray:
    """Return some rows sorted by their mix."""
    return rows.take(np.argsort(mixed.take(rows)))


def checksum(table: Table, columns: Mapping[str, Kind]) -> Cells:
    """Return sums by group of a mix of each row's numbers, computed in the engine.

    It is used if there are too many rows to fetch. The mix of numbers ``x`` is ``h = frac((h + 997.13 y) 12345.6789)``,
    once for the size of ``x`` and once for its fraction as ``y``. Engines agree on each of these operations to the last
    bit, and on the sums (see `cells`).
    """
    mixed = nw.col("evenhand:mixed")
    stages: list[Mapping[str, nw.Expr] | nw.Expr] = [{"evenhand:mixed": nw.lit(0.5)}]
    for name, kind in columns.items():
        number = nw.col(name).cast(nw.Float64).clip(-_LARGE, _LARGE)
        absent = is_absent(name, kind, portable=table.source.portable_sql)
        stages.append({"evenhand:number": nw.when(absent).then(nw.lit(-0.25)).otherwise(number)})
        value = nw.col("evenhand:number")
        for part in (value / _LARGE, value - value.floor()):
            stages += [{"evenhand:mixed": (mixed + part * 997.13) * 12_345.6789}]
            stages += [{"evenhand:mixed": mixed - mixed.floor()}]
    return DerivedRows(table, stages).cells([], [ColumnSum("mixed", mixed)])
