"""Who is speaking: asked after the consent, stored with the answers, turned away politely beyond a quota."""

from __future__ import annotations

from typing import Any

import pytest

TOLD = {"kind": "donor", "age": "41", "consent": "yes"}


@pytest.fixture
def arrived(critics: Any) -> Any:
    """A browser of somebody who agreed to take part and is asked about themselves."""
    browser = critics.browser()
    assert browser.begin("?PROLIFIC_PID=5f1").headers["location"] == "/about"
    return browser


def enrolled(critics: Any) -> int:
    return sum(one.enrolled for one in critics.study.results.counts().conditions)


def test_nobody_is_enrolled_before_they_have_answered(critics: Any, arrived: Any) -> None:
    assert enrolled(critics) == 0
    page = arrived.get("/about").text
    assert "judge &lt;differently&gt;" in page
    assert page.count("I prefer not to say") == 2
    assert arrived.get("/step/0").headers["location"] == "/consent"
    assert arrived.tell(**TOLD).headers["location"] == "/step/0"
    assert enrolled(critics) == 1
    assert arrived.get("/about").headers["location"] == "/step/0"


def test_what_lacks_is_said_and_what_was_given_is_kept(critics: Any, arrived: Any) -> None:
    page = arrived.tell(kind="patient", age="7")
    assert page.status_code == 422
    assert 'href="#about_age">How old are you? Please give a whole number from 18 to 99.</a>' in page.text
    assert 'value="patient" id="about_kind" checked' in page.text
    assert 'value="7"' in page.text
    unticked = arrived.tell(kind="patient", age="41")
    assert unticked.status_code == 422
    assert "Please tick the box" in unticked.text
    assert enrolled(critics) == 0


def test_it_is_exported_with_every_answer_of_the_person(critics: Any, arrived: Any) -> None:
    arrived.tell(**TOLD)
    arrived.finish()
    silent = critics.browser()
    silent.begin()
    silent.tell(kind="prefer not to say", age="", age_unsaid="yes")
    silent.finish()
    people = critics.study.results.responses().people
    assert {(kind, age) for kind, age in zip(people["kind"], people["age"], strict=True)} == {
        ("donor", "41"),
        ("prefer not to say", "prefer not to say"),
    }
    export = critics.researcher().get("/researcher/export/csv").text
    assert {"kind", "age"} <= set(export.splitlines()[0].split(","))
    page = critics.researcher().get("/researcher").text
    assert "Who takes part" in page
    assert critics.app.state.dashboard.state().counts.traits[-1].question == "age"


def test_beyond_a_quota_there_is_a_polite_page_and_nothing_is_stored(critics: Any, arrived: Any) -> None:
    surgeon = {"kind": "surgeon", "age": "50", "consent": "yes"}
    assert arrived.tell(**surgeon).headers["location"] == "/step/0"
    second = critics.browser()
    second.begin("?PROLIFIC_PID=5f2")
    assert second.tell(**surgeon).headers["location"] == "/study/quota"
    page = second.get("/study/quota").text
    assert "Enough people who answered as you did have taken part already. Thank you for your interest" in page
    assert 'href="https://recruiter.example/screened"' in page
    assert enrolled(critics) == 1
    assert second.tell(**TOLD).headers["location"] == "/study/quota", "other answers are not taken after that"
    person = critics.study.participants.by_recruitment_id("5f1")
    critics.study.participants.withdraw(person)
    assert second.tell(**surgeon).headers["location"] == "/step/0", "the same ones are, once there is room"


def test_without_having_agreed_nothing_is_asked(critics: Any) -> None:
    browser = critics.browser()
    browser.get("/")
    form = browser.form("/consent")
    assert browser.get("/about").headers["location"] == "/consent"
    told = {f"about_{name}": value for name, value in TOLD.items()}
    assert browser.post("/about", {**form, **told}).headers["location"] == "/consent"
    assert critics.browser().get("/about").headers["location"] == "/consent"
    assert enrolled(critics) == 0


def test_a_closed_study_asks_nobody(critics: Any, arrived: Any) -> None:
    critics.study.close()
    assert arrived.get("/about").headers["location"] == "/study/closed"


def test_a_form_without_its_token_enrols_nobody(critics: Any, arrived: Any) -> None:
    told = {f"about_{name}": value for name, value in TOLD.items()}
    assert arrived.post("/about", told).status_code == 403
    assert enrolled(critics) == 0


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "'; DROP TABLE traits; --", "x" * 5_000])
def test_hostile_answers_come_back_escaped(arrived: Any, hostile: str) -> None:
    page = arrived.tell(kind=hostile, age=hostile)
    assert page.status_code == 422
    assert "<script>alert" not in page.text


def test_a_study_without_questions_goes_straight_on(feedback: Any) -> None:
    assert feedback.browser().begin().headers["location"] == "/step/0"


def test_virtual_respondents_say_something_about_themselves(critics: Any) -> None:
    import numpy as np

    from evenhand.study.bots.browser import read_page
    from evenhand.study.bots.simulation import Answerer, AnswerModel

    for number in range(5):
        browser = critics.browser(f"203.0.113.{number}")
        browser.begin()
        page = browser.get("/about")
        read = read_page("/about", 200, page.text)
        assert read.form is not None
        filled = Answerer(AnswerModel(), np.random.default_rng(number)).fill(read, read.form)
        sent = browser.post("/about", {name: values[-1] for name, values in filled.items()})
        assert sent.headers["location"] in ("/step/0", "/study/quota")
