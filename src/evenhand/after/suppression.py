"""Hide small counts in all published results: `suppress_below` of `[report]`.

Groups are hidden before any counting, so that no number in any format can reveal them: their people are pooled as
"(small groups)" and not compared. `stats/disclosure.py` chooses the groups. `after/withholding.py` withholds small
counts in finer parts than groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from evenhand.after.messages import say
from evenhand.after.profiles.checklists import without_rates
from evenhand.after.withholding import Withholding, published_numbers, withholder_of
from evenhand.audits import REGISTRY
from evenhand.core.disclosure import RecordFilter
from evenhand.core.progress import step
from evenhand.core.provenance import data_record
from evenhand.core.result import Draft, Result
from evenhand.core.spec import Spec
from evenhand.core.withhold import AllowedSettings, Withholder, published_states
from evenhand.errors import ConfigError, count
from evenhand.messages import Argument, Message
from evenhand.messages.disclosure import DisclosureRule
from evenhand.messages.shared import say as shared
from evenhand.stats.disclosure import CountedPeople, hide_small_groups, is_small
from evenhand.table.keys import column_key
from evenhand.table.labels import hide_groups
from evenhand.table.roles import MISSING, SMALL

if TYPE_CHECKING:
    from evenhand.after.profiles.result import ProfileResult, Rate
    from evenhand.after.records import Extra
    from evenhand.table.table import Table

_MOST_RUNS = 4
P = TypeVar("P", "ProfileResult", "Extra")


@dataclass(frozen=True)
class Suppressed:
    """A table and settings that do not reveal small counts.

    Parameters
    ----------
    whole : the original table.
    table : the table with small groups hidden.
    audits : the settings of the audits, without settings that would reveal small counts.
    requested : the requested settings, recorded in the results.
    hidden : the hidden groups, by grouping.
    withheld_groupings : the completely withheld groupings.
    rule : the rule that withholds small parts of results.
    dropped : the unpublished tables, by audit.
    notes : the notes on hidden groups and settings.
    """

    whole: Table
    table: Table
    audits: Mapping[str, Spec]
    requested: Mapping[str, Spec]
    hidden: Mapping[str, tuple[str, ...]]
    withheld_groupings: tuple[str, ...]
    rule: Withholding
    dropped: Mapping[str, tuple[str, ...]]
    notes: tuple[Message, ...]

    def withheld(self, drafts: Mapping[str, Draft[Any]]) -> dict[str, Draft[Any]]:
        """Return the drafts of audits without small or undeclared numbers."""
        return {
            name: self.rule.applied(replace(draft, result=self._reported_spec(draft.result)))
            for name, draft in drafts.items()
        }

    def _reported_spec(self, result: Result) -> Result:
        return replace(result, spec=withholder_of(result).reported_spec(result.spec, self.requested[result.audit]))

    def relabelled(self, results: Mapping[str, Result]) -> dict[str, Result]:
        """Return results that label the pooled rest as small groups, without withheld groupings."""
        return {name: self._relabelled(result) for name, result in results.items()}

    def _relabelled(self, result: Result) -> Result:
        result = self.rule.reviewed(result)
        tables: dict[str, Any] = {
            name: tuple(map(self._label_rest, records))
            for name, records in result.tables.items()
            if {"group", "grouping"} <= set(result.record_types()[name].columns())
        }
        tables |= dict.fromkeys(self.dropped.get(result.audit, ()), ())
        findings = tuple(
            replace(finding, detail=None if finding.detail is None else _renamed(finding.detail))
            if finding.grouping in self.hidden
            else finding
            for finding in result.findings
        )
        return replace(result, findings=findings, notes=(*self.notes, *result.notes), **tables)

    def record(self) -> dict[str, Any]:
        """Return the record of the data, with the pooled rest labelled as small groups."""
        record = data_record(self.table)
        for grouping in self.hidden.keys() & record["groups"].keys():
            sizes = record["groups"][grouping]
            record["groups"][grouping] = {SMALL if group == MISSING else group: n for group, n in sizes.items()}
        return record

    def _label_rest(self, record: Any) -> Any:
        if record.group != MISSING or record.grouping not in self.hidden:
            return record
        words = {name: _renamed(getattr(record, name)) for name in ("status", "reason") if hasattr(record, name)}
        return replace(record, group=SMALL, **words)

    def profiles(self, made: Sequence[ProfileResult]) -> tuple[ProfileResult, ...]:
        """Return profiles, without scoring rates if these count few people or if groups are hidden."""
        return tuple(self._publishable(self._profile(profile)) for profile in made)

    def extras(self, made: Sequence[Extra]) -> tuple[Extra, ...]:
        """Return extras without small or undeclared numbers.

        Small periods and shares are excluded beforehand.
        """
        return tuple(map(self._publishable, made))

    def _publishable(self, made: P) -> P:
        """Return a profile's or extra's tables and notes without small or undeclared numbers."""
        numbers, names = published_numbers(made.tables.values())
        rule = DisclosureRule(self.rule.least, numbers=numbers, names=names)
        filtered = RecordFilter(rule)
        tables = {name: filtered.all_publishable(records, whole=True) for name, records in made.tables.items()}
        notes = tuple(note for note in map(rule.publishable, made.notes) if note is not None)
        return replace(made, tables=tables, notes=notes)

    def _profile(self, profile: ProfileResult) -> ProfileResult:
        rates = profile.tables.get("rates", ())
        scoring = [row for row in rates if row.kind == "scoring"]
        few = any(self.rule.is_small(number) for row in scoring for number in _counts_of(row))
        if not scoring or not (self.hidden or self.withheld_groupings or few):
            return profile
        selection_rates = tuple(row for row in rates if row.kind != "scoring")
        why = say("small_scoring_rates")
        short = str(say("small_scoring_rates_clause"))
        clauses = tuple(without_rates(profile.name, profile.tables["checklist"], bool(selection_rates), short))
        tables = {**profile.tables, "rates": selection_rates, "checklist": clauses}
        return replace(profile, tables=tables, notes=(*profile.notes, why))

    def periods(self, period: str) -> tuple[str, ...] | None:
        """Return the periods to hide, or None if nothing can be published by period."""
        hidden_periods = [self._periods_of(model, period) for model in self.table.models]
        if self.rule.entangled or any(periods is None or periods != hidden_periods[0] for periods in hidden_periods):
            return None
        return hidden_periods[0]

    def _periods_of(self, model: str, period: str) -> tuple[str, ...] | None:
        """Return the periods to hide so that no count by period, group, outcome and decision is small."""
        cells, least = self.table.counts(model, (period,)), self.rule.least
        codes, labels = cells.joint([period])
        states = tuple(
            group * (state.max(initial=0) + 1) + state
            for group in (cells.joint(columns)[0] for columns in self.table.groupings.values())
            for state in published_states(cells, [model])
        )
        people = CountedPeople(cells.n, (codes,), states)
        (out,) = hide_small_groups(people, least)
        undated = labels.index(MISSING) if MISSING in labels else None  # in no period, and so among the hidden ones
        few = undated is not None and any(is_small(people.counts(codes, s)[undated], least).any() for s in states)
        if out is None or few:
            return None
        return tuple(label for label, is_out in zip(labels, out, strict=True) if is_out and label != MISSING)

    def may_cross(self, grouping: str, column: str) -> bool:
        """Return whether all counts by a grouping and another column, by outcome and decision, are large enough."""
        if self.rule.entangled:
            return False
        cells = self.table.cells
        group, parts = cells.joint(self.table.groupings[grouping])[0], cells.codes[column_key(column)]
        crossed = np.unique(group * (parts.max(initial=0) + 1) + parts, return_inverse=True)[1].reshape(-1)
        people = CountedPeople(cells.n, (crossed,), tuple(published_states(cells, self.table.models)))
        return not any(is_small(people.counts(crossed, s), self.rule.least).any() for s in people.states)


def _counts_of(row: Rate) -> tuple[int, int, int]:
    counted = row.n if row.counted is None else row.counted
    return row.n, counted, row.n - counted


_RENAMED = {
    "core.missing_group": "small_groups",
    "core.group_missing_in_gaps": "small_groups",
    "core.group_missing": "small_groups_apart",
}
"""Statuses of a missing group, with the corresponding statuses of the pooled small groups."""


def _renamed(message: Message) -> Message:
    """Return a message that calls a grouping's pooled rest small groups, not missing."""
    if message.id in _RENAMED:
        return shared(_RENAMED[message.id])
    args = {name: _renamed_argument(value) for name, value in message.args.items()}
    return message if args == dict(message.args) else Message(message.id, args)


