"""`evenhand init`: what it proposes, and that what it writes runs."""

from __future__ import annotations

import json
import math
import random
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.init import cut_points, is_risk, propose, words
from evenhand.table.profile import ColumnProfile, profile

Cli = Callable[..., subprocess.CompletedProcess[str]]
Columns = dict[str, list[Any]]

DRAW = random.Random(3)  # noqa: S311
N = 120


def pick(*values: Any) -> list[Any]:
    return [DRAW.choice(values) for _ in range(N)]


COMPAS: Columns = {
    "id": list(range(N)),
    "sex": pick("Male", "Female"),
    "age": [DRAW.randint(18, 80) for _ in range(N)],
    "race": pick("African-American", "Caucasian", None),
    "decile_score": pick(*range(1, 11)),
    "two_year_recid": pick(0, 1),
}
DECISIONS: Columns = {"gender": pick("F", "M"), "approved": pick("Yes", "No"), "city": pick("x", "y", "z")}
WIDE: Columns = {
    "group": pick("u", "v"),
    "Risk Score": [DRAW.uniform(-3.123456789012345, 1234567.123456) for _ in range(N)],
    "label": pick(True, False),
    "sample weight": [DRAW.uniform(0.5, 2) for _ in range(N)],
}
GAPS: Columns = {"ethnicity": pick("A", "B"), "label": pick(1, 0, None), "model.pred": pick(0.1, 0.5, 0.7, None)}


