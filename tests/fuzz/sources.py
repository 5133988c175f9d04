"""One table through many sources: several files, late rows, odd names, types of pandas and Arrow, wide files.

The values are those that every source can hold, so that all of them give the same numbers, or all refuse.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import xlsxwriter
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import EvenhandError

from . import laws
from .audits import Target
from .settings import one
from .tables import Columns

MANY = 20_500
"""More rows than types are taken from at first."""

NAMES = (
    *("race ", " race", "ra\tce", "(race)", "count(*)", 'ra"ce', "ra'ce", "`race`", "a.b", "a,b", "a;b", "[race]"),
    *("{race}", "$race", "%race", "race=1", "a × b", "a+b", "#race", "race?", "ra\\ce", "race*", "select", "1", "0.5"),
    *("True", "é", "日本", "race\u00a0", "\u200brace", "race\u0301", "-race", "--race", "evenhand:n", "key0", "n"),
    *("outcome", "bin", "selected:m", "rowid", "null", "x" * 300, "^race", "race$", "<b>race</b>", "a\nb", "\x1b[31m"),
)
LABELS: tuple[tuple[Any, ...], ...] = (
    ("a", "b"),
    (0, 1),
    (1.5, -2.5),
    ("José", "Jose\u0301"),
    ("1", "2"),
    ("01", "1"),
    ("a ", "a"),
    ("TRUE", "no"),
    (12345678901234567, 12345678901234568),
)
LATE_LABELS = ("01", "+1", "1_000", "x", 0.25, 2**40, "g = 1", None, "0x10")
LATE_NUMBERS = (0.4, 0.6, 1e-9, 0.999999999999)


@dataclass(frozen=True)
class Spread:
    """A table, how it is written, and what two sources it goes through.

    `cuts` are the places where files begin, `wide` the number of further columns, and `odd` a column without a role.
    """

    columns: Columns
    names: dict[str, str]
    weighted: bool
    sources: tuple[str, str]
    cuts: tuple[int, ...]
    wide: int
    odd: str
    shape: str

    def __repr__(self) -> str:
        few = {
            name: column if len(column) < 99 else [*column[:6], "...", *column[-9:]] for name, column in self.named()
        }
        how = {name: getattr(self, name) for name in ("weighted", "sources", "cuts", "wide", "odd", "shape")}
        return f"{how}, rows={len(self.columns['g'])}, columns={few}"

    def named(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield the columns by their names in the data."""
        yield from ((self.names.get(name, name), column) for name, column in self.columns.items())


@st.composite
def spreads(draw: DrawFn, sources: Sequence[str] | None = None) -> Spread:
    """Draw a table of groups `g`, scores `s`, decisions `d` and weights `w`, whose last rows are of another kind."""
    rows = draw(st.integers(8, 30))
    labels = draw(st.sampled_from(LABELS))

    def column(values: Sequence[Any], late: Sequence[Any]) -> list[Any]:
        early = [values[byte % len(values)] for byte in draw(st.binary(min_size=rows, max_size=rows))]
        last = [late[byte % len(late)] for byte in draw(st.binary(min_size=4, max_size=4))] if draw(one(0, 1)) else []
        return [*values, *early], last  # type: ignore[return-value]

    drawn: dict[str, Any] = {
        "g": column(labels, LATE_LABELS),
        "s": column((0, 1), LATE_NUMBERS),
        "d": column((0, 1), (1, None)),
        "w": column((1, 2), LATE_NUMBERS),
    }
    many = draw(one(*[0] * 6, MANY))
    columns = {}
    for name, (early, last) in drawn.items():
        repeated = early * (many // len(early)) if many else early
        columns[name] = [*repeated, *(last or early[:4])][: len(repeated) + 4]
    size = min(map(len, columns.values()))
    columns = {name: [*values[: size - 4], *values[-4:]] for name, values in columns.items()}
    odd_names = draw(st.lists(st.sampled_from(NAMES), min_size=4, max_size=4, unique=True))
    names = dict(zip("gsdw", odd_names, strict=True)) if draw(one(0, 0, 1)) else {}
    return Spread(
        columns,
        names,
        draw(st.booleans()),
        tuple(draw(st.lists(st.sampled_from(sources or [*SOURCES]), min_size=2, max_size=2, unique=True))),  # type: ignore[arg-type]
        tuple(sorted({size - 4, draw(st.integers(1, size - 1))})),
        draw(one(*[0] * 8, 3_000)) if not many else 0,
        draw(one("", "", *ODD_ARROW)),
        draw(one(*[""] * 4, "blank", "dimension", "unnamed", "stray")),
    )


# Sources --------------------------------------------------------------------------------------------------------------

ODD_ARROW: dict[str, Callable[[int], Any]] = {
    "list": lambda rows: pa.array([[1]] * rows),
    "map": lambda rows: pa.array([[("a", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
    "struct": lambda rows: pa.array([{"a": 1}] * rows),
    "union": lambda rows: pa.UnionArray.from_sparse(pa.array([0] * rows, pa.int8()), [pa.array([1] * rows)]),
    "interval": lambda rows: pa.array([pa.MonthDayNano([1, 2, 3])] * rows),
    "list view": lambda rows: pa.array([[1]] * rows, pa.list_view(pa.int64())),
    "run-end": lambda rows: pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["x"])),
    "tensor": lambda rows: pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((rows, 2, 2))),
}


def _all(case: Spread) -> Columns:
    rows = len(case.columns["g"])
    return {**dict(case.named()), **{f"column {number}": [number % 7] * rows for number in range(case.wide)}}


def _objects(case: Spread) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in _all(case).items()})


