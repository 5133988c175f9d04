"""The four papers that the product implements, replicated: what they print, what we find, and what cannot be had."""

from evenhand.replication.report import PAPERS, Replication, replicate

__all__ = ["PAPERS", "Replication", "replicate"]
