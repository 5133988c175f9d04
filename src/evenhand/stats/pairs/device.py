"""Where exact pairs are compared: on the processor or, where asked, on a graphics card (`cuda`).

The card takes what strips would take: all norms and learned distances, with and without weights. Numbers are single
precision where the processor's would be, and double where ties decide (`exact.precision`). Sums on a card have the same
bytes in every run, and agree with the processor's to 1e-6 of the value and better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.pairs import cuda
from evenhand.stats.pairs.distance import Distance
from evenhand.stats.pairs.exact import WorstPairs, has_common, placed, precision, worst_pairs
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
    evenhand.errors.ConfigError: `device` got 'gpu'; did you mean 'cpu'?
    """
    require_choice("device", device, DEVICES)
    reason = None if device == "cpu" else cuda.why_not()
    if device == "cuda" and reason is not None:
        raise EvenhandError(
            "`device` is 'cuda', but {reason}; install evenhand[gpu] on a machine with an NVIDIA card, or take 'cpu'.",
            reason=reason,
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


class _Lots:
    """People and weights of effort as the card takes them; what weights of the same people share is worked out once.

    Parameters
    ----------
    cases : people, where they lie for a distance, and the weight of the first coordinate.
    """

    def __init__(self, cases: Sequence[tuple[People, float]]) -> None:
        self._known: dict[tuple[int, ...], tuple[Merged, bool]] = {}
        self.merged: list[Merged] = []
        self.launches: dict[tuple[bool, bool], dict[int, cuda.Lot]] = {}
        for number, (people, weight) in enumerate(cases):
            merged, common = self._shared(people)
            points = np.stack([*placed(merged, weight), merged.score])
            points -= points.mean(axis=1, keepdims=True)
            precise = precision(points, merged.weight, merged.shape, common or not 0 < weight < 1) is np.float64
            lot = cuda.Lot(points[0], points[1], points[2], merged.weight)
            self.merged.append(merged)
            self.launches.setdefault((merged.diamond, precise), {})[number] = lot

    def _shared(self, people: People) -> tuple[Merged, bool]:
        """Return the different people, and whether they have common values."""
        key = (id(people.score), id(people.effort), id(people.aggregate), id(people.survey))
        if key not in self._known:
            merged = merge_people(people)
            columns = np.stack([merged.effort, merged.aggregate, merged.score])
            self._known[key] = merged, has_common(columns, merged.weight)
        merged, common = self._known[key]
        return replace(merged, diamond=people.diamond), common


def card_sums(
    cases: Sequence[tuple[People, float]], progress: Progress | None = None
) -> list[tuple[FloatArray, float]]:
    """Return what `exact.tile_sums` does, for people and weights of effort, in one launch of the card.

    Where some need double precision, or distances of another shape, there are as many launches as kinds.
    """
    lots = _Lots(cases)
    found: dict[int, tuple[FloatArray, float]] = {}
    for (diamond, precise), part in lots.launches.items():
        sums = cuda.row_sums(list(part.values()), diamond=diamond, precise=precise, progress=progress)
        found |= dict(zip(part, sums, strict=True))
    return [(found[number][0][rows.row], found[number][1]) for number, rows in enumerate(lots.merged)]


def card_values(cases: Sequence[tuple[People, float]]) -> FloatArray:
    """Return individual fairness alone for people and weights of effort, in one launch of the card for each kind."""
    values = np.empty(len(cases))
    for (diamond, precise), part in _Lots(cases).launches.items():
        totals = cuda.totals(list(part.values()), diamond=diamond, precise=precise)
        for number, total in zip(part, totals, strict=True):
            values[number] = 1.0 - total / cases[number][0].pair_weight
    return values


def card_worst_pairs(
    score: FloatArray, effort: FloatArray, aggregate: FloatArray, weight: float, *, count: int, distance: Distance
) -> WorstPairs:
    """Return what `exact.worst_pairs` does: the card finds who can be in one of the pairs, the processor the pairs.

    Each pair counts for two people. So of the `count` worst pairs none has an excess below the 2 `count`-th of people's
    own largest excesses, and nobody whose own largest is below that is in one of them.
    """
    people, placed_weight = distance.of(check_people(score, effort, aggregate), check_weight(weight))
    lots = _Lots([(people, placed_weight)])
    (merged,), ((diamond, precise), part) = lots.merged, next(iter(lots.launches.items()))
    (most,) = cuda.largest([part[0]._replace(weight=np.ones(len(merged)))], diamond=diamond, precise=precise)
    rank = min(2 * count, most.size) - 1
    least = -np.partition(-most, rank)[rank] - 2 * _ROUNDING
    kept = np.flatnonzero(most[merged.row] >= max(least, 0.0))
    if kept.size < 2:
        return WorstPairs(np.empty((0, 2), dtype=np.int64), np.empty(0))
    found = worst_pairs(score[kept], effort[kept], aggregate[kept], weight, count=count, distance=distance)
    return WorstPairs(kept[found.people], found.excess)
