"""Tables of counts on the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Cli: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

UCB = "Admit,Gender,Dept,Freq\n" + "\n".join(
    f"{admit},{gender},{dept},{n}"
    for dept, counts in {"A": (512, 313, 89, 19), "F": (22, 351, 24, 317)}.items()
    for (admit, gender), n in zip(
        [("Admitted", "Male"), ("Rejected", "Male"), ("Admitted", "Female"), ("Rejected", "Female")],
        counts,
        strict=True,
    )
)
DIRECT = ("audit", "ucb.csv", "--groups", "Gender", "--decisions", "Admit", "--selected", "Admitted", "--out", "out")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ucb.csv").write_text(UCB + "\n")
    return tmp_path


def test_an_audit_of_counts_is_of_people(cli: Cli, place: Path) -> None:
    told = cli(*DIRECT, "--count", "Freq").stdout
    assert "1,647 people" in told
    assert "looks like a number of people" not in told


def test_the_front_page_doubts_an_audit_of_the_rows_of_counts(cli: Cli, place: Path) -> None:
    cli(*DIRECT)
    front = (place / "out" / "report.html").read_text().partition('id="findings"')[0]
    assert "looks like a number of people" in front


def test_init_asks_for_a_count(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "how many people does a row stand for?" in " ".join(cli("init", "ucb.csv", "--yes").stdout.split())
    toml = (place / "audit.toml").read_text()
    assert '# count = "Freq"    # how many people a row stands for' in toml
