"""People with features of every kind, invented; and the audit with its settings side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability import Noise, ReliabilityResult, Scoring
from evenhand.audits.reliability.noise import as_noise

QUICK: dict[str, Any] = {"replicates": 4, "resamples": 100, "noise_levels": [0.0, 0.1, 0.3], "attribution": False}


def reliability(model: Any, table: eh.Table, *, noise: Any, **settings: Any) -> ReliabilityResult:
    """Run the audit; settings of `Noise` and of `Scoring` stand beside the others and are put where they belong."""
    return eh.reliability(model, table, **nested({"noise": noise, **settings}))


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those of `Noise` and of `Scoring` in their objects."""
    of_noise = {name for name in Noise.model_fields if name != "features"} & set(settings)
    of_scoring = set(Scoring.model_fields) & set(settings)
    kept = {name: value for name, value in settings.items() if name not in of_noise | of_scoring}
    if of_noise and settings["noise"] and isinstance(settings["noise"], str | list | tuple | Mapping):
        noise: Any = as_noise(settings["noise"])
        kept["noise"] = {**noise, **{name: settings[name] for name in of_noise}}
    if of_scoring:
        kept["scoring"] = {name: settings[name] for name in of_scoring}
    return kept


def curve(result: ReliabilityResult, metric: str, group: str, **where: Any) -> tuple[Any, ...]:
    """Return a metric of a group at all noise levels."""
    return result.rows("values", metric=metric, group=group, **where)


def mean_gap(result: ReliabilityResult, metric: str, group: str | None = None, **where: Any) -> Any:
    """Return the first gap averaged over noise levels that fits, by default to the reference group."""
    asked = {"against": "reference", "noise_level": None, "metric": metric, **where}
    return result.rows("gaps", **asked, **({} if group is None else {"group": group}))[0]


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
