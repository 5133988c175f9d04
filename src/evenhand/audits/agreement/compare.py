"""Agreement within groups and the gaps between them: a bootstrap of rating patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.audits.agreement.people import Rated
from evenhand.audits.agreement.records import CountRecord, GapRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Ratings, Statistic, values_of, why_undefined
from evenhand.core.compared import Compared
from evenhand.core.numbers import finite
from evenhand.stats.agreement import mean_squares, pooled_spread
from evenhand.stats.bootstrap import CellMoments, Draws, resample
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.types import BoolArray, FloatArray, IntArray

OVERALL = "(overall)"
MOST_ACCELERATED = 1_000
"""Rating patterns above which the interval is a percentile interval: the skewness term costs their square."""

_NOTHING_VARIES = "no interval: the resamples do not differ"


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """The patterns of one group's ratings, how many people have each, and the statistics of resamples."""

    ratings: Ratings
    weight: FloatArray
    count: IntArray
    draws: Draws

    @property
    def n(self) -> int:
        """The people."""
        return int(self.count.sum())


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
    return GroupDraws(given, counted * own, counted.astype(np.int64), draws)


def statistic_records(
    found: GroupDraws, place: tuple[str | None, str], statistics: Mapping[str, Statistic], spec: AgreementSpec
) -> Iterator[StatisticRecord]:
    """Yield the statistics of a group with their intervals."""
    bca = len(found.count) <= MOST_ACCELERATED
    limits = found.draws.bca(spec.confidence) if bca else found.draws.percentile(spec.confidence)
    spread = found.draws.stderr()
    for at, (name, statistic) in enumerate(statistics.items()):
        value, method = finite(found.draws.estimate[at]), "BCa bootstrap" if bca else "percentile bootstrap"
        low, high = finite(limits.low[at]), finite(limits.high[at])
        if not spread[at] > 0:
            low = high = None
        if statistic.form is not None and value is not None and np.array_equal(found.weight, found.count):
            method = "F distribution"
            squares = mean_squares(*found.ratings.raters, weight=found.weight)
            by_f = squares.interval(statistic.form, spec.confidence)  # type: ignore[arg-type]
            low, high = finite(float(by_f.low)), finite(float(by_f.high))
        status = "ok" if low is not None else _NOTHING_VARIES
        if value is None:
            status = f"undefined: {why_undefined(statistic, found.ratings, found.weight)}"
        yield StatisticRecord(*place, name, found.n, method, value, low, high, status)


def gap_records(
    grouping: Compared, drawn: Sequence[GroupDraws], statistics: Mapping[str, Statistic], spec: AgreementSpec
) -> Iterator[GapRecord]:
    """Yield the gaps to the reference group: value ± z standard errors, and the test that it is 0."""
    from scipy.special import ndtr

    base = drawn[grouping.reference]
    for group in grouping.others:
        own = drawn[group]
        draws = Draws(own.draws.estimate - base.draws.estimate, own.draws.values - base.draws.values)
        stderr = draws.stderr()
        for at, (name, statistic) in enumerate(statistics.items()):
            if not statistic.compared:
                continue
            value, error = finite(draws.estimate[at]), finite(stderr[at])
            low = high = p_value = None
            status = _NOTHING_VARIES
            if value is None:
                bad = own if np.isnan(own.draws.estimate[at]) else base
                status = f"undefined: {why_undefined(statistic, bad.ratings, bad.weight)}"
            elif error is None:
                status = "no interval: too many resamples have no value"
            elif error > 0:
                half, status = normal_quantile(spec.confidence) * error, "ok"
                low, high, p_value = value - half, value + half, float(2.0 * ndtr(-abs(value / error)))
            names = (grouping.name, grouping.groups[group], grouping.groups[grouping.reference], name)
            yield GapRecord(*names, own.n + base.n, error, p_value, value, low, high, status)


def count_records(rated: Rated, inside: BoolArray, place: tuple[str | None, str]) -> Iterator[CountRecord]:
    """Yield how many people two raters gave each pair of categories."""
    if rated.ratings.shape[1] != 2 or not rated.labels:
        return
    whole = rated.ratings[inside & ~np.isnan(rated.ratings).any(axis=1)].astype(np.int64)
    q = len(rated.labels)
    counted = np.bincount(whole[:, 0] * q + whole[:, 1], minlength=q * q)
    for at in np.flatnonzero(counted) if q > 2 else range(q * q):
        yield CountRecord(*place, rated.labels[int(at) // q], rated.labels[int(at) % q], int(counted[at]))
