"""What an audit counted that is too small to be told: records of its result are withheld before anything is judged.

Small groups are hidden in the table before an audit runs (`after/suppression.py`), so that no number can tell of them.
What is left are counts of groups that are shown, in finer parts than a group: bins, pairs of ratings, labels, kinds
of critics. Records are cut into *blocks* such that what is counted in one block follows from no other one, and
a block in which any count is small is withheld whole: then nothing published depends on what it counts, and nobody can
tell more of it than that it is between 0 and the people of the group, of whom there are enough.

- A block is a finer part (`withhold` of the audit's descriptor says which) of one family of groupings, those that share
  columns: by race, by sex and by race and sex stand or fall together, since one of them withheld could be narrowed by
  the others.
- Where the coarser part of a family is withheld, so are the finer ones, which add up to it.
- A table that the audit's `withhold` says nothing of is a part of its own.
- Bins of a continuous number are parts that do not overlap: only those with a small count are withheld, and with them
  the smallest others until the people of all of them together, whom everybody gets by subtraction, are not few in any
  group.

What counts people, and what would reveal a count, the columns of records and the sentences declare (`core.records`,
`messages.disclosure`). A column, a field or a sentence that is not declared is withheld, in any audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.after.messages import say
from evenhand.core.disclosure import RecordFilter, emptied, empty_like, revealed_counts, whole_parts
from evenhand.core.estimates import Estimate
from evenhand.core.findings import Claim, Finding
from evenhand.core.records import Gap, LeftOut, Record, Value, declarations
from evenhand.core.result import Draft, Result
from evenhand.core.withhold import Withholder
from evenhand.errors import ConfigError, count
from evenhand.messages import Message
from evenhand.messages.disclosure import DisclosureRule
from evenhand.messages.shared import say as shared
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.roles import UNNAMED

_EVERYWHERE = ("model", "stratum", "metric")
"""Columns that say where a number of any audit stands, beside its group."""

_OF_GROUP = ("grouping", "group", "status", *_EVERYWHERE)

Block = tuple[str, int | None]
"""A finer part, '' for groups as a whole, and the family of groupings; None for everybody."""


def withholder_of(result: Result) -> Withholder[Any]:
    """Return what an audit says of its own small counts; of one that says nothing, what its columns declare."""
    return result.descriptor.withhold or Withholder[Any]()


@dataclass(frozen=True)
class Withholding:
    """Withholds what is small in the results of audits.

    Parameters
    ----------
    least : counts from 1 to one less than this are small.
    families : the family of each grouping.
    entangled : the families that share columns and of which groups are hidden; of these nothing finer is told.
    totals : numbers of people that are published in any case.
    """

    least: int
    families: Mapping[str, int]
    entangled: frozenset[int] = frozenset()
    totals: tuple[int, ...] = ()

    def applied(self, draft: Draft[Any]) -> Draft[Any]:
        """Return a draft without what is small or not declared; claims about it are undefined, with the reason."""
        result = draft.result
        own = withholder_of(result)
        self._require_many_left_out(result)
        gone = self._suppressed(result)
        types = result.record_types()
        tables = {name: tuple(filter(gone.keeps(name), records)) for name, records in result.tables.items()}
        tables |= {name: () for name, kind in types.items() if kind.individual}
        tables |= own.without(tables)
        filtered = RecordFilter(self.disclosure(tables.values()), result.metrics)
        tables = {name: gone.publishable(name, records, filtered) for name, records in tables.items()}
        lost = sum(len(result.tables[name]) - len(kept) for name, kept in tables.items() if not types[name].individual)
        plain, unsaid = self._plain_fields(result, filtered.rule)
        notes = (*result.notes, *gone.notes(lost), *self._undeclared(result.audit, {*filtered.undeclared, *unsaid}))
        return replace(
            draft,
            result=replace(result, **tables, **plain, notes=notes),
            claims=[gone.claim(claim, filtered) for claim in draft.claims],
        )

    def disclosure(self, tables: Iterable[Iterable[Record]]) -> DisclosureRule:
        """Return which messages may be published beside tables: those with no count that the tables do not hold."""
        counts = (
            getattr(record, name)
            for records in tables
            for record in records
            for name, declaration in declarations(type(record)).items()
            if declaration.reveals == "count"
        )
        return DisclosureRule(self.least, counts=frozenset((*self.totals, *counts)) - {None})

    def reviewed(self, result: Result) -> Result:
        """Return a result whose notes and headlines say nothing that is small, or that the tables do not hold."""
        rule = self.disclosure(result.tables.values())
        notes = (_publishable_note(note, rule) for note in result.notes)
        published = [note for note in notes if note is not None]
        lost = len(result.notes) - len(published)
        more = [say("small_notes_withheld", n=lost, least=self.least)] if lost else []
        numbers, names = published_numbers(result.tables.values())
        own_numbers = replace(rule, numbers=numbers, names=names)
        findings = tuple(self._reviewed_finding(finding, own_numbers, result) for finding in result.findings)
        return replace(result, notes=(*published, *more), findings=findings)

    def _reviewed_finding(self, finding: Finding, rule: DisclosureRule, result: Result) -> Finding:
        title = result.metrics[finding.metric].title_in_sentence
        headline = replace(rule, names=rule.names | {title}).publishable(finding.headline)
        if headline is None and finding.grouping is None:
            headline = shared("headline_withheld", title=title, least=self.least)
        elif headline is None:
            headline = shared("headline_withheld_by", title=title, grouping=finding.grouping, least=self.least)
        return replace(finding, headline=headline)

    def _plain_fields(self, result: Result, rule: DisclosureRule) -> tuple[dict[str, Any], set[str]]:
        """Return the fields of a result that are no tables and may not be published, empty; and the undeclared ones."""
        changed, unsaid = {}, set()
        for name in result.plain_fields():
            value, reveals = getattr(result, name), result.reveals.get(name, "undeclared")
            is_known = reveals == "count" and not self.is_small(value) and value in (rule.counts or ())
            if value and reveals not in ("name", "safe") and not is_known:
                changed[name] = empty_like(value)
                unsaid |= {name} if reveals == "undeclared" else set()
        return changed, unsaid

    def _undeclared(self, audit: str, columns: Iterable[str]) -> Iterator[Message]:
        names = tuple(sorted(columns))
        if names:
            yield say("small_columns_withheld", audit=audit, columns=names)

    def is_small(self, number: float) -> bool:
        """Tell whether a count is small."""
        return 0 < number < self.least

    def block(self, own: Withholder[Any], table: str, record: Record) -> Block:
        """Return the block that a record belongs to."""
        grouping = getattr(record, "grouping", None)
        part = "" if table == "left_out" else own.part(table, record)
        return part, None if grouping is None else self.families.get(grouping, -1)

    def _suppressed(self, result: Result) -> _SuppressedRecords:
        own = withholder_of(result)
        if own.by_decision:  # the groups hidden are enough
            return _SuppressedRecords(self, own, result, frozenset(), frozenset())
        bins = self._bins(result) if own.bins else frozenset()
        return _SuppressedRecords(self, own, result, frozenset(self._small_blocks(result)), bins)

    def _require_many_left_out(self, result: Result) -> None:
        """Refuse a few people whom an audit leaves out: whatever total it tells, they are missing from it."""
        for reason, n in withholder_of(result).left_out(result):
            if self.is_small(n):
                raise ConfigError(
                    "the {audit} audit leaves out {rows} ({reason}), a count below `suppress_below` {least} that "
                    "its totals would reveal; remove them from the data beforehand.",
                    audit=result.audit,
                    rows=count(n, "row"),
                    reason=reason,
                    least=self.least,
                )

    def _small_blocks(self, result: Result) -> set[Block]:
        """Return the blocks in which a count is small, by itself or as what is missing from everybody."""
        own = withholder_of(result)
        counted = list(self.counted(result))
        every = {block for block, _ in counted}
        small = {block for block, record in counted if self._reveals_few(own, record)}
        small |= self._small_rests(result)
        small |= self._small_differences(own, counted) if own.places is None else set()
        small |= self._entangled_blocks(own, counted)
        for coarse in own.coarse:
            small |= {(part, family) for part, family in every if family is not None and (coarse, family) in small}
        return small

    def _entangled_blocks(self, own: Withholder[Any], counted: Iterable[tuple[Block, Record]]) -> set[Block]:
        """Return the blocks of groupings that share columns, which are finer than a group or tell a part of one."""
        of_entangled = ((block, record) for block, record in counted if block[1] in self.entangled)
        return {block for block, record in of_entangled if block[0] or _first_part(own, record)}

    def _small_differences(self, own: Withholder[Any], counted: Iterable[tuple[Block, Record]]) -> set[Block]:
        """Return the blocks with a count that differs little from another one of the same people.

        Where an audit does not say which people its records count, those of a group may be among one another.
        """
        of_group: dict[tuple[str | None, str | None], set[tuple[float, Block]]] = {}
        for block, record in counted:
            if not isinstance(record, Gap | LeftOut):
                place = getattr(record, "grouping", None), getattr(record, "group", None)
                counts = revealed_counts(record, own.balances)
                of_group.setdefault(place, set()).update((number, block) for number in counts)
        return {
            block
            for entries in of_group.values()
            for (one, first), (other, second) in combinations(entries, 2)
            if self.is_small(abs(one - other))
            for block in ((first, second) if first[0] and second[0] else (first if first[0] else second,))
        }

    def _reveals_few(self, own: Withholder[Any], record: Record) -> bool:
        return any(map(self.is_small, revealed_counts(record, own.balances)))

    def counted(self, result: Result) -> Iterator[tuple[Block, Record]]:
        """Yield the records that count people and are published, with their blocks."""
        own = withholder_of(result)
        for name, kind in result.record_types().items():
            if name not in own.whole and not kind.individual:
                yield from ((self.block(own, name, record), record) for record in result.tables[name])

    def _small_rests(self, result: Result) -> set[Block]:
        """Return the blocks of groupings whose people in hidden groups, everybody less all groups, are few somewhere.

        Everybody is told, or follows from a grouping without hidden groups.
        """
        own = withholder_of(result)
        sums: dict[tuple[Any, ...], dict[tuple[Block, str | None], float]] = {}
        for name, kind in result.record_types().items():
            if not _adds_up(kind) or kind.individual or name in own.whole:
                continue
            for record in result.tables[name]:
                key = self.block(own, name, record), getattr(record, "grouping", None)
                for place in _places(own, name, record):
                    for at, number in enumerate((*_parts_of_group(record), *_first_part(own, record))):
                        of_grouping = sums.setdefault((*place, at), {})
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
        for value in result.tables["values"]:
            if isinstance(value, Value) and value.grouping == grouping and value.group not in UNNAMED:
                sizes[value.group] = max(sizes.get(value.group, 0), value.n)
        return sizes

    def _telling_few(self, result: Result, grouping: str) -> Iterator[Any]:
        own = withholder_of(result)
        for name, kind in result.record_types().items():
            for record in result.tables[name] if _adds_up(kind) and not kind.individual else ():
                is_whole = own.part(name, record) not in own.not_of_all
                if getattr(record, "grouping", None) == grouping and is_whole and self._reveals_few(own, record):
                    yield record

    def _bins(self, result: Result) -> frozenset[float] | None:
        """Return the bins to withhold; None where fewer than two would be left, or groups are entangled."""
        own = withholder_of(result)
        records = [(low, value) for value in result.tables["values"] if (low := own.bin(value)) is not None]
        bins = sorted({low for low, _ in records})
        if self.entangled or not bins:
            return None
        gone = _without_small_rows(_bin_table(records, bins), self.least)
        return None if gone is None else frozenset(low for low, out in zip(bins, gone.tolist(), strict=True) if out)


def _publishable_note(note: object, rule: DisclosureRule) -> Message | None:
    """Return a note that may be published; None for any other, and for text that is no message."""
    return rule.publishable(note) if isinstance(note, Message) else None


def _adds_up(kind: type[Record]) -> bool:
    """Tell whether the records of a kind count people of groups, such that all groups are everybody."""
    return not issubclass(kind, Gap | LeftOut) and {"grouping", "group", "n"} <= declarations(kind).keys()


def _places(own: Withholder[Any], table: str, record: Record) -> Iterator[tuple[Any, ...]]:
    """Yield what records of all groups must share to add up: where the number stands, as the audit says or not."""
    declared = declarations(type(record))
    named = [name for name, each in declared.items() if each.reveals in ("name", "safe") and name not in _OF_GROUP]
    for names in [own.places] if own.places is not None else [(), tuple(named)]:
        yield (table, names, *(getattr(record, name, None) for name in (*_EVERYWHERE, *names)))


def _parts_of_group(record: Record) -> Iterator[float]:
    """Yield the counts of a record that are parts of its people, and these."""
    for name, declaration in declarations(type(record)).items():
        number = getattr(record, name)
        if declaration.reveals == "count" and declaration.of == "n" and isinstance(number, int | float):
            yield number


def _first_part(own: Withholder[Any], record: Record) -> list[int]:
    """Return how many of its people a record's value counts, where it is a share of them."""
    value, n = getattr(record, "value", None), getattr(record, "n", 0)
    if value is None or not n or declarations(type(record))["value"].reveals != "share":
        return []
    return list(whole_parts(n, value, is_balance=getattr(record, "metric", "") in own.balances))[:1]


