"""Synthetic data with known true rates, and loaders of published data."""

from __future__ import annotations

from evenhand.datasets.compas import load_compas, load_dressel_farid
from evenhand.datasets.defendants import defendants_truth, make_defendants
from evenhand.datasets.hospital import load_hospital, make_patients, patients_truth
from evenhand.datasets.households import households_truth, make_households
from evenhand.datasets.kidneys import kidney_offers_truth, make_kidney_offers
from evenhand.datasets.registry import PublishedData, available, fetch
from evenhand.datasets.shed import load_shed

__all__ = [
    "PublishedData",
    "available",
    "defendants_truth",
    "fetch",
    "households_truth",
    "kidney_offers_truth",
    "load_compas",
    "load_dressel_farid",
    "load_hospital",
    "load_shed",
    "make_defendants",
    "make_households",
    "make_kidney_offers",
    "make_patients",
    "patients_truth",
]


def __dir__() -> list[str]:
    return __all__
