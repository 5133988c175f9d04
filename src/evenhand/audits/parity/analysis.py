"""The unit of analysis: one model, one grouping, one stratum."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import ParityMetric
from evenhand.audits.parity.resampled import DrawCache, Method, Metrics, Resampled, Support, resample_groups
from evenhand.audits.parity.spec import ParitySpec
from evenhand.stats.permutation import GroupedValues
from evenhand.stats.types import IntArray
from evenhand.table.rows import ScoreRows
from evenhand.table.table import FINE_BINS


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """The cells, metrics and settings of one analysis.

    Parameters
    ----------
    model, grouping, stratum : the coordinates of the cells.
    cells : cells of a single stratum, or of all strata with `support`.
    metrics : the metrics to compute, each with the user's function or None.
    spec : the audit's settings.
    reference : position of the reference group.
    rng : source of randomness for the bootstrap; it is copied, so the draws are the same at every confidence.
    score_range : lowest and highest possible score.
    favourable : the side of the decision that is good for the person.
    ranks : the scores by group code, for AUC and means.
    support : for each metric the strata used, when values are standardised over strata.
    draws : the cached draws of all analyses of one audit.
    """

    model: str
    grouping: str
    stratum: str | None
    cells: GroupCells
    metrics: Metrics
    spec: ParitySpec
    reference: int
    rng: np.random.Generator
    score_range: tuple[float, float]
    favourable: str | None
    ranks: tuple[ScoreRows, IntArray] | None = None
    support: Support | None = None
    draws: DrawCache = field(default_factory=DrawCache)

    def by_bootstrap(self, metric: ParityMetric) -> bool:
        """Tell whether all of a metric's intervals come from the bootstrap."""
        if metric.method == "rank":
            return False
        return metric.method == "custom" or self.support is not None or self.spec.interval != "auto"

    @property
    def method(self) -> Method:
        """The method of bootstrap intervals."""
        return "bca" if self.spec.interval == "auto" else self.spec.interval

    def draws_of(self, metric: ParityMetric) -> Resampled | None:
        """Return a metric's draws from the cache, or draw it together with the metrics after it."""
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
                rng=deepcopy(self.rng),
                support=self.support,
            )
            drawn = next(batches)
            self.draws.keep(self, drawn)
        return drawn

    def people(self, metric: ParityMetric) -> GroupedValues | None:
        """Return the values of people that a metric is the mean of; None if it is not a mean or scores are unknown."""
        if metric.method != "mean" or metric.ratio is None or self.ranks is None:
            return None
        rows, codes = self.ranks
        number = rows.groups.n
        if rows.binned and self.cells.weighted:
            return None
        score = rows.score
        if rows.binned:
            low, high = self.score_range
            score = low + (score + 0.5) / FINE_BINS * (high - low)
        ((measure, _),) = metric.ratio.numerator
        values = score if measure == "score" else (score - rows.positive) ** 2
        weights = rows.weight if self.cells.weighted else None
        return GroupedValues(values, number, codes, weights, len(self.cells.labels))

    def comparable(self, values: GroupValues) -> IntArray:
        """Return the groups that enter gaps: not missing, large enough, defined."""
        named = self.cells.named_groups
        fits = (values.counted[named] >= self.spec.min_count) & np.isfinite(values.value[named])
        return named[fits]
