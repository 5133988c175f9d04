"""The charts of the effort audit: parity by effort, how effort is spread over groups, individual fairness by weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortResult

MOST_GROUPS = 6


def parity_panels(result: EffortResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: the parity of each effort bin with its interval, a line for each model."""
    import altair as alt

    panels = []
    for grouping in groupings:
        records = [
            {"model": r.model, "effort": (r.bin_low + r.bin_high) / 2, "parity": r.value, "low": r.low, "high": r.high}
            for r in result.bins
            if r.grouping == grouping and r.bin_low is not None and r.bin_high is not None and r.value is not None
        ]
        models = list(dict.fromkeys(str(record["model"]) for record in records))
        legend = alt.Legend(title=None)
        colour = alt.Color("model:N", scale=series_scale(models, PALETTE), legend=legend)
        base = alt.Chart(data(records)).encode(
            x=alt.X("effort:Q", title="Effort", axis=alt.Axis(tickCount=5)), color=colour
        )
        title = "Smallest / largest group mean"
        y = alt.Y("parity:Q", title=title, scale=alt.Scale(domain=[0, 1]))
        layers = (
            base.mark_area(opacity=0.13).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
            + base.mark_line(strokeWidth=1.8).encode(y=y)
            + base.mark_point(filled=True, size=45, opacity=1).encode(
                y=y, shape=alt.Shape("model:N", scale=series_scale(models, SHAPES), legend=legend)
            )
        )
        panels.append(layers.properties(title=grouping, width=PANEL_WIDTH, height=200))
    return panels


def spread_panels(result: EffortResult, groupings: Sequence[tuple[str, tuple[str, ...]]]) -> list[Any]:
    """Return one panel a grouping: the distribution of effort in each of the largest groups."""
    import altair as alt

    edges = np.linspace(0, max(float(result.effort.max()), 1e-9), 31)
    panels = []
    for grouping, columns in groupings:
        codes, labels = result.groups.joint([column_key(column) for column in columns])
        sizes = np.bincount(codes, minlength=len(labels))
        largest = [int(c) for c in np.argsort(-sizes, kind="stable") if labels[c] != MISSING and sizes[c]][:MOST_GROUPS]
        records = []
        for code in largest:
            counts, _ = np.histogram(result.effort[codes == code], edges)
            share = counts / max(counts.sum(), 1)
            centres = (edges[:-1] + edges[1:]) / 2
            records += [
                {"group": labels[code], "effort": float(x), "share": float(s)}
                for x, s in zip(centres, share, strict=True)
            ]
        names = [labels[code] for code in largest]
        chart = alt.Chart(data(records)).mark_line(strokeWidth=1.8, interpolate="monotone")
        panels.append(
            chart.encode(
                x=alt.X("effort:Q", title="Effort"),
                y=alt.Y("share:Q", title="Share of the group", axis=alt.Axis(format="%", tickCount=4)),
                color=alt.Color("group:N", scale=series_scale(names, PALETTE), legend=alt.Legend(title=None)),
                strokeDash=alt.StrokeDash("group:N", sort=names, legend=None),
            ).properties(title=grouping, width=PANEL_WIDTH, height=180)
        )
    return panels


def weight_panel(result: EffortResult) -> Any:
    """Return individual fairness of every model at each weight, with intervals."""
    import altair as alt

    records = [
        {"model": r.model, "weight": f"weight {r.weight:g}", "value": r.value, "low": r.low, "high": r.high}
        for r in result.individual
        if r.value is not None
    ]
    models = list(dict.fromkeys(str(record["model"]) for record in records))
    legend = alt.Legend(title=None) if len(models) > 1 else None
    base = alt.Chart(data(records)).encode(
        y=alt.Y("weight:N", title=None),
        yOffset=alt.YOffset("model:N", sort=models),
        color=alt.Color("model:N", scale=series_scale(models, PALETTE), legend=legend),
    )
    x = alt.X("value:Q", title="Individual fairness", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    rule = base.mark_rule(strokeWidth=2, opacity=0.75).encode(
        x=alt.X("low:Q", scale=alt.Scale(zero=False)), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=x, shape=alt.Shape("model:N", scale=series_scale(models, SHAPES), legend=legend)
    )
    height = alt.Step(max(26, 11 * len(models) + 8), **{"for": "position"})
    return (rule + point).properties(title="By weight of effort", width=PANEL_WIDTH, height=height)
