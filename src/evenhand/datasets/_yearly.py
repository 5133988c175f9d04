"""Reading a survey's yearly CSV files from a folder: found by name, also in .zip files, and read whatever they hold.

DuckDB reads most files for evenhand. These it does not: they hold Windows-1252 quotes (byte 0x92), which it takes
neither for UTF-8 nor for Latin-1, and they may lie in a .zip file. They are small, and read once.
"""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evenhand.errors import ConfigError, DataError, did_you_mean

Row = dict[str, str]
"""One respondent: the text of each column that was asked for."""


@dataclass(frozen=True)
class YearFile:
    """A CSV file, by itself or in a .zip file."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return f"'{self.path}'" if self.member is None else f"'{self.member}' in '{self.path}'"

    def text(self) -> str:
        """Return the text of the file, which is UTF-8 or Windows-1252."""
        try:
            content = self._content()
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{self} could not be read: {error}.") from error
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("cp1252", errors="replace")

    def _content(self) -> bytes:
        if self.member is None:
            return self.path.read_bytes()
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(self.member)


def find_files(folder: str | os.PathLike[str], names: Mapping[int, str], website: str) -> dict[int, YearFile]:
    """Return the file of each year: in the folder, in one below it, or in a .zip file in either, in this order."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        what = "that is a file" if root.exists() else "there is no such folder"
        raise ConfigError(f"`folder` got {os.fspath(folder)!r}; {what}.")
    found: dict[str, YearFile] = {}
    for name, file in _files_in(root):
        found.setdefault(name, file)
        if found.keys() >= set(names.values()):
            break
    missing = [year for year, name in names.items() if name not in found]
    if missing:
        there = [str(found[name]) for name in names.values() if name in found]
        raise DataError(
            f"{' and '.join(names[year] for year in missing)} not found in '{root}', in a folder below it or in a .zip "
            f"file there ({'found: ' + ', '.join(there) if there else 'none of the files was found'}); download the "
            f"public-use CSV data of {' and '.join(map(str, missing))} from {website} and put it there."
        )
    return {year: found[name] for year, name in names.items()}


def read_rows(file: YearFile, columns: Sequence[str], *, id_column: str) -> dict[int, Row]:
    """Return the columns of every respondent, by their number; columns are found in any case."""
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    rows: dict[int, Row] = {}
    try:
        header = next(reader, [])
        place = _places(header, columns, file)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DataError(
                    f"line {reader.line_num} of {file} has {len(cells)} fields where the header has {len(header)}."
                )
            row = {column: cells[place[column]] for column in columns}
            number = _respondent(row[id_column], id_column, file)
            if number in rows:
                raise DataError(f"{file} has more than one row with {id_column} {number}.")
            rows[number] = row
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} of {file} could not be read: {error}.") from error
    return rows


def _files_in(root: Path) -> Iterator[tuple[str, YearFile]]:
    """Yield every CSV file by its name in lower case: the loose ones first, then those in .zip files."""
    paths = [path for pattern in ("*", "*/*") for path in sorted(root.glob(pattern)) if path.is_file()]
    yield from ((path.name.lower(), YearFile(path)) for path in paths if path.suffix.lower() == ".csv")
    for path in paths:
        if path.suffix.lower() == ".zip":
            yield from ((PurePosixPath(member).name.lower(), YearFile(path, member)) for member in _members(path))


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"'{path}' could not be read: {error}; download it again, or take it away.") from error


def _places(header: list[str], columns: Sequence[str], file: YearFile) -> dict[str, int]:
    """Return where each column is; what is missing is named, with the nearest there is."""
    at: dict[str, int] = {}
    for place, name in enumerate(header):
        at.setdefault(name.strip().lower(), place)
    missing = [column for column in columns if column.lower() not in at]
    if missing:
        raise DataError([f"{file} has no column '{column}'; {did_you_mean(column, header)}" for column in missing])
    return {column: at[column.lower()] for column in columns}


def _respondent(text: str, column: str, file: YearFile) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise DataError(f"{file} holds {text!r} in its column '{column}', where a number belongs.") from None
