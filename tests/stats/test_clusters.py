"""Errors of values whose rows come in clusters, against statsmodels and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from evenhand.stats.clusters import FEWEST, cluster_errors
from evenhand.stats.types import FloatArray, IntArray


def of_means(value: FloatArray, group: IntArray, cluster: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the influences of clusters on the means of groups, their people, and variances of independent people."""
    place = np.unique(cluster, return_inverse=True)[1]
    groups = int(group.max()) + 1
    people, total = (np.zeros((place.max() + 1, groups)) for _ in range(2))
    np.add.at(people, (place, group), 1.0)
    np.add.at(total, (place, group), value)
    n = people.sum(axis=0)
    mean = total.sum(axis=0) / n
    influence = (total - mean * people) / n / np.sqrt(1 - people / n)
    spread = np.array([value[group == g].var() / (group == g).sum() for g in range(groups)])
    return influence, people, spread


@pytest.fixture(name="rows")
def make_rows() -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(40), rng.integers(1, 15, 40))
    group = np.where(rng.random(len(cluster)) < 0.8, cluster % 2, 1 - cluster % 2)
    return rng.normal(size=40)[cluster] + rng.normal(size=len(cluster)) + 0.3 * group, group, cluster


def test_variances_and_covariances_are_cr2(rows: tuple[FloatArray, IntArray, IntArray]) -> None:
    """CR2 with the full adjustment matrix (I - H)^(-1/2) of each cluster, as Bell and McCaffrey define it."""
    value, group, cluster = rows
    design = np.eye(2)[group]
    bread = np.linalg.inv(design.T @ design)
    residual = value - design @ (bread @ design.T @ value)
    meat = np.zeros((2, 2))
    for one in np.unique(cluster):
        inside = cluster == one
        part = design[inside]
        values, vectors = np.linalg.eigh(np.eye(inside.sum()) - part @ bread @ part.T)
        score = part.T @ (vectors @ np.diag(values**-0.5) @ vectors.T) @ residual[inside]
        meat += np.outer(score, score)
    covariance = bread @ meat @ bread
    found = cluster_errors(*of_means(*rows))
    assert found.variance == pytest.approx(np.diag(covariance), rel=1e-10)
    correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found.correlation[0, 1] == pytest.approx(correlation, rel=1e-10)


def test_many_clusters_agree_with_statsmodels() -> None:
    """statsmodels has CR1, which is CR2 up to 1 / clusters."""
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(2_000), 5)
    group = cluster % 2
    value = rng.normal(size=2_000)[cluster] + rng.normal(size=10_000)
    fitted = sm.OLS(value, np.eye(2)[group]).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    found = cluster_errors(*of_means(value, group, cluster))
    assert np.sqrt(found.variance) == pytest.approx(fitted.bse, rel=2e-3)


def test_clusters_of_one_row_are_independent_rows() -> None:
    rng = np.random.default_rng(2)
    value, group = rng.normal(size=60), np.arange(60) % 2
    found = cluster_errors(*of_means(value, group, np.arange(60)))
    assert found.variance == pytest.approx([value[group == g].var(ddof=1) / 30 for g in (0, 1)])
    assert found.dof == pytest.approx([29.0, 29.0])
    assert found.design == pytest.approx([1.0, 1.0])


def test_equal_rows_of_a_cluster_count_once() -> None:
    """Repeating every row of a cluster changes no error and no degree of freedom."""
    rng = np.random.default_rng(3)
    value, group = rng.normal(size=60), np.arange(60) % 2
    once = cluster_errors(*of_means(value, group, np.arange(60)))
    again = cluster_errors(*of_means(value.repeat(7), group.repeat(7), np.arange(60).repeat(7)))
    assert again.variance == pytest.approx(once.variance)
    assert again.dof == pytest.approx(once.dof)
    assert again.design == pytest.approx([7.0, 7.0], rel=0.05)


def test_unequal_clusters_leave_fewer_degrees_of_freedom() -> None:
    rng = np.random.default_rng(5)
    sizes = np.where(np.arange(40) < 2, 200, 5)
    cluster = np.repeat(np.arange(40), sizes)
    value = rng.normal(size=40)[cluster] + 0.1 * rng.normal(size=len(cluster))
    found = cluster_errors(*of_means(value, np.zeros_like(cluster), cluster))
    assert found.dof[0] < 3.0


def test_fewer_than_ten_clusters_have_no_error() -> None:
    value, cluster = np.arange(36.0) % 5, np.repeat(np.arange(FEWEST - 1), 4)
    found = cluster_errors(*of_means(value, np.zeros_like(cluster), cluster))
    assert np.isnan(found.variance).all()
    assert found.clusters.tolist() == [FEWEST - 1]
