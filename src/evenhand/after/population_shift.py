"""Would a verdict hold in another population? The same people, with other shares of other groups among them.

A rate within a group does not depend on how large the group is: whatever its share of the people, the gap by race is
the same. It can depend on who is in the group. So for every other group column (sex, for a gap by race) people are
weighted so that a group of it has 10 points more or less of everybody, or the shares of a named population, and the
gap is judged again. A gap to everybody, and individual fairness, depend on the shares of the groups themselves as well.
Each audit says how its own numbers change (`reweight` of its descriptor); `stats/weighted.py` has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from evenhand.after.messages import say
from evenhand.after.records import Extra, Shift
from evenhand.audits import REGISTRY
from evenhand.core.display import Figure, Method, Number, Range, Section, make_table
from evenhand.core.findings import SHORT_VERDICTS, Finding, in_one
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL, Kind
from evenhand.core.result import Result
from evenhand.core.reweighting import Mix, Reweighter
from evenhand.core.spec import Spec
from evenhand.core.thresholds import Verdict
from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.forest import MOST_ROWS, Forest, forest, forest_row
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
_PLACE = ("audit", "model", "grouping", "stratum", "metric", "kind", "group", "reference", "threshold")


@dataclass(frozen=True)
class Shares:
    """The shares of a population by group, and of how many people they are; None where they are taken as exact."""

    of: Mapping[str, float]
    people: int | None = None


def judge_other_shares(
    config: AuditConfig,
    results: Mapping[str, Result],
    table: Table,
    population: Mapping[str, Shares],
    safe: Suppressed | None = None,
) -> tuple[dict[str, Result], Extra]:
    """Return the results with a line beside every verdict, and what was tried for each."""
    points = config.report.shift
    mixes = list(_mixes(table, points, population))
    several = _verdicts(results) > 1
    rows: list[Shift] = []
    told: dict[str, Result] = {}
    for name, result in results.items():
        judge = _judge(config.audits if safe is None else safe.audits, table, result)
        findings = []
        for finding in result.findings:
            if finding.limit is None:
                findings.append(finding)
                continue
            tried, line = _told(judge, finding, mixes, safe, several)
            rows += tried
            findings.append(replace(finding, detail=in_one([*filter(None, [finding.detail]), line])))
        told[name] = replace(result, findings=tuple(findings))
    sampled = {column: shares.people for column, shares in population.items() if shares.people is not None}
    given = {column: dict(shares.of) for column, shares in population.items()}
    settings = {"shift": points, "population": given, "population_people": sampled}
    sizes = tuple(say("people_by", n=n, column=column) for column, n in sampled.items())
    notes = (say("sampled_population", sizes=sizes),)
    return told, Extra("population_shift", settings, notes if sampled else (), {"shifts": tuple(rows)})


def _verdicts(results: Mapping[str, Result]) -> int:
    return sum(finding.limit is not None for result in results.values() for finding in result.findings)


def _judge(audits: Mapping[str, Spec], table: Table, result: Result) -> Reweighter | None:
    make = result.descriptor.reweight
    # the settings of the result itself may hold no data, only their names
    return None if make is None else make(table, result, audits[result.audit])


def _told(
    judge: Reweighter | None,
    finding: Finding,
    mixes: Sequence[Mix],
    safe: Suppressed | None,
    several: bool,
) -> tuple[list[Shift], Message]:
    """Return what was tried for a verdict, and the line beside it; `several` if it is one of several verdicts."""
    if judge is None:
        return [], say("cannot_tell", why=Message(REGISTRY[finding.audit].not_reweighted))
    if (why := judge.why_not(finding)) is not None:
        return [], say("cannot_tell", why=why if isinstance(why, Message) else Message(str(why)))
    mine = [mix for mix in mixes if judge.depends_on(finding, mix.column)]
    shown = [mix for mix in mine if safe is None or _is_coarse(judge, finding, mix, safe)]
    if mine and not shown:
        return [], say("cannot_tell", why=say("crossed_counts_hidden", grouping=finding.grouping))
    tried = [] if finding.threshold is None else list(_judged_again(judge, finding, finding.threshold, shown))
    return tried, _line(finding, tried, shown, several)


def _is_coarse(judge: Reweighter, finding: Finding, mix: Mix, safe: Suppressed) -> bool:
    """Tell whether no small count could be worked out from a number among people with other shares."""
    if finding.grouping is None:
        return True
    return finding.stratum is None and judge.by_counts and safe.may_cross(finding.grouping, mix.column)


def _line(finding: Finding, tried: list[Shift], mixes: list[Mix], several: bool) -> Message:
    """Return the line beside a verdict; what was tried is judged by itself, the verdict among all of the run."""
    if not mixes:
        return say("cannot_matter")
    is_open = finding.verdict == "insufficient_evidence"
    changed = [row for row in tried if not row.holds and (is_open or row.verdict != finding.verdict)]
    if not changed:
        columns = tuple(dict.fromkeys(mix.column for mix in mixes))
        return say(
            "open_with_other_shares" if is_open else "holds_with_other_shares", columns=columns, tried=len(tried)
        )
    worst = min(changed, key=lambda row: row.verdict == finding.verdict)
    breaks = several and worst.verdict == "does_not_meet"
    name = "covers" if worst.verdict == finding.verdict else "breaks" if breaks else "changes"
    return say(
        f"{name}_with_other_shares", what=worst.shares, verdict=shared(f"it_{worst.verdict}"), value=_amount(worst)
    )


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


def _mixes(table: Table, points: float | None, population: Mapping[str, Shares]) -> Iterator[Mix]:
    """Yield every other mix: each group of each column with so many points more or less, or the population's shares."""
    for column in table.roles.group_columns:
        labels = table.cells.labels[column_key(column)]
        sizes = np.bincount(table.cells.codes[column_key(column)], weights=table.cells.n, minlength=len(labels))
        shares = sizes / sizes.sum()
        if column in population:
            yield _to_population(column, labels, shares, population[column])
        if points is not None:
            yield from _shifted(column, labels, shares, points)


