"""One pass through the rows: a column is tested on all of them, a fitted candidate step by step.

The rows are put in a random order. In each step a rule makes a candidate from all rows before, which decides the next
rows. What is tested is the average of the steps' candidates: the algorithm that gives each person to one of
them by lot. Rows are drawn within steps. Whatever the rule, the rows of a step are new to its candidate, so the sums
over the steps are martingales and no stability of the rule is asked for, as cross-fitting would. Which group the status
quo favours is not named by other rows, so both directions are allowed for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.rules import Decisions
from evenhand.audits.improvability.splits import (
    Inputs,
    MadeCandidate,
    NoCandidateError,
    Piece,
    Trial,
    Trials,
    choose_members,
    in_parallel,
    make_candidate,
    make_splits,
    tested,
    untested,
)
from evenhand.stats import improvability as stats
from evenhand.stats.types import IntArray

_WHERE = "the rows"


class Step(NamedTuple):
    """What a rule made in one step: candidates, or why there is none, and for each goal the one at each margin."""

    made: tuple[MadeCandidate | str, ...]
    choice: Mapping[stats.Goal, IntArray]


def run_one_pass(inputs: Inputs) -> Trials:
    """Test every candidate in one pass through the rows."""
    spec, sample = inputs.spec, inputs.sample
    fitted = [name for name, candidate in spec.candidates.items() if candidate.refits]
    splits = make_splits(len(sample), spec) if fitted else ()
    tasks = [(name, number) for number in range(len(splits)) for name in fitted]
    work = [(inputs, name, number, splits[number]) for name, number in tasks]
    made = dict(zip(tasks, in_parallel(make_step, work, spec), strict=True))
    return {
        name: (
            _together(inputs, name, splits, [made[name, number] for number in range(len(splits))])
            if candidate.refits
            else _column(inputs, name),
        )
        for name, candidate in spec.candidates.items()
    }


def _direction(inputs: Inputs) -> stats.Direction:
    return "either" if inputs.spec.test.worst_pair is None else "named"


def _column(inputs: Inputs, name: str) -> Trial:
    """Return the test of a column, decisions or scores that were there before."""
    rows = np.arange(len(inputs.sample))
    split = stats.Split(rows, rows)
    made = make_candidate(inputs, name, inputs.spec.candidates[name], 0, split)
    return tested(inputs, name, untested(inputs, name, 0, split), made, _WHERE, None, _direction(inputs))


def make_step(inputs: Inputs, name: str, number: int, split: stats.Split) -> Step:
    """Make the candidates of one step from the rows before it."""
    candidate = inputs.spec.candidates[name]
    members: tuple[Candidate, ...] = (candidate,)
    choice: Mapping[stats.Goal, IntArray] = {
        goal: np.zeros(inputs.margins.of(goal).size, dtype=np.int64) for goal in inputs.goals
    }
    if candidate.rule == "search":
        members, choice = choose_members(inputs, name, number, split)
    made: list[MadeCandidate | str] = []
    for member in members:
        try:
            made.append(make_candidate(inputs, name, member, number, split))
        except NoCandidateError as error:
            made.append(f"no candidate: {error}")
    return Step(tuple(made), choice)


def _together(inputs: Inputs, name: str, splits: Sequence[stats.Split], steps: Sequence[Step]) -> Trial:
    """Return the test of all steps; where a search chose otherwise at other margins, of each combination."""
    rows = np.sort(np.concatenate([split.test for split in splits]))
    bare = untested(inputs, name, 0, stats.Split(rows, rows))
    chosen = {goal: np.stack([step.choice[goal] for step in steps]) for goal in inputs.goals}
    every, position = np.unique(np.concatenate(list(chosen.values()), axis=1), axis=1, return_inverse=True)
    members = tuple(
        _combination(inputs, name, bare, splits, [step.made[at] for step, at in zip(steps, column, strict=True)])
        for column in every.T
    )
    ends = np.cumsum([columns.shape[1] for columns in chosen.values()])[:-1]
    choice = dict(zip(chosen, np.split(position.ravel(), ends), strict=True))
    first = members[int(choice["fairness"][0])]
    return first if len(members) == 1 else replace(first, members=members, choice=choice)


def _combination(
    inputs: Inputs, name: str, bare: Trial, splits: Sequence[stats.Split], made: Sequence[MadeCandidate | str]
) -> Trial:
    """Return the test of one candidate a step; where a step has none, the status quo decides its rows."""
    pieces = tuple(
        _piece(bare, number, split.test, found) for number, (split, found) in enumerate(zip(splits, made, strict=True))
    )
    found = [piece.made for piece in pieces if piece.made is not None]
    bare = replace(bare, steps=pieces)
    if not found:
        return replace(bare, status=pieces[0].status)
    decisions, step = bare.status_quo.values.copy(), np.empty(bare.test.size, dtype=np.int64)
    for piece in pieces:
        at = np.searchsorted(bare.test, piece.test)
        step[at] = piece.split
        if piece.made is not None:
            decisions[at] = piece.made.decisions.values
    ties = [sum(column) for column in zip(*(each.decisions[1:] for each in found), strict=True)]
    whole = MadeCandidate(Decisions(decisions, *ties), "; ".join(dict.fromkeys(each.what for each in found)))
    return tested(inputs, name, bare, whole, _WHERE, step, _direction(inputs))


def _piece(bare: Trial, number: int, rows: IntArray, made: MadeCandidate | str) -> Piece:
    values = bare.status_quo.values[np.searchsorted(bare.test, rows)]
    status_quo = bare.status_quo._replace(values=values)
    if isinstance(made, str):
        return Piece(number, rows, status_quo, None, made)
    return Piece(number, rows, status_quo, made, "ok")
