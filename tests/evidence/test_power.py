"""Power before data: the gaps that a plan could show, against formulas, samples and what cannot be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.core.findings import Finding
from evenhand.core.power import PowerLine
from evenhand.errors import ConfigError
from evenhand.evidence.power import _scaled_line, plan_power
from evenhand.messages import Message
from evenhand.stats.intervals import bonferroni

PLAN = """
[data]
source = "later.csv"
outcome = "y"
positive = 1
groups = ["g"]
predictions = {{ model = {{ column = "d", kind = "decision" }} }}

[parity]
metrics = ["selection_rate", "tpr"]
{thresholds}
{power}
"""
POWER = """
[power]
groups = { g = { a = 0.5, b = 0.5 } }
rates = { selection_rate = 0.5 }
"""
RATIO = '[[thresholds]]\nmetric = "selection_rate"\nmin = 0.8\n'
POINTS = '[[thresholds]]\nmetric = "selection_rate"\nmax = 0.1\n'


def lines(folder: Path, thresholds: str = "", power: str = POWER, **options: Any) -> list[PowerLine]:
    path = folder / "plan.toml"
    path.write_text(PLAN.format(thresholds=thresholds, power=power))
    return plan_power(path, **{"rows": 2_000, **options})


def test_a_test_of_two_rates_finds_what_the_normal_formula_says(tmp_path: Path) -> None:
    (line,) = lines(tmp_path)
    error = np.sqrt(2 * 0.25 / 1_000)
    assert line.gap == pytest.approx((-ndtri(0.025) - ndtri(0.2)) * error, rel=0.1)
    assert (line.n, line.group, line.kind) == (1_000, "a", "difference")
    assert line.gap is not None
    (more,) = lines(tmp_path, rows=8_000)
    assert more.gap == pytest.approx(line.gap / 2, rel=0.1)
    assert lines(tmp_path) == [line]


def test_a_threshold_is_broken_beyond_its_limit_and_met_with_enough_rows(tmp_path: Path) -> None:
    _, few = lines(tmp_path, POINTS)
    _, many = lines(tmp_path, POINTS, rows=20_000)
    assert str(few.threshold) == "at most 10 points"
    assert few.gap is not None
    assert many.gap is not None
    assert 0.1 < many.gap < few.gap
    assert few.meets is not None
    assert many.meets == 1.0
    assert few.meets < 1.0
    _, ratio = lines(tmp_path, RATIO)
    assert ratio.gap is not None
    assert ratio.gap < 0.8
    assert ratio.kind == "ratio"


def test_more_questions_ask_for_larger_gaps(tmp_path: Path) -> None:
    _, one = lines(tmp_path, POINTS)
    _, together, _ = lines(tmp_path, POINTS + RATIO)
    assert one.gap is not None
    assert together.gap is not None
    assert together.gap > one.gap
    assert together.meets == one.meets  # that a threshold is met is asked of each alone


def test_too_few_rows_show_nothing(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, rows=10)
    assert line.gap is None


@pytest.mark.parametrize(
    ("power", "thresholds", "words"),
    [
        ("", "", "says nothing of the rates to expect"),
        ("[power]\nrates = { selection_rate = 0.5 }", "", r"\[power\] says nothing of the groups"),
        (POWER.replace("g = {", "race = {", 1), "", "names 'race', which is no grouping"),
        (POWER.replace("0.5, b", "0.9, b"), "", "shares that add up to 1"),
        (POWER.replace("rate = 0.5", "rate = 1.5"), "", "must be between 0 and 1; got 1.5"),
        (POWER, '[[thresholds]]\nmetric = "tpr"\nmax = 0.1\n', r"`rates` in \[power\] has no 'tpr'"),
    ],
)
def test_nothing_is_assumed_that_nobody_said(tmp_path: Path, power: str, thresholds: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        lines(tmp_path, thresholds, power)


def test_rows_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the number of planned rows is missing"):
        lines(tmp_path, rows=None)
    assert lines(tmp_path, power=POWER + "rows = 2_000\n", rows=None) == lines(tmp_path)


def test_a_pilot_says_groups_and_rates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{g},{y},{d}" for g, y, d in zip("ab" * 200, rng.integers(0, 2, 400), [0, 0, 1, 1] * 100, strict=True)]
    pilot = tmp_path / "pilot.csv"
    pilot.write_text("\n".join(["g,y,d", *rows]) + "\n")
    (piloted, _), (said,) = lines(tmp_path, power="", pilot=pilot), lines(tmp_path)
    assert (piloted.model, piloted.n) == ("model", 1_000)
    assert piloted.gap == pytest.approx(said.gap, rel=0.2)  # two tests instead of one


def test_a_group_that_the_audit_would_leave_out_decides_nothing(tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.csv"
    rows = [f"{group},{i % 2},{i // 2 % 2}" for group, n in (("a", 400), ("b", 400), ("c", 24)) for i in range(n)]
    pilot.write_text("\n".join(["g,y,d", *rows]) + "\n")
    few, many = (lines(tmp_path, power="", pilot=pilot, rows=rows)[0] for rows in (300, 824))
    assert few.group in ("a", "b")
    assert (few.how.id, few.how.args["groups"]) == ("parity.power_left_out", ("c",))
    assert (many.group, many.n) == ("c", 24)
    assert "left out" not in str(many.how)


def test_people_of_no_known_group_are_no_group_of_a_pilot(tmp_path: Path) -> None:
    """The audit compares them with nobody."""
    pilot = tmp_path / "pilot.csv"
    rows = [f"{group},{i % 2},{i // 2 % 2}" for group, n in (("a", 400), ("b", 376), ("", 24)) for i in range(n)]
    pilot.write_text("\n".join(["g,y,d", *rows]) + "\n")
    line = lines(tmp_path, power="", pilot=pilot, rows=800)[0]
    assert (line.group, line.n) == ("b", 376)
    assert "missing" not in str(line.how)


def test_planned_groups_are_left_out_as_the_audit_would(tmp_path: Path) -> None:
    """Without a pilot too: 4 people of c decide nothing, and one large group alone has nobody to be compared with."""
    three = POWER.replace("a = 0.5, b = 0.5", "a = 0.5, b = 0.48, c = 0.02")
    (few,), (many,) = (lines(tmp_path, power=three, rows=rows) for rows in (200, 2_000))
    assert (few.group, few.n) == ("b", 96)
    assert (few.how.id, few.how.args["groups"]) == ("parity.power_left_out", ("c",))
    assert (many.group, many.n) == ("c", 40)
    alone = lines(tmp_path, POINTS, POWER.replace("a = 0.5, b = 0.5", "a = 0.98, b = 0.02"), rows=200)
    assert [(line.gap, line.group, line.meets) for line in alone] == [(None, None, None), (None, None, 0.0)]
    assert str(alone[0].how) == "nothing to compare; without groups of fewer than 10 people: b"


def test_the_command_prints_a_line_for_every_question(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(thresholds=POINTS, power=POWER))
    shown = CliRunner().invoke(app, ["power", str(path), "--rows", "2000"], standalone_mode=False)
    assert "parity, selection_rate, g: shows a gap of " in shown.output
    assert "'at most 10 points' is shown to be broken by a gap of 1" in shown.output
    assert " points or more (a: 1,000 people)" in shown.output
    as_json = CliRunner().invoke(app, ["power", str(path), "--rows", "2000", "--json"], standalone_mode=False)
    assert '"metric": "selection_rate"' in as_json.output


AGREED = """
[data]
source = "later.csv"
groups = ["g"]
id = "who"

