"""The charts of a study (correlations, weights, factors), with published and person-level estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from evenhand.charts import forest, forest_row
from evenhand.core.records import matching
from evenhand.study.analysis.metrics import DISTANCES, TARGETS

if TYPE_CHECKING:
    from evenhand.study.analysis.result import StudyResult, StudyValue

_SERIES = {"published": "rows (published)", "participant_bootstrap": "people", "clustered": "people"}


def correlation_panels(result: StudyResult, _grouping: str | None = None) -> list[Any]:
    """Return a panel per condition and target: both distances' correlations, with both kinds of interval."""
    records = [r for r in result.rows("values", metric="rank_correlation") if r.target in TARGETS]
    ends = [end for r in records for end in (r.value, r.low, r.high) if end is not None]
    domain = (min(0.0, *ends), max(0.0, *ends)) if ends else None
    panels = []
    for condition, target in product(result.conditions, TARGETS):
        rows = _rows(matching(records, condition=condition, target=target), lambda r: r.factor)
        if rows:
            title = f"{condition}: {target} distance" if condition else f"{target} distance"
            panels.append(forest(rows, title=title, order=DISTANCES, domain=domain))
    return panels


def weight_panels(result: StudyResult, _grouping: str | None = None) -> list[Any]:
    """Return a panel with the weight of trajectory in each condition."""
    records = [r for r in result.rows("values", metric="effort_weight") if r.method != "clustered"]
    rows = _rows(records, lambda r: r.condition or "all")
    return [forest(rows, title="Weight of trajectory")] if rows else []


def factor_panels(result: StudyResult, _grouping: str | None = None) -> list[Any]:
    """Return a panel per condition: the share of answers in which each factor was ticked."""
    return [
        forest(
            _rows(result.rows("values", metric="factor_share", condition=condition), lambda r: r.factor),
            title=condition or "All",
            percent=True,
            domain=(0.0, 1.0),
        )
        for condition in dict.fromkeys(r.condition for r in result.rows("values", metric="factor_share"))
    ]


def _rows(records: Iterable[StudyValue], label: Callable[[StudyValue], str | None]) -> list[dict[str, Any]]:
    """Return a chart row per value, with the two methods as separate series."""
    return [forest_row(r, label(r), _SERIES[r.method]) for r in records if r.value is not None]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "correlations": correlation_panels,
    "weights": weight_panels,
    "factors": factor_panels,
}
"""The charts by name, the main chart first."""