def write_csv(path: Path, columns: Columns, mark: str = ",") -> None:
    lines = [mark.join(columns)]
    lines += [mark.join("" if v is None else str(v) for v in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(cli: Cli, *arguments: object) -> dict[str, Any]:
    done = cli("init", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Wrote audit.toml\n  id")
    assert done.stdout.endswith("Check these roles, then: evenhand audit audit.toml\n")
    return tomllib.loads(Path("audit.toml").read_text(encoding="utf-8"))


def runs(cli: Cli) -> dict[str, Any]:
    """Run what was written, with fewer resamples."""
    path = Path("audit.toml")
    path.write_text(
        path.read_text(encoding="utf-8").replace("[parity]", "[parity]\nresamples = 100\nmetrics = ['selection_rate']"),
        encoding="utf-8",
    )
    done = cli("audit", "audit.toml", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def test_households(cli: Cli, place: Path) -> None:
    households = eh.datasets.make_households(150, seed=1)
    households.to_csv("households.csv", index=False)
    data = init(cli, "households.csv")["data"]
    assert (data["id"], data["outcome"], data["favourable"]) == ("household", "missed_payment", "not_selected")
    assert data["groups"][:2] == ["race", "sex"]
    assert data["groups"][-1] == ["race", "sex"]
    assert set(data["predictions"]) == {"risk_xgboost", "risk_logistic", "risk_random_forest"}
    runs(cli)


def test_compas(cli: Cli, place: Path) -> None:
    write_csv(place / "compas.csv", COMPAS)
    data = init(cli, "compas.csv")["data"]
    assert data == {
        "source": "compas.csv",
        "id": "id",
        "outcome": "two_year_recid",
        "groups": ["sex", "age", "race", ["sex", "age"]],
        "cuts": {"age": [25, 45, 65]},
        "favourable": "not_selected",
        "missing": "error",
        "predictions": {
            "decile_score": {"column": "decile_score", "kind": "score", "range": [1, 10], "threshold": 5.5},
        },
    }
    assert runs(cli)["data"]["rows_used"] == N


def test_decisions_only(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS)
    data = init(cli, "d.csv")["data"]
    assert data["predictions"] == {"approved": {"column": "approved", "kind": "decision"}}
    assert data["groups"] == ["gender"]
    assert "outcome" not in data
    assert runs(cli)["data"]["rows_used"] == N


def test_numbers_keep_their_digits(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", WIDE)
    data = init(cli, "d.csv")["data"]
    scores = WIDE["Risk Score"]
    assert data["predictions"]["Risk Score"]["range"] == [min(scores), max(scores)]
    assert data["weight"] == "sample weight"
    assert runs(cli)["data"]["rows_used"] == N


def test_missing_values_and_dots_in_names(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", GAPS)
    data = init(cli, "d.csv")["data"]
    assert (data["missing"], data["outcome"]) == ("drop", "label")
    assert list(data["predictions"]) == ["model.pred"]
    assert runs(cli)["data"]["rows_dropped"] > 0


def test_decimal_commas_and_encoding(cli: Cli, place: Path) -> None:
    text = "race;risk\n" + "".join(f"{'aé'[i % 2]};0,{i % 10}\n" for i in range(N))
    (place / "d.csv").write_bytes(text.encode("latin-1"))
    assert cli("init", "d.csv").returncode == 2
    data = init(cli, "d.csv", "--decimal", ",", "--encoding", "latin-1")["data"]
    assert (data["decimal"], data["encoding"]) == (",", "latin-1")
    assert runs(cli)["data"]["rows_used"] == N


def test_names_that_need_quoting(cli: Cli, place: Path) -> None:
    columns = {'race "x" # 1': pick("a", "b"), "risk\\score = []": pick(0.25, 0.5, 0.75), "späße 🙂": pick(1, 2)}
    write_csv(place / "da ta.csv", {name.replace('"', "'"): values for name, values in columns.items()})
    data = init(cli, "da ta.csv")["data"]
    assert data["groups"] == ["race 'x' # 1"]
    assert list(data["predictions"]) == ["risk\\score = []"]
    runs(cli)


def test_the_source_is_seen_from_the_toml(cli: Cli, place: Path) -> None:
    (place / "data").mkdir()
    write_csv(place / "data/d 1.csv", DECISIONS)
    done = cli("init", "data/d 1.csv", "-o", "deep/er/audit.toml")
    assert done.returncode == 0
    assert tomllib.loads((place / "deep/er/audit.toml").read_text())["data"]["source"] == "../../data/d 1.csv"
    assert cli("audit", "deep/er/audit.toml", "-q").returncode == 0


def test_a_pattern(cli: Cli, place: Path) -> None:
    for name in ("p1.csv", "p2.csv"):
        write_csv(place / name, DECISIONS)
    assert init(cli, "p*.csv")["data"]["source"] == "p*.csv"
    assert runs(cli)["data"]["rows_used"] == 2 * N


# What it refuses ------------------------------------------------------------------------------------------


def test_an_existing_file_is_kept(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS)
    (place / "audit.toml").write_text("mine")
    done = cli("init", "d.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: 'audit.toml' exists already; give --force to overwrite it, or another name with --out.\n"
    )
    assert (place / "audit.toml").read_text() == "mine"
    assert cli("init", "d.csv", "--force").returncode == 0
    assert (place / "audit.toml").read_text() != "mine"


@pytest.mark.parametrize(
    ("columns", "lacking"),
    [
        (
            {"name": [f"n{i}" for i in range(N)], "note": [f"text {i}" for i in range(N)]},
            "a score or a decision, or like a group",
        ),
        ({"race": pick("a", "b"), "note": [f"text {i}" for i in range(N)]}, "a score or a decision"),
        ({"risk": [i / N for i in range(N)], "note": [f"text {i}" for i in range(N)]}, "a group"),
    ],
)
def test_tables_without_roles(cli: Cli, place: Path, columns: Columns, lacking: str) -> None:
    write_csv(place / "d.csv", columns)
    done = cli("init", "d.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: no column of 'd.csv' looks like {lacking}; name the columns yourself, for example: "
        f"evenhand audit d.csv --groups COLUMN --scores COLUMN (columns: {', '.join(columns)})\n"
    )
    assert not (place / "audit.toml").exists()


def test_bad_files(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS)
    (place / "empty.csv").write_text("gender,approved\n")
    for arguments, message in {
        ("no.csv",): "there is no file 'no.csv'",
        ("empty.csv",): "the data has no rows.",
        ("d.csv", "--decimal", "x"): "`decimal` in the options of the command: input should be '.' or ','; got 'x'.",
        ("d.csv", "-o", "d.csv/audit.toml"): "'d.csv/audit.toml' cannot be written: ",
    }.items():
        done = cli("init", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


# Guessing -------------------------------------------------------------------------------------------------


def test_an_age_in_bands_wins_over_the_age() -> None:
    columns = {"age": list(range(20, 70)), "age_group": ["young", "old"] * 25, "risk": [i / 50 for i in range(50)]}
    assert [column.name for column in propose(profile(columns)).groups] == ["age_group"]


def test_text_columns_stand_in_for_groups() -> None:
    columns = {"kind": ["a", "b"] * 10, "approved": [1, 0] * 10, "day": ["2020-01-01", "2020-01-02"] * 10}
    assert [column.name for column in propose(profile(columns)).groups] == ["kind", "day"]


def test_infinite_numbers_are_no_scores() -> None:
    columns = {"race": ["a", "b"] * 10, "risk": [0.1, 0.2, 0.3, math.inf] * 5, "flag": [1, 0] * 10}
    found = propose(profile(columns))
    assert found.scores == []
    assert [column.name for column in found.decisions] == ["flag"]


def test_cut_points() -> None:
    def number(name: str, low: float, high: float, distinct: int = 50) -> ColumnProfile:
        return ColumnProfile(name, "whole", 100, 0, distinct, low, high, ())

    assert cut_points(number("age", 18, 90)) == [25, 45, 65]
    assert cut_points(number("age", 30, 60)) == [45]
    assert cut_points(number("income", 0, 1000)) == [250, 500, 750]
    assert cut_points(number("district", 1, 9, distinct=9)) is None
    assert cut_points(number("flat", 5, 5)) is None


def test_words_of_a_name() -> None:
    assert words("riskScore_XGB 2") == ["risk", "score", "xgb", "2"]
    assert is_risk(["default_flag"])
    assert not is_risk(["approved"])
