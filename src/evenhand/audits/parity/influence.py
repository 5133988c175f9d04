"""Each person's influence on a metric, to compare two audits of the same people."""

from __future__ import annotations

import numpy as np

from evenhand.audits.parity.definition import MEASURES, ParityMetric
from evenhand.audits.parity.metrics import METRICS
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.audits.parity.numbers import number_of
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.measures import Columns, Ratio, Terms
from evenhand.stats.auc import auc_influence
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.decided import DecidedRows


def influence(
    spec: ParitySpec, people: DecidedRows, model: str, members: BoolArray, metric: str
) -> tuple[float, FloatArray] | None:
    """Return a group's metric and each person's influence on it; None for custom or undefined metrics."""
    if model in people.number:
        return _of_numbers(spec, people, model, members, NUMBER_METRICS.get(metric))
    row = None if metric in spec.custom else METRICS.get(metric)
    if row is None or model not in people.selected:
        return None
    if row.method == "rank":
        if model not in people.score:
            return None
        psi = np.zeros(len(members))
        parts = (people.score[model][members], people.positive[members], people.weight[members])
        value, psi[members] = auc_influence(*parts)
        return value, psi
    outcome, decision = people.positive.astype(np.float64), people.selected[model].astype(np.float64)
    score = people.score.get(model, np.zeros(len(outcome)))
    columns = {"outcome": outcome, "decision": decision, "people": np.ones(len(outcome))}
    columns |= {"score": score, "loss": (score - outcome) ** 2}
    return metric_influence(row, columns, np.where(members, people.weight, 0.0))


def _of_numbers(
    spec: ParitySpec, people: DecidedRows, model: str, members: BoolArray, metric: ParityMetric | None
) -> tuple[float, FloatArray] | None:
    """Return a mean of numbers, or a function of means, and each person's influence on it; None for quantiles."""
    if metric is None or metric.of_number is None or metric.quantile is not None:
        return None
    if people.outcome is None and metric.of_number != "value":
        return None
    numbers = number_of(metric.of_number, people.number[model], people.outcome, spec.tolerance)
    weight = np.where(members, people.weight, 0.0)
    if not weight.any():
        return None
    mean = float(weight @ numbers) / float(weight.sum())
    psi = weight * (numbers - mean) / weight.sum()
    if metric.function is None:
        return mean, psi
    value = np.float64(mean)
    with np.errstate(all="ignore"):
        (slope,) = metric.function.slopes(value)
        return float(metric.function.value(value)), np.asarray(slope * psi)


def metric_influence(metric: ParityMetric, people: Columns, weight: FloatArray) -> tuple[float, FloatArray] | None:
    """Return a metric and each person's influence on it.

    Return None if the metric is undefined or not a function of sums.

    For a ratio T = sum(w a) / sum(w b), the influence is w (a - T b) / sum(w b); for a function of rates, it is the
    chain rule's sum of the rates' influences.

    Parameters
    ----------
    metric : any metric that is a ratio of sums or a function of such rates.
    people : the columns outcome, decision, people (1), score and loss, with one entry per person.
    weight : the survey weights; 0 for people outside the group.

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
    """Return each person's contribution to a sum of measures."""
    parts = [number * MEASURES[name].expression(people) for name, number in terms]
    return np.asarray(sum(parts[1:], parts[0]))
