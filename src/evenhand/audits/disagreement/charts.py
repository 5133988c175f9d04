"""The charts of the disagreement audit: gaps, rates, kinds of critics, single critics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.disagreement.metrics import METRICS
from evenhand.charts import Curve, Forest, curve, forest, forest_row, pair_text
from evenhand.core.records import open_range
from evenhand.stats.feedback import DEFINITE, INDEFINITE, TOLERANT

if TYPE_CHECKING:
    from evenhand.audits.disagreement.result import (
        CriticGap,
        DisagreementGap,
        DisagreementResult,
        DisagreementValue,
        PairRecord,
    )

ALL = "all critics"
MOST_GROUPS = 6
MOST_KINDS = 6
_BINS = 20
RATES = ("statistical_parity", "calibration", *INDEFINITE[:2], *TOLERANT[:1])
"""The metrics with charted rates."""


def distinct_metrics(gaps: Iterable[DisagreementGap]) -> list[str]:
    """Return the metrics with a gap of their own, in a fixed order."""
    distinct = {gap.metric for gap in gaps if gap.same_as is None}
    return [metric for metric in METRICS if metric in distinct]


def gap_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:
    """Return the panel of every metric's gap as seen by all critics."""
    end = max((gap.high or gap.upper or 0.0 for gap in result.rows("gaps", stakeholder=None)), default=0.0)
    gaps = result.rows("gaps", grouping=grouping, stakeholder=None)
    return _gap_panel(gaps, [ALL], grouping, domain=(0.0, end) if end else None)


def stakeholder_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:
    """Return the panel of every metric's gap as seen by each kind of critics."""
    gaps = result.rows("gaps", grouping=grouping)
    kinds = _kinds(gaps)
    return _gap_panel(gaps, [ALL, *kinds], grouping) if kinds else []


def _gap_panel(
    gaps: Sequence[DisagreementGap],
    series: list[str],
    grouping: str | None,
    domain: tuple[float, float] | None = None,
) -> list[Any]:
    metrics = distinct_metrics(gaps)
    rows = [
        {**_row(gap, METRICS[metric].title, gap.stakeholder or ALL), "pair": pair_text(gap.group, gap.reference)}
        for metric in metrics
        for gap in gaps
        if gap.metric == metric
    ]
    titles = [METRICS[metric].title for metric in metrics]
    return _bounds_panel(rows, titles, series, f"By {grouping}", domain=domain, style="points")


def agreement_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:
    """Return the panel of agreement with the decisions on each group, by kind of critics."""
    metric = "tolerant_accuracy" if result.spec.answers.tolerance else "accuracy_equality"
    rates = result.rows("values", grouping=grouping, metric=metric)
    groups, kinds = _largest(rates), _kinds(rates)
    rows = [_row(rate, rate.group, rate.stakeholder or ALL) for rate in rates if rate.group in groups]
    return _bounds_panel(rows, groups, [ALL, *kinds], grouping or "") if kinds else []


def pair_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:  # noqa: ARG001 - pairs have no groups
    """Return the panel of shares of pairs of like cases, by all critics and by kind of critics."""
    rows = [_row(r, METRICS[r.metric].title, r.stakeholder or ALL) for r in result.pairs if r.value is not None]
    kinds, titles = _kinds(result.pairs), list(dict.fromkeys(METRICS[r.metric].title for r in result.pairs))
    shown = [row for row in rows if row["series"] in (ALL, *kinds)]
    return _bounds_panel(shown, titles, [ALL, *kinds], "Share of pairs of like cases") if shown else []


def value_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per metric: every label's rate in each of the largest groups, as seen by all critics."""
    panels: list[Any] = []
    for metric in RATES:
        rates = result.rows("values", grouping=grouping, metric=metric, stakeholder=None)
        groups = _largest(rates)
        rows = [_row(rate, rate.label or "", rate.group) for rate in rates if rate.group in groups]
        ends = [end for row in rows for end in (row["value"], row["high"], *(row["open"] or ())) if end is not None]
        axis = (0.0, max(ends, default=0.0))
        panels += _bounds_panel(rows, list(result.labels), groups, METRICS[metric].title, domain=axis)
    return panels


def _kinds(records: Iterable[DisagreementGap | DisagreementValue | PairRecord]) -> list[str]:
    return [kind for kind in dict.fromkeys(r.stakeholder for r in records) if kind is not None][:MOST_KINDS]


