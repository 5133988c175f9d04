"""Individual fairness over all pairs of people: values, differences of models, least fair pairs, curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any, cast

import numpy as np

from evenhand.audits.effort import result as records
from evenhand.audits.effort.bins import limit_columns
from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.large_table import LargeTable, cell_numbers
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.spec import CURVE_WEIGHTS, EffortSpec
from evenhand.core.progress import step
from evenhand.core.records import OK, OVERALL
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni
from evenhand.stats.pairs import (
    CARD_ROWS,
    EXACT_ROWS,
    FairnessOfModels,
    PairFairness,
    card_worst_pairs,
    compare,
    fairness_by_weight,
    individual_fairness,
    individual_fairness_of_models,
    is_card,
    shrinkages,
    spread_of,
    worst_pairs,
)
from evenhand.stats.pairs.result import PairDifference
from evenhand.stats.types import FloatArray
from evenhand.table.table import Table

MOST_ENUMERATED = 200_000  # maximum number of people with enumerated worst pairs
SPREAD_BINS = 30

# Individuals: every pair of people.

Fairness = Mapping[tuple[str, float], PairFairness]


def individual_estimates(people: EffortPeople, spec: EffortSpec) -> FairnessOfModels:
    """Return individual fairness of every model and weight, also at the spreads of the other models' scores."""
    scores = people.rows.scores
    spreads = {model: spread_of(score, people.rows.weight) for model, score in scores.items()}
    shrunk = {pair: factor * scores[pair[0]] for pair, factor in shrinkages(spreads).items()}
    found = _compare_pairs(people, spec, {(model, model): score for model, score in scores.items()} | shrunk)
    return FairnessOfModels.of({(model, to, weight): each for ((model, to), weight), each in found.items()}, spreads)


def _compare_pairs(
    people: EffortPeople, spec: EffortSpec, scores: Mapping[tuple[str, str], FloatArray]
) -> Mapping[tuple[tuple[str, str], float], PairFairness]:
    """Return individual fairness of scores at every weight; keys are a model and the model of the spread."""
    options: dict[str, Any] = {
        "method": spec.method,
        "confidence": spec.confidence,
        "survey_weight": people.rows.weight,
        "distance": people.distance,
    }
    if is_card(spec.device):
        doing = "Comparing all pairs of people on the graphics card"
        step(doing)
        return individual_fairness_of_models(
            scores,
            people.effort,
            people.aggregate,
            spec.weights,
            progress=partial(_report_progress, doing),
            **options,
        )
    estimates = {}
    for (model, to), weight in product(scores, spec.weights):
        spread = "" if model == to else f" at the spread of {to}"
        doing = f"Comparing all pairs of people under {model}{spread}, weight {weight:g}"
        step(doing)
        estimates[(model, to), weight] = individual_fairness(
            scores[model, to],
            people.effort,
            people.aggregate,
            weight,
            progress=partial(_report_progress, doing),
            **options,
        )
    return estimates


def _report_progress(doing: str, done: int, total: int) -> None:
    step(doing, f"{100 * done // max(total, 1)}%")


def individual_values(estimates: FairnessOfModels, confidence: float) -> Iterator[records.EffortValue]:
    """Yield individual fairness of every model and weight, with limits at a confidence."""
    for (model, weight), model_fairness in estimates.own.items():
        estimate = model_fairness.at(confidence)
        numbers: dict[str, Any] = {
            name: finite(getattr(estimate, name)) for name in ("value", "low", "high", "violated", "stderr", "error")
        }
        yield records.EffortValue(
            model=model,
            metric="eaif",
            n=estimate.n,
            **numbers,
            status=OK if numbers["low"] is not None else _no_interval(estimate),
            weight=weight,
            pairs=estimate.pairs,
            method=cast(Any, estimate.method),
            spread=1.0 - estimates.spreads[model].value,
            at_least_spread=estimates.at_least_spread(model, weight).value,
        )