def _arrow(case: Spread, encode: Callable[[Any], Any] = lambda array: array) -> pa.Table:
    columns = {name: encode(pa.array(column)) for name, column in _all(case).items()}
    odd = {"odd": ODD_ARROW[case.odd](len(case.columns["g"]))} if case.odd else {}
    return pa.table({**columns, **odd})


def _run_ends(array: pa.Array) -> Any:
    ends = pa.array(range(1, len(array) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, array)


def _chunked(case: Spread) -> pa.Table:
    table, first = _arrow(case), case.cuts[0]
    return pa.concat_tables([table.slice(0, first), table.slice(first)])


def _parts(case: Spread) -> Iterator[Columns]:
    edges = (0, *case.cuts, len(case.columns["g"]))
    for first, last in pairwise(edges):
        yield {name: column[first:last] for name, column in _all(case).items()}


def _csv(columns: Columns) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _json(columns: Columns, *, lines: bool = False) -> str:
    rows = [json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return "\n".join(rows) if lines else f"[{','.join(rows)}]"


def _write_parquet(columns: Columns, path: Path) -> None:
    pq.write_table(pa.table(columns), path)


def _write_text(write: Callable[[Columns], str], columns: Columns, path: Path) -> None:
    content = write(columns).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def _file(name: str, write: Callable[[Columns, Path], Any]) -> Callable[[Spread, Path], Any]:
    def make(case: Spread, folder: Path) -> Path:
        write(_all(case), folder / name)
        return folder / name

    return make


def _files(ending: str, write: Callable[[Columns, Path], Any]) -> Callable[[Spread, Path], Any]:
    def make(case: Spread, folder: Path) -> str:
        for number, part in enumerate(_parts(case)):
            write(part, folder / f"{number}.{ending}")
        return str(folder / f"*.{ending}")

    return make


def _workbook(case: Spread, folder: Path) -> Path:
    """Write a workbook: as it is, with empty cells beyond the table, or with a cell far from it."""
    path = folder / "people.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for position, (name, column) in enumerate(_all(case).items()):
            sheet.write_string(0, position, name)
            for row, value in enumerate(column, 1):
                if value is not None:
                    sheet.write(row, position, value) if not isinstance(value, str) else sheet.write_string(
                        row, position, value
                    )
        if case.shape == "blank":
            sheet.write_blank(3_000, 200, None, book.add_format({"bold": True}))
        elif case.shape == "stray":
            sheet.write(1_048_575, 16_383, "x")
    return path


SOURCES: dict[str, Callable[[Spread, Path], Any]] = {
    "mapping": lambda case, _: _all(case),
    "arrays": lambda case, _: {name: np.array(column, dtype=object) for name, column in _all(case).items()},
    "objects": lambda case, _: _objects(case),
    "pandas": lambda case, _: pd.DataFrame(_all(case)),
    "pandas nullable": lambda case, _: pd.DataFrame(_all(case)).convert_dtypes(),
    "pandas arrow": lambda case, _: pd.DataFrame(_all(case)).convert_dtypes(dtype_backend="pyarrow"),
    "pandas of arrow": lambda case, _: _arrow(case).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": lambda case, _: pd.DataFrame(_all(case)).astype({case.names.get("g", "g"): "category"}),
    "pandas sparse": lambda case, _: pd.DataFrame(_all(case)).astype({case.names.get("s", "s"): pd.SparseDtype(float)}),
    "polars": lambda case, _: pl.DataFrame(_all(case)),
    "polars lazy": lambda case, _: pl.LazyFrame(_all(case)),
    "polars of arrow": lambda case, _: pl.from_arrow(_arrow(case)),
    "arrow": lambda case, _: _arrow(case),
    "arrow chunks": lambda case, _: _chunked(case),
    "arrow dictionary": lambda case, _: _arrow(case, lambda array: array.dictionary_encode()),
    "arrow run-ends": lambda case, _: _arrow(case, _run_ends),
    "duckdb": lambda case, _: duckdb.from_arrow(_arrow(case)),
    "csv": _file("people.csv", partial(_write_text, _csv)),
    "csv.gz": _file("people.csv.gz", partial(_write_text, _csv)),
    "json": _file("people.json", partial(_write_text, _json)),
    "ndjson": _file("people.ndjson", partial(_write_text, partial(_json, lines=True))),
    "parquet": _file("people.parquet", _write_parquet),
    "feather": lambda case, folder: (
        feather.write_feather(_arrow(case), str(folder / "p.feather")) or folder / "p.feather"
    ),
    "several csv": _files("csv", partial(_write_text, _csv)),
    "several json": _files("json", partial(_write_text, _json)),
    "several parquet": _files("parquet", _write_parquet),
    "xlsx": _workbook,
}
TRIMMED = ("csv", "csv.gz", "several csv", "xlsx")
"""Sources that strip blanks from names."""


def _outcome(case: Spread, source: str, folder: Path) -> Any:
    """Return the numbers of an audit, "refused", or None where a source cannot hold the table."""
    place = folder / source.replace(" ", "-")
    place.mkdir()
    if source in TRIMMED and any(name != name.strip() or "\n" in name for name in case.names.values()):
        return None
    if source == "xlsx" and (len(case.columns["g"]) > MANY or case.wide or 12345678901234567 in case.columns["g"]):
        return None  # its numbers are fractions
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = SOURCES[source](case, place)
    except Exception:  # what cannot be written is no input
        return None
    named = {role: case.names.get(role, role) for role in "gsdw"}
    scores: Any = {"m": {"column": named["s"], "kind": "score"}}
    weight = named["w"] if case.weighted else None
    try:
        table = eh.Table(data, groups=named["g"], predictions=scores, outcome=named["d"], weight=weight, missing="drop")
        found = eh.parity(table, metrics=["selection_rate", "mean_score", "tpr"], resamples=100, min_count=1)
    except EvenhandError as error:
        laws.require_sentence(error)
        return f"refused: {error}"
    laws.require_lawful(found)
    written = found.to_dict()
    return {name: written[name] for name in ("values", "gaps")} | {"rows": table.rows, "dropped": table.dropped}


def run_spread(case: Spread, folder: Path) -> None:
    """Audit a table from two sources: the same numbers, or two refusals."""
    found = {source: _outcome(case, source, folder) for source in case.sources}
    stray = "xlsx" in found and found["xlsx"] is not None and case.shape == "stray"
    if stray:
        assert str(found.pop("xlsx")).startswith("refused: the first sheet"), "a stray cell was read"
    if None in found.values() or stray:  # a source that cannot hold the table is no source of it
        found = {source: outcome for source, outcome in found.items() if outcome is not None}
        found |= {source: _outcome(case, source, folder) for source in ("mapping", "json") if source not in found}
    known = [*found.values()]
    refused = [isinstance(outcome, str) for outcome in known]
    told = {source: str(outcome)[:900] for source, outcome in found.items()}
    assert all(refused) or not any(refused), f"one source refuses: {told}"
    assert all(refused) or all(outcome == known[0] for outcome in known), f"sources differ: {told}"
    if any(refused):
        raise EvenhandError(known[0])


# The command line -----------------------------------------------------------------------------------------------------


def run_init(case: Spread, folder: Path) -> None:
    """Propose an audit.toml for a CSV file, and run it: it fits the file."""
    _write_text(_csv, _all(case), folder / "people.csv")
    named = [case.names.get(role, role).strip() for role in "gds"]
    given = ("--groups", named[0], "--decisions", named[1], "--scores", named[2])
    codes, told = [], ""
    for words in (
        ("init", "people.csv", *given, "--drop-missing", "--yes", "--force"),
        ("audit", "audit.toml", "--out", "out"),
    ):
        out, err = io.StringIO(), io.StringIO()
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            try:
                main([*words])
            except SystemExit as left:
                codes.append(int(left.code or 0))
        told = err.getvalue()
        assert codes[-1] in (0, 2), (words, codes, told)
        if codes[-1]:
            raise EvenhandError(" ".join(told.split()))
        laws.require_whole(out.getvalue())


SPREAD: dict[str, Target] = {
    "sources": Target(spreads(), run_spread, 6),
    "evenhand init, then audit": Target(spreads(("csv", "csv.gz")), run_init),
}
