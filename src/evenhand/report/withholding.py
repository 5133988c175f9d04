"""What an audit counted that is too small to be told: records of its result are withheld before anything is judged.

Small groups are hidden in the table before an audit runs (`report/suppression.py`), so that no number can tell of them.
What is left are counts of groups that are shown, in finer parts than a group: bins, pairs of ratings, labels, kinds
of critics. Records are cut into *blocks* such that what is counted in one block follows from no other one, and
a block in which any count is small is withheld whole: then nothing published depends on what it counts, and nobody can
tell more of it than that it is between 0 and the people of the group, of whom there are enough.

- A block is a finer part (`withhold` of the audit's descriptor says which) of one family of groupings, those that share
  columns: by race, by sex and by race and sex stand or fall together, since one of them withheld could be narrowed by
  the others.
- Where the coarser part of a family is withheld, so are the finer ones, which add up to it.
- Bins of a continuous number are parts that do not overlap: only those with a small count are withheld, and with them
  the smallest others until the people of all of them together, whom everybody gets by subtraction, are not few in any
  group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.core.findings import Claim
from evenhand.core.metrics import Metric
from evenhand.core.records import Gap, Record
from evenhand.core.result import Draft, Result
from evenhand.core.withhold import Withholder
from evenhand.errors import ConfigError, count
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.roles import UNNAMED

_COUNTS = (
    *("n", "n_reference", "critics", "critics_reference", "cases", "pairs"),
    *("selected", "selected_reference", "changed", "tied", "tied_selected", "tied_reference"),
)
_SHARES = ("value", "lower", "upper", "violated", "concordant", "tied", "accuracy", "selected", "model_value")
_ABOUT_DECISIONS = ("prevalence_index", "bias_index")
_COUNT_NOBODY = ("plan", "power", "sample_sizes", "curve", "curves", "specifications", "fairest", "flips", "reasons")
_FEW = (
    r"(?<![\w.,%]){}(?![\w.,]*[\d%])(?:\s+\w+){{0,2}}?\s+(?:people|person|rows?|answers?|critics?|cases?|pairs?|items?)"
)

_PLACE = ("model", "stratum", "metric", "first", "second", "label", "stakeholder", "bin_low", "setting", "noise_level")

Block = tuple[str, int | None]
"""A finer part, '' for groups as a whole, and the family of groupings; None for everybody."""


def hidden_reason(least: int) -> str:
    """Return what stands in the place of a number that is hidden."""
    return f"hidden: fewer than {least} people"


def told_counts(record: Record) -> Iterator[float]:
    """Yield the counts that a record tells: as they stand, and the whole numbers that its shares are of its n.

    Examples
    --------
    >>> from evenhand.core.records import Value
    >>> list(told_counts(Value(metric="agreement", n=40, value=0.9)))
    [40, 36, 4]
    """
    for name in _COUNTS:
        number = getattr(record, name, None)
        if isinstance(number, int) and not isinstance(number, bool):
            yield number
    base = getattr(record, "pairs", None) if hasattr(record, "concordant") else getattr(record, "n", None)
    if isinstance(record, Gap):
        pairs = [("model_value", base), ("reference_value", getattr(record, "n_reference", None))]
    else:
        pairs = [(name, base) for name in _SHARES]
    for name, of in pairs:
        share = getattr(record, name, None)
        if isinstance(of, int) and of and isinstance(share, float):
            yield from _whole(of, share, getattr(record, "metric", "") in _ABOUT_DECISIONS)


def _whole(of: int, share: float, is_balance: bool) -> Iterator[int]:
    """Yield both parts of so many people that a share makes, where they are whole numbers of people."""
    part = of * (1 + share) / 2 if is_balance else of * share
    if -1e-6 <= part <= of + 1e-6 and abs(part - round(part)) < 1e-6:
        yield round(part)
        yield of - round(part)


def _first_part(record: Record) -> list[int]:
    """Return how many of its people a record's value counts, where it is a share of them."""
    value, n = getattr(record, "value", None), getattr(record, "n", 0)
    if value is None or not n:
        return []
    return list(_whole(n, value, getattr(record, "metric", "") in _ABOUT_DECISIONS))[:1]


def withholder_of(result: Result) -> Withholder[Any]:
    """Return what an audit says of its own small counts; of one that says nothing, that it tells of groups only."""
    return result.descriptor.withhold or Withholder[Any]()


