"""Two raters who give scores: their moments, and every statistic that is a function of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.agreement.counts import ratio
from evenhand.stats.agreement.intraclass import MeanSquares
from evenhand.stats.agreement.ratings import people_weights, plain, score_ratings
from evenhand.stats.agreement.spread import is_rounding, mean_and_squares
from evenhand.stats.agreement.undefined import Reasons, Undefined, first_reason
from evenhand.stats.types import BoolArray, FloatArray


@dataclass(frozen=True)
class ScoreMoments:
    """Means and variances (divided by n) of two raters' scores and of their difference; arrays of any one shape.

    Attributes
    ----------
    n
        People.
    mean_first, mean_second
        Mean scores.
    variance_first, variance_second, variance_error
        Variances of the scores and of second - first.
    mean_error
        Mean of second - first.

    Examples
    --------
    >>> moments = score_moments([0.0, 1.0], [0.0, 0.5])
    >>> float(moments.mean_squared_error()), float(moments.variance_first)
    (0.125, 0.25)
    """

    n: FloatArray
    mean_first: FloatArray
    mean_second: FloatArray
    variance_first: FloatArray
    variance_second: FloatArray
    variance_error: FloatArray
    mean_error: FloatArray

    def mean_squared_error(self) -> FloatArray:
        """Mean of (second - first)²."""
        return np.asarray(self.variance_error + self.mean_error**2)

    def mean_squares(self) -> MeanSquares:
        """Mean squares: MSR = 2 var((x+y)/2), MSC = n mean(e)² / 2, MSE = var(e) / 2, with n - 1."""
        with np.errstate(all="ignore"):
            unbiased = self.n / (self.n - 1.0)
            both = 2.0 * (self.variance_first + self.variance_second) - self.variance_error
            rows = np.where(is_rounding(both, self.variance_error), 0.0, both) * unbiased / 2.0
            return MeanSquares(
                self.n, 2, rows, np.asarray(self.n * self.mean_error**2 / 2.0), self.variance_error * unbiased / 2.0
            )

    def icc_a1(self) -> FloatArray:
        """ICC(A,1) of two raters."""
        return self.mean_squares().icc("A,1")

    def concordance(self) -> FloatArray:
        """Lin's concordance, 2 s_xy / (s_x² + s_y² + (mean x - mean y)²)."""
        total = self.variance_first + self.variance_second + self.mean_error**2
        return np.asarray(1.0 - ratio(self.mean_squared_error(), total))

    def spread_adjusted(self, spread: npt.ArrayLike) -> FloatArray:
        """ICC with one spread V for all groups, 1 - mean squared error / V."""
        return np.asarray(1.0 - ratio(self.mean_squared_error(), np.asarray(spread, dtype=np.float64)))

    def why_undefined(self, statistic: str) -> Reasons:
        """Return why a statistic is nan, "" where it is not.

        Examples
        --------
        >>> score_moments([0.5], [0.7]).why_undefined("icc_a1")
        array('there is only one person', dtype='<U25')
        """
        require_choice("statistic", statistic, SCORE_STATISTICS)
        if statistic == "icc_a1":
            return self.mean_squares().why_undefined("A,1")
        checks: list[tuple[BoolArray, Undefined]] = [(np.asarray(self.n == 0), Undefined.NOBODY)]
        if statistic == "concordance":
            checks.append((np.isnan(self.concordance()), Undefined.NO_SPREAD))
        return first_reason(checks)


SCORE_STATISTICS: dict[str, Callable[[ScoreMoments], FloatArray]] = {
    "icc_a1": ScoreMoments.icc_a1,
    "concordance": ScoreMoments.concordance,
    "mean_squared_error": ScoreMoments.mean_squared_error,
    "mean_first": lambda moments: moments.mean_first,
    "mean_second": lambda moments: moments.mean_second,
    "variance_first": lambda moments: moments.variance_first,
    "variance_second": lambda moments: moments.variance_second,
}


