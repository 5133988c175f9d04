"""Withhold records with small counts, before findings are judged.

Small groups are hidden in the table before an audit runs (`after/suppression.py`), so that no number can reveal them.
The remaining small counts are counts of published groups in finer parts: bins, pairs of ratings, labels, or kinds of
critics. Records are divided into *blocks* such that no block's counts can be derived from other blocks. A block with
any small count is withheld completely. Then no published number depends on its counts; a reader can only infer that
each count is between 0 and the size of the group, which is large enough.

- A block is a finer part (defined by `withhold` of the audit's descriptor) of one family of groupings that share
  columns. Tables by race, by sex, and by race and sex are withheld together, because the published ones would narrow
  down the withheld one.
- If the coarser part of a family is withheld, so are the finer parts that sum to it.
- A table without a rule in the audit's `withhold` is a separate part.
- Bins of a continuous number are disjoint parts. Only bins with a small count are withheld, together with the smallest
  other bins until the people of all withheld bins, whose number is known by subtraction, are not few in any group.

Columns of records and sentences declare whether they count people or would reveal a count (`core.records`,
`messages.disclosure`). An undeclared column, field or sentence is withheld, in any audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.after.messages import say
from evenhand.core.disclosure import RecordFilter, revealed_counts, whole_parts, without_values
from evenhand.core.estimates import Estimate
from evenhand.core.findings import Claim, Finding
from evenhand.core.omitted import Omitted
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
"""The coordinates of every audit, in addition to its group."""

_OF_GROUP = ("grouping", "group", "status", *_EVERYWHERE)

Block = tuple[str | Message, int | None]
"""A finer part ('' for whole groups) and a family of groupings (None for all people)."""


def withholder_of(result: Result) -> Withholder[Any]:
    """Return an audit's rules for small counts, or the default rules by declared columns."""
    return result.descriptor.withhold or Withholder[Any]()


