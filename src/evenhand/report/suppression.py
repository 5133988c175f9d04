"""Small counts hidden in everything that is published: `suppress_below` of `[report]`.

Groups are hidden before anything is counted, so that no number of any format can tell of them: the people of hidden
groups are one rest, shown as "(small groups)" and not compared. Which groups, `stats/disclosure.py` finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.parity.result import ParityResult
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.run import data_record
from evenhand.core.spec import Spec
from evenhand.errors import ConfigError, count
from evenhand.stats.disclosure import People, hide_small_groups, is_small
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.labels import hide_groups
from evenhand.table.roles import MISSING, SMALL
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.report.config import ReportSettings
    from evenhand.table.table import Table

_BINS = (5, 4, 3, 2)


@dataclass(frozen=True)
class Suppressed:
    """A table and settings from which nothing small can be published.

    Parameters
    ----------
    table : the data, small groups hidden.
    spec : the settings of the parity audit, without what would tell small counts.
    hidden : the groups that are hidden, by grouping.
    calibration : whether the score bins of all groups hold enough people.
    notes : what was hidden, in sentences.
    """

    table: Table
    spec: ParitySpec
    hidden: Mapping[str, tuple[str, ...]]
    calibration: bool
    notes: tuple[str, ...]

    def relabelled(self, result: ParityResult) -> ParityResult:
        """Return a result in which the rest is called what it is, and what is withheld is not there."""
        calibration = result.calibration if self.calibration else ()
        kept = [note for note in result.notes if not _tells_small(note, self.table.source.notes)]
        changed = replace(result, calibration=calibration, notes=(*self.notes, *kept))
        tables: dict[str, Any] = {
            name: tuple(map(self._called, changed.tables[name])) for name in ("values", "calibration", "left_out")
        }
        findings = tuple(
            replace(finding, detail=finding.detail.replace(f"{MISSING} (n", f"{SMALL} (n"))
            if finding.grouping in self.hidden
            else finding
            for finding in result.findings
        )
        return replace(changed, findings=findings, **tables)

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


def _tells_small(note: str, of_data: Iterable[str]) -> bool:
    """Tell whether a remark on the data holds a number, which may be a small count."""
    return note in of_data and re.search(r"\d", note) is not None


def suppress(table: Table, audits: Mapping[str, Spec], report: ReportSettings, least: int) -> Suppressed:
    """Hide the groups of a table that would tell a count from 1 to `least - 1`, by itself or by difference."""
    spec = _require_can_hide(table, audits, report, least)
    hidden, withheld = _hidden(table, least)
    if len(withheld) == len(table.groupings):
        raise ConfigError(
            f"`suppress_below` {least} leaves no grouping with two groups to publish; make groups coarser with "
            "`labels` or `cuts`, or ask for a smaller number."
        )
    safe = hide_groups(table, hidden, withheld) if hidden or withheld else table
    entangled = bool(hidden or withheld) and len(table.roles.group_columns) < sum(map(len, table.groupings.values()))
    changed: dict[str, Any] = {}
    notes = [_rule(least), *_told(hidden, withheld)]
    if spec.within and (entangled or _small_strata(safe, spec.within, least)):
        changed["within"] = ()
        notes.append(f"Gaps within strata of {', '.join(spec.within)} are withheld: some strata are too small.")
    bins = None if entangled else _enough_bins(safe, spec, least)
    if bins is not None and bins != spec.bins:
        changed["bins"] = bins
        notes.append(f"Calibration is shown in {bins} score bins in place of {spec.bins}.")
    scored = table.roles.outcome is not None and any(map(table.has_scores, table.models))
    if bins is None and scored:
        notes.append("Calibration is withheld: some score bins hold too few people.")
    return Suppressed(safe, spec.model_copy(update=changed), hidden, bins is not None, tuple(notes))


def _require_can_hide(table: Table, audits: Mapping[str, Spec], report: ReportSettings, least: int) -> ParitySpec:
    others = [name for name in audits if name != "parity"]
    if others:
        raise ConfigError(
            f"`suppress_below` hides small counts of the parity audit; {' and '.join(others)} would publish counts "
            "that it cannot hide: audit them in a run of their own, which you do not publish."
        )
    if 0 < table.dropped < least:
        raise ConfigError(
            f"{count(table.dropped, 'row')} dropped for a missing outcome or prediction would be published, a count "
            f"below `suppress_below` {least}; remove them from the data beforehand."
        )
    scored = [model for model in table.models if table.has_scores(model)]
    shown = [f"`{name}`" for name in report.beside]
    if "nyc-ll144-2023" in report.profile and scored:
        shown.append(f"the profile 'nyc-ll144-2023', which counts who scores above the median ({scored[0]!r})")
    if shown:
        raise ConfigError(
            f"`suppress_below` cannot hide the small counts of {' and of '.join(shown)}; leave that out, or leave out "
            "`suppress_below`."
        )
    spec = audits["parity"]
    assert isinstance(spec, ParitySpec)  # noqa: S101
    return spec


def _hidden(table: Table, least: int) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the groups to hide by grouping, and the groupings to withhold.

    Groupings that share no column are looked at apart: people who change places between hidden races change nothing
    in a table by sex.
    """
    hidden: dict[str, tuple[str, ...]] = {}
    withheld: list[str] = []
    for names in _families(table.groupings):
        coded = [table.cells.joint(table.groupings[name]) for name in names]
        people = People(table.cells.n, tuple(codes for codes, _ in coded), tuple(_states(table.cells, table.models)))
        for name, (_, labels), gone in zip(names, coded, hide_small_groups(people, least), strict=True):
            shown = [] if gone is None else [x for x, out in zip(labels, gone, strict=True) if not out and x != MISSING]
            if len(shown) < 2:
                withheld.append(name)
            elif len(shown) < len(labels) - (MISSING in labels) or gone is None or gone.any():
                hidden[name] = tuple(label for label in labels if label not in shown)
    return hidden, tuple(withheld)


