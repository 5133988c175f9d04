"""The reference of studies is complete: names, settings, records and the schema of what a study writes."""

from __future__ import annotations

import copy
import json
import re
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import evenhand as eh
from evenhand.run.schema import results_schema
from evenhand.study import AnalysisSpec, CaseSettings, Critics, Exclusions, Respondents, SetSettings, SurveyMap
from evenhand.study.schema import COLUMNS
from evenhand.study.settings import (
    About,
    AboutQuestion,
    AttentionCheck,
    Bonus,
    Condition,
    Disagreement,
    Filter,
    Payment,
    Questions,
    Rationales,
    Recruitment,
)
from evenhand.study.spec import StudySpec

DOCS = Path(__file__).parents[2] / "docs"
SETTINGS: str = runpy.run_path(str(DOCS / "generate.py"))["PARTS"]["study"]()


def below(text: str, heading: str) -> str:
    level = heading.partition(" ")[0]
    assert f"\n{heading}\n" in f"\n{text}", heading
    return re.split(rf"^{level} ", f"\n{text}".split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", eh.study.__all__)
def test_public_names_are_in_the_reference(name: str) -> None:
    text = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    assert re.search(rf"^\.\. auto(class|function):: evenhand\.study\.{name}$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("## Top level of `study.toml`", StudySpec),
        ("## `[conditions.NAME]`", Condition),
        ("## `[disagreement]`", Disagreement),
        ("## `[disagreement.assignment]`, `assign_cases`", CaseSettings),
        ("## `[[attention]]`", AttentionCheck),
        ("## `[payment]`", Payment),
        ("## `[[payment.bonuses]]`", Bonus),
        ("## `[rationales]`", Rationales),
        ("## `[about]`", About),
        ("## `[[about.questions]]`", AboutQuestion),
        ("## `[recruitment]`", Recruitment),
        ("## `[[recruitment.filters]]`", Filter),
        ("## `[analysis]`, `analyze`", AnalysisSpec),
        ("## `[analysis.exclusions]`, `apply_exclusions`", Exclusions),
        ("## `design_sets`", SetSettings),
        ("## The column map of `read_survey`", SurveyMap),
        ("## `Respondents`", Respondents),
        ("## `Critics`", Critics),
        ("## `[questions]`", Questions),
    ],
)
def test_settings_are_in_the_reference(heading: str, model: Any) -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", below(SETTINGS, heading), re.MULTILINE)) == set(model.model_fields)


def test_columns_of_answers_are_in_the_reference() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", below(SETTINGS, "## Columns of answers"), re.MULTILINE)
    assert rows == [column.name for column in COLUMNS]


def studies() -> dict[str, eh.Audit]:
    """One as planned, one of people without conditions who answer alike, one person alone in a condition."""
    planned = eh.study.simulate_responses(40, seed=1)
    columns = eh.study.simulate_responses(6, conditions=["one"], seed=2).to_columns()
    flat = {**columns, "condition": [None] * 72, "overall": [3] * 72, "predicted": [None] * 36 + [0.5] * 36}
    alone = eh.study.simulate_responses(4, conditions=["a", "b", "c", "d"], seed=3)
    keep: dict[str, Any] = {"resamples": 100, "individuals": True, "exclusions": {"failed_checks": False}}
    limits = [{"metric": "effort_weight", "min": 0.5, "condition": "income"}]
    return {
        "planned": eh.audit(
            planned, study={"resamples": 100, "exclusions": {"too_fast": 900}, "individuals": True}, thresholds=limits
        ),
        "flat": eh.audit(eh.study.read_responses(flat), study=keep),
        "alone": eh.audit(alone, study=keep),
    }


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return {name: json.loads(audit.to_json()) for name, audit in studies().items()}


def problems(results: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(results_schema())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(results)]


@pytest.mark.parametrize("name", ["planned", "flat", "alone"])
def test_results_fit_the_schema(written: dict[str, Any], name: str) -> None:
    assert problems(written[name]) == []


def test_the_cases_hold_what_they_promise(written: dict[str, Any]) -> None:
    kinds = {
        record["status"]["id"].partition(".")[2]
        for results in written.values()
        for table in results["audits"]["study"].values()
        if isinstance(table, list)
        for record in table
        if isinstance(record, dict) and "status" in record
    }
    assert kinds == {"ok", "undefined", "no_interval", "no_test", "not_eligible"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("audits", "study", "surprise"), []),
        (("audits", "study", "gaps", 0, "kind"), "guess"),
        (("audits", "study", "gaps", 0, "p_value"), "small"),
        (("findings", 0, "metric"), None),
        (("config", "study", "thresholds", 0, "min"), "half"),
        (("data", "people"), -1),
    ],
    ids=str,
)
def test_the_schema_refuses_what_studies_do_not_write(written: dict[str, Any], path: Any, value: Any) -> None:
    changed = copy.deepcopy(written["planned"])
    *way, last = path
    place = changed
    for step in way:
        place = place[step]
    place[last] = value
    assert problems(changed)
