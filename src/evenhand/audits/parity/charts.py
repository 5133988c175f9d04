"""The charts of the parity audit: group values, worst gaps, calibration. They only read results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.parity.metrics import METRICS
from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.parity.result import ParityResult

MOST_GROUPS = 24
MOST_LINES = 6
MIRRORED = {"fnr": "tpr", "tnr": "fpr"}
"""Metrics whose gaps equal those of another, one being 1 minus the other."""


def group_chart(result: ParityResult, grouping: str) -> Any:
    """Return all panels of one grouping side by side, for a notebook."""
    import altair as alt

    return alt.concat(*group_panels(result, grouping, headline_metrics(result)), columns=2)


def headline_metrics(result: ParityResult) -> list[str]:
    """Return the metrics worth a panel, in the order of the table of metrics."""
    computed = dict.fromkeys(record.metric for record in result.groups)
    chosen = [name for name in computed if name not in METRICS or METRICS[name].headline]
    return chosen or list(computed)[:4]


def group_panels(result: ParityResult, grouping: str, metrics: Sequence[str]) -> list[Any]:
    """Return one panel a metric: every group's value and interval, by model."""
    shown = charted_groups(result, grouping)
    panels = []
    for name in metrics:
        records = [
            {"group": r.group, "model": r.model, "value": r.value, "low": r.low, "high": r.high}
            for r in result.groups
            if (r.grouping, r.stratum, r.metric) == (grouping, None, name) and r.value is not None and r.group in shown
        ]
        title = METRICS[name].title if name in METRICS else name
        panels.append(_forest(records, "group", shown, title, percent=name in METRICS and METRICS[name].percent))
    return panels


def charted_groups(result: ParityResult, grouping: str) -> list[str]:
    """Return the groups that fit on a chart: the largest, without the missing, in the order of the table."""
    sizes: dict[str, int] = {}
    for record in result.groups:
        if record.grouping == grouping and record.stratum is None and record.group != MISSING:
            sizes[record.group] = max(sizes.get(record.group, 0), record.n)
    largest = set(sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS])
    return [group for group in sizes if group in largest and sizes[group] >= result.spec.min_count]


def gap_panels(result: ParityResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: the worst pair's difference in every rate, by model."""
    rates = [name for name in dict.fromkeys(g.metric for g in result.gaps) if name in METRICS and METRICS[name].percent]
    rates = [name for name in rates if MIRRORED.get(name) not in rates]
    panels = []
    for grouping in groupings:
        records = [
            {"group": METRICS[g.metric].title, "model": g.model, "value": g.value, "low": g.low, "high": g.high}
            for g in result.gaps
            if (g.grouping, g.stratum, g.kind, g.against) == (grouping, None, "difference", "worst_pair")
            and g.metric in rates
            and g.value is not None
        ]
        order = [METRICS[name].title for name in rates]
        panels.append(_forest(records, "group", order, grouping, percent=True))
    return panels


def _forest(records: list[dict[str, Any]], row: str, order: list[str], title: str, *, percent: bool) -> Any:
    """Return points with intervals, one row a group, models side by side within it."""
    import altair as alt

    models = list(dict.fromkeys(record["model"] for record in records))
    axis = alt.Axis(format="%" if percent else "~g", tickCount=4, title=None)
    legend = alt.Legend(title=None) if len(models) > 1 else None
    base = alt.Chart(data(records)).encode(
        y=alt.Y(f"{row}:N", sort=order, title=None),
        yOffset=alt.YOffset("model:N", sort=models),
        color=alt.Color("model:N", sort=models, scale=series_scale(models, PALETTE), legend=legend),
    )
    rule = base.mark_rule(strokeWidth=2, opacity=0.75).encode(x=alt.X("low:Q", axis=axis), x2="high:Q")
    point = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("value:Q", axis=axis),
        shape=alt.Shape("model:N", sort=models, scale=series_scale(models, SHAPES), legend=legend),
    )
    step = max(26, 11 * len(models) + 8)
    return (rule + point).properties(title=title, width=PANEL_WIDTH, height=alt.Step(step, **{"for": "position"}))


def are_probabilities(result: ParityResult) -> bool:
    """Tell whether all scores lie between 0 and 1, so that they can be held against shares of people."""
    return all(record.bin_low >= 0 and record.bin_high <= 1 for record in result.calibration)


def calibration_panels(result: ParityResult, grouping: str) -> list[Any]:
    """Return one panel a model: outcome against score by bin, a line for each of the largest groups."""
    import altair as alt

    sizes: dict[str, int] = {}
    for record in result.calibration:
        if record.grouping == grouping and record.group != MISSING:
            sizes[record.group] = sizes.get(record.group, 0) + record.n
    largest = sorted(sizes, key=lambda group: -sizes[group])[:MOST_LINES]
    panels = []
    for model in dict.fromkeys(record.model for record in result.calibration):
        records = [
            {"group": r.group, "score": r.mean_score, "value": r.value, "low": r.low, "high": r.high}
            for r in result.calibration
            if (r.model, r.grouping, r.status) == (model, grouping, "ok") and r.group in largest
        ]
        ends = (0.0, 1.0) if are_probabilities(result) else ()
        scale = alt.Scale(domain=[0, 1]) if ends else alt.Scale(zero=False)
        ideal = alt.Chart(data([{"score": end, "value": end} for end in ends])).mark_line(
            color="currentColor", opacity=0.45, strokeDash=[4, 4]
        )
        base = alt.Chart(data(records)).encode(
            color=alt.Color("group:N", scale=series_scale(largest, PALETTE), legend=alt.Legend(title=None)),
            x=alt.X("score:Q", title="Mean score of the bin", axis=alt.Axis(tickCount=5), scale=scale),
        )
        layers = (
            ideal.encode(x="score:Q", y="value:Q")
            + base.mark_rule(opacity=0.35).encode(y=alt.Y("low:Q", title="Share with the outcome"), y2="high:Q")
            + base.mark_line(strokeWidth=1.5).encode(y="value:Q")
            + base.mark_point(filled=True, size=40, opacity=1).encode(
                y="value:Q",
                shape=alt.Shape("group:N", scale=series_scale(largest, SHAPES), legend=alt.Legend(title=None)),
            )
        )
        panels.append(layers.properties(title=model, width=PANEL_WIDTH, height=200))
    return panels
