"""Agreement within groups: the statistics, a bootstrap of rating patterns, and intervals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.audits.agreement.people import Rated
from evenhand.audits.agreement.records import CountRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Ratings, Share, Statistic, values_of, why_undefined
from evenhand.audits.agreement.variation import Variation, variation_of
from evenhand.core.numbers import finite
from evenhand.stats.agreement import mean_squares, pooled_spread
from evenhand.stats.bootstrap import CellMoments, Draws, resample
from evenhand.stats.intervals import clopper_pearson
from evenhand.stats.types import BoolArray, FloatArray, IntArray

OVERALL = "(overall)"
MOST_ACCELERATED = 1_000
"""Rating patterns above which the interval is a percentile interval: the skewness term costs their square."""

EXACT, BOOTSTRAP = "exact", "bootstrap"


def row_label(grouping: str | None, group: str) -> str:
    """Return what a row of a chart or list is called: a group of that name is not taken for everybody.

    Examples
    --------
    >>> row_label(None, "(overall)"), row_label("sex", "F"), row_label("sex", "(overall)")
    ('(overall)', 'F', '(overall) of sex')
    """
    return f"{group} of {grouping}" if grouping is not None and group == OVERALL else group


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """The patterns of one group's ratings, how many people have each, and the statistics of resamples."""

    ratings: Ratings
    weight: FloatArray
    count: IntArray
    draws: Draws
    variation: Variation

    @property
    def n(self) -> int:
        """The people."""
        return int(self.count.sum())

    @cached_property
    def stderr(self) -> FloatArray:
        """(T,) the standard errors of the statistics; nan where too many resamples have no value."""
        return self.draws.stderr()


def pooled(rated: Rated) -> float:
    """Return V of the spread-adjusted ICC: twice the variance of all scores of all raters together."""
    known = ~np.isnan(rated.ratings)
    weight = np.ones(len(known)) if rated.weight is None else rated.weight
    each = np.broadcast_to(weight[:, np.newaxis], known.shape)
    return float(pooled_spread(rated.ratings[known], weight=each[known])) if rated.scale == "interval" else 0.0


def draw_group(
    rated: Rated, inside: BoolArray, statistics: Sequence[Statistic], spread: float, spec: AgreementSpec, *names: str
) -> GroupDraws:
    """Resample the people of a group; people with the same ratings and weight are counted together."""
    weight = np.ones(len(rated.ratings)) if rated.weight is None else rated.weight
    rows = np.column_stack([rated.ratings, weight])[inside]
    patterns, counted = np.unique(np.where(np.isnan(rows), np.inf, rows), axis=0, return_counts=True)
    patterns = np.where(np.isinf(patterns), np.nan, patterns)
    given = Ratings(tuple(patterns[:, :-1].T), len(rated.labels), spread)
    own = patterns[:, -1] * (counted.sum() / (patterns[:, -1] * counted).sum())  # survey weights with the mean 1

    def of_counts(counts: FloatArray, sums: FloatArray) -> FloatArray:  # noqa: ARG001
        return values_of(statistics, given, counts * own)

    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    seed = np.random.SeedSequence([spec.seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])
    cells = CellMoments.from_counts(counted.astype(np.int64))
    draws = resample(cells, of_counts, resamples=spec.resamples, rng=np.random.default_rng(seed))
    variation = variation_of(given, counted * own, counted.astype(np.float64))
    return GroupDraws(given, counted * own, counted.astype(np.int64), draws, variation)


def statistic_records(
    found: GroupDraws, place: tuple[str | None, str], statistics: Mapping[str, Statistic], spec: AgreementSpec
) -> Iterator[StatisticRecord]:
    """Yield the statistics of a group with their intervals."""
    bca = len(found.count) <= MOST_ACCELERATED
    limits = found.draws.bca(spec.confidence) if bca else found.draws.percentile(spec.confidence)
    group = None if place[0] is None else place[1]
    for at, (name, statistic) in enumerate(statistics.items()):
        value, method = finite(found.draws.estimate[at]), "BCa bootstrap" if bca else "percentile bootstrap"
        low, high, why = finite(limits.low[at]), finite(limits.high[at]), why_no_interval(found, at, statistic, group)
        if statistic.share is not None and value is not None:
            method, why = EXACT, None
            low, high = _exact_limits(found, statistic.share, spec.confidence)
        elif statistic.form is not None and value is not None and np.array_equal(found.weight, found.count):
            method = "F distribution"
            squares = mean_squares(*found.ratings.raters, weight=found.weight)
            by_f = squares.interval(statistic.form, spec.confidence)  # type: ignore[arg-type]
            low, high = finite(float(by_f.low)), finite(float(by_f.high))
            why = why if low is None or found.variation.disagreeing == 0 else None
        if why is None and low is None:
            why = "all resamples lie on one side of the value"
        if value is None:
            status = f"undefined: {why_undefined(statistic, found.ratings, found.weight)}"
        else:
            status = "ok" if why is None else f"no interval: {why}"
        if why is not None:
            low = high = None
        yield StatisticRecord(*place, name, found.n, method, value, low, high, status)


def _exact_limits(found: GroupDraws, share: Share, confidence: float) -> tuple[float, float]:
    slope, intercept = share(found.ratings.categories)
    limits = clopper_pearson(found.variation.agreement, found.variation.trials, confidence)
    return intercept + slope * float(limits.low), intercept + slope * float(limits.high)


def why_no_interval(found: GroupDraws, at: int, statistic: Statistic, group: str | None) -> str | None:
    """Return why the resamples of a group give no interval of a statistic, None where they do."""
    too_little = found.variation.too_little(group) if statistic.compared else None
    if too_little is not None:
        return too_little
    where = "" if group is None else f" of {group}"
    if np.isnan(found.stderr[at]):
        return f"too many resamples{where} have no value"
    return None if found.stderr[at] > 0 else f"the resamples{where} do not differ"


def count_records(rated: Rated, inside: BoolArray, place: tuple[str | None, str]) -> Iterator[CountRecord]:
    """Yield how many people two raters gave each pair of categories."""
    if rated.ratings.shape[1] != 2 or not rated.labels:
        return
    whole = rated.ratings[inside & ~np.isnan(rated.ratings).any(axis=1)].astype(np.int64)
    q = len(rated.labels)
    counted = np.bincount(whole[:, 0] * q + whole[:, 1], minlength=q * q)
    for at in np.flatnonzero(counted) if q > 2 else range(q * q):
        yield CountRecord(*place, rated.labels[int(at) // q], rated.labels[int(at) % q], int(counted[at]))
