"""Remarks that a reader of an effort audit needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.audits.effort.crowd import Crowd
from evenhand.audits.effort.people import People
from evenhand.audits.effort.spec import EffortSpec
from evenhand.errors import count
from evenhand.stats.effort import linear_weights

FEW = 200
"""People below whom the interval of individual fairness may be too short; see `benchmarks/eaif_coverage.py`."""


def people_notes(people: People, spec: EffortSpec) -> tuple[str, ...]:
    """Return the remarks on people in memory."""
    notes = [*_few(people), *_steps(people.steps, people.times, spec), *_saturated(people)]
    negative = int((people.values < 0).any(axis=1).sum())
    if negative:
        notes.append(
            f"{count(negative, 'person has', 'people have')} a negative value in their trajectory; their aggregate "
            "may be below 0."
        )
    if people.strangers:
        notes.append(
            f"The history has {people.strangers:,} people who are not among those of the table; they are not used."
        )
    if people.rows.ids is None and spec.worst:
        notes.append("The least fair pairs and their people are not listed, since the table names no id column.")
    return tuple(notes)


def _few(people: People) -> Iterator[str]:
    n, weight = len(people.effort), people.rows.weight
    effective = n if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
    if effective < FEW:
        weighted = "" if weight is None else f" (as good as {effective:.0f}, for their uneven weights)"
        yield (
            f"With {count(n, 'person', 'people')}{weighted} the intervals of individual fairness can be too short. In "
            "simulations they hold the true value as often as they should when unfairness is spread over many people; "
            "where one person in twenty causes nearly all of it, they hold it 65% of the time at 20 people and 80% at "
            "50 instead of 95%, and the difference of two models 51% and 72%."
        )


def _saturated(people: People) -> Iterator[str]:
    """Tell of units that leave no difference between people."""
    if people.inertia.max() > 1:
        yield f"The inertia runs up to {people.inertia.max():g}; it is meant to be at most 1, so that effort is too."
    share = people.effort / people.inertia
    ends = float(((share < 1e-3) | (share > 1 - 1e-3)).mean())
    if ends > 0.05:
        yield (
            f"{ends:.0%} of people have the lowest or the highest possible effort, so that it hardly tells them apart: "
            "take a larger `unit`."
        )
    if float((np.abs(people.aggregate) > 1 - 1e-3).mean()) > 0.5:
        yield "Most people have the highest possible aggregate, which hardly tells them apart: take a larger `scale`."
    same = [name for name, x in (("efforts", people.effort), ("aggregates", people.aggregate)) if x.min() == x.max()]
    if same:
        yield f"All {' and all '.join(same)} are equal; they play no part in the distance between people."


def crowd_notes(crowd: Crowd, spec: EffortSpec) -> tuple[str, ...]:
    """Return the remarks on people who stayed in the data's engine."""
    notes = [
        f"The {crowd.n:,} people stayed in the data's own engine: it counted those who are alike, or filled a grid "
        "that was corrected on a sample of people. The least fair pairs and their people are not listed."
    ]
    return (*notes, *_steps(spec.trajectory, spec.times, spec))


def _steps(steps: tuple[str, ...], times: tuple[float, ...] | None, spec: EffortSpec) -> Iterator[str]:
    """Tell when two time steps alone make the effort."""
    weights = linear_weights(spec.measure, len(steps), times)
    if weights is None or (used := np.flatnonzero(np.abs(weights) > 1e-12)).size != 2 or len(steps) < 3:
        return
    yield (
        f"Only two of the {len(steps)} time steps enter effort: {steps[used[0]]} and {steps[used[1]]}. Whoever picks "
        "the window picks the effort; the robustness analysis tries other windows and measures."
    )
