"""Group values with cluster-robust standard errors, for rows in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.gather import state_codes
from evenhand.audits.parity.resampled import Custom, Sums, metric_values
from evenhand.stats.auc import auc_influence
from evenhand.stats.clusters import ClusterErrors, cluster_errors
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.rows import ScoreRows
from evenhand.table.validation import state_key

_NUMBERS = 20_000_000  # numbers in memory at a time


@dataclass(frozen=True, eq=False)
class ClusterCells:
    """The nonzero sums of each cluster by stratum, group, outcome and decision.

    Parameters
    ----------
    name : the name of the cluster column.
    cluster, cell : the cluster of each entry, in rising order, and the position of its cell.
    n, first : the number of rows, and the sums of weight, score and squared error, of each entry.
    shape : the shape of the cells: (strata, groups, 2, 2).
    number : the number of clusters.
    """

    name: str
    cluster: IntArray
    cell: IntArray
    n: FloatArray
    first: FloatArray
    shape: tuple[int, ...]
    number: int

    @classmethod
    def build(
        cls, cells: Cells, cluster: str | None, model: str, grouping: Sequence[str], *, within: Sequence[str]
    ) -> Self | None:
        """Build from cells counted by cluster; return None if there is no cluster column."""
        if cluster is None:
            return None
        groups, labels = cells.joint(grouping)
        strata, stratum_labels = cells.joint(within) if within else (np.zeros(len(cells.n), dtype=np.int64), ("",))
        shape = (len(stratum_labels), len(labels), 2, 2)
        codes = (strata, groups, state_codes(cells, "outcome"), state_codes(cells, state_key(model)))
        order = np.argsort(cells.codes[cluster], kind="stable")
        n = cells.n.astype(np.float64)
        weight = cells.sums.get("w", n)
        first = np.stack([weight, *(cells.sums.get(name, np.zeros_like(n)) for name in ("s", "l"))], axis=-1)
        return cls(
            cluster,
            cells.codes[cluster][order],
            np.ravel_multi_index(codes, shape)[order],
            n[order],
            first[order],
            shape,
            len(cells.labels[cluster]),
        )

    def pooled(self) -> ClusterCells:
        """Return the cells summed over all strata."""
        _, *rest = np.unravel_index(self.cell, self.shape)
        shape = (1, *self.shape[1:])
        return replace(self, cell=np.ravel_multi_index((np.zeros_like(self.cell), *rest), shape), shape=shape)

    def stratum(self, position: int) -> ClusterCells:
        """Return the cells of one stratum."""
        inside = np.unravel_index(self.cell, self.shape)[0] == position
        part = replace(
            self, cluster=self.cluster[inside], cell=self.cell[inside], n=self.n[inside], first=self.first[inside]
        )
        return part.pooled()

    def errors(
        self, metric: ParityMetric, custom: Custom | None, support: BoolArray, independent: FloatArray
    ) -> ClusterErrors:
        """Return the cluster-robust errors of a metric in all groups and, last, over all people.

        Parameters
        ----------
        metric, custom : the metric, and the user's function or None.
        support : the mask of the strata used.
        independent : the variances under independence of all people; nan where unknown.
        """
        cells = int(np.prod(self.shape))
        total, sums = self._dense(0, self.number, whole=True)
        value = metric_values(Sums.build(self.shape, total, sums), metric, custom, support)[..., 0]
        everybody = _people(metric, total.reshape(1, *self.shape), support)
        influence, people = (np.zeros((self.number, len(value))) for _ in range(2))
        size = max(1, _NUMBERS // (8 * cells))
        for start in range(0, self.number, size):
            n, first = self._dense(start, min(start + size, self.number))
            block = slice(start, start + len(n))
            without = metric_values(Sums.build(self.shape, total - n, sums - first), metric, custom, support)
            people[block] = _people(metric, n.reshape(-1, *self.shape), support)
            with np.errstate(all="ignore"):
                share = people[block] / everybody
                influence[block] = (value - without.T) * np.sqrt(1.0 - share)
        return cluster_errors(np.where(people > 0, influence, 0.0), people, independent)

    def _dense(self, start: int, stop: int, *, whole: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the rows and sums of a range of clusters (or of all clusters together) in every cell."""
        entries = slice(*np.searchsorted(self.cluster, (start, stop)))
        cells, rows = int(np.prod(self.shape)), 1 if whole else stop - start
        place = self.cell[entries] if whole else (self.cluster[entries] - start) * cells + self.cell[entries]
        columns = [self.n, *self.first.T]
        added = [np.bincount(place, weights=column[entries], minlength=rows * cells) for column in columns]
        n, *first = (part.reshape(rows, cells).astype(np.float64) for part in added)
        return n, np.stack(first, axis=-1)


