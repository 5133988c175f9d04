"""ProPublica's COMPAS data: known figures, and nothing that identifies a person."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from evenhand.datasets import available, compas, load_compas

COLUMN_NAMES = """
id sex age age_cat race juv_fel_count juv_misd_count juv_other_count priors_count
days_b_screening_arrest c_charge_degree c_charge_desc is_recid is_violent_recid two_year_recid
decile_score score_text v_decile_score v_score_text
"""
PUBLISHER_NAMES = """
id name first last compas_screening_date sex dob age age_cat race juv_fel_count decile_score
juv_misd_count juv_other_count priors_count days_b_screening_arrest c_jail_in c_jail_out
c_case_number c_offense_date c_arrest_date c_days_from_compas c_charge_degree c_charge_desc is_recid
r_case_number r_charge_degree r_days_from_arrest r_offense_date r_charge_desc r_jail_in r_jail_out
violent_recid is_violent_recid vr_case_number vr_charge_degree vr_offense_date vr_charge_desc
type_of_assessment decile_score score_text screening_date v_type_of_assessment v_decile_score
v_score_text v_screening_date in_custody out_custody priors_count start end event two_year_recid
"""
COLUMNS, PUBLISHER_HEADER = COLUMN_NAMES.split(), PUBLISHER_NAMES.split()

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / available()[0].local_path).is_file(),
    reason="EVENHAND_DATA names no folder with the COMPAS file",
)


@needs_data
def test_the_filter_leaves_the_rows_that_propublica_analysed() -> None:
    table = load_compas(backend="pandas")
    assert table.shape == (6172, 19)
    assert list(table.columns) == COLUMNS
    assert table["race"].value_counts().to_dict() == {
        "African-American": 3175,
        "Caucasian": 2103,
        "Hispanic": 509,
        "Other": 343,
        "Asian": 31,
        "Native American": 11,
    }
    rates = table.groupby("race")["two_year_recid"].mean()
    assert rates["African-American"] == pytest.approx(0.5231, abs=5e-5)
    assert rates["Caucasian"] == pytest.approx(0.3909, abs=5e-5)
    assert table["two_year_recid"].sum() == 2809
    assert table["days_b_screening_arrest"].abs().max() == 30


@needs_data
def test_unfiltered_has_every_row_with_its_gaps() -> None:
    table = load_compas(filtered=False, backend="polars")
    assert isinstance(table, pl.DataFrame)
    assert table.shape == (available()[0].rows, 19) == (7214, 19)
    missing = {name: table[name].null_count() for name in table.columns if table[name].null_count()}
    assert missing == {"days_b_screening_arrest": 307, "c_charge_desc": 29}
    assert table["days_b_screening_arrest"].dtype == pl.Int64
    assert table["id"].is_sorted()
    assert table["two_year_recid"].sum() == 3251


@needs_data
def test_false_positive_rates_are_those_of_propublica() -> None:
    """All 7,214 rows, medium or high against low: 44.85 % and 23.45 %, as ProPublica printed."""
    table = load_compas(filtered=False, backend="pandas")
    innocent = table[table["two_year_recid"] == 0]
    rates = (innocent["score_text"] != "Low").groupby(innocent["race"]).mean()
    assert rates["African-American"] == pytest.approx(0.4485, abs=5e-5)
    assert rates["Caucasian"] == pytest.approx(0.2345, abs=5e-5)


def person(**known: object) -> dict[str, object]:
    """An invented defendant who passes ProPublica's filter."""
    usual: dict[str, object] = dict.fromkeys(PUBLISHER_HEADER, "")
    usual |= {
        "name": 'joan "jo" doe, jr',
        "dob": "1900-01-01",
        "c_case_number": "00000001XX00A",
        "sex": "Female",
        "age": 30,
        "age_cat": "25 - 45",
        "race": "Other",
        "c_charge_degree": "F",
        "c_charge_desc": "Burglary, Unarmed",
        "score_text": "Low",
        "v_score_text": "Low",
    }
    usual |= dict.fromkeys([name for name, kind in compas._COLUMNS.items() if kind == "BIGINT"], 0)
    usual["age"] = 30
    return usual | known


def write_publisher_file(path: Path, people: list[dict[str, object]]) -> Path:
    """Write a file in the publisher's form: repeated column names, CRLF, quoted text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(PUBLISHER_HEADER)
        writer.writerows([one[name] for name in PUBLISHER_HEADER] for one in people)
    return path


PEOPLE = [
    person(id=1),
    person(id=2, days_b_screening_arrest=-30, two_year_recid=1),
    person(id=3, days_b_screening_arrest=31),
    person(id=4, days_b_screening_arrest=""),
    person(id=5, is_recid=-1),
    person(id=6, c_charge_degree="O"),
    person(id=7, score_text="N/A"),
    person(id=8, c_charge_desc=""),
]


@pytest.fixture
def publisher_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = write_publisher_file(tmp_path / "odd [folder] *" / "compas.csv", PEOPLE)
    monkeypatch.setattr(compas, "fetch", lambda _: path)
    return path


def test_the_publishers_file_gives_the_same_columns_and_no_names(publisher_file: Path) -> None:
    table = load_compas(filtered=False, backend="pandas")
    assert list(table.columns) == COLUMNS
    assert table["id"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    text = table.to_csv()
    assert "doe" not in text
    assert "1900" not in text
    assert "00000001XX00A" not in text


def test_each_rule_of_the_filter(publisher_file: Path) -> None:
    table = load_compas(backend="pandas")
    assert table["id"].tolist() == [1, 2, 8]
    assert table["c_charge_desc"].isna().tolist() == [False, False, True]
    assert table["c_charge_desc"][0] == "Burglary, Unarmed"
    assert pd.api.types.is_integer_dtype(table["days_b_screening_arrest"])


def test_text_that_looks_like_a_gap_stays_text(publisher_file: Path) -> None:
    table = load_compas(filtered=False, backend="polars")
    assert table["score_text"].to_list()[6] == "N/A"
    assert table["days_b_screening_arrest"].to_list()[3] is None
