"""The part of a report on waiting: a chart, tables, and how the numbers were computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evenhand.charts import Forest, forest, forest_row
from evenhand.core.display import DisplayTable, Figure, Method, figure_sentence, gap_table, value_table
from evenhand_wait.result import WaitResult


def panels(result: WaitResult, grouping: str | None) -> list[Forest]:
    """Return the mean of everybody and of every group, with intervals."""
    values = [value for value in result.values if value.grouping in (None, grouping)]
    return [forest([forest_row(value, value.group) for value in values], title="Mean waiting time, days")]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {"values": panels}


def parts(result: WaitResult) -> Iterator[Figure | DisplayTable]:
    """Yield the chart and the tables."""
    for grouping in result.groupings:
        told = [finding for finding in result.findings if finding.grouping == grouping]
        yield Figure(
            f"Waiting by {grouping}",
            "Points: mean days. Lines: intervals.",
            " ".join(finding.headline.text for finding in told),
            tuple(panels(result, grouping)),
            figure_sentence(told, ["mean_wait"], result.spec.finding_alpha),
        )
    yield value_table(result.values, result.metrics, "Every group", result.spec.confidence)
    yield gap_table(result.gaps, result.metrics, "Gaps between groups", result.spec.confidence)


def methods(_result: WaitResult) -> Iterator[Method]:
    """Yield how the numbers were computed."""
    yield Method(
        "Mean waiting time", "The mean, with Student's interval; gaps have Welch's.", "Welch 1947, Biometrika 34"
    )
