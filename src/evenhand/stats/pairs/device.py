"""Where exact pairs are compared: on the processor or, where asked, on a graphics card (`cuda`).

The card takes what strips would take: all norms and learned distances, with and without weights. Numbers are single
precision where the processor's would be, and double where ties decide (`exact.precision`). Sums on a card have the same
bytes in every run, and agree with the processor's to 1e-6 of the value and better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.pairs import cuda
from evenhand.stats.pairs.distance import Distance
from evenhand.stats.pairs.exact import WorstPairs, placed, precision, worst_pairs
from evenhand.stats.pairs.inputs import Merged, People, check_people, check_weight, merge_people
from evenhand.stats.types import FloatArray
from evenhand.stats.workers import Progress

Device = Literal["cpu", "cuda", "auto"]
DEVICES: tuple[Device, ...] = get_args(Device)
CARD_ROWS = 5_000_000  # different people whose pairs a card compares by itself: 1.25e13 pairs, seconds
_ROUNDING = 2e-6  # more than single precision can be off by, of a difference of scores and a distance


def is_card(device: Device) -> bool:
    """Return whether pairs are compared on a card; 'cuda' without one is an error, 'auto' takes the processor then.

    Examples
    --------
    >>> is_card("cpu")
    False
    >>> is_card("gpu")
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: `device` must be 'cpu', 'cuda' or 'auto'; got 'gpu'.
    """
    require_choice("device", device, DEVICES)
    reason = None if device == "cpu" else cuda.why_not()
    if device == "cuda" and reason is not None:
        raise EvenhandError(
            f"`device` is 'cuda', but {reason}; install evenhand[gpu] on a machine with an NVIDIA card, or take 'cpu'."
        )
    return device != "cpu" and reason is None


def name_of(device: Device) -> str:
    """Return what `run.json` says of a device: 'cpu', or 'cuda' and the name of the card.

    Examples
    --------
    >>> name_of("cpu")
    'cpu'
    """
    return f"cuda: {cuda.describe()}" if is_card(device) else "cpu"


def _kind(merged: Merged, weight: float) -> tuple[cuda.Lot, bool]:
    """Return the people as the card takes them, and whether they need double precision."""
    points = np.stack([*placed(merged, weight), merged.score])
    points -= points.mean(axis=1, keepdims=True)
    precise = precision(points, merged.weight, merged.shape) is np.float64
    return cuda.Lot(points[0], points[1], points[2], merged.weight), precise


def _launches(lots: Sequence[tuple[cuda.Lot, bool]], shapes: Sequence[bool]) -> dict[tuple[bool, bool], list[int]]:
    """Return which lots go into one launch: those with one norm and precision."""
    launches: dict[tuple[bool, bool], list[int]] = {}
    for number, ((_, precise), diamond) in enumerate(zip(lots, shapes, strict=True)):
        launches.setdefault((diamond, precise), []).append(number)
    return launches


def card_sums(
    cases: Sequence[tuple[People, float]], progress: Progress | None = None
) -> list[tuple[FloatArray, float]]:
    """Return what `exact.tile_sums` does, for people and weights of effort, in one launch of the card.

    Where some need double precision, or distances of another shape, there are as many launches as kinds.
    """
    merged = [merge_people(people) for people, _ in cases]
    lots = [_kind(rows, weight) for rows, (_, weight) in zip(merged, cases, strict=True)]
    found: dict[int, tuple[FloatArray, float]] = {}
    for (diamond, precise), numbers in _launches(lots, [rows.diamond for rows in merged]).items():
        sums = cuda.row_sums(
            [lots[number][0] for number in numbers], diamond=diamond, precise=precise, progress=progress
        )
        found |= dict(zip(numbers, sums, strict=True))
    return [(found[number][0][rows.row], found[number][1]) for number, rows in enumerate(merged)]


def card_values(cases: Sequence[tuple[People, float]]) -> FloatArray:
    """Return individual fairness alone for people and weights of effort, in one launch of the card for each kind."""
    merged = [merge_people(people) for people, _ in cases]
    lots = [_kind(rows, weight) for rows, (_, weight) in zip(merged, cases, strict=True)]
    values = np.empty(len(cases))
    for (diamond, precise), numbers in _launches(lots, [rows.diamond for rows in merged]).items():
        totals = cuda.totals([lots[number][0] for number in numbers], diamond=diamond, precise=precise)
        values[numbers] = [
            1.0 - total / cases[number][0].pair_weight for number, total in zip(numbers, totals, strict=True)
        ]
    return values


def card_worst_pairs(
    score: FloatArray, effort: FloatArray, aggregate: FloatArray, weight: float, count: int, distance: Distance
) -> WorstPairs:
    """Return what `exact.worst_pairs` does: the card finds who can be in one of the pairs, the processor the pairs.

    Each pair counts for two people. So of the `count` worst pairs none has an excess below the 2 `count`-th of people's
    own largest excesses, and nobody whose own largest is below that is in one of them.
    """
    people, placed_weight = distance.of(check_people(score, effort, aggregate), check_weight(weight))
    merged = merge_people(people)
    lot, precise = _kind(merged, placed_weight)
    (most,) = cuda.largest([lot._replace(weight=np.ones(len(merged)))], diamond=merged.diamond, precise=precise)
    rank = min(2 * count, most.size) - 1
    least = -np.partition(-most, rank)[rank] - 2 * _ROUNDING
    kept = np.flatnonzero(most[merged.row] >= max(least, 0.0))
    if kept.size < 2:
        return WorstPairs(np.empty((0, 2), dtype=np.int64), np.empty(0))
    found = worst_pairs(score[kept], effort[kept], aggregate[kept], weight, count, distance)
    return WorstPairs(kept[found.people], found.excess)