def _shifted(column: str, labels: tuple[str, ...], shares: FloatArray, points: float) -> Iterator[Mix]:
    """Yield the mixes in which one group has more or less of everybody, and all others share the rest as they do."""
    for at, label in enumerate(labels[:1] if len(labels) == 2 else labels):  # of two, more of one is less of the other
        for change in (points, -points):
            share = shares[at] + change
            if label not in UNNAMED and _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
                weight = np.full(len(labels), (1 - share) / (1 - shares[at]))
                weight[at] = share / shares[at]
                words = {"share": _percent(share), "group": label, "here": _percent(shares[at])}
                yield Mix(column, say("other_share", **words), weight)


def _percent(share: float) -> str:
    """Return a share in percent, with one decimal where it has one: 57.5% and 10%."""
    return f"{round(100 * share, 1):g}%"


def _to_population(column: str, labels: tuple[str, ...], shares: FloatArray, wanted: Shares) -> Mix:
    """Return the mix with the shares of a population; people whose group is not known keep theirs."""
    for label in wanted.of:
        if label not in labels:
            raise ConfigError(
                "`population` names {label!r} of {column!r}; {hint}",
                label=label,
                column=column,
                hint=did_you_mean(label, labels),
            )
    lacking = [label for label in labels if label not in wanted.of and label not in UNNAMED]
    if lacking and wanted.people is None:
        raise ConfigError(
            "`population` of {column!r} has no share of {lacking!r}; give one for every group.",
            column=column,
            lacking=lacking[0],
        )
    named = np.array([label not in UNNAMED for label in labels])
    there = np.array([wanted.of.get(label, 0.0) for label in labels])
    factor = shares[named].sum() / np.where(shares > 0, shares, 1.0)
    weight = np.where(named, there * factor, 1.0)
    spread = None
    if wanted.people is not None:
        spread = (np.diag(there) - np.outer(there, there)) / wanted.people * np.outer(factor, factor)
    return Mix(column, say("population_shares", column=column), weight, spread)


def read_population(table: Table, report: ReportSettings) -> dict[str, Shares]:
    """Return the shares of the population by group column: those given, or those of the people of a second table."""
    asked = report.population
    if report.population_shares is not None:
        for column in report.population_shares:
            if column not in table.roles.group_columns:
                raise ConfigError(
                    "`population` names {column!r}; {hint}",
                    column=column,
                    hint=did_you_mean(column, table.roles.group_columns),
                )
        return {column: Shares(shares) for column, shares in report.population_shares.items()}
    data = str(report.folder / asked) if isinstance(asked, str) else asked
    other = _second_table(table, data)
    table.record_table("population", other)
    found = {}
    for column in other.roles.group_columns:
        labels = other.cells.labels[column_key(column)]
        sizes = np.bincount(other.cells.codes[column_key(column)], weights=other.cells.n, minlength=len(labels))
        known = {label: int(n) for label, n in zip(labels, sizes, strict=True) if label not in UNNAMED}
        people = sum(known.values())
        if not people:
            raise ConfigError(
                "the table of `population` has no group in column {column!r}; fill it in.",
                column=column,
            )
        found[column] = Shares({label: n / people for label, n in known.items()}, people)
    return found


