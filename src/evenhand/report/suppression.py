"""Small counts hidden in everything that is published: `suppress_below` of `[report]`.

Groups are hidden before anything is counted, so that no number of any format can tell of them: the people of hidden
groups are one rest, shown as "(small groups)" and not compared. Which groups, `stats/disclosure.py` finds. What audits
count in finer parts than groups, `report/withholding.py` withholds where it is small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits import REGISTRY
from evenhand.core.display import listed
from evenhand.core.result import Draft, Result
from evenhand.core.run import data_record, step
from evenhand.core.spec import Spec
from evenhand.core.withhold import Withholder, published_states
from evenhand.errors import ConfigError, count
from evenhand.report.profiles.checklists import without_rates
from evenhand.report.withholding import Withholding, withholder_of
from evenhand.stats.disclosure import People, hide_small_groups, is_small
from evenhand.table.keys import column_key
from evenhand.table.labels import hide_groups
from evenhand.table.roles import MISSING, SMALL

if TYPE_CHECKING:
    from evenhand.report.profiles.result import ProfileResult, Rate
    from evenhand.table.table import Table

_MOST_RUNS = 4


@dataclass(frozen=True)
class Suppressed:
    """A table and settings from which nothing small can be published.

    Parameters
    ----------
    whole : the data as they are.
    table : the data, small groups hidden.
    audits : the settings of the audits, without what would tell small counts.
    asked : the settings as they were asked for, which stand in the results.
    hidden : the groups that are hidden, by grouping.
    gone : the groupings that are withheld.
    rule : what withholds small parts of results.
    dropped : by audit the tables that are not published at all.
    notes : what was hidden, in sentences.
    """

    whole: Table
    table: Table
    audits: Mapping[str, Spec]
    asked: Mapping[str, Spec]
    hidden: Mapping[str, tuple[str, ...]]
    gone: tuple[str, ...]
    rule: Withholding
    dropped: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]

    def withheld(self, drafts: Mapping[str, Draft[Any]]) -> dict[str, Draft[Any]]:
        """Return the drafts of audits without what is small; those by decision have nothing small left."""
        return {
            name: draft
            if withholder_of(draft.result).by_decision
            else self.rule.applied(replace(draft, result=self._as_asked(draft.result)))
            for name, draft in drafts.items()
        }

    def _as_asked(self, result: Result) -> Result:
        return replace(result, spec=withholder_of(result).as_asked(result.spec, self.asked[result.audit]))

    def relabelled(self, results: Mapping[str, Result]) -> dict[str, Result]:
        """Return results in which the rest is called what it is, and what is withheld is not there."""
        return {name: self._relabelled(result) for name, result in results.items()}

    def _relabelled(self, result: Result) -> Result:
        kept = [note for note in result.notes if not _tells_small(note, self.table.source.notes)]
        tables: dict[str, Any] = {
            name: tuple(map(self._called, records))
            for name, records in result.tables.items()
            if {"group", "grouping"} <= set(result.record_types()[name].columns())
        }
        tables |= dict.fromkeys(self.dropped.get(result.audit, ()), ())
        findings = tuple(
            replace(finding, detail=finding.detail.replace(f"{MISSING} (n", f"{SMALL} (n"))
            if finding.grouping in self.hidden
            else finding
            for finding in result.findings
        )
        return replace(result, findings=findings, notes=(*self.notes, *kept), **tables)

    def record(self) -> dict[str, Any]:
        """Return the record of the data, the rest called what it is."""
        record = data_record(self.table)
        for grouping in self.hidden.keys() & record["groups"].keys():
            sizes = record["groups"][grouping]
            record["groups"][grouping] = {SMALL if group == MISSING else group: n for group, n in sizes.items()}
        return record

    def _called(self, record: Any) -> Any:
        if record.group != MISSING or record.grouping not in self.hidden:
            return record
        words = {
            name: getattr(record, name).replace("missing group", "small groups together")
            for name in ("status", "reason")
            if hasattr(record, name)
        }
        return replace(record, group=SMALL, **words)

    def profiles(self, made: Sequence[ProfileResult]) -> tuple[ProfileResult, ...]:
        """Return profiles without scoring rates, where those count few people or some groups are hidden."""
        return tuple(map(self._profile, made))

    def _profile(self, profile: ProfileResult) -> ProfileResult:
        rates = profile.tables.get("rates", ())
        scoring = [row for row in rates if row.kind == "scoring"]
        few = any(self.rule.is_small(number) for row in scoring for number in _counts_of(row))
        if not scoring or not (self.hidden or self.gone or few):
            return profile
        kept = tuple(row for row in rates if row.kind != "scoring")
        why = "Scoring rates are withheld: they would reveal how many people of small groups score above the median."
        short = "scoring rates are withheld, because small counts are hidden."
        clauses = tuple(without_rates(profile.name, profile.tables["checklist"], bool(kept), short))
        tables = {**profile.tables, "rates": kept, "checklist": clauses}
        return replace(profile, tables=tables, notes=(*profile.notes, why))

    def periods(self, period: str) -> tuple[str, ...] | None:
        """Return the periods whose people must be in none; None where nothing can be told by period."""
        gone = [self._periods_of(model, period) for model in self.table.models]
        if self.rule.entangled or any(periods is None or periods != gone[0] for periods in gone):
            return None
        return gone[0]

    def _periods_of(self, model: str, period: str) -> tuple[str, ...] | None:
        """Return the periods to hide so that no count by period, group, outcome and decision of a model is small."""
        cells, least = self.table.counts(model, (period,)), self.rule.least
        codes, labels = cells.joint([period])
        states = tuple(
            group * (state.max(initial=0) + 1) + state
            for group in (cells.joint(columns)[0] for columns in self.table.groupings.values())
            for state in published_states(cells, [model])
        )
        people = People(cells.n, (codes,), states)
        (out,) = hide_small_groups(people, least)
        undated = labels.index(MISSING) if MISSING in labels else None  # in no period, and so among the hidden ones
        few = undated is not None and any(is_small(people.counts(codes, s)[undated], least).any() for s in states)
        if out is None or few:
            return None
        return tuple(label for label, is_out in zip(labels, out, strict=True) if is_out and label != MISSING)

    def may_cross(self, grouping: str, column: str) -> bool:
        """Tell whether counts by a grouping and another column, by outcome and decision, are not small."""
        if self.rule.entangled:
            return False
        cells = self.table.cells
        group, parts = cells.joint(self.table.groupings[grouping])[0], cells.codes[column_key(column)]
        crossed = np.unique(group * (parts.max(initial=0) + 1) + parts, return_inverse=True)[1].reshape(-1)
        people = People(cells.n, (crossed,), tuple(published_states(cells, self.table.models)))
        return not any(is_small(people.counts(crossed, s), self.rule.least).any() for s in people.states)


def _counts_of(row: Rate) -> tuple[int, int, int]:
    counted = row.n if row.counted is None else row.counted
    return row.n, counted, row.n - counted


def _tells_small(note: str, of_data: Iterable[str]) -> bool:
    """Tell whether a remark on the data holds a number, which may be a small count."""
    return note in of_data and re.search(r"\d", note) is not None


def run_hidden(
    table: Table, audits: Mapping[str, Spec], least: int, run: Callable[[str, Table, Spec], Draft[Any]]
) -> tuple[Suppressed, dict[str, Draft[Any]]]:
    """Run audits on a table whose small groups are hidden, and withhold what is small of what they count.

    Where an audit counts few people of a group in its own way, such as a pair of ratings, the group is hidden too and
    all audits are run again: everything that is published comes from one table.
    """
    more: dict[str, set[str]] = {}
    for left in reversed(range(_MOST_RUNS)):
        safe = suppress(table, audits, least, more)
        drafts = {name: run(name, safe.table, spec) for name, spec in safe.audits.items()}
        finer = [draft.result for draft in drafts.values() if not withholder_of(draft.result).by_decision]
        found = [safe.rule.groups_to_hide(result) for result in finer]
        if not left or not any(found):
            break
        step("Hiding more small counts")
        for wanted in found:
            for grouping, groups in wanted.items():
                more.setdefault(grouping, set()).update(groups, safe.hidden.get(grouping, ()))
    return safe, safe.withheld(drafts)


def suppress(
    table: Table, audits: Mapping[str, Spec], least: int, more: Mapping[str, Collection[str]] | None = None
) -> Suppressed:
    """Hide the groups of a table that would tell a count from 1 to `least - 1`, by itself or by difference.

    `more` are groups to hide beside them.
    """
    _require_can_hide(table, least)
    own = {name: REGISTRY[name].withhold or Withholder[Any]() for name in audits}
    hidden, withheld = _hidden(table, least, by_decision=any(each.by_decision for each in own.values()))
    hidden |= {name: groups for name, wanted in (more or {}).items() if (groups := _rest(table, name, wanted))}
    _require_groups(table, audits, hidden, withheld, least)
    touched = {*hidden, *withheld}
    kept = {name: own[name].before(table, _without_people(spec), touched) for name, spec in audits.items()}
    columns = {name: column for each in kept.values() for name, column in each.columns.items()}
    safe = hide_groups(table, hidden, withheld, columns) if touched else table
    families = _families(table.groupings)
    entangled = frozenset(at for at, names in enumerate(families) if len(names) > 1 and touched & set(names))
    rule = Withholding(least, {name: at for at, names in enumerate(families) for name in names}, entangled)
    told = [note for each in kept.values() for note in each.notes]
    notes = [_rule(least), *_told(hidden, withheld), *_whole(families, entangled), *told]
    left = {name: own[name].after(safe, kept[name].spec, least, is_entangled=bool(entangled)) for name in audits}
    return Suppressed(
        whole=table,
        table=safe,
        audits={name: each.spec for name, each in left.items()},
        asked=audits,
        hidden=hidden,
        gone=withheld,
        rule=rule,
        dropped={name: each.dropped for name, each in left.items()},
        notes=(*notes, *(note for each in left.values() for note in each.notes)),
    )


def _rest(table: Table, grouping: str, wanted: Collection[str]) -> tuple[str, ...]:
    """Return groups to hide, with the smallest other one where they would be one alone; none where two are not left."""
    codes, labels = table.cells.joint(table.groupings[grouping])
    sizes = np.bincount(codes, weights=table.cells.n, minlength=len(labels))
    known = [
        label for label in sorted(labels, key=lambda label: (sizes[labels.index(label)], label)) if label != MISSING
    ]
    gone = set(wanted)
    if len(gone - {MISSING}) == 1:
        gone |= set([label for label in known if label not in gone][:1])
    left = len(known) - len(gone - {MISSING})
    return tuple(label for label in labels if label in gone or label == MISSING) if left > 1 else ()


def _without_people(spec: Spec) -> Spec:
    """Return settings that publish nothing about single people."""
    return spec.model_copy(update={"individuals": False}) if getattr(spec, "individuals", False) else spec


def _require_can_hide(table: Table, least: int) -> None:
    if 0 < table.dropped < least:
        raise ConfigError(
            f"{count(table.dropped, 'row')} dropped for a missing outcome or prediction would be published, a count "
            f"below `suppress_below` {least}; remove them from the data beforehand."
        )


def _require_groups(
    table: Table, audits: Mapping[str, Spec], hidden: Mapping[str, Any], withheld: Sequence[str], least: int
) -> None:
    """Refuse where nothing is left to compare, and a group or grouping that an audit names and that is hidden."""
    if table.groupings and len(withheld) == len(table.groupings):
        raise ConfigError(
            f"`suppress_below` {least} leaves no grouping with two groups to publish; make groups coarser with "
            "`labels` or `cuts`, or ask for a smaller number."
        )
    for name, spec in audits.items():
        grouping = getattr(spec, "grouping", None)
        if grouping in withheld:
            raise ConfigError(
                f"`suppress_below` {least} leaves fewer than two groups of {grouping!r}, which the {name} audit "
                "compares; make groups coarser with `labels` or `cuts`, or name another `grouping`."
            )
        for threshold in getattr(spec, "thresholds", ()):
            if threshold.grouping in withheld:
                raise ConfigError(
                    f"the threshold for {threshold.metric!r} is about {threshold.grouping!r}, of which `suppress_below`"
                    f" {least} publishes nothing; make groups coarser with `labels` or `cuts`, or leave out the "
                    "threshold or a crossed grouping."
                )
        wanted = getattr(spec, "reference", None)
        named = wanted.items() if isinstance(wanted, Mapping) else [(key, wanted) for key in hidden]
        for key, group in named:
            if group in hidden.get(key, ()):
                raise ConfigError(
                    f"`reference` {group!r} of the {name} audit is among the groups that `suppress_below` {least} "
                    "hides; name a larger one, or leave it out."
                )


def _hidden(table: Table, least: int, *, by_decision: bool) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the groups to hide by grouping, and the groupings to withhold.

    Groupings that share no column are looked at apart: people who change places between hidden races change nothing
    in a table by sex.
    """
    hidden: dict[str, tuple[str, ...]] = {}
    withheld: list[str] = []
    cells = table.cells
    states = tuple(published_states(cells, table.models)) if by_decision else (np.zeros(len(cells.n), dtype=np.int64),)
    for names in _families(table.groupings):
        coded = [cells.joint(table.groupings[name]) for name in names]
        people = People(cells.n, tuple(codes for codes, _ in coded), states)
        for name, (_, labels), gone in zip(names, coded, hide_small_groups(people, least), strict=True):
            shown = () if gone is None else _shown(labels, gone)
            if len(shown) < 2:
                withheld.append(name)
            elif gone is not None and gone.any():
                hidden[name] = tuple(label for label in labels if label not in shown)
    return hidden, tuple(withheld)


