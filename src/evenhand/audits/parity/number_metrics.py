"""The table of metrics of numbers, such as salaries, prices and grades, and of prediction errors."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from evenhand.audits.parity.definition import OfNumber, ParityMetric, RateFunction, parity_limits

_HALL = "Hall 1992, On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54"
_WILLMOTT = "Willmott and Matsuura 2005, Advantages of the mean absolute error over the RMSE, Climate Research 30"
_ORDER = "Hyndman and Fan 1996, Sample quantiles in statistical packages, The American Statistician 50 (definition 2)"
_UNEQUAL = (
    "It does not say whether the groups differ in what the number should rest on; compare people who are alike in that."
)
_TRUTH = "It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so is this."


def _number(name: str, title: str, meaning: str, of_number: OfNumber, **row: Any) -> ParityMetric:
    """Return the definition of a metric of numbers, by default a mean."""
    is_outcome = of_number in ("value", "outcome")
    row = {
        "unit": "amount",
        "reveals": "number",
        "method": "number",
        "needs": ("numbers",) if of_number == "value" else ("numbers", "outcome"),
        "caveat": _UNEQUAL if is_outcome else _TRUTH,
        "reference": _HALL,
        "limits": parity_limits(inf),
        **row,
    }
    formula = row.pop("formula", meaning)
    identity: dict[str, Any] = {"name": name, "title": title, "meaning": meaning, "formula": formula}
    return ParityMetric(**identity, of_number=of_number, empty="no_people", **row)


def _quantile(name: str, title: str, share: float, *, default: bool = True, headline: bool = False) -> ParityMetric:
    """Return the definition of a quantile of the numbers."""
    return _number(
        name,
        title,
        f"number that {share:.0%} of people do not exceed",
        "value",
        method="quantile",
        quantile=share,
        worse=("lower", "higher"),
        reference=_ORDER,
        default=default,
        headline=headline,
        reveals=None,  # it is the number of one person, or of two
    )


_MSE = _number(
    "mse",
    "Mean squared error",
    "mean of (prediction - outcome)²",
    "squared_error",
    better="lower",
    worse=("higher", "higher"),
    default=False,
)

_TABLE = (
    _number("mean", "Mean", "mean of the number", "value", worse=("lower", "higher"), headline=True),
    _quantile("median", "Median", 0.5, headline=True),
    _quantile("quantile_10", "10% quantile", 0.1),
    _quantile("quantile_25", "25% quantile", 0.25, default=False),
    _quantile("quantile_75", "75% quantile", 0.75, default=False),
    _quantile("quantile_90", "90% quantile", 0.9),
    _number(
        "mean_outcome",
        "Mean outcome",
        "mean of the outcome",
        "outcome",
        caveat="It describes the data, not the system.",
    ),
    _number(
        "mean_error",
        "Mean error",
        "mean of prediction - outcome",
        "error",
        worse=("lower", "higher"),
        headline=True,
        caveat="Errors in opposite directions cancel; see the mean absolute error. " + _TRUTH,
    ),
    _number(
        "mae",
        "Mean absolute error",
        "mean of |prediction - outcome|",
        "absolute_error",
        better="lower",
        worse=("higher", "higher"),
        headline=True,
        reference=_WILLMOTT,
        caveat="It is larger where the outcome itself varies more. " + _TRUTH,
    ),
    _MSE,
    _number(
        "rmse",
        "Root mean squared error",
        "square root of the mean of (prediction - outcome)²",
        "squared_error",
        method="function",
        function=RateFunction((_MSE,), np.sqrt, lambda mse: (0.5 / np.sqrt(mse),)),
        better="lower",
        worse=("higher", "higher"),
        reference=_WILLMOTT,
        caveat="A few large errors decide it. " + _TRUTH,
    ),
    _number(
        "within_tolerance",
        "Share within the tolerance",
        "share of people whose |prediction - outcome| is at most the tolerance",
        "within",
        unit="share",
        reveals="share",
        method="rate",
        needs=("numbers", "outcome", "a tolerance"),
        better="higher",
        worse=("lower", "lower"),
        headline=True,
        reference="Wilson 1927, Probable inference, the law of succession, and statistical inference, JASA 22",
        limits=parity_limits(1.0),
    ),
)

NUMBER_METRICS: dict[str, ParityMetric] = {metric.name: metric for metric in _TABLE}
"""The metrics of numbers by name, in the order in which they are shown."""
