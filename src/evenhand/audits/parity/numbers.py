"""Group values of numbers, such as salaries, with the inputs of their limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evenhand.audits.parity.definition import OfNumber, ParityMetric
from evenhand.audits.parity.estimate import GroupValues, all_but_one, with_people
from evenhand.stats.intervals import effective_trials
from evenhand.stats.permutation import GroupedValues
from evenhand.stats.quantiles import GroupQuantiles
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.rows import NumberRows

_ROUNDING = 1e-13
_MOST = 0.5  # the share of one person in a group's variance above which the mean is not informative


@dataclass(frozen=True, eq=False)
class NumberPeople:
    """The numbers of people in groups.

    Parameters
    ----------
    rows : the rows with their numbers, in sorted order.
    codes : the group code of each row.
    groups : the number of groups.
    tolerance : the largest error counted as no error, or None.
    """

    rows: NumberRows
    codes: IntArray
    groups: int
    tolerance: float | None = None
    _sums: dict[OfNumber, _Sums] = field(default_factory=dict, repr=False)

    def values(self, metric: ParityMetric) -> GroupValues:
        """Return a metric in every group."""
        if metric.function is not None:
            return self._of_function(metric)
        return self._quantile(metric) if metric.quantile is not None else self._mean(metric)

    def _mean(self, metric: ParityMetric) -> GroupValues:
        """Return a mean, or the share of people within the tolerance."""
        assert metric.of_number is not None  # noqa: S101
        sums = self._sums_of(metric.of_number)
        is_weighted = self.rows.weight is not None
        values, rest = (each.values(metric, weighted=is_weighted) for each in (sums, sums.rest))
        everybody = sums.everybody.values(metric, weighted=is_weighted)
        with np.errstate(all="ignore"):
            share = sums.of[1, 0] / sums.of[1, 0].sum()
        overall, number = float(everybody.value[0]), int(everybody.n[0])
        rest = replace(rest, overall=overall, n_overall=number)
        values = replace(values, rest=rest, share=share, overall=overall, n_overall=number)
        return with_people(replace(values, one_person=sums.largest_share > _MOST), sums.people.merged())

    def _sums_of(self, of_number: OfNumber) -> _Sums:
        if of_number not in self._sums:
            ones = np.ones_like(self.codes)
            people = GroupedValues(self.numbers(of_number), ones, self.codes, self.rows.weight, self.groups)
            self._sums[of_number] = _Sums(people, people.moments)
        return self._sums[of_number]

    def _of_function(self, metric: ParityMetric) -> GroupValues:
        """Return a function of means, such as the root mean squared error, with limits from the means' limits."""
        assert metric.function is not None  # noqa: S101
        rates = tuple(self.values(rate) for rate in metric.function.rates)
        of = metric.function.value
        with np.errstate(all="ignore"):
            value = of(*(rate.value for rate in rates))
            overall = float(of(*(np.float64(rate.overall) for rate in rates)))
        unknown = np.full(self.groups, np.nan)
        return replace(
            rates[0],
            metric=metric,
            value=np.asarray(value),
            overall=overall,
            stderr=unknown,
            rates=rates,
            rest=None,
            people=None,
            members=None,
            one_person=None,
        )

    def _quantile(self, metric: ParityMetric) -> GroupValues:
        assert metric.quantile is not None  # noqa: S101
        ordered, unknown = self._ordered, np.full(self.groups, np.nan)
        sizes = np.diff(ordered.ends)
        return GroupValues(
            metric=metric,
            value=ordered.at(metric.quantile),
            overall=float(self._ordered_together.at(metric.quantile)[0]),
            n=sizes,
            n_overall=int(sizes.sum()),
            counted=sizes.astype(np.float64),
            stderr=unknown,
            trials=ordered.people,
            bounds=metric.bounds((0.0, 1.0)),
            weighted=self.rows.weight is not None,
            ordered=ordered,
            position=np.arange(self.groups),
        )

    @cached_property
    def _ordered(self) -> GroupQuantiles:
        return GroupQuantiles.build(self.rows.value, self.codes, self.rows.weight, self.groups)

    @cached_property
    def ordered_with_everybody(self) -> GroupQuantiles:
        """The sorted numbers of all groups and, last, of all people."""
        everybody = np.full_like(self.codes, self.groups)
        weight = None if self.rows.weight is None else np.tile(self.rows.weight, 2)
        codes = np.concatenate([self.codes, everybody])
        return GroupQuantiles.build(np.tile(self.rows.value, 2), codes, weight, self.groups + 1)

    @cached_property
    def _ordered_together(self) -> GroupQuantiles:
        return GroupQuantiles.build(self.rows.value, np.zeros_like(self.codes), self.rows.weight, 1)

    def influences(self, values: GroupValues) -> tuple[FloatArray, FloatArray]:
        """Return each person's influence on the value of their group, and on the overall value.

        For a quantile, it is the influence on the share of people at or below the quantile.
        """
        metric = values.metric
        if metric.quantile is not None:
            below = [self.rows.value <= most for most in (values.value[self.codes], values.overall)]
            own, whole = (each.astype(np.float64) for each in below)
        else:
            assert metric.of_number is not None  # noqa: S101
            own = whole = self.numbers(metric.of_number)
        return self._influence_on_groups(own), influences_on_means(whole, np.zeros_like(self.codes), self.rows.weight)

    def _influence_on_groups(self, values: FloatArray) -> FloatArray:
        return influences_on_means(values, self.codes, self.rows.weight)

    def numbers(self, of_number: OfNumber) -> FloatArray:
        """Return one kind of number for each person."""
        return number_of(of_number, self.rows.value, self.rows.outcome, self.tolerance)


