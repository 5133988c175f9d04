"""From settings to files: the run of an `audit.toml`, the HTML page and the terminal summary."""

from typing import Any

from evenhand.report.audit import Audit, audit

__all__ = ["Audit", "audit", "results_schema"]


def __getattr__(name: str) -> Any:
    if name == "results_schema":  # it reads every audit, which a run does not
        from evenhand.report.schema import results_schema

        return results_schema
    raise AttributeError(f"module 'evenhand.report' has no attribute {name!r}")
