"""What a reader gets: findings with verdicts, a section that renders, an audit.toml that runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.core.sections import DisplayTable, Figure

from .conftest import SETTINGS, Audit, Frame, make_answers

LIMITS = [
    {"metric": "calibration", "max": 0.02},
    {"metric": "accuracy_equality", "max": 0.9},
    {"metric": "equal_opportunity", "max": 0.3, "stratum": "Patient"},
]


@pytest.fixture(scope="module")
def full(answers: Frame, audit: Audit) -> eh.DisagreementResult:
    return audit(answers, groups=["race", "sex"], stakeholder="kind", truth="own", target_width=0.2, thresholds=LIMITS)


def test_findings_in_words(full: eh.DisagreementResult) -> None:
    gaps = {(g.grouping, g.notion): g for g in full.gaps if g.critic is None and g.stakeholder is None}
    calibration = next(f for f in full.findings if (f.metric, f.grouping) == ("calibration", "race"))
    gap = gaps["race", "calibration"]
    assert calibration.sentence.startswith("By race, critics agree with ")
    assert f"of the “{gap.label}” given to {gap.group_high}" in calibration.sentence
    assert f"a gap of {100 * (gap.value or 0):.1f} percentage points (95% interval" in calibration.sentence
    assert calibration.sentence.endswith("480 answers.")
    opportunity = next(
        f for f in full.findings if (f.metric, f.grouping, f.stratum) == ("equal_opportunity", "race", None)
    )
    gap = gaps["race", "equal_opportunity"]
    expected = (
        f"differs by {100 * (gap.lower or 0):.1f} to {100 * (gap.upper or 0):.1f} percentage points (95% interval"
    )
    assert expected in opportunity.sentence
    assert all(finding.caveat for finding in full.findings)
    assert all(finding.audit == "disagreement" for finding in full.findings)


def test_misclassification_is_not_counted_twice(full: eh.DisagreementResult, audit: Audit) -> None:
    assert "overall_misclassification" not in {finding.metric for finding in full.findings}
    rows = [g for g in full.gaps if g.notion == "overall_misclassification" and g.critic is None]
    assert {g.same_as for g in rows} == {"equal_opportunity"}
    two = audit(make_answers(labels=2))
    assert "predictive_equality" not in {finding.metric for finding in two.findings}
    asked = audit(make_answers(labels=2), thresholds=[{"metric": "overall_misclassification", "max": 0.5}])
    assert [f.metric for f in asked.findings].count("overall_misclassification") == 1


def test_verdicts(full: eh.DisagreementResult) -> None:
    judged = {(f.metric, f.grouping): f for f in full.findings if f.threshold is not None and f.stratum is None}
    race = judged["calibration", "race"]
    assert race.low is not None
    assert race.threshold == "at most 2 points"
    assert race.verdict == ("does_not_meet" if race.low > 0.02 else "insufficient_evidence")
    assert {judged["accuracy_equality", g].verdict for g in ("race", "sex")} == {"meets"}
    patients = [f for f in full.findings if f.stratum == "Patient"]
    assert [f.metric for f in patients] == ["equal_opportunity", "equal_opportunity"]  # by race and by sex
    assert "critics of the kind “Patient”" in patients[0].sentence


def test_one_finding_for_the_kinds_of_critics(full: eh.DisagreementResult) -> None:
    found = {f.grouping: f for f in full.findings if f.metric == "disagreement"}
    assert set(found) == {"race", "sex"}
    sure = [r for r in full.stakeholders if r.grouping == "race" and (r.p_adjusted or 1) < 0.05 and r.group]
    if sure:
        assert "the critics “Patient” and “Surgeon” differ most surely about" in found["race"].sentence
    else:
        assert "no two kinds of critics differ beyond chance" in found["race"].sentence


def test_two_kinds_that_differ_are_told(audit: Audit) -> None:
    result = audit(make_answers(critics=60, cases=60, each=30, seed=1), stakeholder="kind")
    finding = next(f for f in result.findings if f.metric == "disagreement")
    assert re.match(
        r"By race, the critics “Patient” and “Surgeon” differ most surely about “\d” given to Black: on the same "
        r"cases the former disagree \d+\.\d percentage points more often \(95% interval \d+\.\d to \d+\.\d, "
        r"adjusted p .*\); ",
        finding.sentence,
    )
    assert finding.value is not None
    assert finding.low is not None
    assert finding.high is not None
    assert finding.low < finding.value < finding.high


def test_the_section_has_every_part(full: eh.DisagreementResult) -> None:
    section = full.section()
    figures = [part.title for part in section.parts if isinstance(part, Figure)]
    assert figures == [
        "Gaps as the critics see them",
        "Rates by race",
        "Rates by sex",
        "How often each kind of critics agrees",
        "Gaps as each kind of critics sees them",
        "Critic by critic, by race",
        "Critic by critic, by sex",
    ]
    for part in section.parts:
        if isinstance(part, Figure):
            assert part.charts, part.title
            assert part.description, part.title
            assert part.caption, part.title
        else:
            assert all(len(row) == len(part.columns) == len(part.numeric) for row in part.rows), part.caption
    meaning = next(p for p in section.parts if isinstance(p, DisplayTable) and p.caption.startswith("What agreeing"))
    told = {row[0]: row[2] for row in meaning.rows}
    assert told["Calibration"] == "all of it"
    assert told["Equal opportunity"].startswith("bounds")
    assert told["Overall misclassification"].endswith("its gap is that of equal opportunity")
    assert "What it cannot tell" in {method.term for method in section.methods}


def test_the_figure_of_single_critics_shows_truth_and_errors(full: eh.DisagreementResult, audit: Audit) -> None:
    parts = [p for p in full.section().parts if isinstance(p, Figure) and p.title == "Critic by critic, by race"]
    titles = [chart.title for chart in parts[0].charts]
    assert titles == ["Equal opportunity", "Predictive equality", "Accuracy equality", "How far estimates are off"]
    spec = json.dumps(parts[0].charts[0].to_dict(validate=False))
    assert '"True"' in spec
    plain = audit(make_answers(), bounds="published")
    figure = next(p for p in plain.section().parts if isinstance(p, Figure) and p.title.startswith("Critic by critic"))
    assert [c.title for c in figure.charts][:3] == [
        "Equal opportunity",
        "Predictive equality",
        "Overall misclassification",
    ]


def test_plot_frames_and_repr(full: eh.DisagreementResult, audit: Audit) -> None:
    assert full.plot("sex").to_dict(validate=False)
    with pytest.raises(eh.EvenhandError, match="did you mean 'race'"):
        full.plot("rcae")
    assert isinstance(full.to_frame(), pd.DataFrame)
    polars = audit(pl.from_pandas(make_answers()))
    assert isinstance(polars.to_frame("rates"), pl.DataFrame)
    assert repr(polars).startswith("<DisagreementResult: ")
    assert polars._repr_html_().startswith("<h3>Disagreement</h3>")
    assert "By race" in str(polars)


def test_the_page_renders_without_predictions(answers: Frame, tmp_path: Path) -> None:
    table = eh.Table(answers, groups="race")
    audit = eh.audit(table, disagreement={**SETTINGS, "stakeholder": "kind"})
    files = audit.save(tmp_path)
    page = files["report.html"].read_text(encoding="utf-8")
    assert "<dt>Selected</dt>" not in page
    assert "<dt>Rows</dt><dd>480</dd>" in page
    assert "Gaps as the critics see them" in page
    found = json.loads(files["results.json"].read_text(encoding="utf-8"))
    assert found["config"]["disagreement"]["decision"] == "label"
    assert len(found["audits"]["disagreement"]["hash"]) == 64


TOML = """
[data]
source = "cases.csv"
id = "case"
groups = ["race"]

