"""The charts of the improvability audit: frontier, values by group, p-values by margin, and power."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.improvability.curves import SCENARIOS
from evenhand.audits.improvability.frontier import frontier_panels
from evenhand.audits.improvability.metrics import FAIRNESS
from evenhand.audits.improvability.result import JUDGED
from evenhand.audits.improvability.spec import STATUS_QUO
from evenhand.charts import PANEL_WIDTH, Curve, curve
from evenhand.charts.look import round_ticks
from evenhand.core.display import DESCRIBES, Figure
from evenhand.core.records import OVERALL, matching
from evenhand.messages import Message
from evenhand.messages.formats import show, show_confidence

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import ImprovabilityResult

_MOST_PANELS = 6


def value_panels(result: ImprovabilityResult, _: str | None = None) -> list[Any]:
    """Return one panel per utility: the values of two groups under the status quo and all candidates.

    Each point is the status quo or a candidate. With more than two groups, these are the groups furthest apart under
    the status quo. Ellipses show confidence regions, and the 45-degree line shows equal values of both groups.
    """
    utilities = (*result.spec.fairness, result.spec.utility)
    panels = [_value_panel(result, name) for name in dict.fromkeys(utility.name for utility in utilities)]
    return [panels[0], *(panel for panel in panels[1:] if panel.rows)]


def _value_panel(result: ImprovabilityResult, metric: str) -> Curve:
    high, low = result.furthest_apart
    radius = math.sqrt(-2 * math.log(1 - result.spec.confidence))  # of the chi-square with two degrees of freedom
    rows: list[dict[str, Any]] = []
    people: dict[str, list[int]] = {high: [], low: []}
    algorithms = (STATUS_QUO, *result.spec.candidates)
    for model in algorithms:
        values = matching(result.values, model=model, metric=metric)
        of_group = {v.group: (v.value, radius * (v.stderr or 0.0)) for v in values if v.value is not None}
        if {high, low} <= of_group.keys():
            (x, across), (y, along) = of_group[high], of_group[low]
            for value in values:
                people.get(value.group, []).append(value.n)
            sides = {"left": x - across, "right": x + across, "low": y - along, "high": y + along}
            rows.append({"series": model_title(model), "x": x, "y": y, **sides})
    ends = [row[name] for row in rows for name in ("left", "right", "low", "high")]
    ticks = round_ticks(min(ends), max(ends)) if ends and min(ends) < max(ends) else [0.0, 1.0]
    is_share = result.metrics[metric].unit == "share"
    return curve(
        rows,
        title=result.metrics[metric].title,
        x=f"{high}{_counted(people[high])}",
        y=f"{low}{_counted(people[low])}",
        order=[model_title(model) for model in algorithms],
        intervals="ellipses",
        points=True,
        domain=(ticks[0], ticks[-1]),
        percent_x=is_share,
        percent_y=is_share,
        diagonal=True,
        height=PANEL_WIDTH,
    )


def _counted(people: Sequence[int]) -> str:
    """Return the number of people in a group, or its range if algorithms count different people."""
    if not people:
        return ""
    few, many = min(people), max(people)
    return f" (n = {many:,})" if few == many else f" (n = {few:,} to {many:,})"


def model_title(model: str) -> str:
    """Return the display name of a model.

    Examples
    --------
    >>> model_title("status_quo"), model_title("lasso")
    ('status quo', 'lasso')
    """
    return "status quo" if model == STATUS_QUO else model


def curve_panels(result: ImprovabilityResult, _: str | None = None) -> list[Any]:
    """Return one panel per target: the deciding p-value by margin, one line per candidate, and the level.

    The published test has a panel only for fairness.
    """
    keys = list(dict.fromkeys((point.test, point.metric, point.group) for point in result.curves))
    shown = [key for key in keys if key[0] == JUDGED]
    shown += [key for key in keys if key[0] != JUDGED and key[1] == FAIRNESS]
    return [
        curve(
            [
                {"x": point.margin, "y": point.p_adjusted, "series": point.model}
                for point in matching(result.curves, test=test, metric=metric, group=group)
            ],
            title=target_title(metric, group) + ("" if test == JUDGED else f", {test} test"),
            x="Margin: improved by at least",
            y=f"{p_title(result).capitalize()}",
            percent_x=True,
            level=result.spec.test.alpha,
            **_line_options(result),
        )
        for test, metric, group in shown[:_MOST_PANELS]
    ]


def _line_options(result: ImprovabilityResult) -> dict[str, Any]:
    """Return the common options of panels of shares with one line per candidate."""
    return {"order": list(result.spec.candidates), "intervals": "none", "domain": (0.0, 1.0), "height": 150}


def target_title(metric: str, group: str) -> str:
    """Return the display name of a target.

    Examples
    --------
    >>> target_title("improvable_accuracy", "Black"), target_title("improvable_accuracy", "(overall)")
    ('Accuracy of Black', 'Joint accuracy')
    """
    if metric == FAIRNESS:
        return "Fairness"
    return "Joint accuracy" if group == OVERALL else f"Accuracy of {group}"


def p_title(result: ImprovabilityResult) -> str:
    """Return the name of the deciding p-value."""
    p_name = "combined p" if result.spec.test.design == "splits" else "p"
    return "adjusted p" if len(result.spec.candidates) > 1 else p_name


def power_panels(result: ImprovabilityResult, _: str | None = None) -> list[Any]:
    """Return the panels of power by number of rows, for the estimated and for the planned improvement."""
    return [
        curve(
            [
                {"x": record.n, "y": record.value, "series": record.model}
                for record in matching(result.power, scenario=scenario)
                if record.value is not None
            ],
            title=f"An improvement as {scenario}",
            x="Rows in all",
            y="Power",
            points=True,
            log_x=True,
            percent_y=True,
            **_line_options(result),
        )
        for scenario in SCENARIOS
    ]


# Figures of a report -------------------------------------------------------------------------------------------------


def value_figure(result: ImprovabilityResult) -> Figure:
    """Return the chart of values by group."""
    high, low = result.furthest_apart
    metric = result.metrics[result.spec.fairness[0].name]
    described = [
        f"{model_title(str(value.model))}, {value.group}: {show(value.value, metric.style())}"
        for value in matching(result.values, metric=metric.name)
        if value.group in (high, low)
    ]
    better = "to the upper right" if result.better == "higher" else "to the lower left"
    own = result.spec.utility.name not in {utility.name for utility in result.spec.fairness}
    accuracy = (
        f"the panel of {result.metrics[result.spec.utility.name].title_in_sentence} shows accuracy"
        if own
        else f"{better} is more accurate"
    )
    return Figure(
        "Values by group",
        f"The value of each algorithm for {high} and for {low}{_over_splits(result)}, with "
        f"{show_confidence(result.spec.confidence)} ellipses. On the dashed line both groups are served equally: "
        f"nearer to it is fairer; {accuracy}.",
        f"{'; '.join(described)}.",
        tuple(value_panels(result)),
        _shows(result),
    )


def _shows(result: ImprovabilityResult) -> Message:
    """Return the headline on the first candidate's fairness."""
    return next((finding.headline for finding in result.findings), DESCRIBES)


