"""The charts of the reliability audit: curves by group, gaps, kappa against PABAK, features, and models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.charts import MOST_LINES, PALETTE, PANEL_WIDTH, Curve, curve, forest, forest_row, pair_text
from evenhand.core.records import matching

if TYPE_CHECKING:
    from evenhand.audits.reliability.result import ReliabilityGap, ReliabilityResult, ReliabilityValue

_LEVEL = "Share of entries that go wrong"
_HEIGHT = 190
_MOST_BARS = 12
PARTS = ("Cohen's kappa", "with prevalence", "with bias", "PABAK")
"""The lines of the chart that reproduces the paper's figure 2."""


class Run(NamedTuple):
    """The coordinates of one simulation: model, noise setting and grouping."""

    model: str
    setting: str
    grouping: str

    def __str__(self) -> str:
        return f"{self.model}, by {self.grouping}, noise {self.setting}"

    @property
    def columns(self) -> dict[str, str]:
        """The values of this simulation's coordinate columns, to select its records."""
        return self._asdict()


def runs(result: ReliabilityResult, grouping: str | None = None) -> list[Run]:
    """Return the simulations of a result; with `grouping`, only the simulations of that grouping."""
    every = dict.fromkeys(Run(str(r.model), r.setting, str(r.grouping)) for r in result.values)
    return [run for run in every if grouping in (None, run.grouping)]


def groups_of(result: ReliabilityResult, grouping: str) -> list[str]:
    """Return all groups of a grouping in a fixed order, so that each group has the same colour in all figures."""
    return list(dict.fromkeys(record.group for record in matching(result.values, grouping=grouping)))


def drawn_groups(result: ReliabilityResult, grouping: str) -> list[str]:
    """Return the groups to draw: all of them, or the largest ones if there are too many to colour."""
    groups = groups_of(result, grouping)
    if len(groups) <= len(PALETTE):
        return groups
    sizes = {record.group: record.n for record in matching(result.values, grouping=grouping)}
    largest = sorted(groups, key=lambda group: -sizes[group])[:MOST_LINES]
    return [group for group in groups if group in largest]


def curve_panels(result: ReliabilityResult, run: Run) -> list[Any]:
    """Return one panel per metric: one line per group, with confidence bands."""
    titles = {name: result.metrics[name].title for name in result.spec.metrics}
    defined = {record.metric for record in matching(result.values, **run.columns) if record.value is not None}
    return [_value_curves(result, run, name, title) for name, title in titles.items() if name in defined]


def companion_panels(result: ReliabilityResult, run: Run) -> list[Any]:
    """Return the panels of the components of ICC: the squared error and the variance of scores."""
    return [_value_curves(result, run, name, "Scores, squared") for name in ("mean_squared_error", "variance_second")]


def _value_curves(result: ReliabilityResult, run: Run, metric: str, axis: str) -> Curve:
    groups = drawn_groups(result, run.grouping)
    records = matching(result.values, metric=metric, **run.columns)
    people = {r.group: r.n for r in records}
    return curve(
        [_curve_row(r) for r in records if r.value is not None and r.group in groups],
        title=result.metrics[metric].title,
        x=_LEVEL,
        y=axis,
        order=groups,
        people=people,
        points=True,
        height=_HEIGHT,
    )


def _curve_row(record: ReliabilityValue | ReliabilityGap) -> dict[str, Any]:
    return {
        "series": record.group,
        "x": record.noise_level,
        "y": record.value,
        "low": record.joint_low,
        "high": record.joint_high,
    }


def gap_panels(result: ReliabilityResult, run: Run) -> list[Any]:
    """Return one panel per metric: the gap of each group to the reference, with bands simultaneous over levels."""
    panels, groups = [], drawn_groups(result, run.grouping)
    for name in result.spec.metrics:
        every = matching(result.gaps, metric=name, against="reference", **run.columns)
        gaps = [gap for gap in every if gap.value is not None and gap.group in groups]
        if not gaps:
            continue
        panels.append(
            curve(
                [_curve_row(gap) for gap in gaps if gap.noise_level is not None],
                title=result.metrics[name].title,
                x=_LEVEL,
                y="Gap",
                order=groups,
                points=True,
                level=0.0,
                height=150,
            )
        )
    return panels


def part_panels(result: ReliabilityResult, run: Run) -> list[Any]:
    """Return one panel per group: kappa and PABAK with bands, and kappa plus the part due to each index."""
    if not {"kappa", "pabak"} <= set(result.spec.metrics):
        return []
    return [_part_panel(result, run, group) for group in groups_of(result, run.grouping)]


