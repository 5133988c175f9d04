"""The pages of a participant over HTTP, as a browser without JavaScript sends and gets them."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

import evenhand as eh
from evenhand.study.flow.design import Design, load_design
from evenhand.study.flow.language import LANGUAGES, words_in
from evenhand.study.server.app import create_app
from evenhand.study.store import Study, open_store
from evenhand.study.template import study_template

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"
PAIR: dict[str, Any] = {
    "trajectory": "1",
    "aggregate": "6",
    "overall": "2",
    "factors": ["trajectory", "other"],
    "factor_text": "the neighbourhood",
    "predicted": "40",
    "risk": "12,5",
    "reason": "They move alike.\r\nMostly.",
}
ONE_SET = {"sets_per_person = 3": "sets_per_person = 1", "after = 2": "after = 1", "after = 3": "after = 1"}
CHECKS = {"Blue": "Blue", "Chair": "Chair", "Seven": "Seven"}


class Visitor:
    """A browser without JavaScript: follows redirects, keeps cookies, sends the form of the page it is on."""

    def __init__(self, app: Any, **headers: str) -> None:
        transport = httpx.ASGITransport(app=app)
        self._client = httpx.AsyncClient(
            transport=transport, base_url="http://study.test", follow_redirects=True, headers=headers
        )
        self._runner = asyncio.Runner()
        self.page: httpx.Response

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, address: str) -> str:
        self.page = self._runner.run(self._client.get(address))
        return self.page.text

    def send(self, fields: dict[str, Any] | None = None, to: str | None = None, **changes: str) -> str:
        """Send the form of this page with fields filled in."""
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self.page.text))
        action = to or re.findall(r'<form method="post" action="([^"]+)"', self.page.text)[0]
        self.page = self._runner.run(self._client.post(action, data={**hidden, **(fields or {}), **changes}))
        return self.page.text

    def put_draft(self, index: int, fields: dict[str, Any]) -> httpx.Response:
        token = re.findall(r'name="csrf" value="([^"]*)"', self.page.text)[0]
        asked = self._client.put(f"/api/draft/{index}", json={"fields": fields}, headers={"X-CSRF-Token": token})
        return self._runner.run(asked)

    def start(self, address: str = "/") -> str:
        self.get(address)
        return self.send(agree="yes")

    def answer(self, **changes: Any) -> str:
        """Answer whatever the page asks."""
        if 'name="trajectory"' in self.page.text:
            return self.send(PAIR | changes)
        if 'name="answer"' in self.page.text:
            return self.send({"answer": "agree", **changes})
        if 'name="choice"' in self.page.text:
            right = next(word for word in CHECKS if f'value="{word}"' in self.page.text)
            return self.send({"choice": changes.get("choice", right)})
        return self.send()

    def walk(self, until: str = "/done") -> str:
        for _ in range(60):
            if self.page.url.path == until:
                return self.page.text
            self.answer()
        raise AssertionError(f"never reached {until}; at {self.page.url}")

    @property
    def heading(self) -> str:
        return html.unescape(re.findall(r"<h1>(.*?)</h1>", self.page.text)[0])

    @property
    def place(self) -> str:
        return str(self.page.url.raw_path.decode())


@pytest.fixture(scope="module")
def sets() -> eh.study.Instrument:
    households = eh.datasets.make_households(1_500, seed=1)
    table = eh.Table(households, id="household", groups="race", predictions={"m": "risk_logistic"})
    return eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=3, step=100)


Make = Callable[..., tuple[Any, Study, Design]]


@pytest.fixture
def make(tmp_path: Path, sets: eh.study.Instrument) -> Iterator[Make]:
    """Return a function that makes a small study of either kind, with parts of its text replaced."""
    opened = []

    def made(
        kind: str = "effort", rows: str | None = None, accept: bool = False, **changes: str
    ) -> tuple[Any, Study, Design]:
        text = study_template(kind)  # type: ignore[arg-type]
        few = ONE_SET if kind == "effort" else {"= 50": "= 4", "= 20": "= 2"}
        for old, new in (few | changes).items():
            assert old in text, old
            text = text.replace(old, new)
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        for name in ("income", "arrests"):
            sets.save(tmp_path / f"{name}.json")
        lines = rows or "\n".join(
            f"{i},{('low', 'high')[i % 2]},{'ab'[i % 3 == 0]},{20 + i},x,{i % 4}" for i in range(9)
        )
        (tmp_path / "cases.csv").write_text(f"case,label,race,age,charge,priors\n{lines}\n", encoding="utf-8")
        design = load_design(eh.study.read_study(tmp_path / "study.toml"))
        opened.append(open_store(str(tmp_path / "study.db")))
        study = opened[-1].register(design, accept=accept)
        return create_app(design, study, rate=1e9), study, design

    yield made
    for store in opened:
        store.close()


def rows_of(study: Study) -> list[dict[str, Any]]:
    columns = study.results.responses().to_columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_whole_effort_study_is_stored_once_and_right(make: Make) -> None:
    app, study, design = make()
    with Visitor(app) as anna:
        anna.start("/?PROLIFIC_PID=anna")
        anna.walk()
        assert anna.heading == "Thank you"
        assert study.completion_code in anna.page.text
    rows = rows_of(study)
    assert sorted(row["subject"] for row in rows) == ["A", "B", "C", "D"]
    for row in rows:
        assert (row["trajectory"], row["aggregate"], row["overall"]) == (1, 6, 2)
        assert (row["factor_trajectory"], row["factor_aggregate"], row["factor_other"]) == (1, 0, 1)
        assert row["factor_text"] == "the neighbourhood"
        assert (row["predicted"], row["risk"]) == (0.4, 0.125)
        assert row["reason"] == "They move alike.\nMostly."
        shown = design.set_of(row["condition"], row["item"])
        assert row["risk_reference"] == shown.subjects[0].score
        assert (row["finished"], row["checks_passed"], row["checks_total"]) == (1, 3, 3)


def test_a_whole_feedback_study_is_stored_once_and_right(make: Make) -> None:
    app, study, design = make("disagreement", **{'"disagree"]  ': '"disagree", "too_high", "too_low"]'})
    with Visitor(app) as anna:
        anna.start()
        while anna.page.url.path != "/done":
            high = "<strong>high</strong>" in anna.page.text
            answers = re.findall(r'name="answer" value="(\w+)"', anna.page.text)
            assert answers in ([], ["agree", "disagree", "too_high" if high else "too_low"])
            anna.answer(answer="too_high" if high else "disagree", reason=HOSTILE)
    rows = rows_of(study)
    assert [row["item"] for row in sorted(rows, key=lambda row: row["position"])] == list(design.critics[0])
    for row in rows:
        assert row["decision"] == ("high" if int(row["item"]) % 2 else "low")
        assert row["answer"] == ("too_high" if row["decision"] == "high" else "disagree")
        assert row["reason"] == HOSTILE


def test_an_empty_form_stores_nothing_and_says_what_is_missing(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        page = anna.send({"overall": "3", "reason": "Half done"})
        assert anna.place == "/step/0?missing=1"
        summary = page[page.index('class="errors"') : page.index("<h1>")]
        assert re.findall(r'href="#(\w+)"', summary) == ["trajectory", "aggregate", "factors", "predicted", "risk"]
        for name in ("trajectory", "aggregate", "factors", "predicted", "risk"):
            assert f'id="{name}"' in page
            assert f'id="{name}-error"' in page
            assert f'aria-describedby="{name}-error"' in page
        assert 'id="overall-error"' not in page
        assert page.startswith("<!doctype html>")
        assert "<title>Something is missing: " in page
        assert re.search(r'value="3"[^>]*checked', page)
        assert "Half done</textarea>" in page
        assert rows_of(study) == [] or rows_of(study)[0]["item"] is None
        assert 'class="errors"' not in anna.get("/step/0")
        assert "Half done</textarea>" in anna.page.text
        anna.answer()
        assert anna.place == "/step/1"


def test_a_slider_nobody_touched_is_no_answer(make: Make) -> None:
    app, _, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        page = anna.start()
        assert re.findall(r'<input type="range"[^>]*name=', page) == []
        assert re.findall(r'name="(?:predicted|risk)" value="([^"]*)"', page) == ["", ""]
        anna.answer(predicted="", risk="")
        assert anna.place == "/step/0?missing=1"
        anna.answer(predicted="0", risk="100 %")
        assert anna.place == "/step/1"


def test_what_was_begun_is_there_after_a_reload(make: Make) -> None:
    app, _, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        draft = {"overall": ["2"], "factors": ["aggregate"], "risk": ["7"], "reason": [HOSTILE], "revision": ["0"]}
        assert anna.put_draft(0, draft).json() == {"kept": True}
        page = anna.get("/step/0")
        assert re.search(r'name="overall" value="2"[^>]* checked', page)
        assert re.search(r'name="factors" value="aggregate"[^>]* checked', page)
        assert 'name="risk" value="7"' in page
        assert html.escape(HOSTILE, quote=False).replace('"', "&#34;").replace("'", "&#39;") in page
        assert anna.put_draft(0, {"reason": [], "overall": []}).status_code == 200
        assert anna.get("/step/0").count("checked") == 0


def test_texts_too_long_for_a_draft_are_not_lost_either(make: Make) -> None:
    app, _, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        long = "я" * 1_999
        page = anna.send({"reason": long})
        assert long in page
        assert 'class="errors"' in page
        assert anna.page.status_code == (200 if "missing" in anna.place else 422)


def test_going_back_shows_what_is_stored_and_changes_it(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        anna.answer()
        assert 'href="/step/0">Back' in anna.page.text
        page = anna.get("/step/0")
        assert re.search(r'name="aggregate" value="6"[^>]* checked', page)
        assert 'name="risk" value="12.5"' in page
        assert "They move alike.\nMostly.</textarea>" in page
        assert 'name="revision" value="1"' in page
        anna.answer(aggregate="5")
        assert anna.place == "/step/1"
        assert [row["aggregate"] for row in rows_of(study)] == [5]


def test_a_form_sent_twice_counts_once(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.get("/consent")
        form = anna.page
        for _ in range(3):
            anna.page = form
            anna.send(agree="yes")
        form = anna.page
        for _ in range(3):
            anna.page = form
            anna.answer()
            assert anna.place == "/step/1"
    assert len(rows_of(study)) == 1


def test_two_tabs_do_not_overwrite_each_other(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        other_tab = anna.page
        anna.answer()
        anna.page = other_tab
        page = anna.answer(aggregate="1")
        assert anna.place == "/step/0?stale=1"
        assert "You had changed this answer elsewhere" in page
        assert re.search(r'name="aggregate" value="6"[^>]* checked', page)
        assert [row["aggregate"] for row in rows_of(study)] == [6]
        anna.answer(aggregate="1")
        assert [row["aggregate"] for row in rows_of(study)] == [1]


def test_nobody_jumps_ahead(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        first = anna.page
        for address in ("/step/3", "/step/99", "/done", "/consent", "/"):
            anna.get(address)
            assert anna.place == "/step/0"
        anna.page = first
        anna.send(PAIR, to="/step/2")
        assert anna.place == "/step/0"
        assert all(row["item"] is None for row in rows_of(study))
        anna.get("/step/-1")
        assert anna.page.status_code == 404


def test_a_check_is_answered_once(make: Make) -> None:
    app, study, _ = make("disagreement")
    with Visitor(app) as anna:
        anna.start()
        while 'name="choice"' not in anna.page.text:
            anna.answer()
        check = anna.page
        assert 'class="back"' not in check.text
        index = int(check.url.path.rsplit("/", 1)[1])
        anna.answer(choice="Red")
        assert f'href="/step/{index - 1}">Back' in anna.page.text
        page = anna.get(f"/step/{index}")
        assert "<fieldset disabled" in page
        assert "This answer is stored and cannot be changed." in page
        assert "<button>" not in page
        assert f'class="button" href="/step/{index + 1}"' in page
        anna.page = check
        anna.answer(choice="Blue")
        anna.walk()
    assert {(row["checks_passed"], row["checks_total"]) for row in rows_of(study)} == {(2, 3)}


def test_practice_is_marked_and_does_not_count(make: Make) -> None:
    app, study, _ = make()
    with Visitor(app) as anna:
        page = anna.start()
        assert "This one is for practice." in page
        anna.answer(reason="practice only")
        assert "The practice is done." in anna.page.text
        anna.answer()
        assert "The practice is done." not in anna.page.text
    assert [row["reason"] for row in rows_of(study)] == ["They move alike.\nMostly."]


def test_coming_back_in_another_browser_shows_no_earlier_answer(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna, Visitor(app) as elsewhere:
        anna.start("/?PROLIFIC_PID=anna")
        anna.answer(reason="my secret")
        elsewhere.get("/?PROLIFIC_PID=anna")
        assert elsewhere.place == "/step/1"
        assert 'href="/step/0"' not in elsewhere.page.text
        page = elsewhere.get("/step/0")
        assert "You gave this answer in another browser." in page
        assert "my secret" not in page
        elsewhere.get("/step/1")
        elsewhere.send(PAIR, to="/step/0")
        assert [row["reason"] for row in rows_of(study)] == ["my secret"]
        elsewhere.get("/")
        elsewhere.answer()
        anna.get("/")
        assert anna.place == "/step/2"
        assert "my secret" in anna.get("/step/0")


def test_the_next_person_at_the_same_browser_starts_anew(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as shared:
        shared.start("/?PROLIFIC_PID=anna")
        shared.answer(reason="my secret")
        shared.get("/?PROLIFIC_PID=ben")
        assert shared.place == "/consent"
        shared.send(agree="yes")
        assert shared.place == "/step/0"
        assert "my secret" not in shared.page.text
        shared.get("/?PROLIFIC_PID=anna")
        assert shared.place == "/step/1"
    assert sum(one.enrolled for one in study.results.counts().conditions) == 2


def test_somebody_can_stop_and_have_everything_deleted(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start()
        anna.answer()
        anna.get("/withdraw")
        assert 'href="/step/1">No, go on' in anna.page.text
        assert len(rows_of(study)) == 1
        anna.send()
        assert anna.heading == "Your answers were deleted."
        assert rows_of(study) == []
        for address in ("/", "/step/0", "/done", "/withdraw"):
            anna.get(address)
            assert anna.heading == "Your answers were deleted."


def test_consent_comes_first(make: Make) -> None:
    app, study, _ = make()
    with Visitor(app) as anna:
        for address in ("/", "/step/0", "/done", "/withdraw"):
            anna.get(address)
            assert anna.place == "/consent"
        page = anna.send()
        assert anna.place == "/consent?missing=1"
        assert 'href="#agree"' in page
    assert sum(one.enrolled for one in study.results.counts().conditions) == 0


def test_closed_full_and_without_a_link(make: Make) -> None:
    app, study, _ = make(
        "disagreement",
        **{"[payment]": "[recruitment]\nrequired = true\ncompletion_url = 'https://x.test/?cc={code}'\n[payment]"},
    )
    with Visitor(app) as anna:
        anna.get("/")
        assert anna.heading == "Please open this study through the link that you were given."
        for number in range(4):
            with Visitor(app) as other:
                other.start(f"/?PROLIFIC_PID=p{number}")
                assert other.place == "/step/0"
        anna.start("/?PROLIFIC_PID=anna")
        assert anna.heading.startswith("All places in this study are taken.")
        study.close()
        anna.get("/")
        assert anna.heading.startswith("This study is closed.")
        with Visitor(app) as other:
            other.get("/?PROLIFIC_PID=p1")
            assert other.place == "/step/0"
            other.walk()
            assert f'href="https://x.test/?cc={study.completion_code}"' in other.page.text


@pytest.mark.parametrize("given", ["{{%25PROLIFIC_PID%25}}", "ID", "%7Bid%7D", "100%25"])
def test_an_id_that_nobody_filled_in_is_none(given: str, make: Make) -> None:
    app, study, _ = make("disagreement", **{"[payment]": "[recruitment]\nrequired = true\n[payment]"})
    with Visitor(app) as anna:
        anna.get(f"/?PROLIFIC_PID={given}")
        assert anna.heading == "Please open this study through the link that you were given."
        anna.get("/consent")
        assert anna.place == "/study/need_link"
        anna.start("/?PROLIFIC_PID=5f1a")
        anna.get(f"/?PROLIFIC_PID={given}")
        assert anna.place == "/step/0"
    assert study.participants.by_recruitment_id("5f1a") is not None
    assert sum(one.enrolled for one in study.results.counts().conditions) == 1


def test_without_ids_a_link_that_nobody_filled_in_enrols_nobody_else(make: Make) -> None:
    app, study, _ = make("disagreement")
    for _ in range(2):
        with Visitor(app) as anna:
            anna.start("/?PROLIFIC_PID={{%25PROLIFIC_PID%25}}")
            assert anna.place == "/step/0"
    assert sum(one.enrolled for one in study.results.counts().conditions) == 2
    assert study.participants.by_recruitment_id("{{%PROLIFIC_PID%}}") is None


@pytest.mark.parametrize("given", ["x" * 201, "a%00b", "a%E2%80%8Bb", "a%0Ab"])
def test_an_id_that_cannot_be_used_enrols_nobody(given: str, make: Make) -> None:
    app, study, _ = make("disagreement")
    with Visitor(app) as anna:
        anna.get(f"/?PROLIFIC_PID={given}")
        assert anna.place == "/study/need_link"
        anna.start(f"/?PROLIFIC_PID={'x' * 200}")
        assert anna.place == "/step/0"
    assert sum(one.enrolled for one in study.results.counts().conditions) == 1


def test_the_consent_tells_what_is_paid_and_how_to_say_no(make: Make) -> None:
    told = 'debrief = "You get {amount} {currency}.\\nSoon.\\n\\nBye."'
    app, _, _ = make(
        "disagreement",
        **{
            "You may stop at any time.": "You get {amount} {currency} for {minutes} minutes.",
            'debrief = "Thank you. Your answers were saved."': told,
        },
    )
    with Visitor(app) as anna:
        page = anna.get("/")
        assert "You get 8.45 USD for 42 minutes." in page
        assert "If you do not want to take part, close this page." in page
        anna.send(agree="yes")
        page = anna.walk()
        assert "<p>You get 8.45 USD.\nSoon.</p>\n<p>Bye.</p>" in page


def test_words_without_their_tick_are_kept_and_in_sight(make: Make) -> None:
    app, study, _ = make()
    with Visitor(app) as anna:
        anna.start()
        anna.answer()  # the practice
        anna.answer(factors=[], factor_text="luck", overall="")
        assert "Please choose an answer." in anna.page.text
        assert "Please tick at least one." not in anna.page.text
        assert re.search(r'name="factor_text" value="luck"[^>]* placeholder=" "', anna.page.text)
        anna.answer(factors=["trajectory"], factor_text="luck")
        anna.walk()
    luck = [row for row in rows_of(study) if row["factor_text"] == "luck"]
    assert [(row["factor_trajectory"], row["factor_other"]) for row in luck] == [(1, 1)]


def test_choices_are_shown_in_the_persons_language_and_stored_in_the_first(make: Make) -> None:
    text = study_template("disagreement")
    names = "title|consent|debrief|question"
    changes = {'languages = ["en"]': 'languages = ["en", "de"]', 'right = "Blue"': "right = 2"}
    for start, words in re.findall(rf'^((?:{names}) = )("""[\s\S]*?"""|"[^"]*")', text, re.M):
        changes[start + words] = start + '{ en = "two", de = "zwei" }'
    changes['"Red", "Blue"'] = '{ en = "Red", de = "Rot" }, { en = "Blue", de = "Blau" }'
    app, study, _ = make("disagreement", **changes)
    with Visitor(app, **{"accept-language": "de"}) as anna:
        anna.start()
        assert "Das System hat entschieden: " in anna.page.text
        while 'value="Blue"' not in anna.page.text:
            anna.answer()
        assert re.search(r'value="Blue"[^>]*> <span>Blau</span>', anna.page.text)
        anna.walk()
    assert study.results.responses().people["checks_passed"].tolist() == [3]


def test_hostile_names_and_values_stay_text(make: Make) -> None:
    rows = "\n".join(f'{i},{("low", "high")[i % 2]},a,"<img src=x onerror=alert(1)>{i}",x,1' for i in range(9))
    app, _, _ = make(
        "disagreement",
        rows,
        **{'title = "Do you agree with these decisions?"': f"title = '''{HOSTILE}'''", '["race"]': "[]"},
    )
    with Visitor(app) as anna:
        page = anna.start()
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
        assert "<img" not in page
        assert "<script>" not in page
        assert "{{7*7}}" in page


def test_pages_speak_the_persons_language(make: Make) -> None:
    names = ("title", "consent", "debrief")
    text = study_template("disagreement")
    changes = {'languages = ["en"]': 'languages = ["en", "de", "es", "fr"]'}
    for name in names:
        found = re.search(rf'^{name} = ("""[\s\S]*?"""|"[^"]*")', text, re.M)
        assert found
        changes[found[0]] = f"{name} = {{ " + ", ".join(f'{code} = "{name} {code}"' for code in LANGUAGES) + " }"
    for question in re.findall(r'^question = "[^"]*"', text, re.M):
        changes[question] = "question = { " + ", ".join(f'{code} = "Blue {code}?"' for code in LANGUAGES) + " }"
    asked = "[questions]\n" + "\n".join(
        f"{name} = {{ " + ", ".join(f'{code} = "{name} {code}?"' for code in LANGUAGES) + " }"
        for name in ("feedback", "reason")
    )
    changes["[payment]"] = f"{asked}\n[payment]"
    app, _, _ = make("disagreement", **changes)
    for code in LANGUAGES:
        with Visitor(app, **{"accept-language": f"pt, {code}-XX;q=0.9"}) as anna:
            words = words_in(code, {})
            page = anna.get("/")
            assert f'<html lang="{code}">' in page
            assert f"consent {code}" in page
            assert html.escape(words["start"]) in page
            anna.send(agree="yes")
            while anna.page.url.path != "/done":
                assert f'<html lang="{code}">' in anna.page.text
                assert words["next"] in html.unescape(anna.page.text)
                anna.answer()
            assert f"debrief {code}" in anna.page.text
    with Visitor(app) as anna:
        anna.get("/?lang=fr")
        assert f"<h1>{words_in('fr', {})['consent']}</h1>" in anna.page.text
        anna.get("/?lang=xx")
        assert '<html lang="fr">' in anna.page.text
        anna.send(agree="yes")
        anna.get("/?lang=de")
        assert '<html lang="de">' in anna.page.text


def test_errors_are_told_in_the_persons_language_without_details(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app, study, _ = make("disagreement")
    with Visitor(app) as anna:
        anna.get("/nowhere")
        assert anna.page.status_code == 404
        assert anna.heading == "There is no such page."
        assert 'href="/">Back to the study' in anna.page.text
        anna.start()
        anna.send(csrf="forged")
        assert anna.page.status_code == 403
        monkeypatch.setattr(type(study.answers), "page", lambda *_, **__: 1 / 0)
        page = anna.get("/step/0")
        assert anna.page.status_code == 500
        assert anna.heading.startswith("Something went wrong on our side.")
        assert "division" not in page


def test_every_word_of_the_pages_is_used() -> None:
    here = Path(eh.study.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in here.rglob("*") if path.suffix in (".py", ".html")]
    unused = [word for word in words_in("en", {}) if not any(f'"{word}"' in text for text in texts)]
    assert unused == []


class Outline(HTMLParser):
    """What matters to a screen reader and to a strict policy: headings, labels, ids, and nothing inline."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.bare: list[str | None] = []
        self.feed(page)
        self.ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        held = dict(attributes)
        self.tags.append((tag, held))
        if tag == "input" and held.get("type") in ("radio", "checkbox") and "label" not in self.inside:
            self.bare.append(held.get("name"))
        if tag not in ("input", "meta", "link", "br", "path", "line"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass


@pytest.mark.parametrize("kind", ["effort", "disagreement"])
def test_every_page_is_sound(kind: str, make: Make) -> None:
    app, _, _ = make(kind, **{"seed = 0": "seed = 0\ninstructions = 'Read this.'\ncontact = 'us@x.test'"})
    with Visitor(app) as anna:
        pages = [anna.get("/consent"), anna.send(), anna.send(agree="yes")]
        while anna.page.url.path != "/done":
            pages += [anna.send({}), anna.answer()] if 'name="choice"' not in anna.page.text else [anna.answer()]
        pages += [anna.get("/done"), anna.get("/withdraw"), anna.get("/study/full"), anna.get("/study/nothing")]
    for page in pages:
        outline = Outline(page)
        tags = [tag for tag, _ in outline.tags]
        assert tags.count("h1") == 1
        assert tags.count("main") == 1
        assert len(set(outline.ids)) == len(outline.ids)
        assert outline.bare == []
        assert tags.count("fieldset") == tags.count("legend")
        fors = {held["for"] for tag, held in outline.tags if tag == "label" and "for" in held}
        for tag, held in outline.tags:
            assert not {"style", "onclick"} & held.keys()
            assert tag != "style"
            assert tag != "script" or str(held["src"]).startswith("/static/")
            if tag in ("textarea", "input") and held.get("type", "text") in ("text", None):
                assert held["id"] in fors
            for reference in ("aria-describedby", "aria-labelledby", "for"):
                assert set((held.get(reference) or "").split()) <= set(outline.ids)
            if tag == "a" and str(held["href"]).startswith("#"):
                assert str(held["href"])[1:] in outline.ids


def test_knowing_an_id_neither_shows_a_draft_nor_deletes_anything(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna, Visitor(app) as stranger:
        anna.start("/?PROLIFIC_PID=anna")
        anna.answer()
        anna.put_draft(1, {"reason": "half a secret"})
        assert "half a secret" in anna.get("/step/1")
        stranger.get("/?PROLIFIC_PID=anna")
        assert stranger.place == "/step/1"
        assert "half a secret" not in stranger.page.text
        assert "You began in another browser." in stranger.get("/withdraw")
        stranger.get("/step/1")
        stranger.send(to="/withdraw")
        assert len(rows_of(study)) == 1
        anna.get("/withdraw")
        anna.send()
        assert rows_of(study) == []


def test_knowing_an_id_from_the_start_shows_no_later_answer_and_changes_none(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna, Visitor(app) as stranger:
        anna.start("/?PROLIFIC_PID=anna")
        stranger.get("/?PROLIFIC_PID=anna")
        form = stranger.page
        anna.answer(reason="my secret")
        anna.answer(reason="my secret")
        for index in (0, 1):
            page = stranger.get(f"/step/{index}")
            assert "You gave this answer in another browser." in page
            assert "my secret" not in page
        stranger.page = form
        stranger.send({**PAIR, "reason": "forged"}, to="/step/0")
        assert {row["reason"] for row in rows_of(study)} == {"my secret"}
        anna.get("/step/0")
        assert "my secret" in anna.page.text


def test_the_completion_code_is_for_the_browser_that_finished(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna, Visitor(app) as stranger:
        anna.start("/?PROLIFIC_PID=anna")
        for _ in range(60):
            if anna.place == "/done":
                break
            anna.answer()
        assert study.completion_code in anna.get("/done")
        stranger.get("/?PROLIFIC_PID=anna")
        assert stranger.place == "/done"
        assert study.completion_code not in stranger.page.text
        assert "shown in the browser in which you finished" in stranger.page.text


def test_an_old_consent_form_never_enrols_again(make: Make) -> None:
    app, study, _ = make()
    with Visitor(app) as anna:
        anna.get("/?PROLIFIC_PID=anna")
        form = anna.page
        anna.send(agree="yes")
        study.participants.erase_recruitment_ids()
        anna.page = form
        anna.send({"agree": "yes"}, to="/consent")
        assert sum(one.enrolled for one in study.results.counts().conditions) == 1
        assert [row.recruitment_id for row in study.participants.bonus_rows()] in ([], [None])


def test_who_began_before_a_change_is_told_and_loses_nothing(make: Make) -> None:
    app, study, _ = make(**{"seed = 0": "seed = 0\npractice = false"})
    with Visitor(app) as anna:
        anna.start("/?PROLIFIC_PID=anna")
        anna.answer()
        changed, _, _ = make(accept=True)
        with Visitor(changed) as later:
            later._client.cookies.update(anna._client.cookies)
            for address in ("/", "/step/0", "/step/1"):
                later.get(address)
                assert later.place == "/study/changed"
                assert "This study was changed after you began" in later.page.text
    assert len(rows_of(study)) == 1