def _over_splits(result: ImprovabilityResult) -> str:
    return ", the mean over the splits" if result.spec.test.design == "splits" else ""


def curve_figure(result: ImprovabilityResult) -> Figure:
    """Return the chart of p-values by margin."""
    described = [
        f"{m.model}, {target_title(m.metric, m.group)}{'' if m.test == JUDGED else f', {m.test} test'}: largest "
        f"margin {show(m.value, 'percent')}"
        for m in result.margins
    ]
    return Figure(
        "P-values by margin",
        f"The {p_title(result)} where an improvement by at least the margin is claimed. It is shown as far as "
        f"the line stays below {result.spec.test.alpha:g} (dashed) from a margin of 0 on. A curve that rises and then "
        "falls again, as that of the published test may, must not be read from its end; nothing rests on the published "
        "test.",
        f"{'; '.join(described)}.",
        tuple(curve_panels(result)),
        _shows(result),
    )


def power_figure(result: ImprovabilityResult) -> Figure:
    """Return the chart of power by the number of rows."""
    plan = result.spec.plan
    chances: dict[str, dict[str, str]] = {}
    for record in matching(result.power, n=result.n):
        chances.setdefault(record.model, {})[record.scenario] = show(record.value, "percent")
    described = [
        f"{model}, with {result.n:,} rows: {' and '.join(f'{chance} as {scenario}' for scenario, chance in of.items())}"
        for model, of in chances.items()
    ]
    return Figure(
        "Power",
        f"The chance that an improvement is shown{adjusted_clause(result)}, by the number of rows: one as the "
        f"candidate had it on the test rows, and a planned one (accuracy up by {show(plan.gain, 'percent')}, gap down "
        f"by {show(plan.reduction, 'percent')}).",
        f"{'; '.join(described)}.",
        tuple(power_panels(result)),
        DESCRIBES,
    )


def adjusted_clause(result: ImprovabilityResult) -> str:
    """Return a clause on the margin of the power calculation and the adjustment for several candidates."""
    several, margin = len(result.spec.candidates), min(result.spec.test.margins)
    where = "" if margin == 0 else f" at a margin of {show(margin, 'percent')}"
    return f"{where}, adjusted for all {several} candidates" if several > 1 else where


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "frontier": frontier_panels,
    "values": value_panels,
    "margins": curve_panels,
    "power": power_panels,
}
"""The charts by name; the first is the audit's main one."""