def _part_panel(result: ReliabilityResult, run: Run, group: str) -> Curve:
    return curve(
        [*_ends(result, run, group), *_parts(result, run, group)],
        title=group,
        x=_LEVEL,
        y="Agreement of decisions",
        order=PARTS,
        dashed=PARTS[1:3],
        height=_HEIGHT,
    )


def _ends(result: ReliabilityResult, run: Run, group: str) -> Iterator[dict[str, Any]]:
    for metric in ("kappa", "pabak"):
        for r in matching(result.values, metric=metric, group=group, **run.columns):
            if r.value is not None:
                yield {**_curve_row(r), "series": result.metrics[metric].title}


def _parts(result: ReliabilityResult, run: Run, group: str) -> Iterator[dict[str, Any]]:
    kappa = matching(result.values, metric="kappa", group=group, **run.columns)
    for line, part in (("with prevalence", "prevalence_part"), ("with bias", "bias_part")):
        added = matching(result.values, metric=part, group=group, **run.columns)
        for whole, piece in zip(kappa, added, strict=True):
            if whole.value is not None:
                yield {"series": line, "x": whole.noise_level, "y": whole.value + (piece.value or 0.0)}


def attribution_panels(result: ReliabilityResult, run: Run) -> list[Any]:
    """Return the contributions of features' mistakes to the gaps, one panel per metric and group."""
    panels = []
    records = [r for r in matching(result.attribution, **run.columns) if r.value]
    for name, group in dict.fromkeys((r.metric, r.group) for r in records):
        parts = sorted((r for r in records if (r.metric, r.group) == (name, group)), key=lambda r: -abs(r.value or 0.0))
        rows = [
            {"label": r.feature, "value": r.value, "low": r.replicate_low, "high": r.replicate_high}
            for r in parts[:_MOST_BARS]
        ]
        title = f"{result.metrics[name].title}: {group} minus {parts[0].reference}"
        panels.append(forest(rows, title=title, zero=0.0, width=PANEL_WIDTH - 60))
    return panels


def model_gap_panels(result: ReliabilityResult, setting: str, grouping: str) -> list[Any]:
    """Return one panel per metric: the gaps of all models averaged over noise levels, with intervals."""
    where = {"setting": setting, "grouping": grouping, "noise_level": None, "against": "reference"}
    return _model_panels(result, grouping, lambda name: matching(result.gaps, metric=name, **where), zero=0.0)


def model_value_panels(result: ReliabilityResult, setting: str, grouping: str, noise_level: float) -> list[Any]:
    """Return one panel per metric: the values of all models and groups at one noise level, with intervals."""
    where = {"setting": setting, "grouping": grouping, "noise_level": noise_level}
    return _model_panels(result, grouping, lambda name: matching(result.values, metric=name, **where), zero=None)


def _model_panels(
    result: ReliabilityResult, grouping: str, records: Callable[[str], tuple[Any, ...]], zero: float | None
) -> list[Any]:
    return [
        forest(
            [
                forest_row(r, r.model, r.group) | {"pair": pair_text(r.group, getattr(r, "reference", None))}
                for r in records(name)
                if r.group is not None
            ],
            title=result.metrics[name].title,
            order=list(result.spec.model),
            series=groups_of(result, grouping),
            zero=zero,
            width=PANEL_WIDTH - 40,
        )
        for name in result.spec.metrics
    ]


def _chart_of_first_run(
    panels: Callable[[ReliabilityResult, Run], list[Any]],
) -> Callable[[Any, str | None], list[Any]]:
    """Wrap a chart so that it shows the first simulation of a grouping."""
    return lambda result, grouping: [panel for run in runs(result, grouping)[:1] for panel in panels(result, run)]


def _models_of_first_setting(result: ReliabilityResult, grouping: str | None) -> list[Any]:
    first = runs(result, grouping)[:1]
    return [panel for run in first for panel in model_gap_panels(result, run.setting, run.grouping)]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "values": _chart_of_first_run(curve_panels),
    "gaps": _chart_of_first_run(gap_panels),
    "parts": _chart_of_first_run(part_panels),
    "spread": _chart_of_first_run(companion_panels),
    "attribution": _chart_of_first_run(attribution_panels),
    "models": _models_of_first_setting,
}
"""The charts by name; the first is the audit's main one."""
