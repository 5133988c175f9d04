"""The messages about plans and differing settings."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("run", "evenhand.run")