@dataclass(frozen=True)
class Withholding:
    """Rule that withholds small numbers in the results of audits.

    Parameters
    ----------
    least : the smallest count that is not small; counts from 1 to `least - 1` are small.
    families : the family of each grouping.
    entangled : the families of several groupings with hidden groups, of which no finer parts than groups are
        published.
    totals : the numbers of people that are always published.
    """

    least: int
    families: Mapping[str, int]
    entangled: frozenset[int] = frozenset()
    totals: tuple[int, ...] = ()

    def applied(self, draft: Draft[Any]) -> Draft[Any]:
        """Return a draft without small or undeclared numbers.

        Claims about withheld numbers become undefined, with the reason.
        """
        withholder = withholder_of(draft.result)
        draft = _coarser(draft, withholder)
        result = draft.result
        self._require_many_left_out(result)
        gone = self._suppressed(result)
        types = result.record_types()
        tables = {name: tuple(filter(gone.keeps(name), records)) for name, records in result.tables.items()}
        tables |= {name: () for name, kind in types.items() if kind.individual}
        tables |= withholder.without(tables)
        filtered = RecordFilter(self.disclosure(tables.values()), result.metrics)
        tables = {name: gone.publishable(name, records, filtered) for name, records in tables.items()}
        lost = sum(len(result.tables[name]) - len(rows) for name, rows in tables.items() if not types[name].individual)
        plain = self._plain_fields(result, filtered.rule)
        notes = (*result.notes, *gone.notes(lost), *self._undeclared(result.audit, {*filtered.undeclared, *plain}))
        return replace(
            draft,
            result=replace(result, **tables, **plain, notes=notes),
            claims=[gone.claim(claim, filtered) for claim in draft.claims],
        )

    def disclosure(self, tables: Iterable[Iterable[Record]]) -> DisclosureRule:
        """Return the disclosure rule for messages: every count in a message must appear in the tables."""
        counts = (
            getattr(record, name)
            for records in tables
            for record in records
            for name, declaration in declarations(type(record)).items()
            if declaration.reveals == "count"
        )
        return DisclosureRule(self.least, counts=frozenset((*self.totals, *counts)) - {None})

    def reviewed(self, result: Result) -> Result:
        """Return a result without notes and headlines that reveal small or unpublished numbers."""
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

    def _plain_fields(self, result: Result, rule: DisclosureRule) -> dict[str, Any]:
        """Return empty values for the fields outside tables that must not be published."""
        changed: dict[str, Any] = {}
        for name in result.plain_fields():
            value, reveals = getattr(result, name), result.reveals.get(name, "undeclared")
            is_known = reveals == "count" and not self.is_small(value) and value in (rule.counts or ())
            if value and reveals not in ("name", "safe") and not is_known:
                changed[name] = type(value)() if isinstance(value, tuple | list | dict) else None
        return changed

    def _undeclared(self, audit: str, columns: Iterable[str]) -> Iterator[Message]:
        names = tuple(sorted(columns))
        if names:
            yield say("small_columns_withheld", audit=audit, columns=names)

    def is_small(self, number: float) -> bool:
        """Return whether a count is small."""
        return 0 < number < self.least

    def block(self, withholder: Withholder[Any], table: str, record: Record) -> Block:
        """Return the block to which a record belongs."""
        grouping = getattr(record, "grouping", None)
        part = "" if table == "left_out" else withholder.part(table, record)
        return part, None if grouping is None else self.families.get(grouping, -1)

    def _suppressed(self, result: Result) -> _SuppressedRecords:
        withholder = withholder_of(result)
        if withholder.by_decision:  # hiding groups is sufficient
            return _SuppressedRecords(self, withholder, result, frozenset(), frozenset())
        bins = self._bins(result) if withholder.bins else frozenset()
        return _SuppressedRecords(self, withholder, result, frozenset(self._small_blocks(result)), bins)

    def _require_many_left_out(self, result: Result) -> None:
        """Refuse an audit that leaves out few people, because published totals would reveal their number."""
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
        """Return the blocks with a small count, either directly or as the difference from all people."""
        withholder = withholder_of(result)
        counted = list(self.counted(result))
        every = {block for block, _ in counted}
        small = {block for block, record in counted if self._reveals_few(withholder, record)}
        small |= self._small_rests(result)
        small |= self._small_differences(withholder, counted) if withholder.places is None else set()
        small |= self._entangled_blocks(withholder, counted)
        for coarse in withholder.coarse:
            small |= {(part, family) for part, family in every if family is not None and (coarse, family) in small}
        return small

    def _entangled_blocks(self, withholder: Withholder[Any], counted: Iterable[tuple[Block, Record]]) -> set[Block]:
        """Return the blocks of entangled groupings that are finer than a group or count a part of a group."""
        of_entangled = ((block, record) for block, record in counted if block[1] in self.entangled)
        return {block for block, record in of_entangled if block[0] or _first_part(withholder, record)}

    def _small_differences(self, withholder: Withholder[Any], counted: Iterable[tuple[Block, Record]]) -> set[Block]:
        """Return the blocks with a count that differs little from another count of the same people.

        If an audit does not declare the people that its records count, a group's records may overlap.
        """
        of_group: dict[tuple[str | None, str | None], set[tuple[float, Block]]] = {}
        for block, record in counted:
            if not isinstance(record, Gap | LeftOut):
                key = getattr(record, "grouping", None), getattr(record, "group", None)
                counts = revealed_counts(record, withholder.balances)
                of_group.setdefault(key, set()).update((number, block) for number in counts)
        return {
            block
            for entries in of_group.values()
            for (key, first), (other, second) in combinations(entries, 2)
            if self.is_small(abs(key - other))
            for block in ((first, second) if first[0] and second[0] else (first if first[0] else second,))
        }

    def _reveals_few(self, withholder: Withholder[Any], record: Record) -> bool:
        return any(map(self.is_small, revealed_counts(record, withholder.balances)))

    def counted(self, result: Result) -> Iterator[tuple[Block, Record]]:
        """Yield the published records that count people, with their blocks."""
        withholder = withholder_of(result)
        for name, kind in result.record_types().items():
            if name not in withholder.whole and not kind.individual:
                yield from ((self.block(withholder, name, record), record) for record in result.tables[name])

    def _small_rests(self, result: Result) -> set[Block]:
        """Return the blocks in which a grouping's hidden groups contain few people: all people minus all shown groups.

        The number of all people is published, or is known from a grouping without hidden groups.
        """
        withholder = withholder_of(result)
        sums: dict[tuple[Any, ...], dict[tuple[Block, str | None], float]] = {}
        for name, kind in result.record_types().items():
            if not _sums_to_everybody(kind) or kind.individual or name in withholder.whole:
                continue
            for record in result.tables[name]:
                key = self.block(withholder, name, record), getattr(record, "grouping", None)
                for sum_key in _sum_keys(withholder, name, record):
                    for position, number in enumerate((*_parts_of_group(record), *_first_part(withholder, record))):
                        of_grouping = sums.setdefault((*sum_key, position), {})
                        of_grouping[key] = of_grouping.get(key, 0) + number
        return {
            block
            for of_grouping in sums.values()
            for (block, _), number in of_grouping.items()
            if self.is_small(max(of_grouping.values()) - number)
        }

    def groups_to_hide(self, result: Result) -> dict[str, set[str]]:
        """Return additional groups to hide by grouping, so that fewer numbers must be withheld.

        These are the groups with a small count or, if only the hidden rest is small, the smallest group. Groupings
        that share columns are excluded.
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
        withholder = withholder_of(result)
        for name, kind in result.record_types().items():
            for record in result.tables[name] if _sums_to_everybody(kind) and not kind.individual else ():
                is_whole = withholder.part(name, record) not in withholder.of_some_people
                if getattr(record, "grouping", None) == grouping and is_whole and self._reveals_few(withholder, record):
                    yield record

    def _bins(self, result: Result) -> frozenset[float] | None:
        """Return the bins to withhold, or None if fewer than two would remain or if groupings are entangled."""
        withholder = withholder_of(result)
        records = [(low, value) for value in result.tables["values"] if (low := withholder.bin(value)) is not None]
        bins = sorted({low for low, _ in records})
        if self.entangled or not bins:
            return None
        gone = _without_small_rows(_bin_table(records, bins), self.least)
        return None if gone is None else frozenset(low for low, out in zip(bins, gone.tolist(), strict=True) if out)


def _coarser(draft: Draft[Any], withholder: Withholder[Any]) -> Draft[Any]:
    """Return a draft with only those counts that reveal nothing about parts of a group."""
    tables = {name: tuple(map(withholder.coarser, records)) for name, records in draft.result.tables.items()}
    claims = [
        replace(claim, estimates=tuple(estimate.map(withholder.coarser) for estimate in claim.estimates))
        for claim in draft.claims
    ]
    return replace(draft, result=replace(draft.result, **tables), claims=claims)


def _publishable_note(note: object, rule: DisclosureRule) -> Message | None:
    """Return a note if it may be published; None for all other notes and for plain text."""
    return rule.publishable(note) if isinstance(note, Message) else None


def _sums_to_everybody(kind: type[Record]) -> bool:
    """Return whether records of a kind count people by group so that all groups sum to all people."""
    return not issubclass(kind, Gap | LeftOut) and {"grouping", "group", "n"} <= declarations(kind).keys()


def _sum_keys(withholder: Withholder[Any], table: str, record: Record) -> Iterator[tuple[Any, ...]]:
    """Yield the coordinates that records of all groups must share to sum to all people."""
    declared = declarations(type(record))
    named = [name for name, each in declared.items() if each.reveals in ("name", "safe") and name not in _OF_GROUP]
    for names in [withholder.places] if withholder.places is not None else [(), tuple(named)]:
        yield (table, names, *(getattr(record, name, None) for name in (*_EVERYWHERE, *names)))


def _parts_of_group(record: Record) -> Iterator[float]:
    """Yield the number of a record's people and its counts of parts of them."""
    for name, declaration in declarations(type(record)).items():
        number = getattr(record, name)
        if declaration.reveals == "count" and declaration.of == "n" and isinstance(number, int | float):
            yield number


