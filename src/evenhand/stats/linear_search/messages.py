"""Messages that explain why a linear search found no classifier."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("linear_search", "evenhand.stats.linear_search")
"""Makes a message on why nothing was found."""
