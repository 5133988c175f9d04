"""The charts of the effort audit: parity by effort, how effort is spread over groups, individual fairness by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.records import PathRecord
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
            if r.grouping == grouping and r.bin_low is not None and r.bin_high is not None
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


def spread_panels(result: EffortResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: the distribution of effort in each of the largest groups."""
    import altair as alt

    panels = []
    for grouping in groupings:
        own = [r for r in result.spread if r.grouping == grouping and r.group != MISSING]
        sizes = Counter[str]()
        for record in own:
            sizes[record.group] += record.n
        largest = [group for group, _ in sizes.most_common(MOST_GROUPS)]
        shares = {(r.group, r.effort_low): r.value for r in own}
        middles = sorted({(r.effort_low, r.effort_high) for r in own})
        records = [
            {"group": group, "effort": (low + high) / 2, "share": shares.get((group, low), 0.0)}
            for group in largest
            for low, high in middles
        ]
        names = sorted(largest)
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
    """Return individual fairness over weights from 0 to 1, a line for each model, with the audit's intervals on it."""
    import altair as alt

    lines = [{"model": r.model, "weight": r.weight, "value": r.value} for r in result.curve if r.value is not None]
    own = [
        {"model": r.model, "weight": r.weight, "value": r.value, "low": r.low, "high": r.high}
        for r in result.individual
        if r.value is not None
    ]
    models = list(dict.fromkeys(str(record["model"]) for record in own))
    legend = alt.Legend(title=None) if len(models) > 1 else None
    colour = alt.Color("model:N", scale=series_scale(models, PALETTE), legend=legend)
    x = alt.X("weight:Q", title="Weight of effort in the distance (the rest is on the aggregate)")
    y = alt.Y("value:Q", title="Individual fairness", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    line = alt.Chart(data(lines)).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour)
    points = alt.Chart(data(own)).encode(x=x, color=colour)
    rule = points.mark_rule(strokeWidth=2, opacity=0.75).encode(
        y=alt.Y("low:Q", title="Individual fairness"), y2="high:Q"
    )
    point = points.mark_point(filled=True, size=55, opacity=1).encode(
        y=y, shape=alt.Shape("model:N", scale=series_scale(models, SHAPES), legend=legend)
    )
    return (line + rule + point).properties(title="By weight of effort", width=PANEL_WIDTH, height=220)


def pair_panels(result: EffortResult, most: int = 2) -> list[Any]:
    """Return small plots of the trajectories of the least fair pairs, some for each model at the first weight."""
    import altair as alt

    paths: dict[str, list[PathRecord]] = {}
    for path in result.paths:
        paths.setdefault(path.id, []).append(path)
    short = _short_names([path.step for path in next(iter(paths.values()), [])])
    panels = []
    for model in dict.fromkeys(pair.model for pair in result.pairs):
        own = [pair for pair in result.pairs if pair.model == model and pair.weight == result.spec.weights[0]]
        for pair in own[:most]:
            names = [f"{pair.id_a}: score {pair.score_a:.2f}", f"{pair.id_b}: score {pair.score_b:.2f}"]
            records = [
                {"person": name, "time": short[step.step], "value": step.value}
                for name, person in zip(names, (pair.id_a, pair.id_b), strict=True)
                for step in paths.get(person, [])
            ]
            legend = alt.Legend(title=None, orient="bottom", direction="vertical", labelLimit=PANEL_WIDTH)
            chart = alt.Chart(data(records)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=36))
            panels.append(
                chart.encode(
                    x=alt.X("time:O", title=None, sort=list(short.values()), axis=alt.Axis(labelOverlap=True)),
                    y=alt.Y("value:Q", title="Value", axis=alt.Axis(tickCount=4, format="~s")),
                    color=alt.Color("person:N", scale=series_scale(names, PALETTE), legend=legend),
                    strokeDash=alt.StrokeDash("person:N", sort=names, legend=None),
                ).properties(title=f"{model}: {pair.value:.2f} too far apart", width=PANEL_WIDTH, height=130)
            )
    return panels


def _short_names(steps: list[str]) -> dict[str, str]:
    """Name time steps by what differs between them: '2019' for 'income_2019'."""
    shared = 0
    for letters in zip(*steps, strict=False):
        if len(set(letters)) > 1:
            break
        shared += 1
    start = len(steps[0][:shared].rstrip("0123456789")) if steps else 0
    return {step: step[start:] or step for step in steps}
