"""The charts of the parity audit: group values, worst gaps and calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.parity.four_fifths_chart import asked_for, bars_panel
from evenhand.audits.parity.messages import SMALL
from evenhand.charts import MOST_LINES, MOST_ROWS, Curve, curve, forest, forest_row, grids_of, pair_text, share_axis
from evenhand.core.findings import limits_of
from evenhand.core.records import OK, Value
from evenhand.table.roles import MISSING, TIMES

if TYPE_CHECKING:
    from evenhand.audits.parity.result import CalibrationRecord, ParityResult

MIRRORED = {"fnr": "tpr", "tnr": "fpr"}
"""Metrics with the same gaps as another metric, because one metric is 1 minus the other."""


def headline_metrics(result: ParityResult) -> list[str]:
    """Return the metrics to draw: the computed headline metrics, else the first four computed metrics."""
    computed = dict.fromkeys(record.metric for record in result.values)
    chosen = [name for name in computed if result.metrics[name].headline]
    return chosen or list(computed)[:4]


def value_panels(result: ParityResult, grouping: str | None) -> list[Any]:
    """Return one panel per metric: the groups' values with intervals by model, in descending order.

    The axes of shares start at 0. Intersectional groups are drawn as one grid per model.
    """
    groups, axes = charted_groups(result, grouping), _axes(result)
    panels: list[Any] = []
    for name in headline_metrics(result):
        records = [
            record
            for record in result.rows("values", grouping=grouping, stratum=None, metric=name)
            if record.group in groups
        ]
        rows = [{**forest_row(r, r.group, r.model), "small": r.status.id in SMALL} for r in records]
        is_share = result.metrics[name].unit == "share"
        options: dict[str, Any] = {
            "title": result.metrics[name].title,
            "order": _by_value(records, groups),
            "zero": _everybody(result, name, grouping),
            "dashed": "everybody",
            "domain": axes.get(name) if is_share else None,
        }
        asked = asked_for(result, name, grouping)
        bars = bars_panel(rows, records, asked, **options) if asked else None
        panel = bars or forest(rows, percent=is_share, **options)
        grids = grids_of(panel, TIMES) if TIMES in (grouping or "") else []
        panels += grids or [panel]
    return panels


def _axes(result: ParityResult) -> dict[str, tuple[float, float]]:
    """Return the axis range of each metric, from 0; it is the same for all groupings."""
    highest: dict[str, float] = {}
    for record in result.rows("values", stratum=None):
        ends = [end for end in (record.value, record.high) if end is not None and record.group != MISSING]
        highest[record.metric] = max([highest.get(record.metric, 0.0), *ends])
    return {metric: (0.0, end) for metric, end in highest.items() if end > 0}


def _by_value(records: Sequence[Value], groups: Sequence[str]) -> list[str]:
    """Return groups by their value under the first model, in descending order; undefined values come last."""
    first = {record.group: record.value for record in records if record.model == records[0].model}
    return sorted(groups, key=lambda group: (first.get(group) is None, -(first.get(group) or 0.0), group))


def _everybody(result: ParityResult, metric: str, grouping: str | None) -> float | None:
    """Return the value of all people, computed from a group's value and gap; None if there are several models."""
    gaps = result.rows("gaps", metric=metric, grouping=grouping, stratum=None, kind="difference", against="overall")
    if len({gap.model for gap in gaps}) != 1:
        return None
    values = {r.group: r.value for r in result.rows("values", metric=metric, grouping=grouping, stratum=None)}
    known = ((values.get(gap.group), gap.value) for gap in gaps)
    return next((value - gap for value, gap in known if value is not None and gap is not None), None)


def charted_groups(result: ParityResult, grouping: str | None) -> list[str]:
    """Return the largest groups that fit on a chart, without missing groups, in the order of the table.

    Groups too small for gaps are included; their intervals are drawn dashed.
    """
    sizes: dict[str, int] = {}
    for record in result.rows("values", grouping=grouping, stratum=None):
        if record.group != MISSING:
            sizes[record.group] = max(sizes.get(record.group, 0), record.n)
    largest = set(sorted(sizes, key=lambda group: -sizes[group])[:MOST_ROWS])
    return [group for group in sizes if group in largest]


def people_in_bins(result: ParityResult, grouping: str) -> dict[str, int]:
    """Return the number of people of each group, summed over score bins."""
    sizes = Counter[str]()
    records = result.rows("calibration", grouping=grouping)
    for record in records:
        sizes[record.group] += record.n if record.model == records[0].model else 0
    return sizes


