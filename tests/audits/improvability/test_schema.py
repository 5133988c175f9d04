"""docs/reference/results.schema.json describes what the improvability audit really writes, and nothing looser."""

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
from evenhand.audits.improvability import ImprovabilitySpec, records
from evenhand.audits.improvability.spec import StatusQuo
from evenhand.stats.improvability import Utility

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/results.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
RECORDS = {
    "split": records.SplitRecord,
    "decision": records.DecisionRecord,
    "delta": records.DeltaRecord,
    "curve": records.CurveRecord,
    "value": records.ValueRecord,
    "candidate": records.CandidateRecord,
    "coefficient": records.CoefficientRecord,
    "power": records.PowerRecord,
    "sample_size": records.SampleSizeRecord,
    "reason": records.ReasonRecord,
}


def people(n: int = 400) -> eh.Table:
    rng = np.random.default_rng(5)
    y, old, new = rng.integers(0, 2, (3, n))
    group = rng.choice(np.array(["a", "b", "tiny", None], dtype=object), n, p=[0.5, 0.46, 0.01, 0.03])
    data = {"g": group, "y": y, "old": old, "new": y | new, "x": y + rng.standard_normal(n), "z": rng.random(n)}
    return eh.Table(data, outcome="y", groups="g")


def fitted() -> eh.Audit:
    candidates = {
        "linear": {},
        "best": {"family": ["linear", {"column": "new"}], "folds": 2},
        "reductions": {"slack": 0.1},
        "milp": {"directions": 300, "time_limit": 1, "monotone": {"x": 1}},
        "given": "new",
        "own": lambda rows: lambda features: (features[:, 0] > 0.5).astype(float),
    }
    return eh.audit(
        people(),
        improvability={
            "status_quo": "old",
            "candidates": candidates,
            "features": ["x", "z"],
            "splits": 2,
            "resamples": 200,
            "delta": [0, 0.1],
        },
        thresholds=[{"audit": "improvability", "metric": "improvable_fairness", "max": 0.1, "model": "given"}],
    )


def undefined() -> eh.Audit:
    loss = Utility("loss", lambda y, d: -1.0 * (y != d), lambda y, d: np.ones_like(d))
    settings = {
        "status_quo": {"column": "z", "threshold": 0.5},
        "candidates": "new",
        "utility": loss,
        "splits": 1,
        "resamples": 100,
        "fairness_utility": ["classification", "false_negative_rate"],
        "train": 0,
        "worst_pair": ["a", "b"],
        "accuracy_of": "everyone",
    }
    return eh.audit(people(), improvability=settings)


def problems(results: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(results)]


@pytest.fixture(scope="module")
def results() -> Any:
    return json.loads(fitted().to_json())


@pytest.mark.parametrize("case", [fitted, undefined], ids=lambda case: case.__name__)
def test_results_fit_the_schema(case: Callable[[], eh.Audit]) -> None:
    assert problems(json.loads(case().to_json())) == []


def test_every_table_has_rows(results: Any) -> None:
    tables = SCHEMA["$defs"]["improvability"]["properties"]
    found = results["audits"]["improvability"]
    assert all(found[name] for name in tables if tables[name].get("type") == "array")
    kinds = {r["status"].partition(":")[0] for name in ("decision", "deltas", "splits") for r in found[name]}
    assert {"ok", "undefined"} <= kinds


@pytest.mark.parametrize(("name", "record"), RECORDS.items(), ids=RECORDS)
def test_the_schema_has_every_field(name: str, record: Any) -> None:
    definition = SCHEMA["$defs"][f"improvability_{name}"]
    assert set(definition["properties"]) == set(definition["required"]) == {field.name for field in fields(record)}


@pytest.mark.parametrize(("name", "settings"), [("improvability_spec", ImprovabilitySpec), ("status_quo", StatusQuo)])
def test_the_schema_has_every_setting(name: str, settings: Any) -> None:
    definition = SCHEMA["$defs"][name]
    written = {field for field, about in settings.model_fields.items() if not about.exclude}
    assert set(definition["properties"]) == set(definition["required"]) == written


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("audits", "improvability", "surprise"), []),
        (("audits", "improvability", "splits", 0, "p_value"), 1.5),
        (("audits", "improvability", "splits", 0, "component"), "luck"),
        (("audits", "improvability", "decision", 0, "target"), "profit"),
        (("audits", "improvability", "deltas", 0, "status"), "fine"),
        (("audits", "improvability", "reasons", 0, "reason"), "bad luck"),
        (("config", "improvability", "candidates", "linear", "directions"), 5),
        (("config", "improvability", "capacity"), 1),
        (("config", "improvability", "thresholds", 0, "metric"), "tpr"),
        (("findings", 0, "metric"), "tpr"),
        (("findings", 0, "kind"), "ratio"),
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_audit_does_not_write(results: Any, path: tuple[Any, ...], value: Any) -> None:
    changed = copy.deepcopy(results)
    *way, last = path
    place = changed
    for step in way:
        place = place[step]
    place[last] = value
    assert problems(changed)
