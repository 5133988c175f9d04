"""The reference is complete: nothing public is without its entry, and the help is what the commands print."""

from __future__ import annotations

import inspect
import pkgutil
import re
import runpy
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
import evenhand.stats
from evenhand import errors
from evenhand.audits.agreement import AgreementSpec
from evenhand.audits.agreement import records as agreement_records
from evenhand.audits.disagreement import DisagreementSpec
from evenhand.audits.disagreement import records as disagreement_records
from evenhand.audits.disagreement.spec import FeedbackTable
from evenhand.audits.effort import EffortSpec
from evenhand.audits.effort import records as effort_records
from evenhand.audits.effort.robustness import records as robustness_records
from evenhand.audits.effort.robustness.choices import Choices
from evenhand.audits.effort.spec import History
from evenhand.audits.improvability import records as improvability_records
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.spec import ImprovabilitySpec, StatusQuo
from evenhand.audits.parity import ParitySpec
from evenhand.audits.parity.metrics import METRICS, NAMED_GAPS
from evenhand.audits.parity.records import CalibrationRecord, GapRecord, GroupRecord
from evenhand.audits.reliability import ReliabilitySpec
from evenhand.audits.reliability import records as reliability_records
from evenhand.audits.reliability.mistakes import FeatureNoise, PilotTable
from evenhand.audits.reliability.sources import ModelSource
from evenhand.cli import console
from evenhand.cli.main import main
from evenhand.core.findings import Finding
from evenhand.core.provenance import data_record
from evenhand.core.spec import Threshold
from evenhand.models.estimators import ESTIMATORS, Fit, ModelsSettings
from evenhand.report.config import DatasetSettings, ReportSettings
from evenhand.table import Prediction, Roles

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "generate.py"))
PARTS: dict[str, str] = {name: part() for name, part in GENERATOR["PARTS"].items()}


def reference(page: str) -> str:
    """Return a page of the reference with the generated parts that it includes."""
    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    return re.sub(r"```\{include\} \.\./_generated/(\w+)\.md\n```", lambda match: PARTS[match[1]], text)


