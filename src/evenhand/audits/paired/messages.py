"""The sentences of the paired tests."""

from __future__ import annotations

from evenhand.audits.paired import AUDIT
from evenhand.audits.paired.metrics import METRICS
from evenhand.messages import Catalogue

say = Catalogue(
    "paired",
    "evenhand.audits.paired",
    words={
        "metric": tuple(title for m in METRICS.values() for title in (m.title, m.title_in_sentence)),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the paired tests."""
