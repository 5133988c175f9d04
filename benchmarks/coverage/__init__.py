"""Level, coverage and power measured by simulation: one file per claim."""

from __future__ import annotations

from pathlib import Path

from benchmarks import claims

NAMES = claims(Path(__file__).parent)
"""The title of every claim by its name."""
