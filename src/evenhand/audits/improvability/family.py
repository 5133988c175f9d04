"""The search over a family: cross-validation on the training rows says which member is most promising.

A member's promise at a margin is the smallest number of standard errors by which any component of the test exceeds its
null, on decisions made out of fold. The test rows are not looked at, so the choice may differ from margin to margin
and each test is still of its level.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.curves import Curves, z_curves
from evenhand.audits.improvability.splits import (
    NoCandidateError,
    Setting,
    Tested,
    make_candidate,
    old_decisions,
    rng_of,
    rows_of,
    try_made,
    worst_pairs,
)
from evenhand.stats.improvability import AccuracyOf, Goal, Split, SplitTest, bootstrap_values
from evenhand.stats.types import FloatArray, IntArray


def goals_of(groups: int, accuracy_of: AccuracyOf) -> tuple[Goal, ...]:
    """Return what a margin can apply to: fairness, accuracy of all, and accuracy of each group."""
    return ("fairness", "joint_accuracy", *(range(groups) if accuracy_of == "groups" else ()))


def search_family(setting: Setting, name: str, number: int, split: Split) -> Tested:
    """Choose the most promising member on the training rows, for every goal and margin, and test those chosen."""
    spec = setting.spec
    family = spec.candidates[name].family
    promises = [_promise(setting, name, member, number, split) for member in family]
    goals = goals_of(len(setting.sample.groups), spec.accuracy_of)
    choice: dict[Goal, IntArray] = {
        goal: np.argmax([promise.of(goal, lowest=True) for promise in promises], axis=0) for goal in goals
    }
    chosen = sorted({int(one) for found in choice.values() for one in found})
    members = tuple(
        try_made(setting, name, f"{name}: {family[one].in_words()}", family[one], number, split) for one in chosen
    )
    place = np.full(len(family), -1)
    place[chosen] = np.arange(len(chosen))
    first = members[int(place[choice["fairness"][0]])]
    return replace(
        first, candidate=name, members=members, choice={goal: place[found] for goal, found in choice.items()}
    )


def _promise(setting: Setting, name: str, member: Candidate, number: int, split: Split) -> Curves:
    """Return by how many standard errors a member's components exceed their nulls, on decisions made out of fold."""
    spec = setting.spec
    try:
        decisions = _out_of_fold(setting, name, member, number, split)
    except NoCandidateError:
        own = 1 if spec.accuracy_of == "everyone" else len(setting.sample.groups)
        low = [
            np.full((n, grid.size), -np.inf)
            for n, grid in ((own, setting.margins.accuracy), (len(spec.fairness), setting.margins.fairness))
        ]
        return Curves(*low)
    old = old_decisions(setting, number, split.train)
    rows = rows_of(setting, split.train, old, decisions, f"the training rows of split {number + 1}")
    draws = bootstrap_values(rows, resamples=1, rng=np.random.default_rng(0), studentised=True)
    return z_curves(SplitTest(draws, spec.criteria, tuple(worst_pairs(setting, number, split))), setting.margins)


def _out_of_fold(setting: Setting, name: str, member: Candidate, number: int, split: Split) -> FloatArray:
    """Return a member's decisions on the training rows, each made by a fit to the other folds."""
    folds = setting.spec.candidates[name].folds
    rng = rng_of(setting.spec.seed, "folds", name, number)
    part = rng.permutation(split.train.size) % folds
    decisions = np.empty(split.train.size)
    for fold in range(folds):
        inner = Split(split.train[part != fold], split.train[part == fold])
        decisions[part == fold] = make_candidate(setting, name, member, number, inner).decided.decisions
    return decisions
