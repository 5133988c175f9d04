"""Bad input: one plain sentence each, which says what was wrong, where, and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError
from evenhand.run.auditing import audit

NUMBERS = {"outcome": "score", "capacity": 0.2, "utility": "calibration"}
OPTIONS: dict[str, Any] = {"status_quo": "old", "candidates": "new", "test": {"splits": 2}, "resamples": 200}


def people(n: int = 600, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y, old, new = rng.integers(0, 2, (3, n))
    return {
        "id": np.arange(n),
        "g": np.where(np.arange(n) % 2, "a", "b").astype(object),
        "y": y,
        "old": old,
        "new": y | new,
        "x": y + rng.standard_normal(n),
        "z": rng.standard_normal(n),
        "score": rng.random(n),
        "job": rng.choice(["nurse", "clerk"], n).astype(object),
    }


def run(data: dict[str, Any] | None = None, roles: dict[str, Any] | None = None, **options: Any) -> Any:
    table = eh.Table(data or people(), **{"id": "id", "outcome": "y", "groups": "g", **(roles or {})})
    return eh.improvability(table, **{**OPTIONS, **options})


def test_a_perfectly_fair_status_quo() -> None:
    data = people()
    with pytest.raises(
        DataError,
        match=r"in the training rows of split 1, the status quo has the same value of "
        r"classification in every group: it is perfectly fair there",
    ):
        run({**data, "old": data["y"]})


def test_a_candidate_that_selects_nobody_from_a_group() -> None:
    data = people()
    nobody = np.where(data["g"] == "a", 0, data["new"])
    with pytest.raises(
        DataError,
        match=r"in the test rows of split 1, candidate 'new', only 0 rows of group 'a' count "
        r"for calibration under the candidate .* needs at least 2",
    ):
        run({**data, "new": nobody}, utility="calibration")


def test_a_candidate_that_selects_nobody_from_a_group_is_told_where_the_measure_allows_it() -> None:
    data = people()
    result = run({**data, "new": np.where(data["g"] == "a", 0, data["new"])})
    assert any(note.text.startswith("new selects nobody from a in at least one split.") for note in result.notes)
    assert "It selects nobody from a in at least one split." in str(result.findings[0].detail)
    assert not any("selects nobody from" in note.text for note in run(data).notes)


@pytest.mark.parametrize("capacity", [0, 1, 1.5, -0.1])
def test_a_capacity_of_nobody_or_everybody(capacity: float) -> None:
    with pytest.raises(ConfigError, match=r"`capacity` .* must be a share above 0 and below 1"):
        run(status_quo="score", capacity=capacity)


def test_a_capacity_that_rounds_to_nobody() -> None:
    with pytest.raises(ConfigError, match=r"a capacity of 0\.001 selects nobody of 200 rows; raise it"):
        run(status_quo="score", capacity=0.001)


def test_a_group_of_one_person_is_left_out_and_counted() -> None:
    data = people()
    data["g"] = np.array(["alone", *data["g"][1:]], dtype=object)
    result = run(data)
    assert [(r.group, r.n) for r in result.left_out] == [("alone", 1)]
    assert {r.group for r in result.values} == {"a", "b", "(overall)"}
    training = r"in the training rows of split \d, no row of group 'alone' counts"
    test = r"in the test rows of split \d, candidate 'new', only \d rows? of group 'alone'"
    with pytest.raises(DataError, match=f"{training}|{test}"):
        run(data, min_count=1)


def test_too_few_groups() -> None:
    data = people()
    with pytest.raises(DataError, match=r"only 1 group of 'g' has at least 10 rows \('c' has 3\)"):
        run({**data, "g": np.array(["c"] * 3 + ["a"] * 597, dtype=object)})
    with pytest.raises(ConfigError, match="improvability compares groups; name the table's `groups`"):
        run(roles={"groups": ()})
    with pytest.raises(ConfigError, match="the table has 2 groupings; name the one to compare as `grouping`"):
        run(roles={"groups": ["g", "job"]})
    with pytest.raises(ConfigError, match="`grouping` is 'jb'; did you mean 'job'"):
        run(roles={"groups": ["g", "job"]}, grouping="jb")


def selective(n: int = 600) -> pd.DataFrame:
    frame = pd.DataFrame(people(n))
    frame["result"] = frame.y.where(frame.old == 1).astype(float)
    return frame


@pytest.mark.parametrize("utility", ["classification", "calibration"])
def test_selective_labels_are_refused_plainly(utility: str) -> None:
    with pytest.raises(
        DataError,
        match=r"the outcome of \d+ rows is missing and is needed .*selective labels.*"
        r"missing='drop'",
    ):
        run(selective().to_dict("list"), {"outcome": None}, outcome="result", utility=utility)


def test_selective_labels_that_are_dropped_are_warned_of() -> None:
    frame = selective()
    frame["new"] = np.random.default_rng(0).integers(0, 2, len(frame))
    lost = int(frame.result.isna().sum())
    table = eh.Table(frame, id="id", groups="g", missing="drop")
    threshold = {"column": "score", "threshold": 0.5}
    result = eh.improvability(table, outcome="result", **{**OPTIONS, "status_quo": threshold})
    assert any("selective labels" in note.text and f"{lost:,} rows" in note.text for note in result.notes)
    assert {"missing outcome: rows dropped": lost} == {r.reason.text: r.n for r in result.left_out}


def test_selective_labels_dropped_by_the_table_are_warned_of() -> None:
    """The table drops rows without its outcome before the audit sees them; those left are all selected."""
    frame = selective()
    lost = int(frame.result.isna().sum())
    table = eh.Table(frame.drop(columns="y"), id="id", outcome="result", groups="g", missing="drop")
    result = eh.improvability(table, **{**OPTIONS, "candidates": "linear", "features": ["x"]})
    note = next(note for note in result.notes if "selective labels" in note.text)
    assert note.text.startswith(f"{lost:,} rows were left out because the outcome (or a prediction) is missing.")
    assert "That is likely here: among the rows left the status quo selects everybody" in note.text
    assert all(f"{lost:,} rows without it were left out" in str(finding.detail) for finding in result.findings)
    scope = next(p for p in result.section().parts if getattr(p, "caption", "") == "What this establishes")
    assert f"{lost:,} rows without it were left out" in str(scope)


def test_outcomes_that_nobody_needs_may_be_missing_with_a_warning() -> None:
    frame = selective()
    frame["new"] = frame.old * np.random.default_rng(0).integers(0, 2, len(frame))  # a stricter candidate
    table = eh.Table(frame, id="id", groups="g")
    result = eh.improvability(table, outcome="result", utility="calibration", **OPTIONS)
    assert any(note.id == "improvability.outcome_not_needed" for note in result.notes)


def test_features_that_contain_the_group() -> None:
    fitted: dict[str, Any] = {"candidates": "linear", "features": ["g", "x"]}
    with pytest.raises(ConfigError, match=r"`features` names 'g', which the grouping is made of.*disparate treatment"):
        run(**fitted)
    allowed = run(**fitted, use_group=True).notes
    assert sum(note.id == "improvability.may_use_group" for note in allowed) == 1
    assert "improvability.tells_group" not in {note.id for note in allowed}  # said once
    data = people()
    copied = run({**data, "copy": np.where(data["g"] == "a", 7.0, 8.0)}, candidates="linear", features=["copy", "x"])
    assert any(note.text.startswith("The feature copy tells every row's group") for note in copied.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["y", "x"]}, "`features` names 'y', which is the outcome; leave it out"),
        ({"features": ["id", "x"]}, "`features` names 'id', which is the id; leave it out"),
        ({"features": ["xx"]}, r"`features\[0\]` is 'xx', which is not in the data"),
        ({"features": ["x", "x"]}, "`features` names the column 'x' twice"),
        ({"features": []}, "`features` is empty, and the candidate 'linear' has to be fitted to some"),
        ({"candidates": "lineal"}, "'lineal', which is no estimator, rule, model or column; did you mean 'linear'"),
        ({"candidates": {"sweep": {"excluded": ["w"]}}}, "candidate 'sweep' names 'w', which is no feature"),
        ({"candidates": {"sweep": {"goal": "c"}}}, "candidate 'sweep': `goal` is 'c', which is neither 'fairness' nor"),
        ({"candidates": {"a": {"rule": "estimator"}}}, "the rule 'estimator' needs its `estimator`"),
        ({"candidates": {"a": {}}}, "'a', which is no estimator, rule, model or column"),
        ({"candidates": {"a": {"threshold": 1}}}, "a candidate needs its `rule`"),
        ({"candidates": {"linear": {"settings": {"colour": 1}}}}, "LinearRegression .* has no setting 'colour'"),
        ({"candidates": ["linear", "linear"]}, "two candidates are called 'linear'"),
        ({"candidates": {"s": {"family": ["search"]}}}, "a search cannot be a member of a search's family"),
        ({"candidates": {"s": {"rule": "own", "own": 3}}}, "`own` must be a function of the training rows; got 3"),
        ({"candidates": {"s": lambda rows: 3}}, "must return a function of a feature matrix; got int instead"),
        ({"candidates": {"s": lambda rows: lambda x: x}}, "must return one finite number a row, 200 here; got shape"),
        ({"candidates": {"s": lambda rows: 1 / 0}}, "the candidate 's' could not be made: division by zero"),
        ({"status_quo": "score"}, "the status quo holds scores, so nothing says who is selected; give `capacity`"),
        ({"status_quo": "job"}, "the decision 'job' holds 'clerk', 'nurse', which is neither yes nor no|must hold"),
        ({"status_quo": "olt"}, "`status_quo` is 'olt', which is not in the data; did you mean 'old'"),
        ({"status_quo": {"threshold": 1}}, "`status_quo` needs exactly one of `column` and `model`"),
        ({"outcome": "job"}, "the outcome 'job' holds 'clerk', 'nurse', which is neither yes nor no"),
        ({"outcome": "score"}, "predicts an outcome that is not 0 or 1, so nothing says who is selected"),
        ({"candidates": "logistic", **NUMBERS}, "'logistic' predicts yes or no"),
        ({"utility": "accuracy"}, "there is no utility 'accuracy'"),
        ({"utility": 3}, "a utility must be a name or an evenhand.stats.improvability.Utility; got 3"),
        ({"test": {"margins": 1}}, "each of `margins` must be at least 0 and below 1; got 1"),
        (
            {"test": {"fairness": "published", "studentised": True}},
            "the published fairness test has no studentised form",
        ),
        ({"test": {"train": 0}}, r"`test\.train` in the arguments"),
        (
            {"test": {"design": "one_pass", "splits": 3}},
            "`splits` is a setting of design = 'splits', and",
        ),
        (
            {"test": {"splits": 3, "steps": 4}},
            "`steps` is a setting of design = 'one_pass', and the",
        ),
        ({"test": {"worst_pair": ["a", "c"]}}, "`worst_pair` names 'c', which is no group of the test"),
        ({"test": {"worst_pair": ["a", "a"]}}, "`worst_pair` must name two groups; got 'a' twice"),
        (
            {"test": {"splitz": 3}},
            r"`test\.splitz` in the arguments .*: there is no such setting; did you mean 'splits'",
        ),
        ({"plan": {"power": 1}}, r"`plan\.power` in the arguments of improvability"),
        ({"splits": 3}, "`splits` in the arguments .*: there is no such setting"),
        ({"candidates": {"status_quo": "new"}}, "a candidate is called 'status_quo', our name for what it is compared"),
        (
            {"candidates": "sweep", "utility": "false_positive_rate"},
            "the linear searches know calibration, and utilities",
        ),
        ({"candidates": "sweep", "fairness_utility": "calibration"}, "searches with one utility for accuracy and"),
        ({"candidates": "reductions", **NUMBERS}, "reductions need an outcome of 0 or 1"),
    ],
    ids=lambda part: part if isinstance(part, str) else ",".join(part),
)
def test_messages(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        run(**{"candidates": "linear", "features": ["x", "z"], **options})


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"metric": "fairness", "max": 0}, "`metric` 'fairness' of a threshold is not known"),
        (
            {"metric": "improvable_fairness", "min": 0.1},
            "the threshold for 'improvable_fairness' must give max= of 0 or more and below 1; got at least 0.1",
        ),
        (
            {"metric": "improvable_fairness", "max": 0, "model": "nwe"},
            "`model` 'nwe' of a threshold is not known; did you mean 'new'",
        ),
        ({"metric": "improvable_fairness", "max": 0, "grouping": "h"}, "`grouping` 'h' of a threshold is not known"),
        (
            {"metric": "improvable_fairness", "max": 0, "stratum": "s"},
            "a threshold of the improvability audit has no `stratum`",
        ),
    ],
)
def test_thresholds(limit: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(thresholds=[{"audit": "improvability", **limit}])


def test_an_infeasible_program_in_all_splits() -> None:
    with pytest.raises(
        EvenhandError,
        match=r"in no split was there a candidate to test: candidate 'milp': no linear "
        r"classifier of these features reaches values of at least",
    ):
        run(people(90), candidates={"milp": {"iota": 0.49, "time_limit": 20}}, features=["z"], min_count=5)


def test_a_time_limit_of_one_second_gives_an_answer_that_is_marked() -> None:
    data = people(500)
    result = run(data, candidates={"milp": {"time_limit": 1, "directions": 300}}, features=["x", "z"])
    assert all(r.selected > 0 for r in result.candidates)
    assert "improvability.stopped" in {note.id for note in result.notes}
    assert all(r.found_by in ("sweep", "milp") for r in result.candidates)


def test_missing_features_are_refused_or_dropped() -> None:
    data = people()
    data["x"] = np.where(np.arange(600) < 7, np.nan, data["x"])
    with pytest.raises(DataError, match="feature 'x' is missing in 7 rows of 600; fill them, or drop them"):
        run(data, candidates="linear", features=["x"])
    result = run(data, {"missing": "drop"}, candidates="linear", features=["x"])
    assert result.left_out[0].n == 7


def test_text_features_and_unseen_labels() -> None:
    data = people()
    data["job"] = np.array(["once", *data["job"][1:]], dtype=object)
    result = run(data, candidates=["linear", "sweep"], features=["job", "x"])
    assert {"job=clerk", "job=nurse", "x"} <= {r.feature for r in result.coefficients}
    with pytest.raises(DataError, match="feature 'job' holds 600 different texts, more than 200"):
        run(
            {**data, "job": np.array([f"j{i}" for i in range(600)], dtype=object)},
            candidates="linear",
            features=["job"],
        )


TOML = """
[data]
source = "people.csv"
id = "id"
outcome = "y"
groups = "g"

