"""Power analysis before data collection: the gaps that a planned audit can detect.

Audits may have a power calculation (`power` of the descriptor). For audits without one, power is
estimated from a pilot by simulation.

Tables with the planned number of rows are drawn from the pilot, group by group, and the plan's audits are run on each
with few resamples. A gap is detected if its estimate lies beyond the limit by half the width of its interval, at the
level corrected for all findings of the plan (Bonferroni); so it requires a true gap of limit + half width + z(power)
standard deviations of the estimate over the tables. The interval of a worst pair is truncated at equality; there the
other arm is used. The size of the pilot's gaps is not used, only their variability: the largest of several gaps in a
small sample exceeds the true gap, and tables drawn from the pilot would reproduce it as if it were true.

Answers of critics are crossed with cases, and their numbers in a larger table are unknown, so the pilot's
intervals are scaled by the square root of the rows; the width of the worst-case bounds stays the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits import REGISTRY
from evenhand.core.power import PowerLine, PowerPlan, PowerSettings
from evenhand.core.result import finalize_results
from evenhand.errors import ConfigError
from evenhand.evidence.messages import say
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.run.config import make_table, read_config
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import bonferroni, normal_quantile
from evenhand.stats.types import FloatArray
from evenhand.table.frames import draw_rows
from evenhand.table.roles import TIMES, Roles

if TYPE_CHECKING:
    from evenhand.core.findings import Finding
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table

TABLES, RESAMPLES, REPLICATES = 30, 100, 10
"""Numbers of simulated tables, resamples and replicates, small because only widths and shares are needed."""


def plan_power(
    path: str | os.PathLike[str],
    rows: int | None = None,
    *,
    pilot: str | os.PathLike[str] | None = None,
    power: float | None = None,
    seed: int = 0,
    allow_code: bool = False,
) -> list[PowerLine]:
    """Return the gap that every threshold and test of a plan can detect.

    Parameters
    ----------
    path : an `audit.toml`.
    rows : planned number of rows; by default from `[power]`.
    pilot : a file with the columns of `[data]`, with the expected groups and rates; by default from `[power]`.
    power : the required power; by default from `[power]`, else 0.8.
    seed : the same seed gives the same answer.
    allow_code : whether the file may import the Python functions that it names.
    """
    name = os.fspath(path)
    config, arguments = read_config(name, allow_code=allow_code)
    settings = config.power or PowerSettings()
    if pilot is None and not settings.rates:
        raise ConfigError(
            "'{name}' says nothing of the rates to expect; add `rates` and `groups` to its [power], or give "
            "a file of like data with --pilot.",
            name=name,
        )
    planned = rows or settings.rows
    if planned is None:
        raise ConfigError(
            "the number of planned rows is missing; give --rows, or `rows` in [power] of '{name}'.", name=name
        )
    table = None if pilot is None else make_table({**arguments, "data": os.fspath(pilot)})
    if table is not None and table.roles.cluster is not None:
        raise ConfigError(
            "rows are drawn from the pilot one by one, and those of one cluster ({cluster!r}) belong together; keep "
            "one row of each cluster, and read the result as clusters.",
            cluster=table.roles.cluster,
        )
    roles = Roles.parse({"groups": arguments.get("groups", ())}, "[data]")
    plan = PowerPlan(
        specs=config.audits,
        settings=settings,
        rows=planned,
        power=power or settings.power,
        seed=seed,
        groupings=tuple(TIMES.join(columns) for columns in roles.groups),
        pilot=table,
    )
    return list(chain(_own_lines(plan), _pilot_lines(plan)))


def _own_lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield the power lines of audits with a power calculation, and a message for audits without power."""
    for name in plan.specs:
        power = REGISTRY[name].power
        if power is None:
            yield PowerLine(audit=name, metric="", how=shared("no_power", audit=name))
        elif power.lines is not None:
            yield from power.lines(plan)


