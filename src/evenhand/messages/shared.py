"""Sentences shared by several parts of the package: statuses, headlines, reasons, families."""

from __future__ import annotations

from evenhand.messages.catalogue import Catalogue

OWN_LABELS = ("(missing)", "(small groups)", "(overall)")
"""Labels that evenhand gives to groups."""

say = Catalogue(
    "core",
    "evenhand.messages",
    words={
        "group": OWN_LABELS,
        "noun": ("people", "answers", "rows", "groups", "pairs", "candidates", "everybody", "what is not declared"),
        "sign": (",", ".", "%"),
        "joint": ("and", "or"),
        "month": (
            *("January", "February", "March", "April", "May", "June", "July"),
            *("August", "September", "October", "November", "December"),
        ),
        "verb": ("selects", "selects (end of the clause)", "selects (last)", "particles"),
    },
)
"""Makes a message from a shared sentence."""