def _families(groupings: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the groupings that hang together by their columns, single columns first."""
    families: list[tuple[set[str], list[str]]] = []
    for name, columns in sorted(groupings.items(), key=lambda item: len(item[1])):
        touching = [family for family in families if family[0] & set(columns)]
        families = [family for family in families if family not in touching]
        merged = [other for _, names in touching for other in names]
        families.append((set(columns).union(*(family[0] for family in touching)), [*merged, name]))
    return [sorted(names, key=lambda name: len(groupings[name])) for _, names in families]


def _states(cells: Cells, models: Sequence[str], more: IntArray | None = None) -> Iterator[IntArray]:
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


def _has_small(table: Table, model: str, cells: Cells, part: IntArray, least: int) -> bool:
    """Tell whether a count by group, outcome and decision is small in some part: a stratum, or a score bin."""
    for columns in table.groupings.values():
        group = cells.joint(columns)[0]
        people = People(cells.n, (group,), tuple(_states(cells, [model], part)))
        if any(is_small(people.counts(group, state), least).any() for state in people.states):
            return True
    return False


def _small_strata(table: Table, within: Sequence[str], least: int) -> bool:
    reduced = {model: table.counts(model, within) for model in table.models}
    return any(_has_small(table, model, cells, cells.joint(within)[0], least) for model, cells in reduced.items())


def _enough_bins(table: Table, spec: ParitySpec, least: int) -> int | None:
    """Return the largest number of score bins in which no count is small; None where there is none."""
    scored = [model for model in table.models if table.has_scores(model)]
    if not scored or table.roles.outcome is None:
        return spec.bins
    for bins in (spec.bins, *(fewer for fewer in _BINS if fewer < spec.bins)):
        reduced = {model: table.score_cells(model, (), bins) for model in scored}
        if not any(_has_small(table, model, cells, cells.codes["bin"], least) for model, cells in reduced.items()):
            return bins
    return None


def _rule(least: int) -> str:
    return (
        f"Small counts are hidden (`suppress_below` {least}): where fewer than {least} people share a group, an "
        "outcome and a decision, no number here tells how many, not even by adding and subtracting others."
    )


def _told(hidden: Mapping[str, Sequence[str]], withheld: Sequence[str]) -> Iterator[str]:
    for grouping, groups in hidden.items():
        yield f"By {grouping}, these are shown together as “{SMALL}” and not compared: {', '.join(groups)}."
    for grouping in withheld:
        yield f"Nothing is published by {grouping}: too many of its groups are small."
