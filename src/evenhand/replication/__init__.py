"""Replications of the four papers behind the audits: printed numbers, ours, and missing data."""

from evenhand.replication.report import PAPERS, Replication, replicate

__all__ = ["PAPERS", "Replication", "replicate"]
