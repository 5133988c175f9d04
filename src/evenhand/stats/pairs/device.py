"""Selection of the processor or a graphics card (`cuda`) for comparing exact pairs.

The card computes the method 'strips' with all norms and learned distances, with and without weights. It uses single
precision where the processor does, and double precision if ties matter (`exact.precision`). Sums on a card are
bit-identical in every run, and agree with the processor's to 1e-6 of the value or better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.pairs import cuda
from evenhand.stats.pairs.distance import Distance
from evenhand.stats.pairs.exact import WorstPairs, coordinates, has_common, precision, worst_pairs
from evenhand.stats.pairs.inputs import Merged, ScoredPeople, check_people, check_weight, merge_people
from evenhand.stats.types import FloatArray
from evenhand.stats.workers import Progress

Device = Literal["cpu", "cuda", "auto"]
DEVICES: tuple[Device, ...] = get_args(Device)
CARD_ROWS = 5_000_000  # distinct people that a card compares by default: 1.25e13 pairs, seconds
_ROUNDING = 2e-6  # bound of single precision's error in D - d


def is_card(device: Device) -> bool:
    """Return whether to use a card; 'cuda' raises without one, 'auto' falls back to the processor.

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
    """Return a device's name for `run.json`: 'cpu', or 'cuda' with the card's name.

    Examples
    --------
    >>> name_of("cpu")
    'cpu'
    """
    return f"cuda: {cuda.describe()}" if is_card(device) else "cpu"


class _Lots:
    """People with their weights of effort in the card's format; equal people are converted only once.

    Parameters
    ----------
    cases : pairs of people, with coordinates for a distance, and the weight of the first coordinate.
    """

    def __init__(self, cases: Sequence[tuple[ScoredPeople, float]]) -> None:
        self._known: dict[tuple[int, ...], tuple[Merged, bool]] = {}
        self.merged: list[Merged] = []
        self.launches: dict[tuple[bool, bool], dict[int, cuda.Lot]] = {}
        for number, (people, weight) in enumerate(cases):
            merged, common = self._shared(people)
            points = np.stack([*coordinates(merged, weight), merged.score])
            points -= points.mean(axis=1, keepdims=True)
            precise = precision(points, merged.weight, merged.shape, common or not 0 < weight < 1) is np.float64
            lot = cuda.Lot(points[0], points[1], points[2], merged.weight)
            self.merged.append(merged)
            self.launches.setdefault((merged.diamond, precise), {})[number] = lot

    def _shared(self, people: ScoredPeople) -> tuple[Merged, bool]:
        """Return the merged distinct people, and whether they have common values."""
        key = (id(people.score), id(people.effort), id(people.aggregate), id(people.survey))
        if key not in self._known:
            merged = merge_people(people)
            columns = np.stack([merged.effort, merged.aggregate, merged.score])
            self._known[key] = merged, has_common(columns, merged.weight)
        merged, common = self._known[key]
        return replace(merged, diamond=people.diamond), common


def card_sums(
    cases: Sequence[tuple[ScoredPeople, float]], progress: Progress | None = None
) -> list[tuple[FloatArray, float]]:
    """Return the result of `exact.tile_sums` for each case, in one launch of the card if possible.

    Each combination of precision and shape of distance needs a separate launch.
    """
    lots = _Lots(cases)
    sums_by_case: dict[int, tuple[FloatArray, float]] = {}
    for (diamond, precise), part in lots.launches.items():
        sums = cuda.row_sums(list(part.values()), diamond=diamond, precise=precise, progress=progress)
        sums_by_case |= dict(zip(part, sums, strict=True))
    return [(sums_by_case[number][0][rows.row], sums_by_case[number][1]) for number, rows in enumerate(lots.merged)]


def card_values(cases: Sequence[tuple[ScoredPeople, float]]) -> FloatArray:
    """Return individual fairness for each case; each precision and shape of distance is one launch of the card."""
    values = np.empty(len(cases))
    for (diamond, precise), part in _Lots(cases).launches.items():
        totals = cuda.totals(list(part.values()), diamond=diamond, precise=precise)
        for number, total in zip(part, totals, strict=True):
            values[number] = 1.0 - total / cases[number][0].pair_weight
    return values


def card_worst_pairs(
    score: FloatArray, effort: FloatArray, aggregate: FloatArray, weight: float, *, count: int, distance: Distance
) -> WorstPairs:
    """Return the result of `exact.worst_pairs`, with candidates from the card and pairs from the processor.

    Each pair contributes to two people's largest excess. If the largest excesses of all people are sorted, none of the
    `count` worst pairs lies below number 2 `count` of this list, and no person below it belongs to one of these pairs.
    """
    people, placed_weight = distance.transform(check_people(score, effort, aggregate), check_weight(weight))
    lots = _Lots([(people, placed_weight)])
    (merged,), ((diamond, precise), part) = lots.merged, next(iter(lots.launches.items()))
    (most,) = cuda.largest([part[0]._replace(weight=np.ones(len(merged)))], diamond=diamond, precise=precise)
    rank = min(2 * count, most.size) - 1
    least = -np.partition(-most, rank)[rank] - 2 * _ROUNDING
    candidates = np.flatnonzero(most[merged.row] >= max(least, 0.0))
    if candidates.size < 2:
        return WorstPairs(np.empty((0, 2), dtype=np.int64), np.empty(0))
    worst = worst_pairs(
        score[candidates], effort[candidates], aggregate[candidates], weight, count=count, distance=distance
    )
    return WorstPairs(candidates[worst.people], worst.excess)
