"""The gaps of a study while its answers arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from evenhand.table.table import Table


class Live(Protocol):
    """Computes the gaps of an audit from few answers, quickly."""

    def titles(self) -> list[str]:
        """Return the titles of the metrics."""

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Yield the gaps of every grouping, with the titles of their metrics; `settings` are the audit's."""