def _renamed_argument(value: Argument) -> Argument:
    if isinstance(value, Message):
        return _renamed(value)
    if isinstance(value, tuple | list):
        return tuple(map(_renamed_argument, value))
    return SMALL if value == MISSING else value


def run_hidden(
    table: Table, audits: Mapping[str, Spec], least: int, run: Callable[[str, Table, Spec], Draft[Any]]
) -> tuple[Suppressed, dict[str, Draft[Any]]]:
    """Run audits on a table with small groups hidden, and withhold all other small counts.

    If an audit has small counts of its own for a group, such as pairs of ratings, the group is hidden, too, and all
    audits run again. So all published results come from the same table.
    """
    more: dict[str, set[str]] = {}
    for left in reversed(range(_MOST_RUNS)):
        safe = suppress(table, audits, least, more)
        drafts = {name: run(name, safe.table, spec) for name, spec in safe.audits.items()}
        finer = [draft.result for draft in drafts.values() if not withholder_of(draft.result).by_decision]
        groups_by_result = [safe.rule.groups_to_hide(result) for result in finer]
        if not left or not any(groups_by_result):
            break
        step("Hiding more small counts")
        for wanted in groups_by_result:
            for grouping, groups in wanted.items():
                more.setdefault(grouping, set()).update(groups, safe.hidden.get(grouping, ()))
    return safe, safe.withheld(drafts)


