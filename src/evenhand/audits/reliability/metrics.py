"""The metrics of the reliability audit: agreement between a model's results with and without mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.core.metrics import AGREEMENT_METRICS, Metric
from evenhand.stats.agreement import SCORE_METRICS
from evenhand.stats.reliability import METRICS as COMPUTED
from evenhand.stats.reliability.metrics import SPREAD_ADJUSTED

COMPANIONS = (
    "agreement",
    "prevalence_index",
    "bias_index",
    "prevalence_part",
    "bias_part",
    "mean_squared_error",
    "variance_first",
    "variance_second",
    "mean_second",
)
"""Metrics shown beside the compared ones to explain them."""

COMPANIONS_OF_NUMBERS = ("mean_error", "mean_squared_error", "variance_first", "variance_second", "mean_second")
"""Metrics shown beside the compared ones if models predict numbers."""

_TITLES = {
    "mean_error": "Mean change",
    "variance_first": "Variance of scores",
    "variance_second": "Variance with mistakes",
    "mean_second": "Mean score with mistakes",
}

METRICS: dict[str, Metric] = {
    name: replace(metric, title=_TITLES.get(name, metric.title))
    for name, metric in AGREEMENT_METRICS.items()
    if name in COMPUTED
}
"""The metrics computed from sums over people, by name."""

COMPARED = tuple(name for name, metric in METRICS.items() if metric.limits and metric.unit == "index")
"""The compared coefficients; higher values are more reliable, so gaps have a direction."""

OF_SCORES = tuple(name for name in COMPARED if name in (*SCORE_METRICS, SPREAD_ADJUSTED))
"""The compared coefficients of scores; the other coefficients compare decisions."""

COMPARED_BY_DEFAULT = ("kappa", "pabak", "icc_a1", "icc_spread")
"""The metrics compared by default."""


def measures_harm(name: str) -> bool:
    """Return whether a metric measures the effect of mistakes and nothing else.

    Examples
    --------
    >>> [name for name in COMPARED if measures_harm(name)]
    ['pabak', 'icc_spread']
    """
    return not METRICS[name].moves_with


def headline_metric(metrics: Sequence[str]) -> str:
    """Return the metric of the headline findings, unless a threshold names another metric.

    The other metrics measure nearly the same, and would only enlarge the family of tests.

    Examples
    --------
    >>> headline_metric(COMPARED_BY_DEFAULT), headline_metric(["kappa", "icc_a1"])
    ('pabak', 'kappa')
    """
    return min(metrics, key=lambda name: (name != "pabak", not measures_harm(name)))
