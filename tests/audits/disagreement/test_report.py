"""What a reader gets: a section that renders, charts and frames, an audit.toml that runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.audits.disagreement.metrics import METRICS
from evenhand.charts import to_svg
from evenhand.core.display import DisplayTable, Figure
from evenhand.core.records import open_range
from evenhand.messages.formats import show

from .conftest import SETTINGS, Audit, Frame, make_answers


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
    told = {row[0]: str(row[2]) for row in meaning.rows}
    assert told["Calibration"] == "all of it"
    assert told["Equal opportunity"].startswith("bounds")
    assert told["Overall misclassification"].endswith("its gap is that of equal opportunity")
    assert "What it cannot show" in {method.term for method in section.methods}


@pytest.mark.slow
def test_the_figure_of_single_critics_shows_truth_and_errors(full: eh.DisagreementResult, audit: Audit) -> None:
    parts = [p for p in full.section().parts if isinstance(p, Figure) and p.title == "Critic by critic, by race"]
    titles = [chart.title for chart in parts[0].charts]
    assert titles == ["Equal opportunity", "Predictive equality", "Accuracy equality", "How far estimates are off"]
    assert ">True</text>" in to_svg(parts[0].charts[0], "t", "d", name="x")
    plain = audit(make_answers(), bounds="published", individuals=True)
    figure = next(p for p in plain.section().parts if isinstance(p, Figure) and p.title.startswith("Critic by critic"))
    assert [c.title for c in figure.charts][:3] == [
        "Equal opportunity",
        "Predictive equality",
        "Overall misclassification",
    ]


def test_in_words_a_gap_left_open_has_both_ends_and_no_direction() -> None:
    """Its bounds may include the other direction: who is above by its largest value is not who is above."""
    kidneys = eh.datasets.make_kidney_offers(200, 60, seed=1)
    settings: dict[str, Any] = {
        "decision": "quality",
        "critic": "critic",
        "case": "offer",
        "disagree": "disagrees",
        "resamples": 100,
        "answers": {"labels": [1, 2, 3, 4]},
    }
    result = eh.disagreement(eh.Table(kidneys, groups="donor_age"), **settings)
    rates = next(p for p in result.section().parts if isinstance(p, Figure) and p.title == "Rates by donor_age")
    words = dict(sentence.split(": ", 1) for sentence in rates.description.rstrip(".").split(". "))
    gaps = {METRICS[gap.metric].title: gap for gap in result.rows("gaps", stakeholder=None, same_as=None)}
    assert {title for title in gaps if open_range(gaps[title]) is not None} == {
        "Equal opportunity",
        "Predictive equality",
    }
    for title, told in words.items():
        bounds = open_range(gaps[title])
        if bounds is None:
            assert told.endswith(f"by {show(gaps[title].value, 'points')} points")
        else:
            assert all(show(bound, "points") in told for bound in bounds)
            gap = gaps[title]
            by_group = {r.group: r for r in result.rows("values", metric=gap.metric, label=gap.label, stakeholder=None)}
            overlap = (by_group[str(gap.group)].lower or 0.0) < (by_group[str(gap.reference)].upper or 0.0)
            assert ("which group is higher is open" in told) == overlap
            finding = next(f for f in result.findings if METRICS[f.metric].title == title)
            assert (finding.lower, finding.upper) == bounds
            assert finding.amount() == f"{show(bounds[0], 'points')} to {show(bounds[1], 'points')} points"
            assert finding.sentence_id.startswith("bounded_either") == overlap


def test_plot_frames_and_repr(full: eh.DisagreementResult, audit: Audit) -> None:
    assert full.plot(grouping="sex").to_svg(name="x")
    assert full.charts() == ["gaps", "values", "agreement", "stakeholders", "critics", "pairs"]
    for chart in full.charts()[:-1]:  # without `like` there are no pairs to draw
        assert full.plot(chart).to_svg(name="x")
    with pytest.raises(eh.EvenhandError, match="did you mean 'race'"):
        full.plot(grouping="rcae")
    assert isinstance(full.to_frame(), pd.DataFrame)
    polars = audit(pl.from_pandas(make_answers()))
    assert isinstance(polars.to_frame("values"), pl.DataFrame)
    assert repr(polars).startswith("<DisagreementResult: ")
    assert polars._repr_html_().startswith("<h3>Disagreement</h3>")
    assert "By race" in str(polars)


def test_the_page_renders_without_predictions(answers: Frame, tmp_path: Path) -> None:
    table = eh.Table(answers, groups="race")
    settings: Any = {**SETTINGS, "stakeholder": "kind"}
    audit = eh.audit(table, disagreement=settings)
    files = audit.save(tmp_path)
    page = files["report.html"].read_text(encoding="utf-8")
    assert "<dt>Selected</dt>" not in page
    assert '<span class="n">Rows</span> 480</span>' in page
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
critic = "critic"
disagree = "disagrees"
case = "about"
stakeholder = "kind"
resamples = 100

[disagreement.answers]
source = "said/answers.csv"

[[thresholds]]
audit = "disagreement"
metric = "accuracy_equality"
max = 0.01
"""


@pytest.mark.slow
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
    assert found["config"]["disagreement"]["answers"]["source"] == "said/answers.csv"
    expected = audit(answers, stakeholder="kind", thresholds=[{"metric": "accuracy_equality", "max": 0.01}])
    mine: list[dict[str, Any]] = found["audits"]["disagreement"]["gaps"]
    for record, gap in zip(mine, expected.gaps, strict=True):
        assert record["metric"] == gap.metric
        assert record["value"] == (None if gap.value is None else pytest.approx(gap.value, abs=1e-11))
