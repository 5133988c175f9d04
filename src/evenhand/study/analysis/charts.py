"""The charts of a study: correlations, weights and factors, each as published and by people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.study.analysis.parts import DISTANCES, TARGETS
from evenhand.study.analysis.records import EstimateRecord, FactorRecord

if TYPE_CHECKING:
    from evenhand.study.analysis.result import StudyResult

_WORDS = {"published": "rows (published)", "participant_bootstrap": "people", "clustered": "people"}
_SERIES = ("rows (published)", "people")


def correlation_panels(result: StudyResult) -> list[Any]:
    """Return a panel for each condition and target: the correlation of each distance with it, with both intervals."""
    shown = [r for r in result.correlations if r.value is not None and r.target in TARGETS]
    ends = [end for r in shown for end in (r.value, r.low, r.high) if end is not None]
    domain = (min(0.0, *ends), max(0.0, *ends)) if ends else None
    panels = []
    for condition in result.conditions:
        for target in TARGETS:
            records = [r for r in shown if (r.condition, r.target) == (condition, target)]
            if records:
                title = f"{condition}: {target} distance".removeprefix(": ")
                panels.append(_interval_panel(records, title, "Rank correlation", DISTANCES, domain=domain))
    return panels


def weight_panel(result: StudyResult) -> Any:
    """Return the weight of trajectory against aggregate in each condition."""
    records = [
        r
        for r in result.regressions
        if r.term == "weight" and r.method in _WORDS and r.method != "clustered" and r.value is not None
    ]
    labels = {id(r): r.condition or "all" for r in records}
    order = list(dict.fromkeys(labels.values()))
    return _interval_panel(records, "Weight of trajectory", "Trajectory against aggregate", order, labels)


def factor_panels(result: StudyResult) -> list[Any]:
    """Return a panel for each condition: how often each factor was ticked."""
    order = list(dict.fromkeys(r.term for r in result.factors if " - " not in r.term))
    return [
        _interval_panel(
            [r for r in result.factors if r.condition == condition and r.term in order],
            condition or "All",
            "Share of answers",
            order,
            domain=(0.0, 1.0),
            percent=True,
        )
        for condition in dict.fromkeys(r.condition for r in result.factors)
    ]


def _interval_panel(
    records: Sequence[EstimateRecord | FactorRecord],
    title: str,
    axis: str,
    order: Sequence[str],
    labels: dict[int, str] | None = None,
    *,
    domain: tuple[float, float] | None = None,
    percent: bool = False,
) -> Any:
    """Return points with intervals, one line for each term, the two forms in colours and shapes of their own."""
    import altair as alt

    points = [
        {
            "term": (labels or {}).get(id(r), r.term),
            "form": _WORDS[r.method],
            "value": r.value,
            "low": r.low,
            "high": r.high,
        }
        for r in records
    ]
    legend = alt.Legend(title=None)
    base = alt.Chart(data(points)).encode(
        y=alt.Y("term:N", title=None, sort=list(order)),
        yOffset=alt.YOffset("form:N", sort=list(_SERIES)),
        color=alt.Color("form:N", scale=series_scale(_SERIES, PALETTE), legend=legend),
    )
    look = alt.Axis(tickCount=2, format="%") if percent else alt.Axis(tickCount=4)
    scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=True)
    rule = base.mark_rule(strokeWidth=2, opacity=0.75).encode(
        x=alt.X("low:Q", title=axis, scale=scale, axis=look), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("value:Q", title=axis, scale=scale, axis=look),
        shape=alt.Shape("form:N", scale=series_scale(_SERIES, SHAPES), legend=legend),
    )
    return (rule + point).properties(title=title, width=PANEL_WIDTH, height=alt.Step(30, **{"for": "position"}))
