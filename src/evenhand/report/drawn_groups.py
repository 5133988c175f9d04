"""The groups that the answer draws: one or two series of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.after.records import Drift
from evenhand.audits import REGISTRY
from evenhand.charts import Forest, forest, forest_row
from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED
from evenhand.report.frequencies import GroupValues, group_values, status_quo_values, values_compared
from evenhand.report.reversals import Reversal
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

MOST_DRAWN = 12
"""The maximum number of groups in the chart of concerned groups."""


def drawn_groups(audit: Audit, lead: Finding, reversal: Reversal | None, wording: PageWording) -> Forest | None:
    """Return the chart of the groups' values, highest first; of many groups, only the outermost and the named ones."""
    series = _series(audit, lead, reversal, wording)
    if not series:
        return None
    groups = next(iter(series.values()))
    shown = _shown_groups(groups)
    rows = [
        {**forest_row(value, value.group, name), "small": value.group not in groups.compared}
        for name, of_series in series.items()
        for value in of_series.values
        if value.group in shown
    ]
    ends = [end for row in rows for end in (row["value"], row["high"]) if end is not None]
    return forest(
        rows,
        title=lead.grouping or "",
        style=groups.style(),
        domain=(0.0, max(ends)) if min(ends) >= 0 else None,
        zero=groups.overall if len(series) == 1 else None,
        dashed="everybody",
    )


def drawn_change(drift: Drift, period: str, wording: PageWording) -> Forest | None:
    """Return the chart of both groups' rates before and since a change, or None if a rate is unknown."""
    before, since = wording.say("before", "answer"), period
    rates = [
        (drift.group, before, drift.group_before),
        (drift.reference, before, drift.reference_before),
        (drift.group, since, drift.group_since),
        (drift.reference, since, drift.reference_since),
    ]
    known = [rate for _, _, rate in rates if rate is not None]
    if len(known) < len(rates):
        return None
    rows = [{"label": label, "series": name, "value": rate} for label, name, rate in rates]
    style = REGISTRY[drift.audit].metrics[drift.metric].style()
    return forest(rows, title=drift.grouping, style=style, domain=(0.0, max(known)))


def _series(audit: Audit, lead: Finding, reversal: Reversal | None, wording: PageWording) -> Mapping[str, GroupValues]:
    """Return the groups' values to draw, by the name of the series; two series for two compared versions."""
    if (quo := status_quo_values(audit, lead)) is not None:
        new = values_compared(audit, lead, lead.model or "")
        return {wording.say("status_quo", "answer"): quo} | ({} if new is None else {lead.model or "": new})
    groups = group_values(audit, lead)
    within = None if reversal is None else group_values(audit, lead, STANDARDISED)
    if groups is None or reversal is None or within is None:
        return {} if groups is None else {"": groups}
    return {
        wording.say("overall", "answer"): groups,
        wording.say("within_strata", "answer", factor=reversal.factor): within,
    }


def _shown_groups(groups: GroupValues) -> set[str]:
    """Return the groups to draw: all, or of many groups the highest, the lowest and the named ones."""
    values = groups.values
    if len(values) > MOST_DRAWN:
        values = (*values[: MOST_DRAWN // 2], *values[-MOST_DRAWN // 2 :], *groups.named)
    return {value.group for value in values}
