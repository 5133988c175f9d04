"""The package `evenhand_wait`, installed for a test: its folder and its dist-info are on the path."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
collect_ignore = ["evenhand_wait"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the audit of waiting times, and return where it is."""
    monkeypatch.syspath_prepend(str(HERE))
    return HERE
