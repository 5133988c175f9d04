"""Measures are sums over rows, and a formula says what is added and divided."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.core.measures import Measure, Ratio, sum_coefficients

NAMES = ("n", "tp", "fp", "fn", "tn", "score")


@pytest.mark.parametrize(
    ("formula", "numerator", "denominator"),
    [
        ("tp / n", (("tp", 1.0),), (("n", 1.0),)),
        ("2 tp / (2 tp + fp + fn)", (("tp", 2.0),), (("tp", 2.0), ("fp", 1.0), ("fn", 1.0))),
        ("(5 fn + 0.5 fp) / n", (("fn", 5.0), ("fp", 0.5)), (("n", 1.0),)),
        ("(tp - fp) / (tp + fn)", (("tp", 1.0), ("fp", -1.0)), (("tp", 1.0), ("fn", 1.0))),
    ],
)
def test_a_formula_is_read_with_its_coefficients(formula: str, numerator: object, denominator: object) -> None:
    ratio = Ratio.parse(formula, NAMES)
    assert (ratio.numerator, ratio.denominator) == (numerator, denominator)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("tp", "must be one sum of measures over another"),
        ("tp / n / n", "must be one sum of measures over another"),
        ("tpp / n", "has no measure 'tpp'; did you mean 'tp'"),
        ("tp / (tp fn)", r"cannot be read at 'fn'"),
        ("tp * 2 / n", r"cannot be read at '\* 2'"),
        (" / n", "cannot be read at ''"),
        ("(tp + tp) / n", "names a measure twice"),
        ("tp + fp / n", r"needs parentheses around 'tp \+ fp'"),
    ],
)
def test_a_formula_that_cannot_be_read_says_where(formula: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ratio.parse(formula, NAMES)


def test_coefficients_over_cells_give_the_sum_over_rows() -> None:
    rng = np.random.default_rng(1)
    states = {name: rng.integers(0, 2, 200).astype(float) for name in ("outcome", "decision")}
    rows = {**states, "people": np.ones(200), "target": rng.normal(size=200)}
    measures = {
        "cost": Measure("cost", "of misses", lambda row: 3 * row["people"] * row["outcome"] * (1 - row["decision"])),
        "gain": Measure("gain", "of the selected", lambda row: row["target"] * row["decision"]),
    }
    terms = (("cost", 2.0), ("gain", -0.5))
    by_row = sum(number * measures[name].expression(rows).sum() for name, number in terms)
    coefficients = sum_coefficients(terms, measures, ("outcome", "decision"), ("people", "target"))
    cells = np.zeros((2, 2, 2))
    for position, name in enumerate(("people", "target")):
        np.add.at(cells[..., position], tuple(state.astype(int) for state in states.values()), rows[name])
    assert (coefficients * cells).sum() == pytest.approx(by_row)


@pytest.mark.parametrize("expression", [lambda row: row["score"] ** 2, lambda row: row["people"] + 1])
def test_a_measure_that_cells_cannot_sum_is_refused(expression: object) -> None:
    with pytest.raises(ValueError, match="the measure 'm' is not linear in people, score"):
        Measure("m", "", expression).coefficients(("outcome",), ("people", "score"))  # type: ignore[arg-type]
