"""Answers of known critics on made-up cases, and the metrics written out row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.disagreement import Answers

Frame: TypeAlias = Any  # a pandas frame
Audit = Callable[..., eh.DisagreementResult]

_COLUMNS = {"decision": "label", "disagree": "disagrees", "critic": "critic", "case": "case"}
SETTINGS: dict[str, Any] = {**_COLUMNS, "resamples": 100}


def make_answers(labels: int = 3, critics: int = 24, cases: int = 120, each: int = 20, seed: int = 0) -> Frame:
    """One row an answer: groups of the case, the system's label, the critic's own, and what the critic says."""
    rng = np.random.default_rng(seed)
    race, sex = rng.choice(["Black", "White"], cases), rng.choice(["F", "M"], cases)
    given = rng.integers(1, labels + 1, cases)
    critic = np.repeat(np.arange(critics), each)
    case = np.concatenate([rng.choice(cases, each, replace=False) for _ in range(critics)])
    kind = np.array(["Patient", "Surgeon"])[np.arange(critics) % 2]
    wrong = rng.random(critic.size) < np.where((race[case] == "Black") & (kind[critic] == "Patient"), 0.6, 0.25)
    other = (given[case] - 1 + rng.integers(1, labels, critic.size)) % labels + 1
    own = np.where(wrong, other, given[case])
    return pd.DataFrame(
        {
            "critic": [f"c{code:02d}" for code in critic],
            "case": [f"k{code:03d}" for code in case],
            "race": race[case],
            "sex": sex[case],
            "label": given[case],
            "own": own,
            "kind": kind[critic],
            "disagrees": wrong.astype(int),
            "answer": np.where(own > given[case], "too_low", np.where(own < given[case], "too_high", "right")),
        }
    )


def everybody_sees_everything(critics: int = 40, cases: int = 80) -> Frame:
    """Every critic answers every case; what they say is for the test to add."""
    case = np.tile(np.arange(cases), critics)
    return pd.DataFrame(
        {
            "critic": np.repeat(np.arange(critics), cases),
            "case": case,
            "race": np.where(case % 2, "a", "b"),
            "label": case // 2 % 2,
        }
    )


@pytest.fixture(scope="session")
def answers() -> Frame:
    return make_answers()


@pytest.fixture(scope="session")
def audit() -> Audit:
    """Audit answers by race; settings, and options of the answers, may be changed, or left out with None."""

    def run(
        data: Any, groups: Any = "race", table: dict[str, Any] | None = None, **settings: Any
    ) -> eh.DisagreementResult:
        chosen = {name: value for name, value in {**SETTINGS, **settings}.items() if value is not None}
        options = {name: chosen.pop(name) for name in Answers.model_fields if name in chosen}
        return eh.disagreement(eh.Table(data, groups=groups, **(table or {})), answers=options, **chosen)

    return run


LIMITS = [
    {"metric": "calibration", "max": 0.02},
    {"metric": "accuracy_equality", "max": 0.9},
    {"metric": "equal_opportunity", "max": 0.3, "stakeholder": "Patient"},
]


@pytest.fixture(scope="session")
def full(answers: Frame, audit: Audit) -> eh.DisagreementResult:
    return audit(
        answers,
        groups=["race", "sex"],
        stakeholder="kind",
        truth="own",
        target_width=0.2,
        thresholds=LIMITS,
        individuals=True,
    )


def true_rate(rows: Frame, metric: str, label: int | None) -> float:
    """The rate of one metric among rows whose critics' own labels are known, by its definition."""
    y, z = rows["label"], rows["own"]
    chosen: Any
    over: Any
    if metric == "statistical_parity":
        chosen, over = y == label, np.ones(len(rows), dtype=bool)
    elif metric == "calibration":
        chosen, over = z == label, y == label
    elif metric == "accuracy_equality":
        chosen, over = z == y, np.ones(len(rows), dtype=bool)
    elif metric == "equal_opportunity":
        chosen, over = y == label, z == label
    elif metric == "predictive_equality":
        chosen, over = y == label, z != label
    else:
        chosen, over = y != label, z == label
    return float((chosen & over).sum() / over.sum()) if over.sum() else float("nan")


def true_gap(rows: Frame, metric: str, labels: int, column: str = "race") -> float:
    """The largest difference of a metric's rate between two groups, over all labels."""
    every = [None] if metric == "accuracy_equality" else range(1, labels + 1)
    differences = [
        true_rate(one, metric, label) - true_rate(two, metric, label)
        for label in every
        for _, one in rows.groupby(column)
        for _, two in rows.groupby(column)
    ]
    return float(np.nanmax(differences))
