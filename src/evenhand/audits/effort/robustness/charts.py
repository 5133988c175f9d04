"""Specification curves: every model's value under each combination of choices, and beneath it what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.stats.types import BoolArray, IntArray

if TYPE_CHECKING:
    from evenhand.audits.effort.robustness.explore import Robustness
    from evenhand.audits.effort.robustness.ranking import Curve

MOST_DRAWN = 120  # specifications in one panel
_ROW, _LABELS = 12, 128  # height of an option's row, room for its name
_TITLES = {"eaif": "Individual fairness", "effort_parity": "Lowest parity by effort"}
_NO_MODEL = "#7a7f87"


def curve_panels(robustness: Robustness) -> list[Any]:
    """Return one specification curve for individual fairness and one for each grouping."""
    return [_panel(curve) for curve in robustness.curves]


def leading_model(curve: Curve) -> int:
    """Return the model that is the fairest most often (the first of several, or the only one)."""
    return int(np.argmax(curve.wins.reshape(-1, len(curve.models)).sum(axis=0)))


def drawn_places(curve: Curve) -> IntArray:
    """Return the specifications to draw, in the order of the leading model's value; undefined ones last.

    Above 120 they are taken at even distances in that order, and the audit's own in the place of its neighbour.
    """
    values = curve.value.reshape(-1, len(curve.models))[:, leading_model(curve)]
    order = np.argsort(values, kind="stable")
    if order.size <= MOST_DRAWN:
        return order
    places = np.linspace(0, order.size - 1, MOST_DRAWN).round().astype(np.int64)
    own = int(np.flatnonzero(order == _own_number(curve))[0])
    places[int(np.argmin(np.abs(places - own)))] = own
    return np.asarray(order[places])


def _own_number(curve: Curve) -> int:
    return int(np.ravel_multi_index(curve.own, curve.value.shape[:-1]))


def _panel(curve: Curve) -> Any:
    import altair as alt

    drawn = drawn_places(curve)
    own = int(np.flatnonzero(drawn == _own_number(curve))[0])
    palette = np.array([PALETTE[model % len(PALETTE)] for model in range(len(curve.models))])
    fairest = curve.fairest.reshape(-1, len(curve.models))[drawn]
    colour = np.where(fairest.sum(axis=1) == 1, palette[fairest.argmax(axis=1)], _NO_MODEL)
    taken = np.unravel_index(drawn, curve.value.shape[:-1])
    strips = [_strip("Fairest", curve.models, fairest, palette, own)] if len(curve.models) > 1 else []
    for choice, options in zip(curve.choices, taken, strict=True):
        if len(choice.options) > 1:
            marked = options[:, np.newaxis] == np.arange(len(choice.options))
            shade = colour[:, np.newaxis] if len(curve.models) > 1 else palette
            strips.append(_strip(choice.title, choice.labels, marked, shade, own))
    title = _TITLES[curve.metric] if curve.grouping is None else f"{_TITLES[curve.metric]}: {curve.grouping}"
    panel = alt.vconcat(_values(curve, drawn, own), *strips, spacing=6, title=title)
    return panel.resolve_scale(x="shared", y="independent", color="independent", shape="independent")


def _values(curve: Curve, drawn: IntArray, own: int) -> Any:
    """Return the curve: a point for each model and specification, and a line at the audit's own."""
    import altair as alt

    values = curve.value.reshape(-1, len(curve.models))[drawn]
    records = [
        {"x": x, "model": model, "value": float(values[x, at])}
        for at, model in enumerate(curve.models)
        for x in np.flatnonzero(np.isfinite(values[:, at])).tolist()
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
    return (_own_rule(len(drawn), own) + points).properties(width=PANEL_WIDTH, height=150)


def _strip(title: str, labels: Sequence[str], marked: BoolArray, colours: npt.NDArray[np.str_], own: int) -> Any:
    """Return a row for each label, marked at the specifications it holds for.

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
    return (_own_rule(len(marked), own) + marks).properties(width=PANEL_WIDTH, height=_ROW * len(labels), title=head)


def _x(drawn: int) -> Any:
    import altair as alt

    return alt.X("x:Q", title=None, axis=None, scale=alt.Scale(domain=[-1, drawn], nice=False))


def _own_rule(drawn: int, own: int) -> Any:
    import altair as alt

    rule = alt.Chart(data([{"x": own}])).mark_rule(strokeDash=[4, 3], color="currentColor", opacity=0.6)
    return rule.encode(x=_x(drawn))


def _runs(here: BoolArray) -> list[dict[str, Any]]:
    """Return the two ends of each run of neighbours, with a gap between runs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], here, [False]]).astype(np.int8)))
    ends = [x for first, after in edges.reshape(-1, 2).tolist() for x in (first - 0.5, after - 0.5, None)]
    return [{"x": x, "order": order} for order, x in enumerate(ends[:-1])]
