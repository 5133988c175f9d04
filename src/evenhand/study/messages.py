"""The messages about a study's people, cases and answers: exclusions and remarks on reading."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("responses", "evenhand.study")
"""Builds messages about people, cases and answers."""
