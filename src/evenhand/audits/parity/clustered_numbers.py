"""Group values of numbers with cluster-robust standard errors, for rows in clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.audits.parity.clustered import with_clusters
from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.stats.clusters import cluster_errors


def with_clusters_of_numbers(people: NumberPeople, cluster: str, values: GroupValues) -> GroupValues:
    """Return values of numbers with cluster-robust limits; see `with_clusters`.

    The error of a quantile is the error of the share of people at or below it (Woodruff 1952).
    """
    if values.metric.function is not None:
        return _of_function(values, with_clusters_of_numbers(people, cluster, values.rates[0]))
    codes = people.rows.groups.codes[cluster]
    groups, number = people.groups + 1, len(people.rows.groups.labels[cluster])
    own, whole = people.influences(values)
    influence, n = (np.zeros((number, groups)) for _ in range(2))
    independent, sizes = np.zeros(groups), np.append(values.n, values.n_overall)
    places = codes * people.groups + people.codes
    for table, of_own, of_all in ((influence, own, whole), (n, None, None)):
        by_group = np.bincount(places, weights=of_own, minlength=number * people.groups)
        table[:, :-1] = by_group.reshape(number, people.groups)
        table[:, -1] = np.bincount(codes, weights=of_all, minlength=number)
    independent[:-1] = np.bincount(people.codes, weights=own**2, minlength=people.groups)
    independent[-1] = whole @ whole
    with np.errstate(all="ignore"):
        independent *= sizes / (sizes - 1.0)
        influence = np.where((n > 0) & (n < sizes), influence / np.sqrt(1.0 - n / sizes), 0.0)
    errors = cluster_errors(influence, n, independent)
    values = replace(
        values, stderr=np.sqrt(independent[:-1]), ordered=people.ordered_with_everybody if values.ordered else None
    )
    return with_clusters(values, errors, float(np.sqrt(independent[-1])))


def _of_function(values: GroupValues, mean: GroupValues) -> GroupValues:
    """Return a function of one mean, with limits computed from the mean's limits."""
    function = values.metric.function
    assert function is not None  # noqa: S101
    with np.errstate(all="ignore"):
        value = np.asarray(function.value(mean.value))
    unknown, rest = np.full_like(value, np.nan), mean.rest and _of_function(values, mean.rest)
    return replace(
        mean, metric=values.metric, value=value, overall=values.overall, stderr=unknown, rates=(mean,), rest=rest
    )
