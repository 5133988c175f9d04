"""docs/reference/results.schema.json describes what audits really write, and nothing looser."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.parity.records import CalibrationRecord, GapRecord, GroupRecord
from evenhand.core.findings import Finding
from evenhand.report.audit import SCHEMA_VERSION

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/results.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PARITY = {"metrics": ["selection_rate", "mean_score", "tpr", "auc"], "resamples": 100}


AUDIT_TOML = """
[data]
source = "data.csv"
groups = "sex"
predictions = "risk"
decimal = ","
delimiter = ";"
threshold = 0.3

[parity]
resamples = 100

[[thresholds]]
metric = "selection_rate"
grouping = ["sex"]
max = 0.1
"""


def make_people(n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    score = rng.beta(2, 3, n)
    return {
        "group": rng.choice(np.array(["a", "b", "tiny", None], dtype=object), n, p=[0.5, 0.46, 0.01, 0.03]),
        "sex": rng.choice(["f", "m"], n).astype(object),
        "job": rng.choice(["x", "y"], n).astype(object),
        "score": score,
        "outcome": np.where(rng.random(n) < score, 1, 0),
        "weight": rng.uniform(0.5, 3.0, n),
    }


def table(**roles: Any) -> eh.Table:
    given = {"outcome": "outcome", "groups": ["group", ["group", "sex"]], "predictions": {"m": "score"}, **roles}
    return eh.Table(make_people(), **given)


def plain() -> eh.Audit:
    limits = [
        {"metric": "selection_rate", "min": 0.8},
        {"metric": "tpr", "max": 0.9, "against": "reference", "grouping": "group"},
        {"metric": "traditional_parity", "min": 0.01, "model": "m"},
    ]
    return eh.audit(table(id=None), parity=PARITY, thresholds=limits, report={"title": "Ünïcode"})


def within() -> eh.Audit:
    limits = [{"metric": "selection_rate", "max": 0.5, "stratum": "(standardised)", "grouping": "sex"}]
    return eh.audit(table(groups="sex"), parity={**PARITY, "within": "job"}, thresholds=limits)


def custom_metric() -> eh.Audit:
    own = {"cost": lambda cells: (5 * cells.fn + cells.fp) / cells.n, "none": lambda cells: cells.tp * np.nan}
    return eh.audit(table(), parity={"metrics": "selection_rate", "custom": own, "resamples": 100})


def decisions_only() -> eh.Audit:
    people = {"sex": ["f", "m"] * 30, "hired": [1, 0, 0, 1, 1, 0] * 10}
    return eh.audit(eh.Table(people, groups="sex", predictions="hired"), parity={"resamples": 100})


def undefined_cells() -> eh.Audit:
    """Nobody selected, nobody positive in one group, one score for all in the other."""
    people = {"g": ["a"] * 20 + ["b"] * 20, "y": [0] * 20 + [0, 1] * 10, "s": [0.25] * 20 + [0.1, 0.3] * 10}
    given = eh.Table(people, outcome="y", groups="g", predictions="s", favourable="not_selected")
    return eh.audit(given, parity={"resamples": 100}, thresholds=[{"metric": "ppv", "max": 0.1}])


def weights() -> eh.Audit:
    return eh.audit(table(weight="weight"), parity={**PARITY, "interval": "percentile", "reference": {"group": "a"}})


def dropped_rows() -> eh.Audit:
    people = {"age": list(range(20, 80)), "hired": [1, None, 0] * 20}
    given = eh.Table(people, groups="age", cuts={"age": [40, 60]}, predictions={"m": "hired"}, missing="drop")
    return eh.audit(given, parity={"resamples": 100, "reference": "under 40"})


def from_file() -> eh.Audit:
    Path("data.csv").write_text("sex;risk\nf;0,9\nm;0,2\n" + "f;0,4\nm;0,6\n" * 20, encoding="latin-1")
    Path("audit.toml").write_text(AUDIT_TOML, encoding="utf-8")
    return eh.audit("audit.toml")


CASES = [plain, within, custom_metric, decisions_only, undefined_cells, weights, dropped_rows, from_file]


def problems(results: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(results)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results_fit_the_schema(case: Callable[[], eh.Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert problems(json.loads(case().to_json())) == []


def test_the_cases_hold_what_they_promise() -> None:
    """The cases above would prove little if no record in them were undefined, small or missing."""
    kinds = set()
    for case in (plain, undefined_cells, custom_metric):
        parity = case().to_dict()["audits"]["parity"]
        kinds |= {record["status"].partition(":")[0] for name in ("groups", "gaps") for record in parity[name]}
    assert {"ok", "undefined", "small", "missing group", "no interval"} <= kinds


@pytest.mark.parametrize(
    ("name", "record"),
    [("group", GroupRecord), ("gap", GapRecord), ("calibration", CalibrationRecord), ("finding", Finding)],
)
def test_the_schema_has_every_field_of_a_record(name: str, record: Any) -> None:
    definition = SCHEMA["$defs"][name]
    assert set(definition["properties"]) == set(definition["required"]) == {field.name for field in fields(record)}
    assert definition["additionalProperties"] is False


@pytest.fixture(scope="module")
def results() -> Any:
    return json.loads(plain().to_json())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("surprise",), 1),
        (("schema",), 2),
        (("data", "hash"), "abc"),
        (("findings", 0, "verdict"), "passes"),
        (("findings", 0, "verdict"), "no_threshold"),
        (("audits", "parity", "groups", 0, "status"), "fine"),
        (("audits", "parity", "gaps", 0, "kind"), "quotient"),
        (("audits", "parity", "gaps", 0, "value"), "0.1"),
        (("audits", "parity", "left_out", 0, "n"), -1),
        (("audits", "parity", "spec", "confidence"), 1.0),
        (("config", "parity", "thresholds", 0, "max"), 0.5),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else repr(value),
)
def test_the_schema_refuses_what_audits_do_not_write(results: Any, path: tuple[Any, ...], value: Any) -> None:
    changed = copy.deepcopy(results)
    *way, last = path
    place = changed
    for step in way:
        place = place[step]
    place[last] = value
    assert problems(changed)
