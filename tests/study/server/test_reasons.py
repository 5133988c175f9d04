"""The desk's pages for reasons: two raters, blind to each other; agreement, bonus, reasons entered by hand."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.study.flow.design import Design
from evenhand.study.settings import Bonus, Rationales
from evenhand.study.store import open_store

RATERS = ("ben", "cleo")


@pytest.fixture(scope="module")
def design(feedback_design: Design) -> Design:
    """A study whose raters rate the reason for each person's first case."""
    spec = feedback_design.spec
    payment = spec.payment.model_copy(update={"bonuses": (Bonus(by="reasons", amount=5, share=0.3),)})
    settings = {"rationales": Rationales(raters=RATERS, first=1), "payment": payment}
    return replace(feedback_design, spec=spec.model_copy(update=settings))


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory, design: Design, make: Any, password_hash: str) -> Path:
    """A database of three people who finished."""
    path = tmp_path_factory.mktemp("answered") / "study.db"
    with open_store(str(path)) as store:
        served = make(store, design)
        for name in RATERS:
            served.study.researchers.set_password(name, password_hash)
        for number in range(3):
            browser = served.browser()
            browser.begin(f"?PROLIFIC_PID=person{number}")
            browser.finish(reason=f"<b>reason</b> {number}")
    return path


@pytest.fixture
def rated(answered: Path, design: Design, serve_copy: Any) -> Any:
    """A study of which three people finished, with reasons for their first case."""
    return serve_copy(answered, design)


def rater(served: Any, name: str) -> Any:
    browser = served.browser("198.51.100.1")
    browser.login(name)
    return browser


def rate_all(browser: Any, choose: Any) -> list[str]:
    """Rate every reason that is shown; return the texts in the order in which they came."""
    seen = []
    page = browser.get("/researcher/reasons/rate")
    while page.status_code == 200:
        text = re.search(r'<blockquote class="said">(.*?)</blockquote>', page.text, re.S)
        assert text is not None
        seen.append(text[1])
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
        sent = browser.post("/researcher/reasons/rate", {**fields, "rating": choose(text[1])})
        page = browser.get(sent.headers["location"])
    assert page.headers["location"] == "/researcher/reasons?done=all"
    return seen


def test_only_the_raters_rate_and_only_researchers_look(rated: Any) -> None:
    assert rated.browser().get("/researcher/reasons").headers["location"] == "/researcher/login"
    assert rated.browser().get("/researcher/reasons/rate").headers["location"] == "/researcher/login"
    assert rated.browser().get("/researcher/reasons/ratings.csv").status_code == 401
    researcher = rated.researcher()
    assert "ben and cleo rate them" in researcher.get("/researcher/reasons").text
    assert researcher.get("/researcher/reasons/rate").headers["location"] == "/researcher/reasons"
    token = researcher.form("/researcher/reasons")["csrf"]
    reason = rater(rated, "ben").form("/researcher/reasons/rate")["reason"]
    sent = researcher.post("/researcher/reasons/rate", {"csrf": token, "reason": reason, "rating": "1"})
    assert sent.status_code == 403
    assert rated.study.ratings.all() == []


class TestARater:
    """Who is named in `raters` may rate, and nothing else: not end the study, not read what others answered."""

    @pytest.mark.parametrize("path", ["/researcher", "/researcher/reasons"])
    def test_sees_only_their_own_progress(self, rated: Any, path: str) -> None:
        rate_all(rater(rated, "cleo"), lambda _: "4")
        browser = rater(rated, "ben")
        shown = browser.get(path)
        page = shown if shown.status_code == 200 else browser.get(shown.headers["location"])
        assert "Rated by you</dt><dd>0</dd>" in page.text
        for hidden in ("cleo", "kappa", "ratings.csv", "bonus", "Close the study", "person0"):
            assert hidden not in page.text

    @pytest.mark.parametrize(
        "path",
        [*(f"export/{form}" for form in ("csv", "parquet", "json")), "bonus.csv", "reasons/ratings.csv"],
    )
    def test_exports_nothing(self, rated: Any, path: str) -> None:
        assert rater(rated, "ben").get(f"/researcher/{path}").status_code == 403
        assert rated.researcher().get(f"/researcher/{path}").status_code == 200

    def test_reads_no_numbers(self, rated: Any) -> None:
        assert rater(rated, "ben").get("/api/dashboard").status_code == 403
        assert rated.researcher().get("/api/dashboard").status_code == 200

    @pytest.mark.parametrize("action", ["close", "reopen", "withdraw", "erase", "reasons/enter"])
    def test_manages_nothing(self, rated: Any, action: str) -> None:
        browser, someone = rater(rated, "ben"), rated.study.participants.by_recruitment_id("person0")
        form = {"csrf": browser.form("/researcher/reasons/rate")["csrf"], "who": someone.code, "confirm": "yes"}
        before = len(rated.study.researchers.actions())
        assert browser.post(f"/researcher/{action}", {**form, "item": "1", "text": "x"}).status_code == 403
        assert not rated.study.closed
        assert rated.study.participants.by_recruitment_id("person0") == someone
        assert len(rated.study.researchers.actions()) == before


