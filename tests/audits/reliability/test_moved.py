"""Risk levels and passing in the audit: settings, records, and the section of the report."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand as eh
from evenhand.core.display import DisplayTable
from evenhand.errors import EvenhandError

NOISE = {"features": {"age": 5, "arrests_year4": 1}, "noise_levels": [0, 0.1, 0.3]}


@pytest.fixture(scope="module")
def table() -> eh.Table:
    return eh.Table(eh.datasets.make_defendants(600, seed=1), groups="sex", outcome="rearrested")


def run(table: eh.Table, **scoring: Any) -> eh.ReliabilityResult:
    return eh.reliability(
        "logistic",
        table,
        features=["age", "arrests_year4"],
        noise=NOISE,
        replicates=4,
        resamples=100,
        scoring=scoring,
        attribution=False,
    )


def test_risk_levels_stand_beside_decisions_above_the_last_cut(table: eh.Table) -> None:
    levels, one = run(table, threshold=[0.3, 0.5]), run(table, threshold=0.5)
    assert levels.values == one.values
    assert {record.metric for record in one.moved} == {"passing"}
    assert [r for r in levels.moved if r.metric == "passing"] == list(one.moved)
    found = {(r.metric, r.risk_level): r for r in levels.rows("moved", group="Male", noise_level=0.3)}
    assert found["stays", "0.3 to 0.5"].value is not None
    kappa, pabak = found["weighted_kappa_linear", None], found["weighted_pabak", None]
    parts = sum(found[name, None].value or 0.0 for name in ("prevalence_part", "bias_part"))
    assert (pabak.value or 0.0) - (kappa.value or 0.0) == pytest.approx(parts)
    assert kappa.low is not None
    assert kappa.high is not None
    assert kappa.value is not None
    assert kappa.low < kappa.value < kappa.high
    female: Any = levels.get("moved", group="Female", noise_level=0.3, metric="kappa")
    assert female.gap == pytest.approx(female.value - (found["kappa", None].value or 0.0))
    assert female.gap_low < female.gap < female.gap_high
    titles = [part.caption for part in levels.section().parts if isinstance(part, DisplayTable)]
    assert any(title.startswith("Risk levels") for title in titles)
    assert any(title.startswith("Passing") for title in titles)


def test_deciles_are_ten_levels(table: eh.Table) -> None:
    found = run(table, threshold="deciles")
    stays = found.rows("moved", metric="stays", group="Male", noise_level=0.1)
    assert 5 <= len(stays) <= 10  # ties can make one decile of two
    assert found.models[0].threshold == 0.5


def test_more_mistakes_and_a_narrower_neighbourhood_pass_more_people(table: eh.Table) -> None:
    found = run(table, alike=0.02)
    few, many = (passing(found, level) for level in (0.1, 0.3))
    assert 0 < few < many < 1
    assert passing(run(table, alike=0.3), 0.3) < many


def passing(found: eh.ReliabilityResult, level: float) -> float:
    share = found.get("moved", group="Male", noise_level=level).value
    assert share is not None
    return share


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ({"threshold": [0.6, 0.3]}, "two or more rising cuts"),
        ({"threshold": [0.6]}, "two or more rising cuts"),
        ({"threshold": [n / 100 for n in range(30)]}, "30 cuts; give at most 19"),
        ({"threshold": "quartiles"}, "deciles"),
        ({"alike": 0}, "alike"),
    ],
)
def test_what_cannot_be(table: eh.Table, scoring: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        run(table, **scoring)


def test_audit_toml_has_risk_levels(tmp_path: Any) -> None:
    (tmp_path / "audit.toml").write_text(
        """
[data]
dataset = "defendants"
rows = 400
dataset_seed = 1
groups = "sex"
outcome = "rearrested"
[reliability]
model = "logistic"
features = ["age", "arrests_year4"]
replicates = 3
resamples = 100
attribution = false
[reliability.noise]
features = { age = 5, arrests_year4 = 1 }
noise_levels = [0.2]
[reliability.scoring]
threshold = [0.3, 0.6]
alike = 0.05
"""
    )
    found = eh.audit(tmp_path / "audit.toml")["reliability"]
    assert {record.risk_level for record in found.rows("moved", metric="stays")} == {
        "up to 0.3",
        "0.3 to 0.6",
        "above 0.6",
    }
