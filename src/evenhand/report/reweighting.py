"""Groups among people who are weighted by another column: their rates and means, and gaps between them, with limits.

With weights w by part of the other column, sums n, x and y of people, of a quantity and of its square by group and
part, the value of a group is r = sum(w x) / sum(w n), and its linearised variance
V = sum(w² (y - 2 r x + r² n)) / sum(w n)². A rate has exact limits at the smaller of Kish's effective size
sum(w n)² / sum(w² n) and r (1 - r) / V (Korn and Graubard 1998, Survey Methodology 24), a mean of scores
`bounded_mean` with sqrt(V n / (n - 1)) at Kish's. Gaps are combined by MOVER; of a worst pair as in
`evenhand.stats.worst_pair`.

Shares p of a population that are known from m of its people vary themselves, with the covariance
(diag(p) - p p') / m of a sample. By the delta method a gap then varies by s² = g' C g more, g its slope in the weights,
and each limit moves away: by the root of the sum of squares of its own distance and z s, a ratio on the log scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED
from evenhand.core.thresholds import Threshold, Verdict, judge
from evenhand.stats.intervals import bonferroni, bounded_mean, clopper_pearson, mover_difference, mover_ratio
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, range_confidence, widest_difference
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.gather import People
    from evenhand.audits.effort.spec import EffortSpec
    from evenhand.audits.parity.result import ParityResult
    from evenhand.table.table import Table

Judged = tuple[float, float, float]
"""A value, or the size of a gap, with its limits."""


class Moments(NamedTuple):
    """Sums by group and part of another column: the people who count, the quantity, and its square."""

    n: FloatArray
    first: FloatArray
    second: FloatArray

    def rest(self, group: int) -> Moments:
        """Return three rows: a group, everybody else, and everybody."""
        others = np.arange(len(self.n)) != group
        return Moments(*(np.stack([part[group], part[others].sum(axis=0), part.sum(axis=0)]) for part in self))

    def only(self, groups: list[int]) -> Moments:
        """Return the sums of some groups."""
        return Moments(*(part[groups] for part in self))


@dataclass(frozen=True)
class Weighted:
    """The values of weighted groups.

    Parameters
    ----------
    value, stderr, size : rate or mean of each group, its standard error, and as how many people it counts.
    slope : (groups, parts) by how much the value changes with the weight of a part.
    heavy : the sum of the weights.
    bounds : the lowest and highest possible score; None for a rate.
    spread : the covariance of the weights, where their shares are those of a sample.
    """

    value: FloatArray
    stderr: FloatArray
    size: FloatArray
    slope: FloatArray
    heavy: FloatArray
    bounds: tuple[float, float] | None = None
    spread: FloatArray | None = None

    @classmethod
    def of(
        cls,
        sums: Moments,
        weight: FloatArray,
        bounds: tuple[float, float] | None = None,
        spread: FloatArray | None = None,
    ) -> Self:
        """Return the values of groups whose parts have these weights.

        Examples
        --------
        >>> hits, n = np.array([[30.0, 10.0]]), np.array([[60.0, 40.0]])
        >>> found = Weighted.of(Moments(n, hits, hits), np.array([1.0, 1.0]))
        >>> found.value.tolist(), found.size.round(6).tolist()
        ([0.4], [100.0])
        """
        with np.errstate(all="ignore"):
            heavy = sums.n @ weight
            value = sums.first @ weight / heavy
            kish = heavy**2 / (sums.n @ weight**2)
            each = value[:, None]
            squares = np.maximum(sums.second - 2 * each * sums.first + each**2 * sums.n, 0.0) @ weight**2
            variance = squares / heavy**2
            if bounds is None:
                linearised = value * (1 - value) / variance
                size = np.fmin(kish, np.where(linearised > 0, linearised, np.nan))
            else:
                people = (sums.n * (weight > 0)).sum(axis=1)
                size, variance = kish, variance * people / (people - 1.0)
            slope = (sums.first - each * sums.n) / heavy[:, None]
        return cls(value, np.sqrt(variance), size, slope, heavy, bounds, spread)

    def limits(self, confidence: float) -> Interval:
        """Return the limits of each group on its own, shares taken as exact."""
        if self.bounds is None:
            return clopper_pearson(self.value, self.size, confidence)
        return bounded_mean(self.value, self.stderr, self.size, confidence, self.bounds)

    def beyond(self, slope: FloatArray, confidence: float) -> FloatArray:
        """Return z times the standard deviation that shares of a sample add, for rows of slopes in the weights."""
        return np.zeros(len(slope)) if self.spread is None else _extra(self.spread, slope, confidence)

    def pairs(self, one: IntArray, other: IntArray, kind: str, confidence: float) -> Interval:
        """Return limits of the differences or ratios of some groups, pair by pair."""
        own = self.limits(confidence)
        sides = [(self.value[side], Interval(own.low[side], own.high[side])) for side in (one, other)]
        if kind == "difference":
            limits = mover_difference(*sides[0], *sides[1])
            apart = self.slope[one] - self.slope[other]
            return _wider(self.value[one] - self.value[other], limits, self.beyond(apart, confidence))
        found = mover_ratio(*sides[0], *sides[1])
        # Of two zeros nothing is known, which among many pairs is no reason to know less of the others.
        empty = (self.value[one] == 0) & (self.value[other] == 0)
        limits = Interval(np.where(empty, 0.0, found.low), np.where(empty, np.inf, found.high))
        return _wider_ratio(self, one, other, limits, confidence)


def _extra(spread: FloatArray, slope: FloatArray, confidence: float) -> FloatArray:
    from scipy.special import ndtri

    variance = np.einsum("...a,ab,...b->...", slope, spread, slope)
    return np.asarray(ndtri((1 + confidence) / 2) * np.sqrt(np.maximum(variance, 0.0)))


def _wider(value: FloatArray, limits: Interval, extra: FloatArray) -> Interval:
    return Interval(value - np.hypot(value - limits.low, extra), value + np.hypot(limits.high - value, extra))


def _wider_ratio(values: Weighted, one: IntArray, other: IntArray, limits: Interval, confidence: float) -> Interval:
    """Return limits of ratios, wider on the log scale by what the shares vary; 0 and infinity stay."""
    if values.spread is None:
        return limits
    with np.errstate(all="ignore"):
        relative = values.slope / values.value[:, None]
        extra = values.beyond(relative[one] - relative[other], confidence)
        ratio = values.value[one] / values.value[other]
        low = ratio * np.exp(-np.hypot(np.log(ratio / limits.low), extra))
        high = ratio * np.exp(np.hypot(np.log(limits.high / ratio), extra))
    return Interval(np.where(limits.low > 0, low, limits.low), np.where(np.isfinite(limits.high), high, limits.high))


def value_judged(values: Weighted, confidence: float) -> Judged:
    """Return the value of the first group with its limits."""
    limits = _wider(values.value, values.limits(confidence), values.beyond(values.slope, confidence))
    return float(values.value[0]), float(limits.low[0]), float(limits.high[0])


def gap_judged(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the size of the largest gap of some groups with its limits; of two groups, that between them.

    Far from equality the limits are the pairs' own; near to it they hold for all pairs together (Tukey).

    Examples
    --------
    >>> hits, n = np.array([[30.0], [52.0]]), np.array([[100.0], [100.0]])
    >>> gap = gap_judged(Weighted.of(Moments(n, hits, hits), np.ones(1)), "difference", 0.95)
    >>> [round(each, 3) for each in gap]
    [0.22, 0.077, 0.354]
    """
    one, other = np.triu_indices(len(values.value), 1)
    near = values.pairs(one, other, kind, range_confidence(confidence, len(values.value)))
    far = near if len(one) == 1 else values.pairs(one, other, kind, confidence)
    if kind == "difference":
        return float(np.abs(values.value[one] - values.value[other]).max()), *widest_difference(near, far)
    return float(np.nanmin(_ratios(values.value[one], values.value[other]))), *narrowest_ratio(near, far)


