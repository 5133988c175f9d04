"""The report section on paired tests: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.charts import PANEL_WIDTH, Forest, forest, forest_row, pair_text
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
from evenhand.core.findings import limits_of
from evenhand.core.methods import method
from evenhand.messages.formats import Format, show_confidence

if TYPE_CHECKING:
    from evenhand.audits.paired.result import PairedGap, PairedResult, PlaceboRecord

_method = partial(method, "evenhand.audits.paired")
_WIDTH = PANEL_WIDTH - 60


def value_panels(result: PairedResult, grouping: str | None) -> list[Forest]:
    """Return one panel per metric: the mean of all people and of every group, with intervals."""
    panels = []
    for name in _metrics(result):
        records = [record for record in result.rows("values", metric=name) if record.grouping in (None, grouping)]
        if records:
            rows = [forest_row(record, record.group) for record in records]
            metric = result.metrics[name]
            panels.append(forest(rows, title=metric.title, percent=metric.unit == "share"))
    return panels


def gap_panels(result: PairedResult, grouping: str | None) -> list[Forest]:
    """Return one panel per metric: each group's difference from the reference group, with a line at 0."""
    panels = []
    for name in _metrics(result):
        answers = {record.group: record.n for record in result.rows("values", metric=name, grouping=grouping)}
        rows = [
            {
                **forest_row(gap, gap.group),
                "n": None,
                "pair": pair_text(gap.group, gap.reference, answers),
                "low": gap.joint_low,
                "high": gap.joint_high,
                "limits": limits_of(gap, result.findings),
            }
            for gap in result.rows("gaps", metric=name, grouping=grouping, against="reference")
        ]
        if any(row["value"] is not None for row in rows):
            metric = result.metrics[name]
            style = metric.style("difference", signed=True)
            panels.append(forest(rows, title=metric.title, zero=0.0, width=_WIDTH, style=style))
    return panels


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {"values": value_panels, "gaps": gap_panels}
"""The charts by name; the first is the audit's main one."""


def _metrics(result: PairedResult) -> list[str]:
    return list(dict.fromkeys(record.metric for record in result.values))


def parts(result: PairedResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    spec, confidence = result.spec, show_confidence(result.spec.confidence)
    for grouping in result.groupings:
        findings = [finding for finding in result.findings if finding.grouping == grouping]
        described = " ".join(str(finding.headline) for finding in findings)
        shows = figure_sentence(findings, _metrics(result), spec.finding_alpha)
        caption = f"Means over templates. Lines are {confidence} intervals, each on its own."
        yield Figure(f"Answers by {grouping}", caption, described, tuple(value_panels(result, grouping)), shows)
        if panels := gap_panels(result, grouping):
            caption = (
                f"Differences within templates, with {confidence} intervals that hold for all groups together. In "
                "brackets: answers."
            )
            yield Figure(f"Differences within templates, by {grouping}", caption, described, tuple(panels), shows)
    yield value_table(
        result.values,
        result.metrics,
        "Every group",
        spec.confidence,
        extra={"Templates": lambda r: Number(r.templates, "count")},
    )
    yield gap_table(
        result.gaps, result.metrics, "Differences within templates", spec.confidence, extra=_gap_columns(result)
    )
    if result.placebos:
        yield _placebo_table(result)


def _gap_columns(result: PairedResult) -> dict[str, Callable[[Any], Number]]:
    def style(record: PairedGap) -> Format:
        return result.metrics[record.metric].style()

    return {
        "Templates": lambda r: Number(r.templates, "count"),
        "SD between templates": lambda r: Number(r.template_sd, style(r)),
        "SD between repetitions": lambda r: Number(r.replicate_sd, style(r)),
    }


def _placebo_table(result: PairedResult) -> DisplayTable:
    def style(record: PlaceboRecord) -> Format:
        return result.metrics[record.metric].style("difference", signed=True)

    columns: dict[str, Callable[[Any], Any]] = {
        "Placebo": lambda r: r.placebo,
        "Metric": lambda r: result.metrics[r.metric].title,
        "Value": lambda r: r.first,
        "Compared with": lambda r: r.second,
        "Pairs": lambda r: Number(r.pairs, "count"),
        "Difference": lambda r: Number(r.value, style(r)),
        f"{show_confidence(result.spec.confidence)} interval": lambda r: Range(r.low, r.high, style(r)),
        "p": lambda r: Number(r.p_value, "p"),
        "Adjusted p": lambda r: Number(r.p_adjusted, "p"),
    }
    return make_table("Placebos: what should change nothing", columns, result.placebos)


def methods(result: PairedResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    for name in _metrics(result):
        metric = result.metrics[name]
        yield Method(metric.title, f"{metric.formula}.", metric.reference)
    yield _method("differences")
    if any(gap.template_sd is not None for gap in result.gaps):
        yield _method("spread")
    if result.placebos:
        yield _method("placebos")
