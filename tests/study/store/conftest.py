"""Studies to store: designs without their sets or cases, of which the store needs only a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evenhand.study.flow.design import Design
from evenhand.study.store import Store, Study, open_store

MakeDesign = Callable[..., Design]


@pytest.fixture
def make_design() -> MakeDesign:
    def make(
        name: str = "arrests",
        kind: str = "effort",
        conditions: dict[str, float] | None = None,
        places: int | None = None,
        seed: int = 7,
        fingerprint: str = "f" * 64,
        completion_code: str | None = None,
        abandon_after: float = 4.0,
        most_people: int | None = None,
        points: int = 6,
        parts: dict[str, str] | None = None,
        quotas: dict[str, dict[str, int]] | None = None,
    ) -> Design:
        recruitment = SimpleNamespace(
            completion_code=completion_code, abandon_after=abandon_after, most_people=most_people, quotas=quotas or {}
        )
        values: dict[str, Any] = {
            "name": name,
            "kind": kind,
            "conditions": conditions or {"": 1.0},
            "places": places,
            "seed": seed,
            "fingerprint": fingerprint,
            "parts": parts or {},
            "spec": SimpleNamespace(
                scale=["word"] * points,
                recruitment=recruitment,
                about=SimpleNamespace(names=tuple(quotas or ()), numbers=("age",)),
            ),
        }
        return cast(Design, SimpleNamespace(**values))

    return make


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with open_store(store_url) as opened:
        yield opened


@pytest.fixture
def study(store: Store, make_design: MakeDesign) -> Study:
    return store.register(make_design())


@pytest.fixture
def start() -> datetime:
    return datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
