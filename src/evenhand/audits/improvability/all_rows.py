"""All rows test, each of them once: a column as it is, fitted candidates by cross-fitting.

The rows are parted into folds. A rule makes a candidate from the rows outside a fold, and that candidate decides the
rows of the fold. What is tested is then the average of the folds' candidates: the algorithm that gives each person to
one of them by lot. Rows are drawn within folds. Which group the status quo favours is not named by other rows, so both
directions are allowed for: calibrated for a column, doubled for what was fitted, because there the rows of a fold and
the candidates of the others are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

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


class Fold(NamedTuple):
    """What a rule made for one fold: candidates, or why there is none, and for each goal the one at each margin."""

    made: tuple[MadeCandidate | str, ...]
    choice: Mapping[stats.Goal, IntArray]


def run_all_rows(inputs: Inputs) -> Trials:
    """Test every candidate on all rows."""
    spec, sample = inputs.spec, inputs.sample
    fitted = [name for name, candidate in spec.candidates.items() if candidate.refits]
    splits = make_splits(len(sample), spec) if fitted else ()
    tasks = [(name, number) for number in range(len(splits)) for name in fitted]
    work = [(inputs, name, number, splits[number]) for name, number in tasks]
    folds = dict(zip(tasks, in_parallel(make_fold, work, spec), strict=True))
    return {
        name: (
            _pooled(inputs, name, splits, [folds[name, number] for number in range(len(splits))])
            if candidate.refits
            else _column(inputs, name),
        )
        for name, candidate in spec.candidates.items()
    }


def _everyone(inputs: Inputs) -> stats.Split:
    rows = np.arange(len(inputs.sample))
    return stats.Split(rows, rows)


def _column(inputs: Inputs, name: str) -> Trial:
    """Return the test of a column, decisions or scores that were there before."""
    split = _everyone(inputs)
    made = make_candidate(inputs, name, inputs.spec.candidates[name], 0, split)
    direction: stats.Direction = "calibrated" if inputs.spec.test.worst_pair is None else "named"
    return tested(inputs, name, untested(inputs, name, 0, split), made, _WHERE, None, direction)


def make_fold(inputs: Inputs, name: str, number: int, split: stats.Split) -> Fold:
    """Make the candidates of one fold from the rows outside it."""
    candidate = inputs.spec.candidates[name]
    members, choice = (candidate,), {goal: np.zeros(inputs.margins.of(goal).size, int) for goal in inputs.goals}
    if candidate.rule == "search":
        members, choice = choose_members(inputs, name, number, split)
    made: list[MadeCandidate | str] = []
    for member in members:
        try:
            made.append(make_candidate(inputs, name, member, number, split))
        except NoCandidateError as error:
            made.append(f"no candidate: {error}")
    return Fold(tuple(made), choice)


def _pooled(inputs: Inputs, name: str, splits: Sequence[stats.Split], folds: Sequence[Fold]) -> Trial:
    """Return the test of all folds together; where a search chose otherwise at other margins, of each combination."""
    bare = untested(inputs, name, 0, _everyone(inputs))
    chosen = {goal: np.stack([fold.choice[goal] for fold in folds]) for goal in inputs.goals}
    every, position = np.unique(np.concatenate(list(chosen.values()), axis=1), axis=1, return_inverse=True)
    members = tuple(
        _combination(inputs, name, bare, splits, [fold.made[at] for fold, at in zip(folds, column, strict=True)])
        for column in every.T
    )
    ends = np.cumsum([columns.shape[1] for columns in chosen.values()])[:-1]
    choice = dict(zip(chosen, np.split(position.ravel(), ends), strict=True))
    first = members[int(choice["fairness"][0])]
    return first if len(members) == 1 else replace(first, members=members, choice=choice)


def _combination(
    inputs: Inputs, name: str, bare: Trial, splits: Sequence[stats.Split], made: Sequence[MadeCandidate | str]
) -> Trial:
    """Return the test of one candidate a fold; where a fold has none, the status quo decides its rows."""
    pieces = tuple(
        _piece(bare, number, split.test, found) for number, (split, found) in enumerate(zip(splits, made, strict=True))
    )
    found = [piece.made for piece in pieces if piece.made is not None]
    bare = replace(bare, folds=pieces)
    if not found:
        return replace(bare, status=pieces[0].status)
    decisions = bare.status_quo.values.copy()
    fold = np.empty(len(inputs.sample), dtype=np.int64)
    for piece in pieces:
        fold[piece.test] = piece.split
        if piece.made is not None:
            decisions[piece.test] = piece.made.decisions.values
    ties = [sum(column) for column in zip(*(each.decisions[1:] for each in found), strict=True)]
    whole = MadeCandidate(Decisions(decisions, *ties), "; ".join(dict.fromkeys(each.what for each in found)))
    direction: stats.Direction = "doubled" if inputs.spec.test.worst_pair is None else "named"
    return tested(inputs, name, bare, whole, _WHERE, fold, direction)


def _piece(bare: Trial, number: int, rows: IntArray, made: MadeCandidate | str) -> Piece:
    status_quo = bare.status_quo._replace(values=bare.status_quo.values[rows])
    if isinstance(made, str):
        return Piece(number, rows, status_quo, None, made)
    return Piece(number, rows, status_quo, made, "ok")
