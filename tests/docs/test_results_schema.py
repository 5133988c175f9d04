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
from evenhand.audits.agreement import AgreementSpec
from evenhand.audits.agreement import records as agreement_records
from evenhand.audits.disagreement import DisagreementSpec
from evenhand.audits.disagreement import records as disagreement_records
from evenhand.audits.disagreement.spec import FeedbackTable
from evenhand.audits.effort import EffortSpec
from evenhand.audits.effort import records as effort_records
from evenhand.audits.effort.robustness.choices import Choices
from evenhand.audits.effort.robustness.records import FairestRecord, FlipRecord, SpecificationRecord
from evenhand.audits.effort.spec import History
from evenhand.audits.parity import ParitySpec
from evenhand.audits.parity.records import CalibrationRecord, GapRecord, GroupRecord
from evenhand.audits.reliability import ReliabilitySpec
from evenhand.audits.reliability import records as reliability_records
from evenhand.audits.reliability.mistakes import FeatureNoise, GroupNoise, NoiseSetting, PilotTable
from evenhand.audits.reliability.sources import ModelSource
from evenhand.core.findings import Finding
from evenhand.models.estimators import ESTIMATORS, Fit, ModelsSettings
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


EFFORT_TOML = """
[data]
source = "people.csv"
id = "person"
outcome = "late"
groups = ["sex"]
missing = "drop"

[models]
features = ["income", "job"]
folds = 2

[models.fit]
logistic = {}
tree = { estimator = "decision_tree", settings = { max_depth = 2 } }

[effort]
unit = 10
scale = 100
weights = [0, 0.6577]
inertia_by = "sex"

[effort.history]
source = "incomes.csv"
time = "year"
value = "income"

[effort.robustness]
windows = [["income at 2000", "income at 2002"]]
measures = ["slope"]
inertia = { rates = { f = 2, m = 1 }, none = "none" }

[[thresholds]]
audit = "effort"
metric = "eaif"
min = 0.9
model = "tree"

[[thresholds]]
audit = "effort"
metric = "effort_parity"
grouping = "sex"
min = 0.5
"""

RELIABILITY_TOML = """
[data]
source = "people.csv"
groups = "g"

[reliability]
model = "own:risk"
features = "age"
replicates = 2
resamples = 100

[reliability.noise.pilot]
source = "pilot.csv"
suffixes = ["_a", "_b"]
"""

