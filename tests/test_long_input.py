"""However much a user hands over by mistake, a message stays a message: a few values, and one of our errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.errors import EvenhandError

MOST = 2_000  # characters
HUGE: dict[str, Any] = {
    "array": np.arange(2_000.0),
    "list": list(range(2_000)),
    "texts": [f"text {number}" for number in range(500)],
    "text": "x" * 20_000,
    "mapping": {f"key {number}": number for number in range(500)},
    "frame": pd.DataFrame(np.zeros((2_000, 3))),
    "bytes": b"a" * 2_000,
}
DATA: dict[str, Any] = {"g": ["a", "b"] * 50, "y": [0, 1] * 50, "s": [0.1, 0.9, 0.4, 0.6] * 25}
ROLES: dict[str, Any] = {"groups": "g", "predictions": "s", "outcome": "y"}


def stays_short(attempt: Callable[[], object]) -> None:
    said = ""
    try:
        attempt()
    except EvenhandError as error:
        said = str(error)
    assert len(said) <= MOST, said[:200]


@pytest.fixture(scope="module")
def audit() -> eh.Audit:
    return eh.audit(eh.Table(DATA, **ROLES))


@pytest.mark.parametrize("kind", HUGE)
def test_arguments_of_a_table(kind: str) -> None:
    for name in inspect.signature(eh.Table).parameters:
        stays_short(partial(eh.Table, **{"data": DATA, **ROLES, name: HUGE[kind]}))
    for name in eh.Prediction.model_fields:
        model = {"column": "s", name: HUGE[kind]}
        stays_short(partial(eh.Table, DATA, groups="g", predictions={"m": model}))
    stays_short(lambda: eh.Table.from_arrays(y_true=HUGE[kind], y_pred=HUGE[kind], sensitive_features=HUGE[kind]))


@pytest.mark.parametrize("kind", HUGE)
def test_settings_of_audits(kind: str) -> None:
    huge = HUGE[kind]
    settings: list[tuple[Any, dict[str, Any]]] = [
        (entry.spec, given)
        for entry in REGISTRY.values()
        for given in (
            *({setting: huge} for setting in entry.spec.model_fields),
            {"thresholds": [{"metric": huge, "max": huge}]},
        )
    ]
    for spec, given in settings:
        stays_short(partial(spec.parse, given, "x"))


@pytest.mark.parametrize("kind", HUGE)
def test_what_is_asked_of_results(kind: str, audit: eh.Audit) -> None:
    huge, result = HUGE[kind], audit["parity"]
    table = eh.Table(DATA, **ROLES)
    attempts: list[Callable[[], object]] = [
        lambda: eh.audit(huge),
        lambda: eh.parity(huge),
        lambda: eh.fitted(huge, huge),
        lambda: result.get("gaps", metric=huge),
        lambda: result.rows(huge),
        lambda: result.to_frame(huge),
        lambda: result.plot(huge),
        lambda: audit[huge],
        *(partial(eh.audit, table, **{name: huge}) for name in ("parity", "thresholds", "report", "seed", "x")),
    ]
    for attempt in attempts:
        stays_short(attempt)
