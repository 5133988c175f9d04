"""The sentences of the page."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue(
    "report",
    "evenhand.report",
    words={
        "title": ("Fairness audit", "Human study"),
        "fact": ("Positive outcome", "People", "Rows", "Answers"),
    },
)
