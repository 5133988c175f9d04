"""Small counts: what an audit declares about its records and settings, so that none is published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from evenhand.core.records import Record
from evenhand.messages import Message
from evenhand.stats.disclosure import CountedPeople, is_small
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.core.result import Result
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table


R = TypeVar("R", bound=Record)
S = TypeVar("S", bound="Spec")


@dataclass(frozen=True)
class AllowedSettings:
    """The settings of an audit that may be used, and what they leave out.

    Parameters
    ----------
    spec : the settings, without those that would reveal small counts.
    columns : columns to add to the data, by name: those to compute before groups are hidden.
    dropped : the tables of the result that are not published at all.
    notes : what is left out, in sentences.
    """

    spec: Spec
    columns: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()


class Withholder(Generic[S]):
    """Declares which results of an audit reveal something about few people; by default none but declared columns.

    Undeclared columns, fields and sentences are always withheld. A part is a piece of a result that is finer than a
    group, in words. A part with a small count is withheld entirely.
    """

    by_decision: ClassVar[bool] = False
    """Whether it counts people by group, outcome and decision alone, so that hiding groups is enough."""
    coarse: ClassVar[tuple[str, ...]] = ("",)
    """Parts that all others add up to: if one is withheld, all are."""
    of_some_people: ClassVar[tuple[str, ...]] = ()
    """Parts about some people of a group only, so that hiding the group would not help."""
    bins: ClassVar[str] = ""
    """The part whose bins do not overlap: only small bins are withheld, and the smallest of the others with them."""
    from_all_bins: ClassVar[str] = ""
    """The part that follows from all bins, and is withheld if one of them is."""
    never: ClassVar[str] = ""
    """What is never published, in words."""
    whole: ClassVar[tuple[str, ...]] = ()
    """Tables that count nobody: their numbers are about all people together, or about plans."""
    places: ClassVar[tuple[str, ...] | None] = None
    """Columns that say which people of a group a record counts; None: all columns that are names or safe."""
    balances: ClassVar[tuple[str, ...]] = ()
    """Metrics whose value is the difference of two shares that add up to 1."""

    def part(self, table: str, _record: Record) -> str | Message:
        """Return the part that a record of a table belongs to; '' if it is about whole groups."""
        return "" if table in ("values", "gaps", "left_out") else table

    def left_out(self, result: Result) -> Iterator[tuple[Message, int]]:
        """Yield the number of people in no number of a result, and why."""
        yield from ((record.reason, record.n) for record in result.left_out if record.grouping is None)

    def bin(self, _record: Record) -> float | None:
        """Return the bin that a record counts; None if it is in none."""
        return None

    def without(self, _tables: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Record, ...]]:
        """Return tables to publish instead of others, such as those that count single people."""
        return {}

    def coarser(self, record: R) -> R:
        """Return a record whose counts reveal nothing about fewer people than a group."""
        return record

    def before(self, _table: Table, spec: S, _touched: Collection[str]) -> AllowedSettings:
        """Return the settings to use before groups are hidden; `touched` are groupings that change."""
        return AllowedSettings(spec)

    def after(self, _table: Table, spec: S, _least: int, *, is_entangled: bool) -> AllowedSettings:  # noqa: ARG002
        """Return the settings to use once groups are hidden; if entangled, nothing finer than groups."""
        return AllowedSettings(spec)

    def reported_spec(self, spec: S, _asked: S) -> S:
        """Return the settings to store in the result, given those of the run and of the user."""
        return spec


def published_states(cells: Cells, models: Sequence[str], more: IntArray | None = None) -> Iterator[IntArray]:
    """Yield the published tables as codes: everybody, by outcome, by each model's decision, and by both."""
    nobody = np.zeros(len(cells.n), dtype=np.int64)
    outcome = cells.codes.get("outcome", nobody)
    yield nobody
    yield outcome
    for model in models:
        decision = cells.codes[state_key(model)]
        both = outcome * (decision.max(initial=0) + 1) + decision
        yield decision
        yield both if more is None else both * (more.max(initial=0) + 1) + more


def has_small(table: Table, model: str, cells: Cells, part: IntArray, least: int) -> bool:
    """Return whether a count by group, outcome and decision is small in some part: a stratum or a score bin."""
    for columns in table.groupings.values():
        group = cells.joint(columns)[0]
        people = CountedPeople(cells.n, (group,), tuple(published_states(cells, [model], part)))
        if any(is_small(people.counts(group, state), least).any() for state in people.states):
            return True
    return False
