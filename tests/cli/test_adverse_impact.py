"""The command `evenhand adverse-impact`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Cli: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

COUNTS = "sex,hired,applicants\nmen,48,80\nwomen,12,40\n"
EVENTS = """race,job,hired,rejected
White,clerk,40,40
Black,clerk,10,30
White,driver,20,60
Black,driver,3,37
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "events.csv").write_text(EVENTS)
    people = ["sex,hired"] + ["men,yes"] * 48 + ["men,no"] * 32 + ["women,yes"] * 12 + ["women,no"] * 28
    (tmp_path / "people.csv").write_text("\n".join(people))
    return tmp_path


def lines(cli: Cli, *words: str) -> list[list[str]]:
    """Return the words of the printed lines."""
    ran = cli("adverse-impact", *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    return [line.split() for line in ran.stdout.splitlines()]


def test_counts_and_people_give_the_same_page(cli: Cli, place: Path) -> None:
    of_counts, of_people = lines(cli, "counts.csv"), lines(cli, "people.csv", "--out", "other")
    assert of_counts[:4] == of_people[:4]
    assert of_counts[3] == ["women", "40", "12", "30.0%", "0.500", "-3.10", "0.003", "8.0", "no"]
    assert of_counts[5][:3] == ["Below", "four", "fifths"]
    assert "women" in (place / "out" / "report.html").read_text()


def test_named_columns_and_other_names(cli: Cli, place: Path) -> None:
    (place / "odd.csv").write_text(COUNTS.replace("sex,hired,applicants", "a,b,c"))
    named = lines(cli, "odd.csv", "--group", "a", "--selected", "b", "--total", "c")
    assert named[1:4] == lines(cli, "counts.csv", "--out", "x")[1:4]


def test_events_are_pooled(cli: Cli, place: Path) -> None:
    printed = lines(cli, "events.csv")
    pooled = printed[printed.index(["Pooled", "within", "job:"]) + 2]
    assert pooled[:4] == ["Black", "2", "13", "24.3"]
    assert "Mantel" in (place / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["counts.csv", "--group", "sx"], "--group got 'sx', which is not in the data; did you mean 'sex'?"),
        (["odd.csv"], "say which column holds the groups with --group"),
        (["odd.csv", "--group", "a"], "say which hold the numbers with --selected and --total"),
        (["wrong.csv"], "row 2 has more people selected (50) than in all (40)"),
        (["parts.csv"], "'hired' must hold numbers of people; got 0.5"),
        (["none.csv"], "there is no file 'none.csv'"),
    ],
)
def test_what_cannot_be_read_is_told(cli: Cli, place: Path, words: list[str], told: str) -> None:
    (place / "odd.csv").write_text("a,b,c,d\n1,2,3,4\n2,3,4,5\n")
    (place / "wrong.csv").write_text("sex,hired,total\nmen,48,80\nwomen,50,40\n")
    (place / "parts.csv").write_text("sex,hired,total\nmen,48,80\nwomen,0.5,40\n")
    ran = cli("adverse-impact", *words)
    assert ran.returncode == 2
    assert told in ran.stderr


def test_hostile_names_are_text(cli: Cli, place: Path) -> None:
    (place / "evil.csv").write_text("sex,hired,total\n<script>x</script>,48,80\n[red]b[/red],12,40\n")
    assert "[red]b[/red]" in cli("adverse-impact", "evil.csv").stdout
    assert "<script>x" not in (place / "out" / "report.html").read_text()


def test_a_higher_rate_of_a_group_too_small_to_be_compared_is_named(cli: Cli, place: Path) -> None:
    (place / "small.csv").write_text(f"{COUNTS}others,3,3\n")
    assert ["others."] in [line[-1:] for line in lines(cli, "small.csv") if line[:3] == ["Below", "four", "fifths"]]
    assert not any("Too" in line for line in lines(cli, "counts.csv"))
