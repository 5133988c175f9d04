"""Convert columns to types supported by every engine: text, numbers, booleans, dates and zoneless times.

Columns of other types are left unchanged, and rejected if they have a role.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import date, time
from decimal import Decimal
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from evenhand.table.engines import Frame, remote_engine_name
from evenhand.table.keys import ZONE, Kind, kind_of, label_of, plain_value, unusable

NOT_PLAIN = {list, tuple, dict, set, np.ndarray, bytes, bytearray, complex, time}
"""Python types that are not allowed in columns."""


def plain_columns(frame: Frame, wanted: Collection[str] | None, missing: Sequence[str]) -> Frame:
    """Return the wanted columns, or all, in types of every engine; `missing` are words for missing values.

    Examples
    --------
    >>> frame = nw.from_dict({"g": ["a", "-"], "other": [1, 2]}, backend="polars")
    >>> plain_columns(frame, ["g"], ["-"]).to_dict(as_series=False)
    {'g': ['a', None]}
    """
    frame = frame if wanted is None else _only(frame, wanted)
    words = list(filter(None, missing))
    frame = _with_zones_as_text(frame) if isinstance(frame, nw.LazyFrame) else frame
    schema = {name: dtype for name, dtype in frame.collect_schema().items() if not unusable(name)}
    changes = [_plain(frame, name, dtype, words) for name, dtype in schema.items()]
    needed = [change for change in changes if change is not None]
    frame = frame.with_columns(*needed) if needed else frame
    return _without_words(frame, list(schema), words) if words else frame


def _only(frame: Frame, wanted: Collection[str]) -> Frame:
    """Return the wanted columns; if there are none, the first column, for counting rows."""
    names = [name for name in frame.collect_schema().names() if not unusable(name)]
    chosen = [name for name in names if name in wanted] or names[:1]
    return frame.select(*chosen) if chosen else frame


def _has_zone(dtype: DType) -> bool:
    return isinstance(dtype, nw.Datetime) and dtype.time_zone is not None


def _with_zones_as_text(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Convert times with a zone to UTC text; a database would use the zone of the session."""
    zoned = [name for name, dtype in frame.collect_schema().items() if _has_zone(dtype) and not unusable(name)]
    if not zoned or frame.implementation.is_polars():
        return frame
    native = frame.to_native()
    if frame.implementation.is_ibis():
        converted = native.mutate(**{name: _utc_in_ibis(native[name]) for name in zoned})
    elif frame.implementation.is_duckdb():
        import duckdb

        column = duckdb.ColumnExpression
        converted = native.select(*[_utc_in_duckdb(name) if name in zoned else column(name) for name in native.columns])
    else:
        converted = native.withColumns({name: _utc_in_spark(name) for name in zoned})
    plain: nw.LazyFrame[Any] = nw.from_native(converted)
    return plain


def _utc_in_spark(name: str) -> Any:
    since_1970 = f"make_dt_interval(0, 0, 0, unix_seconds(`{name.replace('`', '``')}`))"
    moment = f"cast(timestamp_ntz'1970-01-01 00:00:00' + {since_1970} as string)"
    return import_module("pyspark.sql.functions").expr(f"concat({moment}, '{ZONE}')")


def _utc_in_ibis(column: Any) -> Any:
    moment = import_module("ibis").timestamp("1970-01-01 00:00:00") + column.epoch_seconds().as_interval("s")
    return moment.strftime("%Y-%m-%d %H:%M:%S") + ZONE


def _utc_in_duckdb(name: str) -> Any:
    from duckdb import ColumnExpression, ConstantExpression, FunctionExpression

    moment = FunctionExpression("make_timestamp", FunctionExpression("epoch_us", ColumnExpression(name)))
    return FunctionExpression("strftime", moment, ConstantExpression(f"%Y-%m-%d %H:%M:%S{ZONE}")).alias(name)


def _plain(frame: Frame, name: str, dtype: DType, words: Sequence[str]) -> nw.Expr | nw.Series[Any] | None:
    """Return a column in a type of every engine; None if it has such a type or cannot be converted."""
    column = nw.col(name)
    if isinstance(frame, nw.DataFrame):
        typed = _plain_in_memory(frame.get_column(name), words)
        if typed is not None:
            return typed
    if dtype in (nw.Int128, nw.UInt128):
        # Engines return sums in these types. A column in memory that needs them is kept.
        fits = isinstance(frame, nw.LazyFrame) or _fits(frame.get_column(name))
        return column.cast(nw.Int64) if fits else None
    if _has_zone(dtype):
        return nw.concat_str(
            column.dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%d %H:%M:%S").str.slice(0, 19), nw.lit(ZONE)
        ).alias(name)
    if dtype.is_decimal():
        # Via text, because engines round decimals to floats differently.
        return column.cast(nw.String).cast(nw.Float64)
    return column.cast(nw.String) if dtype == nw.Unknown and _is_text_in_engine(frame, name) else None


def _is_text_in_engine(frame: Frame, name: str) -> bool:
    """Return whether a column with a type unknown to narwhals has plain values convertible to text."""
    if remote_engine_name(frame) is not None:
        return True
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        return str(native.types[native.columns.index(name)]) in ("UUID", "JSON", "BIT", '"NULL"')
    return frame.implementation.is_polars() and str(native.collect_schema()[name]) == "Null"


def _plain_in_memory(column: nw.Series[Any], words: Sequence[str]) -> nw.Series[Any] | None:
    native = column.to_native()
    typed = native
    if column.implementation.is_pyarrow():
        typed = _plain_arrow(native)
    elif column.implementation.is_pandas_like():
        typed = _plain_pandas(native, column.dtype, words)
    if typed is native:
        return None
    plain: nw.Series[Any] = nw.from_native(typed, series_only=True, allow_series=True)
    return plain.alias(column.name)


