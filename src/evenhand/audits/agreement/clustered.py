"""Agreement about people in clusters: leave-one-cluster-out errors of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.audits.agreement.metrics import AgreementMetric, Ratings, values_of
from evenhand.audits.agreement.people import agreeing_pairs
from evenhand.stats.clusters import cluster_errors
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_MOST_NUMBERS = 4_000_000  # in one evaluation


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupClusters:
    """The clusters of a group's people.

    Parameters
    ----------
    influence : (clusters, metrics) each metric minus the metric without the cluster, times sqrt(1 - the cluster's
        share of people).
    people : (clusters,) the number of people in each cluster of the table.
    most : the numbers of clusters with disagreement and, for categories, with an uncommon rating and with agreement on
        one. They are upper limits on the effective numbers of people in `Variation`.
    """

    influence: FloatArray
    people: FloatArray
    most: Mapping[str, int]

    @property
    def number(self) -> int:
        """The number of clusters."""
        return int((self.people > 0).sum())


@dataclass(frozen=True, eq=False)
class GroupErrors:
    """The standard errors of a group's metrics, their degrees of freedom, and their correlations (metrics, groups)."""

    stderr: FloatArray
    dof: FloatArray
    correlation: FloatArray


def leave_out_clusters(
    metrics: Sequence[AgreementMetric],
    ratings: Ratings,
    *,
    unit_weight: FloatArray,
    pattern: IntArray,
    cluster: IntArray,
    number: int,
) -> GroupClusters:
    """Return the influence of each cluster of a group's people.

    Parameters
    ----------
    metrics, ratings : the metrics, and the rating patterns.
    unit_weight : (patterns,) the weight of one person with the pattern.
    pattern, cluster : the pattern and the cluster of each person.
    number : the number of clusters in the table.
    """
    patterns, people = len(unit_weight), np.bincount(cluster, minlength=number)
    counted, present = np.bincount(pattern, minlength=patterns), np.flatnonzero(people)
    value = values_of(metrics, ratings, counted * unit_weight)
    influence = np.zeros((number, len(metrics)))
    for block in np.array_split(present, max(1, present.size * patterns // _MOST_NUMBERS)):
        inside = (cluster >= block[0]) & (cluster <= block[-1])
        cell = np.searchsorted(block, cluster[inside]) * patterns + pattern[inside]
        own = np.bincount(cell, minlength=block.size * patterns).reshape(block.size, patterns)
        with np.errstate(all="ignore"):
            without = values_of(metrics, ratings, (counted - own) * unit_weight)
        share = people[block] / people.sum()
        influence[block] = (value - without) * np.sqrt(1.0 - share)[:, np.newaxis]
    differing = [len(np.unique(cluster[which[pattern]])) for which in _differing(ratings, counted * unit_weight)]
    most = dict(zip(("disagreeing", "uncommon", "shared"), differing, strict=False))
    return GroupClusters(influence=influence, people=people.astype(np.float64), most=most)


def _differing(ratings: Ratings, weight: FloatArray) -> Sequence[BoolArray]:
    """Return the masks of patterns with disagreement, with an uncommon rating, and with agreement on one."""
    given = np.stack(ratings.raters)
    differ = np.nanmax(given, axis=0) > np.nanmin(given, axis=0)
    if not ratings.categories:
        return [differ]
    rated = (~np.isnan(given)).sum(axis=0)
    chosen = np.stack([(given == category).sum(axis=0) for category in range(ratings.categories)])
    common = int(np.argmax((weight * chosen / rated).sum(axis=1)))
    agreed = np.delete(agreeing_pairs(ratings), common, axis=0).sum(axis=0)
    return [differ, chosen[common] < rated, agreed > 0]


def errors_of_groups(clusters: Sequence[GroupClusters], independent: Sequence[FloatArray]) -> list[GroupErrors]:
    """Return the cluster-robust errors of every group's metrics.

    Parameters
    ----------
    clusters : the clusters of each group.
    independent : (metrics,) each group's variances under independence of people.
    """
    people = np.stack([each.people for each in clusters], axis=1)
    influence, alone = np.stack([each.influence for each in clusters], axis=1), np.stack(independent)
    found = [cluster_errors(influence[..., m], people, alone[:, m]) for m in range(influence.shape[2])]
    variance = np.stack([each.at_least(alone[:, m]) for m, each in enumerate(found)])
    return [
        GroupErrors(
            np.sqrt(variance[:, group]),
            np.array([each.dof[group] for each in found]),
            np.stack([each.correlation[group] for each in found]),
        )
        for group in range(len(clusters))
    ]
