"""The extent of a sheet, from its file: it is read as one rectangle, which a stray cell makes hundreds of gigabytes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import IO

from evenhand.errors import DataError

_MOST_CELLS = 20_000_000
_EMPTY_SHARE = 100  # a larger sheet may have this many empty cells for each that is filled
_CHUNK = 1 << 20
_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]*?\br=[\"']([A-Z]{1,3})(\d+)[\"']")
_ROW = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br=[\"'](\d+)[\"']")
_CELL_OR_ROW = re.compile(rb"<(?:\w+:)?(c|row)[\s/>]")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^>]*>")


def refuse_stray_cells(path: str) -> None:
    """Raise if the first sheet of a workbook is large and almost empty, as with one stray cell far from the table."""
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
    """Return the name of the part with the first sheet."""
    named = re.search(rb'<(?:\w+:)?sheet\s[^>]*?:id="([^"]+)"', parts.read("xl/workbook.xml"))
    for relation in _RELATION.findall(parts.read("xl/_rels/workbook.xml.rels")):
        target = re.search(rb'Target="([^"]+)"', relation)
        if named and target and b'Id="' + named[1] + b'"' in relation:
            return "xl/" + target[1].decode().removeprefix("/xl/")
    return ""


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in pieces that end with a whole tag."""
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
    """Return the number of a column.

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
