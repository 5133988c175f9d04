"""The sentences of the reliability audit."""

from __future__ import annotations

from evenhand.audits.reliability import AUDIT
from evenhand.audits.reliability.metrics import METRICS
from evenhand.messages import Catalogue

say = Catalogue(
    "reliability",
    "evenhand.audits.reliability",
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "noun": (AUDIT.name,),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the reliability audit."""
