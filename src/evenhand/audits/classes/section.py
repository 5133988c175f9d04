"""The report section on classes: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.charts import Forest, forest, forest_row
from evenhand.core.display import DisplayTable, Figure, Method, figure_sentence, gap_table, value_table
from evenhand.core.methods import method
from evenhand.messages.formats import show_confidence

if TYPE_CHECKING:
    from evenhand.audits.classes.result import ClassesResult

_method = partial(method, "evenhand.audits.classes")


def value_panels(result: ClassesResult, grouping: str | None) -> list[Forest]:
    """Return one panel per class: every group's share in the class, with intervals."""
    return _panels(result, grouping, "class_rate")


def recall_panels(result: ClassesResult, grouping: str | None) -> list[Forest]:
    """Return one panel per class: the share of each group's class members assigned to the class."""
    return _panels(result, grouping, "class_recall")


def _panels(result: ClassesResult, grouping: str | None, metric: str) -> list[Forest]:
    panels = []
    for label in result.labels:
        records = result.rows("values", metric=metric, grouping=grouping, label=label)
        if any(record.value is not None for record in records):
            rows = [forest_row(record, record.group) for record in records]
            panels.append(forest(rows, title=label, percent=True))
    return panels


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {"values": value_panels, "recall": recall_panels}
"""The charts by name; the first is the audit's main one."""


def parts(result: ClassesResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    spec = result.spec
    figures = (
        ("class_rate", "Share of each group in each class", value_panels),
        ("class_recall", "Of those who belong to a class, the share put into it", recall_panels),
    )
    for grouping in result.groupings:
        for metric, title, panels in figures:
            drawn = panels(result, grouping)
            findings = [f for f in result.findings if f.grouping == grouping and f.metric == metric]
            if drawn:
                yield Figure(
                    f"{title}, by {grouping}",
                    f"Lines are {show_confidence(spec.confidence)} intervals, each on its own.",
                    " ".join(str(finding.headline) for finding in findings),
                    tuple(drawn),
                    figure_sentence(findings, [metric], spec.finding_alpha),
                )
    of_class = {"Class": lambda r: r.label}
    yield value_table(result.values, result.metrics, "Every class and group", spec.confidence, extra=of_class)
    yield gap_table(result.gaps, result.metrics, "Differences between groups", spec.confidence, extra=of_class)


def methods(result: ClassesResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    computed = [*(value.metric for value in result.values), *(gap.metric for gap in result.gaps)]
    for name in dict.fromkeys(computed):
        metric = result.metrics[name]
        yield Method(metric.title, f"{metric.formula}.", metric.reference)
    yield _method("shares")
    if any(gap.metric == "dominance" for gap in result.gaps):
        yield _method("dominance")
