"""Other models under mistakes: compared person by person, chosen at no less accuracy, exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.reliability.mitigation import _reliability_change, accuracy_change
from evenhand.errors import EvenhandError
from evenhand.stats.intervals import wilson

FEATURES = ["age", "arrests_year4", "arrests_year3"]
SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "noise": {"features": {"age": 5, "arrests_year4": 1, "arrests_year3": 1}, "noise_levels": [0.3]},
    "replicates": 3,
    "resamples": 100,
    "attribution": False,
    "folds": 2,
}


@pytest.fixture(scope="module")
def table() -> eh.Table:
    return eh.Table(eh.datasets.make_defendants(400, seed=1), groups="sex", outcome="rearrested")


@pytest.fixture(scope="module")
def found(table: eh.Table, tmp_path_factory: Any) -> tuple[eh.ReliabilityResult, Any]:
    path = tmp_path_factory.mktemp("models") / "chosen.skops"
    mitigation = {"family": ["sparse", "regularised"], "margin": 0.9, "export": str(path)}
    return eh.reliability("logistic", table, mitigation=mitigation, **SETTINGS), path


def test_every_member_of_a_family_is_held_against_the_given_model(found: tuple[eh.ReliabilityResult, Any]) -> None:
    records = found[0].mitigation
    assert [record.family for record in records] == ["as given", *["sparse"] * 3, *["regularised"] * 3]
    assert records[0].accuracy_change is None
    assert sum(record.chosen for record in records) == 1
    chosen = next(record for record in records if record.chosen)
    assert chosen.reliability == max(record.reliability for record in records if record.no_less_accurate)
    for record in records[1:]:
        assert record.accuracy_change == pytest.approx(record.accuracy - records[0].accuracy)
        assert record.reliability_change == pytest.approx(record.reliability - records[0].reliability)


def test_accuracy_and_reliability_are_those_of_the_other_tables(found: tuple[eh.ReliabilityResult, Any]) -> None:
    result = found[0]
    given = result.mitigation[0]
    assert given.accuracy == pytest.approx(result.models[0].accuracy)
    values = result.rows("values", metric="pabak", noise_level=0.3)
    assert None not in [record.value for record in values]
    pabak = [record.value * record.n for record in values if record.value is not None]
    assert given.reliability == pytest.approx(sum(pabak) / given.n, abs=0.01)  # folds are weighted otherwise there


def test_the_chosen_model_is_written_and_can_be_audited(
    found: tuple[eh.ReliabilityResult, Any], table: eh.Table
) -> None:
    result, path = found
    assert path.exists()
    again = eh.reliability(str(path), table, **{**SETTINGS, "folds": None})
    assert again.models[0].kind == "file"
    assert any(getattr(part, "caption", "").startswith("Other models") for part in result.section().parts)


def test_at_a_small_margin_nothing_that_costs_accuracy_is_chosen(table: eh.Table) -> None:
    given = eh.reliability("logistic", table, mitigation={"family": "regularised", "margin": 0.0}, **SETTINGS)
    chosen = next(record for record in given.mitigation if record.chosen)
    assert chosen.no_less_accurate
    if chosen.family == "as given":
        assert chosen.accuracy_change is None
    else:
        assert chosen.accuracy_change_low is not None
        assert chosen.accuracy_change_low >= 0


def test_monotone_models_rise_or_fall(table: eh.Table) -> None:
    settings = {**SETTINGS, "replicates": 1, "features": FEATURES[:2], "noise": {"age": 5}}
    found = eh.reliability("logistic", table, mitigation={"family": "monotone"}, **settings)
    assert [record.model for record in found.mitigation] == ["logistic", "monotone"]


def test_limits_are_those_of_their_formulas(found: Any) -> None:
    given, *others = found[0].mitigation
    assert given.accuracy_low == pytest.approx(float(wilson(given.accuracy, given.n).low))
    assert all(-1 <= record.reliability_low <= record.reliability <= record.reliability_high <= 1 for record in others)
    for record in others:
        assert record.accuracy_change == pytest.approx(record.accuracy - given.accuracy)
        assert record.accuracy_change_low < record.accuracy_change < record.accuracy_change_high


def test_a_model_that_decided_alike_for_few_people_is_not_shown_to_be_as_accurate() -> None:
    """Where nobody of 100 is decided differently, 2 in 100 of others may well be."""
    few, many = (accuracy_change(np.ones(n), np.ones(n), 0.95) for n in (100, 400))
    assert few["accuracy_change"] == many["accuracy_change"] == 0.0
    low_of_few, low_of_many = few["accuracy_change_low"], many["accuracy_change_low"]
    assert low_of_few is not None
    assert low_of_many is not None
    assert low_of_few < -0.02 < -0.01 < low_of_many


def test_a_change_in_reliability_has_students_limits() -> None:
    found = _reliability_change(np.array([0.0, 1.0, 1.0, 1.0]), 0.9)
    assert found["reliability_change_high"] == pytest.approx(0.75 + 2.353363 * 0.5 / 2)
    assert _reliability_change(np.zeros(9), 0.9)["reliability_change_low"] is None


@pytest.mark.parametrize(
    ("mitigation", "message"),
    [
        ({"family": "small"}, "sparse"),
        ({"family": "sparse", "export": "model.pkl"}, "must end in .skops"),
        ({"family": "sparse", "model": "logit"}, "did you mean 'logistic'"),
    ],
)
def test_what_cannot_be(table: eh.Table, mitigation: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        eh.reliability("logistic", table, mitigation=mitigation, **SETTINGS)
