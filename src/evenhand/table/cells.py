"""Cells: the table reduced to counts and sums by a group-by in the data's engine.

Engines add floating-point numbers in a different order in every run. So every sum is computed from integers: a value
``v`` with ``|v| <= 2**e`` is split into two 32-bit limbs, ``floor(v * 2**(32 - e))`` and the next 32 bits of the
remainder. Scaling by a power of two and taking the fraction are exact, so the sums are exact to 2**(e - 64) per row,
and bit-identical on every engine and any number of threads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2, prod
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.errors import DataError
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.engines import MAX_CELLS, remote_engine_name
from evenhand.table.keys import BLANKS, Key, as_number, column_key, sort_key
from evenhand.table.roles import MISSING, TIMES, Prediction
from evenhand.table.sources import Frame, engine_errors, fetch

_LIMB = 2.0**32


class TooManyCellsError(DataError):
    """The keys have more combinations than the reduction may return."""


@dataclass(frozen=True)
class ColumnSum:
    """A row value to sum: its name, expression, and an exponent with ``|value| <= 2**exponent``.

    If the value is a product, `factors` names the two sums with its factors.
    """

    name: str
    expression: nw.Expr
    exponent: int = 0
    factors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cells:
    """Counts and sums by every observed combination of keys, in canonical order.

    Parameters
    ----------
    codes : for each key, the code of every cell.
    labels : for each key, the text of every code, in order; the last is "(missing)" if values are missing.
    n : the number of rows in each cell.
    sums : the sums over each cell's rows, by name.
    values : for each key, a mapping from the data's values to their codes.
    """

    codes: dict[str, IntArray]
    labels: dict[str, tuple[str, ...]]
    n: IntArray
    sums: dict[str, FloatArray] = field(default_factory=dict)
    values: dict[str, dict[Any, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows in all cells."""
        return int(self.n.sum())

    def missing_code(self, name: str) -> int:
        """Return the code of missing values of a key: the number of its other labels."""
        labels = self.labels[name]
        return len(labels) - (labels[-1:] == (MISSING,))

    def where(self, keep: BoolArray | IntArray) -> Cells:
        """Return the cells at the positions, or where the boolean mask is True."""
        cells = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep
        return Cells(
            {name: codes.take(cells) for name, codes in self.codes.items()},
            self.labels,
            self.n.take(cells),
            {name: values.take(cells) for name, values in self.sums.items()},
            self.values,
        )

    def joint(self, columns: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
        """Return the codes and labels of a grouping by one or several keys.

        A cell with a missing value belongs to the group "(missing)", which comes last.
        """
        names = [column_key(column) for column in columns]
        parts = np.column_stack([self.codes[name] for name in names])
        absent = np.column_stack([_is_missing(self.codes[name], self.labels[name]) for name in names]).any(1)
        some_absent = bool(absent.any())
        observed, codes = _combinations(
            parts[~absent] if some_absent else parts, [len(self.labels[name]) for name in names]
        )
        labels = tuple(
            TIMES.join(self.labels[name][code] for name, code in zip(names, row, strict=True)) for row in observed
        )
        if not some_absent:
            return codes, labels
        out = np.full(len(self.n), len(labels), dtype=np.int64)
        out[~absent] = codes
        return out, (*labels, MISSING)

    def counts_by(self, names: Iterable[str]) -> Cells:
        """Return the counts by a subset of the keys."""
        keys = list(names)
        parts = np.column_stack([self.codes[name] for name in keys]) if keys else np.zeros((len(self.n), 0), np.int64)
        observed, cell = _combinations(parts, [len(self.labels[name]) for name in keys])
        n = np.zeros(len(observed), dtype=np.int64)
        np.add.at(n, cell, self.n)
        codes = {name: observed[:, position] for position, name in enumerate(keys)}
        return Cells(codes, {name: self.labels[name] for name in keys}, n)

    def digest(self) -> str:
        """Return the SHA-256 of the cells' contents, equal for equal data on every engine."""
        arrays: dict[str, Any] = {f"codes {name}": codes for name, codes in self.codes.items()} | {"n": self.n}
        arrays |= {f"sums {name}": values + 0.0 for name, values in self.sums.items()}
        head = json.dumps([sorted(arrays), len(self.n), sorted(self.labels.items())])
        digest = hashlib.sha256(head.encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).view(np.uint64).astype("<u8", copy=False).data)
        return digest.hexdigest()


