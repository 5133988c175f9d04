"""The sentences of plans and of differing settings."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("run", "evenhand.run")
