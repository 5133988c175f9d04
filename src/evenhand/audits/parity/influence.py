"""How far each person moves a metric."""

from __future__ import annotations

import numpy as np

from evenhand.audits.parity.metrics import MEASURES, ParityMetric
from evenhand.core.measures import Columns, Ratio, Terms
from evenhand.stats.types import FloatArray


def metric_influence(metric: ParityMetric, people: Columns, weight: FloatArray) -> tuple[float, FloatArray] | None:
    """Return a metric and each person's influence on it; None where it is undefined or no function of sums.

    For a ratio T = sum(w a) / sum(w b) the influence is w (a - T b) / sum(w b); for a function of rates the chain rule
    adds up theirs.

    Parameters
    ----------
    metric : any metric that is a ratio of sums or a function of such rates.
    people : outcome, decision, people (1), score and loss, one entry a person.
    weight : survey weights; 0 for people outside the group.

    Examples
    --------
    >>> from evenhand.audits.parity.metrics import METRICS
    >>> one = np.ones(3)
    >>> people = {"outcome": np.array([1.0, 1.0, 0.0]), "decision": np.array([1.0, 0.0, 0.0]), "people": one}
    >>> value, influence = metric_influence(METRICS["tpr"], people, one)
    >>> value, influence.tolist()
    (0.5, [0.25, -0.25, 0.0])
    """
    if metric.ratio is not None:
        return _ratio_influence(metric.ratio, people, weight)
    if metric.function is None:
        return None
    rates = [metric_influence(rate, people, weight) for rate in metric.function.rates]
    defined = [rate for rate in rates if rate is not None]
    if len(defined) < len(rates):
        return None
    values = [np.float64(value) for value, _ in defined]
    slopes = metric.function.slopes(*values)
    influence = sum(slope * each for slope, (_, each) in zip(slopes, defined, strict=True))
    return float(metric.function.value(*values)), np.asarray(influence)


def _ratio_influence(ratio: Ratio, people: Columns, weight: FloatArray) -> tuple[float, FloatArray] | None:
    above, below = _summands(ratio.numerator, people), _summands(ratio.denominator, people)
    total = float(weight @ below)
    if total == 0:
        return None
    value = float(weight @ above) / total
    return value, weight * (above - value * below) / total


def _summands(terms: Terms, people: Columns) -> FloatArray:
    """Return what each person adds to a sum of measures."""
    parts = [number * MEASURES[name].expression(people) for name, number in terms]
    return np.asarray(sum(parts[1:], parts[0]))
