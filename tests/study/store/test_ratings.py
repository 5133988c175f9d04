"""Ratings in the database: one for each rater and reason, only of people who finished, gone with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from evenhand.study.flow.design import Step
from evenhand.study.ratings import Rating
from evenhand.study.store import Participant, Study

PAIR = Step(key="pair:1/A", kind="pair", item="1", subject="A", position=1)
PAYLOAD = {"trajectory": 1, "aggregate": 3, "overall": 2}


@pytest.fixture
def done(study: Study) -> Participant:
    person = study.participants.enrol("done")
    study.answers.save(person, PAIR, 0, {**PAYLOAD, "reason": "the trend"}, revision=0, last=True)
    return person


def test_each_rater_has_one_rating_of_a_reason(study: Study, done: Participant) -> None:
    for rater, score in (("ann", 1), ("ann", 4), ("ben", 2)):
        assert study.ratings.rate(Rating(done.code, PAIR.key, rater, score))
    assert study.ratings.rate(Rating(done.code, PAIR.key, "ben", None, "vague"))
    assert study.ratings.all() == [
        Rating(done.code, PAIR.key, "ann", 4),
        Rating(done.code, PAIR.key, "ben", None, "vague"),
    ]


def test_only_reasons_of_people_who_finished_are_rated(study: Study, done: Participant) -> None:
    going = study.participants.enrol("going")
    study.answers.save(going, PAIR, 0, {**PAYLOAD, "reason": "the trend"}, revision=0)
    silent = study.participants.enrol("silent")
    study.answers.save(silent, PAIR, 0, {**PAYLOAD, "reason": None}, revision=0, last=True)
    for code, step in ((going.code, PAIR.key), (silent.code, PAIR.key), (done.code, "pair:9/A"), ("nobody", PAIR.key)):
        assert not study.ratings.rate(Rating(code, step, "ann", 1)), (code, step)
    assert study.ratings.all() == []


def test_ratings_at_the_same_moment_are_one(study: Study, done: Participant) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: study.ratings.rate(Rating(done.code, PAIR.key, "ann", n % 4 + 1)), range(16)))
    assert len(study.ratings.all()) == 1


def test_who_withdraws_takes_the_ratings_along(study: Study, done: Participant) -> None:
    study.ratings.rate(Rating(done.code, PAIR.key, "ann", 1))
    study.participants.withdraw(done)
    assert study.ratings.all() == []
    assert not study.ratings.rate(Rating(done.code, PAIR.key, "ann", 1))


def test_a_reason_is_entered_only_where_there_is_none(study: Study, done: Participant) -> None:
    silent = study.participants.enrol("silent")
    study.answers.save(silent, PAIR, 0, {**PAYLOAD, "reason": None}, revision=0, last=True)
    before = study.results.version()
    assert study.ratings.enter(silent.code, PAIR.key, "said aloud")
    assert study.results.version() != before
    assert not study.ratings.enter(silent.code, PAIR.key, "something else")
    assert not study.ratings.enter(done.code, PAIR.key, "another reason")
    assert not study.ratings.enter("nobody", PAIR.key, "x")
    reasons = dict(zip(study.results.responses().person, study.results.responses().answers["reason"], strict=True))
    assert sorted(reasons.values()) == ["said aloud", "the trend"]
