"""A study's report: people and answers on top, nobody named, safe and the same on every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import ConfigError

QUICK = {"resamples": 200}


@pytest.fixture(scope="module")
def responses() -> eh.study.Responses:
    return eh.study.simulate_responses(60, conditions=["<script>alert(1)</script>", "=1+1"], pool=5, seed=4)


@pytest.fixture(scope="module")
def saved(responses: eh.study.Responses, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    audit = eh.audit(responses, study=QUICK, thresholds=[{"metric": "effort_weight", "min": 0.5}])
    return audit.save(tmp_path_factory.mktemp("out"))


def test_the_page_says_who_took_part_and_names_nobody(saved: dict[str, Path]) -> None:
    page = saved["report.html"].read_text(encoding="utf-8")
    data = json.loads(saved["results.json"].read_text(encoding="utf-8"))["data"]
    assert data["people"] == 60 > data["people_used"]
    assert f'<span class="n">People</span> {data["people_used"]} of 60</span>' in page
    assert f'<span class="n">Answers</span> {data["rows_used"]} of 720</span>' in page
    assert "Answers, SHA-256" in page
    assert "failed_checks: people who failed 2 or more attention checks" in page
    assert "enter no gap" not in page
    assert "p00" not in page
    assert "<script" not in page
    assert page.count('<table class="forest panel">') == 4 + 1 + 2  # correlations, weights, factors


def test_results_hold_the_tables_and_the_settings(saved: dict[str, Path]) -> None:
    results = json.loads(saved["results.json"].read_text(encoding="utf-8"))
    assert set(results["audits"]) == {"study"}
    assert results["config"]["study"]["thresholds"][0]["audit"] == "study"
    assert results["config"]["data"]["kind"] == "effort"
    assert {finding["verdict"] for finding in results["findings"][:2]} <= {"meets", "insufficient_evidence"}


def test_the_analysis_rebuilt_from_its_files_is_the_same(saved: dict[str, Path]) -> None:
    """The loaded audit renders the same report, although nobody's bonus was written."""
    again = eh.Audit.load(saved["results.json"].parent)
    assert isinstance(again["study"], eh.study.StudyResult)
    assert again.to_json() == saved["results.json"].read_text(encoding="utf-8")
    assert again.to_html() == saved["report.html"].read_text(encoding="utf-8")
    assert json.loads(again.to_json())["audits"]["study"]["bonus"] == []


def test_hiding_small_counts_of_a_study_is_refused(responses: eh.study.Responses) -> None:
    with pytest.raises(ConfigError, match="not of a study; leave it out"):
        eh.audit(responses, report={"suppress_below": 10})


def test_who_gets_the_bonus_is_written_on_request(responses: eh.study.Responses) -> None:
    audit = eh.audit(responses, study={**QUICK, "individuals": True})
    written = json.loads(audit.to_json())["audits"]["study"]["bonus"]
    assert len(written) == audit.data["people_used"]
    assert "p00" not in audit.to_html()


def test_the_order_of_the_rows_does_not_matter(responses: eh.study.Responses, saved: dict[str, Path]) -> None:
    columns = responses.to_columns()
    turned = eh.study.read_responses({name: list(values)[::-1] for name, values in reversed(columns.items())})
    again = eh.audit(turned, study=QUICK, thresholds=[{"metric": "effort_weight", "min": 0.5}])
    assert again.to_json() == saved["results.json"].read_text(encoding="utf-8")


def test_the_settings_of_a_study_toml_are_taken(responses: eh.study.Responses) -> None:
    spec = eh.study.AnalysisSpec(resamples=100, alpha=0.01)
    assert eh.audit(responses, study=spec, seed=7).config.as_dict()["study"]["seed"] == 7


@pytest.mark.parametrize(
    ("source", "sections", "message"),
    [
        (None, {"parity": {}}, "responses take no section 'parity'"),
        (None, {"study": {"alfa": 1}}, "did you mean 'alpha'"),
        ({"a": [1]}, {}, "eh.audit needs a table with the roles of its columns; got a dict"),
    ],
)
def test_wrong_input_is_told(
    source: Any, sections: dict[str, Any], message: str, responses: eh.study.Responses
) -> None:
    with pytest.raises(ConfigError, match=message):
        eh.audit(responses if source is None else source, **sections)