INVENTED_TOML = """
[data]
dataset = "households"
rows = 200
dataset_seed = 3
outcome = "missed_payment"
groups = "race"
predictions = { logistic = "risk_logistic" }

[parity]
metrics = ["mean_score"]

[effort]
trajectory = ["income_2019", "income_2020", "income_2021", "income_2022"]
times = [2019, 2020, 2021, 2022.5]
inertia = { White = 1, Asian = 1, "Pacific Islander" = 2, Hispanic = 2, "American Indian" = 3, Black = 3 }
unit = 10_000
scale = 200_000
robustness = true
worst = 0
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


def effort() -> eh.Audit:
    """Columns, an id, a group that is missing for some and one too small to compare, a model that is always fair."""
    rng = np.random.default_rng(1)
    steps = {f"y{year}": rng.normal(3, 1, 300) for year in range(4)}
    people = make_people(300) | steps | {"id": np.arange(300), "same": np.full(300, 0.25)}
    given = eh.Table(
        people, id="id", groups=["group", "sex"], predictions={"m": "score", "same": "same"}, weight="weight"
    )
    return eh.audit(given, effort={"trajectory": list(steps), "scale": 10, "width": 0.2, "worst": 3})


def effort_by_sampled_pairs() -> eh.Audit:
    people = eh.datasets.make_households(150, seed=2)
    table = eh.Table(people, predictions={"a": "risk_logistic", "b": "risk_xgboost"})
    years = [f"income_{year}" for year in range(2019, 2023)]
    limits = [{"metric": "eaif", "min": 0.9}]
    settings = {"trajectory": years, "unit": 1e4, "scale": 2e5, "method": "sampled", "thresholds": limits}
    return eh.audit(table, effort=settings)


def effort_of_fitted_models() -> eh.Audit:
    pytest.importorskip("sklearn", reason="the case fits models, of the extra 'models'")
    rng = np.random.default_rng(2)
    rows, history = ["person,sex,job,income,late"], ["person,year,income"]
    for person in range(60):
        steps = rng.normal(30, 8, 4).round(1)
        rows.append(f"p{person},{'fm'[person % 2]},{'xy'[person % 3 % 2]},{steps[-1]},{int(steps[-1] < 28)}")
        history += [f"p{person},{2000 + t},{value}" for t, value in enumerate(steps) if (person, t) != (7, 1)]
    Path("people.csv").write_text("\n".join(rows), encoding="utf-8")
    Path("incomes.csv").write_text("\n".join(history), encoding="utf-8")
    Path("audit.toml").write_text(EFFORT_TOML, encoding="utf-8")
    return eh.audit("audit.toml")


def invented_data() -> eh.Audit:
    Path("audit.toml").write_text(INVENTED_TOML, encoding="utf-8")
    return eh.audit("audit.toml")


def disagreement() -> eh.Audit:
    """Few critics, a small group and a missing one, a label that nobody got, kinds of critics, the truth, a plan."""
    offers = eh.datasets.make_kidney_offers(60, 12, seed=3, cases_per_critic=20, backend="pandas")
    offers.loc[offers["offer"] <= 2, "patient_sex"] = None
    offers.loc[(offers["offer"] > 2) & (offers["offer"] < 6), "patient_sex"] = "Other"
    limits = [{"audit": "disagreement", "metric": "calibration", "max": 0.1, "grouping": "patient_sex"}]
    settings = {
        "decision": "quality",
        "answer": "answer",
        "critic": "critic",
        "case": "offer",
        "stakeholder": "stakeholder",
        "truth": "critic_quality",
        "labels": [1, 2, 3, 4, 5],
        "target_width": 0.2,
        "resamples": 100,
    }
    table = eh.Table(offers, groups=["patient_sex", "donor_age"])
    return eh.audit(table, disagreement=settings, thresholds=limits)


def disagreement_in_two_files() -> eh.Audit:
    """Published bounds, and everybody of one mind."""
    Path("cases.csv").write_text(
        "case,sex,label\n" + "".join(f"k{i},{'fm'[i % 2]},{'xyz'[i % 3]}\n" for i in range(30)), encoding="utf-8"
    )
    rows = "".join(f"k{case},c{critic},no\n" for critic in range(4) for case in range(30))
    Path("answers.csv").write_text("case,who,disagrees\n" + rows, encoding="utf-8")
    Path("audit.toml").write_text(
        '[data]\nsource = "cases.csv"\nid = "case"\ngroups = "sex"\n'
        '[disagreement]\ndecision = "label"\nbounds = "published"\nresamples = 100\n'
        '[disagreement.feedback]\nsource = "answers.csv"\ncritic = "who"\ndisagree = "disagrees"\n',
        encoding="utf-8",
    )
    return eh.audit("audit.toml")


DISAGREEMENT_CASES = [disagreement, disagreement_in_two_files]


def reliability() -> eh.Audit:
    """A function and a fitted model, small and missing groups, thresholds, every kind of mistake."""
    pytest.importorskip("sklearn", reason="the case fits a model, of the extra 'models'")
    rng = np.random.default_rng(3)
    people = make_people(300) | {"x": rng.integers(0, 2, 300), "age": rng.integers(18, 60, 300)}
    people["word"] = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    given = eh.Table(people, groups=["group", "sex"], outcome="x")
    noise = {
        "age": {"sd": 2, "minimum": 18, "maximum": 90},
        "word": {"ordinal": ["a", "b", "c"]},
        "score": {"sd": 0.1, "whole": False},
    }
    models = {"own": lambda rows: rows["score"], "tree": {"estimator": "decision_tree", "features": ["age", "word"]}}
    limits = [{"metric": "pabak", "max": 0.5, "model": "tree"}]
    settings = {
        "model": models,
        "features": ["age", "word", "score"],
        "noise": noise,
        "noise_levels": [0, 0.2],
        "folds": 3,
        "replicates": 3,
        "resamples": 100,
        "thresholds": limits,
        "reference": {"sex": "f"},
    }
    return eh.audit(given, reliability=settings)


def reliability_undefined() -> eh.Audit:
    settings = {
        "model": lambda rows: np.full(len(rows), 0.2),
        "features": ["a"],
        "noise": "raez-2024-text/categorical",
        "replicates": 2,
        "resamples": 100,
        "linked": {},
        "noise_levels": [0.1],
    }
    return eh.audit(eh.Table({"a": [0, 1, 1, 0] * 15, "g": ["x", "y"] * 30}, groups="g"), reliability=settings)


def reliability_from_a_pilot() -> eh.Audit:
    rng = np.random.default_rng(4)
    ages = rng.integers(18, 60, 80)
    Path("pilot.csv").write_text("age_a,age_b\n" + "".join(f"{a},{a + a % 2}\n" for a in ages[:30]), encoding="utf-8")
    rows = "".join(f"{a},{'xy'[i % 2]}\n" for i, a in enumerate(ages))
    Path("people.csv").write_text("age,g\n" + rows, encoding="utf-8")
    Path("own.py").write_text("def risk(rows):\n    return rows[:, 0] / 100\n", encoding="utf-8")
    Path("audit.toml").write_text(RELIABILITY_TOML, encoding="utf-8")
    return eh.audit("audit.toml", allow_code=True)


def agreement() -> eh.Audit:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 200)
    people = make_people(200) | {"x": first, "y": np.where(rng.random(200) < 0.1, 1 - first, first)}
    given = eh.Table(people, groups=["group", "sex"], weight="weight")
    return eh.audit(given, agreement={"raters": ["x", "y"], "thresholds": [{"metric": "kappa", "max": 0.3}]})


def agreement_of_scores_and_grades() -> eh.Audit:
    rng = np.random.default_rng(6)
    people = {"a": rng.random(40), "b": rng.random(40), "c": rng.random(40), "g": ["x", "y"] * 20}
    return eh.audit(eh.Table(people, groups="g"), agreement={"raters": ["a", "b", "c"], "resamples": 200})


def agreement_undefined() -> eh.Audit:
    return eh.audit(
        eh.Table({"a": [1] * 20, "b": [1] * 20, "g": ["x", "y"] * 10}, groups="g"),
        agreement={"raters": ["a", "b"], "resamples": 100},
    )


RELIABILITY_CASES = [
    reliability,
    reliability_undefined,
    reliability_from_a_pilot,
    agreement,
    agreement_of_scores_and_grades,
    agreement_undefined,
]
PARITY_CASES = [plain, within, custom_metric, decisions_only, undefined_cells, weights, dropped_rows, from_file]
EFFORT_CASES = [effort, effort_by_sampled_pairs, effort_of_fitted_models, invented_data]


def problems(results: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(results)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    "case", PARITY_CASES + EFFORT_CASES + RELIABILITY_CASES + DISAGREEMENT_CASES, ids=lambda case: case.__name__
)
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


def test_the_effort_cases_hold_what_they_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has rows in one of them, and every kind of remark occurs."""
    monkeypatch.chdir(tmp_path)
    full, kinds = set(), set()
    for case in EFFORT_CASES:
        found = case().to_dict()["audits"]["effort"]
        full |= {name for name in found if isinstance(found[name], list) and found[name]}
        kinds |= {record["status"].partition(":")[0] for name in full for record in found[name] if "status" in record}
    tables = SCHEMA["$defs"]["effort"]["properties"]
    assert full == {name for name in tables if tables[name].get("type") == "array"}
    assert {"ok", "undefined", "small", "missing group", "no interval", "one model", "one option"} <= kinds


