"""What is told of a study while its answers arrive: what an audit must be able to say of few answers, quickly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from evenhand.table.table import Table


class Live(Protocol):
    """The gaps of an audit while answers arrive."""

    def titles(self) -> list[str]:
        """Return the titles of the metrics that are told."""

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Yield the gaps of every grouping with the titles of their metrics; `settings` are those of the audit."""