def lines_as_dicts(lines: Sequence[PowerLine]) -> list[dict[str, Any]]:
    """Return the lines as records for JSON."""
    return [{name: _plain(getattr(line, name)) for name in line.__dataclass_fields__} for line in lines]


def _plain(value: object) -> object:
    return value.text if isinstance(value, Message) else value


# From a pilot ---------------------------------------------------------------------------------------------------------


def _pilot_lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield the power lines of audits that require a pilot."""
    powers = {name: power for name in plan.specs if (power := REGISTRY[name].power) is not None}
    specs = {name: plan.specs[name] for name, power in powers.items() if power.lines is None}
    if plan.pilot is None:
        yield from (PowerLine(audit=name, metric="", how=shared("needs_pilot")) for name in specs)
    else:
        yield from _lines_of(plan, plan.pilot, specs, {name for name, power in powers.items() if power.crossed})


def _lines_of(
    plan: PowerPlan, pilot: Table, specs: Mapping[str, Spec], crossed: Collection[str]
) -> Iterator[PowerLine]:
    """Yield the power lines of a pilot's findings.

    Findings from crossed answers are scaled, not simulated.
    """
    findings = _pilot_findings(pilot, specs)
    sizes = Counter(finding.threshold is None for finding in findings)
    drawn = _drawn_findings(plan, pilot, {name: spec for name, spec in specs.items() if name not in crossed})
    for finding in findings:
        confidence = specs[finding.audit].confidence
        together = bonferroni(confidence, sizes[finding.threshold is None])
        if finding.audit in crossed:
            yield _scaled_line(plan, finding, together, confidence, pilot.rows)
        else:
            yield _simulated_line(plan, finding, together, confidence, drawn)


def _pilot_findings(pilot: Table, specs: Mapping[str, Spec]) -> list[Finding]:
    """Return a pilot's findings on gaps or thresholds."""
    results = finalize_results([REGISTRY[name].run(pilot, spec) for name, spec in specs.items()])
    findings = chain.from_iterable(result.findings for result in results)
    return [finding for finding in findings if finding.kind is not None or finding.threshold is not None]


def _drawn_findings(plan: PowerPlan, pilot: Table, specs: Mapping[str, Spec]) -> list[dict[Hashable, Finding]]:
    """Return the findings of each simulated table, by key."""
    if not specs:
        return []
    few = {name: _with_few_resamples(spec) for name, spec in specs.items()}
    roles, rng = pilot.roles, named_rng(plan.seed, "pilot")
    strata = [column for column in roles.group_columns if column in pilot.kinds and column not in (roles.cuts or {})]
    findings = []
    for _ in range(TABLES):
        table = pilot.with_data(draw_rows(pilot.complete_rows(pilot.kinds), plan.rows, strata, rng, roles.id))
        results = finalize_results([REGISTRY[name].run(table, spec) for name, spec in few.items()])
        findings.append({_finding_key(finding): finding for result in results for finding in result.findings})
    return findings


def _with_few_resamples(spec: Spec) -> Spec:
    """Return the settings of an audit with fewer resamples and replicates."""
    fewer = {"resamples": RESAMPLES, "replicates": REPLICATES}
    replacements = {name: min(most, getattr(spec, name)) for name, most in fewer.items() if hasattr(spec, name)}
    return spec.model_copy(update=replacements)


def _finding_key(finding: Finding) -> Hashable:
    """Return the key of a finding; the groups of a worst pair are not part of it."""
    pair = () if finding.against == "worst_pair" else (finding.group, finding.reference)
    where = (finding.model, finding.model_reference, finding.grouping, finding.stratum)
    return finding.audit, finding.metric, finding.kind, finding.against, *where, *pair, finding.threshold


def _shared(finding: Finding) -> dict[str, Any]:
    names = ("audit", "metric", "model", "grouping", "kind")
    return {name: getattr(finding, name) for name in (*names, "threshold")}


