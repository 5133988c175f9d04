"""Optional parts of a report: gaps over time, and verdicts in other populations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.after.counting import counting_audit, counting_result
from evenhand.after.drift import gaps_over_time
from evenhand.after.drift_section import section as drift_section
from evenhand.after.messages import say
from evenhand.after.population_shift import judge_other_shares, published_shares, read_population
from evenhand.after.population_shift import section as shift_section
from evenhand.after.records import Extra
from evenhand.audits import REGISTRY
from evenhand.core.progress import step
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.table.table import Table
from evenhand.table.validation import column_fault

if TYPE_CHECKING:
    from evenhand.after.suppression import Suppressed
    from evenhand.run.config import AuditConfig

SECTIONS = {"over_time": drift_section, "population_shift": shift_section}
"""The sections of extras, by name."""


def require_extras(config: AuditConfig, table: Table) -> None:
    """Refuse extras that cannot be computed, before any computation."""
    report = config.report
    names = [f"`{name}`" for name in report.beside]
    verb = "needs" if len(names) == 1 else "need"
    if report.period is not None and not any(REGISTRY[name].counts for name in config.audits):
        name = counting_audit()
        raise ConfigError("`period` needs the {name} audit; add a section [{name}].", name=name)
    if names and table.roles.weight is not None:
        raise ConfigError(
            "{names} {verb} people who count alike, and these data have survey weights ({weight!r}); leave "
            "out one of the two.",
            names=" and ".join(names),
            verb=verb,
            weight=table.roles.weight,
        )
    grouped = report.period is None or report.period in table.roles.group_columns
    if not grouped and (fault := column_fault(str(report.period), table.kinds)):
        raise ConfigError("`period` column {period!r} {fault}", period=report.period, fault=fault)


def make_extras(
    config: AuditConfig, results: dict[str, Result], table: Table, safe: Suppressed | None = None
) -> tuple[Extra, ...]:
    """Compute the requested extras, and note for each verdict whether it holds in other populations."""
    report, counted = config.report, counting_result(results)
    extras: list[Extra] = []
    if counted is not None and report.period is not None:
        step(f"Comparing by {report.period}")
        hidden = () if safe is None else safe.periods(report.period)
        if hidden is None:
            note = say("no_periods_shown", period=report.period)
            results[counted.audit] = replace(counted, notes=(*counted.notes, note))
        else:
            extras.append(gaps_over_time(table, counted, report.period, hidden))
    if {"shift", "population"} & set(report.beside):
        step("Judging verdicts with other shares")
        population = read_population(table if safe is None else safe.whole, report)
        population = population if safe is None else published_shares(population, safe)
        results_with_lines, tried = judge_other_shares(config, results, table, population, safe)
        results.update(results_with_lines)
        extras.append(tried)
    return tuple(extras)
