"""The metrics of the improvability audit: the utilities, and the largest margins of improvement."""

from __future__ import annotations

from evenhand.core.metrics import Limit, Metric, Unit
from evenhand.core.records import Reveals
from evenhand.stats.improvability import Utility

PAPER = "Auerbach, Liang, Tabord-Meehan and Okumura 2024, Testing the fairness-improvability of algorithms"
FAIRNESS = "improvable_fairness"
ACCURACY = "improvable_accuracy"
IMPROVEMENT = "improvement"

_CAVEAT = (
    "A shown improvement does not make the candidate the best, nor does it say that the law requires it: only that an "
    "alternative exists which does better by these measures, in the population that the rows were drawn from. Where "
    "none is shown, a better algorithm may still exist: another rule, other features or more rows may find one, and "
    "not rejecting is no proof of necessity."
)


def _utility(name: str, title: str, unit: Unit, terms: str) -> Metric:
    formula = f"U = sum of u over sum of w, over the group's rows: {terms}"
    reveals: Reveals = "share" if unit == "share" else "number"
    return Metric(name=name, title=title, unit=unit, formula=formula, reference=f"{PAPER}, section 2", reveals=reveals)


def _improvable(name: str, title: str, what: str, headline: bool) -> Metric:
    formula = f"the largest share by which {what}: the end of the unbroken run of rejections from a margin of 0"
    limits = (Limit("value", "max", range=(0.0, 1.0)),)
    return Metric(
        name=name,
        title=title,
        unit="share",
        formula=formula,
        reference=PAPER,
        caveat=_CAVEAT,
        headline=headline,
        limits=limits,
    )


_ROWS = (
    _utility("classification", "Right decisions", "share", "u = [y = d], w = 1"),
    _utility("calibration", "Mean outcome of the selected", "amount", "u = y [d = 1], w = [d = 1]"),
    _utility("mirrored_calibration", "Mean outcome of those not selected", "amount", "u = y [d = 0], w = [d = 0]"),
    _utility("false_positive_rate", "False positive rate", "share", "u = [y = 0, d = 1], w = [y = 0]"),
    _utility("false_negative_rate", "False negative rate", "share", "u = [y = 1, d = 0], w = [y = 1]"),
    _utility("profit", "Mean price paid", "amount", "u = d [y >= d], w = 1"),
    _utility("absolute_error", "Mean absolute error", "amount", "u = abs(y - d), w = 1"),
    _utility("squared_error", "Mean squared error", "amount", "u = (y - d)², w = 1"),
    Metric(
        name=IMPROVEMENT,
        title="Better in every component at once",
        unit="index",
        formula="the largest p-value of the components (intersection-union)",
        reference=f"{PAPER}, section 3",
    ),
    _improvable(FAIRNESS, "Improvable fairness", "the gap is shown to shrink, with no less accuracy", True),
    _improvable(ACCURACY, "Improvable accuracy", "accuracy is shown to improve, with no larger gap", False),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}

MEANINGS = {
    "classification": "the share of right decisions (classification)",
    "calibration": "the mean outcome of the selected (calibration)",
    "mirrored_calibration": "the mean outcome of those not selected (mirrored calibration)",
    "false_positive_rate": "the share of those with outcome 0 who are selected (false positive rate)",
    "false_negative_rate": "the share of those with outcome 1 who are not selected (false negative rate)",
    "profit": "the mean price that is paid (profit)",
    "absolute_error": "the mean distance of the predicted number from the outcome (absolute error)",
    "squared_error": "the mean squared distance of the predicted number from the outcome (squared error)",
}
"""The meanings of the utilities, in words for a court."""


def utility_metric(utility: Utility) -> Metric:
    """Return the metric of a utility, built-in or user-defined."""
    return METRICS.get(utility.name) or Metric(name=utility.name, title=utility.name, unit="amount", reveals="number")
