"""Groups too small to be compared: their names beside a verdict, and whether one of them breaks its limit."""

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
    """The groups that a gap leaves out for their size, and the values of those that it compares."""

    groups: tuple[Value, ...] = ()
    compared: tuple[float, ...] = ()

    def breaking(self, threshold: Threshold) -> tuple[Value, ...]:
        """Return the groups that break a limit wherever in their own interval their value lies.

        A limit d on differences requires a value from max - d to min + d, a limit r on ratios one from r max to
        min / r, where min and max are the values of the groups compared, without their uncertainty. A group breaks the
        limit if its whole interval lies outside.
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
        """Return a sentence that names the groups with their sizes; None if there are none."""
        named = tuple(say("group_size", group=group.group, n=group.n) for group in self.groups[:_NAMED])
        return say("not_compared", groups=named, more=_more(self.groups)) if named else None


def breaking_reason(groups: Sequence[Value], limit: Message, unit: Format) -> Message:
    """Return why groups that are too small to be compared leave a verdict open."""
    named = tuple(
        say("group_interval", group=group.group, low=group.low, high=group.high, n=group.n, unit=unit)
        for group in groups[:_NAMED]
    )
    return say("omitted_break", n=len(groups), limit=limit, groups=named, more=_more(groups))


def _more(groups: Sequence[Value]) -> Message | None:
    return say("more_groups", n=len(groups) - _NAMED) if len(groups) > _NAMED else None