@dataclass(frozen=True)
class Withholding:
    """Withholds what is small in the results of audits.

    Parameters
    ----------
    least : counts from 1 to one less than this are small.
    families : the family of each grouping.
    entangled : the families that share columns and of which groups are hidden; of these nothing finer is told.
    """

    least: int
    families: Mapping[str, int]
    entangled: frozenset[int] = frozenset()

    def applied(self, draft: Draft[Any]) -> Draft[Any]:
        """Return a draft without what is small; claims about it are undefined, with the reason."""
        result = draft.result
        self._require_many_left_out(result)
        blocks = self._small_blocks(result)
        own = withholder_of(result)
        bins = self._bins(result) if own.bins else frozenset()
        gone = _Gone(self, own, result.audit, frozenset(blocks), bins, result.metrics)
        tables = {name: tuple(filter(gone.keeps(name), records)) for name, records in result.tables.items()}
        tables |= {name: () for name, kind in result.record_types().items() if kind.individual}
        tables |= own.without(tables)
        types = result.record_types()
        lost = sum(len(result.tables[name]) - len(kept) for name, kept in tables.items() if not types[name].individual)
        notes = (*self._kept_notes(result.notes), *gone.notes(lost, self.least))
        more, at = draft.notes, draft.at
        return replace(
            draft,
            result=replace(result, **tables, notes=notes),
            claims=[gone.claim(claim) for claim in draft.claims],
            at=None if at is None else lambda confidence: [gone.claim(claim) for claim in at(confidence)],
            notes=lambda found: self._kept_notes(more(found)),
        )

    def is_small(self, number: float) -> bool:
        """Tell whether a count is small."""
        return 0 < number < self.least

    def block(self, own: Withholder[Any], table: str, record: Record) -> Block:
        """Return the block that a record belongs to."""
        grouping = getattr(record, "grouping", None)
        part = "" if table == "left_out" else own.part(table, record)
        return part, None if grouping is None else self.families.get(grouping, -1)

    def _require_many_left_out(self, result: Result) -> None:
        """Refuse a few people whom an audit leaves out: whatever total it tells, they are missing from it."""
        few = {record.reason: record.n for record in result.left_out if record.grouping is None}
        few["missing outcome"] = getattr(result, "unlabelled", 0)
        for reason, n in few.items():
            if self.is_small(n):
                raise ConfigError(
                    f"the {result.audit} audit leaves out {count(n, 'row')} ({reason}), a count below `suppress_below` "
                    f"{self.least} that its totals would reveal; remove them from the data beforehand."
                )

    def _small_blocks(self, result: Result) -> set[Block]:
        """Return the blocks in which a count is small, by itself or as what is missing from everybody."""
        counted = list(self._counted(result))
        every = {block for block, _ in counted}
        small = {block for block, record in counted if any(map(self.is_small, told_counts(record)))}
        small |= self._small_rests(result)
        small |= {
            block for block, record in counted if block[1] in self.entangled and (block[0] or _first_part(record))
        }
        for coarse in withholder_of(result).coarse:
            small |= {(part, family) for part, family in every if family is not None and (coarse, family) in small}
        return small

    def _counted(self, result: Result) -> Iterator[tuple[Block, Any]]:
        """Yield the records that count people and are published, with their blocks."""
        own = withholder_of(result)
        for name, kind in result.record_types().items():
            if name not in _COUNT_NOBODY and not kind.individual:
                yield from ((self.block(own, name, record), record) for record in result.tables[name])

    def _small_rests(self, result: Result) -> set[Block]:
        """Return the blocks of groupings whose people in hidden groups, everybody less all groups, are few somewhere.

        Everybody is told, or follows from a grouping without hidden groups.
        """
        sums: dict[tuple[Any, ...], dict[Any, float]] = {}
        for name in ("values", "counts"):
            for record in result.rows(name) if name in result.tables else ():
                place = (name, *(getattr(record, key, None) for key in _PLACE))
                block = self.block(withholder_of(result), name, record)
                for at, number in enumerate((record.n, *_first_part(record))):
                    of_grouping = sums.setdefault((*place, at), {})
                    key = (block, record.grouping)
                    of_grouping[key] = of_grouping.get(key, 0) + number
        return {
            block
            for of_grouping in sums.values()
            for (block, _), number in of_grouping.items()
            if self.is_small(max(of_grouping.values()) - number)
        }

    def groups_to_hide(self, result: Result) -> dict[str, set[str]]:
        """Return more groups to hide, by grouping, so that less need be withheld: those with a small count.

        Where the rest is what is small, the smallest group. Only of groupings that share no columns.
        """
        small = {family for _, family in self._small_blocks(result)}
        no_bins = bool(withholder_of(result).bins) and self._bins(result) is None
        wanted: dict[str, set[str]] = {}
        for grouping in filter(self._is_alone, result.groupings):
            sizes = self._sizes(result, grouping)
            if len(sizes) < 3 or not (no_bins or self.families[grouping] in small):
                continue
            few = {record.group for record in self._telling_few(result, grouping)} & sizes.keys()
            more = few or {min(sizes, key=lambda group: (sizes[group], group))}
            if len(sizes) - len(more) > 1:
                wanted[grouping] = more
        return wanted

    def _is_alone(self, grouping: str) -> bool:
        family = self.families.get(grouping)
        return family is not None and list(self.families.values()).count(family) == 1

    def _sizes(self, result: Result, grouping: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for value in result.rows("values"):
            if value.grouping == grouping and value.group not in UNNAMED:
                sizes[value.group] = max(sizes.get(value.group, 0), value.n)
        return sizes

    def _telling_few(self, result: Result, grouping: str) -> Iterator[Any]:
        for name in ("values", "counts"):
            for record in result.rows(name) if name in result.tables else ():
                own = withholder_of(result)
                is_whole = own.part(name, record) not in own.not_of_all
                if record.grouping == grouping and is_whole and any(map(self.is_small, told_counts(record))):
                    yield record

    def _bins(self, result: Result) -> frozenset[float] | None:
        """Return the bins to withhold; None where fewer than two would be left, or groups are entangled."""
        own = withholder_of(result)
        records = [(low, value) for value in result.rows("values") if (low := own.bin(value)) is not None]
        bins = sorted({low for low, _ in records})
        if self.entangled or not bins:
            return None
        gone = _without_small_rows(_bin_table(records, bins), self.least)
        return None if gone is None else frozenset(low for low, out in zip(bins, gone.tolist(), strict=True) if out)

    def _kept_notes(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the remarks that speak of no small number of people."""
        few = re.compile(_FEW.format(f"(?:{'|'.join(map(str, range(1, self.least)))})"))
        return tuple(note for note in notes if few.search(note) is None)


def _bin_table(records: Sequence[tuple[float, Any]], bins: Sequence[float]) -> FloatArray:
    """Return people by bin and by group of any grouping: how many, and where scores are decisions how many of each."""
    places: dict[tuple[Any, ...], int] = {}
    entries = []
    for low, value in records:
        for at, number in enumerate((value.n, *_whole(value.n, float(value.value or 0.0), False))):
            place = places.setdefault((value.model, value.grouping, value.group, at), len(places))
            entries.append((bins.index(low), place, number))
    table = np.zeros((len(bins), len(places)))
    for row, place, number in entries:
        table[row, place] = number
    return table


def _without_small_rows(table: FloatArray, least: int) -> BoolArray | None:
    """Return the rows to withhold so that neither those shown nor the sum of those withheld holds a small count."""
    small = (table > 0) & (table < least)
    gone = np.asarray(small.any(axis=1))
    order = np.argsort(table.sum(axis=1), kind="stable")
    while gone.any() and (~gone).sum() > 1:
        rest = table[gone].sum(axis=0)
        if gone.sum() > 1 and not ((rest > 0) & (rest < least)).any():
            break
        gone[next(row for row in order if not gone[row])] = True
    return gone if (~gone).sum() > 1 else None


@dataclass(frozen=True)
class _Gone:
    """What is withheld of one result."""

    rule: Withholding
    own: Withholder[Any]
    audit: str
    blocks: frozenset[Block]
    bins: frozenset[float] | None
    metrics: Mapping[str, Metric]

    def keeps(self, table: str) -> Callable[[Any], bool]:
        """Return what tells whether a record of a table is published."""
        return lambda record: not self._is_gone(table, record)

    def _is_gone(self, table: str, record: Any) -> bool:
        part, family = self.rule.block(self.own, table, record)
        if table == "left_out":
            return self.rule.is_small(record.n)
        if part and part in (self.own.bins, self.own.from_bins) and ("", family) not in self.blocks:
            if part == self.own.bins:
                return self.bins is None or self.own.bin(record) in self.bins
            return bool(self.bins is None or self.bins) or (part, family) in self.blocks
        return (part, family) in self.blocks

    def claim(self, claim: Claim) -> Claim:
        """Return a claim about what is left; undefined with the reason, and not told unasked, where nothing is."""
        kept = tuple(record for record in claim.records if not self._is_gone("gaps", record))
        if kept == claim.records:
            return claim
        if kept:
            return replace(claim, records=kept)
        first = claim.records[0]
        told = claim.arguments(first) if callable(claim.arguments) else claim.arguments
        where = ", by ".join(str(place) for place in (first.model, first.grouping) if place is not None)
        words = {name: word for name, word in told.items() if name in ("where", "title")}
        numbers: dict[str, Any] = dict.fromkeys(("value", "low", "high", "joint_low", "joint_high"))
        numbers |= dict.fromkeys(set(type(first).columns()) & {"p_value", "p_adjusted", "lower", "upper", "stderr"})
        status = f"undefined: {hidden_reason(self.rule.least)}"
        nothing: Any = replace(first, **numbers, n=0, status=status)
        return replace(
            claim,
            records=(nothing,),
            arguments={"where": where, "title": self.metrics[first.metric].title_in_sentence, **words},
            headline=False,
            aside="",
            undefined_id=None,
            p_value=None,
            when={},
        )

    def notes(self, lost: int, least: int) -> Iterator[str]:
        """Say what is withheld, and how much."""
        parts = {part or ("groups" if family is not None else "everybody") for part, family in self.blocks}
        parts |= {self.own.bins} if self.bins is None or self.bins else set()
        if lost:
            listed = ", ".join(sorted(parts)) or self.own.never
            verb = "is" if lost == 1 else "are"
            yield (
                f"Of the {self.audit} audit {count(lost, 'record')} {verb} withheld ({listed}): they would "
                f"reveal something of fewer than {least} people."
            )
