"""The Federal Reserve's Survey of Household Economics and Decisionmaking (SHED), four years of the same households.

Only the Board may distribute the files, so they are neither part of the package nor downloaded, but read from a folder.
The codings below follow the survey's codebooks.
"""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from evenhand.errors import ConfigError, DataError, did_you_mean, problem
from evenhand.table.frames import NativeFrame, build_frame

_YEARS = (2019, 2020, 2021, 2022)
_LAST = _YEARS[-1]
_WEBSITE = "https://www.federalreserve.gov/consumerscommunities/shed_data.htm"

_NO_ANSWER = frozenset(
    ("", ".", "na", "nan", "-1", "refused", "-2", "don't know", "not asked", "not in universe (not asked)")
)

Row = dict[str, str]
"""One respondent: the text of each requested column."""

Meaning = str | int | None
"""The meaning of an answer: a name, a number or a truth value."""


@dataclass(frozen=True)
class _Question:
    """A column of the survey with the meanings of its answers by code or label."""

    column: str
    answers: tuple[tuple[int | None, str, Meaning], ...]

    @cached_property
    def _meanings(self) -> dict[str, Meaning]:
        by_code = {str(code): value for code, _, value in self.answers if code is not None}
        return by_code | {_folded(label): value for _, label, value in self.answers}

    def meaning(self, row: Row, year: int = _LAST) -> Meaning:
        """Return the meaning of a household's answer, or None without an answer."""
        answer = _folded(row[self.column])
        if answer in _NO_ANSWER:
            return None
        if answer not in self._meanings:
            known = [label for _, label, _ in self.answers]
            raise DataError(
                "public{year}.csv holds {row!r} in its column '{column}' (CaseID {row_2}), an answer that is "
                "not known; {hint}",
                year=year,
                row=row[self.column],
                column=self.column,
                row_2=row["CaseID"],
                hint=did_you_mean(row[self.column], known),
            )
        return self._meanings[answer]


_INCOME = _Question(
    "I40",
    (
        (0, "$0", 0),
        (1, "$1 to $4,999", 1),
        (2, "$5,000 to $14,999", 5_000),
        (3, "$15,000 to $24,999", 15_000),
        (4, "$25,000 to $39,999", 25_000),
        (5, "$40,000 to $49,999", 40_000),
        (6, "$50,000 to $74,999", 50_000),
        (7, "$75,000 to $99,999", 75_000),
        (8, "$100,000 to $149,999", 100_000),
        (9, "$150,000 to $199,999", 150_000),
        (10, "$200,000 or higher", 200_000),
        (None, "$0 to $4,999", 0),
    ),
)
"""The income brackets, and the lower bound of each in dollars."""

_UNPAID_BALANCE = _Question(
    "C4A",
    (
        (0, "Never carried an unpaid balance (always pay in full)", 0),
        (1, "Once", 1),
        (2, "Some of the time", 1),
        (3, "Most or all of the time", 1),
    ),
)
_SELF_EMPLOYED = _Question(
    "D3A",
    (
        (0, "Working for someone else", False),
        (1, "Self-employed (working for myself)", True),
        (2, "Other work arrangement", False),
    ),
)
_EMPLOYMENT = _Question(
    "ppemploy",
    ((1, "Working full-time", "Full-time"), (2, "Working part-time", "Part-time"), (3, "Not working", "Not working")),
)
_PROFILE = {
    "race": _Question(
        "ppracem",
        (
            (1, "White", "White"),
            (2, "Black or African American", "Black"),
            (3, "American Indian or Alaska Native", "American Indian"),
            (4, "Asian", "Asian"),
            (5, "Native Hawaiian/Pacific Islander", "Pacific Islander"),
            (6, "2+ races", "Two or more races"),
        ),
    ),
    "sex": _Question("ppgender", ((1, "Male", "Male"), (2, "Female", "Female"))),
    "education": _Question(
        "ppeducat",
        (
            (1, "No high school diploma or GED", "No high school diploma"),
            (2, "High school graduate (high school diploma or the equivalent GED)", "High school"),
            (3, "Some college or Associate's degree", "Some college"),
            (4, "Bachelor's degree or higher", "Bachelor's degree"),
        ),
    ),
    "bank_account": _Question("BK1", ((0, "No", 0), (1, "Yes", 1))),
}
_AGE_GROUPS = {18: "18-29", 30: "30-44", 45: "45-59", 60: "60+"}
"""The survey's own four age groups, by the youngest age in each."""

