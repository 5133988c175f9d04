"""The ratings of a group: variation, metrics of resamples, and cluster-robust errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, inf, nan

import numpy as np

from evenhand.audits.agreement.clustered import GroupClusters, GroupErrors, errors_of_groups, leave_out_clusters
from evenhand.audits.agreement.gather import RatedPeople
from evenhand.audits.agreement.messages import say
from evenhand.audits.agreement.metrics import AgreementMetric, Ratings, values_of
from evenhand.audits.agreement.people import agreeing_pairs
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.messages import Message
from evenhand.stats.agreement import pooled_spread
from evenhand.stats.agreement.ratings import distinct_rows
from evenhand.stats.bootstrap import CellMoments, data_rng, resample
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import effective_trials
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

MOST_ACCELERATED = 1_000
"""The maximum number of patterns for BCa intervals, whose cost is quadratic; above, percentile intervals are used."""

LEAST_PEOPLE = 5
"""The number of people with disagreement, and with an uncommon rating, below which a coefficient is not tested."""
LEAST_SHARED = 3
"""The number of people with agreement on an uncommon rating below which a coefficient is not tested."""
LEAST_SCORED = 10
"""The effective number of people with different scores below which a coefficient is not tested.

`benchmarks/coverage/agreement_coverage.py` measures it.
"""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """The variation in a group's ratings, which determines the intervals.

    Parameters
    ----------
    agreement : the share of agreeing pairs of ratings, averaged first within people; nan for scores.
    trials : the effective sample size of the agreement.
    disagreeing : the effective number of people with disagreement: (sum d)² / sum d², with d the disagreement about a
        person.
    uncommon : the number of people with a rating other than the most common one; infinite for scores.
    shared : the number of people with agreement on a rating other than the most common one; infinite for scores.
    chance : for categories, AC1's agreement by chance.
    average, largest : for scores, the mean and the largest disagreement about a person.
    """

    agreement: float
    trials: float
    disagreeing: float
    uncommon: float
    shared: float
    chance: float = nan
    average: float = 0.0
    largest: float = 0.0

    @property
    def scores(self) -> bool:
        """Whether the ratings are scores."""
        return self.uncommon == inf

    def too_little(self, group: str | None) -> Message | None:
        """Return the reason why the variation is insufficient for an interval of a coefficient, or None."""
        where = None if group is None else say("in_group", group=group)
        least = LEAST_SCORED if self.scores else LEAST_PEOPLE
        if self.disagreeing == 0:
            return say("disagree_about_nobody", where=where)
        if self.disagreeing < least:
            return say("few_disagreeing", where=where, people=_truncate(self.disagreeing), least=least)
        if self.uncommon < least:
            return say("few_uncommon", where=where, people=_truncate(self.uncommon), least=least)
        if self.shared < LEAST_SHARED:
            return say("few_shared", where=where, people=_truncate(self.shared), least=LEAST_SHARED)
        return None


def _truncate(number: float) -> float:
    """Truncate a number to one decimal place, so that a shortfall never rounds up to enough."""
    return floor(10 * number) / 10


def variation_of(ratings: Ratings, weight: FloatArray, count: FloatArray) -> Variation:
    """Return the variation of rating patterns from the weight and number of people of each pattern."""
    each = weight / count
    people = float(weight.sum() ** 2 / (weight * each).sum())
    ratings_array = np.stack(ratings.raters)
    if not ratings.categories:
        differ = np.nanmax(ratings_array, axis=0) > np.nanmin(ratings_array, axis=0)
        squares = np.where(differ, np.nanvar(ratings_array, axis=0), 0.0)
        average = float((weight * squares).sum() / weight.sum())
        return Variation(
            agreement=nan,
            trials=people,
            disagreeing=_effective_number(squares, weight, each),
            uncommon=inf,
            shared=inf,
            chance=nan,
            average=average,
            largest=float(squares.max()),
        )
    rated, pairs = (~np.isnan(ratings_array)).sum(axis=0), agreeing_pairs(ratings)
    chosen = ((ratings_array == category).sum(axis=0) for category in range(ratings.categories))
    common = [float((weight * number / rated).sum() / weight.sum()) for number in chosen]
    agreed, agreeing = (pairs @ weight / weight.sum()).tolist(), pairs.sum(axis=0)
    share = float((weight * agreeing).sum() / weight.sum())
    variance = float((weight * each * (agreeing - share) ** 2).sum() / weight.sum() ** 2)
    trials = float(effective_trials(share, variance, people))
    uncommon, shared = 1.0 - max(common), sum(agreed) - agreed[int(np.argmax(common))]
    rests_on = _effective_number(1.0 - agreeing, weight, each)
    chance = sum(frequency * (1.0 - frequency) for frequency in common) / max(ratings.categories - 1, 1)
    return Variation(
        agreement=share,
        trials=trials,
        disagreeing=rests_on,
        uncommon=round(people * uncommon, 9),
        shared=round(people * shared, 9),
        chance=chance,
    )


def _effective_number(disagreement: FloatArray, weight: FloatArray, each: FloatArray) -> float:
    largest = float(disagreement.max(initial=0.0))
    if largest == 0:
        return 0.0
    shares = disagreement / largest  # in relative units, because fourth powers may overflow
    return round(float((weight * shares).sum() ** 2 / (weight * each * shares**2).sum()), 9)


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """The patterns of a group's ratings with their numbers of people, and the metrics of resamples.

    If people come in clusters, there are also the clusters and the cluster-robust errors.
    """

    ratings: Ratings
    weight: FloatArray
    count: IntArray
    draws: Draws
    variation: Variation
    clusters: GroupClusters | None = None
    errors: GroupErrors | None = None

    @property
    def n(self) -> int:
        """The number of people."""
        return int(self.count.sum())

    @cached_property
    def stderr(self) -> FloatArray:
        """(metrics,) The standard errors of the metrics; nan if too many resamples are undefined."""
        return self.draws.stderr() if self.errors is None else self.errors.stderr

    @property
    def dof(self) -> FloatArray:
        """(metrics,) The degrees of freedom of the standard errors."""
        return np.full(len(self.stderr), self.variation.trials - 1.0) if self.errors is None else self.errors.dof

    def bootstrap_limits(self, confidence: float) -> tuple[Interval, str]:
        """Return the limits of all metrics and the name of the method.

        The limits always include the value.
        """
        few, value = len(self.count) <= MOST_ACCELERATED, self.draws.estimate
        low, high = self.draws.bca(confidence) if few else self.draws.percentile(confidence)
        limits = Interval(np.minimum(low, value), np.maximum(high, value))
        return limits, "BCa bootstrap" if few else "percentile bootstrap"


def pooled(rated: RatedPeople) -> float:
    """Return the variance V of the spread-adjusted ICC: twice the variance of the scores of all raters together."""
    present = ~np.isnan(rated.ratings)
    weight = np.ones(len(present)) if rated.weight is None else rated.weight
    each = np.broadcast_to(weight[:, np.newaxis], present.shape)
    return float(pooled_spread(rated.ratings[present], weight=each[present])) if rated.scale == "interval" else 0.0


def draw_group(
    rated: RatedPeople,
    inside: BoolArray,
    metrics: Sequence[AgreementMetric],
    spread: float,
    spec: AgreementSpec,
) -> GroupDraws:
    """Resample the people of a group, with people of the same ratings and weight pooled."""
    weight = np.ones(len(rated.ratings)) if rated.weight is None else rated.weight
    rows = np.column_stack([rated.ratings, weight])[inside]
    patterns, counted, pattern = distinct_rows(np.where(np.isnan(rows), np.inf, rows))
    patterns = np.where(np.isinf(patterns), np.nan, patterns)
    ratings = Ratings(tuple(patterns[:, :-1].T), len(rated.labels), spread)
    unit_weight = patterns[:, -1] * (counted.sum() / (patterns[:, -1] * counted).sum())  # survey weights of mean 1

    def of_counts(counts: FloatArray, sums: FloatArray) -> FloatArray:  # noqa: ARG001
        return values_of(metrics, ratings, counts * unit_weight)

    cells = CellMoments.from_counts(counted.astype(np.int64))
    draws = resample(cells, of_counts, resamples=spec.resamples, rng=data_rng(0, counted))
    weight = counted * unit_weight
    variation = variation_of(ratings, weight, counted.astype(np.float64))
    clusters = None
    if rated.cluster is not None:
        number = int(rated.cluster.max()) + 1
        clusters = leave_out_clusters(
            metrics, ratings, unit_weight=unit_weight, pattern=pattern, cluster=rated.cluster[inside], number=number
        )
        least = {name: min(getattr(variation, name), most) for name, most in clusters.most.items()}
        variation = replace(variation, **least)
    return GroupDraws(ratings, weight, counted.astype(np.int64), draws, variation, clusters)


def with_errors(groups: Sequence[GroupDraws]) -> list[GroupDraws]:
    """Return the groups of a grouping with cluster-robust errors, if people come in clusters."""
    clusters = [group.clusters for group in groups if group.clusters is not None]
    if not clusters:
        return list(groups)
    errors = errors_of_groups(clusters, [group.draws.stderr() ** 2 for group in groups])
    return [replace(group, errors=each) for group, each in zip(groups, errors, strict=True)]
