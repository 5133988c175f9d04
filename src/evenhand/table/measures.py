"""The row values that are summed over cells: survey weight, score and squared error, and their products."""

from __future__ import annotations

from math import ceil, log2

import narwhals as nw

from evenhand.table.cells import Measure
from evenhand.table.roles import Prediction


def exponent_for(bound: float) -> int:
    """Return the smallest ``e`` with ``bound <= 2**e``."""
    return ceil(log2(bound))


def weight_measures(column: str, exponent: int) -> list[Measure]:
    """Return the weight and its square."""
    weight = nw.col(column).cast(nw.Float64)
    return [Measure("w", weight, exponent), Measure("ww", weight * weight, 2 * exponent)]


def score_measures(
    prediction: Prediction, positive: nw.Expr | None, weight: str | None, weight_exponent: int
) -> list[Measure]:
    """Return the score `s` and the squared error `l`, times the weight, and every product of two of them.

    The products are named by their factors: `ss`, `sl`, `ll`, and with weights `ws`, `wl`.
    """
    score = nw.col(prediction.column).cast(nw.Float64)
    size = exponent_for(max(abs(bound) for bound in prediction.range))
    values = {"s": (score, size)}
    if positive is not None:
        error = score - positive.cast(nw.Float64)
        values["l"] = (error * error, 2 * (max(size, 0) + 1))
    if weight is not None:
        factor = nw.col(weight).cast(nw.Float64)
        values = {name: (value * factor, e + weight_exponent) for name, (value, e) in values.items()}
        values = {"w": (factor, weight_exponent), **values}
    measures = [Measure(name, value, e) for name, (value, e) in values.items() if name != "w"]
    names = list(values)
    for position, a in enumerate(names):
        for b in names[position:]:
            if a + b != "ww":  # already among the weight's own measures
                measures.append(Measure(a + b, values[a][0] * values[b][0], values[a][1] + values[b][1]))
    return measures
