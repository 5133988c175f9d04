"""Small counts: an audit's declarations about its records and settings, so that no small count is published."""

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
    """The permitted settings of an audit, and the omissions that they cause.

    Parameters
    ----------
    spec : the settings, without settings that would reveal small counts.
    columns : the columns to add to the data by name, which must be computed before groups are hidden.
    dropped : the completely unpublished tables of the result.
    notes : the notes on omissions.
    """

    spec: Spec
    columns: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()


class Withholder(Generic[S]):
    """An audit's rules for results that reveal small counts; by default, only columns are declared.

    Undeclared columns, fields and sentences are always withheld. A part is a named piece of a result that is finer
    than a group. A part with a small count is withheld completely.
    """

    by_decision: ClassVar[bool] = False
    """Whether all counts are by group, outcome and decision, so that hiding groups is sufficient."""
    coarse: ClassVar[tuple[str, ...]] = ("",)
    """Parts that are sums of all other parts: if such a part is withheld, all parts are."""
    of_some_people: ClassVar[tuple[str, ...]] = ()
    """Parts about only some people of a group, so that hiding the group would not help."""
    bins: ClassVar[str] = ""
    """The part with disjoint bins, of which only small bins and the smallest other bins are withheld."""
    from_all_bins: ClassVar[str] = ""
    """The part derived from all bins, which is withheld if any bin is withheld."""
    never: ClassVar[str] = ""
    """A description of the numbers that are never published."""
    whole: ClassVar[tuple[str, ...]] = ()
    """Tables without counts of people: their numbers are about all people together, or about plans."""
    places: ClassVar[tuple[str, ...] | None] = None
    """Columns that define which people of a group a record counts; None for all names and safe columns."""
    balances: ClassVar[tuple[str, ...]] = ()
    """Metrics with the difference of two complementary shares as their value."""

    def part(self, table: str, _record: Record) -> str | Message:
        """Return the part to which a record of a table belongs; '' for records about whole groups."""
        return "" if table in ("values", "gaps", "left_out") else table

    def left_out(self, result: Result) -> Iterator[tuple[Message, int]]:
        """Yield the numbers of people in no value of a result, with the reasons."""
        yield from ((record.reason, record.n) for record in result.left_out if record.grouping is None)

    def bin(self, _record: Record) -> float | None:
        """Return the bin that a record counts, or None."""
        return None

    def without(self, _tables: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Record, ...]]:
        """Return tables to publish in place of others, such as tables that count individual people."""
        return {}

    def coarser(self, record: R) -> R:
        """Return a record with only those counts that reveal nothing about parts of a group."""
        return record

    def before(self, _table: Table, spec: S, _touched: Collection[str]) -> AllowedSettings:
        """Return the settings to use before groups are hidden; `touched` are the changed groupings."""
        return AllowedSettings(spec)

    def after(self, _table: Table, spec: S, _least: int, *, is_entangled: bool) -> AllowedSettings:  # noqa: ARG002
        """Return the settings to use after groups are hidden; if entangled, without parts finer than groups."""
        return AllowedSettings(spec)

    def reported_spec(self, spec: S, _asked: S) -> S:
        """Return the settings to store in the result, from the settings of the run and of the user."""
        return spec


def published_states(cells: Cells, models: Sequence[str], more: IntArray | None = None) -> Iterator[IntArray]:
    """Yield the codes of published tables: all people, by outcome, by each model's decision, and by both."""
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
    """Return whether a count by group, outcome and decision is small in any part (a stratum or a score bin)."""
    for columns in table.groupings.values():
        group = cells.joint(columns)[0]
        people = CountedPeople(cells.n, (group,), tuple(published_states(cells, [model], part)))
        if any(is_small(people.counts(group, state), least).any() for state in people.states):
            return True
    return False