def test_two_raters_agreement_and_bonus(rated: Any) -> None:
    first, second, researcher = rater(rated, "ben"), rater(rated, "cleo"), rated.researcher()
    seen = rate_all(first, lambda text: {"0": "1", "1": "4", "2": "2"}[text[-1]])
    assert sorted(seen) == [f"&lt;b&gt;reason&lt;/b&gt; {n}" for n in range(3)], "one a person: the first case"
    page = researcher.get("/researcher/reasons").text
    assert "no reason was rated by both yet" in page
    assert "Not yet: 3 reasons are not rated by both raters yet, of 3." in page
    shown = second.get("/researcher/reasons/rate").text
    assert " checked" not in shown, "what the other gave is not shown"
    assert not any(f"person{n}" in shown for n in range(3))
    rate_all(second, lambda text: {"0": "2", "1": "4", "2": "2"}[text[-1]])
    page = researcher.get("/researcher/reasons").text
    assert re.search(r"Weighted kappa, quadratic.*?0\.8", page, re.S | re.I)
    paid = list(csv.DictReader(io.StringIO(researcher.get("/researcher/bonus.csv").text)))
    assert [(row["recruitment_id"], row["amount"], row["reason"]) for row in paid] == [("person1", "5", "reasons")]
    rows = list(csv.DictReader(io.StringIO(researcher.get("/researcher/reasons/ratings.csv").text)))
    assert len(rows) == 6
    assert {row["rater"] for row in rows} == set(RATERS)
    assert "person" not in researcher.get("/researcher/reasons/ratings.csv").text


def test_a_rating_can_be_changed_skipped_or_be_a_reason_to_leave_out(rated: Any) -> None:
    browser = rater(rated, "ben")
    page = browser.get("/researcher/reasons/rate").text
    skipped = re.search(r"rate\?after=(\w+)", page)
    assert skipped is not None
    assert browser.form(f"/researcher/reasons/rate?after={skipped[1]}")["reason"] != skipped[1]
    fields = browser.form("/researcher/reasons/rate")
    for given, score, why in (("3", 3, None), ("out:1", None, "vague"), ("1", 1, None)):
        browser.post("/researcher/reasons/rate", {**fields, "rating": given})
        assert [(one.score, one.left_out) for one in rated.study.ratings.all()] == [(score, why)]
    again = browser.get(f"/researcher/reasons/rate?change={fields['reason']}").text
    assert re.search(r'value="1" checked', again)


@pytest.mark.parametrize("given", ["", "0", "9", "out:9", "out:", "1e0", "<script>"])
def test_what_is_no_rating_is_asked_for_again(rated: Any, given: str) -> None:
    browser = rater(rated, "ben")
    fields = browser.form("/researcher/reasons/rate")
    sent = browser.post("/researcher/reasons/rate", {**fields, "rating": given})
    assert "Please choose one of the answers." in browser.get(sent.headers["location"]).text
    assert rated.study.ratings.all() == []


def test_a_reason_entered_at_the_desk_is_rated_and_logged(rated: Any) -> None:
    browser = rated.browser()
    browser.begin("?PROLIFIC_PID=spoken")
    browser.finish()
    code = rated.study.participants.by_recruitment_id("spoken").code
    responses = rated.study.results.responses()
    mine = responses.people["participant"][responses.person] == code
    item = responses.answers["item"][mine & (responses.numbers("position") == 1)][0]
    desk = rated.researcher()
    form = {"csrf": desk.form("/researcher/reasons")["csrf"], "who": code, "item": item, "text": "said <aloud>"}
    assert desk.post("/researcher/reasons/enter", form).headers["location"].endswith("done=entered")
    assert desk.post("/researcher/reasons/enter", form).headers["location"].endswith("done=not_entered")
    assert desk.post("/researcher/reasons/enter", {**form, "text": " "}).headers["location"].endswith("done=too_long")
    assert "Reasons to rate</dt><dd>4</dd>" in desk.get("/researcher/reasons").text
    assert f"entered a reason: {code}, case:{item}" in desk.get("/researcher").text
    assert "said &lt;aloud&gt;" in "".join(rate_all(rater(rated, "ben"), lambda _: "2"))


def test_a_study_without_raters_says_so(feedback: Any) -> None:
    page = feedback.researcher().get("/researcher/reasons").text
    assert "Nobody rates the reasons of this study." in page
    assert "This study pays none." in page
