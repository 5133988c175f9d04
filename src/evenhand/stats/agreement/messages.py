"""Messages that explain why a coefficient of agreement is undefined."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("agreement_stats", "evenhand.stats.agreement")
"""Makes a message on why a coefficient has no value."""
