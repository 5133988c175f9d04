"""Lookup of the audit that counts people by group and decision."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.audits import REGISTRY
from evenhand.core.result import Result
from evenhand.errors import ConfigError


def counting_audit() -> str:
    """Return the name of the first installed audit that counts people.

    Examples
    --------
    >>> counting_audit()
    'parity'
    """
    for name, audit in REGISTRY.items():
        if audit.counts is not None:
            return name
    raise ConfigError("no installed audit counts people by group and decision.")


def counting_result(results: Mapping[str, Result]) -> Result | None:
    """Return the first result of an audit that counts people, or None."""
    return next((result for result in results.values() if result.descriptor.counts is not None), None)