def _ratios(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the smaller over the larger of every two; nan for two zeros."""
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(one, other) / np.maximum(one, other))


def everybody_judged(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the size of the gap between a group and everybody; the rows are the group, all others, and everybody.

    With s the group's share of everybody, group - everybody = (1 - s) (group - others), and with R = group / others
    group / everybody = R / (s R + 1 - s), so the limits follow from those against the others.
    """
    group, others, everybody = (np.array([at]) for at in range(3))
    share = float(values.heavy[0] / values.heavy[2])
    found = replace(values, spread=None).pairs(group, others, kind, confidence)
    if kind == "difference":
        limits = Interval((1 - share) * found.low, (1 - share) * found.high)
        apart = values.slope[group] - values.slope[everybody]
        limits = _wider(values.value[group] - values.value[everybody], limits, values.beyond(apart, confidence))
        return float(abs(values.value[0] - values.value[2])), *widest_difference(limits)
    with np.errstate(all="ignore"):
        low = found.low / (share * found.low + 1 - share)
        high = np.where(np.isinf(found.high), 1 / share, found.high / (share * found.high + 1 - share))
    limits = _wider_ratio(values, group, everybody, Interval(low, high), confidence)
    return float(_ratios(values.value[group], values.value[everybody])[0]), *narrowest_ratio(limits)


# Findings judged again -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mix:
    """People with other shares of the groups of one column.

    Parameters
    ----------
    column, what : the column, and the shares in words.
    weight : the weight of each group of the column.
    spread : the covariance of the weights, where shares are those of a sample.
    """

    column: str
    what: str
    weight: FloatArray
    spread: FloatArray | None = None

    @property
    def as_is(self) -> Mix:
        """The people as they are."""
        return replace(self, weight=np.ones_like(self.weight), spread=None)


def _threshold(finding: Finding) -> Threshold:
    side = "max" if str(finding.threshold).startswith("at most") else "min"
    return Threshold.model_validate({"metric": finding.metric, side: finding.limit})


@dataclass(frozen=True)
class ParityAgain:
    """Judges verdicts of the parity audit among weighted people."""

    table: Table
    result: ParityResult

    def why_not(self, finding: Finding) -> str | None:
        """Return why a verdict cannot be judged again; None where it can."""
        metric = self.result.spec.known_metrics().get(finding.metric)
        if finding.value is None:
            return "there is no number to begin with"
        if metric is None or metric.method not in ("rate", "mean"):
            return f"{finding.metric} is no mean over people that could be weighted here"
        if finding.stratum == STANDARDISED:
            return "a mean over strata has shares of its own, which other shares of the people would change as well"
        return None

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Tell whether shares of a column can matter: of its own columns only for a gap to everybody."""
        return finding.against == "overall" or column not in self.table.groupings[str(finding.grouping)]

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the number among weighted people with its limits, and the verdict."""
        sums, labels = self._sums(finding, mix)
        confidence = self.result.spec.confidence
        bounds = None
        if METRICS[finding.metric].method == "mean":
            own = self.table.prediction(str(finding.model)).range
            bounds = own if finding.metric == "mean_score" else (0.0, 1.0)
        if finding.against == "overall":
            sums = sums.rest(labels.index(str(finding.group)))
        else:
            sums = sums.only(self._compared(finding, labels))
        values = Weighted.of(sums, mix.weight, bounds, mix.spread)
        if finding.kind is None:
            found = value_judged(values, confidence)
        elif finding.against == "overall":
            found = everybody_judged(values, finding.kind, confidence)
        else:
            found = gap_judged(values, finding.kind, confidence)
        return found, judge(_threshold(finding), *found)

    def _compared(self, finding: Finding, labels: tuple[str, ...]) -> list[int]:
        """Return the groups that the finding is about: one, two with the group first, or all of a worst pair."""
        if finding.kind is None:
            return [labels.index(str(finding.group))]
        if finding.against == "reference":
            return [labels.index(str(finding.group)), labels.index(str(finding.reference))]
        place = {name: getattr(finding, name) for name in ("model", "grouping", "metric", "stratum")}
        return [labels.index(value.group) for value in self.result.rows("values", **place) if value.status == "ok"]

    def _sums(self, finding: Finding, mix: Mix) -> tuple[Moments, tuple[str, ...]]:
        """Return the sums of a metric by group and part of the other column."""
        model, spec, metric = str(finding.model), self.result.spec, METRICS[finding.metric]
        scored = self.table.has_scores(model)
        cells = (
            self.table.score_cells(model, spec.within, spec.bins) if scored else self.table.counts(model, spec.within)
        )
        if finding.stratum is not None:
            strata, names = cells.joint(spec.within)
            cells = cells.where(strata == names.index(finding.stratum))
        found = GroupCells.build(cells, model, self.table.groupings[str(finding.grouping)], [mix.column])
        above, below = metric.coefficients()
        parts = (
            np.einsum("pgyd,yd->gp", found.first[..., 0], below),
            np.einsum("pgydi,ydi->gp", found.first, above),
            np.einsum("ydi,pgydij,ydj->gp", above, found.second, above),
        )
        every = self.table.cells.labels[column_key(mix.column)]
        at = [every.index(label) for label in found.strata]
        whole = [np.zeros((len(found.labels), len(every))) for _ in parts]
        for target, part in zip(whole, parts, strict=True):
            target[:, at] = part
        return Moments(*whole), found.labels


@dataclass(frozen=True)
class EffortAgain:
    """Judges verdicts of the effort audit among weighted people: individual fairness, and parity by effort."""

    table: Table
    spec: EffortSpec

    def why_not(self, finding: Finding) -> str | None:
        """Return why a verdict cannot be judged again; None where it can."""
        from evenhand.audits.effort.imputation import is_uncertain
        from evenhand.audits.effort.large_table import MOST_IN_MEMORY

        if finding.value is None:
            return "there is no number to begin with"
        if finding.metric not in ("eaif", "eagf") or finding.against == "model":
            return f"for {finding.metric} there are no limits with other shares here"
        if self.table.rows > MOST_IN_MEMORY:
            return f"more than {MOST_IN_MEMORY:,} people stay in the data's engine, where pairs are not weighted anew"
        if is_uncertain(self.spec):
            return "the rates of inertia are uncertain, and limits with other shares would not allow for that"
        return None

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Tell whether shares of a column can matter: of all columns for pairs of people."""
        return finding.grouping is None or column not in self.table.groupings[finding.grouping]

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the number among weighted people with its limits, and the verdict."""
        threshold = _threshold(finding)
        if finding.metric == "eaif":
            found = self._individual(finding, mix)
            return found, judge(threshold, *found)
        bins = list(self._bins(finding, mix))
        verdicts = [judge(threshold, *joint) for _, joint in bins]
        if "does_not_meet" in verdicts:
            broken = [joint for (_, joint), verdict in zip(bins, verdicts, strict=True) if verdict == "does_not_meet"]
            return min(broken), "does_not_meet"
        own = min(alone for alone, _ in bins)
        met = all(judge(threshold, *alone) == "meets" for alone, _ in bins)
        return (own, "meets") if met else (min(joint for _, joint in bins), "insufficient_evidence")

    @cached_property
    def _people(self) -> People:
        from evenhand.audits.effort.gather import gather

        return gather(self.table, self.spec)

    def _individual(self, finding: Finding, mix: Mix) -> Judged:
        """Return individual fairness over all pairs, both people weighted."""
        from evenhand.stats.pairs import individual_fairness

        people = self._people
        parts = people.rows.groups.codes[column_key(mix.column)]
        weight = mix.weight[parts]
        found = individual_fairness(
            *people.numbers(str(finding.model)),
            float(finding.coordinates["weight"]),
            survey_weight=weight,
            rng=np.random.default_rng(self.spec.seed),
            method=self.spec.method,
            confidence=self.spec.confidence,
            distance=people.distance,
        )
        if mix.spread is None:
            return found.value, found.low, found.high
        if found.row_means is None:
            return found.value, float("nan"), float("nan")
        # The slope of a mean over pairs in the weight of a part: twice the sum of (h - U) over the people of the part.
        apart = np.zeros(len(weight))
        apart[weight > 0] = found.row_means - found.value
        slope = 2 * np.bincount(parts, weights=apart, minlength=len(mix.weight)) / weight.sum()
        extra = _extra(mix.spread, slope, self.spec.confidence)
        low, high = np.hypot([found.value - found.low, found.high - found.value], extra).tolist()
        return found.value, found.value - low, min(found.value + high, 1.0)

    def _bins(self, finding: Finding, mix: Mix) -> Iterator[tuple[Judged, Judged]]:
        """Yield the parity of every bin in which groups are compared: by its own limits, and by those of all bins."""
        from evenhand.stats.effort import effort_bins

        people, model = self._people, str(finding.model)
        groups, labels = people.rows.groups.joint(self.table.groupings[str(finding.grouping)])
        parts, score = people.rows.groups.codes[column_key(mix.column)], people.compared(model)
        known = np.array([label != MISSING for label in labels])
        bins = effort_bins(people.effort, self.spec.width)
        shape = len(labels), len(mix.weight)
        compared = []
        for number in np.unique(bins).tolist():
            sums = _sums_of(bins == number, groups * shape[1] + parts, score, shape)
            kept = np.flatnonzero(known & (sums.n.sum(axis=1) >= self.spec.min_count)).tolist()
            if len(kept) > 1:
                compared.append(Weighted.of(sums.only(kept), mix.weight, (0.0, 1.0), mix.spread))
        joint = bonferroni(self.spec.confidence, max(len(compared), 1))
        for values in compared:
            yield gap_judged(values, "ratio", self.spec.confidence), gap_judged(values, "ratio", joint)


def _sums_of(mine: BoolArray, place: IntArray, score: FloatArray, shape: tuple[int, int]) -> Moments:
    """Return the sums of scores and of their squares by group and part, of some people."""
    size = shape[0] * shape[1]
    each: list[Any] = [None, score[mine], score[mine] ** 2]
    parts = (np.bincount(place[mine], weights=weight, minlength=size) for weight in each)
    return Moments(*(np.asarray(part, dtype=np.float64).reshape(shape) for part in parts))