def _largest(rates: Sequence[DisagreementValue]) -> list[str]:
    """Return the groups with the most answers, in the order of the table."""
    sizes: dict[str, int] = {}
    for rate in rates:
        sizes[rate.group] = max(sizes.get(rate.group, 0), rate.n)
    largest = set(sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS])
    return [group for group in sizes if group in largest]


def _row(record: DisagreementGap | DisagreementValue | PairRecord, label: str, series: str) -> dict[str, Any]:
    """Return a chart row for a gap or rate: its exact value, or its open range."""
    bounds = open_range(record)
    return {
        **forest_row(record, label, series),
        "value": record.value if bounds is None else None,
        "open": bounds,
        "truth": None if bounds is None else record.truth,
    }


def _bounds_panel(
    rows: list[dict[str, Any]], order: list[str], series: list[str], title: str, **options: Any
) -> list[Forest]:
    """Return a panel with thick bars for open ranges, thin lines for intervals, and points for exact values."""
    shown_rows = [row for row in rows if row["series"] in series and (row["value"] is not None or row["open"])]
    options = {"percent": True} | options
    return [forest(shown_rows, title=title, order=order, series=series, thin=True, **options)] if shown_rows else []


# Single critics -------------------------------------------------------------------------------------------------------


def critic_panels(result: DisagreementResult, grouping: str | None) -> list[Any]:
    """Return one panel per metric of true gaps, estimates and bounds over critics, and panels of estimation errors.

    Metrics that the answers only bound come first, and then the agreement rate.
    """
    metric_names = distinct_metrics(result.gaps)
    metrics = [metric for metric in (*INDEFINITE, "accuracy_equality", "tolerant_accuracy") if metric in metric_names]
    panels = []
    for metric in metrics:
        gaps = [gap for gap in result.rows("critics", grouping=grouping, metric=metric) if gap.value is not None]
        if gaps:
            gaps.sort(key=lambda gap: (gap.value, gap.upper, gap.truth or 0.0, gap.critic))
            panels.append(_over_critics(gaps, METRICS[metric].title))
    errors = [row for metric in metrics if metric in INDEFINITE for row in _errors(result, grouping, metric)]
    if errors:
        panels.append(
            curve(
                errors,
                title="How far estimates are off",
                x="Absolute error of the estimate",
                y="Share of critics",
                intervals="none",
                points=True,
                percent_x=True,
                percent_y=True,
                height=190,
            )
        )
    return panels


def _over_critics(gaps: Sequence[CriticGap], title: str) -> Curve:
    """Return the chart of each critic's estimate with bounds, and the true gap if it is known and can differ."""
    rows: list[dict[str, Any]] = [
        {"series": "Estimate", "x": number, "y": gap.value, "low": gap.lower, "high": gap.upper}
        for number, gap in enumerate(gaps, 1)
    ]
    if gaps[0].metric not in (*DEFINITE, *TOLERANT):  # otherwise the truth is the estimate
        rows += [
            {"series": "True", "x": number, "y": gap.truth, "low": None, "high": None}
            for number, gap in enumerate(gaps, 1)
            if gap.truth is not None
        ]
    return curve(
        rows,
        title=title,
        x="Critics, lowest estimate first",
        y="Gap",
        points=True,
        lines=False,
        percent_y=True,
        height=190,
    )


def _errors(result: DisagreementResult, grouping: str | None, metric: str) -> list[dict[str, Any]]:
    """Return the distribution of a metric's absolute errors over the critics.

    It is empty if all errors are 0.
    """
    gaps = result.rows("critics", grouping=grouping, metric=metric)
    errors = [abs(gap.error) for gap in gaps if gap.error is not None]
    if max(errors, default=0.0) < 1e-9:
        return []
    counts = [0] * _BINS
    for error in errors:
        counts[min(int(error * _BINS), _BINS - 1)] += 1
    last = max(position for position, n in enumerate(counts) if n)
    return [
        {
            "series": METRICS[metric].title,
            "x": (position + 0.5) / _BINS,
            "y": n / len(errors),
            "low": None,
            "high": None,
        }
        for position, n in enumerate(counts[: last + 2])
    ]


CHARTS: dict[str, Callable[[Any, str | None], list[Any]]] = {
    "gaps": gap_panels,
    "values": value_panels,
    "agreement": agreement_panels,
    "stakeholders": stakeholder_panels,
    "critics": critic_panels,
    "pairs": pair_panels,
}
"""The charts by name; the first is the audit's main one."""
