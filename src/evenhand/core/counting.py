"""Counts of people by group and decision, for gaps over time and legal profiles."""

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
class GroupSeries:
    """One metric of one group and of its reference, in every period."""

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
    """The cells of one model, and the period of each cell.

    Cells in no period have the code `number`, one more than the last period.
    """

    model: str
    cells: Cells
    codes: IntArray
    number: int


@dataclass(frozen=True)
class GroupCounts:
    """The people of one grouping under one model, and how many of them have the favourable decision.

    `unknown` are people whose group is unknown or `hidden` because it is small. `stratum` is the stratum of a
    legitimate factor that they belong to; None for everybody.
    """

    model: str
    grouping: str
    groups: tuple[str, ...]
    n: tuple[int, ...]
    counted: tuple[int, ...]
    unknown: int
    hidden: int = 0
    nobody: str = "nobody was selected"
    stratum: str | None = None


def counted_groups(model: str, grouping: str, groups: Mapping[str, tuple[int, int]]) -> GroupCounts:
    """Return the counts of a grouping from each group's size and favourable decisions; unknown groups apart."""
    named = [group for group, (n, _) in groups.items() if group not in UNNAMED and n > 0]
    n, counted = (tuple(groups[group][side] for group in named) for side in (0, 1))
    unknown = sum(groups[group][0] for group in UNNAMED if group in groups)
    return GroupCounts(model, grouping, tuple(named), n, counted, unknown, groups.get(SMALL, (0, 0))[0])


class Counting(Protocol):
    """Counts the people of an audit by group and decision."""

    metric: str
    """The metric that legal profiles need: the share of a group that is selected."""

    def series(self, table: Table, spec: Any, periods: Periods) -> Iterator[GroupSeries]:
        """Yield every rate of every group and of the reference group, by period."""

    def selections(
        self, result: Result, groupings: Collection[str], *, by_stratum: bool = False
    ) -> Iterator[GroupCounts]:
        """Yield the favourable decisions by group, for every model and each of these groupings; perhaps by stratum."""

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return the decision that is good for the person by model: selected, not_selected, or None."""
