"""The charts of the agreement audit: metrics by group, gaps, and why kappa and PABAK differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evenhand.charts import PALETTE, PANEL_WIDTH, data, series_scale
from evenhand.forest import forest, forest_row, limits_of, share_axis

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult

PARTS = {"prevalence_part": "prevalence", "bias_part": "bias"}
MOST_DRAWN = 4
"""The most metrics with a panel; the table has all of them."""
_WIDTH = PANEL_WIDTH - 60


def value_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per comparable metric: everybody and every group, with intervals."""
    panels = []
    for name in drawn(result):
        records = [r for r in result.rows("values", metric=name) if r.grouping in (None, grouping)]
        rows = [forest_row(r, r.group) for r in records]
        if any(row["value"] is not None for row in rows):
            panels.append(forest(rows, title=result.metrics[name].title, width=_WIDTH))
    return panels


def gap_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per headline metric: each group's gap to the reference group, and a line at 0."""
    panels = []
    for name in drawn_gaps(result):
        gaps = result.rows("gaps", metric=name, grouping=grouping, against="reference")
        rows = [
            {
                **forest_row(r, r.group),
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
    """Return the charted metrics, headlines first; raw agreement is PABAK on another scale."""
    names = dict.fromkeys(r.metric for r in result.values if result.metrics[r.metric].compared)
    if "pabak" in names:
        names.pop("agreement", None)
    return sorted(names, key=lambda name: not result.metrics[name].headline)[:MOST_DRAWN]


def drawn_gaps(result: AgreementResult) -> list[str]:
    """Return the metrics with charted gaps: the headlines."""
    chosen = result.spec.metrics is not None
    return [name for name in drawn(result) if chosen or result.metrics[name].headline]


def part_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return the parts of prevalence and bias in the difference of kappa and PABAK, in each group."""
    import altair as alt

    records = [r for r in result.values if r.metric in PARTS and r.grouping in (None, grouping) and r.value is not None]
    if not records:
        return []
    rows = [{"group": r.group, "part": PARTS[r.metric], "value": r.value} for r in records]
    order = list(dict.fromkeys(r.group for r in records))
    chart = alt.Chart(data(rows)).mark_bar(height=11)
    chart = chart.encode(
        x=alt.X("value:Q", title="PABAK minus kappa", axis=alt.Axis(tickCount=4, labelOverlap=True)),
        y=alt.Y("group:N", sort=order, title=None),
        color=alt.Color("part:N", scale=series_scale(list(PARTS.values()), PALETTE), legend=alt.Legend(title=None)),
    )
    return [chart.properties(title="PABAK minus kappa", width=_WIDTH, height=22 * len(order))]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "values": value_panels,
    "gaps": gap_panels,
    "parts": part_panels,
}
"""The charts by name; the first is the audit's main one."""
