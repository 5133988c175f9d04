"""Replications of the four papers behind the audits: printed and replicated numbers, and missing data."""

from evenhand.replication.report import PAPERS, Replication, replicate

__all__ = ["PAPERS", "Replication", "replicate"]
