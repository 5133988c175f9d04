"""The report section on rankings: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.charts import Curve, Forest, curve, forest, forest_row
from evenhand.core.display import (
    DisplayTable,
    Figure,
    Method,
    Number,
    Range,
    figure_sentence,
    gap_table,
    make_table,
    value_table,
)
from evenhand.core.methods import method
from evenhand.messages.formats import show_confidence

if TYPE_CHECKING:
    from evenhand.audits.ranking.result import RankingResult

_method = partial(method, "evenhand.audits.ranking")


def value_panels(result: RankingResult, grouping: str | None) -> list[Forest]:
    """Return one panel per metric: all groups under all models, with intervals."""
    panels = []
    for name in _metrics(result):
        metric = result.metrics[name]
        records = result.rows("values", metric=name, grouping=grouping)
        rows = [forest_row(record, record.group, record.model) for record in records]
        if rows:
            panels.append(forest(rows, title=metric.title, percent=metric.unit == "share"))
    return panels


def shortlist_panels(result: RankingResult, grouping: str | None) -> list[Curve]:
    """Return one panel per model: each group's share among the first k of a list, for every k."""
    panels = []
    for model in dict.fromkeys(record.model for record in result.shortlists):
        records = result.rows("shortlists", model=model, grouping=grouping)
        if records:
            points = [{"x": r.k, "y": r.value, "low": r.low, "high": r.high, "series": r.group} for r in records]
            panels.append(
                curve(points, title=model, x="Places on the shortlist", y="Share of the group", percent_y=True)
            )
    return panels


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {"values": value_panels, "shortlists": shortlist_panels}
"""The charts by name; the first is the audit's main one."""


def _metrics(result: RankingResult) -> list[str]:
    return list(dict.fromkeys(record.metric for record in result.values))


def parts(result: RankingResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    spec, confidence = result.spec, show_confidence(result.spec.confidence)
    for grouping in result.groupings:
        findings = [finding for finding in result.findings if finding.grouping == grouping]
        described = " ".join(str(finding.headline) for finding in findings)
        yield Figure(
            f"Groups in the same lists, by {grouping}",
            f"Means over lists. Lines are {confidence} intervals, each on its own. Exposure is 1 on average.",
            described,
            tuple(value_panels(result, grouping)),
            figure_sentence(findings, _metrics(result), spec.finding_alpha),
        )
        if panels := shortlist_panels(result, grouping):
            yield Figure(
                f"Shortlists of every size, by {grouping}",
                f"Bands are {confidence} intervals that hold for all sizes and groups together.",
                described,
                tuple(panels),
                figure_sentence(findings, ["shortlist_rate"], spec.finding_alpha),
            )
    lists = {"Lists": lambda r: Number(r.lists, "count")}
    yield value_table(result.values, result.metrics, "Every group", spec.confidence, extra=lists)
    yield gap_table(result.gaps, result.metrics, "Differences within lists", spec.confidence, extra=lists)
    yield _shortlist_table(result)


def _shortlist_table(result: RankingResult) -> DisplayTable:
    columns: dict[str, Callable[[Any], Any]] = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Group": lambda r: r.group,
        "Places": lambda r: Number(r.k, "count"),
        "Lists": lambda r: Number(r.lists, "count"),
        "Candidates": lambda r: Number(r.n, "count"),
        "Share": lambda r: Number(r.value, "percent"),
        f"{show_confidence(result.spec.confidence)} band": lambda r: Range(r.low, r.high, "percent"),
    }
    return make_table("Shortlists of every size", columns, result.shortlists)


def methods(result: RankingResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    for name in _metrics(result):
        metric = result.metrics[name]
        yield Method(metric.title, f"{metric.formula}.", metric.reference)
    yield _method("differences")
    yield _method("band", size=result.spec.size)
