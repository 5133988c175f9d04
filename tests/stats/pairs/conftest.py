"""The definition written out for all pairs at once, and people of every kind to try it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from evenhand.stats.pairs import approximate
from evenhand.stats.types import FloatArray

KINDS = ("continuous", "ties", "discrete", "mixed", "deciles", "equal_effort", "repeats_effort", "binary")


@dataclass(frozen=True)
class Brute:
    """All pairs, one by one."""

    value: float
    violated: float
    row_means: FloatArray
    excess: FloatArray


Columns = tuple[FloatArray, FloatArray, FloatArray]


def _by_definition(
    score: FloatArray, effort: FloatArray, aggregate: FloatArray, weight: float, survey: FloatArray | None = None
) -> Brute:
    v = np.ones(len(score)) if survey is None else survey
    d = np.sqrt(
        weight * np.subtract.outer(effort, effort) ** 2 + (1 - weight) * np.subtract.outer(aggregate, aggregate) ** 2
    )
    excess = np.abs(np.subtract.outer(score, score)) - d
    excess[excess <= 1e-12] = 0.0
    both = np.outer(v, v) * ~np.eye(len(v), dtype=bool)
    fair = 1.0 - excess
    rows = (fair * both).sum(axis=1) / np.where(v > 0, both.sum(axis=1), 1.0)
    return Brute(float((fair * both).sum() / both.sum()), float(((excess > 0) * both).sum() / both.sum()), rows, excess)


def _people(kind: str, n: int, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    score, effort, aggregate = rng.beta(2, 2, n), rng.beta(2, 3, n), np.tanh(rng.normal(0.3, 0.5, n))
    if kind == "ties":
        score, effort, aggregate = score.round(1), effort.round(1), aggregate.round(1)
    if kind == "discrete":
        effort, aggregate = rng.integers(0, 9, n) / 8.3, rng.choice([-0.4, 0.0, 0.13, 0.5, 0.8], n)
    if kind == "mixed":
        atoms = rng.random(n) < 0.4
        effort, aggregate = np.where(atoms, rng.integers(0, 5, n) / 7.3, effort), np.where(atoms, 0.0, aggregate)
    if kind == "deciles":
        score = np.ceil(10 * score) / 10
    if kind == "equal_effort":
        effort = np.full(n, 0.37)
    if kind == "repeats_effort":
        aggregate = effort.copy()
        score = effort.copy()
    if kind == "binary":
        score = (score > 0.6).astype(np.float64)
    return score, effort, aggregate


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the random pairs: quicker, with an error twice as large."""
    monkeypatch.setattr(approximate, "_PAIRS", 2**20)
    monkeypatch.setattr(approximate, "_CHUNK", 2**16)
    monkeypatch.setattr(approximate, "_DRAWS", 2**19)


@pytest.fixture(scope="session")
def by_definition() -> Callable[..., Brute]:
    return _by_definition


@pytest.fixture(scope="session")
def people() -> Callable[..., Columns]:
    return _people


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["plain", "survey"])
def surveyed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
