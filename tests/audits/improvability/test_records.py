"""Records and settings: what is written can be read back, and neither a pickle nor JSON holds rows of the data."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilityResult, ImprovabilitySpec, Plan, Test
from evenhand.charts import to_svg
from evenhand.core.display import DisplayTable, Figure
from evenhand.errors import ConfigError
from evenhand.run.schema import record_schema, results_schema
from evenhand.stats.improvability import Utility


def people(n: int = 400) -> eh.Table:
    rng = np.random.default_rng(5)
    y, old, new = rng.integers(0, 2, (3, n))
    group = rng.choice(np.array(["a", "b", "tiny", None], dtype=object), n, p=[0.5, 0.46, 0.01, 0.03])
    data = {"g": group, "y": y, "old": old, "new": y | new, "x": y + rng.standard_normal(n), "z": rng.random(n)}
    data["who"] = np.array([f"patient number {i}" for i in range(n)], dtype=object)
    return eh.Table(data, id="who", outcome="y", groups="g")


@cache
def fitted() -> ImprovabilityResult:
    from sklearn.linear_model import Ridge

    return eh.improvability(
        people(),
        status_quo="old",
        candidates={
            "linear": {},
            "ridge": Ridge(),
            "best": {"family": ["linear", "lasso", {"column": "new"}], "folds": 2},
            "reductions": {"slack": 0.1},
            "milp": {"directions": 300, "time_limit": 1, "monotone": {"x": 1}},
            "given": "new",
            "own": lambda rows: lambda features: (features[:, 0] > 0.5).astype(float),
        },
        features=["x", "z"],
        resamples=200,
        test={"splits": 2, "margins": [0, 0.1]},
        thresholds=[{"metric": "improvable_fairness", "max": 0.1, "model": "given"}],
    )


@cache
def undefined() -> ImprovabilityResult:
    loss = Utility(name="loss", u=lambda y, d: -1.0 * (y != d), w=lambda y, d: np.ones_like(d), better="lower")
    return eh.improvability(
        people(),
        status_quo=lambda features: (features[:, 1] > 0.5).astype(float),
        features=["x", "z"],
        candidates="new",
        utility=loss,
        fairness_utility=["classification", "false_negative_rate"],
        resamples=100,
        test={"worst_pair": ["a", "b"], "accuracy_of": "everyone"},
    )


@pytest.fixture(scope="module", params=[fitted, undefined], ids=lambda case: case.__name__)
def result(request: pytest.FixtureRequest) -> ImprovabilityResult:
    case: Callable[[], ImprovabilityResult] = request.param
    return case()


def shown(result: ImprovabilityResult) -> list[Any]:
    """Return what a report shows: tables as text, figures as charts."""
    parts = result.section().parts
    return [
        str(p) if isinstance(p, DisplayTable) else [to_svg(chart, "t", "d", name="x") for chart in p.charts]
        for p in parts
    ]


def reloaded(result: ImprovabilityResult) -> ImprovabilityResult:
    written = json.loads(json.dumps([result.to_dict(), [finding.to_dict() for finding in result.findings]]))
    return ImprovabilityResult.from_dict(*written)


@pytest.mark.parametrize("copied", [reloaded, lambda result: pickle.loads(pickle.dumps(result))])  # noqa: S301
def test_a_copy_says_the_same(
    result: ImprovabilityResult, copied: Callable[[ImprovabilityResult], ImprovabilityResult], tmp_path: Path
) -> None:
    copy = copied(result)
    assert copy.to_dict() == result.to_dict()
    assert copy.findings == result.findings
    assert shown(copy) == shown(result)
    assert copy.established == result.established
    assert result.export(tmp_path)
    for ask in (lambda: copy.evidence, lambda: copy.export(tmp_path)):
        with pytest.raises(ConfigError, match="holds no rows of the data; run the audit again"):
            ask()


def test_no_row_of_the_data_is_pickled_or_written(result: ImprovabilityResult) -> None:
    assert result.evidence.inputs.sample.ids[0].startswith("patient number")
    for written in (pickle.dumps(result), json.dumps(result.to_dict()).encode()):
        assert b"patient number" not in written
        assert b"ndarray" not in written


def test_every_table_has_rows_of_both_kinds() -> None:
    result = fitted()
    assert all(records for records in result.tables.values())
    tables = (result.decisions, result.margins, result.gaps)
    assert {"ok", "undefined"} <= {record.status.text.partition(":")[0] for table in tables for record in table}


def test_settings_are_read_back_with_code_as_its_name(result: ImprovabilityResult) -> None:
    written = result.spec.model_dump(mode="json")
    again = ImprovabilitySpec.from_json(json.loads(json.dumps(written)))
    assert again.model_dump(mode="json") == written
    assert [candidate.in_words() for candidate in again.candidates.values()] == [
        candidate.in_words() for candidate in result.spec.candidates.values()
    ]
    with pytest.raises(ConfigError, match="holds no code; run the audit again"):
        undefined().spec.without_code().utility.u(np.zeros(1), np.zeros(1))


def test_a_mapping_is_as_good_as_the_object() -> None:
    options: dict[str, Any] = {"status_quo": "old", "candidates": "new", "resamples": 200}
    objects = eh.improvability(people(), test=Test(splits=2, margins=0.1), plan=Plan(power=0.9), **options)
    mappings = eh.improvability(people(), test={"splits": 2, "margins": [0.1]}, plan={"power": 0.9}, **options)
    assert objects.to_dict() == mappings.to_dict()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("gaps", "component", "luck"),
        ("gaps", "p_value", "small"),
        ("decisions", "metric", "profit"),
        ("margins", "test", "unsigned"),
        ("power", "scenario", "hoped for"),
        ("reasons", "reason", "bad luck"),
        ("candidates", "rule", "guess"),
        ("curves", "delta", 0.1),
    ],
)
def test_the_schema_refuses_what_the_audit_does_not_write(table: str, column: str, value: Any) -> None:
    shared = {"$defs": {"message": results_schema()["$defs"]["message"]}}  # what the schema of a sentence is
    schema = {**record_schema(ImprovabilityResult.record_types()[table]), **shared}
    written = written_records()[table][0]
    assert jsonschema.Draft202012Validator(schema).is_valid(written)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**written, column: value})


@cache
def written_records() -> dict[str, Any]:
    written: dict[str, Any] = json.loads(json.dumps(fitted().to_dict()))
    return written


def test_the_frontier_holds_the_status_quo_and_every_candidate() -> None:
    data = eh.datasets.make_patients(4_000, seed=5)
    found = eh.improvability(
        eh.Table(data, id="patient", groups="race"),
        status_quo="risk_score",
        outcome="illnesses",
        utility="calibration",
        fairness_utility=["calibration", "mirrored_calibration"],
        capacity=0.1,
        candidates={"need_score": {}, "same": {"column": "risk_score"}},
        resamples=400,
    )
    quo, need, same = found.frontier
    assert (quo.model, quo.better, quo.regret) == ("status_quo", None, None)
    assert (same.accuracy, same.gap) == (quo.accuracy, quo.gap)
    assert same.eigenvalue == pytest.approx(0.0, abs=1e-9)
    assert "eigenvalue below 0.01" in same.status.text
    assert need.efficient
    assert need.regret == 0
    assert same.regret is not None
    assert need.gap is not None
    assert quo.gap is not None
    assert same.regret == pytest.approx(quo.gap - need.gap)
    figures = [part for part in found.section().parts if isinstance(part, Figure)]
    assert figures[0].title == "The frontier"


def test_a_report_is_made_where_small_counts_withhold_values_and_gaps() -> None:
    patients = eh.Table(eh.datasets.make_patients(2_000, seed=1), id="patient", groups="race")
    audit = eh.audit(
        patients,
        improvability={
            "status_quo": "risk_score",
            "outcome": "illnesses",
            "utility": "calibration",
            "capacity": 0.05,
            "candidates": "need_score",
            "resamples": 200,
        },
        report={"suppress_below": 30},
    )
    result = audit["improvability"]
    assert isinstance(result, ImprovabilityResult)
    assert ({value.group for value in result.values}, result.gaps) == ({"(overall)"}, ())
    assert "The three-part process of a disparate-impact case" in audit.to_html()
