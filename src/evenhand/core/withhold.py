"""Small counts: what an audit must say of its records and settings, so that none of them is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from evenhand.core.records import Record
from evenhand.messages import Message
from evenhand.stats.disclosure import People, is_small
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.core.result import Result
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table


S = TypeVar("S", bound="Spec")


@dataclass(frozen=True)
class Kept:
    """What is left of an audit's settings.

    Parameters
    ----------
    spec : the settings, without what would tell small counts.
    columns : columns to add to the data, by name: what must be worked out before groups are hidden.
    dropped : the tables of the result that are not published at all.
    notes : what is left out, in sentences.
    """

    spec: Spec
    columns: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()


class Withholder(Generic[S]):
    """What of an audit tells of few people; as it is here, of one that says nothing but what its columns declare.

    Whatever it says, a column, a field or a sentence that is not declared is withheld. A part is a piece of a result
    that is finer than a group, in words. A part in which any count is small is withheld whole.
    """

    by_decision: ClassVar[bool] = False
    """Whether it counts people by group, outcome and decision, and nothing finer: the groups hidden are enough then."""
    coarse: ClassVar[tuple[str, ...]] = ("",)
    """Parts to which all others add up: where one is withheld, all are."""
    not_of_all: ClassVar[tuple[str, ...]] = ()
    """Parts that tell of some people of a group only, so that hiding the group would not help."""
    bins: ClassVar[str] = ""
    """The part whose bins do not overlap: only small ones are withheld, and with them the smallest others."""
    from_bins: ClassVar[str] = ""
    """The part that follows from all bins, and is withheld where one of them is."""
    never: ClassVar[str] = ""
    """What is never told, in words."""
    whole: ClassVar[tuple[str, ...]] = ()
    """Tables that count nobody: their numbers are of all people together, or of plans."""
    places: ClassVar[tuple[str, ...] | None] = None
    """Columns that say which people of a group a record counts; None: all that are names or safe."""
    balances: ClassVar[tuple[str, ...]] = ()
    """Metrics whose value is the difference of two shares that add up to 1."""

    def part(self, table: str, _record: Record) -> str:
        """Return the part that a record of a table tells of; '' where it is about groups as a whole."""
        return "" if table in ("values", "gaps", "left_out") else table

    def left_out(self, result: Result) -> Iterator[tuple[Message, int]]:
        """Yield how many people no number of a result tells of, and why."""
        yield from ((record.reason, record.n) for record in result.left_out if record.grouping is None)

    def bin(self, _record: Record) -> float | None:
        """Return the bin that a record counts; None where it is in none."""
        return None

    def without(self, _tables: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Record, ...]]:
        """Return the tables that must be others, such as those that count single people."""
        return {}

    def before(self, _table: Table, spec: S, _touched: Collection[str]) -> Kept:
        """Return what is left of the settings before groups are hidden; `touched` are groupings that change."""
        return Kept(spec)

    def after(self, _table: Table, spec: S, _least: int, *, is_entangled: bool) -> Kept:  # noqa: ARG002
        """Return what is left of the settings once groups are hidden; where entangled, nothing finer than groups."""
        return Kept(spec)

    def as_asked(self, spec: S, _asked: S) -> S:
        """Return the settings that stand in the result, from those that it ran with and those asked for."""
        return spec


def published_states(cells: Cells, models: Sequence[str], more: IntArray | None = None) -> Iterator[IntArray]:
    """Yield the published tables: everybody, by outcome, by decision of each model, and by both."""
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
    """Tell whether a count by group, outcome and decision is small in some part: a stratum, or a score bin."""
    for columns in table.groupings.values():
        group = cells.joint(columns)[0]
        people = People(cells.n, (group,), tuple(published_states(cells, [model], part)))
        if any(is_small(people.counts(group, state), least).any() for state in people.states):
            return True
    return False
