"""The charts of the effort audit: by weight, by effort, spread of effort, unfair pairs, specification curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenhand.audits.effort.choices import common_start
from evenhand.audits.effort.robustness import SpecificationCurve, recorded_curves
from evenhand.audits.effort.specification_chart import specification_panel
from evenhand.charts import MOST_LINES, Curve, Forest, curve, forest, forest_row, share_axis
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortResult, TrajectoryRecord

MOST_PAIRS = 12  # of groups, in one panel


def parity_panel(result: EffortResult, grouping: str) -> Curve:
    """Return the chart of parity by effort bin with intervals, one line per model."""
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
    """Return the first limit of a threshold on a metric, or None."""
    limits = (f.limit for f in result.findings if (f.metric, f.grouping) == (metric, grouping))
    return next((limit for limit in limits if limit is not None), None)


def spread_panel(result: EffortResult, grouping: str) -> Curve:
    """Return the chart of the distribution of effort in each of the largest groups."""
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
        people=sizes,
        intervals="none",
        percent_y=True,
        height=180,
    )


def weight_panel(result: EffortResult) -> Any:
    """Return the chart of individual fairness by weight, one line per model, with the audit's intervals."""
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
    """Return the charts of reversed pairs: each model beside a random score, and between groups."""
    groupings = dict.fromkeys(r.grouping for r in result.direction if r.grouping and grouping in (None, r.grouping))
    panels = [_direction_between(result, name) for name in groupings]
    whole = [_direction_of_all(result)] if grouping is None else []
    drawn = share_axis(whole + [panel for panel in panels if panel.rows])
    return [replace(panel, domain=(0.0, panel.ends()[1])) for panel in drawn]  # one kind of rate has one axis, from 0


def _direction_of_all(result: EffortResult) -> Forest:
    """Return each model's share of reversed pairs, beside the share of a random score."""
    whole = result.rows("direction", grouping=None)
    series = ["this model", "a random score"]
    rows = [forest_row(r, r.model, series[0]) for r in whole]
    rows += [{"label": r.model, "value": r.random, "series": series[1]} for r in whole if r.value is not None]
    return forest(rows, title="All people", series=series, percent=True)


def _direction_between(result: EffortResult, grouping: str) -> Forest:
    """Return the chart of reversed pairs between groups.

    If there are many pairs of groups, only the largest shares are shown.
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
    """Return small charts of the trajectories of each model's least fair pairs, at the first weight."""
    paths: dict[str, list[TrajectoryRecord]] = {}
    for record in result.trajectories:
        paths.setdefault(record.id, []).append(record)
    at = {step: position for position, step in enumerate(result.steps)}
    panels = []
    for model in dict.fromkeys(pair.model for pair in result.pairs):
        for pair in result.rows("pairs", model=model, weight=result.spec.weights[0])[:most]:
            people = ((pair.id_a, pair.score_a), (pair.id_b, pair.score_b))
            rows = [
                {"series": f"{person}: score {score:.2f}", "x": at[step.step], "y": step.value}
                for person, score in people
                for step in paths.get(person, [])
            ]
            panels.append(
                curve(
                    rows,
                    title=f"{model}: {pair.value:.2f} too far apart",
                    x="",
                    y="Value",
                    names=_short_names(result.steps),
                    points=True,
                    intervals="none",
                    height=130,
                )
            )
    return panels


def _short_names(steps: Sequence[str]) -> tuple[str, ...]:
    """Return the time steps' names without their common start: '2019' for 'income_2019'."""
    start = len(common_start(steps).rstrip("0123456789"))
    return tuple(step[start:] or step for step in steps)


def curves_of(result: EffortResult) -> tuple[SpecificationCurve, ...]:
    """Return the specification curves of a result; empty without `robustness`."""
    choices = result.spec.robustness
    return () if choices is None else recorded_curves(result.specifications, choices.grid(result.spec, result.steps))


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "parity": lambda result, grouping: [parity_panel(result, grouping)] if grouping else [],
    "weights": lambda result, _: [weight_panel(result)],
    "direction": lambda result, grouping: direction_panels(result, grouping),
    "spread": lambda result, grouping: [spread_panel(result, grouping)] if grouping else [],
    "pairs": lambda result, _: pair_panels(result),
    "specifications": lambda result, _: [specification_panel(curve) for curve in curves_of(result)],
}
"""The charts by name; the first is the audit's main one."""
