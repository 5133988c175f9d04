"""What a planned study could show, by the same command as what a planned audit could."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import ConfigError
from evenhand.study.planning import plan_study
from evenhand.study.template import study_template


def test_more_people_tell_a_smaller_weight_from_one_half(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(study_template("effort"))
    few, many = plan_study(path, 20), plan_study(path, 80)
    assert few.audit == "study"
    assert few.gap is not None
    assert many.gap is not None
    assert 0 < many.gap < few.gap
    with pytest.raises(ConfigError, match="the number of planned people is missing"):
        plan_study(path)
    shown = CliRunner().invoke(app, ["power", str(path), "--rows", "20", "--json"], standalone_mode=False)
    assert json.loads(shown.output)[0]["gap"] == few.gap
