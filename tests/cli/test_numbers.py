"""Salaries and other numbers on the command line, in `evenhand init` and on the front page."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest

Cli: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    sex = np.array(["women", "men"] * 200)
    salary = rng.lognormal(10.5, 0.4, 400).round() + np.where(sex == "men", 12_000, 0)
    data = pd.DataFrame({"sex": sex, "salary": salary})
    data.to_csv(tmp_path / "staff.csv", index=False)
    data.assign(predicted=salary + rng.normal(0, 4_000, 400).round()).to_csv(tmp_path / "model.csv", index=False)
    return tmp_path


def front(place: Path) -> str:
    return (place / "out" / "report.html").read_text().partition('id="findings"')[0]


def test_salary_by_sex_in_one_line(cli: Cli, place: Path) -> None:
    done = cli("audit", "staff.csv", "--numbers", "salary", "--groups", "sex", "--out", "out")
    assert done.returncode == 0
    assert "By sex, the median of salary is" in " ".join(done.stdout.split())
    assert "Groups differ." in front(place)
    for wrong in ("selects", "improvability", "Positive outcome", "percentage points"):
        assert wrong not in front(place)


def test_errors_of_predictions_have_limits(cli: Cli, place: Path) -> None:
    command = ("audit", "model.csv", "--numbers", "predicted", "--outcome", "salary", "--groups", "sex", "--out", "out")
    done = cli(*command, "--tolerance", "3000", "--require", "mae<=3000", "--check")
    assert done.returncode == 0
    assert "Meets  at most 3000" in done.stdout
    assert cli(*command, "--require", "mean>=0.99", "--check").returncode == 1


@pytest.mark.parametrize("wrong", [("--outcome", "salary", "--decisions", "sex"), ("--decisions", "salary")])
def test_a_number_in_another_role_names_the_choice(cli: Cli, place: Path, wrong: tuple[str, ...]) -> None:
    assert "for a number such as a salary" in cli("audit", "staff.csv", "--groups", "sex", *wrong).stderr
    assert "--numbers" in cli("audit", "staff.csv", "--groups", "sex", *wrong).stderr


def test_init_recognises_a_number_and_leaves_the_choice_open(cli: Cli, place: Path) -> None:
    cli("init", "staff.csv", "--yes")
    toml = (place / "audit.toml").read_text()
    assert tomllib.loads(toml)["data"]["predictions"] == ""
    kept = (line for line in toml.splitlines() if not line.startswith("predictions = "))
    marks = ("# [data.pred", '# column = "salary"', "# kind =")
    (place / "audit.toml").write_text(
        "\n".join(line.removeprefix("# ") if line.startswith(marks) else line for line in kept)
    )
    data = tomllib.loads((place / "audit.toml").read_text())["data"]
    assert data["predictions"] == {"salary": {"column": "salary", "kind": "number"}}
    assert cli("audit", "audit.toml", "--out", "out").returncode == 0


def test_init_asks_whether_a_number_is_compared(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["sex", "salary", "y", "-", "good", "employees", ""])
    monkeypatch.setattr("evenhand.cli.init._is_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    asked = " ".join(cli("init", "staff.csv").stdout.split())
    assert "could be: salary" in asked
    assert "Is a higher salary good or bad for a person?" in asked
    data = tomllib.loads((place / "audit.toml").read_text())["data"]
    assert data["predictions"] == {"salary": {"column": "salary", "kind": "number"}}
    assert (data["favourable"], data["people"]) == ("higher", "employees")


def test_init_takes_numbers_that_are_given(cli: Cli, place: Path) -> None:
    cli("init", "model.csv", "--yes", "--numbers", "predicted", "--outcome", "salary", "--favourable", "higher")
    data = tomllib.loads((place / "audit.toml").read_text())["data"]
    assert data["outcome_kind"] == "number"
    assert data["favourable"] == "higher"
    assert cli("audit", "audit.toml", "--out", "out").returncode == 0
    assert "holds no numbers" in cli("init", "model.csv", "--yes", "--force", "--numbers", "sex").stderr
