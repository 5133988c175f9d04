"""Exclusions: who is left out of the analysis, by named rules, counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from evenhand.settings import Settings
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.study.responses import ExclusionRecord, Responses

CORE = {"effort": ("trajectory", "aggregate", "overall"), "feedback": ("answer",)}
"""What an answer must hold to count as given."""


def _none_for_false(value: Any) -> Any:
    """Accept false for none, which TOML does not have."""
    return None if value is False else value


class Exclusions(Settings):
    """The rules, in the order in which they are applied; a person is counted under the first one they break.

    Examples
    --------
    >>> Exclusions().failed_checks
    2
    """

    unfinished: bool = Field(False, description="Leave out who did not reach the end.")
    failed_checks: Annotated[
        Annotated[int, Field(ge=1)] | None,
        BeforeValidator(_none_for_false, json_schema_input_type=Annotated[int, Field(ge=1)] | Literal[False] | None),
    ] = Field(2, description="Leave out who failed this many attention checks or more; false keeps them.")
    incomplete: float | None = Field(
        None, gt=0, le=1, description="Leave out who answered less than this share of their questions."
    )
    too_fast: float | None = Field(None, gt=0, description="Leave out who took fewer seconds than this.")
    same_answer: bool = Field(False, description="Leave out who gave one and the same answer throughout.")


def apply_exclusions(responses: Responses, rules: Exclusions | dict[str, Any] | None = None) -> Responses:
    """Leave out the people that the rules name, and record who and why.

    Examples
    --------
    >>> import evenhand as eh
    >>> rows = {"participant": ["p1", "p2"], "checks_passed": [3, 1], "checks_total": [3, 3], "item": ["1", "1"],
    ...         "subject": ["A", "A"], "trajectory": [1, 2], "aggregate": [2, 1], "overall": [1, 2]}
    >>> kept = eh.study.apply_exclusions(eh.study.read_responses(rows))
    >>> kept.excluded[0].rule, kept.excluded[0].participants
    ('failed_checks', ('p2',))
    """
    if not isinstance(rules, Exclusions):
        rules = Exclusions.parse(rules or {}, "[exclusions]")
    names = responses.people["participant"]
    rows = np.bincount(responses.person, minlength=len(names))
    left = np.ones(len(names), dtype=bool)
    records = []
    for rule, limit, broken in _broken(responses, rules):
        out = broken & left
        records.append(
            ExclusionRecord(
                rule, limit, int(out.sum()), int(rows[out].sum()), int(broken.sum()), tuple(map(str, names[out]))
            )
        )
        left &= ~out
    return responses.keep(left, tuple(records))


def _broken(responses: Responses, rules: Exclusions) -> Iterator[tuple[str, str, BoolArray]]:
    """Yield every rule in force, in words, and who breaks it. Who has no record of a thing does not break its rule."""
    if rules.unfinished:
        yield "unfinished", "did not reach the end", _person(responses, "finished") == 0
    if rules.failed_checks is not None:
        failed = _person(responses, "checks_total") - _person(responses, "checks_passed")
        yield "failed_checks", f"failed {rules.failed_checks} or more attention checks", failed >= rules.failed_checks
    if rules.incomplete is not None:
        limit = f"answered less than {100 * rules.incomplete:g}% of their questions"
        yield "incomplete", limit, answered_share(responses) < rules.incomplete - 1e-12
    if rules.too_fast is not None:
        yield "too_fast", f"took less than {rules.too_fast:g} seconds", _person(responses, "duration") < rules.too_fast
    if rules.same_answer:
        yield "same_answer", "gave one and the same answer throughout", _same_answer(responses)


def answered_share(responses: Responses) -> FloatArray:
    """Return each person's whole answers over the most that anybody in their condition was asked."""
    who, people = responses.person, len(responses.people["participant"])
    whole = np.bincount(who, weights=_whole(responses).astype(np.float64), minlength=people)
    asked = np.bincount(who, minlength=people)
    condition = np.unique([str(name or "") for name in responses.people["condition"]], return_inverse=True)[1]
    most = np.zeros(condition.max(initial=0) + 1)
    np.maximum.at(most, condition, asked)
    with np.errstate(all="ignore"):
        return np.where(most[condition] > 0, whole / most[condition], 0.0)


def _whole(responses: Responses) -> BoolArray:
    """Tell which answers hold all that an answer must."""
    columns = [responses.answers[name] for name in CORE[responses.kind]]
    held = [~np.isnan(c) if c.dtype.kind == "f" else np.array([v is not None for v in c], dtype=bool) for c in columns]
    return np.asarray(np.logical_and.reduce(held))


def _same_answer(responses: Responses) -> BoolArray:
    """Tell who gave one answer to all questions, of at least four."""
    who, people = responses.person, len(responses.people["participant"])
    texts = np.stack([responses.answers[name].astype(str) for name in CORE[responses.kind]])
    codes = np.unique(texts, return_inverse=True)[1].reshape(texts.shape)
    low, high = np.full(people, codes.max(initial=0)), np.zeros(people, dtype=np.int64)
    np.minimum.at(low, who, codes.min(axis=0))
    np.maximum.at(high, who, codes.max(axis=0))
    return np.asarray((low == high) & (np.bincount(who, minlength=people) >= 4))


def _person(responses: Responses, name: str) -> FloatArray:
    values = responses.people.get(name)
    people = len(responses.people["participant"])
    return np.full(people, np.nan) if values is None else np.asarray(values, dtype=np.float64)
