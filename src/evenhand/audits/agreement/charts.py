"""The charts of the agreement audit: metrics by group, gaps, and the parts of PABAK minus kappa."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evenhand.charts import PANEL_WIDTH, forest, forest_row, pair_text, share_axis
from evenhand.core.findings import limits_of

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult

PARTS = {"prevalence_part": "prevalence", "bias_part": "bias"}
MOST_DRAWN = 4
"""The maximum number of metrics with a panel; the table has all metrics."""
_WIDTH = PANEL_WIDTH - 60


def value_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per comparable metric: all people and every group, with intervals."""
    panels = []
    for name in drawn(result):
        records = [r for r in result.rows("values", metric=name) if r.grouping in (None, grouping)]
        rows = [forest_row(r, r.group) for r in records]
        if any(row["value"] is not None for row in rows):
            panels.append(forest(rows, title=result.metrics[name].title, width=_WIDTH))
    return panels


def gap_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per headline metric: each group's gap to the reference group, with a line at 0."""
    panels = []
    for name in drawn_gaps(result):
        gaps = result.rows("gaps", metric=name, grouping=grouping, against="reference")
        people = {r.group: r.n for r in result.rows("values", metric=name, grouping=grouping)}
        rows = [
            {
                **forest_row(r, r.group),
                "n": None,
                "pair": pair_text(r.group, r.reference, people),
                "low": r.joint_low,
                "high": r.joint_high,
                "limits": limits_of(r, result.findings),
            }
            for r in gaps
        ]
        if any(row["value"] is not None for row in rows):
            panels.append(forest(rows, title=result.metrics[name].title, zero=0.0, width=_WIDTH))
    return share_axis(panels)


def drawn(result: AgreementResult) -> list[str]:
    """Return the metrics to draw, headlines first; raw agreement is omitted beside PABAK, a linear function of it."""
    names = dict.fromkeys(r.metric for r in result.values if result.metrics[r.metric].compared)
    if "pabak" in names:
        names.pop("agreement", None)
    return sorted(names, key=lambda name: not result.metrics[name].headline)[:MOST_DRAWN]


def drawn_gaps(result: AgreementResult) -> list[str]:
    """Return the metrics with charted gaps: the headline metrics, or all drawn metrics if metrics were requested."""
    chosen = result.spec.metrics is not None
    return [name for name in drawn(result) if chosen or result.metrics[name].headline]


def part_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return the chart of the prevalence and bias parts of PABAK minus kappa, for each group."""
    records = [r for r in result.values if r.metric in PARTS and r.grouping in (None, grouping) and r.value is not None]
    rows = [{"label": r.group, "series": PARTS[r.metric], "value": r.value} for r in records]
    series = list(PARTS.values())
    return [forest(rows, title="PABAK minus kappa", series=series, zero=0.0, width=_WIDTH)] if rows else []


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "values": value_panels,
    "gaps": gap_panels,
    "parts": part_panels,
}
"""The charts by name; the first is the audit's main one."""