_LINKS = {2022: "CaseID", 2021: "caseid2021", 2020: "caseid2020", 2019: "caseid2019"}
"""The columns of the 2022 file with a household's case number in each year."""

_COLUMNS: dict[int, tuple[str, ...]] = dict.fromkeys(_YEARS, ("CaseID", "I40")) | {
    _LAST: (
        *_LINKS.values(),
        *("I40", "C4A", "D3A", "ppemploy", "ppage", "pphhsize"),
        *(question.column for question in _PROFILE.values()),
    )
}


def load_shed(folder: str | os.PathLike[str], *, complete: bool = True, backend: str | None = None) -> NativeFrame:
    """Load the households that answered the SHED in each year from 2019 to 2022, prepared for an effort audit.

    Download the public-use data of the four years as CSV from the Federal Reserve's website (see References), and
    put them into one folder, unpacked or as they are.

    Parameters
    ----------
    folder : str or path-like
        The folder of the files public2019.csv, public2020.csv, public2021.csv and public2022.csv (upper or lower case).
        They may also be in a folder below it, or in a .zip file in either.
    complete : bool, default True
        Keep only households with an income in each year and an answer about unpaid balances, which is how the
        paper's "data available across all four years" is read here. False keeps every linked household, with unknown
        values missing, so that the excluded households can be counted.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per household, in the order of the 2022 file, with the answers of 2022 unless the name says
        otherwise (the survey's column in brackets):

        - `household` (CaseID): the case number, the id;
        - `race` (ppracem): White, Black, American Indian, Asian, Pacific Islander or Two or more races;
        - `sex` (ppgender): Female or Male;
        - `age` (ppage), and `age_group`: 18-29, 30-44, 45-59 or 60+;
        - `education` (ppeducat): No high school diploma, High school, Some college or Bachelor's degree (or more);
        - `employment` (ppemploy, D3A): Self-employed when that describes the main job, otherwise Full-time,
          Part-time or Not working;
        - `household_size` (pphhsize): people in the household;
        - `bank_account` (BK1): 1 with a checking, savings or money market account, else 0;
        - `income_2019`, `income_2020`, `income_2021`, `income_2022` (I40 of each year): the lower bound, in dollars,
          of the bracket of the income in the past 12 months: the trajectory of an effort audit;
        - `unpaid_balance` (C4A): 0 when the household never carried an unpaid balance on a credit card in the past
          12 months, 1 when it did so once or more: the outcome.

        People who did not answer or were not asked have a missing value.

    Raises
    ------
    ConfigError
        The folder does not exist, or `backend` is unknown.
    DataError
        A year's file is missing or cannot be read, a column is missing, an answer is unknown, or no household remains.

    See Also
    --------
    make_households : synthetic households in the same form.

    Notes
    -----
    *The link.* The 2022 file names each household's case number in the earlier years. A household is linked if its case
    numbers for 2021, 2020 and 2019 are in the files of these years. The paper has 704 households; the files were not
    available to check that this link also gives 704.

    *Incomes* are brackets: $1 for "$1 to $4,999", $200,000 for everyone above. A rise within a bracket is therefore
    invisible, and a step between brackets is $5,000 at the bottom and $50,000 at the top. The amounts stated by some
    respondents of 2022 (I39) are not used.

    *The outcome* is known only for respondents with a credit card; all others are not asked. Carrying a balance is not
    a missed payment, although the paper calls it one.

    *Race* is the Census race, the one column of the survey with the five races that the paper names. It says
    nothing about Hispanic origin, and for two or more races the paper gives no rate of childhood poverty: leave
    these households out, or give a rate.

    *Weights* are not part of the table: the survey has none for households of all four years.

    *The form.* Answers may be codes or labels, and the files UTF-8 or Windows-1252.

    References
    ----------
    Board of Governors of the Federal Reserve System. Survey of Household Economics and Decisionmaking.
    https://www.federalreserve.gov/consumerscommunities/shed_data.htm

    T. T. Nguyen, J. Xu, Z. Che et al. Effort-aware Fairness: Incorporating a Philosophy-informed, Human-centered
    Notion of Effort into Algorithmic Fairness Metrics (its appendix D has the coding).

    Examples
    --------
    >>> table = load_shed("downloads/shed", backend="polars")  # doctest: +SKIP
    >>> load_shed("no/such/folder")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `folder` got 'no/such/folder'; there is no such folder.
    """
    files = find_files(folder, {year: f"public{year}.csv" for year in _YEARS}, _WEBSITE)
    years = {year: read_rows(file, _COLUMNS[year], id_column="CaseID") for year, file in files.items()}
    households = [_household(linked) for linked in _linked(years)]
    if complete:
        households = [row for row in households if _is_complete(row)]
    if not households:
        raise DataError(
            "no household of public{LAST}.csv is left: none has case numbers that are in the files of 2019, "
            "2020 and 2021{which}; check that the files in {fspath!r} are the published ones.",
            LAST=_LAST,
            which=", an income in each year and an answer about unpaid balances (C4A)" if complete else "",
            fspath=os.fspath(folder),
        )
    return build_frame({name: [row[name] for row in households] for name in households[0]}, backend)


