"""Splits and refits through joblib: the same bytes from every backend, and any backend can take them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import evenhand as eh

joblib = pytest.importorskip("joblib", reason="splits run through joblib where it is installed")

CANDIDATES = {
    "linear": {},
    "given": "new",
    "best": {"family": ["linear", "lasso"], "folds": 2},
    "sweep": {"directions": 200},
}


def audited() -> str:
    rng = np.random.default_rng(0)
    n = 900
    group, x = np.arange(n) % 2, rng.standard_normal((n, 3))
    y = (x[:, 0] + x[:, 1] + 0.5 * rng.standard_normal(n) > 0).astype(int)
    old = np.where(rng.random(n) < 0.6 + 0.2 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.9, y, 1 - y)
    data = {"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new, "p": x[:, 0], "q": x[:, 1], "r": x[:, 2]}
    result = eh.improvability(
        eh.Table(data, outcome="y", groups="g"),
        status_quo="old",
        features=["p", "q", "r"],
        candidates=CANDIDATES,
        test={"splits": 2},
        resamples=300,
    )
    return json.dumps(result.to_dict())


@pytest.fixture(scope="module")
def alone() -> str:
    return audited()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_every_backend_gives_the_same_bytes(backend: str, alone: str) -> None:
    with joblib.parallel_config(backend, n_jobs=2):
        assert audited() == alone


def test_the_older_way_to_name_a_backend(alone: str) -> None:
    with joblib.parallel_backend("threading", n_jobs=2):
        assert audited() == alone


def test_a_backend_of_others_takes_every_split_and_candidate(alone: str) -> None:
    """What Dask and Ray do: they register a backend, and joblib hands the tasks to it."""
    taken: list[int] = []

    class Elsewhere(joblib._parallel_backends.ThreadingBackend):  # type: ignore[misc, name-defined]
        def submit(self, func: Any, callback: Any = None) -> Any:
            taken.append(len(func))
            return super().submit(func, callback)

    joblib.register_parallel_backend("elsewhere", Elsewhere)
    try:
        with joblib.parallel_config("elsewhere", n_jobs=2):
            assert audited() == alone
    finally:
        joblib.parallel.BACKENDS.pop("elsewhere")
    assert sum(taken) >= 2 * len(CANDIDATES)
