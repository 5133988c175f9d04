"""One model, one grouping, one stratum: group values and gaps as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.audits.parity.estimates import GroupValues, auc_values, ratio_values
from evenhand.audits.parity.gaps import Gap, to_overall, to_reference, worst_pair
from evenhand.audits.parity.groups import GroupCells
from evenhand.audits.parity.metrics import GAP_NAMES, Metric
from evenhand.audits.parity.records import OVERALL, GapRecord, GroupRecord
from evenhand.audits.parity.resampled import (
    Custom,
    Method,
    Resampled,
    Sums,
    metric_values,
    resample_groups,
)
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.numbers import finite
from evenhand.core.spec import Against, Kind
from evenhand.stats.types import BoolArray, IntArray, Interval
from evenhand.table.roles import MISSING
from evenhand.table.rows import ScoreRows

KINDS: tuple[Kind, ...] = ("difference", "ratio")


@dataclass
class Analysis:
    """One table of cells and the settings to analyse it with; yields the records of values and gaps.

    Parameters
    ----------
    model, grouping, stratum : what the cells are of.
    cells : cells of a single stratum, or of all strata with `support`.
    metrics : what to compute, each with the user's function or None.
    spec : the audit's settings.
    reference : position of the reference group.
    rng : source of randomness for the bootstrap.
    score_range : lowest and highest possible score.
    favourable : the side of the decision that is good for the person.
    ranks : the scores by group code, for AUC.
    support : for each metric the strata used, when values are standardised over strata.
    """

    model: str
    grouping: str
    stratum: str | None
    cells: GroupCells
    metrics: Sequence[tuple[Metric, Custom | None]]
    spec: ParitySpec
    reference: int
    rng: np.random.Generator
    score_range: tuple[float, float]
    favourable: str | None
    ranks: tuple[ScoreRows, IntArray] | None = None
    support: dict[str, BoolArray] | None = None
    groups: list[GroupRecord] = field(default_factory=list)
    gaps: list[GapRecord] = field(default_factory=list)

    def run(self) -> Analysis:
        """Fill the records."""
        batches = self._draws()
        drawn: Resampled | None = None
        for metric, custom in self.metrics:
            if self._by_bootstrap(metric) and (drawn is None or metric.name not in drawn.metrics):
                drawn = None  # frees the last batch before the next is drawn
                drawn = next(batches, None)
            values = self._values(metric, custom)
            self._add_groups(values, drawn)
            self._add_gaps(values, drawn)
        return self

    @property
    def _method(self) -> Method:
        return "bca" if self.spec.interval == "auto" else self.spec.interval

    def _by_bootstrap(self, metric: Metric) -> bool:
        """Tell whether all of a metric's intervals come from the bootstrap."""
        if metric.kind == "rank":
            return False
        return metric.kind == "custom" or self.support is not None or self.spec.interval != "auto"

    def _draws(self) -> Iterator[Resampled]:
        asked = [pair for pair in self.metrics if self._by_bootstrap(pair[0])]
        if not asked or self.cells.n.sum() == 0:
            return iter(())
        return resample_groups(self.cells, asked, self.reference, self.spec.resamples, self.rng, self.support)

    def _values(self, metric: Metric, custom: Custom | None) -> GroupValues:
        if metric.kind == "rank" and self.ranks is not None:
            return auc_values(*self.ranks, len(self.cells.labels), metric)
        if self.support is None and custom is None:
            return ratio_values(self.cells, metric, self.score_range)
        return self._bootstrapped_values(metric, custom)

    def _bootstrapped_values(self, metric: Metric, custom: Custom | None) -> GroupValues:
        """Return values whose limits only the bootstrap knows."""
        used = np.ones(len(self.cells.strata), dtype=bool) if self.support is None else self.support[metric.name]
        below = metric.coefficients()[1] if custom is None else np.ones((2, 2))
        rows = (self.cells.n[used] * below.astype(np.int64)).sum(axis=(0, 2, 3))
        unknown = np.full(len(rows), np.nan)
        moments = self.cells.moments()
        sums = Sums.build(self.cells.n.shape, moments.n.astype(np.float64), moments.first)
        value = metric_values(sums, metric, custom, used)
        return GroupValues(metric, value[:-1], float(value[-1]), rows, int(rows.sum()), unknown, unknown, (0.0, np.inf))

    # Records ----------------------------------------------------------------------------------------------

    def _add_groups(self, values: GroupValues, drawn: Resampled | None) -> None:
        if self._by_bootstrap(values.metric):
            limits = self._drawn_interval(drawn, values, "value", np.arange(len(values.value)))
        else:
            limits = values.limits(self.spec.confidence)
        for position, label in enumerate(self.cells.labels):
            low, high = finite(limits.low[position]), finite(limits.high[position])
            status = self._status(values, position)
            if status == "ok" and low is None and high is None:
                status = f"no interval: {_why_no_interval(values.metric)}"
            self.groups.append(
                GroupRecord(
                    self.model,
                    self.grouping,
                    self.stratum,
                    label,
                    values.metric.name,
                    int(values.n[position]),
                    finite(values.value[position]),
                    low,
                    high,
                    status,
                )
            )

    def _status(self, values: GroupValues, position: int) -> str:
        if np.isnan(values.value[position]):
            shared = self.support is not None and self.cells.n[:, position].sum() > 0
            return (
                f"undefined: {'too few people in the strata shared by all groups' if shared else values.metric.empty}"
            )
        if self.cells.labels[position] == MISSING:
            return "missing group: left out of gaps"
        if values.counted[position] < self.spec.min_count:
            who = " of the rarer outcome" if values.metric.kind == "rank" else ""
            number = int(values.counted[position])
            return f"small: {number}{who} is below min_count {self.spec.min_count}; left out of gaps"
        return "ok"

    def _comparable(self, values: GroupValues) -> IntArray:
        """Return the groups that enter gaps: known, large enough, defined."""
        known = self.cells.known
        fits = (values.counted[known] >= self.spec.min_count) & np.isfinite(values.value[known])
        return known[fits]

    def _add_gaps(self, values: GroupValues, drawn: Resampled | None) -> None:
        kept = self._comparable(values)
        for kind in KINDS:
            if len(kept) < 2:
                who = "only one group" if len(kept) else "no group"
                reason = f"{who} can be compared (min_count {self.spec.min_count})"
                self.gaps.append(self._no_gap(values.metric, kind, "worst_pair", reason))
                continue
            if kind == "ratio" and (values.bounds[0] < 0 or values.value[kept].min() < 0):
                reason = "a ratio needs values that cannot be negative"
                self.gaps.append(self._no_gap(values.metric, kind, "worst_pair", reason))
                continue
            for gap in self._gaps_of(values, drawn, kept, kind):
                self.gaps.append(self._gap_record(values, gap))

    def _gaps_of(self, values: GroupValues, drawn: Resampled | None, kept: IntArray, kind: Kind) -> Iterator[Gap]:
        confidence = self.spec.confidence
        by_bootstrap = self._by_bootstrap(values.metric)
        worst = worst_pair(values, kept, kind, confidence)
        if by_bootstrap and drawn is not None:
            own = self._drawn_interval(drawn, values, "value", kept)
            known = not np.isnan(own.low).any()  # a group whose resamples do not vary hides how unsure it is
            ends = drawn.widest_gap(values.metric.name, kept, kind, confidence) if known else (np.nan, np.nan)
            worst = replace(worst, limits=ends)
        yield worst
        if self.reference in kept:
            others = kept[kept != self.reference]
            gaps = to_reference(values, kept, self.reference, kind, confidence)
            if by_bootstrap:
                limits = self._drawn_interval(drawn, values, f"reference_{kind}", others)
                gaps = [replace(gap, limits=(low, high)) for gap, low, high in zip(gaps, *limits, strict=True)]
            yield from gaps
        overall = to_overall(values, kept, kind, confidence)
        if by_bootstrap:
            limits = self._drawn_interval(drawn, values, f"overall_{kind}", kept)
            overall = [replace(gap, limits=(low, high)) for gap, low, high in zip(overall, *limits, strict=True)]
        yield from overall

    def _drawn_interval(self, drawn: Resampled | None, values: GroupValues, block: str, groups: IntArray) -> Interval:
        if drawn is None:
            return Interval(np.full(len(groups), np.nan), np.full(len(groups), np.nan))
        low, high = drawn.interval(values.metric.name, block, self._method, self.spec.confidence)
        with np.errstate(invalid="ignore"):
            still = low == high  # nobody was drawn who would have made a difference: that is no certainty
        return Interval(np.where(still, np.nan, low)[groups], np.where(still, np.nan, high)[groups])

    def _gap_record(self, values: GroupValues, gap: Gap) -> GapRecord:
        name = GAP_NAMES.get((values.metric.name, gap.kind, gap.against))
        low, high = (finite(end) for end in gap.limits)
        n = values.n_overall if -1 in (gap.high, gap.low) else int(values.n[gap.high]) + int(values.n[gap.low])
        return GapRecord(
            self.model,
            self.grouping,
            self.stratum,
            values.metric.name,
            gap.kind,
            gap.against,
            None if gap.group is None else self.cells.labels[gap.group],
            self._label(gap.high),
            self._label(gap.low),
            n,
            finite(gap.value),
            low,
            high,
            _gap_status(gap, values.metric),
            self._worse_off(values.metric, gap),
            name,
        )

    def _worse_off(self, metric: Metric, gap: Gap) -> str | None:
        """Return the group on the worse side, where the interval leaves no doubt that there is one."""
        worse = metric.worse(self.favourable)
        equal = 0.0 if gap.kind == "difference" else 1.0
        low, high = gap.limits
        side = gap.high if worse == "higher" else gap.low
        return self._label(side) if worse is not None and (low > equal or high < equal) and side >= 0 else None

    def _label(self, position: int) -> str:
        return OVERALL if position < 0 else self.cells.labels[position]

    def _no_gap(self, metric: Metric, kind: Kind, against: Against, reason: str) -> GapRecord:
        name = GAP_NAMES.get((metric.name, kind, against))
        return GapRecord(
            self.model,
            self.grouping,
            self.stratum,
            metric.name,
            kind,
            against,
            None,
            None,
            None,
            0,
            None,
            None,
            None,
            f"undefined: {reason}",
            None,
            name,
        )


def _why_no_interval(metric: Metric) -> str:
    if metric.kind == "mean":
        return "nobody in this group differs from the others in it"
    if metric.kind == "rank":
        return "too few people of one outcome, or the scores tell the outcomes apart without fail"
    return "the resamples do not vary, or too many of them are undefined"


def _gap_status(gap: Gap, metric: Metric) -> str:
    low, high = gap.limits
    if np.isnan(gap.value):
        return "undefined: the value below the line is 0"
    if np.isnan(low) and np.isnan(high):
        if metric.kind in ("mean", "rank"):
            return "no interval: one of the groups has none of its own"
        return "no interval: some resamples do not vary or are undefined"
    if np.isinf(high):
        return "unbounded above: the value below the line may be 0"
    return "ok"
