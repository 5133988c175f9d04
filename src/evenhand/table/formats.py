"""Find the files of a path and their formats, and read files of other programs with the extra `files`.

Other programs are spreadsheets, Stata, SPSS, R and Arrow. For CSV, Parquet and JSON files see `files`.
"""

from __future__ import annotations

import glob
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, EvenhandError, did_you_mean, problem, require_extra
from evenhand.messages import Message
from evenhand.table.messages import say

_MARKS = {
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
    b"PAR1": ("a Parquet file", "name it .parquet"),
}
_ENDINGS = {"csv": (".csv", ".tsv", ".txt"), "parquet": (".parquet", ".pq"), "json": (".json", ".jsonl", ".ndjson")}
_FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings}


def is_data_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the ending of a data file."""
    return os.path.splitext(path)[1].lower() in (*_FORMATS, *_READERS)


def matching_files(pattern: str) -> list[str]:
    """Return the files matching a path or pattern; raise if one is not a readable, nonempty file."""
    paths = matches(pattern)
    _require_files(pattern, paths)
    return paths


def matches(pattern: str) -> list[str]:
    """Return the file with exactly this name, or else the files that match the pattern."""
    if os.path.exists(pattern) or not glob.has_magic(pattern):
        return [pattern]
    # Folders that exist are taken literally, even with brackets in their names.
    folder = next((parent for parent in Path(pattern).parents if parent.is_dir()), Path())
    rest = os.path.relpath(pattern, folder)
    return sorted(str(folder / path) for path in glob.glob(rest, root_dir=folder, recursive=True))


def _require_files(pattern: str, paths: list[str]) -> None:
    if not paths:
        raise DataError("no file matches '{pattern}'; check the folder and the pattern.", pattern=pattern)
    for path in paths:
        if not _exists(path):
            raise DataError("there is no file '{path}'; {nearest}", path=path, nearest=_nearest(Path(path)))
        if os.path.isdir(path):
            raise DataError("'{path}' is a folder; give a file or a pattern such as '{path}/*.parquet'.", path=path)
        if not os.path.isfile(path):
            raise DataError("'{path}' is a pipe or a device; save the data as a file first.", path=path)
        if os.path.getsize(path) == 0:
            raise DataError("the file '{path}' is empty (0 bytes).", path=path)
        if not os.access(path, os.R_OK):
            raise DataError("'{path}' cannot be read: permission denied.", path=path)


def _exists(path: str) -> bool:
    """Return whether a file exists; raise if that cannot be determined, as for a link to itself."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name that no file can have
        return False
    except OSError as error:
        raise DataError(
            "'{path}' cannot be read: {lower}.", path=path, lower=str(error.strerror or error).lower()
        ) from None
    return True


def _nearest(path: Path) -> Message:
    if path.is_symlink():
        return problem("it is a link to a file that is not there.")
    try:
        return did_you_mean(path.name, sorted(entry.name for entry in path.parent.iterdir()))
    except NotADirectoryError:
        return problem("'{folder}' is a file, not a folder.", folder=path.parent)
    except (OSError, ValueError):
        return problem("there is no folder '{folder}'.", folder=path.parent)


def refuse_disguised(paths: list[str]) -> None:
    """Raise if a text file by name has another format by content, such as a renamed Excel file."""
    for path in paths:
        if _FORMATS[_suffix(Path(path))] == "parquet":
            continue
        with open(path, "rb") as file:
            start = file.read(8)
        for mark, (kind, advice) in _MARKS.items():
            if start.startswith(mark):
                raise DataError(
                    "'{path}' is {kind} by its contents, whatever its name says; {advice}.",
                    path=path,
                    kind=kind,
                    advice=advice,
                )


def _suffix(path: Path) -> str:
    """Return the file ending that determines the format: '.csv' for 'people.CSV.gz'."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in {".gz", ".zst"}]
    return suffixes[-1] if suffixes else ""


def format_of(paths: list[str]) -> str:
    """Return the common format of all files by name: csv, parquet or json."""
    for path in paths:
        if _suffix(Path(path)) not in _FORMATS:
            raise DataError(
                "the format of '{path}' is not known from its name; evenhand reads .csv, .tsv, .txt, .parquet, "
                ".json and .ndjson files, and one at a time .xlsx, .ods, .dta, .sav, .feather and .rds.",
                path=path,
            )
    kinds = {_FORMATS[_suffix(Path(path))] for path in paths}
    if len(kinds) > 1:
        raise DataError(
            "the files are of several formats ({names}); give one format at a time.", names=", ".join(sorted(kinds))
        )
    return kinds.pop()


def refuse_repeated_names(names: Iterable[str], where: str, *, any_case: bool = False) -> None:
    """Raise if two columns have the same name, optionally ignoring case as DuckDB does."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.lower() if any_case else name, []).append(name)
    repeated = [same for same in spellings.values() if len(same) > 1]
    if not repeated:
        return
    shown = ", ".join(repr(name) for name in list(dict.fromkeys(name for same in repeated for name in same))[:6])
    if all(len(set(same)) == 1 for same in repeated):
        raise DataError(
            "{where} has the column {shown} more than once; rename the columns so that each is unique.",
            where=where,
            shown=shown,
        )
    raise DataError(
        "{where} has columns that differ only in capital letters ({shown}); rename them.", where=where, shown=shown
    )