def section(text: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    assert f"\n{heading}\n" in f"\n{text}", f"there is no heading {heading!r}"
    return re.split(rf"^{level} ", f"\n{text}".split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_generated_part_is_included() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    for name in PARTS:
        assert f"../_generated/{name}.md" in pages


@pytest.mark.parametrize("name", sorted(set(eh.__all__) - {"datasets", "models", "study", "__version__"}))
def test_public_names_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. auto(class|function|exception):: evenhand\.{name}$", reference("api"), re.MULTILINE)


@pytest.mark.parametrize("name", eh.datasets.__all__)
def test_data_sets_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. auto(class|function):: evenhand\.datasets\.{name}$", reference("api"), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(eh.models.__all__) - {"ModelsSettings"}))
def test_functions_of_models_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. autofunction:: evenhand\.models\.{name}$", reference("api"), re.MULTILINE)


def test_estimators_are_on_their_page() -> None:
    text = (DOCS / "howto/fit-models.md").read_text(encoding="utf-8")
    for name, recipe in ESTIMATORS.items():
        assert re.search(rf"^\| `{name}` \| .*`{recipe.name}`", text, re.MULTILINE), name


def test_errors_are_in_the_reference() -> None:
    text = section(reference("api"), "## Errors")
    own = [
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    ]
    assert own
    for name in own:
        assert re.search(rf"\b{name}\b", text), name


def test_kernels_are_in_the_reference() -> None:
    for module in pkgutil.iter_modules(evenhand.stats.__path__):
        assert f".. automodule:: evenhand.stats.{module.name}\n   :members:" in reference("api")


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_in_the_reference(name: str) -> None:
    metric = METRICS[name]
    text = section(reference("metrics"), f"### `{name}`")
    for fact in (metric.title, metric.formula, metric.direction, metric.empty, metric.caveat, metric.citation):
        assert fact in text
    for need in metric.needs:
        assert need in text


@pytest.mark.parametrize("name", NAMED_GAPS)
def test_named_gaps_are_in_the_reference(name: str) -> None:
    metric, kind, _ = NAMED_GAPS[name]
    assert f"| `{name}` | [`{metric}`](#{metric}) | {kind} |" in reference("metrics")


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        (
            "## `[data]`",
            ["source", *DatasetSettings.model_fields, *Roles.model_fields, *inspect.signature(eh.Table).parameters],
        ),
        ("## `[data.predictions.NAME]`", list(Prediction.model_fields)),
        ("## `[models]`", list(ModelsSettings.model_fields)),
        ("## `[models.fit.NAME]`", list(Fit.model_fields)),
        ("## `[parity]`", [*ParitySpec.model_fields, *inspect.signature(eh.parity).parameters]),
        ("## `[effort]`", [*EffortSpec.model_fields, *inspect.signature(eh.effort).parameters]),
        ("## `[effort.history]`", list(History.model_fields)),
        ("## `[effort.robustness]`", list(Choices.model_fields)),
        (
            "## `[disagreement]`",
            [*DisagreementSpec.model_fields, *inspect.signature(eh.disagreement).parameters],
        ),
        ("## `[disagreement.feedback]`", list(FeedbackTable.model_fields)),
        ("## `[reliability]`", [*ReliabilitySpec.model_fields, *inspect.signature(eh.reliability).parameters]),
        ("## `[reliability.model.NAME]`", list(ModelSource.model_fields)),
        ("## `[reliability.noise.FEATURE]`", list(FeatureNoise.model_fields)),
        ("## `[reliability.noise.pilot]`", list(PilotTable.model_fields)),
        ("## `[agreement]`", [*AgreementSpec.model_fields, *inspect.signature(eh.agreement).parameters]),
        ("## `[improvability]`", [*ImprovabilitySpec.model_fields, *inspect.signature(eh.improvability).parameters]),
        ("## `[improvability.status_quo]`", list(StatusQuo.model_fields)),
        ("## `[improvability.candidates.NAME]`", list(Candidate.model_fields)),
        ("## `[[thresholds]]`", list(Threshold.model_fields)),
        ("## `[report]`", list(ReportSettings.model_fields)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_are_in_the_reference(heading: str, names: list[str]) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| \S[^|]*\|$", section(reference("settings"), heading), re.MULTILINE
    )
    assert set(names) - {"data", "table"} == set(rows)


COMMANDS: list[tuple[str, ...]] = GENERATOR["command_paths"]()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_in_the_reference_is_what_the_command_prints(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(GENERATOR["HELP_COLUMNS"]))
    monkeypatch.setattr("sys.argv", ["evenhand", *command, "--help"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None, raising=False)  # or it is "python -m pytest"
    with pytest.raises(SystemExit):
        main()
    printed = GENERATOR["tidy"](capsys.readouterr().out)
    assert f"```text\n{printed}\n```" in section(reference("cli"), f"## `{' '.join(['evenhand', *command])}`")


def test_commands_were_found() -> None:
    assert {(), ("demo",), ("init",), ("audit",), ("data", "list"), ("data", "fetch")} <= set(COMMANDS)


def test_exit_codes_are_in_the_reference() -> None:
    codes = [value for name, value in vars(console).items() if name.isupper() and isinstance(value, int)]
    assert len(codes) >= 6
    for code in codes:
        assert f"| {code} | " in reference("cli")


@pytest.mark.parametrize(
    ("heading", "record"),
    [
        ("## findings", Finding),
        ("### groups", GroupRecord),
        ("### gaps", GapRecord),
        ("### calibration", CalibrationRecord),
        ("### individual", effort_records.IndividualRecord),
        ("### differences", effort_records.DifferenceRecord),
        ("### curve", effort_records.CurveRecord),
        ("### bins", effort_records.BinRecord),
        ("### bin_groups", effort_records.BinGroupRecord),
        ("### spread", effort_records.SpreadRecord),
        ("### people", effort_records.PersonRecord),
        ("### pairs", effort_records.PairRecord),
        ("### paths", effort_records.PathRecord),
        ("### specifications", robustness_records.SpecificationRecord),
        ("### fairest", robustness_records.FairestRecord),
        ("### flips", robustness_records.FlipRecord),
        ("### curves", reliability_records.CurveRecord),
        ("### gaps of reliability", reliability_records.GapRecord),
        ("### attribution", reliability_records.AttributionRecord),
        ("### models of reliability", reliability_records.ModelRecord),
        ("### statistics", agreement_records.StatisticRecord),
        ("### gaps of raters", agreement_records.GapRecord),
        ("### counts", agreement_records.CountRecord),
        ("### gaps of critics", disagreement_records.GapRecord),
        ("### rates", disagreement_records.RateRecord),
        ("### critics", disagreement_records.CriticRecord),
        ("### stakeholders", disagreement_records.StakeholderRecord),
        ("### plan", disagreement_records.PlanRecord),
        ("### truth", disagreement_records.TruthRecord),
        ("### splits", improvability_records.SplitRecord),
        ("### decision", improvability_records.DecisionRecord),
        ("### deltas", improvability_records.DeltaRecord),
        ("### curves of improvability", improvability_records.CurveRecord),
        ("### values", improvability_records.ValueRecord),
        ("### candidates", improvability_records.CandidateRecord),
        ("### coefficients", improvability_records.CoefficientRecord),
        ("### power", improvability_records.PowerRecord),
        ("### sample_sizes", improvability_records.SampleSizeRecord),
        ("### reasons", improvability_records.ReasonRecord),
    ],
)
def test_fields_of_the_results_are_in_the_reference(heading: str, record: Any) -> None:
    text = section(reference("results-json"), heading)
    for field in fields(record):
        assert f"`{field.name}`" in text, field.name


@pytest.mark.parametrize(
    ("heading", "result"), [("## audits.parity", eh.ParityResult), ("## audits.effort", eh.EffortResult)]
)
def test_tables_of_the_results_are_in_the_reference(heading: str, result: Any) -> None:
    data = {**{f"x{step}": [0.0, 1.0, 2.0] for step in range(3)}, "g": ["a", "b", "b"], "s": [0.1, 0.2, 0.9]}
    table = eh.Table(data, groups="g", predictions="s")
    audit = eh.audit(table, parity={"resamples": 100}, effort={"trajectory": ["x0", "x1", "x2"]})
    found = next(own for own in audit.results.values() if isinstance(own, result))
    text = section(reference("results-json"), heading)
    for name in found.to_dict():
        assert re.search(rf"^\| .*`{name}`.* \| ", text, re.MULTILINE), name


def test_tables_of_the_disagreement_audit_are_in_the_reference() -> None:
    answers = eh.datasets.make_kidney_offers(40, 4, seed=1)
    settings: dict[str, Any] = {"decision": "quality", "disagree": "disagrees", "critic": "critic", "case": "offer"}
    result = eh.disagreement(eh.Table(answers, groups="patient_sex"), **settings)
    text = section(reference("results-json"), "## audits.disagreement")
    for name in result.to_dict():
        assert re.search(rf"^\| .*`{name}`.* \| ", text, re.MULTILINE), name


def test_tables_of_reliability_and_agreement_are_in_the_reference() -> None:
    people = {"x": [0, 1] * 30, "y": [0, 1, 1] * 20, "g": ["a", "b"] * 30}
    settings = {"model": lambda rows: rows[:, 0], "features": ["x"], "noise": {"x": "flip"}, "resamples": 100}
    audit = eh.audit(eh.Table(people, groups="g"), reliability=settings, agreement={"raters": ["x", "y"]})
    for name, result in audit.results.items():
        text = section(reference("results-json"), f"## audits.{name}")
        for field in result.to_dict():
            assert re.search(rf"^\| .*`{field}`.* \| ", text, re.MULTILINE), field


def test_tables_of_the_improvability_audit_are_in_the_reference() -> None:
    people = {"y": [0, 1] * 60, "g": ["a", "b", "b"] * 40, "old": [0, 0, 0, 1] * 30, "new": [0, 1, 1] * 40}
    table = eh.Table(people, groups="g", outcome="y")
    result = eh.improvability(table, status_quo="old", candidates="new", splits=1, resamples=100)
    text = section(reference("results-json"), "## audits.improvability")
    for name in result.to_dict():
        assert re.search(rf"^\| .*`{name}`.* \| ", text, re.MULTILINE), name


def test_fields_of_the_data_are_in_the_reference() -> None:
    text = section(reference("results-json"), "## data")
    table = eh.Table({"g": ["a", "b"], "d": [0, 1]}, groups="g", predictions="d")
    for name in data_record(table):
        assert f"| `{name}` |" in text
