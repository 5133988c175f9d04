"""Benchmarks of seconds and bytes: one file per claim, each run in its own process."""

from __future__ import annotations

from pathlib import Path

from benchmarks import claims

NAMES = claims(Path(__file__).parent)
"""The title of every claim by its name."""
