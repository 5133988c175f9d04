"""Would a verdict hold elsewhere? The same people, with other shares of other groups among them.

A rate within a group does not depend on how large the group is: whatever its share of the people, the gap by race is
the same. It can depend on who is in the group. So for every other group column (sex, for a gap by race) people are
weighted so that a group of it has 10 points more or less of everybody, or the shares of a named population, and the
gap is judged again.

With weights w the rate of a group is sum(w x) / sum(w n), with Kish's or the linearised effective size. Limits are
exact ones at that size (Korn and Graubard 1998, Survey Methodology 24), combined by MOVER; of a worst pair the largest
of all pairs' upper limits, each on its own, and of their lower limits, all together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.parity.metrics import METRICS
from evenhand.audits.parity.result import ParityResult
from evenhand.core.display import Figure, Method, Number, Range, Section, make_table
from evenhand.core.findings import SHORT_VERDICTS, Finding, render
from evenhand.core.formats import finite
from evenhand.core.result import Result
from evenhand.core.run import step
from evenhand.core.thresholds import Threshold, Verdict, judge
from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.forest import MOST_ROWS, Forest, forest, forest_row
from evenhand.report.drift import gaps_over_time, is_yes
from evenhand.report.drift import section as drift_section
from evenhand.report.extras import Extra, Shift
from evenhand.stats.intervals import clopper_pearson, mover_difference, mover_ratio
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.table.keys import column_key
from evenhand.table.roles import UNNAMED
from evenhand.table.validation import column_fault, state_key

if TYPE_CHECKING:
    from evenhand.report.config import AuditConfig
    from evenhand.table.table import Table

_LEAST_SHARE = 0.01
_MOST_PANELS = 6

SENTENCES = {
    "holds_elsewhere": "It would hold with other shares of {columns} among the people ({tried}).",
    "changes_elsewhere": "With {what} among the people it would be: {verdict} ({value}).",
    "cannot_matter": "Other shares of the groups cannot change it: both rates are those of one group each.",
}


@dataclass(frozen=True)
class _Mix:
    """People with other shares of the groups of one column: what it is called, and the weight of each group."""

    column: str
    what: str
    weight: FloatArray


def elsewhere(
    table: Table, result: ParityResult, points: float | None, population: Mapping[str, Mapping[str, float]]
) -> tuple[ParityResult, Extra]:
    """Return the result with a line beside every verdict, and what was tried for each."""
    mixes = list(_mixes(table, points, population))
    rows: list[Shift] = []
    findings = []
    for finding in result.findings:
        line = ""
        if _can_be_judged(table, finding):
            mine = [mix for mix in mixes if mix.column not in table.groupings[str(finding.grouping)]]
            tried = list(_judged_again(table, result, finding, mine))
            rows += tried
            line = _line(tried, mine)
        findings.append(replace(finding, detail=f"{finding.detail} {line}".strip()) if line else finding)
    settings = {"shift": points, "population": {name: dict(shares) for name, shares in population.items()}}
    return replace(result, findings=tuple(findings)), Extra("elsewhere", settings, (), {"shifts": tuple(rows)})


def _can_be_judged(table: Table, finding: Finding) -> bool:
    metric = METRICS.get(finding.metric)
    known = metric is not None and metric.method == "rate" and finding.grouping in table.groupings
    gap = finding.kind in ("difference", "ratio") and finding.against in ("worst_pair", "reference")
    return known and gap and finding.limit is not None and finding.stratum is None and finding.value is not None


def _line(tried: list[Shift], mixes: list[_Mix]) -> str:
    if not mixes:
        return render("cannot_matter", {}, SENTENCES)
    changed = [row for row in tried if not row.holds]
    if not changed:
        columns = ", ".join(dict.fromkeys(mix.column for mix in mixes))
        return render("holds_elsewhere", {"columns": columns, "tried": f"{len(tried)} tried"}, SENTENCES)
    worst = changed[0]
    told = {"what": worst.shares, "verdict": SHORT_VERDICTS[_verdict(worst)].lower()}
    return render("changes_elsewhere", {**told, "value": _amount(worst)}, SENTENCES)


def _verdict(row: Shift) -> Verdict:
    return next(verdict for verdict in SHORT_VERDICTS if verdict == row.verdict)


def _amount(row: Shift) -> str:
    return f"{row.value:.2f}" if row.kind == "ratio" else f"{100 * (row.value or 0):.1f} points"


def _mixes(table: Table, points: float | None, population: Mapping[str, Mapping[str, float]]) -> Iterator[_Mix]:
    """Yield every other mix: each group of each column with so many points more or less, or the population's shares."""
    for column in population:
        if column not in table.roles.group_columns:
            raise ConfigError(f"`population` names {column!r}; {did_you_mean(column, table.roles.group_columns)}")
    for column in table.roles.group_columns:
        labels = table.cells.labels[column_key(column)]
        shares = np.bincount(table.cells.codes[column_key(column)], weights=table.cells.n, minlength=len(labels))
        shares = shares / shares.sum()
        if column in population:
            weight = _to_population(column, labels, shares, population[column])
            yield _Mix(column, f"the shares of {column} in the population", weight)
        shifted = labels[:1] if len(labels) == 2 else labels  # of two, more of one is less of the other
        for at, label in enumerate(shifted if points is not None else ()):
            for change in (points or 0.0, -(points or 0.0)):
                share = shares[at] + change
                if label not in UNNAMED and _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
                    weight = np.full(len(labels), (1 - share) / (1 - shares[at]))
                    weight[at] = share / shares[at]
                    yield _Mix(column, f"{_percent(share)} {label} ({_percent(shares[at])} here)", weight)


