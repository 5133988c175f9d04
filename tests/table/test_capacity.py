"""How many people can be selected: a whole number or a share, ties at the cut, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import EvenhandError

SCORES = np.linspace(0.01, 0.99, 99).round(2)


def table(scores: Any = SCORES, **arguments: Any) -> eh.Table:
    data = {"score": list(scores), "group": ["a", "b", "c"] * (len(scores) // 3)}
    return eh.Table(data, groups="group", predictions="score", **arguments)


@pytest.mark.parametrize(("capacity", "selected"), [(20, 20), (0.25, 24), (1, 1), (98, 98)])
def test_the_highest_scores_are_selected(capacity: float, selected: int) -> None:
    rate = eh.parity(table(capacity=capacity), min_count=1).rows("values", metric="selection_rate")
    assert sum(round((record.value or 0) * record.n) for record in rate) == selected


def test_people_tied_at_the_cut_are_not_selected_and_a_note_says_so() -> None:
    scores = np.r_[np.full(30, 0.2), np.full(6, 0.5), np.full(3, 0.9)]
    result = eh.parity(table(scores, capacity=5), min_count=1)
    assert sum(round((r.value or 0) * r.n) for r in result.rows("values", metric="selection_rate")) == 3
    note = next(note for note in result.notes if note.id == "table.capacity_tied")
    assert (note.args["selected"], note.args["places"], note.args["tied"]) == (3, 5, 6)


def test_it_is_the_same_from_settings_of_one_model_and_in_any_order() -> None:
    prediction = eh.Prediction(column="score", capacity=20)
    one = eh.parity(
        eh.Table({"score": SCORES, "group": ["a", "b", "c"] * 33}, groups="group", predictions={"m": prediction})
    )
    other = eh.parity(table(SCORES[::-1], capacity=20))
    assert {r.value for r in one.rows("values")} != set()
    assert sorted(r.n for r in one.rows("values")) == sorted(r.n for r in other.rows("values"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 99}, "selects 99 of 99 people; it must select some and not all"),
        ({"capacity": 0.001}, "selects 0 of 99 people"),
        ({"capacity": 0}, "capacity` .*must be greater than 0"),
        ({"capacity": 2.5}, "must be a whole number of people, or a share below 1; got 2.5"),
        ({"capacity": 5, "percentile": {"of": 90}}, "both say who is selected"),
    ],
)
def test_other_capacities_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        table(**arguments)