def _no_interval(estimate: PairFairness) -> Message:
    key = "all_fair" if estimate.value == 1 else "few_people" if estimate.n < 3 else "equally_fair"
    return shared("no_interval", why=say(key))


Differences = Mapping[tuple[str, str, float], PairDifference | None]
"""The difference between two models at a weight; None if pairs were sampled, because samples have no row means."""


def model_differences(estimates: FairnessOfModels) -> Differences:
    """Return the paired difference of every two models at every weight, at the smaller spread of their scores."""
    models, weights = (dict.fromkeys(key[i] for key in estimates.own) for i in (0, 1))
    differences: dict[tuple[str, str, float], PairDifference | None] = {}
    for weight, (model, reference) in product(weights, combinations(models, 2)):
        left, right = (estimates.at_equal_spread(*pair, weight) for pair in ((model, reference), (reference, model)))
        sampled = left.row_means is None or right.row_means is None
        differences[model, reference, weight] = None if sampled else compare(left, right)
    return differences


def model_gaps(estimates: FairnessOfModels, differences: Differences, confidence: float) -> Iterator[records.EffortGap]:
    """Yield the paired difference of every two models at every weight, at the smaller spread of their scores.

    The joint limits are simultaneous over all pairs of models at a weight (Bonferroni).
    """
    weights = len({weight for _, _, weight in differences})
    joint_confidence = bonferroni(confidence, max(1, len(differences) // max(1, weights)))
    for (model, reference, weight), difference in differences.items():
        left, right = (estimates.at_equal_spread(*pair, weight) for pair in ((model, reference), (reference, model)))
        gap = partial(
            records.EffortGap,
            model=model,
            model_reference=reference,
            group=OVERALL,
            reference=OVERALL,
            metric="eaif",
            kind="difference",
            against="model",
            n=left.n,
            weight=weight,
            spread=min(1.0 - estimates.spreads[name].value for name in (model, reference)),
        )
        if difference is None:
            yield gap(value=left.value - right.value, status=shared("no_interval", why=say("sampled")))
            continue
        alone, joint = (difference.at(level) for level in (confidence, joint_confidence))
        yield gap(
            value=finite(alone.value),
            **limit_columns((alone.low, alone.high), (joint.low, joint.high)),
            status=OK if finite(alone.low) is not None else _no_interval(left),
            p_value=finite(alone.p_value),
            stderr=finite(alone.stderr),
        )


def least_fair_people(people: EffortPeople, estimates: Fairness, spec: EffortSpec) -> Iterator[records.PersonRecord]:
    """Yield the people with the least fair pairs, if the table has ids."""
    ids = people.rows.ids
    if ids is None or spec.worst == 0:
        return
    for (model, weight), estimate in estimates.items():
        if estimate.row_means is None or estimate.value == 1:
            continue
        for person in _lowest_positions(np.round(estimate.row_means, 12), ids, spec.worst):
            score, effort, aggregate = (float(column[person]) for column in people.numbers(model))
            yield records.PersonRecord(
                model=model,
                weight=weight,
                id=ids[person],
                score=score,
                effort=effort,
                aggregate=aggregate,
                value=float(estimate.row_means[person]),
            )


def _lowest_positions(values: FloatArray, ids: Sequence[str], count: int) -> list[int]:
    """Return the positions of the lowest values; ties are in the order of the ids."""
    rank = min(count, len(values)) - 1
    last = np.partition(values, rank)[rank]
    places = np.flatnonzero(~(values > last))  # nan values come last, as in a sort
    names = np.array([ids[position] for position in places.tolist()])
    return [int(position) for position in places[np.lexsort((names, values[places]))[:count]]]


def least_fair_pairs(people: EffortPeople, spec: EffortSpec) -> Iterator[records.PairRecord]:
    """Yield the least fair pairs, if the table has ids and pairs can be enumerated."""
    ids = people.rows.ids
    custom, card = people.distance.function is not None, is_card(spec.device)
    most = EXACT_ROWS if custom else CARD_ROWS if card else MOST_ENUMERATED
    if ids is None or spec.worst == 0 or len(ids) > most:
        return
    for model, weight in product(people.rows.scores, spec.weights):
        step(f"Finding the least fair pairs under {model}")
        find = card_worst_pairs if card and not custom else worst_pairs
        score = people.rows.scores[model]
        worst = find(*people.numbers(model), weight, count=spec.worst, distance=people.distance)
        for (a, b), excess in zip(worst.people, worst.excess, strict=True):
            yield records.PairRecord(
                model=model,
                weight=weight,
                id_a=ids[a],
                id_b=ids[b],
                score_a=float(score[a]),
                score_b=float(score[b]),
                distance=abs(float(score[a] - score[b])) - float(excess),
                value=float(excess),
            )


def pair_trajectories(
    people: EffortPeople, pairs: tuple[records.PairRecord, ...]
) -> Iterator[records.TrajectoryRecord]:
    """Yield the trajectories of the people in the least fair pairs."""
    members = {name for pair in pairs for name in (pair.id_a, pair.id_b)}
    if not members:
        return
    paths = people.trajectories
    times = paths.times or tuple(float(number) for number in range(len(paths.steps)))
    for row, name in [pair for pair in enumerate(people.rows.ids or ()) if pair[1] in members]:
        for label, time, value in zip(paths.steps, times, paths.values[row].tolist(), strict=True):
            yield records.TrajectoryRecord(id=name, step=label, time=time, value=value)


Curves = dict[str, tuple[FloatArray, FloatArray]]


def fairness_curves(people: EffortPeople, spec: EffortSpec) -> Curves:
    """Return each model's individual fairness at weights from 0 to 1, with its error bounds.

    It is exact up to 20,000 different people (5 million on a graphics card), and computed on a grid above.
    """
    curves = {}
    for model in people.rows.scores:
        step(f"Individual fairness by weight under {model}")
        curves[model] = fairness_by_weight(
            *people.numbers(model),
            CURVE_WEIGHTS,
            people.rows.weight,
            distance=people.distance,
            device=spec.device,
        )
    return curves


def curve_records(curves: Curves) -> Iterator[records.CurveRecord]:
    """Yield the points of the curves; an error of 0 marks an exact point."""
    for model, points in curves.items():
        for weight, value, error in zip(CURVE_WEIGHTS, *points, strict=True):
            numbers = {"weight": weight, "value": float(value), "error": float(error)}
            yield records.CurveRecord(model=model, method="grid" if error > 0 else "exact", **numbers)


# The spread of effort.


def effort_spread(table: Table, subjects: EffortPeople | LargeTable) -> Iterator[records.SpreadRecord]:
    """Yield the distribution of effort in every group, in equal bins from 0 to the highest effort."""
    highest = subjects.highest
    if isinstance(subjects, LargeTable):
        cells = subjects.spread_cells(SPREAD_BINS)
        bins = cell_numbers(cells, "bin")
    else:
        cells = subjects.rows.groups
        positions = np.floor(subjects.effort * (SPREAD_BINS / max(highest, 1e-9)))
        bins = np.clip(positions, 0, SPREAD_BINS - 1).astype(np.int64)
    for grouping, columns in table.groupings.items():
        codes, labels = cells.joint(columns)
        size = len(labels) * SPREAD_BINS
        n = np.bincount(codes * SPREAD_BINS + bins, weights=cells.n, minlength=size).reshape(len(labels), SPREAD_BINS)
        for group, counts in zip(labels, n, strict=True):
            for number in np.flatnonzero(counts).tolist():
                yield records.SpreadRecord(
                    grouping=grouping,
                    group=group,
                    effort_low=highest * number / SPREAD_BINS,
                    effort_high=highest * (number + 1) / SPREAD_BINS,
                    n=int(counts[number]),
                    value=float(counts[number] / counts.sum()),
                )
