"""Synthetic data with a known truth, and loaders of the published data."""

from __future__ import annotations

from evenhand.datasets.compas import load_compas
from evenhand.datasets.households import households_truth, make_households
from evenhand.datasets.registry import PublishedData, available, fetch

__all__ = ["PublishedData", "available", "fetch", "households_truth", "load_compas", "make_households"]
