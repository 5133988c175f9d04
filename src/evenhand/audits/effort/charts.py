"""The charts of the effort audit: by weight, by effort, spread of effort, unfair pairs, specification curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.effort.choices import common_start
from evenhand.audits.effort.robustness import SpecificationCurve, recorded_curves
from evenhand.charts import MOST_LINES, PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.curve import curve
from evenhand.forest import Forest, forest, forest_row
from evenhand.stats.types import BoolArray, IntArray
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortResult, TrajectoryRecord

MOST_DRAWN = 120  # specifications in one panel
MOST_PAIRS = 12  # of groups, in one panel
_ROW, _LABELS = 12, 128  # height of an option's row, with room for its name
_TITLES = {"eaif": "Individual fairness", "eagf": "Lowest parity by effort"}
_NO_MODEL = "#7a7f87"


def parity_panel(result: EffortResult, grouping: str) -> Any:
    """Return the parity of each effort bin with its interval, a line for each model."""
    rows = [
        {"x": (r.bin_low + r.bin_high) / 2, "y": r.value, "low": r.low, "high": r.high, "series": r.model}
        for r in result.rows("gaps", metric="eagf", grouping=grouping)
        if r.bin_low is not None
    ]
    return curve(
        rows,
        title=grouping,
        x="Effort",
        y="Smallest / largest group mean",
        points=True,
        level=1.0,
        limit=_threshold_limit(result, "eagf", grouping),
    )


def _threshold_limit(result: EffortResult, metric: str, grouping: str | None = None) -> float | None:
    """Return the first threshold limit of a metric."""
    limits = (f.limit for f in result.findings if (f.metric, f.grouping) == (metric, grouping))
    return next((limit for limit in limits if limit is not None), None)


def spread_panel(result: EffortResult, grouping: str) -> Any:
    """Return the distribution of effort in each of the largest groups."""
    records = [r for r in result.rows("spread", grouping=grouping) if r.group != MISSING]
    sizes = Counter[str]()
    for record in records:
        sizes[record.group] += record.n
    largest = [group for group, _ in sizes.most_common(MOST_LINES)]
    shares = {(r.group, r.effort_low): r.value for r in records}
    ranges = sorted({(r.effort_low, r.effort_high) for r in records})
    rows = [
        {"x": (low + high) / 2, "y": shares.get((group, low), 0.0), "series": group}
        for group in largest
        for low, high in ranges
    ]
    order = sorted(largest)
    return curve(
        rows,
        title=grouping,
        x="Effort",
        y="Share of the group",
        order=order,
        intervals="none",
        percent_y=True,
        height=180,
    )


def weight_panel(result: EffortResult) -> Any:
    """Return individual fairness over weights from 0 to 1, a line for each model, with the audit's intervals."""
    audited = result.rows("values", metric="eaif")
    weights = {r.weight for r in audited}
    rows = [{"x": r.weight, "y": r.value, "low": r.low, "high": r.high, "series": r.model} for r in audited]
    rows += [{"x": r.weight, "y": r.value, "series": r.model} for r in result.curve if r.weight not in weights]
    return curve(
        sorted(rows, key=lambda row: row["x"]),
        title="By weight of effort",
        x="Weight of effort in the distance (the rest is on the aggregate)",
        y="Individual fairness",
        order=list(dict.fromkeys(r.model for r in audited)),
        intervals="bars",
        points=True,
        limit=_threshold_limit(result, "eaif"),
        height=220,
    )


def direction_panels(result: EffortResult, grouping: str | None = None) -> list[Any]:
    """Return the share of reversed pairs: of each model beside a random score, and between groups."""
    groupings = dict.fromkeys(r.grouping for r in result.direction if r.grouping and grouping in (None, r.grouping))
    panels = [_direction_between(result, name) for name in groupings]
    whole = [_direction_of_all(result)] if grouping is None else []
    return whole + [panel for panel in panels if panel.rows]


def _direction_of_all(result: EffortResult) -> Forest:
    """Return the share of reversed pairs of each model, beside that of a random score."""
    whole = result.rows("direction", grouping=None)
    series = ["this model", "a random score"]
    rows = [forest_row(r, r.model, series[0]) for r in whole]
    rows += [{"label": r.model, "value": r.random, "series": series[1]} for r in whole if r.value is not None]
    return forest(rows, title="All people", series=series, percent=True)


