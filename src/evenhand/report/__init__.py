"""From settings to files: the run of an `audit.toml`, the HTML page and the terminal summary."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.report.audit import Audit, audit

if TYPE_CHECKING:
    from evenhand.report.comparison import Comparison, compare
    from evenhand.report.schema import results_schema

__all__ = ["Audit", "Comparison", "audit", "compare", "results_schema"]

_ON_DEMAND = {"Comparison": "comparison", "compare": "comparison", "results_schema": "schema"}
"""What a run does not need."""


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"evenhand.report.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module 'evenhand.report' has no attribute {name!r}")
