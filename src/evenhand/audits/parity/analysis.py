"""The unit of analysis: one model, one grouping, one stratum."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evenhand.audits.parity.clustered import ClusterCells
from evenhand.audits.parity.definition import WEIGHT, ParityMetric
from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.resampled import DrawCache, Method, Metrics, Resampled, Support, resample_groups
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.measures import Ratio
from evenhand.stats.permutation import GroupedValues
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.rows import ScoreRows
from evenhand.table.table import FINE_BINS


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """The cells, metrics and settings of one analysis.

    Parameters
    ----------
    model, grouping, stratum : the coordinates of the cells.
    cells : the cells of a single stratum; with `support`, the cells of all strata.
    metrics : the metrics to compute, each with the user's function or None.
    spec : the audit's settings.
    reference : the position of the reference group.
    score_range : lowest and highest possible score.
    favourable : the side of the decision that is good for a person.
    ranks : the scores by group code, for AUC and means.
    support : the strata used by each metric, if values are standardised over strata.
    numbers : the numbers by group code, for a model that predicts numbers.
    draws : the cached draws of all analyses of one audit.
    clusters : the sums of each cluster; None if rows are independent.
    """

    model: str
    grouping: str
    stratum: str | None
    cells: GroupCells
    metrics: Metrics
    spec: ParitySpec
    reference: int
    score_range: tuple[float, float]
    favourable: str | None
    ranks: tuple[ScoreRows, IntArray] | None = None
    support: Support | None = None
    numbers: NumberPeople | None = None
    draws: DrawCache = field(default_factory=DrawCache)
    clusters: ClusterCells | None = None

    def by_bootstrap(self, metric: ParityMetric) -> bool:
        """Return whether all of a metric's intervals come from the bootstrap."""
        if metric.method == "rank" or metric.of_number is not None or self.clusters is not None:
            return False
        return metric.method == "custom" or self.support is not None or self.spec.interval != "auto"

    @property
    def method(self) -> Method:
        """The method of bootstrap intervals."""
        return "bca" if self.spec.interval == "auto" else self.spec.interval

    def draws_of(self, metric: ParityMetric) -> Resampled | None:
        """Return a metric's bootstrap draws from the cache, or draw it and all metrics after it."""
        if not self.by_bootstrap(metric) or self.cells.n.sum() == 0:
            return None
        drawn = self.draws.find(self, metric.name)
        if drawn is None:
            resampled = [pair for pair in self.metrics if self.by_bootstrap(pair[0])]
            first = [pair[0].name for pair in resampled].index(metric.name)
            self.draws.make_room(len(resampled[first:]) * self.spec.resamples * (len(self.cells.labels) + 1))
            batches = resample_groups(
                self.cells,
                resampled[first:],
                reference=self.reference,
                resamples=self.spec.resamples,
                support=self.support,
            )
            drawn = next(batches)
            self.draws.keep(self, drawn)
        return drawn

    def people(self, metric: ParityMetric) -> GroupedValues | None:
        """Return the people's values behind a metric, to compare means; None without single people's values."""
        if metric.ratio is None or self.ranks is None or self.clusters is not None:
            return None
        rows = self.ranks[0]
        if metric.method == "mean" and not (rows.binned and self.cells.weighted):
            return self._grouped(_of_scores(metric.ratio, rows, self.score_range))
        if metric.method == "rate" and rows.selected is not None:
            above, below = metric.coefficients()
            state = np.divmod(np.rint(self._decisions.values).astype(np.int64), 2)
            return self._decisions.having(above[..., WEIGHT][state], below[state] > 0)
        return None

    @cached_property
    def _decisions(self) -> GroupedValues:
        """People coded by outcome and decision: 0 neither, 1 selected, 2 positive outcome, 3 both."""
        rows = self.ranks[0] if self.ranks is not None else None
        if rows is None or rows.selected is None:
            raise ValueError("no decisions were read")
        return self._grouped(np.asarray(2.0 * rows.positive + rows.selected, dtype=np.float64))

    def _grouped(self, values: FloatArray) -> GroupedValues:
        """Return values of people in all rows, by group."""
        if self.ranks is None:
            raise ValueError("no rows were read")
        rows, codes = self.ranks
        weights = rows.weight if self.cells.weighted else None
        return GroupedValues(values, rows.groups.n, codes, weights, len(self.cells.labels)).merged()

    def comparable(self, values: GroupValues) -> IntArray:
        """Return the groups that enter gaps: named groups with enough people and a defined value."""
        named = self.cells.named_groups
        fits = (values.counted[named] >= self.spec.min_count) & np.isfinite(values.value[named])
        fits &= values.enough_clusters[named]
        return named[fits]


def _of_scores(ratio: Ratio, rows: ScoreRows, score_range: tuple[float, float]) -> FloatArray:
    """Return each person's score or squared error; a binned score is taken as the middle of its bin."""
    score = rows.score
    if rows.binned:
        low, high = score_range
        score = low + (score + 0.5) / FINE_BINS * (high - low)
    ((measure, _),) = ratio.numerator
    return score if measure == "score" else (score - rows.positive) ** 2
