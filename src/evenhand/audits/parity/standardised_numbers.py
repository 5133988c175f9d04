"""Means of numbers standardised over strata: each group's mean under the overall mix of strata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.estimate import GroupValues, with_people
from evenhand.audits.parity.numbers import NumberPeople, influences_on_means
from evenhand.stats.permutation import MeanComparison, compare_means
from evenhand.stats.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StratifiedPeople:
    """Numbers of people in strata, to compare any two sets of groups.

    Parameters
    ----------
    values, codes, strata, weights : each person's number, group, stratum, and weight (None without weights).
    groups : the number of groups.
    shares : the share of each stratum in the standardised means.
    """

    values: FloatArray
    codes: IntArray
    strata: IntArray
    weights: FloatArray | None
    groups: int
    shares: FloatArray

    def compare(
        self,
        first: Sequence[int] | IntArray,
        second: Sequence[int] | IntArray,
        bounds: tuple[float, float],
        alpha: float = 0.05,
        level: float | None = None,
    ) -> MeanComparison:
        """Return the comparison of two sets of groups by permutation within strata: see `compare_means`."""
        in_first, in_second = (np.isin(self.codes, groups) for groups in (first, second))
        used = in_first | in_second
        return compare_means(
            self.values[used],
            in_first[used],
            in_second[used],
            weights=None if self.weights is None else self.weights[used],
            strata=self.strata[used],
            shares=self.shares,
            bounds=bounds,
            alpha=alpha,
            level=level,
        )

    def approximate(self, *_: object) -> None:
        """Return None, because standardised means are always compared by permutation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardisedPeople(NumberPeople):
    """The numbers of people in groups, with means standardised over strata.

    Parameters
    ----------
    strata : the stratum of each row: 0, 1, ...
    number : the number of strata.
    """

    strata: IntArray
    number: int

    def _mean(self, metric: ParityMetric) -> GroupValues:
        """Return a standardised mean: the sum over strata of p m, with p the stratum's share of all people.

        Its variance is the sum of p² v, with v the variance of the stratum's mean. Its third moment is the sum of p³
        times the third moments of the strata's means.
        """
        assert metric.of_number is not None  # noqa: S101
        of_cells = self._cells.values(metric)
        shape = self.groups, self.number
        value, stderr, trials = (each.reshape(shape) for each in (of_cells.value, of_cells.stderr, of_cells.trials))
        assert of_cells.skewness is not None  # noqa: S101
        third = self.shares**3 * of_cells.skewness.reshape(shape) * stderr**3
        people = of_cells.n.reshape(shape).sum(axis=1)
        with np.errstate(all="ignore"):
            variance = (self.shares**2 * stderr**2).sum(axis=1)
            skewness = np.where(variance > 0, third.sum(axis=1) / variance**1.5, 0.0)
            effective = 1.0 / (self.shares**2 / trials).sum(axis=1)
        standardised = replace(
            of_cells,
            value=(self.shares * value).sum(axis=1),
            n=people,
            counted=people.astype(np.float64),
            stderr=np.sqrt(variance),
            trials=effective,
            skewness=skewness,
            rest=None,
            share=None,
            one_person=None,
        )
        numbers = self.numbers(metric.of_number)
        stratified = StratifiedPeople(numbers, self.codes, self.strata, self.rows.weight, self.groups, self.shares)
        return with_people(standardised, stratified)

    def _influence_on_groups(self, values: FloatArray) -> FloatArray:
        cells = self.codes * self.number + self.strata
        return self.shares[self.strata] * influences_on_means(values, cells, self.rows.weight)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each stratum among all people."""
        mass = np.bincount(self.strata, weights=self.rows.weight, minlength=self.number)
        return np.asarray(mass / mass.sum(), dtype=np.float64)

    @cached_property
    def _cells(self) -> NumberPeople:
        """The people by combination of group and stratum."""
        return NumberPeople(self.rows, self.codes * self.number + self.strata, self.groups * self.number)


def standardised(people: NumberPeople, strata: IntArray, used: Sequence[int] | IntArray) -> StandardisedPeople:
    """Return the people in the used strata, for standardised means."""
    place = np.full(int(strata.max(initial=0)) + 1, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    inside = place[strata] >= 0
    rows = people.rows.where(inside)
    return StandardisedPeople(
        rows, people.codes[inside], people.groups, people.tolerance, strata=place[strata][inside], number=len(used)
    )
