"""One model, one grouping, one stratum: values, gaps and calibration as records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.audits.parity import estimate, resampled
from evenhand.audits.parity.estimate import GapEstimate, GroupValues
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import GAP_NAMES, ParityMetric
from evenhand.audits.parity.resampled import KINDS, Custom, Metrics, Resampled, Support
from evenhand.audits.parity.result import CalibrationRecord, ParityGap
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.formats import finite
from evenhand.core.records import OVERALL, Against, Kind, Value
from evenhand.stats.adverse_impact import most_by_chance
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import wilson
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import permutation_p
from evenhand.table.cells import Cells
from evenhand.table.keys import YES
from evenhand.table.roles import MISSING
from evenhand.table.rows import ScoreRows
from evenhand.table.table import Table

_SHUFFLES = 9_999
_NEVER = 1e-6  # how many of them are expected to be as uneven as the data, where none is drawn


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
    tested : whether gaps have p-values, which no confidence changes.
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
    tested: bool = True
    values: list[Value] = field(default_factory=list)
    gaps: list[ParityGap] = field(default_factory=list)

    def run(self) -> Analysis:
        """Fill the records."""
        batches = self._draws()
        drawn: Resampled | None = None
        estimates = [self._values(metric, custom) for metric, custom in self.metrics]
        tests = self._tests(estimates)
        for values in estimates:
            metric = values.metric
            if self._by_bootstrap(metric) and (drawn is None or metric.name not in drawn.metrics):
                drawn = None  # frees the last batch before the next is drawn
                drawn = next(batches, None)
            if drawn is not None and metric.name in drawn.metrics:
                self._ask(drawn, values)
            self._add_values(values, drawn)
            self._add_gaps(values, drawn, tests)
        return self

    def gaps_at(self, confidence: float, metrics: Collection[str]) -> list[ParityGap]:
        """Return the gaps, those of some metrics by limits at another confidence and without p-values."""
        asked = [pair for pair in self.metrics if pair[0].name in metrics]
        again = replace(self, spec=self.spec.at(confidence), metrics=asked, tested=False, values=[], gaps=[])
        fresh = iter(again.run().gaps if asked else ())
        return [next(fresh) if gap.metric in metrics else gap for gap in self.gaps]

    def _by_bootstrap(self, metric: ParityMetric) -> bool:
        """Tell whether all of a metric's intervals come from the bootstrap."""
        if metric.method == "rank":
            return False
        return metric.method == "custom" or self.support is not None or self.spec.interval != "auto"

    def _draws(self) -> Iterator[Resampled]:
        asked = [pair for pair in self.metrics if self._by_bootstrap(pair[0])]
        if not asked or self.cells.n.sum() == 0:
            return iter(())
        rng = deepcopy(self.rng)  # the same draws at every confidence
        return resampled.resample_groups(self.cells, asked, self.reference, self.spec.resamples, rng, self.support)

    def _ask(self, drawn: Resampled, values: GroupValues) -> None:
        """Have the limits of a metric at all confidences that its records need worked out at once."""
        kept = self._comparable(values)
        together = (1, int((kept != self.reference).sum()), len(kept))
        drawn.work_out(values.metric.name, self._method, {self._jointly(number) for number in together})

    def _jointly(self, number: int) -> float:
        """Return the confidence of each of several intervals that hold together (Sidak)."""
        return float(self.spec.confidence ** (1.0 / max(number, 1)))

    def _values(self, metric: ParityMetric, custom: Custom | None) -> GroupValues:
        if metric.method == "rank" and self.ranks is not None:
            return estimate.auc_values(*self.ranks, len(self.cells.labels), metric)
        if self.support is None and custom is None:
            return estimate.ratio_values(self.cells, metric, self.score_range)
        return self._bootstrapped_values(metric, custom)

    def _bootstrapped_values(self, metric: ParityMetric, custom: Custom | None) -> GroupValues:
        """Return values whose limits only the bootstrap knows."""
        used = np.ones(len(self.cells.strata), dtype=bool) if self.support is None else self.support[metric.name]
        below = metric.coefficients()[1] if custom is None else np.ones((2, 2))
        rows = (self.cells.n[used] * below.astype(np.int64)).sum(axis=(0, 2, 3))
        unknown = np.full(len(rows), np.nan)
        moments = self.cells.moments()
        sums = resampled.Sums.build(self.cells.n.shape, moments.n.astype(np.float64), moments.first)
        value = resampled.metric_values(sums, metric, custom, used)
        bounds = estimate.metric_bounds(metric, self.score_range)
        return GroupValues(metric, value[:-1], float(value[-1]), rows, int(rows.sum()), unknown, unknown, bounds)

    # Records ----------------------------------------------------------------------------------------------

    def _add_values(self, values: GroupValues, drawn: Resampled | None) -> None:
        if self._by_bootstrap(values.metric):
            limits = self._drawn_interval(drawn, values, "value", np.arange(len(values.value)))
        else:
            limits = values.limits(self.spec.confidence)
        limits = estimate.held(limits, values.value, values.bounds)
        for position, label in enumerate(self.cells.labels):
            low, high = finite(limits.low[position]), finite(limits.high[position])
            status = self._status(values, position)
            if status == "ok" and low is None and high is None:
                status = f"no interval: {_why_no_interval(values.metric)}"
            numbers: dict[str, Any] = {"n": int(values.n[position]), "value": finite(values.value[position])}
            numbers |= {"low": low, "high": high, "status": status}
            self.values.append(Value(group=label, metric=values.metric.name, **numbers, **self._coordinates))

    def _status(self, values: GroupValues, position: int) -> str:
        if np.isnan(values.value[position]):
            shared = self.support is not None and self.cells.n[:, position].sum() > 0
            return (
                f"undefined: {'too few people in the strata shared by all groups' if shared else values.metric.empty}"
            )
        if self.cells.labels[position] == MISSING:
            return "missing group: left out of gaps"
        if values.counted[position] < self.spec.min_count:
            who = " of the rarer outcome" if values.metric.method == "rank" else ""
            number = int(values.counted[position])
            return f"small: {number}{who}, fewer than min_count {self.spec.min_count}; left out of gaps"
        return "ok"

    def _comparable(self, values: GroupValues) -> IntArray:
        """Return the groups that enter gaps: known, large enough, defined."""
        known = self.cells.known
        fits = (values.counted[known] >= self.spec.min_count) & np.isfinite(values.value[known])
        return known[fits]

    def _tests(self, estimates: Sequence[GroupValues]) -> dict[estimate.Test, float]:
        """Return the p-values that do not come from the bootstrap."""
        compared = [(values, self._comparable(values)) for values in estimates if not self._by_bootstrap(values.metric)]
        several = [(values, kept) for values, kept in compared if len(kept) > 1]
        return estimate.equality_tests(several, self.reference) if self.tested else {}

    def _add_gaps(self, values: GroupValues, drawn: Resampled | None, tests: dict[estimate.Test, float]) -> None:
        kept = self._comparable(values)
        if self.tested and len(kept) > 1:
            tests |= self._own_tests(values, drawn, kept)
        for kind in KINDS:
            reason = None
            if len(kept) < 2:
                who = "only one group" if len(kept) else "no group"
                reason = f"{who} can be compared (min_count {self.spec.min_count})"
            elif kind == "ratio" and (-np.inf < values.bounds[0] < 0 or values.value[kept].min() < 0):
                reason = "a ratio needs values that cannot be negative"
            if reason is not None:
                undefined = {"n": 0, "value": None, "status": f"undefined: {reason}"}
                self.gaps.append(self._gap(values.metric, kind, "worst_pair", **undefined))
            else:
                gaps = list(self._gaps_of(values, drawn, kept, kind))
                for gap, ends in zip(gaps, _possible_limits(gaps, values.bounds), strict=True):
                    test = (values.metric.name, gap.against, -1 if gap.against == "worst_pair" else gap.group)
                    self.gaps.append(self._gap_record(values, gap, ends, tests.get(test, np.nan)))

    def _gaps_of(
        self, values: GroupValues, drawn: Resampled | None, kept: IntArray, kind: Kind
    ) -> Iterator[GapEstimate]:
        confidence = self.spec.confidence
        by_bootstrap = self._by_bootstrap(values.metric)
        formula = None if by_bootstrap and drawn is not None else confidence

        def with_limits(gaps: list[GapEstimate], block: str) -> list[GapEstimate]:
            if not by_bootstrap:
                return gaps
            groups = np.array([gap.group for gap in gaps], dtype=np.int64)
            own = self._drawn_interval(drawn, values, block, groups)
            joint = self._drawn_interval(drawn, values, block, groups, self._jointly(len(gaps)))
            equal = 0.0 if kind == "difference" else 1.0
            return [
                replace(gap, limits=(low, high), joint=ends, differs=low > equal or high < equal)
                for gap, low, high, ends in zip(gaps, *own, zip(*joint, strict=True), strict=True)
            ]

        worst = estimate.worst_pair(values, kept, kind, formula)
        if by_bootstrap and drawn is not None:
            ends, _ = self._drawn_worst_pair(drawn, values, kept, kind)
            differs = ends[0] > 0 if kind == "difference" else ends[1] < 1
            worst = replace(worst, limits=ends, joint=ends, differs=differs)
        yield worst
        if self.reference in kept:
            gaps = estimate.to_reference(values, kept, self.reference, kind, formula)
            yield from with_limits(gaps, f"reference_{kind}")
        yield from with_limits(estimate.to_overall(values, kept, kind, formula), f"overall_{kind}")

    def _drawn_worst_pair(
        self, drawn: Resampled, values: GroupValues, kept: IntArray, kind: Kind
    ) -> tuple[tuple[float, float], float]:
        """Return the limits of the worst pair's gap and its p-value, by the bootstrap."""
        group_limits = self._drawn_interval(drawn, values, "value", kept)
        if np.isnan(group_limits.low).any():  # a group whose resamples do not vary hides how unsure it is
            return (np.nan, np.nan), np.nan
        return drawn.widest_gap(values.metric.name, kept, kind, self.spec.confidence)

    def _own_tests(self, values: GroupValues, drawn: Resampled | None, kept: IntArray) -> dict[estimate.Test, float]:
        """Return the p-values of one metric: by the bootstrap, and of shuffled labels where it may become a finding."""
        metric = values.metric
        tests: dict[estimate.Test, float] = {}
        if drawn is not None and self._by_bootstrap(metric):
            tests[metric.name, "worst_pair", -1] = self._drawn_worst_pair(drawn, values, kept, "difference")[1]
            bases: tuple[Against, ...] = ("reference", "overall")
            for against in bases:
                p_values = drawn.p_values(metric.name, f"{against}_difference", self._method)
                tests |= {(metric.name, against, int(group)): float(p_values[group]) for group in kept}
        if metric.method == "rate" and metric.headline and self.stratum is None and not self.cells.weighted:
            yes = np.rint(values.value[kept] * values.n[kept]).astype(np.int64)
            found = chance = most_by_chance(yes, values.n[kept])
            if _SHUFFLES * chance > _NEVER:
                rng = named_rng(self.spec.seed, self.model, self.grouping, f"permutation {metric.name}")
                found = permutation_p(yes, values.n[kept], rng, _SHUFFLES)
                if found <= 1 / (1 + _SHUFFLES):  # all that shuffles can tell; below it, a bound is valid
                    found = min(found, chance)
            tests[metric.name, "worst_pair", -1] = found
        return tests

    @property
    def _method(self) -> resampled.Method:
        return "bca" if self.spec.interval == "auto" else self.spec.interval

    def _drawn_interval(
        self,
        drawn: Resampled | None,
        values: GroupValues,
        block: str,
        groups: IntArray,
        confidence: float | None = None,
    ) -> Interval:
        if drawn is None:
            return Interval(np.full(len(groups), np.nan), np.full(len(groups), np.nan))
        low, high = drawn.interval(values.metric.name, block, self._method, confidence or self.spec.confidence)
        return Interval(low[groups], high[groups])

    def _gap_record(self, values: GroupValues, gap: GapEstimate, ends: list[float], p_value: float) -> ParityGap:
        sides = (gap.group, gap.reference)
        certainty = dict(zip(("low", "joint_low", "high", "joint_high"), ends, strict=True))
        return self._gap(
            values.metric,
            gap.kind,
            gap.against,
            group=self._label(gap.group),
            reference=self._label(gap.reference),
            n=values.n_overall if -1 in sides else sum(int(values.n[side]) for side in sides),
            value=finite(gap.value),
            **{name: finite(end) for name, end in certainty.items()},
            p_value=finite(p_value),
            worse_off=self._worse_off(values.metric, gap),
            status=_gap_status(gap, values.metric),
        )

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {"model": self.model, "grouping": self.grouping, "stratum": self.stratum}

    def _gap(self, metric: ParityMetric, kind: Kind, against: Against, **columns: Any) -> ParityGap:
        name = GAP_NAMES.get((metric.name, kind, against))
        return ParityGap(metric=metric.name, kind=kind, against=against, name=name, **self._coordinates, **columns)

    def _worse_off(self, metric: ParityMetric, gap: GapEstimate) -> str | None:
        """Return the group on the worse side, where the interval leaves no doubt that there is one."""
        worse = metric.worse_value(self.favourable)
        side = gap.group if gap.higher == (worse == "higher") else gap.reference
        return self._label(side) if worse is not None and gap.differs and side >= 0 else None

    def _label(self, position: int) -> str:
        return OVERALL if position < 0 else self.cells.labels[position]