def score_moments(first: npt.ArrayLike, second: npt.ArrayLike, *, weight: npt.ArrayLike | None = None) -> ScoreMoments:
    """Return the moments of two raters' scores; people on the last axis, simulations on the others.

    Parameters
    ----------
    first, second
        Scores of shapes (..., people) that broadcast.
    weight
        How many people each row stands for, of a shape (..., people) that broadcasts; 1 by default.

    Examples
    --------
    >>> float(score_moments([0.0, 1.0, 1.0], [0.0, 0.0, 1.0]).mean_error.round(4))
    -0.3333
    """
    x, y = score_ratings(first, second)
    weights = people_weights(weight, x.shape[-1])
    n = np.asarray(weights.sum(axis=-1))
    mean_x, var_x = _mean_and_variance(x, weights, n)
    mean_y, var_y = _mean_and_variance(y, weights, n)
    mean_e, var_e = _mean_and_variance(y - x, weights, n)
    return ScoreMoments(*np.broadcast_arrays(n, mean_x, mean_y, var_x, var_y, var_e, mean_e))


def concordance(first: npt.ArrayLike, second: npt.ArrayLike, *, weight: npt.ArrayLike | None = None) -> FloatArray:
    """Return Lin's concordance coefficient: 2 s_xy / (s_x² + s_y² + (mean x - mean y)²), moments divided by n.

    On 0/1 scores it is exactly Cohen's kappa. ICC(A,1) of two raters differs from it by terms of the order 1/n.

    Parameters
    ----------
    first, second
        Scores of shapes (..., people) that broadcast.
    weight
        How many people each row stands for; 1 by default.

    References
    ----------
    L. I. Lin (1989), A concordance correlation coefficient to evaluate reproducibility, Biometrics 45.

    Examples
    --------
    >>> float(concordance([1, 1, 0, 0], [1, 0, 0, 0]))
    0.5
    """
    return plain(score_moments(first, second, weight=weight).concordance())


def spread_adjusted_icc(
    first: npt.ArrayLike, second: npt.ArrayLike, spread: npt.ArrayLike, *, weight: npt.ArrayLike | None = None
) -> FloatArray:
    """Return 1 - mean((second - first)²) / V with a spread V that is the same for all groups.

    ICC is 1 less the squared error over the *group's own* spread, so a group whose scores lie closer together has a
    lower ICC at equal errors. With one V for all groups that is gone. It is to ICC what PABAK is to kappa: on 0/1
    scores with V = 1/2 it is PABAK.

    Parameters
    ----------
    first, second
        Scores of shapes (..., people) that broadcast.
    spread
        V > 0: `pooled_spread` of everybody's scores, or 1/6 for scores spread evenly over [0, 1].
    weight
        How many people each row stands for; 1 by default.

    Examples
    --------
    >>> float(spread_adjusted_icc([1, 1, 0, 0], [1, 0, 0, 0], 0.5))
    0.5
    """
    value = np.asarray(spread, dtype=np.float64)
    if not np.all(value >= 0):
        raise EvenhandError(f"`spread` must not be negative; got {value.min():g}.")
    return plain(score_moments(first, second, weight=weight).spread_adjusted(value))


def pooled_spread(scores: npt.ArrayLike, *, weight: npt.ArrayLike | None = None) -> FloatArray:
    """Return V = 2 var(scores), divided by n: the expected squared difference of two people's scores.

    Examples
    --------
    >>> float(pooled_spread([0, 0, 1, 1]))
    0.5
    """
    return plain(2.0 * score_moments(scores, scores, weight=weight).variance_first)


def _mean_and_variance(values: FloatArray, weights: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, squares = mean_and_squares(values, weights, np.abs(values).max(axis=-1, initial=0.0))
    with np.errstate(all="ignore"):
        return mean, np.asarray(squares / n)
