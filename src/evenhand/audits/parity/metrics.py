"""The table of group metrics, the source of options, tables, captions and docs.

A new ratio of sums is a new row; a new measure is a row of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from evenhand.audits.parity.definition import MEASURES, ParityMetric, RateFunction, parity_limits
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.core.measures import Ratio
from evenhand.core.thresholds import Alias
from evenhand.stats.types import FloatArray

_HARDT = "Hardt, Price and Srebro 2016, Equality of opportunity in supervised learning, NeurIPS 29"
_CHOULDECHOVA = "Chouldechova 2017, Fair prediction with disparate impact, Big Data 5(2)"
_DWORK = "Dwork et al. 2012, Fairness through awareness, ITCS"
_CORBETT = "Corbett-Davies et al. 2017, Algorithmic decision making and the cost of fairness, KDD"
_LABELS = "It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so is this."

_EMPTY = {
    ("n",): "no_people",
    ("tp", "fn"): "no_positives",
    ("fp", "tn"): "no_negatives",
    ("tp", "fp"): "nobody_selected",
    ("fn", "tn"): "everybody_selected",
}
"""The key of the sentence on an undefined metric, by the measures of its denominator."""


def _ratio_of_sums(name: str, title: str, meaning: str, formula: str, **row: Any) -> ParityMetric:
    """Return the definition of a metric that is a ratio of sums.

    It is a rate by default; `row` can override this.
    """
    ratio = Ratio.parse(formula, MEASURES)
    empty = _EMPTY.get(tuple(name for name, _ in ratio.denominator), "nobody_counts")
    row = {"unit": "share", "method": "rate", "needs": ("outcome",), "caveat": _LABELS, "empty": empty, **row}
    identity: dict[str, Any] = {"name": name, "title": title, "meaning": meaning, "formula": formula}
    return ParityMetric(**identity, ratio=ratio, limits=parity_limits(inf if row["method"] == "mean" else 1.0), **row)


_TPR = _ratio_of_sums(
    "tpr",
    "True positive rate",
    "share selected among people with the positive outcome",
    "tp / (tp + fn)",
    better="higher",
    worse=("lower", None),
    reference=_HARDT,
    headline=True,
)
_TNR = _ratio_of_sums(
    "tnr",
    "True negative rate",
    "share not selected among people with the negative outcome",
    "tn / (fp + tn)",
    better="higher",
    worse=(None, "lower"),
    reference=_CHOULDECHOVA,
    default=False,
)
_JACCARD = _ratio_of_sums(
    "jaccard",
    "Jaccard index",
    "share selected with the positive outcome among people selected or with the positive outcome",
    "tp / (tp + fp + fn)",
)
"""Not a metric of its own, but the basis of F1 = 2 J / (1 + J)."""

_TABLE = (
    _ratio_of_sums(
        "selection_rate",
        "Selection rate",
        "share of people who are selected",
        "(tp + fp) / n",
        needs=(),
        worse=("lower", "higher"),
        reference=_DWORK,
        headline=True,
        caveat="It does not say whether the groups differ in what the decision should rest on; compare people who are "
        "alike in that.",
    ),
    _ratio_of_sums(
        "not_selected_rate",
        "Rate not selected",
        "share of people who are not selected",
        "(fn + tn) / n",
        needs=(),
        worse=("higher", "lower"),
        reference=_DWORK,
        default=False,
        caveat="It does not say whether the groups differ in what the decision should rest on; compare people who are "
        "alike in that.",
    ),
    _ratio_of_sums(
        "mean_score",
        "Mean score",
        "mean score",
        "score / n",
        unit="score",
        method="mean",
        needs=("scores",),
        worse=("lower", "higher"),
        reference=_DWORK,
        headline=True,
        caveat="Equal means can hide unequal decisions at the threshold, and unequal means can be deserved.",
    ),
    _TPR,
    _ratio_of_sums(
        "fpr",
        "False positive rate",
        "share selected among people with the negative outcome",
        "fp / (fp + tn)",
        better="lower",
        worse=(None, "higher"),
        reference=_HARDT,
        headline=True,
    ),
    _ratio_of_sums(
        "fnr",
        "False negative rate",
        "share not selected among people with the positive outcome",
        "fn / (tp + fn)",
        better="lower",
        worse=("higher", None),
        reference=_CHOULDECHOVA,
    ),
    _TNR,
    _ratio_of_sums(
        "ppv",
        "Positive predictive value",
        "share with the positive outcome among people selected",
        "tp / (tp + fp)",
        better="higher",
        reference=_CHOULDECHOVA,
    ),
    _ratio_of_sums(
        "npv",
        "Negative predictive value",
        "share with the negative outcome among people not selected",
        "tn / (fn + tn)",
        better="higher",
        reference=_CHOULDECHOVA,
    ),
    _ratio_of_sums(
        "accuracy",
        "Accuracy",
        "share of people whose decision matches the outcome",
        "(tp + tn) / n",
        better="higher",
        worse=("lower", "lower"),
        reference=_CORBETT,
        caveat="It weighs both kinds of mistakes alike, and it follows the group's base rate. " + _LABELS,
    ),
    _ratio_of_sums(
        "base_rate",
        "Base rate",
        "share of people with the positive outcome",
        "(tp + fn) / n",
        reference=_CHOULDECHOVA,
        default=False,
        caveat="It describes the data, not the system; but it moves most of the metrics above.",
    ),
    _ratio_of_sums(
        "brier",
        "Brier score",
        "mean squared distance of the score from the outcome",
        "loss / n",
        unit="score",
        method="mean",
        better="lower",
        worse=("higher", "higher"),
        needs=("outcome", "scores between 0 and 1"),
        caveat="It mixes calibration with how predictable a group is. " + _LABELS,
        reference="Brier 1950, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78",
    ),
    ParityMetric(
        name="auc",
        title="AUC",
        meaning="probability that a person with the positive outcome scores above one without, ties counting half",
        formula="probability that a person with the positive outcome scores above one without, ties counting half",
        unit="index",
        method="rank",
        better="higher",
        worse=("lower", "lower"),
        needs=("outcome", "scores"),
        empty="one_outcome",
        rarer_counts=True,
        caveat="It compares people within a group only; equal AUCs can go with very unequal scores between groups. "
        + _LABELS,
        reference="DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44",
        limits=parity_limits(1.0),
    ),
    _ratio_of_sums(
        "f1",
        "F1",
        "harmonic mean of the positive predictive value and the true positive rate",
        "2 tp / (2 tp + fp + fn)",
        unit="index",
        method="function",
        function=RateFunction((_JACCARD,), lambda j: 2 * j / (1 + j), lambda j: (2 / (1 + j) ** 2,)),
        better="higher",
        worse=("lower", "lower"),
        empty="neither",
        default=False,
        caveat="It ignores people who are rightly not selected, and it moves with the group's base rate. " + _LABELS,
        reference="van Rijsbergen 1979, Information Retrieval",
    ),
    ParityMetric(
        name="balanced_accuracy",
        title="Balanced accuracy",
        meaning="mean of the true positive rate and the true negative rate",
        formula="(tp / (tp + fn) + tn / (fp + tn)) / 2",
        unit="share",
        method="function",
        function=RateFunction((_TPR, _TNR), lambda tpr, tnr: (tpr + tnr) / 2, lambda *_: (0.5, 0.5)),
        better="higher",
        worse=("lower", "lower"),
        needs=("outcome",),
        empty="one_outcome",
        rarer_counts=True,
        default=False,
        caveat="A high rate of one kind can hide a low one of the other; see both. " + _LABELS,
        reference="Brodersen et al. 2010, The balanced accuracy and its posterior distribution, ICPR",
        limits=parity_limits(1.0),
    ),
)


def custom_metric(name: str) -> ParityMetric:
    """Return the definition of a user-defined metric."""
    return ParityMetric(
        name=name,
        title=name,
        unit="index",
        meaning="your own function of the cells",
        formula="your own function of the cells",
        method="custom",
        empty="no_number",
        caveat="It shows what your own metric measures, no more.",
        reference="your own",
        headline=True,
        limits=parity_limits(inf),
    )


METRICS: dict[str, ParityMetric] = {metric.name: metric for metric in _TABLE}
"""The metrics of scores and decisions by name, in the order in which they are shown."""

WEIGHTED_F1 = ParityMetric(
    name="weighted_f1",
    title="Weighted F1",
    meaning="mean F1 of both outcomes, weighted by how many people have each",
    formula="p 2 TP / (2 TP + FP + FN) + (1 - p) 2 TN / (2 TN + FP + FN), p the share of positive outcomes; 0/0 is 0",
    unit="index",
    method="custom",
    better="higher",
    worse=("lower", "lower"),
    needs=("outcome",),
    empty="no_people",
    default=False,
    caveat="It moves with the share of positive outcomes, which may differ between groups. " + _LABELS,
    reference="van Rijsbergen 1979, Information Retrieval; weighted as in scikit-learn",
    limits=parity_limits(1.0),
)


def weighted_f1(cells: Any) -> FloatArray:
    """Return the weighted F1 of groups from their cells.

    It is not a ratio of sums, so its interval is bootstrapped.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> cells = SimpleNamespace(tp=np.array([1.0]), fp=np.array([0.0]), fn=np.array([1.0]), tn=np.array([2.0]))
    >>> weighted_f1(cells).round(4)
    array([0.7333])
    """
    wrong = cells.fp + cells.fn
    with np.errstate(all="ignore"):
        positive, negative = (np.where(hit > 0, 2 * hit / (2 * hit + wrong), 0.0) for hit in (cells.tp, cells.tn))
        n = cells.tp + cells.tn + wrong
        return np.asarray(((cells.tp + cells.fn) * positive + (cells.fp + cells.tn) * negative) / n)


BOOTSTRAPPED: dict[str, tuple[ParityMetric, Callable[[Any], FloatArray]]] = {"weighted_f1": (WEIGHTED_F1, weighted_f1)}
"""Metrics that are not ratios of sums, computed only on request, with bootstrap intervals."""

ALL_METRICS = {**METRICS, **NUMBER_METRICS}
"""The metrics of scores and decisions, and the metrics of numbers."""

BUILT_IN = {**ALL_METRICS, **{name: metric for name, (metric, _) in BOOTSTRAPPED.items()}}
"""All metrics that can be requested by name."""

DEFAULTS = tuple(name for name, metric in ALL_METRICS.items() if metric.default)
"""The metrics computed if no metric is named."""

NAMED_GAPS: dict[str, Alias] = {
    "traditional_parity": ("mean_score", "ratio", "worst_pair"),
    "demographic_parity_difference": ("selection_rate", "difference", "worst_pair"),
    "demographic_parity_ratio": ("selection_rate", "ratio", "worst_pair"),
    "equal_opportunity_difference": ("tpr", "difference", "worst_pair"),
    "predictive_equality_difference": ("fpr", "difference", "worst_pair"),
}
"""Gaps with established names in the literature; "traditional parity" is from the effort paper."""

GAP_NAMES = {gap: name for name, gap in NAMED_GAPS.items()}