def reduce(frame: Frame, keys: Sequence[Key], summands: Sequence[ColumnSum] = (), most: int | None = None) -> Cells:
    """Count and sum the rows of every combination of keys, in the frame's engine.

    More combinations than `most` (for a remote engine by default 1,000,000) raise a `TooManyCellsError` without
    being fetched.

    Examples
    --------
    >>> from evenhand.table.sources import open_source
    >>> frame = open_source({"g": ["b", "a", "b"], "s": [0.5, 0.25, 0.125]}).frame
    >>> cells = reduce(frame, [Key("g", nw.col("g"))], [ColumnSum("score", nw.col("s"))])
    >>> cells.labels["g"], cells.n.tolist(), cells.sums["score"].tolist()
    (('a', 'b'), [1, 2], [0.25, 0.625])
    """
    most = MAX_CELLS if most is None and remote_engine_name(frame) is not None else most
    key_names = [f"key{position}" for position in range(len(keys))]
    parts: dict[str, nw.Expr] = {}
    with engine_errors():
        frame, summed = _with_summands(frame, summands)
        for position, summand in enumerate(summed):
            parts[f"high{position}"], parts[f"low{position}"] = _limbs(summand)
        counted = _grouped(frame, keys, key_names, parts) if keys else _one_cell(frame, parts)
        raw = fetch(counted if most is None else counted.head(most + 1))
    if most is not None and len(raw["n"]) > most:
        raise TooManyCellsError(f"the groups, outcomes and predictions make more than {most:,} combinations.")
    return _canonical(keys, [raw[name] for name in key_names], raw, summands)


def _with_summands(frame: Frame, summands: Sequence[ColumnSum]) -> tuple[Frame, Sequence[ColumnSum]]:
    """Compute each summand once if the frame is in memory; engines reuse common expressions by themselves."""
    if not isinstance(frame, nw.DataFrame) or not summands:
        return frame, summands
    mark = _unused_prefix(frame.columns)
    simple = {summand.name for summand in summands if not summand.factors}
    for of_factors in (False, True):
        values = {
            f"{mark}{summand.name}": nw.col(f"{mark}{summand.factors[0]}") * nw.col(f"{mark}{summand.factors[1]}")
            if of_factors
            else summand.expression
            for summand in summands
            if (bool(summand.factors) and simple.issuperset(summand.factors)) == of_factors
        }
        frame = frame.with_columns(**values)
    return frame, [replace(summand, expression=nw.col(f"{mark}{summand.name}")) for summand in summands]


def _one_cell(frame: Frame, parts: Mapping[str, nw.Expr]) -> Frame:
    return frame.select(n=nw.len(), **{name: part.sum() for name, part in parts.items()})


def _grouped(frame: Frame, keys: Sequence[Key], key_names: Sequence[str], parts: Mapping[str, nw.Expr]) -> Frame:
    """Count by columns with few values first, then by the keys computed from those values.

    Text is then trimmed, folded and compared once per distinct value instead of once per row.
    """
    columns = list(dict.fromkeys(filter(None, (key.column for key in keys))))
    mark = _unused_prefix(columns)
    named_keys = list(zip(key_names, keys, strict=True))
    computed = {f"{mark}{name}": key.expression for name, key in named_keys if key.column is None}
    summands = {f"{mark}{name}": part for name, part in parts.items()}
    counts = _counted(frame, columns, mark, computed, summands)
    final_keys = {name: nw.col(f"{mark}{name}") if key.column is None else key.expression for name, key in named_keys}
    sums = {name: nw.col(f"{mark}{name}") for name in ["n", *parts]}
    counted: Frame = counts.select(**final_keys, **sums).group_by(*key_names).agg(nw.col(name).sum() for name in sums)
    return counted


def _counted(
    frame: Frame, columns: Sequence[str], mark: str, computed: Mapping[str, nw.Expr], summands: Mapping[str, nw.Expr]
) -> Frame:
    """Count and sum by unmodified columns, and by keys computed for every row."""
    # DuckDB reads the name of a group-by column as SQL: a dot, a quote or a blank in it needs an alias.
    aliased = not all(column.isidentifier() for column in columns)
    renamed = {f"{mark}column{position}" if aliased else column: column for position, column in enumerate(columns)}
    if aliased or computed or summands:  # otherwise a select would only cost the engine time
        frame = frame.select(**{name: nw.col(column) for name, column in renamed.items()}, **computed, **summands)
    counts = [nw.len().alias(f"{mark}n"), *(nw.col(name).sum() for name in summands)]
    counted: Frame = frame.group_by(*renamed, *computed).agg(*counts)
    return counted.rename(renamed) if aliased else counted


def _unused_prefix(columns: Sequence[str]) -> str:
    """Return a prefix for temporary columns that is not used by the data's columns."""
    prefix = "evenhand:"
    while any(column.startswith(prefix) for column in columns):
        prefix += ":"
    return prefix


def _limbs(summand: ColumnSum) -> tuple[nw.Expr, nw.Expr]:
    scaled = summand.expression.cast(nw.Float64) * 2.0 ** (32 - summand.exponent)
    high = scaled.floor()
    return high.cast(nw.Int64), ((scaled - high) * _LIMB).floor().cast(nw.Int64)


