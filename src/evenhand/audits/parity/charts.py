"""The charts of the parity audit: group values, worst gaps, calibration. They only read results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.parity.messages import SMALL
from evenhand.charts import MOST_LINES, MOST_ROWS, curve, forest, forest_row, share_axis
from evenhand.core.findings import limits_of
from evenhand.core.records import OK
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.parity.result import ParityResult

MIRRORED = {"fnr": "tpr", "tnr": "fpr"}
"""Metrics whose gaps equal those of another, since one is 1 minus the other."""


def headline_metrics(result: ParityResult) -> list[str]:
    """Return the metrics worth a panel, in the order of the table of metrics."""
    computed = dict.fromkeys(record.metric for record in result.values)
    chosen = [name for name in computed if result.metrics[name].headline]
    return chosen or list(computed)[:4]


def value_panels(result: ParityResult, grouping: str | None) -> list[Any]:
    """Return one panel per metric: every group's value and interval, by model."""
    groups = charted_groups(result, grouping)
    panels = []
    for name in headline_metrics(result):
        rows = [
            {**forest_row(r, r.group, r.model), "small": r.status.id in SMALL}
            for r in result.rows("values", grouping=grouping, stratum=None, metric=name)
            if r.group in groups
        ]
        metric = result.metrics[name]
        panels.append(forest(rows, title=metric.title, order=groups, percent=metric.unit == "share"))
    return panels


def charted_groups(result: ParityResult, grouping: str | None) -> list[str]:
    """Return the largest groups that fit on a chart, without the missing, in the order of the table.

    Small groups, which enter no gap, are drawn faint.
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
    """Return the rates with charted gaps: one of each mirrored pair."""
    computed = dict.fromkeys(gap.metric for gap in result.gaps)
    return [name for name in computed if result.metrics[name].unit == "share" and MIRRORED.get(name) not in computed]


def gap_panels(result: ParityResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel per grouping: the worst pair's difference in every rate, by model."""
    rates = gap_metrics(result)
    panels = []
    for grouping in groupings:
        gaps = result.rows("gaps", grouping=grouping, stratum=None, kind="difference", against="worst_pair")
        rows = [
            {**forest_row(gap, result.metrics[gap.metric].title, gap.model), "limits": limits_of(gap, result.findings)}
            for gap in gaps
            if gap.metric in rates
        ]
        order = [result.metrics[name].title for name in rates]
        panels.append(forest(rows, title=f"By {grouping}", order=order, style="points", zero=0.0))
    return share_axis(panels)


def are_probabilities(result: ParityResult) -> bool:
    """Tell whether all scores lie between 0 and 1, comparable with shares of people."""
    return all(record.bin_low >= 0 and record.bin_high <= 1 for record in result.calibration)


def calibration_panels(result: ParityResult, grouping: str | None) -> list[Any]:
    """Return one panel per model: outcome against score by bin, a line for each of the largest groups."""
    bins = result.rows("calibration", grouping=grouping)
    sizes: dict[str, int] = {}
    for record in bins:
        if record.group != MISSING:
            sizes[record.group] = sizes.get(record.group, 0) + record.n
    largest = sorted(sizes, key=lambda group: -sizes[group])[:MOST_LINES]
    ideal = are_probabilities(result)
    return [
        curve(
            [
                {"x": r.mean_score, "y": r.value, "low": r.low, "high": r.high, "series": r.group}
                for r in bins
                if r.model == model and r.status == OK and r.group in largest
            ],
            title=model,
            x="Mean score of the bin",
            y="Share with the outcome",
            order=largest,
            intervals="bars",
            points=True,
            domain=(0.0, 1.0) if ideal else None,
            diagonal=ideal,
        )
        for model in dict.fromkeys(record.model for record in bins)
    ]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "values": value_panels,
    "gaps": lambda result, grouping: gap_panels(result, [grouping] if grouping else []),
    "calibration": calibration_panels,
}
"""The charts by name; the first is the audit's main one."""
