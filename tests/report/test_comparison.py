"""Two audits compared: the change of every gap with its interval, verdict flips first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    confint_proportions_2indep,
    proportion_confint,
)

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import ConfigError
from evenhand.report.comparison import _difference


def month(selected: int, *, people: int = 500, confidence: float = 0.95) -> eh.Audit:
    """Audit women and men of whom so many women, and 200 of 500 men, are hired."""
    hired = [1] * selected + [0] * (people - selected) + [1] * 200 + [0] * 300
    table = eh.Table({"sex": ["F"] * people + ["M"] * 500, "hired": hired}, groups="sex", predictions="hired")
    limits = [{"metric": "selection_rate", "max": 0.1}]
    return eh.audit(table, parity={"resamples": 100, "confidence": confidence}, thresholds=limits)


def test_with_wilson_limits_the_interval_is_newcombes() -> None:
    old, new = (
        (0.4, *proportion_confint(40, 100, method="wilson")),
        (0.6, *proportion_confint(90, 150, method="wilson")),
    )
    change, low, high, _ = _difference(old, new, 0.95)
    assert change == pytest.approx(0.2)
    assert (low, high) == pytest.approx(confint_proportions_2indep(90, 150, 40, 100, method="newcomb"))


def test_a_number_is_not_changed_just_where_its_interval_covers_0() -> None:
    old, new = (0.4, 0.3, 0.5), (0.5, 0.41, 0.6)
    _, low, _, p_value = _difference(old, new, 0.95)
    assert low is not None
    assert p_value is not None
    assert (low > 0) == (p_value < 0.05)
    edge = (0.4 + (0.09**2 + 0.1**2) ** 0.5, 0.31 + (0.09**2 + 0.1**2) ** 0.5, 0.8)
    assert _difference(old, edge, 0.95)[3] == pytest.approx(0.05)


def test_a_gap_that_grew_is_worse_and_its_verdict_flips_first() -> None:
    comparison = eh.compare(month(190), month(80))
    (flip,) = comparison.flips
    assert comparison.changes[0] == flip == comparison.worse[0]
    assert (flip.old_verdict, flip.new_verdict) == ("meets", "does_not_meet")
    assert flip.change == pytest.approx(0.22)
    assert "Verdict from “meets” to “does not meet”" in comparison.summary()
    assert len(comparison.to_frame()) == len(comparison.changes) + len(comparison.others)


def test_backwards_every_change_has_the_other_sign() -> None:
    forwards, backwards = eh.compare(month(190), month(80)), eh.compare(month(80), month(190))
    assert [change.direction for change in backwards.changes] == ["better"]
    for there, back in zip(forwards.changes, backwards.changes, strict=True):
        assert there.low is not None
        assert (back.change, back.high) == pytest.approx((-(there.change or 0), -there.low))


def test_chance_is_no_change() -> None:
    comparison = eh.compare(month(190), month(185))
    assert comparison.worse == ()
    assert comparison.summary().startswith("Of 1 finding compared: 0 worse, 0 better, 1 unclear.")


def test_the_same_data_another_confidence_and_nothing_in_common_are_refused() -> None:
    with pytest.raises(ConfigError, match="both audits are of the same data"):
        eh.compare(month(190), month(190))
    with pytest.raises(ConfigError, match="different confidence \\(90%, 95%\\)"):
        eh.compare(month(190), month(180, confidence=0.9))


def test_what_differs_in_settings_is_told() -> None:
    told = eh.compare(month(190), month(180, people=600)).settings
    assert "Rows: 1,000 before, 1,100 now." in told


def test_the_command_compares_folders_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    month(190).save(tmp_path / "old")
    month(80).save(tmp_path / "new")
    for order, code in ((("old", "new"), 1), (("new", "old"), 0)):
        with pytest.raises(SystemExit) as left:
            main(["compare", *(str(tmp_path / name) for name in order), "--check", "--out", str(tmp_path / "both")])
        assert left.value.code == code
    assert "better beyond chance" in capsys.readouterr().out.replace("\n", " ")
    written = json.loads((tmp_path / "both/compare.json").read_text(encoding="utf-8"))
    assert written["changes"][0]["direction"] == "better"
    assert (tmp_path / "both/compare.md").read_text(encoding="utf-8").startswith("# Two audits compared")
