"""Dressel and Farid's critics: known figures, the form of the authors' files, and nothing made up."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from evenhand.datasets import available, compas, load_dressel_farid
from evenhand.errors import DataError

COLUMNS = [
    "condition",
    "critic",
    "case",
    "block",
    "race",
    "sex",
    "age",
    "decile_score",
    "compas_decision",
    "prediction",
    "disagrees",
    "two_year_recid",
]
NAMES = ("dressel_farid_cases", "dressel_farid_no_race", "dressel_farid_race")

folder = Path(os.environ.get("EVENHAND_DATA") or "/nonexistent")
needs_data = pytest.mark.skipif(
    not all((folder / data.local_path).is_file() for data in available() if data.name in NAMES),
    reason="EVENHAND_DATA names no folder with the files of Dressel and Farid",
)


@needs_data
def test_shape_and_design() -> None:
    table = load_dressel_farid(backend="pandas")
    assert list(table.columns) == COLUMNS
    assert len(table) == 40_000
    assert not table.isna().to_numpy().any()
    assert table.groupby("condition")["critic"].nunique().to_dict() == {"no_race": 400, "race": 400}
    assert table["critic"].nunique() == 800
    assert (table.groupby(["condition", "critic"]).size() == 50).all()
    assert (table.groupby(["condition", "case"]).size() == 20).all()
    assert (table.groupby("critic")["block"].nunique() == 1).all()
    assert set(table["race"]) == {"White", "Black", "Hispanic", "Asian", "Native American"}
    assert set(table["sex"]) == {"Male", "Female"}
    assert not table.duplicated(["condition", "critic", "case"]).any()


@needs_data
@pytest.mark.replication
def test_the_accuracies_of_the_article() -> None:
    """Critics are right in 62.1 and 62.3 % of cases on average, in 64.0 % in the median; COMPAS in 65.2 %."""
    table = load_dressel_farid(backend="pandas")
    correct = (table["prediction"] == table["two_year_recid"]).groupby([table["condition"], table["critic"]]).mean()
    means, medians = correct.groupby("condition").mean(), correct.groupby("condition").median()
    assert means.round(3).to_dict() == {"no_race": 0.621, "race": 0.623}
    assert medians.round(3).to_dict() == {"no_race": 0.64, "race": 0.64}
    cases = table.drop_duplicates("case")
    assert (cases["compas_decision"] == cases["two_year_recid"]).mean() == pytest.approx(0.652)
    votes = table.groupby(["condition", "case"])[["prediction", "two_year_recid"]].mean()
    # The crowd: ten votes of twenty are a tie, and count as no.
    right = ((votes["prediction"] > 0.5) == (votes["two_year_recid"] == 1)).groupby("condition").mean()
    assert right["no_race"] == pytest.approx(0.67, abs=0.015)
    assert right["race"] == pytest.approx(0.665, abs=0.015)


@needs_data
def test_disagreement_with_compas() -> None:
    table = load_dressel_farid(backend="polars")
    assert isinstance(table, pl.DataFrame)
    shares = dict(table.group_by("condition").agg(pl.col("disagrees").mean()).iter_rows())
    assert shares["race"] == pytest.approx(0.352, abs=5e-4)
    assert (table["disagrees"] == (table["prediction"] != table["compas_decision"])).all()
    assert (table["compas_decision"] == (table["decile_score"] > 4)).all()


CASES = """block_num,id,race,sex,age,charge_degree (misd/fel),compas_decile_score,two_year_recid
1,11,1,0,30,1,4,0
1,12,2,1,41,0,5,1
2,13,6,0,22,1,9,0
"""
MARKS = {
    "no_race": "Correct is 1,,,\n,,,\nid,901,902,\n11,1,,\n12,-1,,\n13,,1,\n,,,\n",
    "race": "id,801\n12,1\n13,-1\n11,1\n",
}


@pytest.fixture
def authors_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Files in the authors' form: old line ends, a line above the header, empty rows and columns; one compressed."""
    paths = {"dressel_farid_cases": tmp_path / "cases.csv"}
    paths["dressel_farid_cases"].write_bytes(CASES.replace("\n", "\r").encode("latin-1"))
    for condition, text in MARKS.items():
        paths[f"dressel_farid_{condition}"] = tmp_path / f"{condition}.csv"
        paths[f"dressel_farid_{condition}"].write_bytes(text.replace("\n", "\r").encode("latin-1"))
    packed = tmp_path / "race.csv.gz"
    packed.write_bytes(gzip.compress(MARKS["race"].encode()))
    paths["dressel_farid_race"] = packed
    monkeypatch.setattr(compas, "fetch", lambda name: paths[name])
    return tmp_path


def test_the_authors_files_are_read(authors_files: Path) -> None:
    table = load_dressel_farid(backend="pandas")
    found = table[["condition", "critic", "case", "prediction", "disagrees"]].to_numpy().tolist()
    assert found == [
        ["no_race", 901, 11, 0, 0],  # right: not arrested again, as COMPAS said
        ["no_race", 901, 12, 0, 1],  # wrong: arrested again, as COMPAS said
        ["no_race", 902, 13, 0, 1],  # right, against COMPAS
        ["race", 801, 12, 1, 0],
        ["race", 801, 13, 1, 0],
        ["race", 801, 11, 0, 0],
    ]
    assert table["race"].tolist() == ["White", "Black", "Other", "Black", "Other", "White"]
    assert table["block"].tolist() == [1, 1, 2, 1, 2, 1]
    assert pd.api.types.is_integer_dtype(table["age"])


def test_a_file_without_a_header_is_refused(authors_files: Path) -> None:
    (authors_files / "cases.csv").write_text("number,race\n1,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="has no column `id`"):
        load_dressel_farid()
