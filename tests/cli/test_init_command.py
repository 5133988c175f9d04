"""`evenhand init`: what it takes for certain, what it asks, and that what it writes runs or is refused by name."""

from __future__ import annotations

import json
import random
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import init as command
from evenhand.cli.proposal import Proposal, cut_points, has_role_word, propose
from evenhand.table.profile import ColumnProfile, look, words

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
BARE: Columns = {"female": pick(0, 1), "north": pick(0, 1), "wage": [DRAW.uniform(1, 9) for _ in range(N)]}


def write_csv(path: Path, columns: Columns, mark: str = ",", encoding: str = "utf-8") -> None:
    lines = [mark.join(columns)]
    lines += [mark.join("" if v is None else str(v) for v in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(cli: Cli, *arguments: object) -> tuple[dict[str, Any], str]:
    done = cli("init", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return tomllib.loads(Path("audit.toml").read_text(encoding="utf-8")), done.stdout


def runs() -> dict[str, Any]:
    """Run what was written, with fewer resamples."""
    path = Path("audit.toml")
    path.write_text(
        path.read_text(encoding="utf-8").replace("[parity]", "[parity]\nresamples = 100\nmetrics = ['selection_rate']"),
        encoding="utf-8",
    )
    results: dict[str, Any] = json.loads(eh.audit("audit.toml").to_json())
    return results


def refused(cli: Cli) -> str:
    done = cli("audit", "audit.toml")
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


# What is certain ------------------------------------------------------------------------------------------


def test_names_and_values_that_fit_one_role(cli: Cli, place: Path) -> None:
    eh.datasets.make_households(150, seed=1).to_csv("households.csv", index=False)
    raw, said = init(cli, "households.csv")
    data = raw["data"]
    assert (data["id"], data["outcome"]) == ("household", "missed_payment")
    assert data["groups"] == ["race", "sex", "age_group"]
    assert set(data["predictions"]) == {"risk_xgboost", "risk_logistic", "risk_random_forest"}
    assert "favourable" not in data
    assert "favourable  not said" in said
    assert said.endswith("Check these roles, then: evenhand audit audit.toml\n")
    text = Path("audit.toml").read_text(encoding="utf-8")
    assert '# trajectory = ["income_' in text


def test_a_score_of_another_range_leaves_range_and_threshold_open(cli: Cli, place: Path) -> None:
    write_csv(place / "compas.csv", COMPAS)
    raw, said = init(cli, "compas.csv")
    assert raw["data"] == {
        "source": "compas.csv",
        "id": "id",
        "outcome": "two_year_recid",
        "groups": ["sex", "age", "race"],
        "cuts": {"age": [25, 45, 65]},
        "predictions": {"decile_score": {"column": "decile_score", "kind": "score", "range": "", "threshold": ""}},
    }
    assert "`range` in [data.predictions.decile_score], `threshold` in [data.predictions.decile_score]" in said
    assert refused(cli) == (
        "Error: 'audit.toml' leaves open `range` in [data.predictions.decile_score], `threshold` in "
        "[data.predictions.decile_score]; fill it in, or remove the line if you can do without it.\n"
    )
    path = place / "audit.toml"
    text = path.read_text().replace('range = ""', "range = [1, 10]").replace('threshold = ""', "threshold = 4")
    path.write_text(text)
    assert runs()["data"]["rows_used"] == N


def test_a_decision_by_its_name(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS)
    data = init(cli, "d.csv")[0]["data"]
    assert data == {
        "source": "d.csv",
        "groups": ["gender"],
        "predictions": {"approved": {"column": "approved", "kind": "decision"}},
    }
    assert runs()["data"]["rows_used"] == N


# What is a question ---------------------------------------------------------------------------------------


def test_a_bare_0_1_column_is_never_taken(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", BARE)
    raw, said = init(cli, "d.csv")
    assert raw["data"] == {"source": "d.csv", "groups": ["female"], "predictions": ""}
    assert said.endswith("Fill in what is open (`predictions` in [data]), then: evenhand audit audit.toml\n")
    assert refused(cli).startswith("Error: 'audit.toml' leaves open `predictions` in [data]; fill it in")


def test_two_decisions_are_a_question(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"black": pick(0, 1), "approve": pick(0, 1), "reject": pick(0, 1)})
    raw, said = init(cli, "d.csv")
    assert raw["data"]["predictions"] == ""
    assert "decisions   open (approve, reject?)" in said


def test_an_outcome_by_a_weak_name_is_a_question(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS | {"employed": pick(0, 1)})
    raw, said = init(cli, "d.csv")
    assert raw["data"]["outcome"] == ""
    assert "outcome     open (employed?)" in said
    assert "leaves open `outcome` in [data]" in refused(cli)


def test_a_table_without_any_role_gets_a_file_of_questions(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"name": [f"n{i}" for i in range(N)], "note": [f"text {i}" for i in range(N)]})
    raw, _ = init(cli, "d.csv")
    assert raw["data"] == {"source": "d.csv", "groups": [""], "predictions": ""}
    assert "leaves open `groups` in [data], `predictions` in [data]" in refused(cli)


def test_all_columns_are_shown(cli: Cli, place: Path) -> None:
    many = {f"column{i}": pick(1, 2, 3) for i in range(75)}
    write_csv(place / "d.csv", DECISIONS | many)
    said = init(cli, "d.csv")[1]
    assert "78 columns, 120 rows looked at:" in said
    assert all(f" {name} " in f" {' '.join(said.split())} " for name in many)
    assert len(said.splitlines()) < 40


def test_rows_that_lack_a_decision_are_told_not_dropped(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"sex": pick("f", "m"), "hired": pick(1, 0, None)})
    raw, said = init(cli, "d.csv")
    assert "missing" not in raw["data"]
    assert 'missing     some rows lack hired: an audit stops there, unless missing = "drop" is set' in said


# Flags ----------------------------------------------------------------------------------------------------


def test_flags_give_roles(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", BARE | {"outcome": pick(0, 1), "who": list(range(N)), "p": pick(0.1, 0.2, 0.9)})
    flags = ["--groups", "female,north", "--groups", "female+north", "--scores", "p", "--outcome", "outcome"]
    raw, said = init(cli, "d.csv", *flags, "--id", "who", "--favourable", "selected")
    assert raw["data"] == {
        "source": "d.csv",
        "id": "who",
        "outcome": "outcome",
        "groups": ["female", "north", ["female", "north"]],
        "favourable": "selected",
        "predictions": {"p": {"column": "p", "kind": "score"}},
    }
    assert "favourable" not in said
    assert runs()["data"]["rows_used"] == N


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--groups", "femal"], "--groups got 'femal', which is not in the data; did you mean 'female'?"),
        (["--decisions", "north,nrth"], "--decisions got 'nrth', which is not in the data; did you mean 'north'?"),
        (
            ["--favourable", "good"],
            "--favourable got 'good'; known names: 'selected', 'not_selected', 'higher', 'lower'",
        ),
        (["--decisions", "wage", "--scores", "wage"], "--scores 'wage' is among --decisions, too; name it once."),
        (["--scores", "city"], "--scores 'city' holds no numbers; give it as --decisions, or convert it."),
        (["--outcome", "one"], "--outcome 'one' is 1 in every row; an outcome has two values: name another column."),
        (["--decimal", "x"], "--decimal: must be '.' or ','; got 'x'."),
    ],
)
def test_flags_that_cannot_be(cli: Cli, place: Path, flags: list[str], message: str) -> None:
    write_csv(place / "d.csv", BARE | {"city": pick("x", "y"), "one": [1] * N})
    done = cli("init", "d.csv", *flags)
    assert done.returncode == 2
    assert done.stderr == f"Error: {message}\n"
    assert not (place / "audit.toml").exists()


