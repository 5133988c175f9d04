"""A compact table of a result's values, with groups as rows and metrics as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.core.display import Cell, DisplayTable, Number
from evenhand.core.records import OK, Value
from evenhand.errors import ConfigError, require_choice
from evenhand.messages.formats import DASH, show, show_interval

if TYPE_CHECKING:
    from evenhand.core.result import Result

_Place = tuple[str | None, str | None, str | None, str]


_HEADS = ("Model", "Grouping", "Stratum")


def by_group(result: Result, metrics: Sequence[str], model: str | None, grouping: str | None) -> DisplayTable:
    """Return a table with one row per group: its size, and each metric with its interval."""
    rows = _rows(result, model, grouping)
    shown = _metrics_shown(result, rows, metrics)
    kept = {place: of_group for place, of_group in rows.items() if not of_group.keys().isdisjoint(shown)}
    varied = [at for at in range(len(_HEADS)) if len({place[at] for place in kept}) > 1]
    body = []
    for place, of_group in kept.items():
        cells = (_cell(result, of_group, name) for name in shown)
        body.append((*(place[at] for at in varied), place[3], _size(of_group), *cells))
    columns = (*(_HEADS[at] for at in varied), "Group", "n", *(result.metrics[name].title for name in shown))
    caption = f"{result.title}: values by group, with {result.spec.confidence:.0%} intervals"
    return DisplayTable(caption, columns, tuple(body))


def _metrics_shown(result: Result, rows: Mapping[_Place, dict[str, Value]], metrics: Sequence[str]) -> list[str]:
    """Return the named metrics, or all with values; refuse results without values, and unknown names."""
    known = list(dict.fromkeys(name for of_group in rows.values() for name in of_group))
    if not known:
        raise ConfigError("the {audit} audit has no values of groups to tabulate.", audit=result.audit)
    for name in metrics:
        require_choice("metric", name, known)
    return list(metrics) or known


def _rows(result: Result, model: str | None, grouping: str | None) -> dict[_Place, dict[str, Value]]:
    """Return the values of each group by metric."""
    rows: dict[_Place, dict[str, Value]] = {}
    for record in result.tables.get("values", ()):
        if isinstance(record, Value) and model in (None, record.model) and grouping in (None, record.grouping):
            place = record.model, record.grouping, record.stratum, record.group
            rows.setdefault(place, {})[record.metric] = record
    return rows


def _size(of_group: dict[str, Value]) -> Number:
    """Return the size of a group: the largest number of people behind any of its values."""
    return Number(max(record.n for record in of_group.values()), "count")


def _cell(result: Result, of_group: dict[str, Value], metric: str) -> Cell:
    """Return a value with its interval, marked with a star if it is not compared."""
    record = of_group.get(metric)
    if record is None or record.value is None:
        return DASH
    style = result.metrics[metric].style()
    interval = show_interval(record.low, record.high, "points" if style == "percent" else style)
    mark = "" if record.status == OK else " *"
    return (
        f"{show(record.value, style)} ({interval}){mark}" if interval != DASH else f"{show(record.value, style)}{mark}"
    )
