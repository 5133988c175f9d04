"""The answers an analysis works on: for one condition and target, whole rows only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenhand.core.numbers import finite
from evenhand.stats.correlation import adjusted_p, spearman
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.analysis.records import EstimateRecord
from evenhand.study.responses import Responses

TARGETS = ("overall", "output")
DISTANCES = ("aggregate", "trajectory")


@dataclass(frozen=True)
class Part:
    """The rows of one condition that hold both distances and the target.

    Parameters
    ----------
    condition, target : which rows and what is explained; `seeds` tells their random numbers apart.
    distances : aggregate and trajectory distance, shape (rows, 2).
    y : the target.
    who : the people, as places in the responses.
    gaps : rows left out because a value is missing.
    """

    condition: str
    target: str
    seeds: tuple[int, int]
    distances: FloatArray
    y: FloatArray
    who: IntArray
    gaps: int

    @property
    def people(self) -> int:
        """How many people gave the rows."""
        return len(np.unique(self.who))

    @property
    def columns(self) -> FloatArray:
        """Aggregate distance, trajectory distance and target."""
        return np.column_stack([self.distances, self.y])


def parts_of(responses: Responses) -> Iterator[Part]:
    """Yield the rows of every condition, and of every target that was asked for in it."""
    distances = np.column_stack([responses.numbers(name) for name in DISTANCES])
    targets = {"overall": responses.numbers("overall"), "output": responses.output()}
    names = responses.condition_of_rows()
    for c, condition in enumerate(responses.conditions):
        for t, target in enumerate(TARGETS):
            here = names == condition
            whole = here & ~np.isnan(targets[target]) & ~np.isnan(distances).any(axis=1)
            if (here & ~np.isnan(targets[target])).any():
                yield Part(
                    condition,
                    target,
                    (c, t),
                    distances[whole],
                    targets[target][whole],
                    responses.person[whole],
                    int(here.sum() - whole.sum()),
                )


def why_undefined(part: Part) -> str:
    """Say why the answers of a part do not give a number."""
    if len(part.y) < 3:
        return "too few answers"
    for name, column in zip((*DISTANCES, part.target), part.columns.T, strict=True):
        if np.ptp(column) == 0:
            return f"the {name} distance does not vary"
    if abs(spearman(*part.distances.T)) > 1 - 1e-9:
        return "the aggregate and the trajectory distance go together entirely"
    return "too few people" if part.people < 3 else "too few answers that differ"


def why_no_spread(part: Part) -> str:
    """Say why a number has no standard error."""
    return (
        "too few people" if part.people < 3 else "too few answers" if len(part.y) < 4 else "nothing is left to chance"
    )


def record(
    part: Part,
    term: str,
    method: str,
    *,
    value: float,
    stderr: float = np.nan,
    statistic: float = np.nan,
    df: float = np.inf,
    p_value: float = np.nan,
    low: float = np.nan,
    high: float = np.nan,
    status: str = "",
    target: str | None = None,
    model: str = "condition",
) -> EstimateRecord:
    """Return a record, undefined numbers as null; adjusted p-values come later, with the family."""
    number = finite(value)
    said = status or ("ok" if number is not None else f"undefined: {why_undefined(part)}")
    return EstimateRecord(
        model,
        part.condition,
        target or part.target,
        term,
        method,
        len(part.y),
        part.people,
        finite(stderr),
        finite(statistic),
        finite(df),
        finite(p_value),
        None,
        None,
        number,
        finite(low),
        finite(high),
        said,
    )


def with_families(records: list[EstimateRecord], family_of: dict[str, str]) -> tuple[EstimateRecord, ...]:
    """Adjust the p-values: a family is all tests by one method of the terms that share a family name."""
    families: dict[tuple[str, str, str], list[int]] = {}
    for place, one in enumerate(records):
        if one.term in family_of and one.p_value is not None:
            families.setdefault((one.model, one.method, family_of[one.term]), []).append(place)
    adjusted = list(records)
    for places in families.values():
        p = np.array([records[place].p_value for place in places], dtype=np.float64)
        for place, by_all, by_step in zip(places, adjusted_p(p, "bonferroni"), adjusted_p(p, "holm"), strict=True):
            adjusted[place] = replace(records[place], p_adjusted=float(by_all), p_holm=float(by_step))
    return tuple(adjusted)
