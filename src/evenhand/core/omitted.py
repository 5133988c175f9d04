"""Groups too small to be compared: their names beside a verdict, and violations of its limit by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.core.records import Value
from evenhand.core.thresholds import Threshold
from evenhand.messages import Message
from evenhand.messages.formats import Format
from evenhand.messages.shared import say
from evenhand.table.roles import MISSING

_NAMED = 3


@dataclass(frozen=True)
class Omitted:
    """The groups that a gap leaves out because of their size, and the values of the compared groups."""

    groups: tuple[Value, ...] = ()
    compared: tuple[float, ...] = ()

    def breaking(self, threshold: Threshold) -> tuple[Value, ...]:
        """Return the groups whose whole interval violates a limit.

        With min and max the smallest and largest value of the compared groups (without their uncertainty), a limit d
        on differences requires values from max - d to min + d, and a limit r on ratios requires values from r max to
        min / r. A group violates the limit if its whole interval lies outside this range.
        """
        if not self.compared:
            return ()
        low, high, limit = min(self.compared), max(self.compared), threshold.limit
        if (threshold.kind, threshold.side) == ("difference", "max"):
            least, most = high - limit, low + limit
        elif (threshold.kind, threshold.side) == ("ratio", "min") and limit > 0:
            least, most = high * limit, low / limit
        else:
            return ()
        return tuple(
            group
            for group in self.groups
            if group.group != MISSING
            and ((group.high is not None and group.high < least) or (group.low is not None and group.low > most))
        )

    def names(self) -> Message | None:
        """Return a sentence that names the groups with their sizes, or None without such groups."""
        named = tuple(say("group_size", group=group.group, n=group.n) for group in self.groups[:_NAMED])
        return say("not_compared", groups=named, more=_more(self.groups)) if named else None


def breaking_reason(groups: Sequence[Value], limit: Message, unit: Format) -> Message:
    """Return the reason why groups too small to be compared leave a verdict undecided."""
    named = tuple(
        say("group_interval", group=group.group, low=group.low, high=group.high, n=group.n, unit=unit)
        for group in groups[:_NAMED]
    )
    return say("omitted_break", n=len(groups), limit=limit, groups=named, more=_more(groups))


def _more(groups: Sequence[Value]) -> Message | None:
    return say("more_groups", n=len(groups) - _NAMED) if len(groups) > _NAMED else None
