"""Exclusions: each rule by itself, their order, and what is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.study import Exclusions, Responses, apply_exclusions, read_responses, study_schema
from evenhand.study.responses import answered_share


@pytest.fixture
def responses() -> Responses:
    """Five people with four pairs each, but 'short' with two, of which one is not whole."""
    rows: dict[str, list[Any]] = {
        name: []
        for name in (
            "participant",
            "item",
            "subject",
            "trajectory",
            "aggregate",
            "overall",
            "duration",
            "finished",
            "checks_passed",
            "checks_total",
        )
    }
    people = {
        "good": (4, 900, 1, 3),
        "quick": (4, 50, 1, 3),
        "same": (4, 900, 1, 3),
        "asleep": (4, 40, 1, 1),
        "short": (2, 900, 0, 3),
    }
    for person, (pairs, seconds, finished, passed) in people.items():
        for at in range(pairs):
            gap = person == "short" and at == 1
            answer = [3, 3, 3] if person == "same" else [1 + at, 2, None if gap else 2]
            rows["participant"].append(person)
            rows["item"].append("1")
            rows["subject"].append("ABCD"[at])
            for name, value in zip(("trajectory", "aggregate", "overall"), answer, strict=True):
                rows[name].append(value)
            for name, value in (("duration", seconds), ("finished", finished), ("checks_passed", passed)):
                rows[name].append(value)
            rows["checks_total"].append(3)
    return read_responses(rows)


@pytest.mark.parametrize(
    ("rules", "out"),
    [
        ({}, ["asleep"]),
        ({"failed_checks": 1}, ["asleep"]),
        ({"failed_checks": 3}, []),
        ({"failed_checks": None}, []),
        ({"failed_checks": None, "unfinished": True}, ["short"]),
        ({"failed_checks": None, "incomplete": 1.0}, ["short"]),
        ({"failed_checks": None, "incomplete": 0.25}, []),
        ({"failed_checks": None, "too_fast": 50}, ["asleep"]),
        ({"failed_checks": None, "too_fast": 51}, ["asleep", "quick"]),
        ({"failed_checks": None, "same_answer": True}, ["same"]),
    ],
)
def test_each_rule(responses: Responses, rules: dict[str, Any], out: list[str]) -> None:
    kept = apply_exclusions(responses, rules)
    assert sorted(set(responses.people["participant"]) - set(kept.people["participant"])) == out
    assert sum(record.people for record in kept.excluded) == len(out)


def test_a_person_is_counted_under_the_first_rule_they_break(responses: Responses) -> None:
    kept = apply_exclusions(responses, {"failed_checks": 2, "too_fast": 60, "unfinished": True})
    told = {record.rule: (record.people, record.broken, record.participants) for record in kept.excluded}
    assert told == {
        "unfinished": (1, 1, ("short",)),
        "failed_checks": (1, 1, ("asleep",)),
        "too_fast": (1, 2, ("quick",)),
    }
    assert [record.rows for record in kept.excluded] == [2, 4, 4]
    assert kept.people["participant"].tolist() == ["good", "same"]
    assert kept.person.tolist() == [0] * 4 + [1] * 4
    assert kept.excluded[2].limit.text == "took less than 60 seconds"


def test_what_is_not_recorded_excludes_nobody(responses: Responses) -> None:
    columns = {
        name: values
        for name, values in responses.to_columns().items()
        if name not in {"duration", "finished", "checks_passed"}
    }
    kept = apply_exclusions(read_responses(columns), {"too_fast": 60, "unfinished": True})
    assert len(kept.people["participant"]) == 5


def test_the_share_answered_counts_whole_answers(responses: Responses) -> None:
    shares = dict(zip(responses.people["participant"], answered_share(responses), strict=True))
    assert shares["short"] == 0.25
    assert shares["good"] == 1.0


def test_everybody_may_be_left_out(responses: Responses) -> None:
    kept = apply_exclusions(responses, {"too_fast": 10_000})
    assert len(kept.person) == 0
    assert kept.to_columns()["participant"].size == 0
    assert np.asarray(kept.output()).size == 0


def test_wrong_rules_are_told(responses: Responses) -> None:
    with pytest.raises(ConfigError, match="did you mean 'failed_checks'"):
        apply_exclusions(responses, {"failed_check": 2})


def test_false_keeps_everybody() -> None:
    """TOML has no none."""
    assert Exclusions.parse({"failed_checks": False}, "[exclusions]").failed_checks is None
    with pytest.raises(ConfigError, match="`failed_checks`"):
        Exclusions.parse({"failed_checks": 0}, "[exclusions]")
    options = study_schema()["$defs"]["Exclusions"]["properties"]["failed_checks"]["anyOf"]
    assert {"const": False, "type": "boolean"} in options