def suppress(
    table: Table, audits: Mapping[str, Spec], least: int, more: Mapping[str, Collection[str]] | None = None
) -> Suppressed:
    """Hide the groups that reveal a count from 1 to `least - 1`, directly or by difference.

    `more` are additional groups to hide.
    """
    _require_can_hide(table, least)
    withholders = {name: REGISTRY[name].withhold or Withholder[Any]() for name in audits}
    hidden, withheld = _groups_to_hide(table, least, by_decision=any(each.by_decision for each in withholders.values()))
    hidden |= _merge_hidden(table, more or {})
    _require_groups(table, audits, hidden, withheld, least)
    touched = {*hidden, *withheld}
    prepared = {name: withholders[name].before(table, _without_people(spec), touched) for name, spec in audits.items()}
    safe = hide_groups(table, hidden, withheld, _extra_columns(prepared.values())) if touched else table
    families = _connected_families(table.groupings)
    rule = _withholding_rule(safe, families, touched, least)
    notes = [
        say("small_rule", least=least),
        *_hidden_notes(hidden, withheld),
        *_entangled_notes(families, rule.entangled),
        *chain.from_iterable(each.notes for each in prepared.values()),
    ]
    left = {
        name: withholders[name].after(safe, prepared[name].spec, least, is_entangled=bool(rule.entangled))
        for name in audits
    }
    return Suppressed(
        whole=table,
        table=safe,
        audits={name: each.spec for name, each in left.items()},
        requested=audits,
        hidden=hidden,
        withheld_groupings=withheld,
        rule=rule,
        dropped={name: each.dropped for name, each in left.items()},
        notes=(*notes, *chain.from_iterable(each.notes for each in left.values())),
    )


