"""The sentences of a study's analysis: findings, statuses, exclusions and notes."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.study.analysis.descriptor import ANALYSIS
from evenhand.study.analysis.metrics import DISTANCES, METRICS, TARGETS

say = Catalogue(
    "study",
    "evenhand.study.analysis",
    words={
        "metric": tuple(dict.fromkeys(title for m in METRICS.values() for title in (m.title, m.title_in_sentence))),
        "noun": (*TARGETS, *DISTANCES),
        "section": (ANALYSIS.title, ANALYSIS.question),
    },
)
"""Builds messages from the sentences of a study's analysis."""
