"""Calibration: the share of positive outcomes, or the mean of a numeric outcome, by group and bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.result import CalibrationRecord
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.records import OK
from evenhand.messages.formats import finite
from evenhand.messages.shared import say
from evenhand.stats.clusters import FEWEST, variances_of_means
from evenhand.stats.intervals import effective_trials, student_t, wilson
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.table.cells import Cells
from evenhand.table.keys import YES
from evenhand.table.table import Table


def number_calibration(
    people: NumberPeople, labels: Sequence[str], model: str, grouping: str, *, spec: ParitySpec, cluster: str | None
) -> Iterator[CalibrationRecord]:
    """Yield the mean prediction and mean outcome of each group and bin of the prediction.

    The bins are quantile bins of all groups together. The limits are the limits of a mean of numbers. If rows come in
    clusters, they are Student's t limits with the variance over clusters, and need 10 clusters.
    """
    if people.rows.outcome is None:
        return
    edges = np.unique(np.quantile(people.rows.value, np.linspace(0.0, 1.0, spec.bins + 1)))
    number = max(len(edges) - 1, 1)
    bins = np.searchsorted(edges[1:-1], people.rows.value, side="right")
    binned = NumberPeople(people.rows, people.codes * number + bins, people.groups * number)
    outcome, predicted = (binned.values(NUMBER_METRICS[name]) for name in ("mean_outcome", "mean"))
    limits = outcome.limits(spec.confidence) if cluster is None else _limits_of_clusters(binned, cluster, outcome, spec)
    for cell in np.flatnonzero(outcome.n):
        group, part = divmod(int(cell), number)
        n = int(outcome.n[cell])
        yield CalibrationRecord(
            model=model,
            grouping=grouping,
            group=labels[group],
            bin_low=float(edges[part]),
            bin_high=float(edges[min(part + 1, len(edges) - 1)]),
            n=n,
            mean_score=finite(predicted.value[cell]),
            value=finite(outcome.value[cell]),
            low=finite(limits.low[cell]),
            high=finite(limits.high[cell]),
            status=say("small_bin", n=n, least=spec.min_count) if n < spec.min_count else OK,
        )


def _limits_of_clusters(binned: NumberPeople, cluster: str, outcome: GroupValues, spec: ParitySpec) -> Interval:
    rows, true = binned.rows, binned.numbers("outcome")
    weight = np.ones_like(true) if rows.weight is None else rows.weight
    of = rows.groups.codes[cluster]
    variance, clusters = variances_of_means(of, binned.codes, weight, weight * true, outcome.value)
    variance = np.where((clusters >= FEWEST) & (variance > 0), variance, np.nan)
    return student_t(outcome.value, np.sqrt(variance), clusters - 1.0, spec.confidence)


def calibration_records(
    cells: Cells, table: Table, model: str, grouping: str, spec: ParitySpec
) -> Iterator[CalibrationRecord]:
    """Yield the mean score and the share of positive outcomes of each group and score bin.

    The share has Wilson limits; with survey weights, n is Kish's effective sample size. If rows come in clusters, n is
    reduced by the design effect, and limits need 10 clusters.
    """
    if table.roles.outcome is None:
        return
    codes, labels = cells.joint(table.groupings[grouping])
    bins = np.array([int(label) for label in cells.labels["bin"]], dtype=np.int64)[cells.codes["bin"]]
    positive = np.array([label == str(YES) for label in cells.labels["outcome"]])[cells.codes["outcome"]]
    position = codes * spec.bins + bins

    def by_bin(values: FloatArray) -> FloatArray:
        return np.bincount(position, weights=values, minlength=len(labels) * spec.bins).astype(np.float64)

    rows = cells.n.astype(np.float64)
    weight, squares = cells.sums.get("w", rows), cells.sums.get("ww", rows)
    n, total = by_bin(rows), by_bin(weight)
    with np.errstate(all="ignore"):
        share, score = by_bin(weight * positive) / total, by_bin(cells.sums["s"]) / total
        kish, df = total**2 / by_bin(squares), None
        if (cluster := table.roles.cluster) is not None:
            kish, df = _effective(cells.codes[cluster], position, (weight, weight * positive), share, kish)
        limits = wilson(share, kish, spec.confidence, df)
    low, high = table.prediction(model).range
    edges = low + (high - low) * np.arange(spec.bins + 1) / spec.bins
    for cell in np.flatnonzero(n):
        group, part = divmod(int(cell), spec.bins)
        is_small = n[cell] < spec.min_count
        yield CalibrationRecord(
            model=model,
            grouping=grouping,
            group=labels[group],
            bin_low=float(edges[part]),
            bin_high=float(edges[part + 1]),
            n=int(n[cell]),
            mean_score=finite(score[cell]),
            value=finite(share[cell]),
            low=finite(limits.low[cell]),
            high=finite(limits.high[cell]),
            status=say("small_bin", n=int(n[cell]), least=spec.min_count) if is_small else OK,
        )


def _effective(
    cluster: IntArray, position: IntArray, sums: tuple[FloatArray, FloatArray], share: FloatArray, kish: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the effective sample sizes of shares, from the variance over clusters, and the degrees of freedom.

    `sums` are the weights of all people and of the positive people, by entry.
    """
    variance, clusters = variances_of_means(cluster, position, *sums, share)
    enough = clusters >= FEWEST
    return np.where(enough, effective_trials(share, variance, kish), np.nan), np.maximum(clusters - 1.0, 1.0)