def published_shares(population: Mapping[str, Shares], safe: Suppressed) -> dict[str, Shares]:
    """Return the shares of groups that are shown among one another, without those that tell of few people."""
    found = {}
    for column, shares in population.items():
        hidden = safe.hidden.get(column, ())
        kept = {group: share for group, share in shares.of.items() if group not in hidden}
        total = sum(kept.values())
        sizes = [round(share * (shares.people or 0)) for share in kept.values()]
        people = None if shares.people is None else sum(sizes)
        few = any(map(safe.rule.is_small, sizes))
        if column in safe.table.roles.group_columns and total > 0 and not few:
            found[column] = Shares({group: share / total for group, share in kept.items()}, people)
    return found


def _second_table(table: Table, data: TableData) -> Table:
    """Open the table of a population with the group columns that it has, labelled and cut as those of the data."""
    from evenhand.table.sources import open_source

    names = open_source(data).frame.collect_schema().names()
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


def _judged_again(judge: Reweighter, finding: Finding, limit: Message, mixes: list[Mix]) -> Iterator[Shift]:
    """Yield the verdict on a finding for each mix; it holds where it is the verdict on the people as they are."""
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
    """Return the part of the report: every verdict with every mix that was tried."""
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
    told = say(key, changed=len(changed), tried=len(rows))
    panels, left_out = _panels(rows)
    figure = Figure(
        "Verdicts with other shares",
        f"Points: the value or gap with these shares among the people. Lines: its interval.{left_out}",
        told.text,
        tuple(panels),
        told,
    )
    method = Method(
        "Other shares",
        "People are weighted so that a group of another column has other shares of everybody; rates within a group of "
        "the column itself do not depend on its share, those of everybody do. Limits of rates are Clopper and "
        "Pearson's at the effective size, those of means Student's on the logit scale, combined by MOVER. Shares of a "
        "population that come from a table of its people add their sampling error (delta method). A verdict holds "
        "where it is the same as without weights, by the same limits, which are not widened for other verdicts. "
        "benchmarks/coverage/population_shift_coverage.py shows their coverage.",
        "Korn and Graubard 1998, Survey Methodology 24; Kish 1965, Survey Sampling; Zou and Donner 2008, Statistics in "
        "Medicine 27",
    )
    return Section(
        "Other populations",
        "Would the verdicts hold among people with other shares of groups?",
        (*([figure] if figure.charts else []), *(part for part in parts if part.rows)),
        (method,),
        notes=extra.notes if figure.charts else (told, *extra.notes),
    )


def _panels(rows: Sequence[Shift]) -> tuple[list[Forest], str]:
    """Return a panel for each verdict, those that would change first, and what there was no room for."""
    verdicts: dict[tuple[Any, ...], list[Shift]] = {}
    for row in sorted(rows, key=lambda row: row.holds):
        place = tuple(getattr(row, name) for name in _PLACE)
        verdicts.setdefault(place, []).append(row)
    shown = list(verdicts.values())[:_MOST_PANELS]
    cut = len(rows) - sum(len(mine[:MOST_ROWS]) for mine in shown)
    left_out = f" {count(cut, 'more gap')} {'is' if cut == 1 else 'are'} in the table only." if cut else ""
    return [_panel(mine[:MOST_ROWS]) for mine in shown], left_out


def _short(shares: Message) -> str:
    """Return shares in words as short as they can be."""
    of_population = shares.id == "after.population_shares"
    return "population" if of_population else f"{shares.args['share']} {shares.args['group']}"


def _panel(rows: Sequence[Shift]) -> Forest:
    first = rows[0]
    drawn = [{**forest_row(row, f"{row.attribute}: {_short(row.shares)}"), "limits": (row.limit,)} for row in rows]
    by = f" by {first.grouping}" if first.grouping is not None else ""
    who = " and ".join(name for name in (first.group, first.reference) if name not in (None, OVERALL))
    where = "".join(f", {part}" for part in (who, first.stratum and f"within {first.stratum}") if part)
    title = f"{first.model}: {_metric(first).title_in_sentence}{by}{where}, {first.threshold}"
    equal = None if first.kind is None else 1.0 if first.kind == "ratio" else 0.0
    return forest(drawn, title=title, style=_style(first), zero=equal)