# Files of other programs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Foreign:
    """The content of a file of another program.

    Parameters
    ----------
    data : a mapping of columns, or a data frame.
    labels : the value labels by column and value.
    notes : remarks on how the file was read.
    """

    data: Any
    labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()


def read_foreign(path: str, missing: Sequence[str] = ()) -> Foreign | None:
    """Return the content of another program's file; None if DuckDB reads the format itself.

    The format is determined by the first bytes, or else by the name. `missing` are words for missing values.
    """
    ending = _ending(path)
    if ending not in _READERS:
        return None
    name_ending = os.path.splitext(path)[1].lower()
    disguised = ending != name_ending and name_ending in _ENDINGS["csv"]
    module, reader = _READERS[ending]
    require_extra(module, "files", f"reading '{os.path.basename(path)}' ({ending})")
    try:
        foreign = reader(path, missing)
    except EvenhandError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DataError(
            "'{path}' could not be read as {ending}: {reason}", path=path, ending=ending, reason=reason
        ) from error
    return replace(foreign, notes=(say("disguised", ending=ending), *foreign.notes)) if disguised else foreign


def is_foreign(path: str) -> bool:
    """Return whether a file is in another program's format, by its content or name."""
    return os.path.isfile(path) and _ending(path) in _READERS


_BEGINNINGS = {
    b"\xd0\xcf\x11\xe0": ".xls",
    b"<stata_dta>": ".dta",
    b"$FL2": ".sav",
    b"$FL3": ".sav",
    b"ARROW1": ".feather",
}


def _ending(path: str) -> str:
    """Return the ending of the file's format, by content if conclusive, else by name."""
    name_ending = os.path.splitext(path)[1].lower()
    with open(path, "rb") as file:
        start = file.read(16)
    if start.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            names = parts.namelist()
        endings_by_part = {"xl/workbook.xml": ".xlsx", "xl/workbook.bin": ".xlsb", "content.xml": ".ods"}
        return next((ending for part, ending in endings_by_part.items() if part in names), name_ending)
    return next((ending for begin, ending in _BEGINNINGS.items() if start.startswith(begin)), name_ending)


def _read_sheet(path: str, missing: Sequence[str]) -> Foreign:
    """Read the first sheet of a workbook, with column names in its first row."""
    refuse_stray_cells(path)
    with open(path, "rb") as file:
        workbook = import_module("python_calamine").CalamineWorkbook.from_filelike(file)
        rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=True)
        names = list(workbook.sheet_names)
    if len(rows) < 2:
        raise DataError(
            "the sheet {names!r} of '{path}' holds no table; put the table on the first sheet.",
            names=names[0],
            path=path,
        )
    head = [_name(cell) for cell in rows[0]]
    unnamed = [number + 1 for number, name in enumerate(head) if not name]
    if unnamed:
        raise DataError(
            "column {unnamed} of the sheet {sheet!r} has no name; the first row must name the columns.",
            unnamed=unnamed[0],
            sheet=names[0],
        )
    refuse_repeated_names(head, f"the sheet {names[0]!r}", any_case=True)
    body = [row for row in rows[1:] if any(cell != "" for cell in row)]
    columns = {name: _column([row[number] for row in body], missing) for number, name in enumerate(head)}
    note = say("first_sheet", sheets=len(names), name=names[0])
    return Foreign(columns, notes=(note,) if len(names) > 1 else ())


