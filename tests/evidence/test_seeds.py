"""The range of findings over seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.core.findings import Finding
from evenhand.evidence.seeds import over_seeds, summary


def people() -> dict[str, list[float] | list[str]]:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 300, p=[0.4, 0.6])
    age, income = rng.integers(20, 70, 300), rng.normal(30, 8, 300).round(3)
    outcome = (rng.random(300) < 1 / (1 + np.exp(-(income - 30) / 4))).astype(int)
    columns = {"group": group, "age": age, "income": income, "outcome": outcome, "risk": rng.random(300).round(6)}
    return {name: column.tolist() for name, column in columns.items()}


def findings(seed: int) -> tuple[Finding, ...]:
    table = eh.Table(people(), groups="group", outcome="outcome", predictions="risk")
    mistakes = {"features": {"income": 5}, "noise_levels": [0, 0.3]}
    settings: Any = {
        "model": "logistic",
        "features": ["age", "income"],
        "noise": mistakes,
        "replicates": 3,
        "resamples": 100,
        "attribution": False,
    }
    return eh.audit(table, parity={}, reliability=settings, seed=seed).findings


def test_ranges_are_those_of_all_runs_and_only_the_experiment_moves() -> None:
    runs = [findings(seed) for seed in range(3)]
    ranges = over_seeds(runs[1], runs)
    assert [found.finding for found in ranges] == list(runs[1])
    moved = {found.finding.audit for found in ranges if len({other.value for other in found.others}) > 1}
    assert moved == {"reliability"}
    for found in ranges:
        assert len(found.others) == 3
        assert found.finding.value in [other.value for other in found.others]
        assert found.sentence.endswith(f"the same statement in {found.says_so} of 3")


def test_a_swapped_pair_is_the_same_question_and_another_statement() -> None:
    first = next(finding for finding in findings(0) if finding.audit == "reliability")
    swapped = replace(first, group=first.reference, reference=first.group, value=-(first.value or 0.0))
    (found,) = over_seeds([first], [[first], [swapped], []])
    assert (len(found.others), found.says_so, found.runs) == (2, 1, 3)


def test_findings_that_do_not_move_are_counted() -> None:
    alike = [finding for finding in findings(0) if finding.audit == "parity"]
    lines = summary(over_seeds(alike, [alike, alike]), range(2))
    assert lines == ["Over 2 seeds, 0 to 1:", f"{len(alike)} findings do not depend on the seed."]


def test_the_command_prints_the_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = people()
    rows = zip(*columns.values(), strict=True)
    (tmp_path / "people.csv").write_text("\n".join(",".join(map(str, row)) for row in [tuple(columns), *rows]))
    data = ["--groups", "group", "--scores", "risk", "--outcome", "outcome", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="0"):
        main(["audit", str(tmp_path / "people.csv"), *data, "--seeds", "3", "--seed", "4"])
    out = capsys.readouterr().out
    assert "Over 3 seeds, 4 to 6:" in out
    assert "do not depend on the seed." in out