[agreement]
raters = ["x", "y"]
metrics = ["pabak"]
min_count = 10
"""


def test_other_audits_are_simulated_on_tables_drawn_from_a_pilot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.evidence.power.TABLES", 5)
    agree = np.arange(400) % 10 < np.repeat([8, 6], 200)  # agreement of 0.8 and 0.6: PABAK 0.6 and 0.2
    rows = [f"{i},{'ab'[i // 200]},1,{int(same)}" for i, same in enumerate(agree)]
    (tmp_path / "pilot.csv").write_text("\n".join(["who,g,x,y", *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(AGREED)

    def planned(rows: int) -> PowerLine:
        (line,) = plan_power(tmp_path / "plan.toml", rows, pilot=tmp_path / "pilot.csv")
        return line

    few, many = planned(400), planned(1_600)
    assert many.gap is not None
    error = 2 * np.sqrt((0.16 + 0.24) / 800)
    assert many.gap == pytest.approx((-ndtri(0.025) - ndtri(0.2)) * error, rel=0.4)
    assert few.gap is not None
    assert few.gap == pytest.approx(2 * many.gap, rel=0.4)
    assert "simulated: 5 tables of 1,600 rows drawn from the pilot" in str(many.how)


def test_a_pilot_without_a_gap_does_not_make_gaps_easier_to_show(tmp_path: Path) -> None:
    """The interval of a worst pair ends at 0, so that half of its width says too little."""
    agree = np.arange(600) % 10 < 8
    rows = [f"{i},{'ab'[i // 300]},{i % 2},{(i % 2) ^ int(not same)}" for i, same in enumerate(agree)]
    (tmp_path / "pilot.csv").write_text("\n".join(["who,g,x,y", *rows]) + "\n")
    limit = '[[thresholds]]\naudit = "agreement"\nmetric = "pabak"\nmax = 0.05\n'
    (tmp_path / "plan.toml").write_text(f"{AGREED}\n{limit}")
    (line,) = plan_power(tmp_path / "plan.toml", 600, pilot=tmp_path / "pilot.csv")
    error = 2 * np.sqrt(2 * 0.16 / 300)
    assert line.gap is not None
    assert line.gap - 0.05 == pytest.approx((-ndtri(0.025) - ndtri(0.2)) * error, rel=0.15)


def test_gaps_of_answers_are_scaled_from_the_pilot_at_the_level_that_all_findings_leave() -> None:
    """By hand: the pilot's standard error 0.1 / 1.96 for four times the rows, and half of what answers leave open."""
    plan: Any = SimpleNamespace(rows=4_000, power=0.8)
    found: dict[str, Any] = {"value": 0.3, "low": 0.15, "high": 0.45, "coordinates": {"lower": 0.25, "upper": 0.35}}
    told: dict[str, Any] = {"audit": "disagreement", "metric": "calibration", "kind": "difference", "n": 500}
    finding = Finding(**told, **found, headline=Message(""))
    for number, z_alpha in ((1, 1.959964), (10, 2.807034)):
        together = bonferroni(0.95, number)
        line = _scaled_line(plan, finding, together, 0.95, pilot=1_000)
        assert line.gap == pytest.approx((z_alpha + 0.841621) * 0.1 / 1.959964 / 2 + 0.05, rel=1e-6)
