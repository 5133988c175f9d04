"""Clocks that are set while people answer: times are those of a clock that nobody can set, or are marked."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from evenhand.study.flow.design import Step
from evenhand.study.store import Study, answers, records

PAYLOAD = {"trajectory": 1, "aggregate": 3, "overall": 2}
Wait = Callable[..., None]


def pair(number: int) -> Step:
    return Step(key=f"pair:{number}/A", kind="pair", item=str(number), subject="A", position=number)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Let seconds pass; the clock on the wall may be set by some more meanwhile."""
    wall, steady = time.time(), 1_000.0
    monkeypatch.setattr(time, "time", lambda: wall)
    monkeypatch.setattr(records, "steady_of", lambda now: steady)
    monkeypatch.setattr(answers, "steady_of", lambda now: steady)

    def pass_by(seconds: float, ahead: float = 0.0) -> None:
        nonlocal wall, steady
        wall, steady = wall + seconds + ahead, steady + seconds

    return pass_by


def seconds_of(study: Study) -> list[float]:
    return [float(value) for value in study.results.responses().answers["seconds"]]


@pytest.mark.parametrize("ahead", [7200.0, -7200.0, 90.0])
def test_a_clock_that_is_set_changes_no_time(study: Study, wait: Wait, ahead: float) -> None:
    person = study.participants.enrol("key")
    for number, jump in enumerate((0.0, ahead, 0.0)):
        wait(10.0, jump)
        now = study.participants.by_token(person.token)
        assert now is not None
        assert study.answers.page(now, pair(number + 1).key) == (None, None)
        study.answers.save(now, pair(number + 1), number, PAYLOAD, revision=0, last=number == 2)
    people = study.results.responses().people
    assert seconds_of(study) == [10.0, 10.0, 10.0]
    assert people["duration"].tolist() == [30.0]
    assert "duration_clock" not in people


def test_who_was_away_is_known_although_the_clock_was_set_back(study: Study, wait: Wait) -> None:
    person = study.participants.enrol("key")
    wait(answers.AWAY_SECONDS + 60.0, -7200.0)
    study.answers.save(person, pair(1), 0, PAYLOAD, revision=0)
    assert np.isnan(seconds_of(study)).all()


def test_times_of_another_machine_are_marked(study: Study, wait: Wait, monkeypatch: pytest.MonkeyPatch) -> None:
    person = study.participants.enrol("key")
    study.participants.enrol("somebody who never answers")
    monkeypatch.setattr(answers, "CLOCK", "another start of the machine")
    monkeypatch.setattr(records, "CLOCK", "another start of the machine")
    wait(10.0)
    study.answers.save(person, pair(1), 0, PAYLOAD, revision=0)
    wait(10.0, 500.0)
    again = study.participants.by_token(person.token)
    assert again is not None
    study.answers.save(again, pair(2), 1, PAYLOAD, revision=0, last=True)
    people = study.results.responses().people
    assert seconds_of(study) == [10.0, 10.0]
    of_person = people["participant"] == person.code
    assert people["duration_clock"][of_person].tolist() == ["wall"]
    assert people["duration_clock"][~of_person].tolist() == [None]
    assert people["duration"][of_person].tolist() == [520.0]


def test_a_time_that_seems_to_run_backwards_is_missing(
    study: Study, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = study.participants.enrol("key")
    monkeypatch.setattr(records, "CLOCK", "another start of the machine")
    wait(10.0, -60.0)
    study.answers.save(person, pair(1), 0, PAYLOAD, revision=0, last=True)
    assert np.isnan(seconds_of(study)).all()
    assert np.isnan(study.results.responses().people["duration"]).all()


def test_the_clock_outlives_a_process() -> None:
    """The clock has one name until the machine is started anew, where the system tells it."""
    assert records._clock_name() == records.CLOCK or records._STEADY is None
    assert records.steady_of(None) <= records.steady_of(None)
