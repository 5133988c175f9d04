"""From settings to files: the run of an `audit.toml`, the HTML page and the terminal summary."""

from evenhand.report.audit import Audit, audit

__all__ = ["Audit", "audit"]
