"""The sentences of the agreement audit: findings, statuses, omissions and notes."""

from __future__ import annotations

from evenhand.audits.agreement import AUDIT
from evenhand.audits.agreement.metrics import METRICS, SCALES
from evenhand.messages import Catalogue

say = Catalogue(
    "agreement",
    "evenhand.audits.agreement",
    words={
        "metric": tuple(dict.fromkeys(title for m in METRICS.values() for title in (m.title, m.title_in_sentence))),
        "noun": (
            AUDIT.name,
            "ratings",
            *SCALES,
            *dict.fromkeys(metric.moves_with for metric in METRICS.values() if metric.moves_with),
        ),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the agreement audit."""
