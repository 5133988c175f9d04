"""Direction: the share and size of reversed pairs, in which the person who came further is scored worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.effort import result as records
from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.progress import step
from evenhand.core.records import OK, OVERALL
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import bonferroni
from evenhand.stats.pairs import Direction, Reversals, count_reversals, worst_reversals
from evenhand.stats.pairs.direction import CONCORDANT, SHORTFALL, ReversalShare, compare_groups_at
from evenhand.stats.types import FloatArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

MOST_COUNTED = 50_000
"""The largest number of people with all pairs counted; above, a sample of this size is used."""

NO_SIDE = shared("undefined", why=say("no_side"))
NO_PAIR = shared("undefined", why=say("no_pair"))


class DirectionTables(NamedTuple):
    """The tables of a result on direction."""

    values: tuple[records.EffortValue, ...] = ()
    gaps: tuple[records.EffortGap, ...] = ()
    direction: tuple[records.DirectionRecord, ...] = ()


Counts = dict[str, dict[str, tuple[Direction, tuple[str, ...]]]]
"""The counted pairs by grouping, for every model with a known favourable side, with the groups' labels."""


def count_all(table: Table, people: EffortPeople, spec: EffortSpec) -> Counts:
    """Count the pairs of every model with a known favourable side.

    The key is '' if the table has no groups.
    """
    counts: Counts = {}
    for model in table.models:
        better = _favourable_scores(table, people, model)
        if better is not None:
            step(f"Counting reversed pairs under {model}")
            counts[model] = _count_pairs(table, people, spec, better)
    return counts


def direction_tables(table: Table, people: EffortPeople, counts: Counts, spec: EffortSpec) -> DirectionTables:
    """Return the tables on reversed pairs of every model, for all people and between groups."""
    values: list[records.EffortValue] = []
    gaps: list[records.EffortGap] = []
    rows: list[records.DirectionRecord] = []
    for model in table.models:
        if model not in counts:
            unknown: dict[str, Any] = {
                "model": model,
                "metric": "reversed_pairs",
                "n": people.n,
                "value": None,
                "status": NO_SIDE,
            }
            values.append(records.EffortValue(**unknown))
            continue
        step(f"Comparing reversed pairs of groups under {model}")
        everybody = next(iter(counts[model].values()))[0].everybody
        values += _values(everybody, model, people.n, spec)
        rows.append(_row(everybody, model, (None, OVERALL, OVERALL), spec))
        for grouping, (counted, labels) in counts[model].items():
            if grouping:
                between, gap = _pairs_between_groups(counted, labels, {"model": model, "grouping": grouping}, spec)
                rows += between
                gaps.append(gap)
    return DirectionTables(tuple(values), tuple(gaps), tuple(rows))


def notes(table: Table, people: EffortPeople) -> Iterator[Message]:
    """Yield notes on the counting of pairs."""
    silent = [model for model in table.models if table.prediction(model).favourable is None]
    if silent:
        yield say("not_checked", models=tuple(silent))
    if people.n > MOST_COUNTED and len(silent) < len(table.models):
        yield say("counted_among", people=MOST_COUNTED)


def _favourable_scores(table: Table, people: EffortPeople, model: str) -> FloatArray | None:
    """Return a model's scores, oriented so that higher is better for the person.

    Return None if the favourable side is unknown.
    """
    favourable, score = table.prediction(model).favourable, people.rows.scores[model]
    return None if favourable is None else score if favourable == "selected" else 1.0 - score


def _start_and_end(people: EffortPeople, spec: EffortSpec) -> tuple[FloatArray, FloatArray]:
    """Return people's first and last value, oriented so that higher is better."""
    sign = 1.0 if spec.desirable else -1.0
    return sign * people.trajectories.values[:, 0], sign * people.trajectories.values[:, -1]


def _count_pairs(
    table: Table, people: EffortPeople, spec: EffortSpec, better: FloatArray
) -> dict[str, tuple[Direction, tuple[str, ...]]]:
    """Return the counted pairs of one model by grouping, with the groups' labels."""
    columns = better, people.effort, *_start_and_end(people, spec)
    weight, part = people.rows.weight, np.arange(people.n)
    if people.n > MOST_COUNTED:
        part = np.sort(named_rng(0, "direction").choice(people.n, MOST_COUNTED, replace=False))
    drawn = tuple(column[part] for column in columns)
    weight = None if weight is None else weight[part]
    if not table.groupings:
        return {"": (count_reversals(*drawn, survey_weight=weight), ())}
    counted = {}
    for grouping, names in table.groupings.items():
        codes, labels = people.rows.groups.joint(names)
        counted[grouping] = count_reversals(*drawn, group=codes[part], survey_weight=weight), labels
    return counted


def _large_groups(counts: Direction, labels: tuple[str, ...], spec: EffortSpec) -> list[int]:
    """Return the positions of the groups with enough people."""
    sizes = np.bincount(counts.group, minlength=len(labels))
    return [code for code, label in enumerate(labels) if label != MISSING and sizes[code] >= spec.min_count]


def _values(reversals: Reversals, model: str, n: int, spec: EffortSpec) -> Iterator[records.EffortValue]:
    shares = {
        "reversed_pairs": reversals.reversed(spec.confidence),
        "concordant_pairs": reversals.concordant(spec.confidence),
        "reversal_shortfall": reversals.shortfall(spec.confidence),
    }
    for metric, share in shares.items():
        status = OK
        if not reversals.pairs:
            status = NO_PAIR
        elif np.isnan(share.value):
            status = shared("undefined", why=say("none_reversed"))
        elif np.isnan(share.low):
            status = shared("no_interval", why=say("one_in_all_pairs"))
        numbers: dict[str, Any] = {name: finite(getattr(share, name)) for name in ("value", "low", "high", "stderr")}
        yield records.EffortValue(
            model=model, metric=metric, n=n, **numbers, status=status, pairs=round(reversals.pairs), method="counted"
        )