[improvability]
status_quo = "old"
features = ["x", "z"]
resamples = 200
utility = "{utility}"
test = {{ splits = 2 }}

[improvability.candidates]
linear = {{}}
given = "new"
own = "{own}"
"""


def write_toml(folder: Path, own: str = "rules:mine", utility: str = "classification") -> Path:
    pd.DataFrame(people()).to_csv(folder / "people.csv", index=False)
    (folder / "rules.py").write_text(
        "from evenhand.stats.improvability import UTILITIES\n"
        "def mine(rows):\n    return lambda features: (features[:, 0] > 0.5).astype(float)\n"
        "right = UTILITIES['classification']\n",
        encoding="utf-8",
    )
    path = folder / "audit.toml"
    path.write_text(TOML.format(own=own, utility=utility), encoding="utf-8")
    return path


def test_code_in_a_file_is_run_only_when_allowed(tmp_path: Path) -> None:
    path = write_toml(tmp_path)
    with pytest.raises(ConfigError, match=r"names code \('rules:mine' for 'own'\).*--allow-code"):
        audit(path)
    found = audit(path, allow_code=True)
    assert found.config.as_dict()["improvability"]["candidates"]["own"] == {
        "rule": "own",
        "own": "rules:mine",
        "kind": None,
        "threshold": None,
    }
    again = audit(write_toml(tmp_path, utility="rules:right"), allow_code=True)
    assert again["improvability"].to_dict()["gaps"] == found["improvability"].to_dict()["gaps"]
    assert found.to_json() == audit(write_toml(tmp_path), allow_code=True).to_json()


def test_there_are_no_more_processes_than_cores() -> None:
    assert ImprovabilitySpec(status_quo="m", features=("a",), jobs=1_000).jobs == os.cpu_count()
    assert ImprovabilitySpec(status_quo="m", features=("a",), jobs=-1).jobs == -1


@pytest.mark.parametrize("jobs", [0, -2, 2**63, 10**400])
def test_a_number_of_processes_that_cannot_be(jobs: int) -> None:
    with pytest.raises(ConfigError, match="`jobs`"):
        run(jobs=jobs)


class _Unsendable:
    def __call__(self, _: Any) -> Any:
        return lambda matrix: matrix[:, 0]

    def __reduce__(self) -> Any:
        raise TypeError("not to be sent")


def test_code_that_cannot_be_sent_to_other_processes() -> None:
    with pytest.raises(ConfigError, match=r"cannot be sent to other processes .* set `jobs` to 1"):
        run(candidates={"own": _Unsendable()}, features=["x"], jobs=2)


@pytest.mark.parametrize(
    "odd",
    [
        lambda x: ["a"] * len(x),
        lambda _: [[1], [2, 3]],
        lambda x: 1 / 0,
        lambda _: None,
        lambda x: np.ones((len(x), 2)),
    ],
    ids=["text", "ragged", "error", "nothing", "two columns"],
)
def test_code_that_gives_no_number_a_row(odd: Any) -> None:
    with pytest.raises(EvenhandError, match="the candidate 'own'"):
        run(candidates={"own": lambda rows: odd}, features=["x"], test={"splits": 1})
    utility = eh.stats.improvability.Utility(name="mine", u=lambda y, _: odd(y), w=lambda y, d: np.ones_like(d))
    with pytest.raises(EvenhandError, match="the utility 'mine'"):
        run(utility=utility, test={"splits": 1})
