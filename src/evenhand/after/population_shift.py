"""Verdicts in other populations: the same people, reweighted to other shares of groups.

A rate within a group does not depend on the group's size, so a gap by race is the same for all shares of the races. It
can depend on the composition of the group. So people are reweighted by every other group column (such as sex, for a
gap by race): one group's share is raised or lowered by 10 points, or the shares are those of a named population. Then
the gap is judged again. Gaps to all people, and individual fairness, also depend on the shares of the compared groups.
Each audit defines how its numbers change (`reweight` of its descriptor); the formulas are in `stats/weighted.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from evenhand.after.messages import say
from evenhand.after.records import Extra, Shift
from evenhand.audits import REGISTRY
from evenhand.charts import MOST_ROWS, Forest, forest, forest_row
from evenhand.core.capabilities import Mix, Reweighter
from evenhand.core.display import Figure, Number, Range, Section, make_table
from evenhand.core.findings import SHORT_VERDICTS, Finding, join_sentences
from evenhand.core.methods import method
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL, Kind
from evenhand.core.result import Result
from evenhand.core.spec import Spec
from evenhand.core.thresholds import UNDECIDED, Verdict
from evenhand.errors import ConfigError, count, require_name
from evenhand.messages import Message
from evenhand.messages.formats import Format, finite
from evenhand.messages.shared import say as shared
from evenhand.stats.types import FloatArray
from evenhand.table.frames import TableData
from evenhand.table.keys import column_key
from evenhand.table.roles import UNNAMED
from evenhand.table.table import Table

if TYPE_CHECKING:
    from evenhand.after.suppression import Suppressed
    from evenhand.run.config import AuditConfig, ReportSettings

_LEAST_SHARE = 0.01
_MOST_PANELS = 6
_COORDINATES = ("audit", "model", "grouping", "stratum", "metric", "kind", "group", "reference", "threshold")


@dataclass(frozen=True)
class PopulationShares:
    """The shares of groups in a population, and its size (None for exact shares)."""

    of: Mapping[str, float]
    people: int | None = None


def judge_other_shares(
    config: AuditConfig,
    results: Mapping[str, Result],
    table: Table,
    population: Mapping[str, PopulationShares],
    safe: Suppressed | None = None,
) -> tuple[dict[str, Result], Extra]:
    """Return the results with a line on other populations beside every verdict, and the verdicts for all mixes."""
    points = config.report.shift
    mixes = list(_all_mixes(table, points, population))
    several = sum(finding.limit is not None for result in results.values() for finding in result.findings) > 1
    rows: list[Shift] = []
    judged_results: dict[str, Result] = {}
    for name, result in results.items():
        judge = _judge(config.audits if safe is None else safe.audits, table, result)
        findings = []
        for finding in result.findings:
            if finding.limit is None:
                findings.append(finding)
                continue
            tried, line = _judge_shifts(judge, finding, mixes, safe, several)
            rows += tried
            findings.append(replace(finding, detail=join_sentences([*filter(None, [finding.detail]), line])))
        judged_results[name] = replace(result, findings=tuple(findings))
    sampled = {column: shares.people for column, shares in population.items() if shares.people is not None}
    share_settings = {column: dict(shares.of) for column, shares in population.items()}
    settings = {"shift": points, "population": share_settings, "population_people": sampled}
    sizes = tuple(say("people_by", n=n, column=column) for column, n in sampled.items())
    notes = (say("sampled_population", sizes=sizes),)
    return judged_results, Extra("population_shift", settings, notes if sampled else (), {"shifts": tuple(rows)})


def _judge(audits: Mapping[str, Spec], table: Table, result: Result) -> Reweighter | None:
    make = result.descriptor.reweight if table.roles.cluster is None else None
    # the settings of the result may contain column names without data
    return None if make is None else make(table, result, audits[result.audit])


def _judge_shifts(
    judge: Reweighter | None,
    finding: Finding,
    mixes: Sequence[Mix],
    safe: Suppressed | None,
    several: bool,
) -> tuple[list[Shift], Message]:
    """Return a verdict's results for all relevant mixes, and the line beside it.

    `several` is whether the run has several verdicts.
    """
    if judge is None:
        return [], say("cannot_tell", why=_why_no_reweighter(finding.audit))
    if (why := judge.why_not(finding)) is not None:
        return [], say("cannot_tell", why=why)
    relevant = [mix for mix in mixes if judge.depends_on(finding, mix.column)]
    shown = [mix for mix in relevant if safe is None or _is_coarse(judge, finding, mix, safe)]
    if relevant and not shown:
        return [], say("cannot_tell", why=say("crossed_counts_hidden", grouping=finding.grouping))
    tried = [] if finding.threshold is None else list(_shift_records(judge, finding, finding.threshold, shown))
    return tried, _verdict_line(finding, tried, shown, several) if shown else say("cannot_matter")


def _why_no_reweighter(audit: str) -> Message:
    catalogue = REGISTRY[audit].messages
    own = catalogue is not None and "not_reweighted" in catalogue
    return catalogue("not_reweighted") if catalogue is not None and own else shared("not_reweighted")


def _is_coarse(judge: Reweighter, finding: Finding, mix: Mix, safe: Suppressed) -> bool:
    """Return whether a value for other shares cannot reveal a small count."""
    if finding.grouping is None:
        return True
    return finding.stratum is None and judge.by_counts and safe.may_cross(finding.grouping, mix.column)


def _verdict_line(finding: Finding, tried: list[Shift], mixes: list[Mix], several: bool) -> Message:
    """Return the line beside a verdict; `several` is whether the run has several verdicts."""
    is_open = finding.verdict in UNDECIDED
    changed = [row for row in tried if not row.holds and (is_open or row.verdict != finding.verdict)]
    if not changed:
        return _same_line(mixes, len(tried), is_open=is_open)
    decided = [row for row in changed if not (is_open and row.verdict in UNDECIDED)]
    return _changed_line((decided or changed)[0], is_decided=bool(decided), several=several)


def _same_line(mixes: list[Mix], tried: int, *, is_open: bool) -> Message:
    """Return the line on a verdict that is the same, or undecided, under all shares."""
    columns = tuple(dict.fromkeys(mix.column for mix in mixes))
    return say("open_with_other_shares" if is_open else "holds_with_other_shares", columns=columns, tried=tried)


def _changed_line(row: Shift, *, is_decided: bool, several: bool) -> Message:
    """Return the line on a mix under which a verdict is different or undecided."""
    breaks = several and row.verdict == "does_not_meet"
    name = ("breaks" if breaks else "changes") if is_decided else "covers"
    return say(f"{name}_with_other_shares", what=row.shares, verdict=shared(f"it_{row.verdict}"), value=_amount(row))


def _verdict(row: Shift) -> Verdict:
    return next(verdict for verdict in SHORT_VERDICTS if verdict == row.verdict)


def _metric(row: Shift) -> Metric:
    return REGISTRY[row.audit].metrics[row.metric]


def _style(row: Shift) -> Format:
    return _metric(row).style(row.kind)


def _amount(row: Shift) -> Message:
    style = _style(row)
    return shared("amount_points" if style == "points" else "amount", value=row.value, unit=style)


# Other shares --------------------------------------------------------------------------------------------------------


def _all_mixes(table: Table, points: float | None, population: Mapping[str, PopulationShares]) -> Iterator[Mix]:
    """Yield every other mix of groups: one group with a larger or smaller share, or the shares of the population."""
    for column in table.roles.group_columns:
        labels = table.cells.labels[column_key(column)]
        sizes = np.bincount(table.cells.codes[column_key(column)], weights=table.cells.n, minlength=len(labels))
        shares = sizes / sizes.sum()
        if column in population:
            yield _population_mix(column, labels, shares, population[column])
        if points is not None:
            yield from _shifted_mixes(column, labels, shares, points)


def _shifted_mixes(column: str, labels: tuple[str, ...], shares: FloatArray, points: float) -> Iterator[Mix]:
    """Yield the mixes in which one group has a larger or smaller share.

    All other groups keep their proportions.
    """
    for position, label in enumerate(
        labels[:1] if len(labels) == 2 else labels
    ):  # of two groups, a larger share of one is a smaller share of the other
        for change in (points, -points):
            share = shares[position] + change
            if label not in UNNAMED and _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
                weight = np.full(len(labels), (1 - share) / (1 - shares[position]))
                weight[position] = share / shares[position]
                words = {"share": _percent(share), "group": label, "here": _percent(shares[position])}
                yield Mix(column, say("other_share", **words), weight)


def _percent(share: float) -> str:
    """Return a share in percent, with one decimal if needed: 57.5% and 10%."""
    return f"{round(100 * share, 1):g}%"


def _population_mix(column: str, labels: tuple[str, ...], shares: FloatArray, wanted: PopulationShares) -> Mix:
    """Return the mix with the shares of a population.

    People with an unknown group keep their share.
    """
    for label in wanted.of:
        require_name(label, labels, "`population` names {name!r} of {column!r}; {hint}", column=column)
    lacking = [label for label in labels if label not in wanted.of and label not in UNNAMED]
    if lacking and wanted.people is None:
        raise ConfigError(
            "`population` of {column!r} has no share of {lacking!r}; give one for every group.",
            column=column,
            lacking=lacking[0],
        )
    named = np.array([label not in UNNAMED for label in labels])
    target = np.array([wanted.of.get(label, 0.0) for label in labels])
    factor = shares[named].sum() / np.where(shares > 0, shares, 1.0)
    weight = np.where(named, target * factor, 1.0)
    spread = None
    if wanted.people is not None:
        spread = (np.diag(target) - np.outer(target, target)) / wanted.people * np.outer(factor, factor)
    return Mix(column, say("population_shares", column=column), weight, spread)


def read_population(table: Table, report: ReportSettings) -> dict[str, PopulationShares]:
    """Return the shares of the population by group column, from the settings or counted in a second table."""
    population = report.population
    if report.population_shares is not None:
        for column in report.population_shares:
            require_name(column, table.roles.group_columns, "`population` names {name!r}; {hint}")
        return {column: PopulationShares(shares) for column, shares in report.population_shares.items()}
    data = str(report.folder / population) if isinstance(population, str) else population
    other = _open_population_table(table, data)
    table.record_table("population", other)
    populations = {}
    for column in other.roles.group_columns:
        labels = other.cells.labels[column_key(column)]
        sizes = np.bincount(other.cells.codes[column_key(column)], weights=other.cells.n, minlength=len(labels))
        named_sizes = {label: int(n) for label, n in zip(labels, sizes, strict=True) if label not in UNNAMED}
        people = sum(named_sizes.values())
        if not people:
            raise ConfigError("the table of `population` has no group in column {column!r}; fill it in.", column=column)
        populations[column] = PopulationShares({label: n / people for label, n in named_sizes.items()}, people)
    return populations


def published_shares(population: Mapping[str, PopulationShares], safe: Suppressed) -> dict[str, PopulationShares]:
    """Return each published group's share among the published groups; hidden groups are excluded."""
    published = {}
    for column, shares in population.items():
        hidden = safe.hidden.get(column, ())
        visible = {group: share for group, share in shares.of.items() if group not in hidden}
        total = sum(visible.values())
        sizes = [round(share * (shares.people or 0)) for share in visible.values()]
        people = None if shares.people is None else sum(sizes)
        few = any(map(safe.rule.is_small, sizes))
        if column in safe.table.roles.group_columns and total > 0 and not few:
            published[column] = PopulationShares({group: share / total for group, share in visible.items()}, people)
    return published


