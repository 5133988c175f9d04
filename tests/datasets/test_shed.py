"""The SHED loader, on invented answers in the form of the survey's files."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.datasets import load_shed, shed
from evenhand.errors import ConfigError, DataError
from evenhand.stats.effort import effort_scores

YEARS = (2019, 2020, 2021, 2022)
COLUMNS = [
    *("household", "race", "sex", "age", "age_group", "education", "employment", "household_size", "bank_account"),
    *("income_2019", "income_2020", "income_2021", "income_2022", "unpaid_balance"),
]
NEVER = "Never carried an unpaid balance (always pay in full)"
Answers = dict[str, object]
Survey = dict[int, list[Answers]]


def answers(case: int, income: object, **known: object) -> Answers:
    """One row of a year's file; the columns that are not read hold what the survey's files hold."""
    return {"CaseID": case, "duration": 1571, "L0_a": "Don’t know", "I40": income, "I40_iflag": 0} | known


def latest(case: int, income: object, balance: object, links: str = "", **known: object) -> Answers:
    """One row of the 2022 file; `links` are the case numbers of 2021, 2020 and 2019, with - for none."""
    earlier = [number.replace("-", "") for number in links.split()] or ["", "", ""]
    usual: Answers = dict(zip(("caseid2021", "caseid2020", "caseid2019"), earlier, strict=True))
    usual |= {
        "C4A": balance,
        "D3A": "Working for someone else",
        "BK1": "Yes",
        "ppage": 44,
        "ppeducat": "Some college or Associate’s degree",
        "ppemploy": "Working full-time",
        "ppgender": "Female",
        "pphhsize": 3,
        "ppracem": "White",
        "income_question": "I40",
    }
    return answers(case, income, **usual) | known


def survey() -> Survey:
    """Two households in labels, and others that each miss one thing."""
    return {
        2019: [answers(30_003, "$1 to $4,999"), answers(5, "$0 to $4,999"), answers(6, "$0"), answers(7, "$0")],
        2020: [answers(11, "$15,000 to $24,999"), answers(12, "$25,000 to $39,999"), answers(13, "Refused")],
        2021: [answers(21, "$50,000 to $74,999"), answers(22, "$75,000 to $99,999"), answers(23, "$0")],
        2022: [
            latest(101, "$200,000 or higher", "Some of the time", "22 12 30003"),
            latest(100, "$100,000 to $149,999", NEVER, "21.0 11.0 5.0", ppracem="Black or African American"),
            latest(102, "$0", "Once", "23 13 6"),
            latest(103, "$0", "", "23 12 7"),
            latest(104, "$0", "Once", "23 12 -"),
            latest(105, "$0", "Once", "23 12 8"),
            latest(106, "$0", "Once"),
        ],
    }


def as_csv(rows: list[Answers], encoding: str = "cp1252") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(encoding)


def write(folder: Path, survey: Survey, name: str = "public{}.csv", encoding: str = "cp1252") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for year, rows in survey.items():
        path = folder / name.format(year)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(as_csv(rows, encoding))
    return folder


def rows_of(folder: Path, **arguments: Any) -> list[dict[str, Any]]:
    table = load_shed(folder, backend="polars", **arguments)
    assert isinstance(table, pl.DataFrame)
    assert table.columns == COLUMNS
    return table.to_dicts()


def test_the_link_the_brackets_and_the_outcome(tmp_path: Path) -> None:
    first, second = rows_of(write(tmp_path, survey()))
    assert first == {
        "household": 101,
        "race": "White",
        "sex": "Female",
        "age": 44,
        "age_group": "30-44",
        "education": "Some college",
        "employment": "Full-time",
        "household_size": 3,
        "bank_account": 1,
        "income_2019": 1,
        "income_2020": 25_000,
        "income_2021": 75_000,
        "income_2022": 200_000,
        "unpaid_balance": 1,
    }
    assert (second["household"], second["race"], second["unpaid_balance"]) == (100, "Black", 0)
    assert [second[f"income_{year}"] for year in YEARS] == [0, 15_000, 50_000, 100_000]


def test_whom_a_complete_table_leaves_out(tmp_path: Path) -> None:
    everyone = rows_of(write(tmp_path, survey()), complete=False)
    assert [row["household"] for row in everyone] == [101, 100, 102, 103]
    assert everyone[2]["income_2020"] is None, "refused"
    assert everyone[3]["unpaid_balance"] is None, "has no credit card"


def test_the_incomes_are_a_trajectory_for_effort(tmp_path: Path) -> None:
    table = load_shed(write(tmp_path, survey()), backend="pandas")
    incomes = table[[f"income_{year}" for year in YEARS]].to_numpy()
    acceleration = [(20 - 2.5) / 2, (10 - 1.5) / 2]
    expected = [1 / (1 + math.exp(-value)) / 3 for value in acceleration]
    assert effort_scores(incomes, inertia=1 / 3, unit=10_000).tolist() == pytest.approx(expected)


QUESTIONS = [shed._INCOME, shed._UNPAID_BALANCE, shed._SELF_EMPLOYED, shed._EMPLOYMENT, *shed._PROFILE.values()]


def test_codes_mean_what_labels_mean(tmp_path: Path) -> None:
    codes = {
        (question.column, label.replace("'", "’")): f"{code}.0" if code == 6 else str(code)
        for question in QUESTIONS
        for code, label, _ in question.answers
        if code is not None
    }
    in_codes: Survey = {
        year: [{name: codes.get((name, str(value)), value) for name, value in row.items()} for row in rows]
        for year, rows in survey().items()
    }
    assert in_codes[2022][0]["ppeducat"] == "3"
    assert rows_of(write(tmp_path / "codes", in_codes)) == rows_of(write(tmp_path / "labels", survey()))


def test_each_answer_of_the_codebook(tmp_path: Path) -> None:
    """Every answer to every question, once by its code and once by its label, has one meaning."""
    for question in QUESTIONS:
        for code, label, value in question.answers:
            for written in [label, label.upper(), *([] if code is None else [str(code), f"{code}.0"])]:
                assert question.meaning({question.column: written, "CaseID": "1"}) == value
        for nothing in (
            "",
            " ",
            ".",
            "Refused",
            "-1",
            "-1.0",
            "Not asked",
            "Don’t know",
            "Not In Universe (not asked)",
        ):
            assert question.meaning({question.column: nothing, "CaseID": "1"}) is None


def test_income_brackets_are_their_lower_bounds() -> None:
    for _, label, lower in shed._INCOME.answers:
        assert int(label.split()[0].strip("$").replace(",", "")) == lower


@pytest.mark.parametrize(
    ("known", "column", "expected"),
    [
        ({"D3A": "Self-employed (working for myself)"}, "employment", "Self-employed"),
        ({"D3A": "Other work arrangement", "ppemploy": "Working part-time"}, "employment", "Part-time"),
        ({"D3A": "", "ppemploy": "Not working"}, "employment", "Not working"),
        ({"ppracem": "2+ races"}, "race", "Two or more races"),
        ({"ppracem": ""}, "race", None),
        ({"ppage": 29}, "age_group", "18-29"),
        ({"ppage": 30}, "age_group", "30-44"),
        ({"ppage": 97}, "age_group", "60+"),
        ({"ppage": ""}, "age_group", None),
        ({"BK1": "No"}, "bank_account", 0),
    ],
)
def test_who_a_household_is(tmp_path: Path, known: Answers, column: str, expected: object) -> None:
    changed = survey()
    changed[2022][0] |= known
    assert rows_of(write(tmp_path, changed))[0][column] == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("name", ["public{}.csv", "PUBLIC{}.CSV", "SHED_public_use_data_{}_(CSV)/public{0}.csv"])
def test_names_places_and_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    folder = write(tmp_path / "[shed] *", survey(), name.replace("{}", "{0}"), encoding)
    assert len(rows_of(folder)) == 2


def test_zip_files_as_downloaded(tmp_path: Path) -> None:
    for year, rows in survey().items():
        with zipfile.ZipFile(tmp_path / f"SHED_public_use_data_{year}_(CSV).zip", "w") as archive:
            archive.writestr("__MACOSX/._public2019.csv", b"\0")
            archive.writestr(f"data/public{year}.csv", as_csv(rows))
    assert len(rows_of(tmp_path)) == 2


def test_a_loose_file_comes_before_a_zip_file_and_other_files_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, survey())
    (tmp_path / "other.zip").write_bytes(b"no zip file")
    (tmp_path / "publicJuly2020.csv").write_text("caseid2019\n1\n")
    assert len(rows_of(tmp_path)) == 2


def test_columns_in_another_case(tmp_path: Path) -> None:
    changed = {
        year: [{name.upper(): value for name, value in row.items()} for row in rows] for year, rows in survey().items()
    }
    assert rows_of(write(tmp_path / "upper", changed)) == rows_of(write(tmp_path / "usual", survey()))


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`folder` got 'no/shed'; there is no such folder\."):
        load_shed("no/shed")
    path = tmp_path / "public2019.csv"
    path.touch()
    with pytest.raises(ConfigError, match=r"public2019.csv'; that is a file\."):
        load_shed(path)


def test_missing_years_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    some = {year: rows for year, rows in survey().items() if year in (2019, 2022)}
    with pytest.raises(DataError) as caught:
        load_shed(write(tmp_path, some))
    message = str(caught.value)
    assert message.startswith(f"public2020.csv and public2021.csv not found in '{tmp_path}'")
    assert f"found: '{tmp_path / 'public2019.csv'}', '{tmp_path / 'public2022.csv'}'" in message
    assert "https://www.federalreserve.gov/consumerscommunities/shed_data.htm" in message


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the files was found"):
        load_shed(tmp_path)


def test_a_broken_zip_file(tmp_path: Path) -> None:
    (tmp_path / "shed.zip").write_bytes(b"half a file")
    with pytest.raises(DataError, match=r"shed.zip' could not be read: File is not a zip file; download it again"):
        load_shed(tmp_path)


def test_missing_columns_are_named_with_the_nearest(tmp_path: Path) -> None:
    changed = survey()
    for row in changed[2022]:
        row["C4"], row["race_m"] = row.pop("C4A"), row.pop("ppracem")
    with pytest.raises(DataError) as caught:
        load_shed(write(tmp_path, changed))
    assert len(caught.value.problems) == 2
    assert "public2022.csv' has no column 'C4A'; did you mean 'C4'" in caught.value.problems[0]
    assert "has no column 'ppracem'" in caught.value.problems[1]


@pytest.mark.parametrize(
    ("year", "change", "message"),
    [
        (
            2020,
            {"I40": "$25,000 to $29,999"},
            r"public2020.csv holds '\$25,000 to \$29,999' in its column 'I40' \(CaseID",
        ),
        (2020, {"I40": "$25,000 to $29,999"}, r"not known; did you mean '\$25,000 to \$39,999'"),
        (2021, {"I40": "11"}, "public2021.csv holds '11' in its column 'I40'"),
        (2022, {"C4A": "4"}, "public2022.csv holds '4' in its column 'C4A' .CaseID 101."),
        (2022, {"ppage": "old"}, "public2022.csv holds 'old' in its column 'ppage' .CaseID 101., where a whole number"),
        (2022, {"caseid2020": "x12"}, "'x12' in its column 'caseid2020'"),
        (2019, {"CaseID": "first"}, "public2019.csv' holds 'first' in its column 'CaseID', where a number belongs"),
    ],
)
def test_unknown_answers(tmp_path: Path, year: int, change: Answers, message: str) -> None:
    changed = survey()
    changed[year][{2020: 1, 2021: 1}.get(year, 0)] |= change
    with pytest.raises(DataError, match=message):
        load_shed(write(tmp_path, changed))


def test_a_case_number_twice(tmp_path: Path) -> None:
    changed = survey()
    changed[2021].append(answers(21, "$0"))
    with pytest.raises(DataError, match=r"public2021.csv' has more than one row with CaseID 21"):
        load_shed(write(tmp_path, changed))


def test_a_cut_off_file(tmp_path: Path) -> None:
    write(tmp_path, survey())
    path = tmp_path / "public2020.csv"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"line 4 of '.*public2020.csv' has \d fields where the header has 5"):
        load_shed(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    write(tmp_path, survey())
    (tmp_path / "public2021.csv").write_bytes(b"")
    with pytest.raises(DataError, match="has no column 'CaseID'; there are none"):
        load_shed(tmp_path)


def test_no_household_is_left(tmp_path: Path) -> None:
    unlinked = survey() | {2022: survey()[2022][-3:]}
    folder = write(tmp_path, unlinked)
    with pytest.raises(DataError, match=r"no household of public2022.csv is left: .* about unpaid balances \(C4A\)"):
        load_shed(folder)
    with pytest.raises(DataError, match="files of 2019, 2020 and 2021; check"):
        load_shed(folder, complete=False)
