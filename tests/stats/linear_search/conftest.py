"""Small search problems with two features, and all their linear classifiers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.stats.linear_search import SearchProblem, search_problem
from evenhand.stats.types import BoolArray

Make = Callable[..., SearchProblem]


@pytest.fixture
def problem_of() -> Make:
    """Make a problem of n rows with two features."""

    def make(
        n: int = 16, seed: int = 0, utility: str = "classification", groups: int = 2, **options: object
    ) -> SearchProblem:
        rng = np.random.default_rng(seed)
        group = np.arange(n) % groups
        x = rng.standard_normal((n, 2)) * [1.0, 30.0] + [0.0, 100.0]
        need = x[:, 0] + (x[:, 1] - 100) / 60 + 0.7 * rng.standard_normal(n)
        y = (need > 0).astype(float) if utility == "classification" else np.round(3 + need, 1)
        old = np.argsort(np.argsort(need + 2.0 * rng.standard_normal(n) + 0.5 * group)) >= n // 2
        old[:groups] = True  # somebody of every group
        options.setdefault("capacity", 0.5 if utility == "calibration" else None)
        return search_problem(x, y, old, group, "abcd"[:groups], utility=utility, **options)  # type: ignore[arg-type]

    return make


def all_classifiers(problem: SearchProblem) -> list[BoolArray]:
    """Return the decisions of every linear classifier of two features, by turning a line through all its angles."""
    x = problem.scaled
    i, j = np.triu_indices(len(x), 1)
    between = x[i] - x[j]
    angles = np.sort(
        np.concatenate([np.arctan2(between[:, 0], -between[:, 1]) + turn for turn in (0, np.pi)]) % (2 * np.pi)
    )
    middles = (angles + np.append(angles[1:], angles[0] + 2 * np.pi)) / 2
    found = {}
    for angle in middles:
        slopes = np.array([np.cos(angle), np.sin(angle)])
        if (problem.signs * slopes < 0).any():
            continue
        score = x @ slopes
        for cut in [*np.sort(score), np.inf]:
            chosen = score >= cut
            if problem.capacity is None or chosen.sum() == problem.capacity:
                found[chosen.tobytes()] = chosen
    return list(found.values())


@pytest.fixture
def best_of() -> Callable[[SearchProblem], float]:
    """Return the objective of the best of all linear classifiers; nan when none is feasible."""

    def best(problem: SearchProblem) -> float:
        violation, objective = problem.judge(problem.values(np.array(all_classifiers(problem))))
        return float(objective[violation == 0].min(initial=np.inf))

    return best