def _first_part(withholder: Withholder[Any], record: Record) -> list[int]:
    """Return the number of people that a record's share counts, as a list; empty for other values."""
    value, n = getattr(record, "value", None), getattr(record, "n", 0)
    if value is None or not n or declarations(type(record))["value"].reveals != "share":
        return []
    return list(whole_parts(n, value, is_balance=getattr(record, "metric", "") in withholder.balances))[:1]


def published_numbers(tables: Iterable[Iterable[Record]]) -> tuple[frozenset[float], frozenset[str]]:
    """Return the numbers and names in published tables."""
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
    """Return counts of people by bin and by group of any grouping, split by decision for scores of 0 and 1."""
    places: dict[tuple[Any, ...], int] = {}
    entries = []
    for low, value in records:
        for position, number in enumerate((value.n, *whole_parts(value.n, float(value.value or 0.0)))):
            key = places.setdefault((value.model, value.grouping, value.group, position), len(places))
            entries.append((bins.index(low), key, number))
    table = np.zeros((len(bins), len(places)))
    for row, key, number in entries:
        table[row, key] = number
    return table


def _without_small_rows(table: FloatArray, least: int) -> BoolArray | None:
    """Return the rows to withhold so that neither a published row nor the sum of withheld rows is small."""
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
    """The withheld records of one result."""

    rule: Withholding
    own: Withholder[Any]
    result: Result
    blocks: frozenset[Block]
    bins: frozenset[float] | None

    def keeps(self, table: str) -> Callable[[Any], bool]:
        """Return a predicate for the published records of a table."""
        return lambda record: not self._is_gone(table, record)

    def _is_gone(self, table: str, record: Any) -> bool:
        part, family = self.rule.block(self.own, table, record)
        if table == "left_out":
            return self.rule.is_small(record.n)
        if part and part in (self.own.bins, self.own.from_all_bins) and ("", family) not in self.blocks:
            if part == self.own.bins:
                return self.bins is None or self.own.bin(record) in self.bins
            return bool(self.bins is None or self.bins) or (part, family) in self.blocks
        return (part, family) in self.blocks

    def _is_unpublished(self, record: Value | Gap) -> bool:
        """Return whether a claim's record is withheld from its table or belongs to no table."""
        tables = [name for name, kind in self.result.record_types().items() if isinstance(record, kind)]
        return not tables or any(self._is_gone(table, record) for table in tables)

    def publishable(self, table: str, records: Iterable[Record], filtered: RecordFilter) -> tuple[Record, ...]:
        """Return a table's published records, without undeclared columns and numbers without a known count."""
        is_whole = table in self.own.whole
        published = (
            filtered.publishable(record, whole=is_whole or self.rule.block(self.own, table, record) in self.counted)
            for record in records
        )
        return tuple(record for record in published if record is not None)

    @cached_property
    def counted(self) -> frozenset[Block]:
        """The blocks with counts of people; their other numbers need no count beside them."""
        counted = self.rule.counted(self.result)
        return frozenset(block for block, record in counted if next(revealed_counts(record), None) is not None)

    def claim(self, claim: Claim, filtered: RecordFilter) -> Claim:
        """Return a claim with only its published numbers.

        If all of its numbers are withheld, the claim is undefined and not a headline.
        """
        published = tuple(
            Estimate(record, _filtered_limits(estimate, record, filtered))
            for estimate in claim.estimates
            if not self._is_unpublished(estimate.record)
            and (record := filtered.publishable(estimate.record)) is not None
        )
        if not published:
            return self._undefined(claim, filtered)
        when = {significance: _filtered_parts(parts, filtered) for significance, parts in claim.when.items()}
        groups = (filtered.publishable(group) for group in claim.omitted.groups if not self._is_unpublished(group))
        shown = Omitted(tuple(group for group in groups if group is not None), claim.omitted.compared)
        texts = {"aside": claim.aside, "family": claim.family, "withheld": claim.withheld, "condition": claim.condition}
        claim = replace(claim, chance=None, tested_people=None)  # both depend on withheld groups
        return replace(claim, estimates=published, omitted=shown, when=when, **_filtered_parts(texts, filtered))

    def _undefined(self, claim: Claim, filtered: RecordFilter) -> Claim:
        first = claim.records[0]
        arguments = claim.arguments(first) if callable(claim.arguments) else claim.arguments
        where = arguments.get("where")
        status = shared("undefined", why=shared("hidden", least=self.rule.least))
        title = self.result.metrics[first.metric].title_in_sentence
        return replace(
            claim,
            estimates=(Estimate(without_values(first, status)),),
            arguments={
                "where": (filtered.sentence(where) if isinstance(where, Message) else None) or _coordinates(first),
                "title": title,
            },
            headline=False,
            aside=None,
            family=None,
            condition=None,
            undefined_id=None,
            p_value=None,
            withheld=None,
            omitted=Omitted(),
            when={},
        )

    def notes(self, lost: int) -> Iterator[Message]:
        """Yield a note on the withheld parts and the number of withheld numbers."""
        parts: set[str | Message] = {
            part or ("groups" if family is not None else "everybody") for part, family in self.blocks
        }
        parts |= {self.own.bins} if self.bins is None or self.bins else set()
        if lost:
            words = tuple(sorted(parts, key=str)) or (self.own.never or "what is not declared",)
            yield say("small_records_withheld", audit=self.result.audit, n=lost, parts=words, least=self.rule.least)


def _coordinates(record: Value | Gap) -> Message:
    """Return the model and grouping of a withheld number."""
    grouping = shared("everywhere") if record.grouping is None else shared("by", grouping=record.grouping)
    return grouping if record.model is None else shared("model_place", model=record.model, place=grouping)


def _filtered_limits(
    estimate: Estimate[Any], published: Record, filtered: RecordFilter
) -> Callable[[float], Any] | None:
    """Return the function of a record's limits at any confidence, filtered like the record."""
    limits = estimate.limits
    if limits is None:
        return None
    return lambda confidence: filtered.publishable(limits(confidence)) or published


def _filtered_parts(parts: Mapping[str, Any], filtered: RecordFilter) -> dict[str, Any]:
    """Return the parts of a claim with only publishable sentences."""
    changed = dict(parts)
    for name in {"aside", "family", "condition"} & parts.keys():
        changed[name] = _filtered_sentence(parts[name], filtered)
    if isinstance(parts.get("withheld"), Message):
        changed["withheld"] = filtered.reason(parts["withheld"])
    return changed


def _filtered_sentence(sentence: Any, filtered: RecordFilter) -> Any:
    return (lambda record: filtered.sentence(sentence(record))) if callable(sentence) else filtered.sentence(sentence)
