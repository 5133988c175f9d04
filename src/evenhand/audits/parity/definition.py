"""Definition of one group metric, and of the measures that it sums.

Most metrics are a ratio of two sums of measures, defined by the row's formula. The measures are the counts `tp`
(selected, positive outcome), `fp` (selected, negative), `fn` (not selected, positive), `tn` (neither) and `n` (all
people), and the sums `score` of scores and `loss` of squared errors. A new ratio is a new row; a new measure is a row
of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Literal

import numpy as np

from evenhand.core.measures import Measure, Ratio, Terms, sum_coefficients
from evenhand.core.metrics import Limit, Metric, gap_limits, ratio_limits
from evenhand.core.records import Against
from evenhand.stats.types import BoolArray, FloatArray, IntArray

STATES = ("outcome", "decision")
"""The binary states by which cells are counted, in the order of the axes."""

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

OfNumber = Literal["value", "outcome", "error", "absolute_error", "squared_error", "within"]
"""A number of each person: the prediction, the outcome, the error (prediction minus outcome), its absolute value, its
square, or whether its absolute value is at most the tolerance."""

Worse = tuple[Literal["lower", "higher"] | None, Literal["lower", "higher"] | None]
"""The worse value for a group's people, if selection (or a higher number) is good for them, and if it is bad."""


@dataclass(frozen=True)
class RateFunction:
    """An increasing function of independent rates, with limits computed from the limits of the rates.

    Parameters
    ----------
    rates : the metrics of the rates. Rates of different people are independent, conditional on their numbers.
    value : the function.
    slopes : the partial derivatives of the function. The delta method's variance is the sum of slope² times the rate's
        variance.
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
    ratio : the numerator and denominator as sums of measures, if the metric is a ratio of sums.
    function : the function of rates that defines the metric, if its limits are computed from the rates' limits.
    of_number : the number of each person that a metric of numbers summarises; None for scores and decisions.
    quantile : the share that defines a quantile of the numbers, or None.
    method : 'rate' (Wilson), 'mean' (Student's t on the logit scale), 'rank' (DeLong), 'function' (of rates: MOVER),
        'number' (the mean of numbers: Hall's transformed t), 'quantile' (order statistics) or 'custom' (bootstrap).
    worse : the worse value for a group's people, if being selected is good for them, and if it is bad.
    needs : the required data: 'outcome', 'scores', 'scores between 0 and 1', 'numbers', 'a tolerance'.
    empty : the key of the sentence on an empty denominator.
    rarer_counts : whether `min_count` applies to the people with the rarer outcome, not to all people in the
        denominator.
    default : whether the metric is computed by default.
    """

    meaning: str
    ratio: Ratio | None = None
    function: RateFunction | None = None
    of_number: OfNumber | None = None
    quantile: float | None = None
    method: Literal["rate", "mean", "rank", "function", "number", "quantile", "custom"]
    worse: Worse = (None, None)
    needs: tuple[str, ...] = ()
    empty: str
    rarer_counts: bool = False
    default: bool = True

    def worse_value(self, favourable: str | None) -> Literal["lower", "higher"] | None:
        """Return the value that is worse for a group's people.

        Return None if neither value is worse, or if the favourable side is unknown.

        Parameters
        ----------
        favourable : the good side for a person: 'selected' or 'not_selected' for decisions, 'higher' or 'lower' for
            numbers, or None.
        """
        good, bad = self.worse
        if favourable is None:
            return good if good == bad else None
        return good if favourable in ("selected", "higher") else bad

    @property
    def denominator_names(self) -> tuple[str, ...]:
        """The measures in the denominator."""
        return () if self.ratio is None else tuple(name for name, _ in self.ratio.denominator)

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of the numerator by (outcome, decision, row value) and of the denominator by cell.

        Examples
        --------
        >>> from evenhand.audits.parity.metrics import METRICS
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

    @property
    def can_be_standardised(self) -> bool:
        """Whether the metric can be standardised over strata; for numbers, only means and their functions can."""
        return self.of_number is None or self.method in ("number", "function")

    def bounds(self, score_range: tuple[float, float]) -> tuple[float, float]:
        """Return the bounds of possible values, from the possible contributions of one person to both sums.

        Examples
        --------
        >>> from evenhand.audits.parity.metrics import METRICS
        >>> METRICS["mean_score"].bounds((1.0, 10.0)), METRICS["tpr"].bounds((1.0, 10.0))
        ((1.0, 10.0), (0.0, 1.0))
        """
        if self.method == "custom" or self.of_number in ("value", "outcome", "error"):
            return -inf, inf
        if self.of_number is not None and self.method != "rate":
            return 0.0, inf
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
        """Return the number of people to compare with `min_count`: the smallest denominator of the metric's rates."""
        return np.asarray(np.min([(n * cells).sum(axis=(-2, -1)) for cells in self._cells()], axis=0))

    def _cells(self) -> BoolArray:
        """Return the mask of cells in the denominator, for each rate of the metric."""
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
    """Return the coefficients of both sums; refuse a denominator that does not count people."""
    above, below = term_coefficients(ratio.numerator), term_coefficients(ratio.denominator)
    if below[..., WEIGHT + 1 :].any() or (below < 0).any():
        names = ", ".join(name for name, _ in ratio.denominator)
        raise ValueError(f"the sum below the line must count people; {names} does not")
    return above, below[..., WEIGHT]


_AGAINST: tuple[Against, ...] = ("worst_pair", "reference", "overall")


def parity_limits(most: float) -> tuple[Limit, ...]:
    """Return the possible limits on gaps: differences up to `most`, and ratios."""
    return (*gap_limits(most=most, against=_AGAINST), *ratio_limits(against=_AGAINST))