def _is_complete(household: Mapping[str, Any]) -> bool:
    return all(household[name] is not None for name in (*(f"income_{year}" for year in _YEARS), "unpaid_balance"))


def _linked(years: Mapping[int, Mapping[int, Row]]) -> Iterator[dict[int, Row]]:
    """Yield the answers by year of every household that is in the files of all years."""
    for latest in years[_LAST].values():
        cases = ((year, _number(latest, column)) for year, column in _LINKS.items())
        answers = {year: years[year][case] for year, case in cases if case is not None and case in years[year]}
        if len(answers) == len(_YEARS):
            yield answers


def _household(answers: Mapping[int, Row]) -> dict[str, Any]:
    """Return the table row of a household from its answers by year."""
    latest = answers[_LAST]
    profile = {name: question.meaning(latest) for name, question in _PROFILE.items()}
    age = _number(latest, "ppage")
    return {
        "household": _number(latest, "CaseID"),
        "race": profile["race"],
        "sex": profile["sex"],
        "age": age,
        "age_group": None if age is None else _age_group(age),
        "education": profile["education"],
        "employment": "Self-employed" if _SELF_EMPLOYED.meaning(latest) else _EMPLOYMENT.meaning(latest),
        "household_size": _number(latest, "pphhsize"),
        "bank_account": profile["bank_account"],
        **{f"income_{year}": _INCOME.meaning(answers[year], year) for year in _YEARS},
        "unpaid_balance": _UNPAID_BALANCE.meaning(latest),
    }


def _age_group(age: int) -> str | None:
    return next((group for youngest, group in reversed(_AGE_GROUPS.items()) if age >= youngest), None)


def _number(row: Row, column: str) -> int | None:
    """Return an integer from a row of the 2022 file, or None without an answer."""
    text = _folded(row[column])
    if text in _NO_ANSWER:
        return None
    if not text.isdecimal():
        raise DataError(
            "public{LAST}.csv holds {row!r} in its column '{column}' (CaseID {row_2}), where a whole number belongs.",
            LAST=_LAST,
            row=row[column],
            column=column,
            row_2=row["CaseID"],
        )
    return int(text)


