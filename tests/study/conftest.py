"""Databases for the tests of studies."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database, once of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    url: str = request.getfixturevalue("postgres_url")
    return url
