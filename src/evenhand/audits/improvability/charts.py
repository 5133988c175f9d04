"""The charts of the improvability audit: accuracy by group with the 45-degree line, and p-values by margin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.improvability.tables import JUDGED
from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import ImprovabilityResult

STATUS_QUO = "status quo"
_TURN = np.linspace(0, 2 * np.pi, 49)
_MOST_PANELS = 6


def value_panel(result: ImprovabilityResult, utility: str | None = None) -> Any:
    """Return the values of two groups: the status quo and each candidate, with ellipses and the 45-degree line.

    With more than two groups these are the two furthest apart under the status quo.
    """
    import altair as alt

    high, low = shown_pair(result)
    name = utility or result.spec.fairness[0].name
    points: list[dict[str, Any]] = []
    rings: list[dict[str, Any]] = []
    for candidate in (None, *result.spec.candidates):
        own = {r.group: r for r in result.values if (r.candidate, r.utility) == (candidate, name)}
        x, y = own[high], own[low]
        if x.value is None or y.value is None:
            continue
        series = candidate or STATUS_QUO
        points.append({"algorithm": series, "x": x.value, "y": y.value})
        radius = math.sqrt(-2 * math.log(1 - result.spec.confidence))  # of the chi-square with two degrees of freedom
        for at, turn in enumerate(_TURN):
            rings.append(
                {
                    "algorithm": series,
                    "at": at,
                    "x": x.value + radius * (x.stderr or 0.0) * math.cos(turn),
                    "y": y.value + radius * (y.stderr or 0.0) * math.sin(turn),
                }
            )
    ends = [value for ring in rings for value in (ring["x"], ring["y"])]
    span = [min(ends), max(ends)]
    names = [STATUS_QUO, *result.spec.candidates]
    scale = alt.Scale(domain=span, zero=False, nice=True)
    across = alt.X("x:Q", title=high, scale=scale, axis=alt.Axis(tickCount=4, grid=True))
    up = alt.Y("y:Q", title=low, scale=scale, axis=alt.Axis(tickCount=4, grid=True))
    legend = alt.Legend(title=None, columns=2)
    colour = alt.Color("algorithm:N", scale=series_scale(names, PALETTE), legend=legend)
    line = alt.Chart(data([{"x": end, "y": end} for end in span])).mark_line(
        strokeDash=[4, 4], color="currentColor", opacity=0.6, strokeWidth=1.2, clip=True
    )
    ring = alt.Chart(data(rings)).mark_line(strokeWidth=1.1, opacity=0.55, clip=True)
    point = alt.Chart(data(points)).mark_point(filled=True, size=75, opacity=1)
    shape = alt.Shape("algorithm:N", scale=series_scale(names, SHAPES), legend=legend)
    layers = (
        line.encode(x=across, y=up)
        + ring.encode(x=across, y=up, color=colour, order="at:Q")
        + point.encode(x=across, y=up, color=colour, shape=shape)
    )
    return layers.properties(title=name.replace("_", " ").capitalize(), width=PANEL_WIDTH, height=PANEL_WIDTH)


def shown_pair(result: ImprovabilityResult) -> tuple[str, str]:
    """Return the two groups that the status quo sets furthest apart on the first split's training rows."""
    pair = next(iter(result.trials.values()))[0].worst[0]
    groups = result.inputs.sample.groups
    return groups[pair.high], groups[pair.low]


def curve_panels(result: ImprovabilityResult) -> list[Any]:
    """Return one panel a target: the p-value that decides by margin, a line a candidate, and the line to be under."""
    import altair as alt

    spec = result.spec
    names = list(spec.candidates)
    several = len(names) > 1
    panels = []
    keys = list(dict.fromkeys((r.test, r.target, r.group) for r in result.curves))
    kept = [key for key in keys if key[0] == JUDGED]
    kept += [key for key in keys if key[1] == "fairness" and key[0] != JUDGED]
    for test, target, group in kept[:_MOST_PANELS]:
        own = [r for r in result.curves if (r.test, r.target, r.group) == (test, target, group)]
        records = [{"candidate": r.candidate, "delta": r.delta, "p": r.p_adjusted} for r in own]
        legend = alt.Legend(title=None, columns=2) if several else None
        across = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
        x = alt.X("delta:Q", title="Margin: improved by at least", scale=alt.Scale(domain=[0, 1]), axis=across)
        which = "Adjusted p" if several else "Combined p"
        y = alt.Y("p:Q", title=which, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
        line = (
            alt.Chart(data(records))
            .mark_line(strokeWidth=1.8)
            .encode(
                x=x,
                y=y,
                color=alt.Color("candidate:N", scale=series_scale(names, PALETTE[1:]), legend=legend),
                strokeDash=alt.StrokeDash("candidate:N", sort=names, legend=None),
            )
        )
        limit = alt.Chart(data([{"p": spec.test.alpha}])).mark_rule(
            strokeDash=[4, 4], opacity=0.6, color="currentColor"
        )
        panel = (limit.encode(y="p:Q") + line).properties(
            title=target_words(target, group, test, JUDGED), width=PANEL_WIDTH, height=150
        )
        panels.append(panel)
    return panels


def target_words(target: str, group: str | None, test: str, default: str) -> str:
    """Return what a target is called in a report.

    Examples
    --------
    >>> target_words("group_accuracy", "Black", "signed", "signed")
    'Accuracy of Black'
    """
    words = {"fairness": "Fairness", "joint_accuracy": "Joint accuracy", "group_accuracy": f"Accuracy of {group}"}
    return words[target] + ("" if test == default else f", {test} test")


def power_panels(result: ImprovabilityResult) -> list[Any]:
    """Return power by the number of rows: a panel for the improvement as found, and one for the planned one."""
    import altair as alt

    names = list(result.spec.candidates)
    legend = alt.Legend(title=None, columns=2) if len(names) > 1 else None
    panels = []
    for scenario, title in (("found", "An improvement as found"), ("planned", "An improvement as planned")):
        own = [r for r in result.power if r.scenario == scenario and r.value is not None]
        records = [{"candidate": r.candidate, "rows": r.rows, "power": r.value} for r in own]
        sizes = sorted({r.rows for r in own})
        axis = alt.Axis(format="~s", values=sizes[::2], grid=False)
        chart = alt.Chart(data(records)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=28))
        panels.append(
            chart.encode(
                x=alt.X("rows:Q", title="Rows in all", scale=alt.Scale(type="log", nice=False), axis=axis),
                y=alt.Y("power:Q", title="Power", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
                color=alt.Color("candidate:N", scale=series_scale(names, PALETTE[1:]), legend=legend),
                strokeDash=alt.StrokeDash("candidate:N", sort=names, legend=None),
            ).properties(title=title, width=PANEL_WIDTH, height=150)
        )
    return panels