def _percent(share: float) -> str:
    """Return a share in percent, with one decimal where it has one: 57.5% and 10%."""
    return f"{round(100 * share, 1):g}%"


def _to_population(column: str, labels: tuple[str, ...], shares: FloatArray, wanted: Mapping[str, float]) -> FloatArray:
    for label in wanted:
        if label not in labels:
            raise ConfigError(f"`population` names {label!r} of {column!r}; {did_you_mean(label, labels)}")
    lacking = [label for label in labels if label not in wanted and label not in UNNAMED]
    if lacking:
        raise ConfigError(f"`population` of {column!r} has no share of {lacking[0]!r}; give one for every group.")
    named = np.array([label in wanted for label in labels])
    there = np.array([wanted.get(label, 0.0) for label in labels])
    # People whose group is not known keep their share.
    return np.where(named, there * shares[named].sum() / np.where(shares > 0, shares, 1.0), 1.0)


def _judged_again(table: Table, result: ParityResult, finding: Finding, mixes: list[_Mix]) -> Iterator[Shift]:
    """Yield the verdict on a finding for each mix; it holds where it is the verdict on the people as they are."""
    codes, labels = table.cells.joint(table.groupings[str(finding.grouping)])
    at = _compared(result, finding, labels)
    side = "max" if str(finding.threshold).startswith("at most") else "min"
    threshold = Threshold.model_validate({"metric": finding.metric, side: finding.limit})

    def judged(mix: _Mix) -> tuple[float, float, float, Verdict]:
        key = column_key(mix.column)
        hits, n = _counts(table, finding, codes, table.cells.codes[key], (len(labels), len(mix.weight)))
        rate, size = weighted_rates(hits[at], n[at], mix.weight)
        gap = _gap(rate, size, finding, result.spec.confidence)
        return *gap, judge(threshold, *gap)

    for mix in mixes:
        value, low, high, verdict = judged(mix)
        as_is = judged(replace(mix, weight=np.ones_like(mix.weight)))[3]
        yield Shift(
            model=str(finding.model),
            grouping=str(finding.grouping),
            metric=finding.metric,
            kind=str(finding.kind),
            against=str(finding.against),
            group=finding.group if finding.against == "reference" else None,
            reference=finding.reference if finding.against == "reference" else None,
            threshold=str(finding.threshold),
            limit=finding.limit,
            attribute=mix.column,
            shares=mix.what,
            value=finite(value),
            low=finite(low),
            high=finite(high),
            verdict=verdict,
            holds=verdict == as_is,
        )


def _compared(result: ParityResult, finding: Finding, labels: tuple[str, ...]) -> list[int]:
    """Return the groups that the finding compares: the two, the group first, or all of a worst pair."""
    if finding.against == "reference":
        return [labels.index(str(finding.group)), labels.index(str(finding.reference))]
    place = {"model": finding.model, "grouping": finding.grouping, "metric": finding.metric, "stratum": None}
    return [labels.index(value.group) for value in result.rows("values", **place) if value.status == "ok"]


