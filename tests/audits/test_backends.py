"""Refits and replicates through joblib: the same bytes from every backend, and any backend can take them."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ConfigError
from evenhand.models import cross_predict
from evenhand.stats.workers import run_tasks

joblib = pytest.importorskip("joblib", reason="refits run through joblib where it is installed")

PEOPLE = 300
SECTIONS: dict[str, Any] = {
    "effort": {
        "trajectory": ["y1", "y2", "y3"],
        "scale": 100,
        "width": 0.5,
        "robustness": {"weights": [0, 0.5, 1], "measures": ["slope", "last_minus_first"]},
    },
    "reliability": {
        "model": "decision_tree",
        "features": ["p", "q"],
        "noise": {"features": {"p": 1, "q": 1}, "noise_levels": [0, 0.2]},
        "folds": 2,
        "replicates": 3,
        "resamples": 100,
    },
    "improvability": {
        "status_quo": "old",
        "features": ["p", "q"],
        "candidates": {"linear": {}, "given": "new"},
        "test": {"steps": 2},
        "resamples": 100,
    },
}


def audited() -> str:
    """Return the `results.json` of an audit that fits models, tries other choices, and draws mistakes."""
    rng = np.random.default_rng(0)
    group, x = np.arange(PEOPLE) % 2, rng.standard_normal((PEOPLE, 2)).round(2)
    y = (x[:, 0] + x[:, 1] + 0.5 * rng.standard_normal(PEOPLE) > 0).astype(int)
    data = {
        "id": np.arange(PEOPLE),
        "g": np.where(group, "b", "a"),
        "y": y,
        "old": np.where(rng.random(PEOPLE) < 0.6 + 0.2 * group, y, 1 - y),
        "new": np.where(rng.random(PEOPLE) < 0.9, y, 1 - y),
        "p": x[:, 0],
        "q": x[:, 1],
        **{f"y{step}": rng.uniform(20, 60, PEOPLE) for step in (1, 2, 3)},
    }
    fitted: dict[str, Any] = {"features": ["p", "q"], "fit": ["logistic", "decision_tree"], "folds": 2}
    scores: Any = cross_predict(data, id="id", outcome="y", **fitted)
    table = eh.Table({**data, **scores}, id="id", outcome="y", groups="g", predictions={name: name for name in scores})
    return eh.audit(table, **SECTIONS).to_json()


@cache
def alone() -> str:
    return audited()


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """What Dask and Ray do: they register a backend, and joblib hands the tasks to it."""
    taken: list[int] = []

    class Elsewhere(joblib._parallel_backends.ThreadingBackend):  # type: ignore[misc, name-defined]
        def submit(self, func: Any, callback: Any = None) -> Any:
            taken.append(len(func))
            return super().submit(func, callback)

    joblib.register_parallel_backend("elsewhere", Elsewhere)
    yield taken
    joblib.parallel.BACKENDS.pop("elsewhere")


def test_a_backend_of_others_takes_every_fit_replicate_and_choice(taken: list[int]) -> None:
    with joblib.parallel_config("elsewhere", n_jobs=2):
        assert audited() == alone()
    folds, measures, steps = 2 * 2 + 2, 2, 2
    assert sum(taken) >= folds + measures + steps


def test_the_older_way_to_name_a_backend() -> None:
    with joblib.parallel_backend("threading", n_jobs=2):
        assert list(run_tasks([(1, os.getpid), (1, os.getpid)])) == [os.getpid()] * 2


@pytest.mark.slow
def test_processes_give_the_same_bytes() -> None:
    with joblib.parallel_config("loky", n_jobs=2):
        assert len({*run_tasks([(1, os.getpid)] * 8)} - {os.getpid()}) > 0
        assert audited() == alone()


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "threads"), [(1, 2), (2, 1)])
def test_a_dask_cluster_gives_the_same_bytes(workers: int, threads: int) -> None:
    """A scheduler here, and workers that are processes of their own; joblib sends nothing to one core alone."""
    distributed = pytest.importorskip("distributed", reason="Dask is a development dependency")
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster),
    ):
        warnings.simplefilter("ignore", ResourceWarning)
        with joblib.parallel_config("dask"):
            assert os.getpid() not in set(run_tasks([(1, os.getpid)] * 4))
            assert audited() == alone()


@pytest.mark.slow
def test_what_cannot_be_sent_to_other_processes_is_told() -> None:
    lock = threading.Lock()
    with (
        joblib.parallel_config("loky", n_jobs=2),
        pytest.raises(ConfigError, match=r"cannot be sent to other processes .* give an estimator instead\.$"),
    ):
        list(run_tasks([(1, lambda: lock.locked())] * 2))