def _open_population_table(table: Table, data: TableData) -> Table:
    """Open a population's table with the available group columns, labelled and cut as in the data."""
    from evenhand.table.sources import open_source

    names = open_source(data, columns=()).names
    roles = table.roles
    families = {family: members for family, members in roles.one_hot.items() if set(members) <= set(names)}
    columns = [column for column in roles.group_columns if column in names or column in families]
    if not columns:
        raise ConfigError(
            "the table of `population` has none of the group columns ({names}); name its columns as those of the data.",
            names=", ".join(roles.group_columns),
        )
    cuts = {column: list(cut) for column, cut in roles.cuts.items() if column in columns}
    labels = {column: dict(named) for column, named in roles.labels.items() if column in columns}
    return Table(data, groups=columns, cuts=cuts, labels=labels, one_hot=families)


def _kind(finding: Finding) -> Kind | None:
    return next((kind for kind in get_args(Kind) if kind == finding.kind), None)


def _shift_records(judge: Reweighter, finding: Finding, limit: Message, mixes: list[Mix]) -> Iterator[Shift]:
    """Yield the verdict on a finding under each mix, and whether it equals the original verdict."""
    for mix in mixes:
        (value, low, high), verdict = judge.judged(finding, mix)
        as_is = judge.judged(finding, mix.as_is)[1]
        pair = finding.against == "reference"
        yield Shift(
            audit=finding.audit,
            model=str(finding.model),
            grouping=finding.grouping,
            stratum=finding.stratum,
            metric=finding.metric,
            kind=_kind(finding),
            against=finding.against,
            group=None if finding.against == "worst_pair" else finding.group,
            reference=finding.reference if pair or finding.against == "overall" else None,
            threshold=limit,
            limit=finding.limit,
            attribute=mix.column,
            shares=mix.what,
            value=finite(value),
            low=finite(low),
            high=finite(high),
            verdict=verdict,
            holds=verdict == as_is,
        )


