"""Notes of the effort audit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.imputation import is_uncertain
from evenhand.audits.effort.large_table import LargeTable
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.spec import EffortSpec
from evenhand.messages import Message
from evenhand.stats.effort import linear_weights

FEW = 200
"""The number of people below which intervals of individual fairness may be too short: `benchmarks/eaif_coverage.py`."""


def people_notes(people: EffortPeople, spec: EffortSpec) -> Iterator[Message]:
    """Yield the notes on people in memory."""
    paths = people.trajectories
    yield from _few_people_note(people)
    yield from _two_step_note(paths.steps, paths.times, spec)
    yield from _saturation_notes(people)
    if negative := int((paths.values < 0).any(axis=1).sum()):
        yield say("negative", n=negative)
    if paths.not_in_table:
        yield say("not_in_table", people=paths.not_in_table)
    yield from _distance_notes(people, spec)
    if spec.parity_of == "decisions":
        cuts = tuple(say("cut", model=model, cut=cut) for model, cut in people.thresholds.items())
        yield say("of_decisions", cuts=cuts)
    if is_uncertain(spec):
        yield say("uncertain_rates")
    if people.rows.ids is None and spec.worst and spec.individuals:
        yield say("no_ids")


def _distance_notes(people: EffortPeople, spec: EffortSpec) -> Iterator[Message]:
    """Yield notes on the effect of a distance on the weights."""
    if people.distance.matrix is not None:
        effort, both, aggregate = people.distance.matrix
        yield say("learned", n=people.judged, effort=effort, both=both, aggregate=aggregate)
    elif spec.distance.norm in ("maximum", "own"):
        yield say("not_weighed", norm=spec.distance.norm)


def _few_people_note(people: EffortPeople) -> Iterator[Message]:
    weight = people.rows.weight
    effective = people.n if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
    if effective < FEW:
        yield say("few", n=people.n) if weight is None else say("few_weighted", n=people.n, effective=effective)


def _saturation_notes(people: EffortPeople) -> Iterator[Message]:
    """Yield warnings about units that leave no difference between people."""
    if people.inertia.max() > 1:
        yield say("high_inertia", highest=float(people.inertia.max()))
    share = people.effort / people.inertia
    ends = float(((share < 1e-3) | (share > 1 - 1e-3)).mean())
    if ends > 0.05:
        yield say("extreme_effort", share=ends)
    if float((np.abs(people.aggregate) > 1 - 1e-3).mean()) > 0.5:
        yield say("extreme_aggregate")
    are_constant = [bool(column.min() == column.max()) for column in (people.effort, people.aggregate)]
    if any(are_constant):
        yield say("all_equal" if all(are_constant) else "equal_efforts" if are_constant[0] else "equal_aggregates")


def large_notes(large: LargeTable, spec: EffortSpec) -> Iterator[Message]:
    """Yield the notes on people processed in the data's engine."""
    yield say("in_engine", people=large.n)
    yield from _two_step_note(spec.trajectory, spec.times, spec)


def _two_step_note(steps: tuple[str, ...], times: tuple[float, ...] | None, spec: EffortSpec) -> Iterator[Message]:
    """Yield a warning if only two time steps determine effort."""
    weights = linear_weights(spec.measure, len(steps), times)
    if weights is None or (used := np.flatnonzero(np.abs(weights) > 1e-12)).size != 2 or len(steps) < 3:
        return
    yield say("two_steps", steps=len(steps), first=steps[used[0]], last=steps[used[1]])
