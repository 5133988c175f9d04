"""Estimate power from a pilot, for audits without their own power calculation.

Tables of as many rows as are planned are drawn from the pilot's, group by group, and the plan's audits are run on each
with few resamples. A gap is shown where its estimate lies beyond the limit by half the width of its interval, at the
level corrected for all findings of the plan (Bonferroni); so it takes a true gap of limit + half width + z(power)
standard deviations of the estimate over the tables. The interval of a worst pair ends at equality; there the other arm
counts. How large the gaps of the pilot are is not used, only how much they vary: the largest of several gaps in a small
sample exceeds the true one, and tables drawn from the pilot would show it as often as if it were true.

Answers of critics are crossed with cases, and the number of each in so many rows is unknown: there the pilot's
intervals are scaled by the square root of the rows; the part that answers leave open stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits import REGISTRY
from evenhand.core.power import PowerLine, PowerPlan
from evenhand.core.result import finalize_results
from evenhand.evidence.messages import say
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import bonferroni, normal_quantile
from evenhand.stats.types import FloatArray
from evenhand.table.frames import draw_rows

if TYPE_CHECKING:
    from evenhand.core.findings import Finding
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table

TABLES, RESAMPLES, REPLICATES = 30, 100, 10
"""Simulated tables, and the resamples of each: few, since only widths and shares are needed."""


def pilot_lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield what the findings of other audits could show with the planned rows."""
    powers = {name: power for name in plan.specs if (power := REGISTRY[name].power) is not None}
    specs = {name: plan.specs[name] for name, power in powers.items() if power.lines is None}
    if plan.pilot is None:
        yield from (PowerLine(audit=name, metric="", how=shared("needs_pilot")) for name in specs)
    else:
        yield from _lines(plan, plan.pilot, specs, {name for name, power in powers.items() if power.crossed})


def _lines(plan: PowerPlan, pilot: Table, specs: Mapping[str, Spec], crossed: Collection[str]) -> Iterator[PowerLine]:
    """Yield what the findings of a pilot's audits could show.

    Crossed answers are scaled, not simulated.
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
    """Return the findings of a pilot that more rows could make clearer."""
    results = finalize_results([REGISTRY[name].run(pilot, spec) for name, spec in specs.items()])
    findings = chain.from_iterable(result.findings for result in results)
    return [finding for finding in findings if finding.kind is not None or finding.threshold is not None]


def _drawn_findings(plan: PowerPlan, pilot: Table, specs: Mapping[str, Spec]) -> list[dict[Hashable, Finding]]:
    """Return the findings of each simulated table, by key."""
    if not specs:
        return []
    few = {name: replace_few(spec) for name, spec in specs.items()}
    roles, rng = pilot.roles, named_rng(plan.seed, "pilot")
    strata = [column for column in roles.group_columns if column in pilot.kinds and column not in (roles.cuts or {})]
    findings = []
    for _ in range(TABLES):
        table = pilot.with_data(draw_rows(pilot.complete_rows(pilot.kinds), plan.rows, strata, rng, roles.id))
        results = finalize_results([REGISTRY[name].run(table, spec) for name, spec in few.items()])
        findings.append({_finding_key(finding): finding for result in results for finding in result.findings})
    return findings


def replace_few(spec: Spec) -> Spec:
    """Return the settings of an audit with few resamples and replicates."""
    fewer = {"resamples": RESAMPLES, "replicates": REPLICATES}
    replacements = {name: min(most, getattr(spec, name)) for name, most in fewer.items() if hasattr(spec, name)}
    return spec.model_copy(update=replacements)


def _finding_key(finding: Finding) -> Hashable:
    """Return a finding's key; the worst pair may change from table to table."""
    pair = () if finding.against == "worst_pair" else (finding.group, finding.reference)
    where = (finding.model, finding.model_reference, finding.grouping, finding.stratum)
    return finding.audit, finding.metric, finding.kind, finding.against, *where, *pair, finding.threshold


def _shared(finding: Finding) -> dict[str, Any]:
    names = ("audit", "metric", "model", "grouping", "kind")
    return {name: getattr(finding, name) for name in (*names, "threshold")}


def _limits(finding: Finding) -> tuple[float, float] | None:
    """Return the limits that decide a finding: joint ones where they exist; logs for a ratio."""
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
    """Return what a finding could show, from the simulated tables."""
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
    """Return how far beyond its limit a gap must be: half the interval's width plus z(power) standard deviations.

    Limits of a worst pair end at equality. Where they do, half the width is the arm on the other side; since sizes of
    small gaps vary less than those of large ones, the standard deviation is at least the one that arm implies.

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
    """Return what a finding could show: limit + (z_alpha + z_power) standard errors at the planned rows.

    alpha is corrected for all findings, and the standard error is that of the pilot's interval. Where answers leave a
    gap open, its number is the middle of a range, and half the range is added.
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