def number_of(
    of_number: OfNumber, value: FloatArray, outcome: FloatArray | None, tolerance: float | None
) -> FloatArray:
    """Return each person's number of a kind, computed from the prediction and the outcome.

    Examples
    --------
    >>> number_of("absolute_error", np.array([3.0, 5.0]), np.array([4.0, 4.5]), None).tolist()
    [1.0, 0.5]
    """
    if of_number == "value":
        return value
    if outcome is None:
        raise ValueError(f"there is no outcome to compute the {of_number} from")
    error = value - outcome
    match of_number:
        case "outcome":
            return outcome
        case "error":
            return error
        case "absolute_error":
            return np.abs(error)
        case "squared_error":
            return error**2
    return np.asarray(np.abs(error) <= (tolerance or 0.0), dtype=np.float64)


def influences_on_means(values: FloatArray, codes: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return each person's influence w (x - m) / sum w on the mean m of their cell.

    Examples
    --------
    >>> influences_on_means(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), None).tolist()
    [-0.5, 0.5, 0.0]
    """
    weight = np.ones_like(values) if weights is None else weights
    mass, total = (np.bincount(codes, weights=each) for each in (weight, weight * values))
    with np.errstate(all="ignore"):
        return np.asarray(weight * (values - (total / mass)[codes]) / mass[codes])


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the people of each group.

    Parameters
    ----------
    people : the numbers of people by group.
    of : (5, 5, groups) the sums of w^p z^k, with the standardised number z.
    """

    people: GroupedValues
    of: FloatArray

    @property
    def rest(self) -> _Sums:
        """The sums over all people outside each group."""
        return replace(self, of=np.moveaxis(all_but_one(np.moveaxis(self.of, -1, 0)), 0, -1))

    @property
    def everybody(self) -> _Sums:
        """The sums over all people, as one group."""
        return replace(self, of=self.of.sum(axis=-1, keepdims=True))

    @cached_property
    def squares(self) -> FloatArray:
        """The sums of (w e)², with e the distance from the group's mean; remainders below rounding are set to 0."""
        with np.errstate(all="ignore"):
            mean = self.of[1, 1] / self.of[1, 0]
            squares = self.of[2, 2] - 2.0 * mean * self.of[2, 1] + mean**2 * self.of[2, 0]
            return np.where(squares > _ROUNDING * self.of[2, 2], squares, 0.0)

    @property
    def largest_share(self) -> FloatArray:
        """The largest share of one person in each group's sum of squares."""
        values, codes, (centre, spread) = self.people.values, self.people.codes, self.people.scale
        with np.errstate(all="ignore"):
            mean = centre + spread * self.of[1, 1] / self.of[1, 0]
            away = np.abs(values - mean[codes])
            if self.people.weights is not None:
                away *= self.people.weights / self.people.weights.mean()
            farthest = np.zeros(self.people.groups)
            np.maximum.at(farthest, codes, away)
            return np.where(self.squares > 0, (farthest / spread) ** 2 / self.squares, 0.0)

    def values(self, metric: ParityMetric, *, weighted: bool) -> GroupValues:
        """Return the mean of each group."""
        of, n, (centre, spread) = self.of, np.rint(self.of[0, 0]).astype(np.int64), self.people.scale
        with np.errstate(all="ignore"):
            mean = of[1, 1] / of[1, 0]
            cubes = of[3, 3] - 3.0 * mean * of[3, 2] + 3.0 * mean**2 * of[3, 1] - mean**3 * of[3, 0]
            kish = of[1, 0] ** 2 / of[2, 0]
            value, variance = centre + spread * mean, spread**2 * self.squares / of[1, 0] ** 2
            skewness = np.where(self.squares > 0, cubes / self.squares**1.5, 0.0)
            trials = n.astype(np.float64)
            if weighted:
                trials = effective_trials(value, variance, kish) if metric.method == "rate" else kish
            if metric.method != "rate":
                variance = variance * n / (n - 1.0)
        return GroupValues(
            metric=metric,
            value=value,
            overall=float("nan"),
            n=n,
            n_overall=0,
            counted=n.astype(np.float64),
            stderr=np.sqrt(variance),
            trials=trials,
            bounds=metric.bounds((0.0, 1.0)),
            weighted=weighted,
            skewness=skewness,
        )
