"""People with features of every kind, invented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh

QUICK: dict[str, Any] = {"replicates": 4, "resamples": 100, "noise_levels": [0.0, 0.1, 0.3], "attribution": False}


def _people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 60, n),
            "priors": rng.poisson(2, n),
            "income": rng.gamma(2.0, 15.0, n).round(2),
            "sex": rng.integers(0, 2, n),
            "job": rng.choice(["clerk", "driver", "nurse"], n),
            "stage": rng.choice(["I", "II", "III"], n),
            "group": np.where(np.arange(n) % 3 == 0, "A", "B"),
        }
    )
    frame["member"] = (frame["group"] == "A").astype(int)
    frame["sex_member"] = frame["sex"] * frame["member"]
    logit = 0.5 * frame["priors"] - 0.06 * (frame["age"] - 35) + 0.4 * frame["sex"] - 1.0
    frame["again"] = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return frame


@pytest.fixture
def people() -> pd.DataFrame:
    return _people()


@pytest.fixture
def table(people: pd.DataFrame) -> eh.Table:
    return eh.Table(people, groups="group", outcome="again")


@pytest.fixture
def quick() -> dict[str, Any]:
    """Settings that are quick: few levels, replicates and resamples."""
    return dict(QUICK)
