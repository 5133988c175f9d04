"""The sentences on gaps over time, population shift, legal profiles and small counts."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue(
    "after",
    "evenhand.after",
    words={
        "section": (
            "Over time",
            "Other populations",
            "Would the verdicts hold among people with other shares of groups?",
        ),
    },
)
