"""Remarks that a reader of an effort audit needs."""

from __future__ import annotations

from evenhand.audits.effort.crowd import SAMPLE, Crowd
from evenhand.audits.effort.people import People
from evenhand.audits.effort.spec import EffortSpec
from evenhand.errors import count

FEW = 200
"""People below whom the interval of individual fairness may be too short; see `benchmarks/eaif_coverage.py`."""


def people_notes(people: People, spec: EffortSpec) -> tuple[str, ...]:
    """Return the remarks on people in memory."""
    notes = []
    n = len(people.effort)
    if n < FEW:
        notes.append(
            f"With {count(n, 'person', 'people')} the intervals of individual fairness can be too short. In "
            "simulations they hold the true value as often as they should from 50 people on when unfairness is spread "
            "over many; where one person in twenty causes nearly all of it they hold it 65% of the time at 20 people "
            "and 80% at 50, instead of 95%."
        )
    if spec.measure == "acceleration" and people.times is None:
        notes.append(_two_steps(people.steps))
    negative = int((people.values < 0).any(axis=1).sum())
    if negative:
        notes.append(
            f"{count(negative, 'person has', 'people have')} a negative value in their trajectory; their aggregate "
            "may be below 0."
        )
    if people.strangers:
        notes.append(f"The history has {people.strangers:,} people whom the table does not know; they are not used.")
    if people.rows.ids is None and spec.worst:
        notes.append("The people and pairs treated worst are not listed, since the table names no id column.")
    if people.effort.min() == people.effort.max():
        notes.append("All efforts are equal: distances rest on the aggregate alone.")
    return tuple(notes)


def crowd_notes(crowd: Crowd, spec: EffortSpec) -> tuple[str, ...]:
    """Return the remarks on people who stayed in the data's engine."""
    notes = [
        f"With {crowd.n:,} people, pairs were compared on a grid that the data's own engine filled; standard errors "
        f"and the correction of the grid come from a sample of about {min(SAMPLE, crowd.n):,} people. The people and "
        "pairs treated worst are not listed."
    ]
    if spec.measure == "acceleration" and spec.times is None:
        notes.append(_two_steps(spec.trajectory))
    return tuple(notes)


def _two_steps(steps: tuple[str, ...]) -> str:
    return (
        f"With equal steps only two of the {len(steps)} time steps enter effort: {steps[1]} and {steps[-1]}. Whoever "
        "picks the window picks the effort: `robustness` tries other windows and measures."
    )