def _limits(finding: Finding) -> tuple[float, float] | None:
    """Return the limits that decide a finding: joint limits if available; logarithms for a ratio."""
    joint = finding.joint_low is not None and finding.joint_high is not None
    low, high = (finding.joint_low, finding.joint_high) if joint else (finding.low, finding.high)
    if low is None or high is None:
        return None
    if finding.kind == "ratio":
        return (float(np.log(low)), float(np.log(high))) if low > 0 else None
    return low, high


def _simulated_line(
    plan: PowerPlan, finding: Finding, together: float, alone: float, drawn: Sequence[Mapping[Hashable, Finding]]
) -> PowerLine:
    """Return the power line of a finding from the simulated tables."""
    simulated = [table[_finding_key(finding)] for table in drawn if _finding_key(finding) in table]
    estimates = [(each.value, *limits) for each in simulated if each.value and (limits := _limits(each)) is not None]
    how = say("simulated", tables=len(drawn), rows=plan.rows)
    line = PowerLine(**_shared(finding), n=finding.n, how=how)
    if len(estimates) < len(drawn) / 2:
        return replace(line, how=say("simulated_few", how=how, number=len(estimates)))
    reach = _required_excess(finding.kind, np.array(estimates), together, alone, plan.power)
    if finding.kind == "ratio":
        return replace(line, gap=float(np.exp(np.log(finding.limit or 1.0) - reach)))
    return replace(line, gap=(finding.limit or 0.0) + reach)


def _required_excess(kind: str | None, estimates: FloatArray, together: float, alone: float, wanted: float) -> float:
    """Return the required excess of a gap over its limit: half the interval width plus z(power) deviations.

    Limits of a worst pair are truncated at equality. Then half the width is the arm on the other side; since sizes of
    small gaps vary less than sizes of large gaps, the standard deviation is at least the value implied by that arm.

    Examples
    --------
    >>> sure = np.array([[0.5, 0.4, 0.6], [0.5, 0.4, 0.6]])
    >>> ends_at_0 = np.array([[0.05, 0.0, 0.15], [0.05, 0.0, 0.15]])
    >>> [round(_required_excess("difference", known, 0.95, 0.95, 0.8), 3) for known in (sure, ends_at_0)]
    [0.1, 0.143]
    """
    value, low, high = estimates.T
    value = np.log(value) if kind == "ratio" else value
    half = np.where(low == 0, high - value, np.where(high == 0, value - low, (high - low) / 2)).mean()
    spread = value.std(ddof=1)
    if ((low == 0) | (high == 0)).any():
        spread = max(spread, half / normal_quantile(alone))
    beyond = normal_quantile(2 * wanted - 1) if wanted > 0.5 else 0.0
    return float(half * normal_quantile(together) / normal_quantile(alone) + beyond * spread)


def _scaled_line(plan: PowerPlan, finding: Finding, together: float, alone: float, pilot: int) -> PowerLine:
    """Return the power line of a finding: limit + (z_alpha + z_power) standard errors at the planned rows.

    alpha is corrected for all findings, and the standard error is derived from the pilot's interval. If a gap only has
    worst-case bounds, its value is their midpoint, and half their width is added.
    """
    limits = _limits(finding)
    if limits is None or finding.kind == "ratio":
        return PowerLine(**_shared(finding), how=say("no_difference"))
    lower, upper = (float(finding.coordinates.get(name, finding.value or 0.0)) for name in ("lower", "upper"))
    down, up = lower - limits[0], limits[1] - upper
    stderr = (up if limits[0] == 0 else (down + up) / 2) / normal_quantile(alone) * np.sqrt(pilot / plan.rows)
    beyond = normal_quantile(2 * plan.power - 1) if plan.power > 0.5 else 0.0
    gap = (finding.limit or 0.0) + (normal_quantile(together) + beyond) * stderr + (upper - lower) / 2
    return PowerLine(**_shared(finding), gap=float(gap), n=finding.n, how=say("scaled"))