def test_a_decision_in_words_asks_which_is_selected(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"sex": pick("f", "m"), "decision": pick("granted", "refused")})
    raw, _ = init(cli, "d.csv", "--decisions", "decision")
    assert raw["data"]["predictions"]["decision"]["selected"] == ""
    text = (place / "audit.toml").read_text()
    assert "open: the value of decision that counts; it holds" in text


# What the file is like ------------------------------------------------------------------------------------


def test_semicolons_decimal_commas_and_encodings_are_found_and_told(cli: Cli, place: Path) -> None:
    text = "race;risk\n" + "".join(f"{'aé'[i % 2]};0,{i % 10}\n" for i in range(N))
    (place / "d.csv").write_bytes(text.encode("latin-1"))
    raw, said = init(cli, "d.csv")
    assert raw["data"]["decimal"] == ","
    assert list(raw["data"]["predictions"]) == ["risk"]
    for told in ("it was read as latin-1", "separated by ';'", "decimal commas (risk)"):
        assert told in said
    assert runs()["data"]["rows_used"] == N


def test_words_for_missing_among_numbers_are_told(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"race": pick("a", "b"), "risk": [0.5, "N/A", 0.25] * (N // 3)})
    raw, said = init(cli, "d.csv")
    assert raw["data"]["missing_values"] == ["", "N/A"]
    assert "'N/A' among numbers (risk) is read as missing." in said


def test_percent_scores_are_told(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", {"race": pick("a", "b"), "risk": pick(12, 55, 99.5)})
    raw, said = init(cli, "d.csv")
    told = {"column": "risk", "kind": "score", "range": [0, 100], "threshold": ""}
    assert raw["data"]["predictions"] == {"risk": told}
    assert "risk runs from 12 to 99.5: percent? Its range would be [0, 100]." in said
    assert "  scores      risk\n" in said
    assert "`threshold` in [data.predictions.risk]" in said


def test_a_bare_score_in_percent_is_asked_for_as_a_score(cli: Cli, place: Path) -> None:
    """It may be that of an examination; but it is no decision, and is not asked for as one."""
    write_csv(place / "d.csv", {"race": pick("a", "b"), "score": pick(12, 55, 99.5)})
    raw, said = init(cli, "d.csv")
    assert raw["data"]["predictions"] == ""
    assert "  scores      open (score?)\n" in said
    assert "  decisions   none found\n" in said
    write_csv(place / "d.csv", {"race": pick("a", "b"), "match_score_pct": pick(12, 55, 99.5)})
    assert list(init(cli, "d.csv", "--force")[0]["data"]["predictions"]) == ["match_score_pct"]


def test_a_column_in_percent_beside_a_decision_is_offered_in_the_file(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS | {"risk": pick(12, 55, 99.5)})
    raw, _ = init(cli, "d.csv")
    assert "risk" not in raw["data"]["predictions"]
    offered = (place / "audit.toml").read_text(encoding="utf-8").split("# risk runs from 12 to 99.5.")[1]
    uncommented = tomllib.loads("\n".join(line.removeprefix("# ") for line in offered.splitlines()[1:6]))
    assert uncommented["data"]["predictions"]["risk"]["range"] == [0, 100]


def test_what_is_odd_about_a_column_is_told(cli: Cli, place: Path) -> None:
    odd = {"race": pick("a ", "b", "a"), "repaid": [1] * N, "score": [f"{i}.5%" for i in range(N)]}
    write_csv(place / "d.csv", DECISIONS | odd)
    said = init(cli, "d.csv")[1]
    assert "race: blanks around values were trimmed (such as 'a ')." in said
    assert "repaid is 1 in every row: there is nothing to compare in it." in said
    assert "score is text, with percent signs" in said


@pytest.mark.parametrize("name", ["d.xlsx", "d.csv", "d.dta", "d.sav", "d.feather"])
def test_files_of_other_programs(cli: Cli, place: Path, name: str) -> None:
    frame = pd.DataFrame({"sex": pick(1, 2), "approved": pick(0, 1)})
    if name.endswith((".dta", ".sav")):
        write = getattr(pytest.importorskip("pyreadstat"), f"write_{name[2:]}")
        write(frame, str(place / name), variable_value_labels={"sex": {1: "men", 2: "women"}})
    elif name == "d.feather":
        frame.to_feather(place / name)
    else:
        frame.to_excel(place / "made.xlsx", index=False, engine="xlsxwriter")
        (place / "made.xlsx").rename(place / name)
    raw, said = init(cli, name)
    assert (raw["data"]["groups"], list(raw["data"]["predictions"])) == (["sex"], ["approved"])
    assert ("by its contents it is .xlsx" in said) == (name == "d.csv")
    groups = {value["group"] for value in runs()["audits"]["parity"]["values"]}
    assert groups >= ({"men", "women"} if name.endswith((".dta", ".sav")) else {"sex = 1", "sex = 2"})


def test_a_repeated_id_is_told(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS | {"applicant_id": [i // 2 for i in range(N)]})
    raw, said = init(cli, "d.csv")
    assert "id" not in raw["data"]
    assert "applicant_id repeats (60 values in 120 rows): it is no id of a row; as `cluster` it says" in said


def test_a_long_table_is_offered_as_history(cli: Cli, place: Path) -> None:
    persons = [i // 4 for i in range(N)]
    write_csv(place / "d.csv", {"nr": persons, "year": [2001, 2002, 2003, 2004] * 30, "wage": pick(1.5, 2.5, 3.0)})
    raw, said = init(cli, "d.csv")
    assert raw["effort"]["history"] == {"source": "d.csv", "id": "nr", "time": "year", "value": ""}
    assert (raw["data"]["source"], raw["data"]["id"]) == ("", "nr")
    assert "A long table: nr has a row for each year." in said
    assert "`source` in [data]" in refused(cli)


def test_columns_over_years_become_a_proposed_effort_section() -> None:
    years = {f"income_{year}": list(range(50)) for year in (2019, 2020, 2022)}
    found = propose(look({"sex": ["f", "m"] * 25, **years}))
    assert found.panel == {"income_2019": 2019, "income_2020": 2020, "income_2022": 2022}


# Groups ---------------------------------------------------------------------------------------------------


def test_one_hot_columns_are_one_grouping(cli: Cli, place: Path) -> None:
    race = pick("black", "white", "asian")
    dummies = {f"race_{name}": [int(value == name) for value in race] for name in ("black", "white")}
    write_csv(place / "d.csv", {**dummies, "approved": pick(0, 1)})
    raw, said = init(cli, "d.csv")
    assert raw["data"]["groups"] == ["race"]
    assert raw["data"]["one_hot"] == {"race": ["race_black", "race_white"]}
    assert "Columns of 0 and 1 that are one grouping: race_black, race_white." in said
    groups = {record["group"] for record in runs()["audits"]["parity"]["values"]}
    assert {"black", "white", "none of these"} <= groups


def test_an_age_in_bands_wins_over_the_age() -> None:
    columns = {"age": list(range(20, 70)), "age_group": ["young", "old"] * 25, "risk": [i / 50 for i in range(50)]}
    assert propose(look(columns)).groups == ["age_group"]


@pytest.mark.parametrize(
    "name", ["sex", "Gender", "FEMALE", "nonwhite", "race_eth", "Âge", "Geschlecht", "género", "is_married", "hispan"]
)
def test_names_of_groups_in_several_languages_and_styles(name: str) -> None:
    assert has_role_word(name, "group")


def test_what_is_no_age_is_no_group() -> None:
    assert propose(look({"age": list(range(0, 500, 10)), "approved": [0, 1] * 25})).groups == []


def test_cut_points() -> None:
    def number(name: str, low: float, high: float, distinct: int = 50) -> ColumnProfile:
        return ColumnProfile(name=name, kind="whole", rows=100, distinct=distinct, low=low, high=high)

    assert cut_points(number("age", 18, 90)) == [25, 45, 65]
    assert cut_points(number("age", 30, 60)) == [45]
    assert cut_points(number("district", 1, 9, distinct=9)) is None


def test_words_of_a_name() -> None:
    assert words("riskScore_XGB 2") == ["risk", "score", "xgb", "2"]


# The file -------------------------------------------------------------------------------------------------


def test_numbers_keep_their_digits_and_names_their_marks(cli: Cli, place: Path) -> None:
    scores = [DRAW.uniform(-3.123456789012345, 1234567.123456) for _ in range(N)]
    columns = {"race 'x' # 1": pick("a", "b"), "Risk\\Score = []": scores, "späße 🙂": pick(1, 2)}
    write_csv(place / "da ta.csv", columns)
    raw, _ = init(cli, "da ta.csv", "--scores", "Risk\\Score = []")
    assert raw["data"]["groups"] == ["race 'x' # 1"]
    assert list(raw["data"]["predictions"]) == ["Risk\\Score = []"]
    assert f"seen: {min(scores)!r} to {max(scores)!r}" in (place / "audit.toml").read_text(encoding="utf-8")


def test_the_source_is_seen_from_the_toml(cli: Cli, place: Path) -> None:
    (place / "data").mkdir()
    write_csv(place / "data/d 1.csv", DECISIONS)
    assert cli("init", "data/d 1.csv", "-o", "deep/er/audit.toml").returncode == 0
    assert tomllib.loads((place / "deep/er/audit.toml").read_text())["data"]["source"] == "../../data/d 1.csv"


def test_a_pattern(cli: Cli, place: Path) -> None:
    for name in ("p1.csv", "p2.csv"):
        write_csv(place / name, DECISIONS)
    assert init(cli, "p*.csv")[0]["data"]["source"] == "p*.csv"
    assert runs()["data"]["rows_used"] == 2 * N


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


def test_bad_files(cli: Cli, place: Path) -> None:
    write_csv(place / "d.csv", DECISIONS)
    (place / "empty.csv").write_text("gender,approved\n")
    for arguments, message in {
        ("no.csv",): "there is no file 'no.csv'",
        ("empty.csv",): "the data has no rows.",
        ("d.csv", "-o", "d.csv/audit.toml"): "the folder 'd.csv' cannot be written to: ",
    }.items():
        done = cli("init", *arguments)
        assert done.returncode == 2
        assert message in done.stderr


# The dialogue ---------------------------------------------------------------------------------------------


class Person:
    """Somebody who answers the questions of a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str | BaseException) -> None:
        self.answers = list(answers)
        monkeypatch.setattr(command, "_is_terminal", lambda: True)
        monkeypatch.setattr("builtins.input", self.answer)

    def answer(self) -> str:
        said = self.answers.pop(0)
        if isinstance(said, BaseException):
            raise said
        return said


def test_a_dialogue_settles_every_role(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(place / "d.csv", BARE | {"risk": pick(1, 5, 10), "event": pick(0, 1)})
    names = "female = 1: women; female = 0: men"
    person = Person(
        monkeypatch, "", "rsk", "risk", "event", "1, 10", "4", "bad", "flags", "applicants", "female", names
    )
    raw, said = init(cli, "d.csv")
    assert person.answers == []
    assert "'rsk' is not in the data; did you mean 'risk'?" in said
    assert "write a name of the data, a colon and the name for readers" in said
    assert raw["report"] == {"names": {"female = 1": "women", "female = 0": "men"}}
    assert raw["data"] == {
        "source": "d.csv",
        "outcome": "event",
        "groups": ["female"],
        "favourable": "not_selected",
        "selected_word": "flags",
        "people": "applicants",
        "predictions": {"risk": {"column": "risk", "kind": "score", "range": [1, 10], "threshold": 4}},
    }
    assert runs()["data"]["rows_used"] == N


def test_yes_asks_nothing(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(place / "d.csv", BARE)
    Person(monkeypatch)
    assert init(cli, "d.csv", "--yes")[0]["data"]["predictions"] == ""


@pytest.mark.parametrize("leaving", [KeyboardInterrupt(), EOFError()])
def test_leaving_the_dialogue_leaves_nothing(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch, leaving: BaseException
) -> None:
    write_csv(place / "d.csv", BARE)
    Person(monkeypatch, "", leaving)
    done = cli("init", "d.csv")
    assert done.returncode == 130
    assert done.stderr.endswith("Stopped.\n")
    assert sorted(path.name for path in place.iterdir()) == ["d.csv"]


def test_what_a_flag_gave_is_not_asked(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(place / "d.csv", BARE)
    person = Person(monkeypatch, "-", "good", "", "", "")
    flags = ("--groups", "female", "--decisions", "north")
    raw, _ = init(cli, "d.csv", *flags)
    assert person.answers == []
    assert (raw["data"]["groups"], raw["data"]["favourable"]) == (["female"], "selected")
    assert "outcome" not in raw["data"]


def test_a_proposal_starts_empty() -> None:
    assert Proposal().used == set()


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb = 1", "a\x7f"])
def test_control_characters_in_names_stay_in_their_comment(cli: Cli, place: Path, name: str) -> None:
    columns = {name: pick(0, 1), "gender": pick("F", "M"), "approved": pick("Yes", "No")}
    pd.DataFrame(columns).to_csv("data.csv", index=False)
    settings, _ = init(cli, "data.csv", "--groups", "gender", "--decisions", "approved", "--yes")
    assert set(settings["data"]) <= {"source", "groups", "predictions", "outcome", "cuts"}
    settings, _ = init(cli, "data.csv", "--groups", "gender", "--decisions", name, "--yes", "--force")
    assert list(settings["data"]["predictions"]) == [name]