def _counts(
    table: Table, finding: Finding, groups: IntArray, parts: IntArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return who counts above and below the line of a metric, by group and by part of the other column."""
    above, below = METRICS[finding.metric].coefficients()
    y, d = is_yes(table.cells, "outcome"), is_yes(table.cells, state_key(str(finding.model)))
    place, size = groups * shape[1] + parts, shape[0] * shape[1]
    hits, n = (
        np.bincount(place, weights=table.cells.n * side[y, d], minlength=size).reshape(shape)
        for side in (above[..., 0], below)
    )
    return np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)


def weighted_rates(hits: FloatArray, n: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rates of groups whose parts are weighted, and their effective sizes: Kish's or the linearised one.

    With r = sum(w x) / sum(w n) the first is sum(w n)^2 / sum(w^2 n), the second r (1 - r) / V, V the sum of
    w^2 (x_i - r)^2 over people, by sum(w n)^2; the smaller of the two is taken.

    Examples
    --------
    >>> rate, size = weighted_rates(np.array([[30.0, 10.0]]), np.array([[60.0, 40.0]]), np.array([1.0, 1.0]))
    >>> rate.tolist(), size.round(6).tolist()
    ([0.4], [100.0])
    """
    total = n @ weight
    rate = hits @ weight / total
    kish = total**2 / (n @ weight**2)
    squares = hits * (1 - rate[:, None]) ** 2 + (n - hits) * rate[:, None] ** 2
    with np.errstate(all="ignore"):
        linearised = rate * (1 - rate) * total**2 / (squares @ weight**2)
    return rate, np.fmin(kish, np.where(linearised > 0, linearised, np.nan))


def _gap(rate: FloatArray, size: FloatArray, finding: Finding, confidence: float) -> tuple[float, float, float]:
    """Return the size of a gap of weighted rates with its limits: of the first two groups, or of the worst pair."""
    groups = len(rate)
    pairs = (
        [(0, 1)] if finding.against == "reference" else [(i, j) for i in range(groups) for j in range(groups) if i != j]
    )
    together = 1 - (1 - confidence) / max(len(pairs) / 2, 1)
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    combine = mover_difference if finding.kind == "difference" else mover_ratio

    def limits(level: float) -> Interval:
        each = clopper_pearson(rate, size, level)
        sides = [(rate[side], Interval(each.low[side], each.high[side])) for side in (one, other)]
        return combine(*sides[0], *sides[1])

    wide, narrow = limits(together), limits(confidence)
    with np.errstate(all="ignore"):
        if finding.kind == "difference":
            gaps = rate[one] - rate[other]
            nearest = np.maximum(np.maximum(wide.low, -wide.high), 0.0)
            furthest = np.maximum(np.abs(narrow.low), np.abs(narrow.high))
            return float(np.abs(gaps).max()), float(nearest.max()), float(furthest.max())
        ratios = np.minimum(rate[one] / rate[other], rate[other] / rate[one])
        nearest = np.minimum(wide.high, 1 / wide.low)
        furthest = np.minimum(narrow.low, 1 / narrow.high)
    return float(np.nanmin(ratios)), float(np.nanmin(furthest)), float(min(np.nanmin(nearest), 1.0))


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
        "Metric": lambda r: METRICS[r.metric].title,
        "Limit": lambda r: r.threshold,
        "With": lambda r: r.shares,
        "Gap": lambda r: Number(r.value, "number" if r.kind == "ratio" else "points"),
        "Interval": lambda r: Range(r.low, r.high, "number" if r.kind == "ratio" else "points"),
        "Verdict": lambda r: SHORT_VERDICTS[_verdict(r)],
        "Holds": lambda r: "yes" if r.holds else "no",
    }
    parts = [
        make_table("Verdicts that would change", columns, changed),
        make_table("Everything that was tried", columns, rows, folded=True),
    ]
    told = (
        f"In {len(changed)} of {len(rows)} cases tried a verdict would change with other shares among the people."
        if changed
        else "No verdict would change with the shares that were tried."
        if rows
        else "Nothing could be tried: no verdict on a rate has another group column to reweight by."
    )
    panels, left_out = _panels(rows)
    figure = Figure(
        "Gaps with other shares",
        f"Points: the gap with these shares among the people. Lines: its interval.{left_out}",
        told,
        tuple(panels),
    )
    method = Method(
        "Other shares",
        "People are weighted so that a group of another column has other shares of everybody; rates within a group of "
        "the column itself do not depend on its share. Limits are Clopper and Pearson's at the effective size, "
        "combined by MOVER. A verdict holds where it is the same as without weights, by the same limits. "
        "benchmarks/elsewhere_coverage.py shows their coverage.",
        "Korn and Graubard 1998, Survey Methodology 24; Kish 1965, Survey Sampling",
    )
    question = "Would the verdicts hold among people with other shares of groups?"
    return Section(
        "Elsewhere",
        question,
        (*([figure] if figure.charts else []), *(part for part in parts if part.rows)),
        (method,),
        notes=(told,),
    )


