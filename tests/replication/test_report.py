"""The report of the replication: what needs no outside data runs everywhere, and nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.datasets.registry import CACHE_VARIABLE, DATA_VARIABLE
from evenhand.errors import ConfigError
from evenhand.replication import PAPERS, replicate
from evenhand.replication.records import PrintedLine, published


@pytest.fixture
def nothing_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


@pytest.mark.usefixtures("nothing_at_hand")
def test_without_data_every_paper_has_a_chapter_and_says_what_waits(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as done:
        main(["replicate", "--out", str(tmp_path / "out"), "--quiet"])
    assert done.value.code == 0
    written = json.loads((tmp_path / "out" / "replication.json").read_text())
    assert [paper["paper"] for paper in written["papers"]] == list(PAPERS)
    for paper in written["papers"]:
        assert paper["missing"]
        assert paper["errata"]
        assert all({"item", "reason", "loader"} == set(item) for item in paper["missing"])
    assert sum(len(paper["lines"]) for paper in written["papers"]) == 38
    page = (tmp_path / "out" / "replication.html").read_text()
    assert "What cannot be had here" in page
    assert "Appendix: errata" in page
    assert "<script" not in page


@pytest.mark.usefixtures("nothing_at_hand")
def test_one_paper_can_be_asked_for() -> None:
    assert [chapter.name for chapter in replicate(["effort"]).chapters] == ["effort"]


def test_a_paper_or_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'effort'"):
        replicate(["efort"])
    with pytest.raises(ConfigError, match="no such folder"):
        replicate(data="no/such/folder")


def test_a_range_agrees_within_its_ends_and_the_tolerance() -> None:
    line = PrintedLine(item="Table 3", what="value", printed=7.17, ours=7.65, tolerance=0.02, printed_high=7.64)
    assert line.difference == pytest.approx(0.01)
    assert line.agrees
    assert not PrintedLine(
        item="Table 3", what="value", printed=7.17, ours=7.1, tolerance=0.02, printed_high=7.64
    ).agrees


def test_one_row_of_the_printed_tables_contradicts_itself() -> None:
    """Of the 30 gaps of tables 1, 3 and 4 only that of table 1, iteration 1, is not the difference beside it."""
    printed = published()["improvability_paper"]
    wrong = [
        (table, number, side)
        for table in ("table1_linear", "table3_lasso", "table4_random_forest")
        for number, split in enumerate(printed[table], 1)
        for side in (0, 1)
        if abs(abs(split["black"][side] - split["white"][side]) - split["unfairness"][side]) > 0.0101
    ]
    assert wrong == [("table1_linear", 1, 0)]
