"""Improvability where rows come in clusters: whole clusters are drawn, and split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.improvability.result import ImprovabilityResult
from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import bootstrap_clusters, bootstrap_values, get_utility, make_rows


def rows(clusters: int = 80, each: int = 6, seed: int = 0) -> Any:
    """Return decisions about people, alike within a cluster; the new ones err less, and alike in both groups."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), each)
    n, second = len(cluster), cluster % 2 == 1
    y = (rng.random(clusters)[cluster] + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    old = np.where(rng.random(n) < np.where(second, 0.35, 0.15), 1 - y, y)
    new = np.where(rng.random(n) < 0.05, 1 - y, y)
    x = y + 0.3 * rng.normal(size=n)
    return {
        "group": np.where(second, "b", "a"),
        "person": np.char.add("p", cluster.astype(str)),
        "y": y,
        "old": old,
        "new": new,
        "x": x.round(2),
    }


def audited(data: Any, cluster: str | None = "person", **settings: Any) -> ImprovabilityResult:
    table = eh.Table(data, groups="group", outcome="y", cluster=cluster)
    defaults = {"status_quo": "old", "candidates": {"new": "new"}, "resamples": 1_000}
    return eh.improvability(table, **{**defaults, **settings})


def repeated(data: Any, times: int) -> Any:
    return {name: np.repeat(values, times) for name, values in data.items()}


def spread(data: Any, cluster: str | None) -> float:
    value = audited(data, cluster).get("values", model="status_quo", group="b", metric="classification")
    assert value.stderr is not None
    return float(value.stderr)


def test_repeated_rows_are_no_evidence() -> None:
    data = rows()
    assert spread(repeated(data, 5), "person") == pytest.approx(spread(data, "person"), rel=0.08)
    assert spread(repeated(data, 5), None) < 0.6 * spread(data, None)


def test_single_rows_as_clusters_are_independent_rows() -> None:
    data = rows(600, 1)
    assert spread(data, "person") == pytest.approx(spread(data, None), rel=0.1)


def test_nothing_depends_on_names_or_order() -> None:
    data = rows()
    order = np.random.default_rng(4).permutation(len(data["y"]))
    shuffled = {name: values[order] for name, values in data.items()}
    shuffled["person"] = np.char.add("z", np.char.replace(shuffled["person"], "p", ""))
    settings: Any = {"candidates": {"new": "new", "fit": {"estimator": "logistic"}}, "features": ["x"]}
    first, second = audited(data, **settings), audited(shuffled, **settings)
    assert [d.p_value for d in first.decisions] == [d.p_value for d in second.decisions]
    assert [v.stderr for v in first.values] == [v.stderr for v in second.values]


@pytest.mark.parametrize("test", [{}, {"design": "splits", "splits": 2}])
def test_fitted_candidates_are_tested_on_other_clusters(test: Any) -> None:
    data = rows(60, 8)
    data["x"] = np.unique(data["person"], return_inverse=True)[1]  # the cluster itself, which a tree can learn
    data["y"] = (np.random.default_rng(1).random(60)[data["x"]] > 0.5).astype(int)
    result = audited(data, candidates=["decision_tree"], features=["x"], test=test)
    value = result.get("values", model="decision_tree", group="(overall)", metric="classification")
    assert value.value is not None
    assert value.value < 0.75


def test_the_error_is_that_of_cluster_means() -> None:
    """Of equal clusters the value is the mean of theirs, and the draws vary like it; few are widened."""
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(60), 5)
    right = (rng.random(60)[cluster] < rng.random(300)).astype(int)
    made = make_rows(cluster % 2, right, np.ones(300), np.ones(300), [get_utility("classification")], names="ab")
    draws = bootstrap_clusters(made, cluster, resamples=20_000, rng=rng)
    means = right.reshape(60, 5).mean(axis=1)[::2]
    assert draws.values[:, 0, 0, 0].std() == pytest.approx(means.std(ddof=1) / np.sqrt(30) * 2.0452 / 1.96, rel=0.05)
    alone = bootstrap_values(made, resamples=20_000, rng=rng)
    assert alone.values[:, 0, 0, 0].std() < draws.values[:, 0, 0, 0].std()


def test_a_group_of_few_clusters_is_left_out() -> None:
    data = rows()
    data["group"] = np.where(np.isin(data["person"], ["p1", "p3"]), "c", data["group"])
    result = audited(data)
    assert [(record.group, record.reason.id) for record in result.left_out] == [("c", "improvability.few_clusters")]
    with pytest.raises(DataError, match="only 0 groups"):
        audited(rows(16, 20))


def test_studentised_draws_are_refused() -> None:
    with pytest.raises(ConfigError, match="`studentised` takes every row for another person"):
        audited(rows(), test={"studentised": True})


def test_the_note_names_the_column() -> None:
    assert any(note.id == "core.clustered" and note.args["n"] == 80 for note in audited(rows()).notes)
