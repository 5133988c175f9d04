"""The sentences of the ranking audit."""

from __future__ import annotations

from evenhand.audits.ranking import AUDIT
from evenhand.audits.ranking.metrics import METRICS
from evenhand.messages import Catalogue

say = Catalogue(
    "ranking",
    "evenhand.audits.ranking",
    words={
        "metric": tuple(title for m in METRICS.values() for title in (m.title, m.title_in_sentence)),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the ranking audit."""
