"""The messages of comparisons and of `verify`."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("evidence", "evenhand.evidence")