# The section ---------------------------------------------------------------------------------------------------------


def section(extra: Extra) -> Section:
    """Return the report section on every verdict under every mix."""
    rows = extra.tables["shifts"]
    changed = [row for row in rows if not row.holds]
    columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Group": lambda r: r.group,
        "Compared with": lambda r: r.reference,
        "Within": lambda r: r.stratum,
        "Metric": lambda r: _metric(r).title,
        "Limit": lambda r: r.threshold.text,
        "With": lambda r: r.shares.text,
        "Value or gap": lambda r: Number(r.value, _style(r)),
        "Interval": lambda r: Range(r.low, r.high, _style(r)),
        "Verdict by itself": lambda r: SHORT_VERDICTS[_verdict(r)],
        "Holds": lambda r: "yes" if r.holds else "no",
    }
    parts = [
        make_table("Verdicts that would change", columns, changed),
        make_table("Everything that was tried", columns, rows, folded=True),
    ]
    key = "verdicts_change" if changed else "no_verdict_changes" if rows else "nothing_tried"
    summary = say(key, changed=len(changed), tried=len(rows))
    panels, left_out = _panels(rows)
    figure = Figure(
        "Verdicts with other shares",
        f"Points: the value or gap with these shares among the people. Lines: its interval.{left_out}",
        summary.text,
        tuple(panels),
        summary,
    )
    return Section(
        "Other populations",
        "Would the verdicts hold among people with other shares of groups?",
        (*([figure] if figure.charts else []), *(part for part in parts if part.rows)),
        (method("evenhand.after", "shares"),),
        notes=extra.notes if figure.charts else (summary, *extra.notes),
    )


