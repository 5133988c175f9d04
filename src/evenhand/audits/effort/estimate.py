"""The numbers of the effort audit: individual fairness over all pairs of people, and groups of similar effort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any, cast

import numpy as np

from evenhand.audits.effort import result as records
from evenhand.audits.effort.gather import People
from evenhand.audits.effort.group_means import (
    GroupedMeans,
    GroupMeans,
    LowestParity,
    equal_means_p,
    lowest_parity,
    means_of,
)
from evenhand.audits.effort.large_table import LargeTable, cell_numbers
from evenhand.audits.effort.spec import CURVE_WEIGHTS, EffortSpec
from evenhand.core.formats import finite
from evenhand.core.records import OVERALL
from evenhand.core.run import step
from evenhand.errors import ConfigError
from evenhand.stats.intervals import bonferroni
from evenhand.stats.pairs import (
    CARD_ROWS,
    EXACT_ROWS,
    PairFairness,
    card_worst_pairs,
    compare,
    fairness_by_weight,
    individual_fairness,
    individual_fairness_of_models,
    is_card,
    worst_pairs,
)
from evenhand.stats.types import FloatArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

MOST_ENUMERATED = 200_000  # people up to whom the worst pairs are looked for
MOST_BINS = 10_000
SPREAD_BINS = 30

# Individuals: every pair of people.

Fairness = dict[tuple[str, float], PairFairness]


def individual_estimates(people: People, spec: EffortSpec) -> Fairness:
    """Return individual fairness for every model and weight."""
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
            people.rows.scores,
            people.effort,
            people.aggregate,
            spec.weights,
            rng=np.random.default_rng(spec.seed),
            progress=partial(_tell, doing),
            **options,
        )
    estimates = {}
    for model, weight in product(people.rows.scores, spec.weights):
        doing = f"Comparing all pairs of people under {model}, weight {weight:g}"
        step(doing)
        estimates[model, weight] = individual_fairness(
            *people.numbers(model),
            weight,
            rng=np.random.default_rng(spec.seed),
            progress=partial(_tell, doing),
            **options,
        )
    return estimates


def _tell(doing: str, done: int, total: int) -> None:
    step(f"{doing}: {100 * done // max(total, 1)}%")


def individual_values(estimates: Fairness) -> Iterator[records.EffortValue]:
    """Yield individual fairness of every model and weight."""
    for (model, weight), estimate in estimates.items():
        numbers: dict[str, Any] = {
            name: finite(getattr(estimate, name)) for name in ("value", "low", "high", "violated", "stderr", "error")
        }
        yield records.EffortValue(
            model=model,
            metric="eaif",
            n=estimate.n,
            **numbers,
            status="ok" if numbers["low"] is not None else _no_interval(estimate),
            weight=weight,
            pairs=estimate.pairs,
            method=cast(Any, estimate.method),
        )


def _no_interval(estimate: PairFairness) -> str:
    if estimate.value == 1:
        return "no interval: no pair is treated unfairly"
    if estimate.n < 3:
        return "no interval: too few people"
    return "no interval: everybody is treated equally fairly on average"


def model_gaps(estimates: Fairness, spec: EffortSpec) -> Iterator[records.EffortGap]:
    """Yield the paired difference of every two models at every weight.

    The joint limits hold for all pairs of models at a weight together (Bonferroni).
    """
    models = list(dict.fromkeys(model for model, _ in estimates))
    joint_confidence = bonferroni(spec.confidence, max(1, len(models) * (len(models) - 1) // 2))
    for weight in spec.weights:
        for model, reference in combinations(models, 2):
            left, right = estimates[model, weight], estimates[reference, weight]
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
            )
            if left.row_means is None or right.row_means is None:
                yield gap(value=left.value - right.value, status="no interval: sampled pairs give no row means")
                continue
            alone, joint = (compare(left, right, level) for level in (spec.confidence, joint_confidence))
            yield gap(
                value=finite(alone.value),
                **_limits((alone.low, alone.high), (joint.low, joint.high)),
                status="ok" if finite(alone.low) is not None else _no_interval(left),
                p_value=finite(alone.p_value),
                stderr=finite(alone.stderr),
            )


def _limits(alone: tuple[float, float], joint: tuple[float, float]) -> dict[str, Any]:
    """Return the limits of one gap, and those that hold for its family, as columns of a record."""
    names = ("low", "high", "joint_low", "joint_high")
    return {name: finite(limit) for name, limit in zip(names, (*alone, *joint), strict=True)}


def least_fair_people(people: People, estimates: Fairness, spec: EffortSpec) -> Iterator[records.PersonRecord]:
    """Yield the people whose pairs are least fair, where the table has an id to name them by."""
    ids = people.rows.ids
    if ids is None or spec.worst == 0:
        return
    for (model, weight), estimate in estimates.items():
        if estimate.row_means is None or estimate.value == 1:
            continue
        for person in _lowest(np.round(estimate.row_means, 12), ids, spec.worst):
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


def _lowest(values: FloatArray, ids: Sequence[str], count: int) -> list[int]:
    """Return the places of the lowest values; where they are equal, in the order of the ids."""
    rank = min(count, len(values)) - 1
    last = np.partition(values, rank)[rank]
    places = np.flatnonzero(~(values > last))  # a value that is nan comes last, as in a sort
    names = np.array([ids[place] for place in places.tolist()])
    return [int(place) for place in places[np.lexsort((names, values[places]))[:count]]]


def least_fair_pairs(people: People, spec: EffortSpec) -> Iterator[records.PairRecord]:
    """Yield the least fair pairs, where the table has an id and pairs can be enumerated."""
    ids = people.rows.ids
    own, card = people.distance.function is not None, is_card(spec.device)
    most = EXACT_ROWS if own else CARD_ROWS if card else MOST_ENUMERATED
    if ids is None or spec.worst == 0 or len(ids) > most:
        return
    for model, weight in product(people.rows.scores, spec.weights):
        step(f"Finding the least fair pairs under {model}")
        find = card_worst_pairs if card and not own else worst_pairs
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


def pair_trajectories(people: People, pairs: tuple[records.PairRecord, ...]) -> Iterator[records.TrajectoryRecord]:
    """Yield the trajectories of the people who are in the least fair pairs."""
    members = {name for pair in pairs for name in (pair.id_a, pair.id_b)}
    if not members:
        return
    paths = people.trajectories
    times = paths.times or tuple(float(number) for number in range(len(paths.steps)))
    for row, name in [pair for pair in enumerate(people.rows.ids or ()) if pair[1] in members]:
        for label, time, value in zip(paths.steps, times, paths.values[row].tolist(), strict=True):
            yield records.TrajectoryRecord(id=name, step=label, time=time, value=value)


Curves = dict[str, tuple[FloatArray, FloatArray]]


def fairness_curves(people: People, spec: EffortSpec) -> Curves:
    """Return each model's individual fairness at weights from 0 to 1 with its errors.

    It is exact, or above 20,000 different people (5 million on a card) from a grid.
    """
    curves = {}
    for model in people.rows.scores:
        step(f"Individual fairness by weight under {model}")
        curves[model] = fairness_by_weight(
            *people.numbers(model),
            CURVE_WEIGHTS,
            people.rows.weight,
            seed=spec.seed,
            distance=people.distance,
            device=spec.device,
        )
    return curves


def curve_records(curves: Curves) -> Iterator[records.CurveRecord]:
    """Yield the points of the curves; an error of 0 says that a point is exact."""
    for model, points in curves.items():
        for weight, value, error in zip(CURVE_WEIGHTS, *points, strict=True):
            numbers = {"weight": weight, "value": float(value), "error": float(error)}
            yield records.CurveRecord(model=model, method="grid" if error > 0 else "exact", **numbers)


# Groups among people of similar effort.


def compare_groups(
    table: Table, subjects: People | LargeTable, spec: EffortSpec
) -> tuple[list[records.EffortValue], list[records.EffortGap]]:
    """Return the group means and the parity of every effort bin, for every model and grouping."""
    values: list[records.EffortValue] = []
    gaps: list[records.EffortGap] = []
    if table.groupings:
        _require_bins(subjects.highest, spec.width)
    for model in table.models:
        step(f"Comparing groups by effort under {model}")
        grouping_means = means_of(subjects, model, spec)
        for grouping, columns in table.groupings.items():
            new_values, new_gaps = bin_records(grouping_means(columns), model, grouping, spec)
            values += new_values
            gaps += new_gaps
    return values, gaps


def bin_records(
    means: GroupedMeans, model: str, grouping: str, spec: EffortSpec
) -> tuple[list[records.EffortValue], list[records.EffortGap]]:
    """Return the group means and the parity of every effort bin, after those of all bins together (traditional parity).

    In each bin of effort, [k width, (k + 1) width), the mean score of every group with at least `min_count` people;
    parity is the smallest mean over the largest (eq. 14 of the paper). Its own limits are those of a worst pair
    (`evenhand.stats.worst_pair`), its joint limits the same with the error shared over the bins (Bonferroni).
    """
    occupied = np.flatnonzero(means.bins.n.sum(axis=1)).tolist()
    members: dict[int | None, GroupMeans] = {None: means.whole.bin(0)}
    members |= {number: means.bins.bin(number) for number in occupied}
    known = np.array([label != MISSING for label in means.labels])
    kept = {number: np.flatnonzero(known & (each.n >= spec.min_count)) for number, each in members.items()}
    parities = {number: lowest_parity(members[number], groups) for number, groups in kept.items() if len(groups) > 1}
    p_values = dict(zip(parities, equal_means_p(list(parities.values())), strict=True))
    bins = max(len(parities.keys() - {None}), 1)
    values: list[records.EffortValue] = []
    gaps: list[records.EffortGap] = []
    for number, each in members.items():
        low = None if number is None else round(float(number) * spec.width, 9)
        high = None if low is None else round(low + spec.width, 9)
        where: dict[str, Any] = {"model": model, "grouping": grouping, "bin_low": low, "bin_high": high}
        values += _group_values(each, means.labels, spec, where)
        where |= {"n": int(each.n[kept[number]].sum()), "groups": len(kept[number])}
        if number in parities:
            labels = [means.labels[group] for group in kept[number]]
            found = _parity(parities[number], labels, spec, 1 if number is None else bins)
            found["p_value"] = finite(p_values[number])
        else:
            reason = f"undefined: fewer than two groups have {spec.min_count} people here"
            found = {"group": None, "reference": None, "value": None, "status": reason}
        gaps.append(records.EffortGap(**where, metric="eagf", kind="ratio", against="worst_pair", **found))
    return values, gaps


def _parity(parity: LowestParity, labels: Sequence[str], spec: EffortSpec, bins: int) -> dict[str, Any]:
    """Return the parity of one bin, with its own limits and with those that hold for all bins together."""
    alone, joint = (parity.limits(level) for level in (spec.confidence, bonferroni(spec.confidence, bins)))
    status = "ok"
    if np.isnan(parity.value):
        status = "undefined: the mean score of every group is 0"
    elif np.isnan(alone).any():
        status = "no interval: the scores of a group do not vary"
    return {
        "group": labels[parity.lowest],
        "reference": labels[parity.highest],
        "value": finite(parity.value),
        **_limits(alone, joint),
        "status": status,
    }


def _group_values(
    means: GroupMeans, labels: tuple[str, ...], spec: EffortSpec, where: dict[str, Any]
) -> Iterator[records.EffortValue]:
    limits = means.limits(spec.confidence)
    for code in np.flatnonzero(means.n):
        n, status = int(means.n[code]), "ok"
        if labels[code] == MISSING:
            status = "missing group: left out of parity"
        elif n < spec.min_count:
            status = f"small: {n}, fewer than min_count {spec.min_count}; left out of parity"
        elif np.isnan(limits.low[code]):
            status = "no interval: the people of this group do not differ"
        yield records.EffortValue(
            **where,
            group=labels[code],
            metric="mean_score",
            n=n,
            value=finite(means.mean[code]),
            low=finite(limits.low[code]),
            high=finite(limits.high[code]),
            status=status,
        )


def effort_spread(table: Table, subjects: People | LargeTable) -> Iterator[records.SpreadRecord]:
    """Yield how effort is spread within every group, in equal bins from 0 to the highest effort."""
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


def _require_bins(highest: float, width: float) -> None:
    """Refuse effort bins without number."""
    if highest / width > MOST_BINS:
        raise ConfigError(
            f"efforts up to {highest:g} in bins of width {width:g} make more than {MOST_BINS:,} bins; take a larger "
            "`width`, or an inertia of at most 1."
        )
