"""Strategies for the settings of every audit: sound ones, and sound ones with one value changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from evenhand.audits import REGISTRY

Settings = dict[str, Any]

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 0.5, -0.5, 1.0, 100, 1_000, 2**63, 2**70, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
    *(
        "",
        " ",
        "x",
        "g",
        "s",
        "y",
        "id",
        "auto",
        "none",
        "1",
        "x:y",
        "os:system",
        "\x00",
        "\ud800",
        "×",
        "g × h",
        "x" * 3_000,
    ),
    *(
        [],
        {},
        (),
        [[]],
        [None],
        [1],
        ["g"],
        ["g", "g"],
        ["g", "h"],
        [["g", "h"]],
        {"g": 1},
        {"g": "h"},
        {"": ""},
        {1: 2},
    ),
    *(b"x", Decimal("0.1"), datetime.date(2020, 1, 1), np.float64(0.3), np.int64(2), np.array([1, 2]), object, {1, 2}),
)


@dataclass(frozen=True)
class Plan:
    """How an audit is fuzzed: the columns it reads, its roles, and its sound settings, required and optional."""

    columns: tuple[str, ...]
    roles: Mapping[str, SearchStrategy[Any]]
    required: Mapping[str, SearchStrategy[Any]]
    optional: Mapping[str, SearchStrategy[Any]]
    metrics: tuple[str, ...] = ()
    sides: tuple[str, ...] = ("max",)


def some(names: Sequence[Any], most: int = 2) -> SearchStrategy[list[Any]]:
    """Draw a few of the names, each once."""
    return st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)


def one(*values: Any) -> SearchStrategy[Any]:
    """Draw one of the values."""
    return st.sampled_from(values)


GROUPS = one("g", "g", ["g"], ["g", "h"], [["g", "h"]], ["h"])
COMMON: Settings = {
    "confidence": one(0.95, 0.5, 0.01, 0.8, 0.999),
    "seed": one(0, 1, 2**40),
    "min_count": one(1, 1, 2, 10),
}
COEFFICIENTS = {"r": ("kappa", "pabak", "ac1"), "q": ("kappa", "ac1", "alpha"), "x": ("icc_a1", "concordance")}
RATES = ("selection_rate", "tpr", "fpr", "ppv", "accuracy", "mean_score", "auc", "brier", "npv", "fnr")

NUMBERS = ("mean", "median", "quantile_10", "quantile_75", "mean_error", "mae", "rmse", "mean_outcome")
"""Metrics of numbers; without a prediction the first four."""

NUMBER_ROLES: dict[str, SearchStrategy[Any]] = {
    "predictions": one("y1", {"a": "y1", "b": "income"}, None),
    "outcome": one("income"),
    "outcome_kind": one("number"),
    "favourable": one(None, "higher", "lower"),
}
"""The roles of a table of numbers, such as salaries; without a prediction the outcome is compared."""


PLANS: dict[str, Plan] = {
    "parity": Plan(
        ("h", "y", "s", "d", "w", "id", "income", "y1", "chosen"),
        {
            "groups": GROUPS,
            "predictions": one(
                "d", "d", "s", {"one": "s", "two": "d"}, ["d", "s"], {"m": {"column": "s", "threshold": 0.2}}
            ),
            "outcome": one("y", "y", None),
            "weight": one(None, None, "w"),
            "cluster": one(None, None, None, "id", "h"),
            "count": one(None, None, None, None, "chosen"),
            "favourable": one(None, "selected", "not_selected"),
        },
        {"resamples": one(100), "metrics": some(("selection_rate", *RATES))},
        {"interval": one("auto", "percentile", "basic"), "within": one(["h"], ["id"]), "bins": one(2, 5)},
        RATES,
        ("max", "min"),
    ),
    "effort": Plan(
        ("h", "s", "y1", "y2", "y3", "id"),
        {"groups": GROUPS, "predictions": one("s", {"one": "s", "two": "s"}), "id": one(None, "id")},
        {"trajectory": one(["y1", "y2", "y3"]), "width": one(0.5, 0.25, 1.0), "scale": one(100, 1, 1e-3)},
        {
            "weights": one([0.5], [0, 1], [0.3, 0.7]),
            "desirable": st.booleans(),
            "measure": one("acceleration", "slope"),
            "distance": one("euclidean", "manhattan", "maximum"),
            "parity_of": one("scores", "decisions"),
            "inertia": one({"a": 1, "b": 2, "c": 3}, "y1", None),
            "worst": one(0, 3),
            "times": one([0, 1, 5], [2019, 2020, 2021.5]),
        },
        ("eaif", "eagf"),
        ("min",),
    ),
    "disagreement": Plan(
        ("h", "label", "critic", "disagree", "kind", "id"),
        {"groups": one("g", "g", "h")},
        {"decision": one("label"), "critic": one("critic"), "disagree": one("disagree"), "resamples": one(100)},
        {
            "stakeholder": one("kind"),
            "case": one("id"),
            "bounds": one("sharp", "published"),
            "answers": one(
                {"labels": ["low", "middle", "high"], "ordered": True}, {"cases": "all"}, {"target_width": 0.2}
            ),
        },
        ("calibration", "statistical_parity", "equal_opportunity"),
    ),
    "reliability": Plan(
        ("h", "y", "age", "income", "q1"),
        {"groups": one("g", "g", "h"), "outcome": one("y")},
        {
            "model": one("logistic", "logistic", {"m": {"estimator": "decision_tree"}}),
            "features": one(["age"], ["age", "income"], ["age", "q1"]),
            "noise": one({"age": 5}, {"features": {"age": 5}, "noise_levels": [0, 0.3]}, {"features": {"age": "flip"}}),
            "replicates": one(1, 2),
            "resamples": one(100),
            "folds": one(2),
            "attribution": one(False, False, True),
        },
        {"metrics": some(("icc_a1", "kappa", "pabak")), "scoring": one({"threshold": 0.3}, {"threshold": "deciles"})},
        ("icc_a1", "kappa"),
    ),
    "agreement": Plan(
        ("h", "r1", "r2", "q1", "q2", "q3", "x1", "x2", "id"),
        {"groups": GROUPS},
        {"raters": one(["r1", "r2"], ["q1", "q2"], ["q1", "q2", "q3"], ["x1", "x2"]), "resamples": one(100)},
        {"missing": one("keep", "drop")},
        ("kappa", "pabak", "icc_a1", "alpha", "ac1"),
    ),
    "classes": Plan(
        ("h", "label", "kind", "y", "d"),
        {"groups": one("g", "g", "h")},
        {"decision": one("label", "label", "d")},
        {"truth": one("label", "y"), "order": one(["low", "middle", "high"], [0, 1])},
        ("class_rate",),
    ),
    "paired": Plan(
        ("h", "critic", "d", "income", "kind"),
        {"groups": one("g", "g", "h")},
        {"template": one("critic"), "answer": one("d", "income")},
        {"placebo": one("kind", "h"), "favourable": one("higher", "lower"), "missing": one("refusal")},
        ("pass_rate", "mean_answer"),
    ),
    "ranking": Plan(
        ("h", "critic", "s", "y"),
        {"groups": one("g", "g", "h"), "outcome": one("y", None), "predictions": one("s", {"one": "s", "two": "s"})},
        {"query": one("critic")},
        {"size": one(1, 2, 50)},
        ("shortlist_rate", "exposure"),
    ),
    "improvability": Plan(
        ("h", "y", "d", "e", "s", "age", "income"),
        {"groups": one("g", "g", "h"), "outcome": one("y")},
        {
            "status_quo": one("d", "d", {"column": "s", "threshold": 0.5}),
            "candidates": one(
                {"c": {"column": "e"}}, {"c": {"column": "e"}, "b": {"column": "s", "threshold": 0.4}}, "logistic"
            ),
            "features": one(["age"], ["age", "income"]),
            "resamples": one(200),
        },
        {
            "utility": one("classification", "calibration", "false_positive_rate"),
            "test": one({"steps": 2}, {"splits": 1}, {"margins": [0, 0.2]}, {"accuracy_of": "everyone"}),
            "capacity": one(0.3, 0.5),
            "use_group": st.booleans(),
        },
        ("improvable_fairness",),
    ),
}


@st.composite
def settings(draw: DrawFn, audit: str, roles: Settings, *, limited: bool = False) -> Settings:
    """Draw sound settings of an audit of a table with these roles, always with a threshold where `limited`."""
    plan = PLANS[audit]
    optional = {**plan.optional, **COMMON}
    wanted = draw(st.lists(st.sampled_from(sorted(optional)), max_size=2, unique=True))
    found = {name: draw(value) for name, value in plan.required.items()} | {
        name: draw(optional[name]) for name in wanted
    }
    if audit == "parity":
        found["metrics"] = draw(some(_possible(roles)))
    if audit == "agreement":
        found["metrics"] = draw(some(COEFFICIENTS[found["raters"][0][0]]))
    if limited or draw(one(False, False, True)):
        metric, side = draw(st.sampled_from(found.get("metrics") or plan.metrics)), draw(one(*plan.sides))
        found["thresholds"] = [{"metric": metric, side: draw(one(0.1, 0.5, 0.8))}]
    return {"min_count": 1} | found


def _possible(roles: Settings) -> tuple[str, ...]:
    """Return the metrics of parity that a table with these roles can have."""
    if "outcome_kind" in roles:
        return NUMBERS if roles["predictions"] else NUMBERS[:4]
    scores = isinstance(roles["predictions"], str | dict) and "'d'" not in repr(roles["predictions"])
    rates = RATES if scores else tuple(name for name in RATES if name not in ("mean_score", "auc", "brier"))
    return rates if roles["outcome"] else rates[:1]


@st.composite
def mutated(draw: DrawFn, audit: str, sound: Settings) -> Settings:
    """Draw the settings with one value changed, removed, or called by a wrong name."""
    known = sorted(set(REGISTRY[audit].spec.model_fields))
    name = draw(st.sampled_from([*sound, *known]))
    how = draw(one("odd", "odd", "odd", "within", "removed", "misspelt"))
    if how == "removed":
        return {other: value for other, value in sound.items() if other != name}
    if how == "misspelt":
        return {f"{other}s" if other == name else other: value for other, value in sound.items()}
    odd = draw(st.sampled_from(ODD_VALUES))
    if how == "within" and sound.get(name):
        return sound | {name: draw(inside(sound[name], odd))}
    return sound | {name: odd}


@st.composite
def inside(draw: DrawFn, value: Any, odd: Any) -> Any:
    """Draw a value that is odd somewhere within."""
    if isinstance(value, dict) and value:
        name = draw(st.sampled_from(sorted(value, key=str)))
        return value | {name: draw(inside(value[name], odd))}
    if isinstance(value, list) and value:
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(inside(value[place], odd)), *value[place + 1 :]]
    return odd