[disagreement]
decision = "label"
resamples = 100

[disagreement.feedback]
source = "said/answers.csv"
case = "about"
critic = "critic"
disagree = "disagrees"
stakeholder = "kind"

[[thresholds]]
audit = "disagreement"
metric = "accuracy_equality"
max = 0.01
"""


def test_an_audit_toml_with_two_files(answers: Frame, tmp_path: Path, audit: Audit) -> None:
    (tmp_path / "said").mkdir()
    answers.drop_duplicates("case")[["case", "race", "label"]].to_csv(tmp_path / "cases.csv", index=False)
    said = answers.rename(columns={"case": "about"})[["about", "critic", "disagrees", "kind"]]
    said.to_csv(tmp_path / "said/answers.csv", index=False)
    (tmp_path / "audit.toml").write_text(TOML, encoding="utf-8")
    command = [sys.executable, "-m", "evenhand", "audit", str(tmp_path / "audit.toml"), "--out", str(tmp_path / "out")]
    ran = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    found = json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))
    limited = next(f for f in found["findings"] if f["threshold"] is not None)
    assert ran.returncode == (1 if limited["verdict"] == "does_not_meet" else 0), ran.stderr
    assert str(tmp_path) not in (tmp_path / "out/results.json").read_text(encoding="utf-8")
    assert found["config"]["disagreement"]["feedback"]["source"] == "said/answers.csv"
    expected = audit(answers, stakeholder="kind", thresholds=[{"metric": "accuracy_equality", "max": 0.01}])
    mine: list[dict[str, Any]] = found["audits"]["disagreement"]["gaps"]
    for record, gap in zip(mine, expected.gaps, strict=True):
        assert record["notion"] == gap.notion
        assert record["value"] == (None if gap.value is None else pytest.approx(gap.value, abs=1e-11))