def _why_no_interval(metric: ParityMetric) -> str:
    if metric.method == "mean":
        return "nobody in this group differs from the others in it"
    if metric.method == "rank":
        return "too few people of one outcome, or the scores tell the outcomes apart without fail"
    return "the resamples do not vary, or too many of them are undefined"


def _possible_limits(gaps: Sequence[GapEstimate], bounds: tuple[float, float]) -> list[list[float]]:
    """Return for every gap the lower limits, its own and the joint one, then the upper ones, held to what is possible.

    Parameters
    ----------
    gaps : in numbers.
    bounds : the lowest and highest possible value of the metric.
    """
    limits = np.array([(gap.limits, gap.joint) for gap in gaps])
    least, most = np.array([_gap_bounds(gap.kind, gap.against, bounds) for gap in gaps]).T[:, :, np.newaxis]
    value = np.array([gap.value for gap in gaps])[:, np.newaxis]
    held = estimate.held(Interval(limits[..., 0], limits[..., 1]), value, (least, most))
    return [ends.tolist() for ends in np.concatenate(held, axis=1)]


def _gap_bounds(kind: Kind, against: Against, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and largest possible gap of values between bounds; that of a worst pair has no sign."""
    if kind == "ratio":
        return 0.0, 1.0 if against == "worst_pair" else np.inf
    span = bounds[1] - bounds[0]
    return 0.0 if against == "worst_pair" else -span, span


def _gap_status(gap: GapEstimate, metric: ParityMetric) -> str:
    low, high = gap.limits
    if np.isnan(gap.value):
        return "undefined: the value below the line is 0"
    if np.isnan(low) and np.isnan(high):
        if metric.method in ("mean", "rank"):
            return "no interval: one of the groups has none of its own"
        return "no interval: some resamples do not vary or are undefined"
    if np.isinf(high):
        return "unbounded above: the value below the line may be 0"
    return "ok"


def calibration_records(
    cells: Cells, table: Table, model: str, grouping: str, spec: ParitySpec
) -> Iterator[CalibrationRecord]:
    """Yield, for each group and score bin, the mean score and the share with the positive outcome.

    The share has Wilson limits; with survey weights n is Kish's effective size.
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
        limits = wilson(share, total**2 / by_bin(squares), spec.confidence)
    low, high = table.prediction(model).range
    edges = low + (high - low) * np.arange(spec.bins + 1) / spec.bins
    for cell in np.flatnonzero(n):
        group, part = divmod(int(cell), spec.bins)
        status = "ok" if n[cell] >= spec.min_count else f"small: {int(n[cell])}, fewer than min_count {spec.min_count}"
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
            status=status,
        )
