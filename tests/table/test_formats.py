"""Files of spreadsheets, Stata, SPSS, Arrow and R give the table that the same data gives as CSV."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import DataError, MissingExtraError
from evenhand.table.formats import _extent

pyreadstat = pytest.importorskip("pyreadstat", reason="files of Stata and SPSS, of the extra 'files'")
rdata = pytest.importorskip("rdata", reason="files of R, of the extra 'files'")
pytest.importorskip("python_calamine", reason="spreadsheets, of the extra 'files'")

DRAW = np.random.default_rng(1)
PEOPLE = pd.DataFrame(
    {
        "black": DRAW.integers(0, 2, 80),
        "hired": DRAW.integers(0, 2, 80),
        "score": DRAW.random(80).round(3),
        "missed": [None, *DRAW.integers(0, 2, 79).tolist()],
    }
)
LABELS = {"black": {0: "not Black", 1: "Black"}}
ROLES: dict[str, Any] = {"groups": "black", "outcome": "missed", "predictions": ["hired", "score"], "missing": "drop"}


def write_sheet(path: Path, frame: pd.DataFrame, *, sheets: int = 1) -> None:
    """Write a workbook by hand: the few parts that a spreadsheet needs."""

    def cell(value: Any) -> str:
        if value is None or value != value:
            return "<c/>"
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    rows = [list(frame.columns), *frame.astype(object).to_numpy().tolist()]
    data = "".join(f"<row>{''.join(cell(value) for value in row)}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    numbers = range(1, sheets + 1)
    listed = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    links = "".join(
        f'<Relationship Id="r{n}" Type="{office}/worksheet" Target="worksheets/s{n}.xml"/>' for n in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="xml" '
        'ContentType="text/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        **{
            f"xl/worksheets/s{n}.xml": f'<worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>'
            for n in numbers
        },
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)


WRITERS: dict[str, Callable[[Path], object]] = {
    "people.xlsx": lambda path: write_sheet(path, PEOPLE),
    "people.dta": lambda path: pyreadstat.write_dta(PEOPLE, str(path), variable_value_labels=LABELS),
    "people.sav": lambda path: pyreadstat.write_sav(PEOPLE, str(path), variable_value_labels=LABELS),
    "people.feather": lambda path: PEOPLE.to_feather(path),
    "people.rds": lambda path: rdata.write_rds(path, PEOPLE),
}


@pytest.fixture(scope="module")
def as_csv(tmp_path_factory: pytest.TempPathFactory) -> eh.Table:
    path = tmp_path_factory.mktemp("csv") / "people.csv"
    PEOPLE.astype({"missed": "Int64"}).to_csv(path, index=False)
    return eh.Table(path, **ROLES)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_gives_the_table_of_the_same_csv(name: str, as_csv: eh.Table, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    table = eh.Table(path, **ROLES)
    assert (table.rows, table.dropped) == (as_csv.rows, as_csv.dropped) == (79, 1)
    assert [table.has_scores(model) for model in table.models] == [False, True]
    assert table.cells.n.tolist() == as_csv.cells.n.tolist()
    assert table.source.fingerprints()[0]["name"] == name


@pytest.mark.parametrize("name", ["people.dta", "people.sav"])
def test_value_labels_become_group_labels(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    table = eh.Table(tmp_path / name, **ROLES)
    assert set(table.cells.labels["black"]) == {"not Black", "Black"}
    own = eh.Table(tmp_path / name, **ROLES, labels={"black": {0: "others", 1: "Black people"}})
    assert set(own.cells.labels["black"]) == {"others", "Black people"}


def test_a_spreadsheet_is_known_by_its_content(tmp_path: Path) -> None:
    write_sheet(tmp_path / "export.csv", PEOPLE, sheets=2)
    table = eh.Table(tmp_path / "export.csv", **ROLES)
    assert table.rows == 79
    assert "Of the 2 sheets of the file, the first was read: Sheet1." in [note.text for note in table.source.notes]


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sheet(tmp_path / "twice.xlsx", PEOPLE.set_axis(["a", "A", "b", "c"], axis=1))
    with pytest.raises(DataError, match="differ only in capital letters"):
        eh.Table(tmp_path / "twice.xlsx", groups="a")
    write_sheet(tmp_path / "blank.xlsx", PEOPLE.set_axis(["a", "", "b", "c"], axis=1))
    with pytest.raises(DataError, match="column 2 of the sheet 'Sheet1' has no name"):
        eh.Table(tmp_path / "blank.xlsx", groups="a")
    for name in ("broken.dta", "broken.sav", "broken.rds", "broken.xlsx", "broken.feather"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(DataError, match=f"{name}' could not be read as"):
            eh.Table(tmp_path / name, groups="a")
    rdata.write_rds(tmp_path / "list.rds", [1.0, 2.0])
    with pytest.raises(DataError, match="holds no data frame; save one with saveRDS"):
        eh.Table(tmp_path / "list.rds", groups="a")
    monkeypatch.setattr("evenhand.errors.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[files\]'"):
        eh.Table(tmp_path / "blank.xlsx", groups="a")


def test_a_stray_cell_at_the_end_of_a_workbook_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """The sheet is read as one rectangle: this one of 5 KB would take 549 GB, and stop the process."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    for name, stray in (("sound", None), ("stray", (1_048_575, 16_383))):
        path = tmp_path / f"{name}.xlsx"
        with xlsxwriter.Workbook(str(path)) as workbook:
            sheet = workbook.add_worksheet("People")
            for number, row in enumerate([["g", "d"], *[["A", 1], ["B", 0]] * 10]):
                sheet.write_row(number, 0, row)
            if stray:
                sheet.write(*stray, "x")
    assert eh.Table(tmp_path / "sound.xlsx", groups="g", predictions="d").rows == 20
    with pytest.raises(DataError) as told:
        eh.Table(path, groups="g", predictions="d")
    assert str(told.value) == (
        f"the first sheet of '{path}' reaches to cell XFD1048576, and nearly all of it is empty; delete the stray "
        "cells outside the table, or save the table as CSV."
    )


@pytest.mark.parametrize(
    "cells",
    [
        "<row r='1048576'><c t='inlineStr' r='XFD1048576'><is><t>x</t></is></c></row>",
        f'<row r="1048576">{"<c><v>1</v></c>" * 200}</row>',
        '<x:row r="1048576"><x:c t="n" r="XFD1048576"/></x:row>',
    ],
)
def test_the_extent_of_a_sheet_follows_from_rows_and_cells_however_they_are_written(cells: str) -> None:
    rows, columns, count = _extent(iter([b'<row r="1"><c r="A1"/>', cells.encode()]))
    assert rows == 1_048_576
    assert columns in (200, 16_384)
    assert count <= 201