def gap_metrics(result: ParityResult) -> list[str]:
    """Return the rates with charted gaps, only one of each mirrored pair."""
    computed = dict.fromkeys(gap.metric for gap in result.gaps)
    return [name for name in computed if result.metrics[name].unit == "share" and MIRRORED.get(name) not in computed]


def gap_panels(result: ParityResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel per grouping: the worst pair's difference in every rate, by model."""
    rates, people, panels = gap_metrics(result), _people(result), []
    for grouping in groupings:
        gaps = result.rows("gaps", grouping=grouping, stratum=None, kind="difference", against="worst_pair")
        rows = [
            {
                **forest_row(gap, result.metrics[gap.metric].title, gap.model),
                "limits": limits_of(gap, result.findings),
                "n": None,
                "pair": pair_text(gap.group, gap.reference, people.get((grouping, gap.model, gap.metric))),
            }
            for gap in gaps
            if gap.metric in rates
        ]
        order = [result.metrics[name].title for name in rates]
        panels.append(forest(rows, title=f"By {grouping}", order=order, style="points", zero=0.0))
    return share_axis(panels)


def _people(result: ParityResult) -> dict[tuple[str | None, ...], dict[str, int]]:
    """Return the number of people in each group, by grouping, model and metric."""
    people: dict[tuple[str | None, ...], dict[str, int]] = {}
    for record in result.values:
        if record.stratum is None and record.group is not None:
            people.setdefault((record.grouping, record.model, record.metric), {})[record.group] = record.n
    return people


def are_probabilities(result: ParityResult) -> bool:
    """Return whether all scores lie between 0 and 1, so that they can be compared with shares of people."""
    return all(record.bin_low >= 0 and record.bin_high <= 1 for record in result.calibration)


def are_numbers(result: ParityResult) -> bool:
    """Return whether the models predict numbers, such as salaries, in the unit of the outcome."""
    known = result.spec.known_metrics()
    return any(known[record.metric].of_number is not None for record in result.values)


def _calibration_axes(
    result: ParityResult, bins: Sequence[CalibrationRecord]
) -> tuple[str, str, tuple[float, float] | None]:
    """Return the titles of both axes, and their common range if score and outcome have the same unit."""
    if are_numbers(result):
        drawn = [each for r in bins for each in (r.mean_score, r.value, r.low, r.high) if each is not None]
        return "Mean prediction of the bin", "Mean outcome", (min(drawn, default=0.0), max(drawn, default=1.0))
    return "Mean score of the bin", "Share with the outcome", (0.0, 1.0) if are_probabilities(result) else None


def calibration_panels(result: ParityResult, grouping: str | None) -> list[Any]:
    """Return one panel per group, for the largest groups: outcome against score by bin."""
    people = people_in_bins(result, grouping or "")
    named = [group for group in people if group != MISSING]
    largest = sorted(named, key=lambda group: -people[group])[:MOST_LINES]
    return [_calibration_panel(result, grouping, group, largest) for group in largest]


def _calibration_panel(result: ParityResult, grouping: str | None, group: str, groups: Sequence[str]) -> Curve:
    """Return a group's panel with one line per model; with one model, the other groups are drawn in grey."""
    bins = [record for record in result.rows("calibration", grouping=grouping) if record.status == OK]
    models = list(dict.fromkeys(record.model for record in bins))
    others = [name for name in groups if name != group] if len(models) == 1 else []
    x, y, domain = _calibration_axes(result, bins)
    return curve(
        [_point(record, group) for record in bins if record.group in (group, *others)],
        title=f"{group} (n = {people_in_bins(result, grouping or '')[group]:,})",
        x=x,
        y=y,
        order=[*models, *map(_other, others)],
        faint=tuple(map(_other, others)),
        intervals="bars",
        points=True,
        domain=domain,
        diagonal=domain is not None,
    )


def _point(record: CalibrationRecord, group: str) -> dict[str, Any]:
    """Return a calibration bin as a point of the model's line or, for another group, of that group's grey line."""
    series = record.model if record.group == group else _other(record.group)
    return {"x": record.mean_score, "y": record.value, "low": record.low, "high": record.high, "series": series}


def _other(group: str) -> str:
    return f"other group: {group}"


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "values": value_panels,
    "gaps": lambda result, grouping: gap_panels(result, [grouping] if grouping else []),
    "calibration": calibration_panels,
}
"""The charts by name; the first is the audit's main one."""
