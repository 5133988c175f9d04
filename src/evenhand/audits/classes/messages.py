"""The sentences of the classes audit."""

from __future__ import annotations

from evenhand.audits.classes import AUDIT
from evenhand.audits.classes.metrics import METRICS
from evenhand.messages import Catalogue

say = Catalogue(
    "classes",
    "evenhand.audits.classes",
    words={
        "metric": tuple(title for m in METRICS.values() for title in (m.title, m.title_in_sentence)),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the audit of classes."""
