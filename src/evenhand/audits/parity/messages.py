"""The sentences of the parity audit: findings, statuses, omissions and notes."""

from __future__ import annotations

from evenhand.audits.parity import AUDIT
from evenhand.audits.parity.metrics import BUILT_IN
from evenhand.messages import Catalogue

say = Catalogue(
    "parity",
    "evenhand.audits.parity",
    words={
        "metric": tuple(metric.title_in_sentence for metric in BUILT_IN.values()),
        "noun": (
            AUDIT.name,
            "outcome",
            "scores",
            "scores between 0 and 1",
            "scores or decisions",
            "numbers",
            "a tolerance",
        ),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the parity audit."""

SMALL = frozenset({"core.small", "parity.small_rarer", "core.few_clusters"})
"""The statuses of a group that is too small to be compared."""

NOT_COMPARED = SMALL | {"core.missing_group", "core.undefined"}
"""The statuses of a group that enters no gap."""