def _direction_between(result: EffortResult, grouping: str) -> Forest:
    """Return the share of reversed pairs between groups.

    Of many groups, only those with the largest shares are shown.
    """
    models = list(dict.fromkeys(r.model for r in result.rows("direction", grouping=None)))
    records = [r for r in result.rows("direction", grouping=grouping) if r.value is not None]
    pairs: dict[tuple[str | None, str | None], list[Any]] = {}
    for record in records:
        pairs.setdefault((record.group, record.reference), []).append(record)
    shown = list(pairs.values())
    if len(shown) > MOST_PAIRS:
        shown = sorted(shown, key=lambda of_pair: -max(r.value for r in of_pair))[:MOST_PAIRS]
    rows = [forest_row(r, f"{r.group} over {r.reference}", r.model) for of_pair in shown for r in of_pair]
    return forest(rows, title=grouping, series=models, percent=True)


def pair_panels(result: EffortResult, most: int = 2) -> list[Any]:
    """Return small plots of the trajectories of the least fair pairs for each model at the first weight."""
    import altair as alt

    paths: dict[str, list[TrajectoryRecord]] = {}
    for record in result.trajectories:
        paths.setdefault(record.id, []).append(record)
    short = _short_names(result.steps)
    panels = []
    for model in dict.fromkeys(pair.model for pair in result.pairs):
        for pair in result.rows("pairs", model=model, weight=result.spec.weights[0])[:most]:
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


def _short_names(steps: Sequence[str]) -> dict[str, str]:
    """Shorten the names of time steps to the part that differs: '2019' for 'income_2019'."""
    start = len(common_start(steps).rstrip("0123456789"))
    return {step: step[start:] or step for step in steps}


# Specification curves: every model's value under each combination of choices, with the choices beneath.


def curves_of(result: EffortResult) -> tuple[SpecificationCurve, ...]:
    """Return the specification curves of a result; none without `robustness`."""
    choices = result.spec.robustness
    return () if choices is None else recorded_curves(result.specifications, choices.grid(result.spec, result.steps))


def leading_model(curve: SpecificationCurve) -> int:
    """Return the model that is the fairest most often (the first of several, or the only one)."""
    return int(np.argmax(curve.wins.reshape(-1, len(curve.models)).sum(axis=0)))


def drawn_specifications(curve: SpecificationCurve) -> IntArray:
    """Return the specifications to draw, in the order of the leading model's value.

    Undefined values come last.

    Above 120 they are thinned evenly in that order, with the audit's own in place of its neighbour.
    """
    values = curve.value.reshape(-1, len(curve.models))[:, leading_model(curve)]
    order = np.argsort(np.round(values, 9), kind="stable")  # the same before and after numbers are written to JSON
    if order.size <= MOST_DRAWN:
        return order
    positions = np.linspace(0, order.size - 1, MOST_DRAWN).round().astype(np.int64)
    chosen = int(np.flatnonzero(order == _chosen_number(curve))[0])
    positions[int(np.argmin(np.abs(positions - chosen)))] = chosen
    return np.asarray(order[positions])


def _chosen_number(curve: SpecificationCurve) -> int:
    return int(np.ravel_multi_index(curve.chosen, curve.value.shape[:-1]))


def specification_panel(curve: SpecificationCurve) -> Any:
    """Return the specification curve of one metric."""
    import altair as alt

    drawn = drawn_specifications(curve)
    chosen = int(np.flatnonzero(drawn == _chosen_number(curve))[0])
    palette = np.array([PALETTE[model % len(PALETTE)] for model in range(len(curve.models))])
    fairest = curve.fairest.reshape(-1, len(curve.models))[drawn]
    colour = np.where(fairest.sum(axis=1) == 1, palette[fairest.argmax(axis=1)], _NO_MODEL)
    taken = np.unravel_index(drawn, curve.value.shape[:-1])
    strips = [_strip("Fairest", curve.models, fairest, palette, chosen)] if len(curve.models) > 1 else []
    for choice, options in zip(curve.choices, taken, strict=True):
        if len(choice.options) > 1:
            marked = options[:, np.newaxis] == np.arange(len(choice.options))
            shade = colour[:, np.newaxis] if len(curve.models) > 1 else palette
            strips.append(_strip(choice.title, choice.labels, marked, shade, chosen))
    title = _TITLES[curve.metric] if curve.grouping is None else f"{_TITLES[curve.metric]}: {curve.grouping}"
    panel = alt.vconcat(_points(curve, drawn, chosen), *strips, spacing=6, title=title)
    return panel.resolve_scale(x="shared", y="independent", color="independent", shape="independent")


