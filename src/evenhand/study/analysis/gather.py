"""Collect the complete rows of each condition and target, and the columns shared by all records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from evenhand.core.estimates import Estimate
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.correlation import ClusterEstimate, spearman
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.regression import Coefficients
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.analysis.messages import say
from evenhand.study.analysis.metrics import DISTANCES, TARGETS
from evenhand.study.analysis.result import RegressionRecord, StudyGap, StudyValue
from evenhand.study.responses import Responses

_NUMBERS = ("stderr", "statistic", "df", "p_value", "low", "high")
"""Optional columns of an estimate: standard error, test and interval."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The rows of one condition with both distances and the target present.

    Parameters
    ----------
    condition, target : the condition and the explained variable; `seeds` are the seeds of their random numbers.
    distances : aggregate and trajectory distance, shape (rows, 2).
    y : the target.
    who : the people, as positions in the responses.
    incomplete : rows left out because a value is missing.
    """

    condition: str
    target: str
    seeds: tuple[int, int]
    distances: FloatArray
    y: FloatArray
    who: IntArray
    incomplete: int

    @property
    def people(self) -> int:
        """The number of people who gave these rows."""
        return len(np.unique(self.who))

    @property
    def columns(self) -> FloatArray:
        """The columns aggregate distance, trajectory distance and target."""
        return np.column_stack([self.distances, self.y])


def parts_of(responses: Responses) -> Iterator[Part]:
    """Yield the complete rows of each condition and each target asked in it."""
    distances = np.column_stack([responses.numbers(name) for name in DISTANCES])
    targets = {"overall": responses.numbers("overall"), "output": responses.output()}
    names = responses.condition_of_rows()
    for c, condition in enumerate(responses.conditions):
        for t, target in enumerate(TARGETS):
            here = names == condition
            whole = here & ~np.isnan(targets[target]) & ~np.isnan(distances).any(axis=1)
            if (here & ~np.isnan(targets[target])).any():
                yield Part(
                    condition=condition,
                    target=target,
                    seeds=(c, t),
                    distances=distances[whole],
                    y=targets[target][whole],
                    who=responses.person[whole],
                    incomplete=int(here.sum() - whole.sum()),
                )


def why_undefined(part: Part) -> Message:
    """Return why the answers of a part do not determine a number."""
    if len(part.y) < 3:
        return say("few_answers")
    for name, column in zip((*DISTANCES, part.target), part.columns.T, strict=True):
        if np.ptp(column) == 0:
            return say("no_variation", distance=name)
    if abs(spearman(*part.distances.T)) > 1 - 1e-9:
        return say("together")
    return say("few_people") if part.people < 3 else say("few_differing")


def why_no_spread(part: Part) -> Message:
    """Return why a number has no standard error."""
    if part.people < 3:
        return say("few_people")
    return say("few_answers") if len(part.y) < 4 else say("nothing_to_chance")


def why_no_test(part: Part, value: float, statistic: float) -> Message | None:
    """Return the status of a number without a test; None if it has a test, or is undefined."""
    untested = np.isfinite(value) and not np.isfinite(statistic)
    return say("no_test", why=why_no_spread(part)) if untested else None


def estimate(
    part: Part, method: str, value: float, *, status: Message | None = None, **numbers: float
) -> dict[str, Any]:
    """Return the columns shared by the records of all tables, with undefined numbers as null.

    Parameters
    ----------
    part, method, value : the answers, the method of analysis, and the estimate.
    status : why there is no number, interval or test; by default derived from the number.
    **numbers : values for any of `_NUMBERS`; the rest are null.
    """
    number = finite(value)
    whose = {"condition": part.condition, "target": part.target, "n": part.people, "answers": len(part.y)}
    others = {name: finite(numbers.get(name, np.nan)) for name in _NUMBERS}
    if status is None:
        status = OK if number is not None else shared("undefined", why=why_undefined(part))
    return {**whose, "method": method, "value": number, **others, "status": status}


def numbers_at(estimates: ClusterEstimate | Coefficients, position: int) -> dict[str, Any]:
    """Return standard error, test and limits of the estimate at a position, as arguments of `estimate`."""
    names = (name for name in _NUMBERS if name != "df")
    df = float(np.broadcast_to(estimates.df, estimates.stderr.shape)[position])
    return {"df": df, **{name: float(getattr(estimates, name)[position]) for name in names}}


Tested = TypeVar("Tested", StudyValue, StudyGap, RegressionRecord)


def with_adjusted_p(records: Sequence[Tested], family_of: Callable[[Tested], Hashable | None]) -> tuple[Tested, ...]:
    """Adjust the p-values of each family of tests; records without a family are skipped."""
    families: dict[Hashable, list[int]] = {}
    for position, record in enumerate(records):
        family = family_of(record)
        if family is not None and record.p_value is not None:
            families.setdefault(family, []).append(position)
    adjusted = list(records)
    for positions in families.values():
        p = np.array([records[position].p_value for position in positions], dtype=np.float64)
        both = zip(positions, adjusted_p(p, "bonferroni"), adjusted_p(p, "holm"), strict=True)
        for position, bonferroni, holm in both:
            adjusted[position] = replace(records[position], p_adjusted=float(bonferroni), p_holm=float(holm))
    return tuple(adjusted)


R = TypeVar("R", StudyValue, StudyGap)


def with_adjusted_limits(
    estimates: Sequence[Estimate[R]], family_of: Callable[[R], Hashable | None]
) -> list[Estimate[R]]:
    """Adjust the p-values like `with_adjusted_p`, for estimates with limits at any confidence."""
    records = with_adjusted_p([estimate.record for estimate in estimates], family_of)
    return [
        estimate.map(partial(_with_p_of, adjusted=record)) for estimate, record in zip(estimates, records, strict=True)
    ]


def _with_p_of(record: R, adjusted: R) -> R:
    return replace(record, p_adjusted=adjusted.p_adjusted, p_holm=adjusted.p_holm)