def published_numbers(tables: Iterable[Iterable[Record]]) -> tuple[frozenset[float], frozenset[str]]:
    """Return the numbers and names that published tables hold."""
    numbers: set[float] = set()
    names: set[str] = set()
    for records in tables:
        for record in records:
            for name, declaration in declarations(type(record)).items():
                value = getattr(record, name)
                if isinstance(value, str) and declaration.reveals == "name":
                    names.add(value)
                elif isinstance(value, float) and declaration.reveals in ("share", "number", "safe"):
                    numbers.add(abs(value))
    return frozenset(numbers), frozenset(names)


def _bin_table(records: Sequence[tuple[float, Any]], bins: Sequence[float]) -> FloatArray:
    """Return people by bin and by group of any grouping: how many, and where scores are decisions how many of each."""
    places: dict[tuple[Any, ...], int] = {}
    entries = []
    for low, value in records:
        for at, number in enumerate((value.n, *whole_parts(value.n, float(value.value or 0.0)))):
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
class _SuppressedRecords:
    """The records of one result that are withheld."""

    rule: Withholding
    own: Withholder[Any]
    result: Result
    blocks: frozenset[Block]
    bins: frozenset[float] | None

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

    def _is_unpublished(self, record: Value | Gap) -> bool:
        """Tell whether a claim's record is withheld in a table that holds such records, or is of no table."""
        tables = [name for name, kind in self.result.record_types().items() if isinstance(record, kind)]
        return not tables or any(self._is_gone(table, record) for table in tables)

    def publishable(self, table: str, records: Iterable[Record], filtered: RecordFilter) -> tuple[Record, ...]:
        """Return the records of a table without what is not declared, or is a number of nobody knows how many."""
        is_whole = table in self.own.whole
        kept = (
            filtered.publishable(record, whole=is_whole or self.rule.block(self.own, table, record) in self.counted)
            for record in records
        )
        return tuple(record for record in kept if record is not None)

    @cached_property
    def counted(self) -> frozenset[Block]:
        """The blocks in which people are counted: a number of theirs needs no count of its own beside it."""
        counted = self.rule.counted(self.result)
        return frozenset(block for block, record in counted if next(revealed_counts(record), None) is not None)

    def claim(self, claim: Claim, filtered: RecordFilter) -> Claim:
        """Return a claim about what is published; undefined with the reason, and not told unasked, where nothing is."""
        kept = tuple(
            Estimate(record, _filtered_limits(estimate, record, filtered))
            for estimate in claim.estimates
            if not self._is_unpublished(estimate.record)
            and (record := filtered.publishable(estimate.record)) is not None
        )
        if not kept:
            return self._undefined(claim, filtered)
        when = {clarity: _filtered_parts(parts, filtered) for clarity, parts in claim.when.items()}
        own = {"aside": claim.aside, "family": claim.family, "withheld": claim.withheld}
        return replace(claim, estimates=kept, when=when, **_filtered_parts(own, filtered))

    def _undefined(self, claim: Claim, filtered: RecordFilter) -> Claim:
        first = claim.records[0]
        said = claim.arguments(first) if callable(claim.arguments) else claim.arguments
        where = said.get("where")
        status = shared("undefined", why=shared("hidden", least=self.rule.least))
        title = self.result.metrics[first.metric].title_in_sentence
        return replace(
            claim,
            estimates=(Estimate(emptied(first, status)),),
            arguments={
                "where": (filtered.sentence(where) if isinstance(where, Message) else None) or _where(first),
                "title": title,
            },
            headline=False,
            aside=None,
            family=None,
            undefined_id=None,
            p_value=None,
            withheld=None,
            when={},
        )

    def notes(self, lost: int) -> Iterator[Message]:
        """Say what is withheld, and how much."""
        parts = {part or ("groups" if family is not None else "everybody") for part, family in self.blocks}
        parts |= {self.own.bins} if self.bins is None or self.bins else set()
        if lost:
            words = tuple(sorted(parts)) or (self.own.never or "what is not declared",)
            yield say("small_records_withheld", audit=self.result.audit, n=lost, parts=words, least=self.rule.least)


def _where(record: Value | Gap) -> Message:
    """Return where a withheld number stands: its model and its grouping."""
    place = shared("everywhere") if record.grouping is None else shared("by", grouping=record.grouping)
    return place if record.model is None else shared("model_place", model=record.model, place=place)


def _filtered_limits(estimate: Estimate[Any], kept: Record, filtered: RecordFilter) -> Callable[[float], Any] | None:
    """Return the limits at any confidence of a record, filtered as the record itself is."""
    limits = estimate.limits
    if limits is None:
        return None
    return lambda confidence: filtered.publishable(limits(confidence)) or kept


def _filtered_parts(parts: Mapping[str, Any], filtered: RecordFilter) -> dict[str, Any]:
    """Return parts of a claim whose sentences may be published."""
    changed = dict(parts)
    for name in {"aside", "family"} & parts.keys():
        changed[name] = _filtered_sentence(parts[name], filtered)
    if isinstance(parts.get("withheld"), Message):
        changed["withheld"] = filtered.reason(parts["withheld"])
    return changed


def _filtered_sentence(said: Any, filtered: RecordFilter) -> Any:
    return (lambda record: filtered.sentence(said(record))) if callable(said) else filtered.sentence(said)
