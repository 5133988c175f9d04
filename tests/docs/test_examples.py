"""The examples run. `examples/audit.toml` runs with its README, in test_pages."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.audits.disagreement import DisagreementResult
from evenhand.audits.effort import EffortResult
from evenhand.audits.effort.section import individual_table, parity_table
from evenhand.core.display import Number
from evenhand.evidence.power import plan_power

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_quickstart_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["parity_quickstart.py", str(tmp_path / "out")])
    runpy.run_path(str(EXAMPLES / "parity_quickstart.py"), run_name="__main__")
    assert "By race, logistic selects" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))["data"]["rows"] == 5_000
    assert (tmp_path / "out/report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_plan_says_what_could_be_found() -> None:
    lines = plan_power(EXAMPLES / "plan.toml", 2_000)
    assert [line.metric for line in lines] == ["selection_rate", "tpr", "selection_rate", "tpr"]
    assert all(line.gap is not None for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "models", "human"),
    [
        ("households", ["xgboost", "logistic", "random_forest"], 0.6577),
        ("defendants", ["lightgbm", "logistic", "decision_tree"], 0.6037),
    ],
)
def test_the_pipelines_of_the_effort_paper_run(name: str, models: list[str], human: float, tmp_path: Path) -> None:
    pytest.importorskip("xgboost", reason="the pipeline fits xgboost, of the extra 'models'")
    pytest.importorskip("lightgbm", reason="the pipeline fits LightGBM, of the extra 'models'")
    audit = eh.audit(EXAMPLES / f"{name}.toml")
    result = audit["effort"]
    assert isinstance(result, EffortResult)
    individual, parity = individual_table(result), parity_table(result)
    assert individual.columns == ("Model", "Equal weights", f"Human study weights ({human} on effort)")
    assert parity.columns == ("Model", "Race parity", "Sex parity", "Age parity")
    assert [row[0] for row in individual.rows] == [row[0] for row in parity.rows] == models
    for row in (*individual.rows, *parity.rows):
        assert all(isinstance(cell, Number) and 0 < (cell.value or 0) < 1 for cell in row[1:]), row
    assert all(record.is_ok for record in result.rows("values", metric="eaif"))
    for grouping in ("race", "sex", "age"):  # the panels of figures 3 and 6
        gaps = result.rows("gaps", metric="eagf", grouping=grouping)
        bins = [gap for gap in gaps if gap.bin_low is not None and gap.value is not None]
        assert len(bins) >= 3 * len(models)
    page = audit.save(tmp_path)["report.html"].read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_the_feedback_on_kidney_offers_runs(tmp_path: Path) -> None:
    audit = eh.audit(EXAMPLES / "feedback.toml")
    result = audit["disagreement"]
    assert isinstance(result, DisagreementResult)
    assert [name for name, records in result.tables.items() if not records] == ["pairs", "critic_pairs", "left_out"]
    assert {gap.stakeholder for gap in result.gaps} == {None, "Patient", "Donor", "Family", "Surgeon"}
    assert all(record.inside == 1.0 for record in result.truth)
    assert sum(finding.threshold is not None for finding in audit.findings) == 2
    page = audit.save(tmp_path)["report.html"].read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_mistakes_and_raters(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="models are fitted, of the extra 'models'")
    found = eh.audit(EXAMPLES / "reliability.toml")["reliability"]
    assert isinstance(found, eh.ReliabilityResult)
    assert [model.model for model in found.models] == ["full", "sparse"]
    assert {finding.verdict for finding in found.findings if finding.metric == "pabak"} == {"meets"}
    assert all(record.value is not None for record in found.gaps)
    raters = eh.audit(EXAMPLES / "agreement.toml")
    assert raters["agreement"].findings
    assert raters.save(tmp_path)["report.html"].read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_the_improvability_of_a_care_programme_runs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="candidates are fitted, with the extra 'models'")
    audit = eh.audit(EXAMPLES / "improvability.toml")
    result = audit["improvability"]
    assert isinstance(result, eh.ImprovabilityResult)
    assert "need_score" in {decision.model for decision in result.established}
    assert {finding.verdict for finding in audit.findings if finding.model == "need_score"} >= {"does_not_meet"}
    page = audit.save(tmp_path)["report.html"].read_text(encoding="utf-8")
    assert "The three-part process of a disparate-impact case" in page


def test_no_data_is_committed() -> None:
    allowed = {
        "README.md",
        ".gitignore",
        "audit.toml",
        "households.csv",
        "households.toml",
        "defendants.toml",
        "reliability.toml",
        "improvability.toml",
        "agreement.toml",
        "feedback.toml",
        "plan.toml",
        "out",
    }
    ignored = (EXAMPLES / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "households.csv" in ignored
    assert {
        path.name for path in EXAMPLES.iterdir() if path.suffix not in {".py", ".ipynb"} and path.name != "__pycache__"
    } <= allowed