def _folded(text: str) -> str:
    """Return an answer with normalised quotes, spaces, case and numbers, for comparison."""
    text = " ".join(text.replace("’", "'").replace("‘", "'").split()).casefold()
    return re.sub(r"^(-?\d+)\.0*$", r"\1", text)


# The yearly CSV files, found by name, also in .zip files -----------------------------------------------------
#
# DuckDB cannot read these files: they hold Windows-1252 quotes (byte 0x92), valid neither in UTF-8 nor in Latin-1, and
# they may be in a .zip file. They are small, and read once.


@dataclass(frozen=True)
class YearFile:
    """A CSV file, on its own or in a .zip file."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return f"'{self.path}'" if self.member is None else f"'{self.member}' in '{self.path}'"

    def text(self) -> str:
        """Return the text of the file, decoded as UTF-8 or Windows-1252."""
        try:
            content = self._content()
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError("{self_} could not be read: {error}.", self_=self, error=error) from error
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
    """Return each year's file from the folder, a folder below it, or a .zip file in either, in this order."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        what = "that is a file" if root.exists() else "there is no such folder"
        raise ConfigError("`folder` got {fspath!r}; {what}.", fspath=os.fspath(folder), what=what)
    files: dict[str, YearFile] = {}
    for name, file in _files_in(root):
        files.setdefault(name, file)
        if files.keys() >= set(names.values()):
            break
    missing = {year: name for year, name in names.items() if name not in files}
    if missing:
        there = [str(files[name]) for name in names.values() if name in files]
        raise DataError(
            "{names} not found in '{root}', in a folder below it or in a .zip file there ({which}); "
            "download the public-use CSV data of {names_2} from {website} and put it there.",
            names=" and ".join(missing.values()),
            root=root,
            which="found: " + ", ".join(there) if there else "none of the files was found",
            names_2=" and ".join(map(str, missing)),
            website=website,
        )
    return {year: files[name] for year, name in names.items()}


def read_rows(file: YearFile, columns: Sequence[str], *, id_column: str) -> dict[int, Row]:
    """Return the requested columns of every respondent by respondent number; column names ignore case."""
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    rows: dict[int, Row] = {}
    try:
        header = next(reader, [])
        positions = _positions(header, columns, file)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DataError(
                    "line {line_num} of {file} has {number} fields where the header has {number_2}.",
                    line_num=reader.line_num,
                    file=file,
                    number=len(cells),
                    number_2=len(header),
                )
            row = {column: cells[positions[column]] for column in columns}
            number = _respondent(row[id_column], id_column, file)
            if number in rows:
                raise DataError(
                    "{file} has more than one row with {id_column} {number}.",
                    file=file,
                    id_column=id_column,
                    number=number,
                )
            rows[number] = row
    except csv.Error as error:
        raise DataError(
            "line {line} of {file} could not be read: {error}.", line=reader.line_num, file=file, error=error
        ) from error
    return rows


def _files_in(root: Path) -> Iterator[tuple[str, YearFile]]:
    """Yield every CSV file by its lower-case name: single files first, then members of .zip files."""
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
        raise DataError(
            "'{path}' could not be read: {error}; download it again, or take it away.", path=path, error=error
        ) from error


def _positions(header: list[str], columns: Sequence[str], file: YearFile) -> dict[str, int]:
    """Return the index of each column; raise for missing columns, with the most similar names."""
    positions: dict[str, int] = {}
    for position, name in enumerate(header):
        positions.setdefault(name.strip().lower(), position)
    missing = [column for column in columns if column.lower() not in positions]
    if missing:
        sentence = "{file} has no column '{column}'; {hint}"
        raise DataError(
            [problem(sentence, file=file, column=column, hint=did_you_mean(column, header)) for column in missing]
        )
    return {column: positions[column.lower()] for column in columns}


def _respondent(text: str, column: str, file: YearFile) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise DataError(
            "{file} holds {text!r} in its column '{column}', where a number belongs.",
            file=file,
            text=text,
            column=column,
        ) from None
