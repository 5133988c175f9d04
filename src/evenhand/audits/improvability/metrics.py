"""The metrics of the improvability audit: the utilities, and by how much they are shown to be improvable."""

from __future__ import annotations

from evenhand.core.metrics import Limit, Metric
from evenhand.stats.improvability import Utility

PAPER = "Auerbach, Liang, Tabord-Meehan and Okumura 2024, Testing the fairness-improvability of algorithms"
FAIRNESS = "improvable_fairness"
ACCURACY = "improvable_accuracy"
IMPROVEMENT = "improvement"

_VALUE = "U = sum of u over sum of w, over the group's rows"
_EXAMPLES = f"{PAPER}, section 2"
_MARGIN = "the end of the unbroken run of rejections from a margin of 0"
_LIMITS = (Limit("value", "max", range=(0.0, 1.0)),)
_CAVEAT = (
    "Where an improvement is shown: that the candidate is the best, or that the law requires it; only that an "
    "alternative exists which does better by these measures, in the population that the rows were drawn from. Where "
    "none is shown: that no better algorithm exists. Another rule, other features or more rows may find one; not "
    "rejecting is no proof of necessity."
)

_ROWS = (
    Metric(
        name="classification",
        title="Right decisions",
        unit="share",
        formula=f"{_VALUE}: u = [y = d], w = 1",
        reference=_EXAMPLES,
    ),
    Metric(
        name="calibration",
        title="Mean outcome of the selected",
        unit="amount",
        formula=f"{_VALUE}: u = y [d = 1], w = [d = 1]",
        reference=_EXAMPLES,
    ),
    Metric(
        name="false_positive_rate",
        title="False positive rate",
        unit="share",
        formula=f"{_VALUE}: u = [y = 0, d = 1], w = [y = 0]",
        reference=_EXAMPLES,
    ),
    Metric(
        name="false_negative_rate",
        title="False negative rate",
        unit="share",
        formula=f"{_VALUE}: u = [y = 1, d = 0], w = [y = 1]",
        reference=_EXAMPLES,
    ),
    Metric(
        name="profit",
        title="Mean price paid",
        unit="amount",
        formula=f"{_VALUE}: u = d [y >= d], w = 1",
        reference=_EXAMPLES,
    ),
    Metric(
        name=IMPROVEMENT,
        title="Better in every component at once",
        unit="index",
        formula="the largest p-value of the components (intersection-union)",
        reference=f"{PAPER}, section 3",
    ),
    Metric(
        name=FAIRNESS,
        title="Improvable fairness",
        unit="share",
        formula=f"the largest share by which the gap is shown to shrink, with no less accuracy: {_MARGIN}",
        reference=PAPER,
        caveat=_CAVEAT,
        headline=True,
        limits=_LIMITS,
    ),
    Metric(
        name=ACCURACY,
        title="Improvable accuracy",
        unit="share",
        formula=f"the largest share by which accuracy is shown to improve, with no larger gap: {_MARGIN}",
        reference=PAPER,
        caveat=_CAVEAT,
        limits=_LIMITS,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}

MEANINGS = {
    "classification": "the share of right decisions (classification)",
    "calibration": "the mean outcome of the selected (calibration)",
    "false_positive_rate": "the share of those with outcome 0 who are selected (false positive rate)",
    "false_negative_rate": "the share of those with outcome 1 who are not selected (false negative rate)",
    "profit": "the mean price that is paid (profit)",
}
"""The utilities as a court reads them."""


def utility_metric(utility: Utility) -> Metric:
    """Return the row of a utility, the user's own too."""
    return METRICS.get(utility.name) or Metric(name=utility.name, title=utility.name, unit="amount")
