"""What people say about themselves: stored with them, counted for quotas however many come at once, gone with them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from evenhand.study.flow.design import Step
from evenhand.study.store import QuotaFull, Store, StudyFull, open_store

QUOTAS = {"kind": {"patient": 2, "surgeon": 1}, "sex": {"female": 2}}
CASE = Step(key="case:1", kind="case", item="1", position=1)


def test_a_quota_turns_away_and_others_still_come(store: Store, make_design: Any) -> None:
    study = store.register(make_design(kind="disagreement", quotas=QUOTAS))
    first = study.participants.enrol("a", about={"kind": "patient", "sex": "female"})
    study.participants.enrol("b", about={"kind": "patient", "sex": "male"})
    with pytest.raises(QuotaFull, match=r"has its 2 people whose kind is 'patient'\."):
        study.participants.enrol("c", about={"kind": "patient", "sex": "male"})
    assert study.participants.enrol("a", about={"kind": "patient", "sex": "female"}) == first, "who is in stays in"
    study.participants.enrol("d", about={"kind": "surgeon", "sex": "female"})
    with pytest.raises(QuotaFull, match="sex is 'female'"):
        study.participants.enrol("e", about={"kind": "donor", "sex": "female"})
    study.participants.enrol("f", about={"kind": "donor", "sex": "prefer not to say"})
    assert issubclass(QuotaFull, StudyFull)
    counts = {(one.question, one.answer): (one.taking_part, one.most) for one in study.results.counts().traits}
    assert counts[("kind", "patient")] == (2, 2)
    assert counts[("kind", "donor")] == (1, None)
    assert counts[("sex", "prefer not to say")] == (1, None)


def test_a_quota_of_none_takes_nobody(store: Store, make_design: Any) -> None:
    study = store.register(make_design(quotas={"kind": {"robot": 0}}))
    with pytest.raises(QuotaFull):
        study.participants.enrol("a", about={"kind": "robot"})
    assert study.results.counts().conditions[0].enrolled == 0


def test_no_more_than_the_quota_come_in_at_once_over_two_servers(
    store: Store, store_url: str, make_design: Any
) -> None:
    design = make_design(quotas={"kind": {"patient": 5, "surgeon": 3}})
    with open_store(store_url) as second_store:
        servers = [store.register(design), second_store.register(design)]

        def enrol(number: int) -> str | None:
            kind = "surgeon" if number % 3 == 0 else "patient"
            try:
                servers[number % 2].participants.enrol(f"key {number}", about={"kind": kind})
            except QuotaFull:
                return None
            return kind

        with ThreadPoolExecutor(10) as pool:
            admitted = Counter(pool.map(enrol, range(30)))
    assert admitted["patient"] == 5
    assert admitted["surgeon"] == 3


def test_who_leaves_makes_room(store: Store, make_design: Any, start: datetime) -> None:
    study = store.register(make_design(quotas={"kind": {"patient": 1}}, abandon_after=2.0))
    gone = study.participants.enrol("gone", about={"kind": "patient"}, now=start)
    with pytest.raises(QuotaFull):
        study.participants.enrol("new", about={"kind": "patient"}, now=start)
    study.participants.withdraw(gone, now=start)
    silent = study.participants.enrol("silent", about={"kind": "patient"}, now=start)
    later = start + timedelta(minutes=31)
    stays = study.participants.enrol("later", about={"kind": "patient"}, now=later)
    assert silent.place == stays.place
    study.answers.save(stays, CASE, 0, {}, revision=0, last=True, now=later)
    with pytest.raises(QuotaFull):
        study.participants.enrol("too late", about={"kind": "patient"}, now=start + timedelta(days=9))


def test_it_is_exported_with_the_answers_and_erased_with_them(store: Store, make_design: Any) -> None:
    study = store.register(make_design(kind="disagreement", quotas={"kind": {}, "age": {}}))
    person = study.participants.enrol("a", about={"kind": "donor", "age": "41"})
    other = study.participants.enrol("b")
    for one in (person, other):
        study.answers.save(one, CASE, 0, {"decision": "low", "answer": "agree"}, revision=0)
    assert [(one.question, one.answer) for one in study.results.counts().traits] == [
        ("kind", "donor"),
        ("age", "a number"),
    ]
    people = study.results.responses().people
    told = dict(zip(people["participant"], zip(people["kind"], people["age"], strict=True), strict=True))
    assert told == {person.code: ("donor", "41"), other.code: (None, None)}
    study.participants.withdraw(person)
    assert study.results.responses().people["kind"].tolist() == [None]
    assert [one.taking_part for one in study.results.counts().traits] == []


def test_a_quota_may_change_while_the_study_runs(store: Store, make_design: Any) -> None:
    study = store.register(make_design(quotas={"kind": {"patient": 1}}))
    study.participants.enrol("a", about={"kind": "patient"})
    study = store.register(make_design(quotas={"kind": {"patient": 2}}))
    study.participants.enrol("b", about={"kind": "patient"})
    with pytest.raises(QuotaFull):
        study.participants.enrol("c", about={"kind": "patient"})


def test_people_with_their_recruitment_ids(store: Store, make_design: Any) -> None:
    study = store.register(make_design())
    first, second = study.participants.enrol("a", recruitment_id="5f1"), study.participants.enrol("b")
    gone = study.participants.enrol("c", recruitment_id="5f3")
    study.participants.withdraw(gone)
    assert study.participants.recruits() == [("5f1", first.code), (None, second.code)]