def _canonical(
    keys: Sequence[Key], raw_keys: list[list[Any]], raw: Mapping[str, list[Any]], summands: Sequence[ColumnSum]
) -> Cells:
    labels: dict[str, tuple[str, ...]] = {}
    codes: dict[str, IntArray] = {}
    distinct: dict[str, dict[Any, int]] = {}
    for key, values in zip(keys, raw_keys, strict=True):
        codes[key.name], labels[key.name], distinct[key.name] = _code_values(values, key)
    order = np.lexsort(tuple(codes[key.name] for key in reversed(keys))) if keys else np.arange(len(raw["n"]))
    ordered = {name: values[order] for name, values in codes.items()}
    starts = _starts(ordered, len(order))
    sums = {}
    for position, summand in enumerate(summands):
        divisor = 2 ** (64 - summand.exponent)
        pairs = zip(raw[f"high{position}"], raw[f"low{position}"], strict=True)
        # Python adds and divides integers of any size with one correct rounding.
        exact = np.array([(int(h) << 32) + int(low) for h, low in pairs], dtype=object)[order]
        sums[summand.name] = np.array([total / divisor for total in np.add.reduceat(exact, starts)])
    counts = np.add.reduceat(np.array([int(value) for value in raw["n"]], dtype=np.int64)[order], starts)
    return Cells({name: values[starts] for name, values in ordered.items()}, labels, counts, sums, distinct)


def _starts(codes: Mapping[str, IntArray], rows: int) -> IntArray:
    """Return the index of each cell's first row among sorted rows."""
    new = np.arange(rows) == 0
    for values in codes.values():
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)


def _code_values(values: list[Any], key: Key) -> tuple[IntArray, tuple[str, ...], dict[Any, int]]:
    """Return a code for each value, the sorted labels with missing last, and each distinct value's code."""
    if key.labels is not None:  # NO_RANGE is missing
        labels, position = key.labels, {code: code for code in range(len(key.labels))}
    else:
        labels_by_value = {value: key.label(value) for value in sorted(set(values) - {None}, key=_trimmed)}
        labels = tuple(dict.fromkeys(label for label in labels_by_value.values() if label != MISSING))
        code = {label: index for index, label in enumerate((*labels, MISSING))}
        position = {value: code[label] for value, label in labels_by_value.items()}
    codes = np.array([position.get(value, len(labels)) for value in values], dtype=np.int64)
    return codes, labels + ((MISSING,) if (codes == len(labels)).any() else ()), position


def _trimmed(value: object) -> tuple[int, float | str, str]:
    return *sort_key(value.strip(BLANKS) if isinstance(value, str) else value), str(value)


def _combinations(parts: IntArray, sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return the sorted distinct rows of codes and each row's index in them, in O(n) if few are possible."""
    possible = prod(sizes)
    if not sizes or not 0 < possible <= 4 * len(parts):
        observed, inverse = np.unique(parts, axis=0, return_inverse=True)
        return observed, inverse.reshape(-1)
    index = np.ravel_multi_index(tuple(parts.T), tuple(sizes))
    seen = np.bincount(index, minlength=possible) > 0
    observed = np.column_stack(np.unravel_index(np.flatnonzero(seen), tuple(sizes)))
    return observed, index if seen.all() else (np.cumsum(seen) - 1).take(index)


def _is_missing(codes: IntArray, labels: tuple[str, ...]) -> BoolArray:
    return np.equal(codes, len(labels) - 1 if labels and labels[-1] == MISSING else -1)


# Sums: survey weight, score, squared error, and their products ----------------------------------------------


def exponent_for(bound: float) -> int:
    """Return the smallest ``e`` with ``bound <= 2**e``."""
    return ceil(log2(bound))


def weight_sums(column: str, exponent: int) -> list[ColumnSum]:
    """Return the sums of the survey weight and of its square."""
    weight = nw.col(column).cast(nw.Float64)
    return [ColumnSum("w", weight, exponent), ColumnSum("ww", weight * weight, 2 * exponent)]


def score_sums(
    prediction: Prediction, positive: nw.Expr | None, weight: str | None, weight_exponent: int
) -> list[ColumnSum]:
    """Return the sums of score `s` and squared error `l`, times the survey weight, and of their products.

    Products are named by their factors: `ss`, `sl`, `ll`, and with weights `ws`, `wl`.
    """
    score = nw.col(prediction.column).cast(nw.Float64)
    size = exponent_for(max(abs(bound) for bound in prediction.range))
    values = {"s": (score, size)}
    if positive is not None:
        error = score - as_number(positive).cast(nw.Float64)
        values["l"] = (error * error, 2 * (max(size, 0) + 1))
    if weight is not None:
        factor = nw.col(weight).cast(nw.Float64)
        values = {name: (value * factor, e + weight_exponent) for name, (value, e) in values.items()}
        values = {"w": (factor, weight_exponent), **values}
    summands = [ColumnSum(name, value, e) for name, (value, e) in values.items() if name != "w"]
    names = list(values)
    for position, a in enumerate(names):
        for b in names[position:]:
            if a + b != "ww":  # in `weight_sums`
                product = values[a][0] * values[b][0]
                summands.append(ColumnSum(a + b, product, values[a][1] + values[b][1], (a, b)))
    return summands
