"""Sentences about the rows of the improvability test."""

from __future__ import annotations

from evenhand.messages import Catalogue

_SELECTED = " (a row counts when it is selected)"

say = Catalogue(
    "improvability_stats",
    __package__ or "evenhand.stats.improvability",
    {
        "few_count": (
            "in {where}, only {n:count} row of group {group!r:group} counts for {utility:name} under {algorithm}",
            "in {where}, only {n:count} rows of group {group!r:group} count for {utility:name} under {algorithm}",
        ),
        "few_count_selected": (
            "in {where}, only {n:count} row of group {group!r:group} counts for {utility:name} under {algorithm}"
            + _SELECTED,
            "in {where}, only {n:count} rows of group {group!r:group} count for {utility:name} under {algorithm}"
            + _SELECTED,
        ),
        "rough": "{fact}; with fewer than {few:set} the p-values are rough.",
        "status_quo": "the status quo",
        "candidate": "the candidate",
    },
)
"""Makes a message about the rows."""