def _name(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _column(cells: list[Any], missing: Sequence[str]) -> npt.NDArray[Any]:
    """Return cells as a column of one type; whole numbers stored as floats become integers."""
    column = np.empty(len(cells), dtype=object)
    column[:] = [None if isinstance(cell, str) and (not cell.strip() or cell in missing) else cell for cell in cells]
    absent = np.array([cell is None for cell in column], dtype=np.bool_)
    present = column[~absent]
    if not present.size or not all(map(_is_number, present)):
        return column
    whole = all(float(value).is_integer() and abs(value) < 2**53 for value in present)
    column[absent] = 0
    filled = column.astype(np.int64 if whole else np.float64)
    return np.ma.MaskedArray(filled, mask=absent) if absent.any() else filled


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _read_statistics(reader: str) -> Callable[[str, Sequence[str]], Foreign]:
    def read(path: str, missing: Sequence[str]) -> Foreign:
        columns, metadata = getattr(import_module("pyreadstat"), reader)(path, output_format="dict")
        data = {str(name): _column(list(cells), missing) for name, cells in columns.items()}
        return Foreign(data, {str(name): dict(labels) for name, labels in metadata.variable_value_labels.items()})

    return read


def _read_arrow(path: str, _: Sequence[str]) -> Foreign:
    feather = import_module("pyarrow.feather")
    with open(path, "rb") as file:
        if file.read(6) in (b"ARROW1", b"FEA1\x00\x00"):
            return Foreign(feather.read_table(path))
    with import_module("pyarrow").memory_map(path) as source:
        return Foreign(import_module("pyarrow.ipc").open_stream(source).read_all())


def _read_r(path: str, _: Sequence[str]) -> Foreign:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes unknown to rdata become plain values
        data = import_module("rdata").read_rds(path, default_encoding="utf-8")
    if not hasattr(data, "iloc") or not hasattr(data, "columns"):
        raise DataError("'{path}' holds no data frame; save one with saveRDS(frame, 'data.rds').", path=path)
    return Foreign(data.reset_index(drop=True))


_READERS: dict[str, tuple[str, Callable[[str, Sequence[str]], Foreign]]] = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), ("python_calamine", _read_sheet)),
    ".dta": ("pyreadstat", _read_statistics("read_dta")),
    **dict.fromkeys((".sav", ".zsav"), ("pyreadstat", _read_statistics("read_sav"))),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), ("pyarrow", _read_arrow)),
    ".rds": ("rdata", _read_r),
}

# The extent of a sheet ------------------------------------------------------------------------------------------------


_MOST_CELLS = 20_000_000
_EMPTY_SHARE = 100  # maximum number of empty cells per filled cell in a large sheet
_CHUNK = 1 << 20
_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]*?\br=[\"']([A-Z]{1,3})(\d+)[\"']")
_ROW = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br=[\"'](\d+)[\"']")
_CELL_OR_ROW = re.compile(rb"<(?:\w+:)?(c|row)[\s/>]")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^>]*>")


def refuse_stray_cells(path: str) -> None:
    """Raise if the first sheet is large and almost empty, as with a stray cell far from the table."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as parts:
        if "xl/workbook.xml" not in parts.namelist():
            return
        sheet = _first_sheet(parts)
        rows, columns, cells = _extent(_chunks(parts.open(sheet))) if sheet in parts.namelist() else (0, 0, 0)
    if rows * columns > max(_MOST_CELLS, _EMPTY_SHARE * cells):
        raise DataError(
            "the first sheet of '{path}' reaches to cell {corner}, and nearly all of it is empty; delete the stray "
            "cells outside the table, or save the table as CSV.",
            path=path,
            corner=f"{_letters(columns)}{rows}",
        )


def _first_sheet(parts: zipfile.ZipFile) -> str:
    """Return the name of the archive part with the first sheet."""
    named = re.search(rb'<(?:\w+:)?sheet\s[^>]*?:id="([^"]+)"', parts.read("xl/workbook.xml"))
    for relation in _RELATION.findall(parts.read("xl/_rels/workbook.xml.rels")):
        target = re.search(rb'Target="([^"]+)"', relation)
        if named and target and b'Id="' + named[1] + b'"' in relation:
            return "xl/" + target[1].decode().removeprefix("/xl/")
    return ""


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the contents of a file in pieces that end at a tag's end."""
    rest = b""
    with file:
        while chunk := file.read(_CHUNK):
            whole, mark, rest = (rest + chunk).rpartition(b">")
            yield whole + mark
        yield rest


def _extent(chunks: Iterator[bytes]) -> tuple[int, int, int]:
    """Return the last row, the last column and the number of cells of a sheet."""
    last_row, last_column, cells = 0, 0, 0
    for chunk in chunks:
        found = _CELL.findall(chunk)
        tags = _CELL_OR_ROW.findall(chunk)
        cells += tags.count(b"c")
        last_row = max(last_row, *map(int, _ROW.findall(chunk)), 0)
        if found:
            letters, rows = zip(*found, strict=True)
            last_row = max(last_row, *map(int, rows))
            last_column = max(last_column, *map(_number, set(letters)))
        if len(found) < tags.count(b"c"):  # cells without a name follow one another
            last_column = max(last_column, *map(len, b"".join(tag[:1] for tag in tags).split(b"r")))
    return last_row, last_column, cells


def _number(letters: bytes) -> int:
    """Return the number of a column from its letters.

    Examples
    --------
    >>> _number(b"A"), _number(b"XFD"), _letters(16_384)
    (1, 16384, 'XFD')
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters
