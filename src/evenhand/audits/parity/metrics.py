"""The table of group metrics. Options, tables, captions and docs are generated from it.

Most metrics are a ratio of two sums of measures, given by the row's formula: `tp` (people selected, positive
outcome), `fp` (selected, negative), `fn` (not selected, positive), `tn` and `n` (all of them), and the sums `score` and
`loss` of the scores and of the squared errors. A new ratio is a new row; a new measure is a row of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any, Literal

import numpy as np

from evenhand.core.measures import Measure, Ratio, Terms, sum_coefficients
from evenhand.core.metrics import Limit, Metric, gap_limits, ratio_limits
from evenhand.core.records import Against
from evenhand.core.thresholds import Alias
from evenhand.stats.types import BoolArray, FloatArray, IntArray

STATES = ("outcome", "decision")
"""The states that cells are counted by, each 0 or 1, in the order of the axes."""

ROW_VALUES = ("people", "score", "loss")
"""The values summed in cells: 1, the score and the squared error of each row, times the survey weight."""

WEIGHT, SCORE, LOSS = range(3)
CELLS = {"tp": (1, 1), "fp": (0, 1), "fn": (1, 0), "tn": (0, 0)}

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("n", "all people", lambda row: row["people"]),
        Measure("tp", "selected, positive", lambda row: row["people"] * row["outcome"] * row["decision"]),
        Measure("fp", "selected, negative", lambda row: row["people"] * (1 - row["outcome"]) * row["decision"]),
        Measure("fn", "not selected, positive", lambda row: row["people"] * row["outcome"] * (1 - row["decision"])),
        Measure("tn", "neither", lambda row: row["people"] * (1 - row["outcome"]) * (1 - row["decision"])),
        Measure("score", "the scores", lambda row: row["score"]),
        Measure("loss", "the squared errors", lambda row: row["loss"]),
    )
}
"""The measures by name."""

Worse = tuple[Literal["lower", "higher"] | None, Literal["lower", "higher"] | None]
"""The worse value for a group's people: if being selected is good for them, and if it is bad."""

_HARDT = "Hardt, Price and Srebro 2016, Equality of opportunity in supervised learning, NeurIPS 29"
_CHOULDECHOVA = "Chouldechova 2017, Fair prediction with disparate impact, Big Data 5(2)"
_DWORK = "Dwork et al. 2012, Fairness through awareness, ITCS"
_CORBETT = "Corbett-Davies et al. 2017, Algorithmic decision making and the cost of fairness, KDD"
_LABELS = "It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so is this."


@dataclass(frozen=True)
class RateFunction:
    """A function of independent rates, increasing in each of them; its limits follow from theirs.

    Parameters
    ----------
    rates : the rows of the rates. Rates over different people are independent, given how many there are.
    value : the function.
    slopes : its partial derivatives. The delta method's variance is the sum of slope² times the rate's variance.
    """

    rates: tuple[ParityMetric, ...]
    value: Callable[..., FloatArray]
    slopes: Callable[..., tuple[FloatArray | float, ...]]


@dataclass(frozen=True, kw_only=True)
class ParityMetric(Metric):
    """One group metric.

    Parameters
    ----------
    meaning : the definition in words, to complete "the ...".
    ratio : the numerator and denominator as sums of measures, if it is a ratio of sums.
    function : the rates that it is a function of, if its limits follow from theirs.
    method : 'rate' (Wilson), 'mean' (Student's t on the logit scale), 'rank' (DeLong), 'function' (of rates: MOVER) or
        'custom' (bootstrap).
    worse : the worse value for a group's people, if being selected is good for them, and if it is bad.
    needs : required data: 'outcome', 'scores', 'scores between 0 and 1'.
    empty : why it is undefined with an empty denominator, a key of the audit's sentences.
    rarer_counts : whether `min_count` counts the people of the rarer outcome, not all in the denominator.
    default : whether it is computed by default.
    """

    meaning: str
    ratio: Ratio | None = None
    function: RateFunction | None = None
    method: Literal["rate", "mean", "rank", "function", "custom"]
    worse: Worse = (None, None)
    needs: tuple[str, ...] = ()
    empty: str
    rarer_counts: bool = False
    default: bool = True

    def worse_value(self, favourable: str | None) -> Literal["lower", "higher"] | None:
        """Return the value that is worse for a group's people.

        None if neither is or the favourable side is unknown.

        Parameters
        ----------
        favourable : 'selected' or 'not_selected', the side of the decision that is good for the person, or None.
        """
        good, bad = self.worse
        if favourable is None:
            return good if good == bad else None
        return good if favourable == "selected" else bad

    @property
    def denominator_names(self) -> tuple[str, ...]:
        """The measures in the denominator."""
        return () if self.ratio is None else tuple(name for name, _ in self.ratio.denominator)

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Return the numerator's coefficients by (outcome, decision, row value) and the denominator's by cell.

        Examples
        --------
        >>> above, below = METRICS["f1"].coefficients()
        >>> float(above[1, 1, WEIGHT]), below.tolist()
        (2.0, [[0.0, 1.0], [1.0, 2.0]])
        """
        if self.ratio is None:
            raise ValueError(f"the metric {self.name!r} is no ratio of sums, so it has no coefficients")
        return _ratio_coefficients(self.ratio)

    def __post_init__(self) -> None:
        if self.ratio is None:
            return
        above, below = self.coefficients()
        if above[below == 0].any():
            raise ValueError(f"the metric {self.name!r} counts people above the line who are not below it")
        of_people = above[..., WEIGHT]
        is_share = not above[..., WEIGHT + 1 :].any() and not (of_people * (of_people - below)).any()
        if self.method == "rate" and not (is_share and len(np.unique(below[below > 0])) == 1):
            raise ValueError(f"the metric {self.name!r} is no share of people; its method must be 'mean', not 'rate'")

    def bounds(self, score_range: tuple[float, float]) -> tuple[float, float]:
        """Return the limits of possible values, from one person's possible contributions to both sums.

        Examples
        --------
        >>> METRICS["mean_score"].bounds((1.0, 10.0)), METRICS["tpr"].bounds((1.0, 10.0))
        ((1.0, 10.0), (0.0, 1.0))
        """
        if self.method == "custom":
            return -inf, inf
        if self.method != "mean":
            return 0.0, 1.0
        above, below = self.coefficients()
        worst_loss = max((score - outcome) ** 2 for score in score_range for outcome in (0, 1))
        ends = above[below > 0][..., np.newaxis] * np.array([(1.0, 1.0), score_range, (0.0, worst_loss)])
        ends = ends / below[below > 0][:, np.newaxis, np.newaxis]
        return float(ends.min(axis=-1).sum(axis=-1).min()), float(ends.max(axis=-1).sum(axis=-1).max())

    def people(self, n: IntArray) -> IntArray:
        """Return the number of people behind the value, from counts by (..., outcome, decision)."""
        return np.asarray((n * self._cells().any(axis=0)).sum(axis=(-2, -1)))

    def people_counted(self, n: IntArray) -> IntArray:
        """Return the number that `min_count` applies to: the fewest people of any of its rates."""
        return np.asarray(np.min([(n * cells).sum(axis=(-2, -1)) for cells in self._cells()], axis=0))

    def _cells(self) -> BoolArray:
        """Return the cells whose people count, for each rate that the metric is a function of."""
        if self.ratio is not None:
            return np.asarray(self.coefficients()[1][np.newaxis] != 0)
        if self.function is not None:
            return np.concatenate([rate._cells() for rate in self.function.rates])
        return np.ones((1, 2, 2), dtype=np.bool_)


@cache
def term_coefficients(terms: Terms) -> FloatArray:
    """Return the coefficients of a sum of measures by (outcome, decision, row value).

    The array is read-only.
    """
    coefficients = sum_coefficients(terms, MEASURES, STATES, ROW_VALUES)
    coefficients.setflags(write=False)
    return coefficients


@cache
def _ratio_coefficients(ratio: Ratio) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of both sums; the denominator must count people."""
    above, below = term_coefficients(ratio.numerator), term_coefficients(ratio.denominator)
    if below[..., WEIGHT + 1 :].any() or (below < 0).any():
        names = ", ".join(name for name, _ in ratio.denominator)
        raise ValueError(f"the sum below the line must count people; {names} does not")
    return above, below[..., WEIGHT]


_EMPTY = {
    ("n",): "no_people",
    ("tp", "fn"): "no_positives",
    ("fp", "tn"): "no_negatives",
    ("tp", "fp"): "nobody_selected",
    ("fn", "tn"): "everybody_selected",
}
"""Why a metric is undefined, by the measures of its denominator: a key of the audit's sentences."""

_AGAINST: tuple[Against, ...] = ("worst_pair", "reference", "overall")


def _limits(most: float) -> tuple[Limit, ...]:
    return (*gap_limits(most=most, against=_AGAINST), *ratio_limits(against=_AGAINST))


def _ratio_of_sums(name: str, title: str, meaning: str, formula: str, **row: Any) -> ParityMetric:
    """Return the row of a metric that is a ratio of sums.

    It is a rate unless the row says otherwise.
    """
    ratio = Ratio.parse(formula, MEASURES)
    empty = _EMPTY.get(tuple(name for name, _ in ratio.denominator), "nobody_counts")
    row = {"unit": "share", "method": "rate", "needs": ("outcome",), "caveat": _LABELS, "empty": empty, **row}
    identity: dict[str, Any] = {"name": name, "title": title, "meaning": meaning, "formula": formula}
    return ParityMetric(**identity, ratio=ratio, limits=_limits(inf if row["method"] == "mean" else 1.0), **row)


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
"""Not published: F1 is 2 J / (1 + J)."""

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
        limits=_limits(1.0),
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
        limits=_limits(1.0),
    ),
)


def custom_metric(name: str) -> ParityMetric:
    """Return the row of a user-defined metric."""
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
        limits=_limits(inf),
    )


METRICS: dict[str, ParityMetric] = {metric.name: metric for metric in _TABLE}
"""The metrics by name, in the order in which they are shown."""

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
    limits=_limits(1.0),
)


def weighted_f1(cells: Any) -> FloatArray:
    """Return the weighted F1 of groups from their cells.

    It is no ratio of sums, so its interval is bootstrapped.

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
"""Metrics that are no ratio of sums, computed only on request; their intervals are bootstrapped."""

BUILT_IN = {**METRICS, **{name: metric for name, (metric, _) in BOOTSTRAPPED.items()}}
"""All metrics that can be requested by name."""

DEFAULTS = tuple(name for name, metric in METRICS.items() if metric.default)
"""The metrics computed when none is named."""

NAMED_GAPS: dict[str, Alias] = {
    "traditional_parity": ("mean_score", "ratio", "worst_pair"),
    "demographic_parity_difference": ("selection_rate", "difference", "worst_pair"),
    "demographic_parity_ratio": ("selection_rate", "ratio", "worst_pair"),
    "equal_opportunity_difference": ("tpr", "difference", "worst_pair"),
    "predictive_equality_difference": ("fpr", "difference", "worst_pair"),
}
"""Gaps with established names in the literature. Traditional parity is that of the effort paper."""

GAP_NAMES = {gap: name for name, gap in NAMED_GAPS.items()}