def _row(
    reversals: Reversals, model: str, where: tuple[str | None, str, str], spec: EffortSpec
) -> records.DirectionRecord:
    share = reversals.reversed(spec.confidence)
    return records.DirectionRecord(
        model=model,
        grouping=where[0],
        group=where[1],
        reference=where[2],
        n=reversals.n,
        pairs=round(reversals.pairs),
        value=finite(share.value),
        low=finite(share.low),
        high=finite(share.high),
        concordant=finite(reversals.mean(CONCORDANT)),
        tied=finite(reversals.tied),
        random=reversals.random,
        shortfall=finite(reversals.mean(SHORTFALL)),
        p_value=finite(reversals.p_value()),
        status=OK if reversals.pairs else NO_PAIR,
    )


def _pairs_between_groups(
    counts: Direction, labels: tuple[str, ...], where: dict[str, str], spec: EffortSpec
) -> tuple[list[records.DirectionRecord], records.EffortGap]:
    """Return the reversed pairs between every two groups, in both directions, and the largest difference."""
    groups = _large_groups(counts, labels, spec)
    strict = bonferroni(spec.confidence, max(1, len(groups) * (len(groups) - 1) // 2))
    rows, differences = {}, []
    for a, b in combinations(groups, 2):
        forward, other = counts.between(a, b), counts.between(b, a)
        for reversals, first, second in ((forward, a, b), (other, b, a)):
            rows[first, second] = _row(
                reversals, where["model"], (where["grouping"], labels[first], labels[second]), spec
            )
        (alone, joint), p_value = compare_groups_at(forward, other, (spec.confidence, strict))
        if not np.isnan(alone.value):
            differences.append(_Difference((a, b), alone, joint, p_value))
    return [rows[pair] for pair in permutations(groups, 2)], _worst_gap(
        differences,
        n=int(np.isin(counts.group, groups).sum()),
        labels=labels,
        groups=len(groups),
        where=where,
        spec=spec,
    )


class _Difference(NamedTuple):
    """The difference between two groups, with its own limits and limits simultaneous over all pairs."""

    pair: tuple[int, int]
    alone: ReversalShare
    joint: ReversalShare
    p_value: float


def _worst_gap(
    differences: Sequence[_Difference],
    *,
    n: int,
    labels: tuple[str, ...],
    groups: int,
    where: dict[str, Any],
    spec: EffortSpec,
) -> records.EffortGap:
    """Return the largest difference between the two directions of a pair of groups.

    Its upper limit is the largest of all pairs' own upper limits, because the truly worst pair is among them. Its
    lower limit is computed from limits simultaneous over all pairs (Bonferroni), because the data choose the pair.
    """
    common = {**where, "metric": "reversed_pairs", "kind": "difference", "against": "worst_pair", "n": n}
    if not differences:
        why = shared("undefined", why=say("no_two_groups", least=spec.min_count))
        return records.EffortGap(**common, group=None, reference=None, value=None, status=why)
    worst = max(differences, key=lambda difference: abs(difference.alone.value))
    group, reference = worst.pair if worst.alone.value >= 0 else worst.pair[::-1]
    low = max(abs_low(difference.joint.low, difference.joint.high) for difference in differences)
    high = finite(max(max(abs(difference.alone.low), abs(difference.alone.high)) for difference in differences))
    tested = [difference.p_value for difference in differences if not np.isnan(difference.p_value)]
    pairs = groups * (groups - 1) // 2
    return records.EffortGap(
        **common,
        group=labels[group],
        reference=labels[reference],
        value=abs(worst.alone.value),
        low=finite(low),
        high=high,
        p_value=min(1.0, len(tested) * min(tested)) if tested else None,
        worse_off=labels[group] if worst.alone.value else None,
        status=OK if high is not None else shared("no_interval", why=say("equal_pairs", n=pairs)),
        groups=groups,
    )


def abs_low(low: float, high: float) -> float:
    """Return the smallest absolute value between two limits.

    Examples
    --------
    >>> abs_low(-0.2, 0.1), abs_low(-0.2, -0.1)
    (0.0, 0.1)
    """
    return max(low, -high, 0.0)


def worst_of_all(table: Table, people: EffortPeople, spec: EffortSpec) -> Iterator[records.ReversalRecord]:
    """Yield every model's reversed pairs with the largest shortfall, if the table has an id."""
    for model in table.models:
        yield from _worst(table, people, model, spec)


def _worst(table: Table, people: EffortPeople, model: str, spec: EffortSpec) -> Iterator[records.ReversalRecord]:
    ids, better = people.rows.ids, _favourable_scores(table, people, model)
    if ids is None or better is None or spec.worst == 0 or people.n > MOST_COUNTED:
        return
    worst = worst_reversals(better, people.effort, *_start_and_end(people, spec), spec.worst)
    score, paths = people.rows.scores[model], people.trajectories.values
    for (a, b), short in zip(worst.people.tolist(), worst.shortfall.tolist(), strict=True):
        yield records.ReversalRecord(
            model=model,
            id_ahead=ids[a],
            id_behind=ids[b],
            score_ahead=float(score[a]),
            score_behind=float(score[b]),
            effort_ahead=float(people.effort[a]),
            effort_behind=float(people.effort[b]),
            start_ahead=float(paths[a, 0]),
            start_behind=float(paths[b, 0]),
            end_ahead=float(paths[a, -1]),
            end_behind=float(paths[b, -1]),
            value=short,
        )