def test_the_disagreement_cases_hold_what_they_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    full, kinds = set(), set()
    for case in DISAGREEMENT_CASES:
        found = case().to_dict()["audits"]["disagreement"]
        own = {name for name in found if isinstance(found[name], list) and found[name]}
        full |= own
        kinds |= {r["status"].partition(":")[0] for name in own for r in found[name] if "status" in r}
    tables = SCHEMA["$defs"]["disagreement"]["properties"]
    assert full == {name for name in tables if tables[name].get("type") == "array"}
    assert {"ok", "undefined", "no interval", "not reachable"} <= kinds


def test_the_reliability_cases_hold_what_they_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has rows in one of them, and every kind of remark occurs."""
    monkeypatch.chdir(tmp_path)
    full: set[tuple[str, str]] = set()
    kinds = set()
    for case in RELIABILITY_CASES:
        for audit, found in case().to_dict()["audits"].items():
            tables = {name for name in found if isinstance(found[name], list) and found[name]}
            full |= {(audit, name) for name in tables}
            kinds |= {r["status"].partition(":")[0] for name in tables for r in found[name] if "status" in r}
    for audit in ("reliability", "agreement"):
        tables = SCHEMA["$defs"][audit]["properties"]
        assert {(audit, name) for name in tables if tables[name].get("type") == "array"} <= full
    assert {"ok", "undefined", "no interval"} <= kinds


RECORDS = {
    "group": GroupRecord,
    "gap": GapRecord,
    "calibration": CalibrationRecord,
    "finding": Finding,
    "individual": effort_records.IndividualRecord,
    "model_difference": effort_records.DifferenceRecord,
    "curve_point": effort_records.CurveRecord,
    "effort_bin": effort_records.BinRecord,
    "effort_bin_group": effort_records.BinGroupRecord,
    "effort_spread": effort_records.SpreadRecord,
    "effort_person": effort_records.PersonRecord,
    "effort_pair": effort_records.PairRecord,
    "effort_path": effort_records.PathRecord,
    "specification": SpecificationRecord,
    "fairest": FairestRecord,
    "flip": FlipRecord,
    "reliability_curve": reliability_records.CurveRecord,
    "reliability_gap": reliability_records.GapRecord,
    "attribution": reliability_records.AttributionRecord,
    "reliability_model": reliability_records.ModelRecord,
    "agreement_value": agreement_records.StatisticRecord,
    "agreement_gap": agreement_records.GapRecord,
    "agreement_count": agreement_records.CountRecord,
    "disagreement_gap": disagreement_records.GapRecord,
    "disagreement_rate": disagreement_records.RateRecord,
    "disagreement_critic": disagreement_records.CriticRecord,
    "disagreement_stakeholders": disagreement_records.StakeholderRecord,
    "disagreement_plan": disagreement_records.PlanRecord,
    "disagreement_truth": disagreement_records.TruthRecord,
}


@pytest.mark.parametrize(("name", "record"), RECORDS.items(), ids=RECORDS)
def test_the_schema_has_every_field_of_a_record(name: str, record: Any) -> None:
    definition = SCHEMA["$defs"][name]
    assert set(definition["properties"]) == set(definition["required"]) == {field.name for field in fields(record)}
    assert definition["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("parity_spec", ParitySpec),
        ("effort_spec", EffortSpec),
        ("history", History),
        ("choices", Choices),
        ("reliability_spec", ReliabilitySpec),
        ("model_source", ModelSource),
        ("noise_setting", NoiseSetting),
        ("feature_noise", FeatureNoise),
        ("group_noise", GroupNoise),
        ("pilot", PilotTable),
        ("agreement_spec", AgreementSpec),
        ("models_settings", ModelsSettings),
        ("fit", Fit),
        ("disagreement_spec", DisagreementSpec),
        ("feedback", FeedbackTable),
    ],
)
def test_the_schema_has_every_setting(name: str, settings: Any) -> None:
    definition = SCHEMA["$defs"][name]
    written = {field for field, about in settings.model_fields.items() if not about.exclude}
    assert set(definition["properties"]) == set(definition["required"]) == written
    assert definition["additionalProperties"] is False


def test_the_schema_knows_every_estimator() -> None:
    assert set(SCHEMA["$defs"]["fit"]["properties"]["estimator"]["enum"]) == set(ESTIMATORS)


@pytest.fixture(scope="module")
def results() -> Any:
    return json.loads(plain().to_json())


@pytest.fixture(scope="module")
def disagreement_results() -> Any:
    return json.loads(disagreement().to_json())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("findings", 0, "metric"), "eaif"),
        (("findings", 0, "kind"), "ratio"),
        (("audits", "disagreement", "surprise"), []),
        (("audits", "disagreement", "gaps", 0, "kind"), "vague"),
        (("audits", "disagreement", "gaps", 0, "upper"), 1.5),
        (("audits", "disagreement", "gaps", 0, "same_as"), "eaif"),
        (("audits", "disagreement", "plan", 0, "status"), "perhaps"),
        (("audits", "disagreement", "labels"), ["one"]),
        (("config", "disagreement", "bounds"), "loose"),
        (("config", "disagreement", "thresholds", 0, "metric"), "tpr"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else repr(value),
)
def test_the_schema_refuses_what_disagreement_audits_do_not_write(
    disagreement_results: Any, path: tuple[Any, ...], value: Any
) -> None:
    assert problems(disagreement_results) == []
    assert problems(changed(disagreement_results, path, value))


@pytest.fixture(scope="module")
def reliability_results() -> Any:
    return json.loads(reliability().to_json())


@pytest.fixture(scope="module")
def effort_results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("effort"))
        return json.loads(effort_of_fitted_models().to_json())


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
    assert problems(changed(results, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("findings", 0, "kind"), "gap"),
        (("findings", 0, "metric"), "tpr"),
        (("audits", "effort", "surprise"), []),
        (("audits", "effort", "hash"), "abc"),
        (("audits", "effort", "individual", 0, "value"), 1.5),
        (("audits", "effort", "individual", 0, "method"), "guess"),
        (("audits", "effort", "flips", 0, "choice"), "colour"),
        (("audits", "effort", "fairest", 0, "status"), "one day"),
        (("config", "effort", "thresholds", 0, "metric"), "tpr"),
        (("config", "effort", "thresholds", 0, "audit"), "effortless"),
        (("config", "effort", "measure"), "jerk"),
        (("config", "effort", "history", "data"), {}),
        (("config", "models", "fit", "tree", "estimator"), "oracle"),
        (("config", "models", "folds"), 1),
        (("config", "data", "dataset"), "households"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else repr(value),
)
def test_the_schema_refuses_what_effort_audits_do_not_write(
    effort_results: Any, path: tuple[Any, ...], value: Any
) -> None:
    assert problems(effort_results) == []
    assert problems(changed(effort_results, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("findings", 0, "metric"), "tpr"),
        (("findings", 0, "against"), "overall"),
        (("audits", "reliability", "hash"), "abc"),
        (("audits", "reliability", "surprise"), []),
        (("audits", "reliability", "curves", 0, "status"), "fine"),
        (("audits", "reliability", "gaps", 0, "p_value"), 1.5),
        (("audits", "reliability", "gaps", 0, "p_adjusted"), -0.1),
        (("audits", "reliability", "gaps", 0, "against"), "overall"),
        (("audits", "reliability", "attribution", 0, "method"), "guess"),
        (("audits", "reliability", "models", 0, "kind"), "oracle"),
        (("config", "reliability", "model", "own", "file"), 3),
        (("config", "reliability", "noise", 0, "features", "age", "sd"), -1),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else repr(value),
)
def test_the_schema_refuses_what_reliability_audits_do_not_write(
    reliability_results: Any, path: tuple[Any, ...], value: Any
) -> None:
    assert problems(reliability_results) == []
    assert problems(changed(reliability_results, path, value))


def changed(results: Any, path: tuple[Any, ...], value: Any) -> Any:
    copied = copy.deepcopy(results)
    *way, last = path
    place = copied
    for step in way:
        place = place[step]
    place[last] = value
    return copied
