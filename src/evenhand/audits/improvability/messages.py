"""The sentences of the improvability audit."""

from __future__ import annotations

from evenhand.audits.improvability import AUDIT
from evenhand.audits.improvability.metrics import METRICS
from evenhand.messages import Catalogue
from evenhand.stats.improvability import UTILITIES

say = Catalogue(
    "improvability",
    "evenhand.audits.improvability",
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "section": (AUDIT.title, AUDIT.question),
        "noun": (AUDIT.name, "values of groups", *tuple(name.replace("_", " ") for name in UTILITIES)),
    },
)
"""The catalogue of the improvability audit."""
