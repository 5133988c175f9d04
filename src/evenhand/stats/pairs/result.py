"""Results of comparing all pairs: individual fairness, its jackknife interval, and differences of two values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import t_quantile
from evenhand.stats.pairs.inputs import ScoredPeople, excess_of, some_pairs
from evenhand.stats.types import FloatArray

_FEW_CARRIERS = 6.0  # people who carry the variance of a difference; fewer need all the caution


@dataclass(frozen=True, eq=False, kw_only=True)
class PairFairness:
    """Effort-aware individual fairness of one set of scores.

    Attributes
    ----------
    value
        The mean of F_ij = 1 - max(0, D_ij - d_ij) over all pairs; 1 is fair.
    low, high
        Interval for the people as a sample; nan if no pair is treated unfairly or there are fewer than 3 people. It
        includes the numerical error.
    stderr
        Standard error of the value; nan if there is no interval.
    n
        Number of people (with a survey weight above 0).
    pairs
        Number of pairs: all n (n - 1) / 2, or those drawn for the method 'sampled'.
    violated
        (Weighted) share of pairs with D > d.
    method
        'strips', 'blocks', 'grid' or 'sampled'.
    error
        The error of the value relative to the exact value over all pairs: 0 for the exact methods, otherwise four
        standard errors.
    row_means
        (people,) the mean of F_ij over all j != i: how fairly each person is treated. They are exact for the exact
        methods, accurate to about three decimals for 'grid' (two if many people share a value), and None for 'sampled'.
    survey_weight
        (people,) the survey weights, of mean 1; None if all are equal. If `sampled_from` is not None, the sum of
        squared weights of each row.
    sampled_from
        The (effective) number of people represented by a sample's row means; None if the row means are of all people.
    people, weight
        The people whose pairs were compared (or the sample of them), and the weight of effort in their distance.
    lever
        For shrunk scores, the decrease of the value per unit of the target spread (`allow_for_factor`); otherwise 0.
    spread, freedom
        The data of the interval: the standard error, `widened`, and its degrees of freedom.
    """

    value: float
    low: float
    high: float
    stderr: float
    n: int
    pairs: int
    violated: float
    method: str
    error: float = 0.0
    row_means: FloatArray | None = field(default=None, repr=False)
    survey_weight: FloatArray | None = field(default=None, repr=False)
    sampled_from: float | None = None
    people: ScoredPeople | None = field(default=None, repr=False)
    weight: float = 0.5
    lever: float = field(default=0.0, repr=False)
    spread: float = field(default=float("nan"), repr=False)
    freedom: float = field(default=float("nan"), repr=False)

    def at(self, confidence: float) -> PairFairness:
        """Return the same result with an interval of another confidence, without comparing pairs again.

        Examples
        --------
        >>> import numpy as np
        >>> from evenhand.stats.pairs import individual_fairness
        >>> found = individual_fairness(np.arange(30) % 7 / 7, np.linspace(0, 1, 30), np.zeros(30))
        >>> [round(found.at(confidence).low, 3) for confidence in (0.8, 0.95)], round(found.low, 3)
        ([0.769, 0.726], 0.726)
        """
        error = 0.0 if self.method == "sampled" else self.error  # its standard error includes the sampling of pairs
        low, high = limits(self.value, self.spread, self.freedom, confidence, error)
        return replace(self, low=low, high=high)

    def without_people(self) -> PairFairness:
        """Return a copy without data on single people, which the limits do not need."""
        return replace(self, row_means=None, survey_weight=None, people=None)


@dataclass(frozen=True, kw_only=True)
class PairDifference:
    """The difference in individual fairness between two sets of scores for the same people, with its interval.

    Attributes
    ----------
    value
        The first value minus the second.
    low, high
        Interval; nan with fewer than 3 people, or if the standard error of a difference is 0.
    stderr
        Standard error.
    n
        Number of people.
    p_value
        The smallest alpha at which the interval excludes 0; nan if there is no interval.
    spread, freedom, error
        The data of the interval: the standard error, `widened`, its degrees of freedom, and the numerical error.
    """

    value: float
    low: float
    high: float
    stderr: float
    n: int
    p_value: float = float("nan")
    spread: float = field(default=float("nan"), repr=False)
    freedom: float = field(default=float("nan"), repr=False)
    error: float = field(default=0.0, repr=False)

    def at(self, confidence: float) -> PairDifference:
        """Return the same difference with an interval of another confidence, without comparing pairs again."""
        half = float(t_quantile(self.freedom, confidence)) * self.spread + self.error
        return replace(self, low=self.value - half, high=self.value + half)


def jackknife(row_means: FloatArray, value: float, people: ScoredPeople) -> tuple[float, float]:
    r"""Return the jackknife standard error of a mean over all pairs, and its degrees of freedom.

    Leaving out person i changes U by 2 g_i (U - h_i) / (G - 2 g_i), with h_i the mean of the person's pairs, g_i =
    v_i (V - v_i) their weight, V = sum v and G = sum g; se² = (n-1)/n times the sum of the squares. With equal
    weights that is se = 2 sd(h) (n-1) / ((n-2) sqrt(n)). Degrees of freedom: V² / sum v² - 1 (Kish), n - 1 with
    equal weights; but at most 2 n / (k - 1), with k the kurtosis of the changes: a chi-squared variable with this many
    degrees of freedom has the same relative variance as the sum of squares (Satterthwaite). The number
    is small where few people cause nearly all unfairness.

    References
    ----------
    J. N. Arvesen (1969), Jackknifing U-statistics, Annals of Mathematical Statistics 40. L. Kish (1965), Survey
    Sampling. F. E. Satterthwaite (1946), An approximate distribution of estimates of variance components, Biometrics
    Bulletin 2.

    Examples
    --------
    >>> import numpy as np
    >>> everybody = ScoredPeople(np.zeros(4), np.zeros(4), np.zeros(4))
    >>> stderr, freedom = jackknife(np.array([0.7, 0.8, 0.9, 0.8]), 0.8, everybody)
    >>> by_hand = 2 * np.std([0.7, 0.8, 0.9, 0.8], ddof=1) * 3 / (2 * np.sqrt(4))
    >>> round(stderr, 6), round(float(by_hand), 6)
    (0.122474, 0.122474)
    """
    n = people.counted
    if n < 3:
        return float("nan"), float("nan")
    if people.survey is None:
        change, freedom = 2.0 * (row_means - value) / (n - 2), n - 1.0
    else:
        weight = people.survey * people.others
        change = 2.0 * weight * (row_means - value) / (weight.sum() - 2.0 * weight)
        freedom = people.kish - 1.0
    squares, fourth = float(np.sum(change**2)), float(np.sum(change**4))
    if n * fourth > squares**2 > 0.0:  # the kurtosis is n fourth / squares²
        freedom = min(freedom, 2.0 * n * squares**2 / (n * fourth - squares**2))
    return float(np.sqrt((n - 1) / n * squares)), freedom


def widened(stderr: float, people: tuple[ScoredPeople, ...], weight: float, kish: float | None = None) -> float:
    """Return a standard error that is valid even if fairness varies between pairs but not between people.

    The result is se + 2 sqrt(zeta2 / (n-1)) (n-1) / ((n-2) sqrt(n)), with zeta2 the variance of the values of pairs
    (for two models: of their differences) and n Kish's number. If all people's pairs are equally fair on average, the
    jackknife's standard error goes to 0 faster than the true one, and the second term keeps it valid. In ordinary data
    this term adds a few percent. Data cannot distinguish the two cases.

    Parameters
    ----------
    stderr
        The jackknife's standard error.
    people
        The people; twice, with the scores of either model, for a difference.
    weight
        Weight of effort in the distance.
    kish
        The effective number of people, if `people` is only a sample of them.

    References
    ----------
    W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, Annals of Mathematical
    Statistics 19.

    Examples
    --------
    >>> import numpy as np
    >>> coins = ScoredPeople(np.arange(100) % 2.0, np.zeros(100), np.zeros(100))  # all row means are equal
    >>> round(widened(0.0, (coins,), 0.5), 4)
    0.0102
    """
    first = people[0]
    survey = () if first.survey is None else (first.survey,)
    i, j = some_pairs(*(scored.score for scored in people), first.effort, first.aggregate, *survey)
    excess = excess_of(first, weight, i, j)
    if len(people) > 1:
        excess = excess - excess_of(people[1], weight, i, j)
    spread = weighted_spread(excess, first.weights[i] * first.weights[j])
    n = first.kish if kish is None else kish
    return stderr + 2.0 * spread * float(np.sqrt((n - 1) / n)) / (n - 2) if n > 2 else stderr


def limits(value: float, stderr: float, freedom: float, confidence: float, error: float) -> tuple[float, float]:
    """Return 1 - (1 - U) exp(± t se / (1 - U)) within [0, 1], widened by the numerical error; nan if U = 1.

    Examples
    --------
    >>> [round(limit, 4) for limit in limits(0.9, 0.02, 30.0, 0.95, 0.0)]
    [0.8496, 0.9335]
    """
    excess = 1.0 - value
    if not (excess > 0.0 and stderr > 0.0):
        return float("nan"), float("nan")
    spread = float(np.exp(min(float(t_quantile(freedom, confidence)) * stderr / excess, 700.0)))
    return max(0.0, 1.0 - excess * spread - error), min(1.0, 1.0 - excess / spread + error)


def summarise(
    people: ScoredPeople,
    weight: float,
    row_excess: FloatArray,
    *,
    violated: float,
    method: str,
    confidence: float,
    exact: tuple[float, float] | None = None,
) -> PairFairness:
    """Return the result from each person's sum of v_j max(0, D_ij - d_ij) and the weight of violated pairs.

    Parameters
    ----------
    people
        The people.
    weight
        Weight of effort in the distance.
    row_excess
        (n,) the sums.
    violated
        The sum of v_i v_j over the pairs with D > d.
    method
        The method that was used.
    confidence
        Two-sided confidence.
    exact
        A more precise value and its numerical error, if available; the row means are then shifted to this value.
    """
    row_means = 1.0 - row_excess / people.others
    mean = 1.0 - float(np.sum(people.weights * row_excess)) / (2.0 * people.pair_weight)
    value, error = exact if exact is not None else (mean, 0.0)
    if exact is not None:
        row_means += value - mean
    stderr, freedom = jackknife(row_means, value, people)
    spread = widened(stderr, (people,), weight)
    low, high = limits(value, spread, freedom, confidence, error)
    n = people.counted
    return PairFairness(
        value=value,
        low=low,
        high=high,
        stderr=stderr if value < 1.0 else float("nan"),
        n=n,
        pairs=n * (n - 1) // 2,
        violated=min(1.0, violated / people.pair_weight),
        method=method,
        error=error,
        row_means=row_means,
        survey_weight=people.survey,
        people=people,
        weight=weight,
        spread=spread,
        freedom=freedom,
    )


def compare(a: PairFairness, b: PairFairness, confidence: float = 0.95) -> PairDifference:
    """Return the difference in individual fairness between two sets of scores for the same people.

    The difference of two means over the same pairs is the mean of F - F', so its jackknife needs only the differences
    of the row means. The interval is value ± t se (`_spread_of_difference`), widened by the numerical errors of both.

    Parameters
    ----------
    a, b
        Results for the same people in the same order, with the same survey weights.
    confidence
        Two-sided confidence.

    Examples
    --------
    >>> from evenhand.stats.pairs import individual_fairness
    >>> effort, aggregate = [0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.0, 0.1]
    >>> a = individual_fairness([0.1, 0.5, 0.4, 0.9], effort, aggregate)
    >>> b = individual_fairness([0.9, 0.1, 0.2, 0.4], effort, aggregate)
    >>> round(compare(a, b).value, 4), round(compare(a, b).stderr, 4)
    (0.0167, 0.263)
    """
    if a.row_means is None or b.row_means is None:
        method = a.method if a.row_means is None else b.method
        raise EvenhandError(
            "`compare` needs the row means of both results; the method {method!r} has none.", method=method
        )
    if a.row_means.size != b.row_means.size or not _same(a.survey_weight, b.survey_weight):
        raise EvenhandError(
            "`compare` needs two results for the same people with the same survey weights; got {size:,} and "
            "{size_2:,} people.",
            size=a.row_means.size,
            size_2=b.row_means.size,
        )
    if a.people is None or b.people is None or a.weight != b.weight:
        raise EvenhandError(
            "`compare` needs two results at one weight; got {weight:g} and {weight_2:g}.",
            weight=a.weight,
            weight_2=b.weight,
        )
    value, apart = a.value - b.value, a.row_means - b.row_means
    if a.sampled_from is not None:
        weights = np.ones(apart.size) if a.survey_weight is None else a.survey_weight
        stderr = 2.0 * weighted_spread(apart, weights) / float(np.sqrt(a.sampled_from))
        freedom = a.sampled_from - 1.0
    else:
        stderr, freedom = jackknife(apart, value, a.people)
    wide = _spread_of_difference(a, b, apart - value, stderr)
    undefined = float("nan")
    difference = PairDifference(value=value, low=undefined, high=undefined, stderr=stderr, n=a.n, freedom=freedom)
    if wide == 0.0 and value != 0.0:  # pairs without differences are not informative about other people
        return difference
    error = a.error + b.error
    p_value = _p_value(value, wide, error, freedom)
    return replace(difference, p_value=p_value, spread=wide, error=error).at(confidence)


def _spread_of_difference(a: PairFairness, b: PairFairness, away: FloatArray, stderr: float) -> float:
    """Return the standard error of a difference, from the deviations of row means and the jackknife's standard error.

    - sqrt(se² + 4 zeta / (n (n - 1))), zeta the variance between pairs beyond the variance between people, zeta2 - 2
      zeta1: twice its contribution to the variance of the difference. At equal spread, common variation of both models'
      pairs cancels, so the difference is nearly normal even if its error is between pairs.
    - `widened`, if few people cause nearly all of the variance, so that the jackknife's error is often far too small.
      With k =
      (sum x²)² / sum x⁴ people who carry the variance, its share is (6 / k)², at most 1.
    """
    assert a.people is not None  # noqa: S101
    assert b.people is not None  # noqa: S101
    n = a.people.kish if a.sampled_from is None else a.sampled_from
    cautious = widened(stderr, (a.people, b.people), a.weight, a.sampled_from)
    if n <= 2 or stderr == 0.0:
        return cautious
    between = max(0.0, _pair_spread(a, b) ** 2 - (stderr * (n - 2)) ** 2 / (2.0 * (n - 1)))
    plain = float(np.sqrt(stderr**2 + 4.0 * between / (n * (n - 1))))
    carriers = float((away**2).sum() ** 2 / (away**4).sum()) * n / away.size
    few = min(1.0, (_FEW_CARRIERS / carriers) ** 2)
    return (1.0 - few) * plain + few * cautious


def _pair_spread(a: PairFairness, b: PairFairness) -> float:
    """Return the standard deviation over pairs of a difference, including the influence of the shrinkage factor."""
    people, other = a.people, b.people
    assert people is not None  # noqa: S101
    assert other is not None  # noqa: S101
    survey = () if people.survey is None else (people.survey,)
    i, j = some_pairs(people.score, other.score, people.effort, people.aggregate, *survey)
    apart = [np.abs(scored.score[i] - scored.score[j]) for scored in (people, other)]
    values = excess_of(other, b.weight, i, j) - excess_of(people, a.weight, i, j)
    values += (a.lever + b.lever) * (apart[0] - apart[1])
    return weighted_spread(values, people.weights[i] * people.weights[j])


def _p_value(value: float, stderr: float, error: float, freedom: float) -> float:
    """Return P(|T| >= (|value| - error) / stderr) for Student's T."""
    from scipy.special import stdtr

    beyond = max(abs(value) - error, 0.0)
    return float(2.0 * stdtr(freedom, -beyond / stderr)) if stderr > 0 else 1.0


def weighted_spread(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted standard deviation of values.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_spread(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    1.0
    """
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))


def _same(a: FloatArray | None, b: FloatArray | None) -> bool:
    return b is None if a is None else b is not None and np.array_equal(a, b)