def _panels(rows: Sequence[Shift]) -> tuple[list[Forest], str]:
    """Return a panel for each verdict, those that would change first, and what there was no room for."""
    verdicts: dict[tuple[Any, ...], list[Shift]] = {}
    for row in sorted(rows, key=lambda row: row.holds):
        place = (row.model, row.grouping, row.metric, row.kind, row.group, row.reference, row.threshold)
        verdicts.setdefault(place, []).append(row)
    shown = list(verdicts.values())[:_MOST_PANELS]
    cut = len(rows) - sum(len(mine[:MOST_ROWS]) for mine in shown)
    left_out = f" {count(cut, 'more gap')} {'is' if cut == 1 else 'are'} in the table only." if cut else ""
    return [_panel(mine[:MOST_ROWS]) for mine in shown], left_out


def _short(shares: str) -> str:
    return "population" if shares.startswith("the shares") else shares.rsplit(" (", 1)[0]


def _panel(rows: Sequence[Shift]) -> Forest:
    first = rows[0]
    ratio = first.kind == "ratio"
    drawn = [{**forest_row(row, f"{row.attribute}: {_short(row.shares)}"), "limits": (row.limit,)} for row in rows]
    who = f", {first.group} and {first.reference}" if first.group is not None else ""
    title = f"{first.model}: {METRICS[first.metric].title_in_sentence} by {first.grouping}{who}, {first.threshold}"
    return forest(drawn, title=title, style="number" if ratio else "points", zero=1.0 if ratio else 0.0)


# What a report asks for beside its audits ---------------------------------------------------------------------------

SECTIONS = {"over_time": drift_section, "elsewhere": section}
"""The sections of extras, by name."""


def require_extras(config: AuditConfig, table: Table) -> None:
    """Refuse what a report asks for beside its audits where that cannot be told, before anything is computed."""
    report = config.report
    names = [f"`{name}`" for name in ("period", "shift", "population") if getattr(report, name)]
    verb = "needs" if len(names) == 1 else "need"
    if names and "parity" not in config.audits:
        raise ConfigError(f"{' and '.join(names)} {verb} the parity audit; add a section [parity].")
    if names and table.roles.weight is not None:
        raise ConfigError(
            f"{' and '.join(names)} {verb} people who count alike, and these data have survey weights "
            f"({table.roles.weight!r}); leave out one of the two."
        )
    grouped = report.period is None or report.period in table.roles.group_columns
    if not grouped and (fault := column_fault(str(report.period), table.kinds)):
        raise ConfigError(f"`period` column {report.period!r} {fault}")


def make_extras(config: AuditConfig, results: dict[str, Result], table: Table) -> tuple[Extra, ...]:
    """Return what the report asks for beside its audits; verdicts get a line on whether they would hold elsewhere."""
    report, parity = config.report, results.get("parity")
    extras: list[Extra] = []
    if isinstance(parity, ParityResult) and report.period is not None:
        step(f"Comparing by {report.period}")
        extras.append(gaps_over_time(table, parity.spec, report.period))
    if isinstance(parity, ParityResult) and (report.shift is not None or report.population):
        results["parity"], tried = elsewhere(table, parity, report.shift, report.population)
        extras.append(tried)
    return tuple(extras)
