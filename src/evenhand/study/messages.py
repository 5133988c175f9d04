"""The sentences on a study's people, cases and answers: what was left out, and how answers were read."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("responses", "evenhand.study")
"""Makes a message of the sentences on people, cases and answers."""
