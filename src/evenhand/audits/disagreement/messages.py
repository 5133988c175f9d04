"""The sentences of the disagreement audit."""

from __future__ import annotations

from evenhand.audits.disagreement import AUDIT
from evenhand.audits.disagreement.metrics import METRICS
from evenhand.messages.catalogue import Catalogue

say = Catalogue(
    "disagreement",
    "evenhand.audits.disagreement",
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "noun": (AUDIT.name, "what critics really think", "pairs of like cases", "kinds of critics"),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the disagreement audit."""