def _people(metric: ParityMetric, n: FloatArray, support: BoolArray) -> FloatArray:
    """Return the number of people behind a metric by group and, last, in all groups; the first axis is kept."""
    used = n[:, support].sum(axis=1)
    people = metric.people(used)
    return np.concatenate([people, people.sum(axis=-1, keepdims=True)], axis=-1).astype(np.float64)


def auc_errors(rows: ScoreRows, codes: IntArray, values: GroupValues, clusters: ClusterCells) -> ClusterErrors:
    """Return the errors of AUC by group and, last, over all people, from DeLong influences summed by cluster."""
    groups, cluster = len(values.value), rows.groups.codes[clusters.name]
    influence, people = (np.zeros((clusters.number, groups + 1)) for _ in range(2))
    for group in range(groups):
        member = np.flatnonzero(codes == group)
        parts = (rows.score.take(member), rows.positive.take(member))
        psi = auc_influence(*parts, weight=rows.weight.take(member))[1]
        np.add.at(influence[:, group], cluster[member], psi)
        np.add.at(people[:, group], cluster[member], rows.groups.n.take(member))
    np.add.at(influence[:, -1], cluster, rows.auc[1])
    people[:, -1] = people[:, :-1].sum(axis=1)
    with np.errstate(all="ignore"):
        influence /= np.sqrt(1.0 - people / people.sum(axis=0))
    independent = np.append(values.stderr, values.overall_stderr) ** 2
    return cluster_errors(np.nan_to_num(influence), people, independent)


def with_clusters(values: GroupValues, errors: ClusterErrors, overall_stderr: float) -> GroupValues:
    """Return values with cluster-robust limits, and with the values of all people in place of `rest`.

    `overall_stderr` is the standard error of the overall value under independence of all people.

    The variance is at least the variance under independence times the design effect, so that a group with clusters
    alike by chance does not get too narrow limits. Sample sizes are effective sizes p (1 - p) / variance, at most the
    size that the design effect implies.
    """
    value, n = np.append(values.value, values.overall), np.append(values.n, values.n_overall)
    independent = np.append(values.stderr, overall_stderr) ** 2
    each = np.where(np.isnan(values.trials), values.n, values.trials)
    with np.errstate(all="ignore"):
        variance = errors.at_least(independent)
        effect = np.fmax(variance / independent, errors.design)
        trials = np.append(each, each.sum()) / np.where(np.isfinite(effect), effect, errors.design)
        trials = np.where(np.isnan(errors.variance), np.nan, trials)
    places = np.arange(len(value))
    whole = replace(
        values,
        value=value,
        n=n,
        counted=np.append(values.counted, np.inf),
        stderr=np.sqrt(variance),
        trials=trials,
        skewness=None if values.skewness is None else errors.skewness,
        ordered=None if values.ordered is None else replace(values.ordered, people=np.nan_to_num(trials)),
        position=None if values.ordered is None else places,
        rates=(),
        people=None,
        members=None,
        one_person=None,
        rest=None,
        share=None,
        covariance=None,
        clusters=errors,
        places=places,
    )
    groups = places[:-1]
    return replace(whole.only(groups), rest=whole.only(np.full(len(groups), len(groups))))
