"""Inertia: disadvantage outside a person's control, as a column, as rates by group, or none."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from evenhand.errors import ConfigError, did_you_mean

TABLES: dict[str, dict[str, float]] = {
    "nces-2012": {
        "White": 13.0,
        "Asian": 14.0,
        "Pacific Islander": 25.0,
        "American Indian": 36.0,
        "Black": 39.0,
    },
}
"""Published rates by name. NCES 2012: percentage of children in poverty by race (National Center for Education
Statistics), as the effort paper uses them; it gives no figure for Hispanic children."""


def named_rates(name: str) -> dict[str, float]:
    """Return a published table of rates, scaled by its largest.

    Examples
    --------
    >>> round(named_rates("nces-2012")["White"], 4)
    0.3333
    """
    if name not in TABLES:
        raise ConfigError(f"`inertia` got {name!r}; {did_you_mean(name, TABLES)}")
    return scaled(TABLES[name])


def scaled(rates: Mapping[str, float]) -> dict[str, float]:
    """Divide rates by the largest, so that inertia is at most 1."""
    if not rates:
        raise ConfigError("`inertia` has no rates; give one for every group, or leave it out.")
    for group, rate in rates.items():
        if not (isfinite(rate) and rate > 0):
            raise ConfigError(f"`inertia` of the group {group!r} must be above 0 and finite; got {rate:g}.")
    largest = max(rates.values())
    return {group: rate / largest for group, rate in rates.items()}
