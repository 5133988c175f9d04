"""Effort-aware individual fairness: values and differences of models, the least fair pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from evenhand.audits.effort.people import People
from evenhand.audits.effort.records import (
    CurveRecord,
    DifferenceRecord,
    IndividualRecord,
    PairRecord,
    PathRecord,
    PersonRecord,
)
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.numbers import finite
from evenhand.core.progress import step
from evenhand.stats.intervals import bonferroni
from evenhand.stats.pairs import PairFairness, compare, fairness_by_weight, individual_fairness, worst_pairs
from evenhand.stats.types import FloatArray

MOST_ENUMERATED = 200_000  # people up to whom the worst pairs are looked for
CURVE_WEIGHTS = tuple(k / 10 for k in range(11))

Found = dict[tuple[str, float], PairFairness]


def fairness_of(people: People, spec: EffortSpec) -> Found:
    """Return individual fairness for every model and weight."""
    found = {}
    for model, score in people.rows.scores.items():
        for weight in spec.weights:
            step(f"Comparing all pairs of people under {model}, weight {weight:g}")
            found[model, weight] = individual_fairness(
                score,
                people.effort,
                people.aggregate,
                weight,
                survey_weight=people.rows.weight,
                method=spec.method,
                confidence=spec.confidence,
                rng=np.random.default_rng(spec.seed),
                progress=_progress(f"Comparing all pairs of people under {model}, weight {weight:g}"),
            )
    return found


def individual_records(found: Found) -> Iterator[IndividualRecord]:
    """Yield a record for every model and weight."""
    for (model, weight), result in found.items():
        low, high = finite(result.low), finite(result.high)
        status = "ok"
        if low is None:
            status = _no_interval(result)
        yield IndividualRecord(
            model,
            weight,
            result.n,
            result.pairs,
            finite(result.violated),
            finite(result.stderr),
            result.method,
            float(result.error),
            finite(result.value),
            low,
            high,
            status,
        )


def _no_interval(result: PairFairness) -> str:
    if result.value == 1:
        return "no interval: no pair is treated unfairly"
    return (
        "no interval: too few people" if result.n < 3 else "no interval: everybody is treated equally fairly on average"
    )


def difference_records(found: Found, spec: EffortSpec) -> Iterator[DifferenceRecord]:
    """Yield the paired difference of every two models at every weight.

    The intervals hold for all pairs of models at a weight together (Bonferroni).
    """
    models = list(dict.fromkeys(model for model, _ in found))
    confidence = bonferroni(spec.confidence, max(1, len(models) * (len(models) - 1) // 2))
    for weight in spec.weights:
        for a, b in combinations(models, 2):
            one, two = found[a, weight], found[b, weight]
            if one.row_means is None or two.row_means is None:
                reason = "no interval: sampled pairs give no row means"
                yield DifferenceRecord(a, b, weight, one.n, None, one.value - two.value, None, None, reason)
                continue
            gap = compare(one, two, confidence)
            low, high = finite(gap.low), finite(gap.high)
            status = "ok" if low is not None else _no_interval(one)
            yield DifferenceRecord(a, b, weight, gap.n, finite(gap.stderr), finite(gap.value), low, high, status)


def person_records(people: People, found: Found, spec: EffortSpec) -> Iterator[PersonRecord]:
    """Yield the people whose pairs are least fair, where the table has an id to name them by."""
    if people.rows.ids is None or spec.worst == 0:
        return
    for (model, weight), result in found.items():
        if result.row_means is None or result.value == 1:
            continue
        names = np.array(people.rows.ids)
        for at in np.lexsort((names, np.round(result.row_means, 12)))[: spec.worst]:
            yield PersonRecord(
                model,
                weight,
                people.rows.ids[at],
                float(people.rows.scores[model][at]),
                float(people.effort[at]),
                float(people.aggregate[at]),
                float(result.row_means[at]),
            )


def pair_records(people: People, spec: EffortSpec) -> Iterator[PairRecord]:
    """Yield the least fair pairs, where the table has an id and pairs can be enumerated."""
    ids = people.rows.ids
    if ids is None or spec.worst == 0 or len(ids) > MOST_ENUMERATED:
        return
    for model, score in people.rows.scores.items():
        for weight in spec.weights:
            worst = worst_pairs(score, people.effort, people.aggregate, weight, spec.worst)
            for (a, b), excess in zip(worst.people, worst.excess, strict=True):
                gap = abs(float(score[a] - score[b]))
                yield PairRecord(
                    model, weight, ids[a], ids[b], float(score[a]), float(score[b]), gap - float(excess), float(excess)
                )


def path_records(people: People, pairs: tuple[PairRecord, ...]) -> Iterator[PathRecord]:
    """Yield the trajectories of the people who are in the least fair pairs."""
    wanted = set(dict.fromkeys(name for pair in pairs for name in (pair.id_a, pair.id_b)))
    times = people.times or tuple(float(step) for step in range(len(people.steps)))
    for row, name in enumerate(people.rows.ids or ()):
        if name in wanted:
            for at, (label, time) in enumerate(zip(people.steps, times, strict=True)):
                yield PathRecord(name, label, time, float(people.values[row, at]))


def curve_records(people: People, seed: int) -> Iterator[CurveRecord]:
    """Yield individual fairness at weights from 0 to 1: exact, or above 20,000 different people from a grid."""
    for model, score in people.rows.scores.items():
        step(f"Individual fairness by weight under {model}")
        found = fairness_by_weight(score, people.effort, people.aggregate, CURVE_WEIGHTS, people.rows.weight, seed=seed)
        yield from curve_of(model, *found)


def curve_of(model: str, values: FloatArray, errors: FloatArray) -> Iterator[CurveRecord]:
    """Yield the records of a curve; an error of 0 says that it is exact."""
    for weight, value, error in zip(CURVE_WEIGHTS, values, errors, strict=True):
        yield CurveRecord(model, weight, "grid" if error > 0 else "exact", float(error), float(value))


def _progress(description: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        step(f"{description}: {100 * done // max(total, 1)}%")

    return tell
