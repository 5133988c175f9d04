"""Fixtures of the tests of tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def people() -> dict[str, list[Any]]:
    """Made-up people as columns of Python values: groups of every type, each sometimes missing."""
    draw = random.Random(7)  # noqa: S311
    rows = range(400)

    def sometimes(make: Callable[[], Any], missing: float = 0.1) -> list[Any]:
        return [None if draw.random() < missing else make() for _ in rows]

    missed = [draw.random() < 0.4 for _ in rows]
    return {
        "person": [f"p{row}" for row in rows],
        "race": sometimes(lambda: draw.choice(["White", "Black", "Asian 🙂", "=cmd()", "two words"])),
        "age": sometimes(lambda: draw.randint(18, 90)),
        "district": sometimes(lambda: draw.randint(1, 4)),
        "income": sometimes(lambda: draw.randint(1, 5) / 2),
        "veteran": sometimes(lambda: draw.random() < 0.5),
        "missed": missed,
        "missed_word": ["Yes" if value else "No" for value in missed],
        "repaid": sometimes(lambda: draw.randint(0, 1)),
        "risk": [draw.random() for _ in rows],
        "sometimes_risk": sometimes(draw.random),
        "decile": [draw.randint(1, 10) for _ in rows],
        "z": [draw.uniform(-3, 3) for _ in rows],
        "flag": [draw.random() < 0.3 for _ in rows],
        "weight": [draw.uniform(0, 3) for _ in rows],
    }
