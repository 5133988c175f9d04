"""People counted by group and decision: what gaps over time and legal profiles ask of an audit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.core.metrics import Metric
from evenhand.stats.types import IntArray
from evenhand.table.roles import SMALL, UNNAMED

if TYPE_CHECKING:
    from evenhand.core.result import Result
    from evenhand.table.cells import Cells
    from evenhand.table.table import Table


@dataclass(frozen=True)
class Series:
    """One metric of one group beside its reference, in every period: who counts, and how many of them."""

    model: str
    grouping: str
    metric: Metric
    group: str
    reference: str
    n: IntArray
    hits: IntArray
    other_n: IntArray
    other_hits: IntArray


@dataclass(frozen=True)
class Periods:
    """The cells of one model, which period each is in, and how many periods there are.

    Cells that are in no period have the number after the last.
    """

    model: str
    cells: Cells
    codes: IntArray
    number: int


@dataclass(frozen=True)
class Counted:
    """The people of one grouping under one model, and who of them counts: of decisions, those with the good one.

    `unknown` are those whose group is not known or `hidden` because it is small.
    """

    model: str
    grouping: str
    groups: tuple[str, ...]
    n: tuple[int, ...]
    counted: tuple[int, ...]
    unknown: int
    hidden: int = 0
    nobody: str = "nobody was selected"


def counted_groups(model: str, grouping: str, groups: Mapping[str, tuple[int, int]]) -> Counted:
    """Return the people of a grouping from the size of each group and how many of it count, unknown groups apart."""
    known = [group for group, (n, _) in groups.items() if group not in UNNAMED and n > 0]
    n, counted = (tuple(groups[group][side] for group in known) for side in (0, 1))
    unknown = sum(groups[group][0] for group in UNNAMED if group in groups)
    return Counted(model, grouping, tuple(known), n, counted, unknown, groups.get(SMALL, (0, 0))[0])


class Counting(Protocol):
    """How an audit counts people by group and decision."""

    metric: str
    """The metric whose counts legal profiles need: the share of a group that is selected."""

    def series(self, table: Table, spec: Any, periods: Periods) -> Iterator[Series]:
        """Yield every rate of every group beside the reference group's, period by period."""

    def selections(self, result: Result, groupings: Collection[str]) -> Iterator[Counted]:
        """Yield who got the favourable decision, for every model and each of these groupings."""

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return by model which side of the decision is good for the person: selected, not_selected, or None."""