def _panels(rows: Sequence[Shift]) -> tuple[list[Forest], str]:
    """Return a panel for each verdict, least stable first, and a sentence on the number of omitted gaps."""
    verdicts: dict[tuple[Any, ...], list[Shift]] = {}
    for row in sorted(rows, key=lambda row: row.holds):
        key = tuple(getattr(row, name) for name in _COORDINATES)
        verdicts.setdefault(key, []).append(row)
    shown = list(verdicts.values())[:_MOST_PANELS]
    cut = len(rows) - sum(len(panel_rows[:MOST_ROWS]) for panel_rows in shown)
    left_out = f" {count(cut, 'more gap')} {'is' if cut == 1 else 'are'} in the table only." if cut else ""
    return [_panel(panel_rows[:MOST_ROWS]) for panel_rows in shown], left_out


def _share_text(shares: Message) -> str:
    """Return a short description of shares."""
    of_population = shares.id == "after.population_shares"
    return "population" if of_population else f"{shares.args['share']} {shares.args['group']}"


def _panel(rows: Sequence[Shift]) -> Forest:
    first = rows[0]
    drawn = [{**forest_row(row, f"{row.attribute}: {_share_text(row.shares)}"), "limits": (row.limit,)} for row in rows]
    by = f" by {first.grouping}" if first.grouping is not None else ""
    who = " and ".join(name for name in (first.group, first.reference) if name not in (None, OVERALL))
    where = "".join(f", {part}" for part in (who, first.stratum and f"within {first.stratum}") if part)
    title = f"{first.model}: {_metric(first).title_in_sentence}{by}{where}, {first.threshold}"
    equal = None if first.kind is None else 1.0 if first.kind == "ratio" else 0.0
    return forest(drawn, title=title, style=_style(first), zero=equal)
