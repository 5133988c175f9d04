"""Answers: saved once however often they are sent, never lost, never doubled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from evenhand.study.flow.design import Step
from evenhand.study.store import Participant, Study

FIRST = Step(key="pair:1/A", kind="pair", item="1", subject="A", position=1)
SECOND = Step(key="pair:1/B", kind="pair", item="1", subject="B", position=1)
CHECK = Step(key="check:1", kind="check", check=1)


def payload(overall: int = 2, **more: Any) -> dict[str, Any]:
    return {"trajectory": 1, "aggregate": 3, "overall": overall, **more}


@pytest.fixture
def person(study: Study, start: datetime) -> Participant:
    return study.participants.enrol("key", now=start)


def again(study: Study, person: Participant) -> Participant:
    found = study.participants.by_token(person.token)
    assert found is not None
    return found


def test_an_answer_moves_the_person_on_and_takes_the_time(study: Study, person: Participant, start: datetime) -> None:
    saved = study.answers.save(person, FIRST, 0, payload(), revision=0, now=start + timedelta(seconds=12.5))
    assert (saved.status, saved.revision, saved.reached) == ("saved", 1, 1)
    moved = again(study, person)
    assert moved.reached == 1
    assert moved.since == moved.seen_at == start + timedelta(seconds=12.5)
    assert study.results.responses().numbers("seconds").tolist() == [12.5]
    stored = study.answers.get(person, FIRST.key)
    assert stored is not None
    assert (stored.payload, stored.revision) == (payload(), 1)


def test_the_same_answer_twice_is_one(study: Study, person: Participant, start: datetime) -> None:
    first = study.answers.save(person, FIRST, 0, payload(), revision=0, now=start)
    for revision in (0, 1):
        repeated = study.answers.save(person, FIRST, 0, payload(), revision=revision, now=start + timedelta(minutes=5))
        assert (repeated.status, repeated.revision, repeated.reached) == ("repeated", first.revision, 1)
    assert again(study, person).since == start, "a repeated answer must not start the time of the next page anew"


def test_going_back_changes_an_answer_but_not_its_time(study: Study, person: Participant, start: datetime) -> None:
    study.answers.save(person, FIRST, 0, payload(), revision=0, now=start + timedelta(seconds=3))
    changed = study.answers.save(person, FIRST, 0, payload(5), revision=1, now=start + timedelta(seconds=99))
    assert (changed.status, changed.revision, changed.reached) == ("saved", 2, 1)
    responses = study.results.responses()
    assert responses.numbers("overall").tolist() == [5.0]
    assert responses.numbers("seconds").tolist() == [3.0]


def test_another_answer_on_an_old_form_is_stale(study: Study, person: Participant) -> None:
    study.answers.save(person, FIRST, 0, payload(2), revision=0)
    study.answers.save(person, FIRST, 0, payload(3), revision=1)
    for revision in (0, 1, 7):
        stale = study.answers.save(person, FIRST, 0, payload(4), revision=revision)
        assert (stale.status, stale.revision) == ("stale", 2)
    replayed = study.answers.save(person, FIRST, 0, payload(2), revision=0)
    assert replayed.status == "stale", "the first form sent again must not undo the change"
    stored = study.answers.get(person, FIRST.key)
    assert stored is not None
    assert stored.payload == payload(3)


def test_nobody_skips_a_step(study: Study, person: Participant) -> None:
    early = study.answers.save(person, SECOND, 1, payload(), revision=0)
    assert (early.status, early.revision, early.reached) == ("too_early", 0, 0)
    assert study.answers.get(person, SECOND.key) is None
    assert again(study, person).reached == 0


def test_an_attention_check_cannot_be_mended(study: Study, person: Participant) -> None:
    study.answers.save(person, CHECK, 0, {"choice": "red", "passed": 0}, revision=0)
    assert study.answers.save(person, CHECK, 0, {"choice": "blue", "passed": 1}, revision=1).status == "locked"
    assert study.answers.save(person, CHECK, 0, {"choice": "red", "passed": 0}, revision=0).status == "repeated"
    assert study.results.responses().people["checks_passed"].tolist() == [0.0]


def test_the_end_locks_all_answers(study: Study, person: Participant, start: datetime) -> None:
    end = start + timedelta(minutes=20)
    assert study.answers.save(person, FIRST, 0, payload(), revision=0, last=True, now=end).status == "saved"
    done = again(study, person)
    assert done.finished_at == end
    assert study.answers.save(done, FIRST, 0, payload(6), revision=1).status == "locked"
    assert study.answers.save(done, FIRST, 0, payload(), revision=0, last=True).status == "repeated"
    assert study.answers.save(done, SECOND, 1, payload(), revision=0).status == "locked"
    assert study.results.responses().people["duration"].tolist() == [1200.0]


def test_clicks_at_the_same_moment_give_one_answer(study: Study, person: Participant) -> None:
    with ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda _: study.answers.save(person, FIRST, 0, payload(), revision=0), range(24)))
    assert sorted(one.status for one in saved) == ["repeated"] * 23 + ["saved"]
    assert {one.revision for one in saved} == {1}
    assert again(study, person).reached == 1


def test_different_answers_at_the_same_moment_leave_the_acknowledged_one(study: Study, person: Participant) -> None:
    with ThreadPoolExecutor(6) as pool:
        saved = list(pool.map(lambda n: study.answers.save(person, FIRST, 0, payload(n), revision=0), range(1, 7)))
    assert sorted(one.status for one in saved) == ["saved"] + ["stale"] * 5
    winner = next(number for number, one in enumerate(saved, 1) if one.status == "saved")
    stored = study.answers.get(person, FIRST.key)
    assert stored is not None
    assert stored.payload["overall"] == winner


def test_changes_at_the_same_moment_leave_the_acknowledged_one(study: Study, person: Participant) -> None:
    study.answers.save(person, FIRST, 0, payload(6), revision=0)
    with ThreadPoolExecutor(5) as pool:
        saved = list(pool.map(lambda n: study.answers.save(person, FIRST, 0, payload(n), revision=1), range(1, 6)))
    assert sorted(one.status for one in saved) == ["saved"] + ["stale"] * 4
    winner = next(number for number, one in enumerate(saved, 1) if one.status == "saved")
    stored = study.answers.get(person, FIRST.key)
    assert stored is not None
    assert (stored.payload["overall"], stored.revision) == (winner, 2)


def test_an_answer_and_a_withdrawal_at_the_same_moment(study: Study) -> None:
    people = [study.participants.enrol(f"key {number}") for number in range(12)]

    def act(number: int) -> str:
        person = people[number // 2]
        if number % 2:
            return str(study.participants.withdraw(person))
        return study.answers.save(person, FIRST, 0, payload(), revision=0).status

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(act, range(24)))
    assert set(done) <= {"True", "saved", "locked"}
    assert [study.answers.get(person, FIRST.key) for person in people] == [None] * 12


def test_time_starts_anew_for_who_was_away(study: Study, person: Participant, start: datetime) -> None:
    study.answers.page(person, FIRST.key, now=start + timedelta(minutes=29))
    assert again(study, person).since == start
    back = start + timedelta(hours=5)
    assert study.answers.page(person, FIRST.key, now=back) == (None, None)
    returned = again(study, person)
    assert returned.since == returned.seen_at == back
    study.answers.save(returned, FIRST, 0, payload(), revision=0, now=back + timedelta(seconds=4))
    assert study.results.responses().numbers("seconds").tolist() == [4.0]


def seconds_of_all(study: Study) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in study.results.responses().numbers("seconds")]


def test_an_answer_that_is_the_first_sign_of_life_has_no_time(
    study: Study, person: Participant, start: datetime
) -> None:
    """The page lay open for five hours: nobody knows how long of them was spent on it."""
    late = start + timedelta(hours=5)
    assert study.answers.save(person, FIRST, 0, payload(), revision=0, now=late).status == "saved"
    moved = again(study, person)
    study.answers.save(moved, SECOND, 1, payload(), revision=0, now=late + timedelta(seconds=7))
    assert sorted(seconds_of_all(study), key=str) == [7.0, None]
    first, second = study.results.counts(now=late).pages[:2]
    assert first.times is None
    assert second.times is not None


def test_a_draft_after_a_break_starts_the_time_anew(study: Study, person: Participant, start: datetime) -> None:
    back = start + timedelta(hours=5)
    assert study.answers.save_draft(person, FIRST.key, {"overall": "2"}, now=back)
    returned = again(study, person)
    assert returned.since == returned.seen_at == back
    study.answers.save(returned, FIRST, 0, payload(), revision=0, now=back + timedelta(seconds=4))
    assert seconds_of_all(study) == [4.0]


def test_changing_an_answer_after_a_break_starts_the_time_anew(
    study: Study, person: Participant, start: datetime
) -> None:
    study.answers.save(person, FIRST, 0, payload(), revision=0, now=start + timedelta(seconds=3))
    back = start + timedelta(hours=5)
    study.answers.save(again(study, person), FIRST, 0, payload(5), revision=1, now=back)
    study.answers.save(again(study, person), SECOND, 1, payload(), revision=0, now=back + timedelta(seconds=4))
    assert sorted(study.results.responses().numbers("seconds").tolist()) == [3.0, 4.0]


def test_a_draft_lasts_until_its_answer(study: Study, person: Participant, start: datetime) -> None:
    assert study.answers.save_draft(
        person, FIRST.key, {"reason": "the tr", "overall": "2"}, now=start + timedelta(minutes=20)
    )
    assert study.answers.save_draft(person, SECOND.key, {"reason": "other"})
    assert study.answers.save_draft(person, FIRST.key, {"reason": "the trend"})
    assert study.answers.page(person, FIRST.key) == (None, {"reason": "the trend"})
    study.answers.save(person, FIRST, 0, payload(), revision=0)
    answer, draft = study.answers.page(person, FIRST.key)
    assert answer is not None
    assert (answer.payload, draft) == (payload(), None)
    assert study.answers.page(person, SECOND.key) == (None, {"reason": "other"})


def test_a_draft_is_a_sign_of_life(study: Study, person: Participant, start: datetime) -> None:
    study.answers.save_draft(person, FIRST.key, {"reason": "a"}, now=start + timedelta(minutes=25))
    seen = again(study, person)
    assert (seen.since, seen.seen_at) == (start, start + timedelta(minutes=25))
    study.answers.page(seen, FIRST.key, now=start + timedelta(minutes=50))
    assert again(study, person).since == start


def test_a_late_draft_hides_no_answer(study: Study, person: Participant) -> None:
    study.answers.save(person, FIRST, 0, payload(), revision=0)
    assert not study.answers.save_draft(person, FIRST.key, {"reason": "late"}, revision=0)
    assert study.answers.page(person, FIRST.key)[1] is None
    assert study.answers.save_draft(person, FIRST.key, {"reason": "changing it"}, revision=1)


def test_drafts_that_are_not_kept(study: Study, person: Participant) -> None:
    assert study.answers.save_draft(person, FIRST.key, {"reason": "x" * 8_000})
    assert not study.answers.save_draft(person, FIRST.key, {"reason": "x" * 33_000})
    study.answers.save(person, FIRST, 0, payload(), revision=0, last=True)
    assert not study.answers.save_draft(person, SECOND.key, {"reason": "x"})


def test_a_person_of_another_study_is_not_found(study: Study, person: Participant, make_design: Any) -> None:
    from evenhand.study.store import Store

    other = Store(study._database).register(make_design(name="other"))
    assert other.participants.by_token(person.token) is None
    assert not other.participants.withdraw(person.code)
    assert other.results.responses().people["participant"].size == 0
