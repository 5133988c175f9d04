"""The section of the effort audit in the `audit.toml` that `evenhand init` writes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from evenhand.core.capabilities import Proposing, SeenFile, quoted, toml_list

_GUESSES = 6


class EffortProposing(Proposing):
    """Proposal of a long table as history, and of columns of one feature over time as trajectory."""

    leaves_blanks: ClassVar[bool] = True

    def section(self, seen: SeenFile) -> Iterator[str]:
        """Yield the section with the long table as the people's history."""
        if seen.long is None:
            return
        person, time = seen.long
        yield "[effort.history]    # the long table: one row for each person and time"
        yield f"source = {quoted(seen.source)}"
        yield f"id = {quoted(person)}"
        yield f"time = {quoted(time)}"
        guesses = f": {', '.join(seen.numbers[:_GUESSES])} ..." if seen.numbers else ""
        yield f'value = ""    # open: the column of the feature{guesses}'
        yield ""

    def offer(self, seen: SeenFile) -> Iterator[str]:
        """Yield the commented-out section with columns of one feature over time as the trajectory."""
        if not seen.panel:
            return
        years = list(seen.panel.values())
        yield ""
        yield "# One feature over time? Then remove the # of these lines: is equal effort treated equally?"
        yield "# [effort]"
        yield f"# trajectory = {toml_list(seen.panel)}"
        if len({b - a for a, b in pairwise(years)}) > 1:
            yield f"# times = {years}"
        yield "# desirable = true    # is more of it good?"
        yield "# unit = 1    # what counts as one step of it, as 10_000 dollars"
        yield "# scale = 1    # what the total of all times is divided by, as 200_000 dollars"

    def remarks(self, seen: SeenFile) -> Iterator[str]:
        """Yield remarks on data over time and their place in the file."""
        if seen.long is not None:
            person, time = seen.long
            offered = f"It is offered as `history` of effort; to compare its rows, name {person} as `cluster`."
            yield f"A long table: {person} has a row for each {time}. {offered}"
        if seen.panel:
            first, *_, last = seen.panel
            where = "An [effort] section for it is in the file, commented out."
            yield f"One feature over time, {first} ... {last}? {where}"


PROPOSE = EffortProposing()
"""The effort audit's proposal."""