def _shown(labels: Sequence[str], gone: Iterable[Any]) -> tuple[str, ...]:
    return tuple(label for label, out in zip(labels, gone, strict=True) if not out and label != MISSING)


def _families(groupings: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the groupings that hang together by their columns, single columns first."""
    families: list[tuple[set[str], list[str]]] = []
    for name, columns in sorted(groupings.items(), key=lambda item: len(item[1])):
        touching = [family for family in families if family[0] & set(columns)]
        families = [family for family in families if family not in touching]
        merged = [other for _, names in touching for other in names]
        families.append((set(columns).union(*(family[0] for family in touching)), [*merged, name]))
    return [sorted(names, key=lambda name: len(groupings[name])) for _, names in families]


def _rule(least: int) -> str:
    return (
        f"Small counts are hidden (`suppress_below` {least}): where fewer than {least} people share a group, or a "
        "group, an outcome and a decision, no number here reveals how many, not even by adding and subtracting others; "
        "nothing is reported of single people."
    )


def _told(hidden: Mapping[str, Sequence[str]], withheld: Sequence[str]) -> Iterator[str]:
    for grouping, groups in hidden.items():
        yield f"By {grouping}, these are shown together as “{SMALL}” and not compared: {', '.join(groups)}."
    for grouping in withheld:
        yield f"Nothing is published by {grouping}: with what else is published, its small counts could be worked out."


def _whole(families: Sequence[Sequence[str]], entangled: Collection[int]) -> Iterator[str]:
    for at in sorted(entangled):
        yield (
            f"Tables by {listed(families[at])} add up to each other, and some of their groups are hidden: so "
            "everything finer than a group, such as bins, strata and pairs of ratings, is withheld for all of them; "
            "without the crossed grouping it could be shown."
        )
