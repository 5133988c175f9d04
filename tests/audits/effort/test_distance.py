"""Other distances in the audit: from settings, learned from judged pairs, as a choice of the robustness analysis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec
from evenhand.errors import ConfigError, DataError

YEARS = ["y1", "y2", "y3"]


def people(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    incomes = rng.gamma(3.0, 1.0, (n, 3))
    columns = {"id": [f"p{i}" for i in range(n)], **dict(zip(YEARS, incomes.T.tolist(), strict=True))}
    return {**columns, "risk": rng.random(n).tolist(), "other": rng.random(n).tolist()}


def audit(**settings: Any) -> EffortResult:
    table = eh.Table(people(), id="id", predictions={"risk": "risk", "other": "other"})
    return eh.effort(table, trajectory=YEARS, scale=10, **settings)


def value(result: EffortResult) -> float:
    found: float = result.get("values", metric="eaif", model="risk").value
    return found


def test_the_norms_are_in_order_and_the_constant_and_scales_stretch_them() -> None:
    norms = [value(audit(distance=norm)) for norm in ("manhattan", "euclidean", "maximum")]
    assert norms == sorted(norms)
    assert norms[1] == value(audit())
    assert value(audit(distance={"lipschitz": 0.5})) < norms[1]
    stretched = {"norm": "manhattan", "effort_scale": 0.5, "aggregate_scale": 0.5}
    assert value(audit(distance=stretched)) == pytest.approx(
        value(audit(distance={"norm": "manhattan", "lipschitz": 2}))
    )


@pytest.mark.slow
def test_a_function_of_ones_own_is_named_but_not_recorded() -> None:
    result = audit(distance=lambda e, s, f, t: 0.5 * abs(e - f) + 0.5 * abs(s - t))
    assert value(result) == pytest.approx(value(audit(distance="manhattan")))
    assert result.get("values", metric="eaif", model="risk").method == "enumerated"
    assert result.to_dict()["spec"]["distance"]["norm"] == "own"
    assert EffortSpec.from_json(result.to_dict()["spec"]).distance.norm == "own"


def judged(n: int = 300) -> dict[str, Any]:
    """Pairs that are called similar when their efforts are near, whatever their aggregates."""
    data = people()
    incomes = np.column_stack([data[year] for year in YEARS])
    effort = 1 / (1 + np.exp(-(incomes[:, 2] - incomes[:, 1])))
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 60, n), rng.integers(0, 60, n)
    similar = np.abs(effort[i] - effort[j]) < 0.2
    return {"first": [f"p{k}" for k in i], "second": [f"p{k}" for k in j], "similar": similar.astype(int).tolist()}


def test_a_distance_learned_from_judged_pairs_weighs_what_they_went_by(tmp_path: Path) -> None:
    result = audit(distance={"norm": "learned", "similar": {"data": judged()}})
    note = next(note for note in result.notes if "learned from" in note.text)
    assert "300 judged pairs" in note.text
    assert isinstance(note.args["effort"], float)
    assert note.args["effort"] > 0.9
    assert f"its matrix is {note.args['effort']:.3f} for effort" in note.text
    assert value(result) == pytest.approx(value(audit(weights=[1.0])), abs=0.02)
    file = tmp_path / "judged.csv"
    pairs = judged()
    file.write_text(
        "first,second,similar\n" + "\n".join(f"{a},{b},{y}" for a, b, y in zip(*pairs.values(), strict=True))
    )
    assert value(audit(distance={"norm": "learned", "similar": {"source": str(file)}})) == value(result)


def test_wrong_distances_say_what_to_do() -> None:
    with pytest.raises(ConfigError, match="'learned' needs the judged pairs"):
        audit(distance="learned")
    with pytest.raises(ConfigError, match="needs a `function` of Python"):
        audit(distance="own")
    with pytest.raises(ConfigError, match="manhatten"):
        audit(distance="manhatten")
    with pytest.raises(DataError, match="no pair of `similar` is of two people"):
        audit(distance={"norm": "learned", "similar": {"data": {"first": ["a"], "second": ["b"], "similar": [1]}}})
    with pytest.raises(DataError, match="`similar` must be 1 or 0"):
        audit(distance={"norm": "learned", "similar": {"data": {"first": ["p1"], "second": ["p2"], "similar": [3]}}})


def test_robustness_tries_other_distances_as_one_more_choice() -> None:
    small: dict[str, Any] = {"measures": ["acceleration"], "scales": [1.0], "weights": [0.0, 0.5], "inertia": {}}
    result = audit(robustness={**small, "distances": ["manhattan", "maximum"]})
    found = {r.distance: r.value for r in result.rows("specifications", metric="eaif", model="risk", weight=0.5)}
    for norm in ("euclidean", "manhattan", "maximum"):
        same = audit(distance=norm).get("values", metric="eaif", model="risk", weight=0.5)
        assert found[norm] == pytest.approx(same.at_least_spread, abs=1e-12)
    assert result.get("flips", metric="eaif", choice="distance").options == 3
    alone = {r.value for r in result.rows("specifications", metric="eaif", model="risk", weight=0.0)}
    assert max(alone) - min(alone) < 1e-12
