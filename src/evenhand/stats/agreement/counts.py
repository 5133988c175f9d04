"""The four counts of two raters with 0/1 ratings, and the metrics computed from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import require_choice
from evenhand.stats.agreement.ratings import Reasons, Undefined, binary_ratings, first_reason, people_weights, plain
from evenhand.stats.types import BoolArray, FloatArray


@dataclass(frozen=True)
class BinaryCounts:
    """Numbers of people that two raters rated (1, 1), (0, 1), (1, 0) and (0, 0), as arrays of one shape.

    Undefined metrics are nan; `why_undefined` returns the reason.

    Attributes
    ----------
    both, only_second, only_first, neither
        The counts a, b, c and d of people rated 1 by both raters, only by the second, only by the first, or by neither.

    References
    ----------
    T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46.

    Examples
    --------
    >>> counts = BinaryCounts(np.array(80.0), np.array(5.0), np.array(10.0), np.array(5.0))
    >>> round(float(counts.kappa()), 4), round(float(counts.pabak()), 4)
    (0.3182, 0.7)
    """

    both: FloatArray
    only_second: FloatArray
    only_first: FloatArray
    neither: FloatArray

    @property
    def n(self) -> FloatArray:
        """The number of people."""
        return self.both + self.only_second + self.only_first + self.neither

    def kappa(self) -> FloatArray:
        """Cohen's kappa, 2(ad - bc) / (r1 s0 + r0 s1)."""
        a, b, c, d = self.both, self.only_second, self.only_first, self.neither
        return ratio(2.0 * (a * d - b * c), (a + c) * (c + d) + (b + d) * (a + b))

    def pabak(self) -> FloatArray:
        """Prevalence- and bias-adjusted kappa, (a + d - b - c) / n = 2 po - 1."""
        return ratio(self.both + self.neither - self.only_second - self.only_first, self.n)

    def agreement(self) -> FloatArray:
        """Observed agreement, po = (a + d) / n."""
        return ratio(self.both + self.neither, self.n)

    def prevalence_index(self) -> FloatArray:
        """Prevalence index, (a - d) / n."""
        return ratio(self.both - self.neither, self.n)

    def bias_index(self) -> FloatArray:
        """Bias index, (b - c) / n."""
        return ratio(self.only_second - self.only_first, self.n)

    def positive_agreement(self) -> FloatArray:
        """Agreement on the class 1, 2a / (2a + b + c)."""
        return ratio(2.0 * self.both, 2.0 * self.both + self.only_second + self.only_first)

    def negative_agreement(self) -> FloatArray:
        """Agreement on the class 0, 2d / (2d + b + c)."""
        return ratio(2.0 * self.neither, 2.0 * self.neither + self.only_second + self.only_first)

    def ac1(self) -> FloatArray:
        """Gwet's AC1, (po - pe) / (1 - pe) with pe = 2q(1-q), q the share of ones over both raters."""
        q = ratio(2.0 * self.both + self.only_second + self.only_first, 2.0 * self.n)
        chance = 2.0 * q * (1.0 - q)
        return ratio(self.agreement() - chance, 1.0 - chance)

    def alpha(self) -> FloatArray:
        """Krippendorff's alpha, 1 - (2n - 1)(b + c) / (n1 n0)."""
        differ = self.only_second + self.only_first
        ones, zeros = 2.0 * self.both + differ, 2.0 * self.neither + differ
        return 1.0 - ratio((2.0 * self.n - 1.0) * differ, ones * zeros)

    def why_undefined(self, metric: str) -> Reasons:
        """Return the reason a metric is nan, or "" if it is defined.

        Examples
        --------
        >>> nobody, one = np.zeros(2), np.array([0.0, 9.0])
        >>> BinaryCounts(one, nobody, nobody, nobody).why_undefined("kappa").tolist()
        ['nobody', 'one_class']
        """
        require_choice("metric", metric, COUNT_METRICS)
        differ = self.only_second + self.only_first
        checks: list[tuple[BoolArray, Undefined]] = [(np.asarray(self.n == 0), Undefined.NOBODY)]
        if metric in {"kappa", "alpha"}:
            one_class = (differ == 0) & ((self.both == 0) | (self.neither == 0))
            checks.append((np.asarray(one_class), Undefined.ONE_CLASS))
        if metric == "positive_agreement":
            checks.append((np.asarray((differ == 0) & (self.both == 0)), Undefined.NO_POSITIVE))
        if metric == "negative_agreement":
            checks.append((np.asarray((differ == 0) & (self.neither == 0)), Undefined.NO_NEGATIVE))
        return first_reason(checks)


COUNT_METRICS: dict[str, Callable[[BinaryCounts], FloatArray]] = {
    "kappa": BinaryCounts.kappa,
    "pabak": BinaryCounts.pabak,
    "agreement": BinaryCounts.agreement,
    "positive_agreement": BinaryCounts.positive_agreement,
    "negative_agreement": BinaryCounts.negative_agreement,
    "ac1": BinaryCounts.ac1,
    "alpha": BinaryCounts.alpha,
    "prevalence_index": BinaryCounts.prevalence_index,
    "bias_index": BinaryCounts.bias_index,
}
"""The metrics of two binary raters; every audit of agreement computes them all."""


