"""One pass through the rows: columns on all of them, fitted candidates in steps, each from the rows before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.improvability import Test
from evenhand.audits.improvability.splits import make_splits

OPTIONS: dict[str, Any] = {"status_quo": "old", "features": ["x", "z"], "resamples": 200}


def people(n: int = 800, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    return {
        "id": np.arange(n),
        "g": np.where(group, "a", "b").astype(object),
        "y": y,
        "old": np.where(rng.random(n) < 0.45 + 0.3 * group, y, 1 - y),
        "new": np.where(rng.random(n) < 0.9, y, 1 - y),
        "x": y + 0.5 * rng.standard_normal(n),
        "z": rng.standard_normal(n),
    }


def run(data: dict[str, Any] | None = None, **options: Any) -> Any:
    table = eh.Table(data or people(), id="id", outcome="y", groups="g")
    return eh.improvability(table, **{**OPTIONS, "candidates": ["linear", "new"], **options})


@pytest.fixture(scope="module")
def result() -> Any:
    return run()


def test_it_is_the_default_and_finds_what_is_there(result: Any) -> None:
    assert result.spec.test.design == "one_pass"
    assert {decision.model for decision in result.established} == {"linear", "new"}
    decision = result.established[0]
    assert (decision.splits, decision.rejected_by_median) == (1, None)
    assert 0 < decision.p_value < decision.p_adjusted < 0.1


def test_a_column_is_tested_on_all_rows_and_a_fit_on_those_after_the_start(result: Any) -> None:
    assert [(c.model, c.split, c.n) for c in result.candidates if c.model == "new"] == [("new", 1, 800)]
    steps = [c for c in result.candidates if c.model == "linear"]
    assert [c.split for c in steps] == list(range(1, 9))
    assert sum(c.n for c in steps) == 640
    assert {c.split for c in result.coefficients} == set(range(1, 9))


def test_no_row_tests_a_candidate_that_was_made_from_it() -> None:
    """A rule that remembers its rows finds none of them among those it decides."""
    seen: list[set[float]] = []

    def remember(rows: Any) -> Any:
        seen.append(set(rows.features[:, 1]))

        def decide(matrix: Any) -> Any:
            assert not seen[-1] & set(matrix[:, 1])
            return (matrix[:, 0] > 0.5).astype(float)

        return decide

    run(candidates={"own": remember}, jobs=1)
    assert [len(rows) for rows in seen] == [160, 240, 320, 400, 480, 560, 640, 720]


def test_the_order_of_rows_and_other_candidates_do_not_matter(result: Any) -> None:
    data = people()
    order = np.random.default_rng(1).permutation(800)
    again = run({name: values[order] for name, values in data.items()})
    assert again.to_dict()["decisions"] == result.to_dict()["decisions"]
    alone = run(candidates="new")
    assert (
        alone.decisions[0].p_value
        == result.get("decisions", model="new", test="signed", metric="improvable_fairness", margin=0.0).p_value
    )


def test_a_search_chooses_in_every_step() -> None:
    searched = run(candidates={"best": {"family": ["linear", "decision_tree"], "folds": 2}}, test={"steps": 3})
    assert [c.split for c in searched.candidates] == [1, 2, 3]
    assert 0 < searched.decisions[0].p_value <= 1


def test_a_search_that_finds_nothing_in_any_step_is_refused() -> None:
    data = people()
    impossible = {"own": {"rule": "sweep", "iota": 0.3, "directions": 50}}
    with pytest.raises(eh.EvenhandError, match="in no split was there a candidate to test"):
        run({**data, "x": data["z"]}, features=["z"], candidates=impossible)


def test_the_exported_candidate_is_that_of_the_last_step(result: Any, tmp_path: Path) -> None:
    names = {path.name for path in result.export(tmp_path, candidate="linear")}
    assert {"linear.json", "linear-decisions.csv"} <= names
    about = json.loads((tmp_path / "linear.json").read_text())
    assert (about["split"], about["of"]) == (8, 8)
    lines = (tmp_path / "linear-decisions.csv").read_text().splitlines()
    assert len(lines) == 641
    test = make_splits(800, result.spec)[0].test
    assert sum(line.startswith("1,") for line in lines) == test.size


def test_a_named_pair_needs_one_direction_only() -> None:
    data = people(300)
    either, named = run(data, candidates="new"), run(data, candidates="new", test={"worst_pair": ["a", "b"]})
    assert named.decisions[0].p_value <= either.decisions[0].p_value


def test_settings_of_the_other_design_are_not_written() -> None:
    assert set(Test().model_dump()) & {"splits", "train", "combine"} == set()
    assert set(Test(splits=2).model_dump()) & {"start", "steps"} == set()
    assert Test(**Test(splits=2).model_dump()) == Test(splits=2)
    assert Test(design="splits").combine == "exchangeable"