def _points(curve: SpecificationCurve, drawn: IntArray, chosen: int) -> Any:
    """Return the curve: a point for each model and specification, and a line at the audit's own."""
    import altair as alt

    values = curve.value.reshape(-1, len(curve.models))[drawn]
    records = [
        {"x": x, "model": name, "value": float(values[x, model])}
        for model, name in enumerate(curve.models)
        for x in np.flatnonzero(np.isfinite(values[:, model])).tolist()
    ]
    models = list(curve.models)
    legend = alt.Legend(title=None) if len(models) > 1 else None
    axis = alt.Axis(tickCount=4, minExtent=_LABELS, maxExtent=_LABELS, grid=True)
    points = (
        alt.Chart(data(records))
        .mark_point(filled=True, size=11, opacity=1)
        .encode(
            x=_x(len(drawn)),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=axis),
            color=alt.Color("model:N", scale=series_scale(models, PALETTE), legend=legend),
            shape=alt.Shape("model:N", scale=series_scale(models, SHAPES), legend=legend),
        )
    )
    return (_chosen_rule(len(drawn), chosen) + points).properties(width=PANEL_WIDTH, height=150)


def _strip(title: str, labels: Sequence[str], marked: BoolArray, colours: npt.NDArray[np.str_], chosen: int) -> Any:
    """Return a row for each label, with marks at the specifications that use it.

    Neighbours of one colour are one mark, and a row's marks of one colour are one path: thousands of marks would
    make the page slow.
    """
    import altair as alt

    shades = np.broadcast_to(colours, marked.shape)
    records = []
    for row, label in enumerate(labels):
        for colour in dict.fromkeys(shades[marked[:, row], row].tolist()):
            runs = _runs(marked[:, row] & (shades[:, row] == colour))
            records += [{"label": label, "colour": colour, **end} for end in runs]
    axis = alt.Axis(minExtent=_LABELS, maxExtent=_LABELS, labelLimit=_LABELS - 8, labelFontSize=11, title=None)
    marks = (
        alt.Chart(data(records))
        .mark_line(strokeWidth=_ROW - 4, strokeCap="butt", invalid="break-paths-show-path-domains")
        .encode(
            x=_x(len(marked)),
            y=alt.Y("label:N", sort=list(labels), scale=alt.Scale(domain=list(labels)), axis=axis),
            color=alt.Color("colour:N", scale=None),
            detail="label:N",
            order="order:Q",
        )
    )
    head = alt.TitleParams(title, fontSize=11, offset=2, frame="bounds", anchor="start")
    size = {"width": PANEL_WIDTH, "height": _ROW * len(labels)}
    return (_chosen_rule(len(marked), chosen) + marks).properties(**size, title=head)


def _x(drawn: int) -> Any:
    import altair as alt

    return alt.X("x:Q", title=None, axis=None, scale=alt.Scale(domain=[-1, drawn], nice=False))


def _chosen_rule(drawn: int, chosen: int) -> Any:
    import altair as alt

    rule = alt.Chart(data([{"x": chosen}])).mark_rule(strokeDash=[4, 3], color="currentColor", opacity=0.6)
    return rule.encode(x=_x(drawn))


def _runs(here: BoolArray) -> list[dict[str, Any]]:
    """Return the two ends of each run of neighbours, with a gap between runs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], here, [False]]).astype(np.int8)))
    ends = [x for first, after in edges.reshape(-1, 2).tolist() for x in (first - 0.5, after - 0.5, None)]
    return [{"x": x, "order": order} for order, x in enumerate(ends[:-1])]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "parity": lambda result, grouping: [parity_panel(result, grouping)] if grouping else [],
    "weights": lambda result, _: [weight_panel(result)],
    "direction": lambda result, grouping: direction_panels(result, grouping),
    "spread": lambda result, grouping: [spread_panel(result, grouping)] if grouping else [],
    "pairs": lambda result, _: pair_panels(result),
    "specifications": lambda result, _: [specification_panel(curve) for curve in curves_of(result)],
}
"""The charts by name; the first is the audit's main one."""