def binary_counts(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> BinaryCounts:
    """Count the pairs of 0/1 ratings of two raters; people on the last axis, simulations on the others.

    Parameters
    ----------
    first, second
        Ratings, 0 or 1, of shapes (..., people) that broadcast.
    weight
        The number of people each row represents, of a shape (..., people) that broadcasts; 1 by default.

    Examples
    --------
    >>> counts = binary_counts([1, 1, 0, 0], [[1, 0, 0, 0], [1, 1, 1, 0]])
    >>> counts.both, counts.only_first
    (array([1., 2.]), array([1., 0.]))
    """
    r, s = binary_ratings(first, second)
    if weight is None:
        a, ones_r, ones_s = (np.asarray(np.count_nonzero(yes, axis=-1), dtype=np.float64) for yes in (r & s, r, s))
        return BinaryCounts(*np.broadcast_arrays(a, ones_s - a, ones_r - a, r.shape[-1] - ones_r - ones_s + a))
    cells = [r & s, ~r & s, r & ~s, ~(r | s)]  # summed separately, so that an empty cell is exactly 0
    weights = people_weights(weight, r.shape[-1])
    counted = (np.einsum("...i,...i->...", cell.astype(np.float64), weights) for cell in cells)
    return BinaryCounts(*(np.asarray(cell) for cell in counted))


def pabak(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> FloatArray:
    """Return the prevalence- and bias-adjusted kappa of two raters' 0/1 ratings: 2 po - 1.

    Parameters
    ----------
    first, second
        Ratings, 0 or 1, of shapes (..., people) that broadcast.
    weight
        The number of people each row represents; 1 by default.

    References
    ----------
    T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46.

    Examples
    --------
    >>> float(pabak([1, 1, 0, 0], [1, 0, 0, 0]))
    0.5
    """
    return plain(binary_counts(first, second, weight=weight).pabak())


def prevalence_index(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> FloatArray:
    """Return (a - d) / n: the share rated 1 by both minus the share rated 0 by both; parameters as for `pabak`.

    Examples
    --------
    >>> float(prevalence_index([1, 1, 0, 0], [1, 1, 1, 0]))
    0.25
    """
    return plain(binary_counts(first, second, weight=weight).prevalence_index())


def bias_index(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> FloatArray:
    """Return (b - c) / n: the second rater's share of ones minus the first's; parameters as for `pabak`.

    Examples
    --------
    >>> float(bias_index([1, 1, 0, 0], [1, 1, 1, 0]))
    0.25
    """
    return plain(binary_counts(first, second, weight=weight).bias_index())


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return a quotient, or nan without a warning if the denominator is 0.

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, nan])
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.where(denominator == 0, np.nan, numerator / denominator), dtype=np.float64)


class PabakParts(NamedTuple):
    """The contributions of prevalence and bias to PABAK - kappa; their sum is exact."""

    prevalence: FloatArray
    bias: FloatArray


def kappa_from_pabak(pabak: ArrayLike, prevalence_index: ArrayLike = 0.0, bias_index: ArrayLike = 0.0) -> FloatArray:
    """Return the kappa implied by a PABAK and the two indices: (PABAK - PI² + BI²) / (1 - PI² + BI²).

    With one index set to 0 this removes that index's effect *from kappa*: PI = 0 leaves a value near PABAK. The
    published figures use the other direction, `pabak_from_kappa`. Undefined (nan) if PI is 1 or -1.

    References
    ----------
    T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46.

    Examples
    --------
    >>> round(float(kappa_from_pabak(0.7, 0.75, -0.05)), 4)
    0.3182
    """
    prevalence, bias = _square(prevalence_index), _square(bias_index)
    shift = bias - prevalence
    return plain(ratio(np.asarray(pabak, dtype=np.float64) + shift, np.asarray(1.0 + shift)))


def pabak_from_kappa(kappa: ArrayLike, prevalence_index: ArrayLike = 0.0, bias_index: ArrayLike = 0.0) -> FloatArray:
    """Return the PABAK implied by a kappa and the two indices: kappa (1 - PI² + BI²) + PI² - BI².

    With one index set to 0 this *adds only the other correction to kappa*: BI = 0 gives the prevalence-adjusted kappa
    ("PAK") and PI = 0 the bias-adjusted kappa ("BAK") of the published figures.

    Examples
    --------
    >>> round(float(pabak_from_kappa(0.318182, 0.75, -0.05)), 4)
    0.7
    """
    value = np.asarray(kappa, dtype=np.float64)
    return plain(value + (1.0 - value) * (_square(prevalence_index) - _square(bias_index)))


def pabak_minus_kappa(kappa: ArrayLike, prevalence_index: ArrayLike, bias_index: ArrayLike) -> PabakParts:
    """Return the contributions (1 - kappa) PI² and -(1 - kappa) BI² to PABAK - kappa.

    Examples
    --------
    >>> parts = pabak_minus_kappa(0.318182, 0.75, -0.05)
    >>> [round(float(part), 4) for part in parts]
    [0.3835, -0.0017]
    """
    disagreement = 1.0 - np.asarray(kappa, dtype=np.float64)
    return PabakParts(plain(disagreement * _square(prevalence_index)), plain(-disagreement * _square(bias_index)))


def _square(index: ArrayLike) -> FloatArray:
    return np.asarray(np.square(np.asarray(index, dtype=np.float64)))
