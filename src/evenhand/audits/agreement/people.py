"""Agreement of categories as a mean over people: people's values, and the comparison of two groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.agreement.metrics import AgreementMetric, Ratings
from evenhand.stats.reliability import PeopleGap, compare_patterns
from evenhand.stats.types import FloatArray, IntArray

_STEP = 1e-5
_DIGITS = 8
_MOST_NUMBERS = 4_000_000  # in one evaluation


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleValues:
    """The values of people by rating pattern, with a metric as their weighted mean.

    Parameters
    ----------
    values : (patterns,) the values.
    count : (patterns,) the number of people.
    weight : (patterns,) the weight of each person.
    bounds : the smallest and the largest possible value; None if unknown.
    """

    values: FloatArray
    count: IntArray
    weight: FloatArray
    bounds: tuple[float, float] | None

    @property
    def are_rates(self) -> bool:
        """Whether each value is full agreement or none, with equal weights."""
        return self.bounds is not None and bool(np.isin(self.values, self.bounds).all() and np.ptp(self.weight) == 0)

    @property
    def width(self) -> float:
        """The largest possible difference between two groups; coefficients lie between -1 and 1."""
        return 2.0 if self.bounds is None else self.bounds[1] - self.bounds[0]

    def compare(self, other: PeopleValues, level: float) -> PeopleGap | None:
        """Return the difference between this group and another with its test, or None if a value is undefined.

        Parameters
        ----------
        other : the other group.
        level : the smallest level at which the p-value may decide.
        """
        values, weight = np.append(self.values, other.values), np.append(self.weight, other.weight)
        if not np.isfinite(values).all():
            return None
        equal = bool((weight == weight[0]).all())
        return compare_patterns(
            values,
            np.append(self.count, np.zeros_like(other.count)),
            np.append(np.zeros_like(self.count), other.count),
            bounds=self.bounds,
            weights=None if equal else weight,
            level=level,
        )


def people_values(metric: AgreementMetric, ratings: Ratings, weight: FloatArray, count: IntArray) -> PeopleValues:
    """Return the value of a person with each pattern.

    A share of agreeing pairs of ratings, or a linear function of it, is a mean over people. Any other metric f is a
    ratio of means, and a person's value is f + W df/dw, with W the sum of the weights w (the infinitesimal jackknife).
    Because f is homogeneous of degree 0 in the weights, the weighted mean of the values is f.

    Parameters
    ----------
    metric : the metric.
    ratings : the patterns.
    weight, count : (patterns,) the summed weight and the number of people of each pattern.

    References
    ----------
    L. A. Jaeckel (1972), The infinitesimal jackknife, Bell Laboratories memorandum MM 72-1215-11.
    """
    each = weight / count
    if metric.share is not None:
        slope, intercept = metric.share(ratings.categories)
        shares = intercept + slope * agreeing_pairs(ratings).sum(axis=0)
        return PeopleValues(values=shares, count=count, weight=each, bounds=(intercept, intercept + slope))
    value = float(metric.evaluate(ratings, weight))
    influence = np.concatenate([_slopes(metric, ratings, weight, part) for part in _parts(len(weight))])
    influence -= float((weight * influence).sum() / weight.sum())
    values = np.round(value + influence, _DIGITS)
    return PeopleValues(values=values, count=count, weight=each, bounds=None)


def agreeing_pairs(ratings: Ratings) -> FloatArray:
    """Return the share of a person's pairs of ratings that agree on a category (categories, patterns)."""
    given = np.stack(ratings.raters)
    rated = (~np.isnan(given)).sum(axis=0)
    chosen = np.stack([(given == category).sum(axis=0) for category in range(ratings.categories)])
    return np.asarray(chosen * (chosen - 1) / (rated * (rated - 1)))


def _parts(patterns: int) -> list[IntArray]:
    return np.array_split(np.arange(patterns), -(-(patterns**2) // _MOST_NUMBERS))


def _slopes(metric: AgreementMetric, ratings: Ratings, weight: FloatArray, part: IntArray) -> FloatArray:
    """Return W df/dw for a part of the patterns, by central differences."""
    step = _STEP * weight[part] * np.eye(len(weight))[part].T
    up, down = (metric.evaluate(ratings, weight + sign * step.T) for sign in (1.0, -1.0))
    with np.errstate(all="ignore"):
        return np.asarray((up - down) / (2.0 * _STEP * weight[part]) * weight.sum())