def _merge_hidden(table: Table, more: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the additional groups to hide, by grouping, if at least two groups remain."""
    return {name: groups for name, extra in more.items() if (groups := _complete_hidden(table, name, extra))}


def _extra_columns(prepared: Iterable[AllowedSettings]) -> dict[str, Any]:
    """Return the columns that audits need in place of hidden groups."""
    return {name: column for each in prepared for name, column in each.columns.items()}


def _entangled_notes(families: Sequence[Sequence[str]], entangled: Collection[int]) -> Iterator[Message]:
    for position in sorted(entangled):
        yield say("small_tables_add_up", groupings=tuple(families[position]))


def _withholding_rule(
    table: Table, families: Sequence[Sequence[str]], touched: Collection[str], least: int
) -> Withholding:
    """Return the withholding rule for the results of a table with hidden groups."""
    entangled = frozenset(
        position for position, names in enumerate(families) if len(names) > 1 and set(touched) & set(names)
    )
    of_family = {name: position for position, names in enumerate(families) for name in names}
    totals = (table.rows, table.rows + table.dropped, *([table.dropped] if table.dropped else []))
    return Withholding(least, of_family, entangled, totals)


def _complete_hidden(table: Table, grouping: str, wanted: Collection[str]) -> tuple[str, ...]:
    """Return the groups to hide, at least two; a single group is hidden with the next smallest.

    The tuple is empty if fewer than two groups would remain.
    """
    codes, labels = table.cells.joint(table.groupings[grouping])
    sizes = np.bincount(codes, weights=table.cells.n, minlength=len(labels))
    visible_sizes = [
        label for label in sorted(labels, key=lambda label: (sizes[labels.index(label)], label)) if label != MISSING
    ]
    chosen = set(wanted)
    if len(chosen - {MISSING}) == 1:
        chosen |= set([label for label in visible_sizes if label not in chosen][:1])
    left = len(visible_sizes) - len(chosen - {MISSING})
    return tuple(label for label in labels if label in chosen or label == MISSING) if left > 1 else ()


def _without_people(spec: Spec) -> Spec:
    """Return settings without the publication of individual people."""
    return spec.model_copy(update={"individuals": False}) if getattr(spec, "individuals", False) else spec


def _require_can_hide(table: Table, least: int) -> None:
    if 0 < table.dropped < least:
        raise ConfigError(
            "{rows} dropped for a missing outcome or prediction would be published, a count below "
            "`suppress_below` {least}; remove them from the data beforehand.",
            rows=count(table.dropped, "row"),
            least=least,
        )


def _require_groups(
    table: Table, audits: Mapping[str, Spec], hidden: Mapping[str, Any], withheld: Sequence[str], least: int
) -> None:
    """Refuse settings that leave nothing to compare, or that name a hidden group or grouping."""
    if table.groupings and len(withheld) == len(table.groupings):
        raise ConfigError(
            "`suppress_below` {least} leaves no grouping with two groups to publish; make groups coarser "
            "with `labels` or `cuts`, or ask for a smaller number.",
            least=least,
        )
    for name, spec in audits.items():
        grouping = getattr(spec, "grouping", None)
        if grouping in withheld:
            raise ConfigError(
                "`suppress_below` {least} leaves fewer than two groups of {grouping!r}, which the {name} audit "
                "compares; make groups coarser with `labels` or `cuts`, or name another `grouping`.",
                least=least,
                grouping=grouping,
                name=name,
            )
        for threshold in getattr(spec, "thresholds", ()):
            if threshold.grouping in withheld:
                raise ConfigError(
                    "the threshold for {metric!r} is about {grouping!r}, of which `suppress_below` {least} "
                    "publishes nothing; make groups coarser with `labels` or `cuts`, or leave out the threshold or "
                    "a crossed grouping.",
                    metric=threshold.metric,
                    grouping=threshold.grouping,
                    least=least,
                )
        wanted = getattr(spec, "reference", None)
        named = wanted.items() if isinstance(wanted, Mapping) else [(key, wanted) for key in hidden]
        for key, group in named:
            if group in hidden.get(key, ()):
                raise ConfigError(
                    "`reference` {group!r} of the {name} audit is among the groups that `suppress_below` {least} "
                    "hides; name a larger one, or leave it out.",
                    group=group,
                    name=name,
                    least=least,
                )


def _groups_to_hide(
    table: Table, least: int, *, by_decision: bool
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the groups to hide by grouping, and the groupings to withhold.

    Groupings without common columns are checked separately, because an exchange of hidden races between people changes
    nothing in a table by sex.
    """
    hidden: dict[str, tuple[str, ...]] = {}
    withheld: list[str] = []
    cells = table.cells
    states = tuple(published_states(cells, table.models)) if by_decision else (np.zeros(len(cells.n), dtype=np.int64),)
    for names in _connected_families(table.groupings):
        coded = [cells.joint(table.groupings[name]) for name in names]
        people = CountedPeople(cells.n, tuple(codes for codes, _ in coded), states)
        for name, (_, labels), is_hidden in zip(names, coded, hide_small_groups(people, least), strict=True):
            shown = () if is_hidden is None else _shown(labels, is_hidden)
            if len(shown) < 2:
                withheld.append(name)
            elif is_hidden is not None and is_hidden.any():
                hidden[name] = tuple(label for label in labels if label not in shown)
    return hidden, tuple(withheld)


def _shown(labels: Sequence[str], is_hidden: Iterable[Any]) -> tuple[str, ...]:
    return tuple(label for label, out in zip(labels, is_hidden, strict=True) if not out and label != MISSING)


def _connected_families(groupings: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return families of groupings that share columns, single columns first."""
    families: list[tuple[set[str], list[str]]] = []
    for name, columns in sorted(groupings.items(), key=lambda item: len(item[1])):
        touching = [family for family in families if family[0] & set(columns)]
        families = [family for family in families if family not in touching]
        merged = [other for _, names in touching for other in names]
        families.append((set(columns).union(*(family[0] for family in touching)), [*merged, name]))
    return [sorted(names, key=lambda name: len(groupings[name])) for _, names in families]


def _hidden_notes(hidden: Mapping[str, Sequence[str]], withheld: Sequence[str]) -> Iterator[Message]:
    for grouping, groups in hidden.items():
        yield say("small_groups_together", grouping=grouping, small=SMALL, groups=tuple(groups))
    for grouping in withheld:
        yield say("small_grouping_withheld", grouping=grouping)