def _plain_pandas(native: Any, dtype: DType, words: Sequence[str]) -> Any:
    kind = native.dtype
    if hasattr(kind, "pyarrow_dtype"):
        return _plain_arrow_in_pandas(native, dtype)
    if "Sparse" in str(kind):
        return native.sparse.to_dense()
    if hasattr(kind, "categories") and (kind.categories is None or kind.categories.dtype.kind not in "biufM"):
        return native
    objects = dtype in (nw.Object, nw.Categorical, nw.Enum) or (dtype == nw.Unknown and not hasattr(kind, "tz"))
    typed = _typed_objects(native, words) if objects else native
    if hasattr(typed.dtype, "tz"):  # here, because narwhals does not support the names of all zones
        return typed.dt.tz_convert("UTC").dt.strftime(f"%Y-%m-%d %H:%M:%S{ZONE}")
    return typed


def _plain_arrow_in_pandas(native: Any, dtype: DType) -> Any:
    values = native.array.__arrow_array__()
    typed = _plain_arrow(values, decode=True)
    if typed is not values:
        return type(native)(type(native.array)(typed), index=native.index)
    if dtype in (nw.Int64, nw.UInt64) and is_long(nw.from_native(native, series_only=True)):
        return native.astype(str(dtype))  # Arrow does not convert such numbers to fractions
    return native


def _plain_arrow(values: Any, *, decode: bool = False) -> Any:
    """Return an Arrow column in a type supported by Arrow's functions, or unchanged if not necessary or possible."""
    pa = import_module("pyarrow")
    kind, types = values.type, pa.types
    if types.is_run_end_encoded(kind):
        if types.is_dictionary(kind.value_type):
            return values  # Arrow does not decode these
        return _plain_arrow(import_module("pyarrow.compute").run_end_decode(values), decode=decode)
    if types.is_dictionary(kind) and (decode or "string" not in str(kind.value_type)):
        return _plain_arrow(values.cast(kind.value_type))
    if types.is_decimal(kind):
        return values.cast(pa.string()).cast(pa.float64())
    if types.is_float16(kind):
        return values.cast(pa.float32())
    if types.is_date64(kind):
        return values.cast(pa.date32())
    return values.cast(pa.large_string()) if str(kind) in ("string_view", "null") else values


def _fits(column: nw.Series[Any]) -> bool:
    """Return whether integers fit into 64 bits."""
    return bool(column.is_null().all()) or (int(column.min()) >= -(2**63) and int(column.max()) < 2**63)


def is_long(column: nw.Series[Any]) -> bool:
    """Return whether a column has integers beyond 2**53, which floats cannot all represent."""
    if column.dtype not in (nw.Int64, nw.UInt64) or column.is_null().all():
        return False
    return max(-int(column.min()), int(column.max())) > 2**53


def _typed_objects(native: Any, words: Sequence[str]) -> Any:
    """Return a pandas column of Python objects in a single type; mixed types become text."""
    column = native.astype(object)
    column = column.where(column.notna() & ~column.isin(words), None).infer_objects()
    if column.dtype == object:
        with suppress(OverflowError):  # pandas before 3, for integers beyond 64 bits
            column = column.convert_dtypes()
    if column.dtype.kind != "O" or column.dtype.type is str:
        return column
    column = column.astype(object)  # intervals and periods
    kinds = {type(value) for value in column.dropna()}
    if kinds <= {Decimal, int, float} and kinds != {int}:
        return column.astype("float64")
    if kinds == {date}:
        return column.astype("datetime64[us]")
    too_long = kinds == {int}  # otherwise pandas would have inferred a type
    return native if too_long or kinds & NOT_PLAIN else column.map(label_of, na_action="ignore")


def _without_words(frame: Frame, names: Sequence[str], words: Sequence[str]) -> Frame:
    """Return the columns with words for missing values, and equivalent values, made missing."""
    schema = frame.collect_schema()
    changes = []
    for name in names:
        kind = kind_of(schema[name])
        # Booleans become text, because pandas has no plain booleans with missing values.
        value = nw.col(name).cast(nw.String) if kind in ("text", "boolean") else nw.col(name)
        absent = _is_word(name, kind, words)
        if absent is not None:
            changes.append(nw.when(~absent).then(value).alias(name))
    return frame.with_columns(*changes) if changes else frame


def _is_word(name: str, kind: Kind, words: Sequence[str]) -> nw.Expr | None:
    """Return a test for values equal to one of the words; None if there are none in a column of this kind."""
    meant, value = _MEANT[kind](words) if kind in _MEANT else (), nw.col(name)
    if kind in ("date", "datetime"):
        value = plain_value(name, kind)
    elif kind == "text":
        value = value.cast(nw.String)
    return value.is_in(meant) if meant else None


def _numbers(words: Sequence[str]) -> Sequence[Any]:
    return [number for number in map(_number, words) if number is not None]


def _days(words: Sequence[str]) -> Sequence[Any]:
    return [word for word in words if word[:4].isdigit() and word[4:5] == "-"]


def _truths(words: Sequence[str]) -> Sequence[Any]:
    return [flag for flag in (True, False) if label_of(flag) in map(label_of, words)]


_MEANT: dict[Kind, Callable[[Sequence[str]], Sequence[Any]]] = {
    "text": lambda words: words,
    "whole": _numbers,
    "real": _numbers,
    "date": _days,
    "datetime": _days,
    "boolean": _truths,
}
"""Functions that convert missing-value words to values of a kind."""


def _number(word: str) -> float | None:
    with suppress(ValueError):
        return int(word) if word.lstrip("-").isdigit() else float(word)
    return None
