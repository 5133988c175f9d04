"""Both kinds of study as people take them in a browser: by keyboard, on a phone, reloading, without JavaScript."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

import evenhand as eh
from evenhand.study.flow.design import load_design
from evenhand.study.template import study_template

pytestmark = pytest.mark.browser
WIDTHS = (390, pytest.param(1280, marks=pytest.mark.slow))  # axe takes both studies at 1280
PASSWORD = "correct horse battery"
COMMON = {
    "seed = 0": (
        'seed = 0\ncontact = "Write to study@example.org."\n'
        'instructions = "You will see some people and how they did.\\n\\nThere are no right or wrong answers."'
    ),
    "[payment]": '[recruitment]\ncompletion_url = "https://recruiter.example/done?cc={code}"\n\n[payment]',
}


@dataclass
class Running:
    """A study that a server shows."""

    address: str
    study: Any
    design: Any

    def rows(self, recruitment_id: str) -> list[dict[str, Any]]:
        """Return the stored answers of one person in the order they were asked."""
        columns = self.study.results.responses().to_columns()
        code = self.study.participants.by_recruitment_id(recruitment_id).code
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [row for row in rows if row["participant"] == code]


@pytest.fixture(scope="module")
def effort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("effort")
    table = eh.Table(
        eh.datasets.make_households(1_500, seed=1), id="household", groups="race", predictions={"m": "risk_logistic"}
    )
    sets = eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=2, step=100)
    for name in ("income", "arrests"):
        sets.save(folder / f"{name}.json")
    one_set = {"sets_per_person = 3": "sets_per_person = 1", "after = 2": "after = 1", "after = 3": "after = 1"}
    yield from serve(folder, study_template("effort"), one_set)


@pytest.fixture(scope="module")
def feedback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("feedback")
    charges = ("Theft", "Driving with a suspended licence and without insurance", "<b>Assault</b>")
    lines = [f"{i},{('low', 'high')[i % 2]},{'ab'[i % 3 == 0]},{20 + i},{charges[i % 3]},{i % 4}" for i in range(13)]
    (folder / "cases.csv").write_text("case,label,race,age,charge,priors\n" + "\n".join(lines) + "\n", encoding="utf-8")
    changes = {"per_critic = 50": "per_critic = 4", '"disagree"]': '"disagree", "too_high", "too_low"]'}
    yield from serve(folder, study_template("disagreement"), changes)


ABOUT = """
[about]
text = "We ask this to see whether patients and surgeons judge differently."
consent = "You may store what I say about myself."
[[about.questions]]
name = "kind"
question = "Which of these are you?"
choices = ["patient", "donor", "surgeon"]
[[about.questions]]
name = "age"
question = "How old are you?"
range = [18, 99]

[rationales]
raters = ["anna", "ben"]
first = 1

[[payment.bonuses]]
by = "reasons"
amount = 5

[recruitment.quotas]
kind = { surgeon = 0 }

[[recruitment.filters]]
column = "Country of residence"
values = ["United States"]
"""


@pytest.fixture(scope="module")
def critics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A disagreement study that asks who is speaking and takes no surgeons; its reasons are rated."""
    folder = tmp_path_factory.mktemp("critics")
    lines = [f"{i},{('low', 'high')[i % 2]},{'ab'[i % 3 == 0]},{20 + i},Theft,{i % 4}" for i in range(13)]
    (folder / "cases.csv").write_text("case,label,race,age,charge,priors\n" + "\n".join(lines) + "\n", encoding="utf-8")
    changes = {"per_critic = 50": "per_critic = 4", "[analysis.exclusions]": f"{ABOUT}\n[analysis.exclusions]"}
    for running in serve(folder, study_template("disagreement"), changes):
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
        for name in ("anna", "ben", "cleo"):
            running.study.researchers.set_password(name, quick)
        yield running


def serve(folder: Path, text: str, changes: dict[str, str]) -> Iterator[Running]:
    """Run the real server in a thread."""
    import uvicorn

    from evenhand.study.server.app import create_app
    from evenhand.study.store import open_store

    for old, new in (changes | COMMON).items():
        assert old in text, old
        text = text.replace(old, new, 1)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    design = load_design(eh.study.read_study(folder / "study.toml"))
    with open_store(str(folder / "study.db")) as store, socket.create_server(("127.0.0.1", 0)) as listening:
        study = store.register(design)
        app = create_app(design, study, rate=1e6)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}", study, design)
        server.should_exit = True
        thread.join(10)


class Person:
    """Somebody at a browser, who takes a study with the keyboard alone."""

    def __init__(self, browser: Any, running: Running, width: int = 1280, scheme: str = "light", **more: Any) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, locale="en-US", **more
        )
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.address, self.width, self.scheme = running.address, width, scheme
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self._note)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.trouble.append(request.url)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)

    @property
    def path(self) -> str:
        return str(self.page.url.removeprefix(self.address))

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus; everything must be reachable so, in the order of the page."""
        for _ in range(50):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                assert self.page.evaluate(FOCUS_SHOWS), f"the focus on {selector} cannot be seen"
                return
        raise AssertionError(f"{selector} cannot be reached with the Tab key at {self.path}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def go_on(self) -> None:
        """Send the form with the keyboard, and wait for the next page."""
        self.tab_to("main form button")
        before = self.path
        self.press("Enter")
        self.page.wait_for_url(lambda url: url.removeprefix(self.address) != before)
        self.looks_right()

    def looks_right(self) -> None:
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width, self.path
        assert self.page.locator("h1").count() == 1
        assert self.trouble == []

    def consent(self, recruitment_id: str) -> None:
        self.open(f"/?PROLIFIC_PID={recruitment_id}")
        assert self.path == "/consent"
        self.tab_to("#agree")
        self.press("Space")
        self.go_on()

    def rate_pair(self, *, other: bool = False) -> None:
        """Fill in the questions about a pair: 3, 1, 6; both factors or another; 51 by slider, 30 by number."""
        self.tab_to("input[name=trajectory]")
        self.press("Space", "ArrowRight", "ArrowRight")
        self.tab_to("input[name=aggregate]")
        self.press("Space")
        self.tab_to("input[name=overall]")
        self.press("Space", "ArrowLeft")
        self.tab_to("input[name=factors]")
        if other:
            self.tab_to("input[name=factors][value=other]")
            self.press("Space")  # which takes the focus to the box for words
            self.page.keyboard.type("the neighbourhood")
        else:
            self.press("Space")
            self.tab_to("input[name=factors]")
            self.press("Space")
        self.tab_to("input[type=range][data-for=predicted]")
        self.press("ArrowRight")
        self.tab_to("#risk")
        self.page.keyboard.type("30")
        self.tab_to("#reason")
        self.page.keyboard.type("Alike & <b>steady</b>.")

    def answer(self) -> None:
        """Answer the page, whatever it asks, and go on."""
        if self.page.locator("input[name=trajectory]").count():
            self.rate_pair()
        elif self.page.locator("input[name=answer]").count():
            self.tab_to("input[name=answer]")
            self.press("Space", "ArrowDown")
        elif self.page.locator("input[name=choice]").count():
            self.choose_right()
        self.go_on()

    def choose_right(self) -> None:
        self.tab_to("input[name=choice]")
        self.press("Space")
        for _ in range(3):
            if self.page.locator("input[name=choice]:checked").get_attribute("value") in ("Blue", "Chair", "Seven"):
                return
            self.press("ArrowDown")
        raise AssertionError("no choice is right")

    def finish(self) -> None:
        for _ in range(40):
            if self.path == "/done":
                return
            self.answer()


FOCUS_SHOWS = """
() => { let e = document.activeElement;
  const box = e.getBoundingClientRect();
  if (box.bottom <= 0 || box.top >= innerHeight) return false;
  return [e, e.closest('label')].some(one => {
    const look = one && getComputedStyle(one);
    return look && look.outlineStyle !== 'none' && look.outlineWidth !== '0px'; }); }
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_whole_effort_study_by_keyboard(browser: Any, effort: Running, width: int) -> None:
    who = f"effort{width}"
    with Person(browser, effort, width) as anna:
        anna.consent(who)
        anna.finish()
        assert anna.page.locator("#code").inner_text() == effort.study.completion_code
        url = f"https://recruiter.example/done?cc={effort.study.completion_code}"
        assert anna.page.locator("a.button").get_attribute("href") == url
    rows = effort.rows(who)
    assert sorted(row["subject"] for row in rows) == ["A", "B", "C", "D"]
    for row in rows:
        assert (row["trajectory"], row["aggregate"], row["overall"]) == (3, 1, 6)
        assert (row["factor_trajectory"], row["factor_aggregate"], row["factor_other"]) == (1, 1, 0)
        assert (row["predicted"], row["risk"]) == (0.51, 0.3)
        assert row["reason"] == "Alike & <b>steady</b>."
        assert (row["finished"], row["checks_passed"], row["checks_total"]) == (1, 3, 3)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_whole_feedback_study_by_keyboard(browser: Any, feedback: Running, width: int) -> None:
    who = f"feedback{width}"
    with Person(browser, feedback, width) as anna:
        anna.consent(who)
        anna.finish()
    rows = feedback.rows(who)
    assert len({row["item"] for row in rows}) == len(rows) == 4
    assert {row["answer"] for row in rows} == {"disagree"}
    assert {(row["checks_passed"], row["finished"]) for row in rows} == {(3, 1)}


def test_reload_and_back_lose_and_double_nothing(browser: Any, effort: Running) -> None:
    with Person(browser, effort, 390) as anna:
        anna.consent("reload")
        anna.answer()
        anna.rate_pair(other=True)
        anna.page.wait_for_selector(".status:text-is('Saved')")
        for _ in range(2):
            anna.page.reload()
            assert anna.page.locator("input[name=trajectory]:checked").get_attribute("value") == "3"
            assert anna.page.locator("input[value=other]").is_checked()
            assert anna.page.locator("#factor_text").input_value() == "the neighbourhood"
            assert anna.page.locator("#predicted").input_value() == "51"
            assert anna.page.locator("[data-for=predicted]").input_value() == "51"
            assert anna.page.locator("#reason").input_value() == "Alike & <b>steady</b>."
        anna.page.evaluate("scrollTo(0, 0)")
        anna.go_on()
        anna.answer()
        assert anna.path == "/step/3"

        anna.page.go_back()
        assert anna.path == "/step/2"
        assert anna.page.locator("#risk").input_value() == "30"
        anna.tab_to("#risk")
        anna.press("Control+a")
        anna.page.keyboard.type("20")
        anna.go_on()
        assert anna.path == "/step/3"
        anna.page.go_back()
        anna.page.wait_for_function("document.getElementById('risk').value === '20'")
        anna.page.reload()
        assert anna.page.locator("#risk").input_value() == "20"
        anna.page.evaluate(
            "document.querySelector('form button').click(); document.querySelector('form button').click()"
        )
        anna.page.wait_for_url("**/step/3")
        anna.tab_to("a.back")
        anna.press("Enter")
        anna.page.wait_for_url("**/step/2")
        anna.open("/")
        assert anna.path == "/step/3"
        assert anna.trouble == []
    assert [row["risk"] for row in effort.rows("reload")] == [0.2]


def test_the_next_visit_goes_on_where_the_last_one_ended(browser: Any, feedback: Running) -> None:
    with Person(browser, feedback) as anna:
        anna.consent("again")
        for _ in range(4):
            anna.answer()
        left_at, cookies = anna.path, anna.context.storage_state()
    with Person(browser, feedback, storage_state=cookies) as same:
        same.open("/")
        assert same.path == left_at
        same.tab_to("a.back")
        same.press("Enter")
        same.page.wait_for_url("**/step/2")
        assert same.page.locator("input[name=answer]:checked").get_attribute("value") == "disagree"
    with Person(browser, feedback) as elsewhere:
        elsewhere.open("/?PROLIFIC_PID=again")
        assert elsewhere.path == left_at
        assert elsewhere.page.locator("a.back").count() == 0
        elsewhere.finish()
    rows = feedback.rows("again")
    assert len(rows) == 4
    assert {row["finished"] for row in rows} == {1}


def test_everything_works_without_javascript(browser: Any, effort: Running) -> None:
    with Person(browser, effort, 390, java_script_enabled=False) as anna:
        page = anna.page
        anna.open("/?PROLIFIC_PID=plain")
        page.click("main form button")
        page.wait_for_selector(".errors")
        page.check("#agree")
        page.click("main form button")
        page.click("main form button")
        while page.url.removeprefix(anna.address) != "/done":
            if page.locator("input[name=trajectory]").count():
                assert not page.locator("input[type=range]").first.is_visible()
                page.check("input[name=overall][value='2']")
                page.fill("#reason", "Half done")
                page.click("main form button")
                page.wait_for_selector(".errors:focus")
                page.click(".errors a >> nth=0")
                assert page.evaluate("document.activeElement.name") == "trajectory"
                assert page.locator("#reason").input_value() == "Half done"
                page.check("input[name=trajectory][value='1']")
                page.check("input[name=aggregate][value='5']")
                page.check("input[name=factors][value=aggregate]")
                page.fill("#predicted", "80")
                page.fill("#risk", "7.5")
            else:
                page.locator("input:is([value=Blue], [value=Chair], [value=Seven])").check()
            page.click("main form button")
        assert not page.locator("[data-copy]").is_visible()
        assert anna.trouble == []
    rows = effort.rows("plain")
    assert [(row["overall"], row["predicted"], row["risk"], row["reason"]) for row in rows] == [
        (2, 0.8, 0.075, "Half done")
    ] * 4


def test_a_slider_has_no_answer_until_it_is_touched(browser: Any, effort: Running) -> None:
    with Person(browser, effort) as anna:
        anna.consent("slider")
        anna.answer()
        number, slider = anna.page.locator("#predicted"), anna.page.locator("[data-for=predicted]")
        assert number.input_value() == ""
        assert "untouched" in (slider.get_attribute("class") or "")
        anna.page.click("main form button")
        anna.page.wait_for_selector(".errors:focus")
        assert anna.page.locator(".errors li").count() == 6
        slider.click()
        assert number.input_value() == "50"
        number.fill("12,5")
        assert slider.input_value() in ("12", "13")
        number.fill("much")
        assert "untouched" in (slider.get_attribute("class") or "")
        assert anna.trouble == []


def test_without_a_connection_it_says_so_and_saves_later(browser: Any, effort: Running) -> None:
    with Person(browser, effort) as anna:
        anna.consent("offline")
        anna.answer()
        anna.context.set_offline(True)
        anna.page.fill("#reason", "Typed in a tunnel")
        anna.page.wait_for_selector(".status:has-text('no connection')")
        anna.page.click("main form button")
        assert anna.path == "/step/1"
        anna.context.set_offline(False)
        anna.page.wait_for_selector(".status:text-is('Saved')")
        anna.page.reload()
        assert anna.page.locator("#reason").input_value() == "Typed in a tunnel"
        assert all("ERR_INTERNET_DISCONNECTED" in text for text in anna.trouble)


def test_the_code_can_be_copied_and_answers_deleted(browser: Any, feedback: Running) -> None:
    with Person(browser, feedback, permissions=["clipboard-read", "clipboard-write"]) as anna:
        anna.consent("leaver")
        anna.finish()
        anna.tab_to("[data-copy]")
        anna.press("Enter")
        anna.page.wait_for_selector("[data-copy]:has-text('Copied')")
        assert anna.page.evaluate("navigator.clipboard.readText()") == feedback.study.completion_code
        assert len(feedback.rows("leaver")) == 4
        anna.tab_to("footer a")
        anna.press("Enter")
        anna.page.wait_for_url("**/withdraw")
        anna.tab_to("main a.button")
        anna.go_on()
        assert anna.page.locator("h1").inner_text() == "Your answers were deleted."
        assert feedback.rows("leaver") == []


@pytest.mark.parametrize("script", [True, False])
def test_the_box_for_something_else_is_there_once_it_is_ticked(browser: Any, effort: Running, script: bool) -> None:
    with Person(browser, effort, java_script_enabled=script) as anna:
        page = anna.page
        anna.open(f"/?PROLIFIC_PID=other{script}")
        page.check("#agree")
        page.click("main form button")
        page.click("main form button")
        other, box = page.locator("input[value=other]"), page.locator("#factor_text")
        assert not box.is_visible()
        other.check()
        assert box.is_visible()
        box.fill("luck")
        other.uncheck()
        assert box.is_visible() is not script  # a script empties it; without one the words stay, and count
        other.check()
        assert box.input_value() == "luck"
        assert anna.trouble == []


def test_the_chart_stays_in_sight_on_a_phone_where_there_is_room(browser: Any, effort: Running) -> None:
    covered = "() => document.querySelector('.chart').getBoundingClientRect().bottom"
    with Person(browser, effort, 390) as anna:
        anna.consent("phone")
        anna.answer()
        for height, stays in ((800, True), (680, True), (640, False)):
            anna.page.set_viewport_size({"width": 390, "height": height})
            anna.page.reload()
            for field in ("[name=aggregate]", "[name=overall]", "#predicted", "#risk", "#reason"):
                anna.tab_to(field)
                bottom = anna.page.evaluate(covered)
                assert (0 < bottom <= 0.4 * height) is stays, (height, field, bottom)
                top = anna.page.evaluate("document.activeElement.getBoundingClientRect().top")
                assert top >= bottom, f"{field} is under the chart"
            for field in ("[name=overall]", "[name=aggregate]"):
                anna.page.focus("#reason")
                anna.page.focus(field)
                top = anna.page.evaluate("document.activeElement.getBoundingClientRect().top")
                assert top >= anna.page.evaluate(covered), f"{field} is under the chart on the way back"


def test_nothing_moves_while_a_page_loads(browser: Any, effort: Running) -> None:
    with Person(browser, effort, 390) as anna:
        anna.consent("shift")
        anna.answer()
        anna.page.reload()
        assert anna.page.evaluate(SHIFT) == 0


SHIFT = """
() => new Promise(done => { let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(e => sum += e.value))
    .observe({type: 'layout-shift', buffered: true});
  setTimeout(() => done(sum), 300); })
"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), pytest.param("dark", 390, marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious_on_any_page(
    browser: Any, effort: Running, feedback: Running, scheme: str, width: int
) -> None:
    """Every kind of page, empty, filled in and with errors; rules of WCAG 2.2 A and AA and best practice."""
    found: list[str] = []
    with Person(browser, effort, width, scheme) as anna:
        anna.open(f"/?PROLIFIC_PID=axe{scheme}")
        found += problems(anna, "consent")
        anna.go_on()
        found += problems(anna, "consent with an error")
        anna.consent(f"axe{scheme}")
        found += problems(anna, "instructions")
        anna.answer()
        found += problems(anna, "practice")
        anna.answer()
        found += problems(anna, "pair")
        anna.page.locator("summary").click()
        anna.page.check("input[name=factors][value=other]")
        anna.go_on()
        found += problems(anna, "pair with errors")
        anna.rate_pair(other=True)
        anna.page.wait_for_selector(".status:text-is('Saved')")
        anna.page.locator("summary").click()
        found += problems(anna, "pair filled in")
    with Person(browser, feedback, width, scheme) as ben:
        ben.consent(f"axe{scheme}")
        ben.answer()
        ben.answer()
        found += problems(ben, "case")
        ben.go_on()
        found += problems(ben, "case with an error")
        while not ben.page.locator("input[name=choice]").count():
            ben.answer()
        check = ben.path
        found += problems(ben, "check")
        ben.answer()
        ben.open(check)
        found += problems(ben, "check that is locked")
        ben.open("/")
        ben.finish()
        found += problems(ben, "done")
        for path in ("/withdraw", "/study/closed"):
            ben.open(path)
            found += problems(ben, path)
        assert ben.trouble == []
        ben.open("/nowhere")
        found += problems(ben, "an error")
    assert found == []


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_who_is_speaking_and_the_raters_desk_by_keyboard(browser: Any, critics: Running, width: int) -> None:
    """The page about people, the polite page beyond a quota, and two raters at the desk; axe finds nothing serious."""
    found: list[str] = []
    for number in range(2):
        with Person(browser, critics, width) as person:
            person.consent(f"critic{width}-{number}")
            assert person.path == "/about"
            if number == 0:
                found += problems(person, "about")
                person.tab_to("main form button")
                person.press("Enter")
                person.page.wait_for_selector(".errors")
                found += problems(person, "about with errors")
                person.trouble.clear()  # the browser notes that the form was refused
            person.tab_to("input[name=about_kind]")
            person.press("Space", *["ArrowDown"] * 2 * number)
            person.tab_to("#about_age")
            person.page.keyboard.type("41")
            person.tab_to("#about_consent")
            person.press("Space")
            person.go_on()
            if number == 1:
                assert person.path == "/study/quota"
                found += problems(person, "quota")
                continue
            person.finish()
        someone = critics.study.participants.by_recruitment_id(f"critic{width}-{number}")
        step = next(one for one in critics.design.plan("", someone.place).steps if one.position == 1)
        assert critics.study.ratings.enter(someone.code, step.key, "He was arrested once, long ago. & <b>too harsh</b>")
    for name, presses in (("anna", 2), ("ben", 3)):
        with Person(browser, critics, width) as rater:
            rater.open("/researcher/login")
            rater.page.fill("#name", name)
            rater.page.fill("#password", PASSWORD)
            rater.press("Enter")
            rater.page.wait_for_url("**/researcher/reasons")
            rater.looks_right()
            found += problems(rater, "own progress") if name == "anna" else []
            rater.open("/researcher/reasons/rate")
            rater.looks_right()
            found += problems(rater, "a reason") if name == "anna" else []
            rater.tab_to("input[name=rating]")
            rater.press("Space", *["ArrowDown"] * presses)
            rater.tab_to("main form button.main")
            rater.press("Enter")
            rater.page.wait_for_url("**/researcher/reasons?done=all")
            assert rater.trouble == []
    with Person(browser, critics, width) as researcher:
        researcher.open("/researcher/login")
        researcher.page.fill("#name", "cleo")
        researcher.page.fill("#password", PASSWORD)
        researcher.press("Enter")
        researcher.page.wait_for_url("**/researcher")
        for path in ("/researcher", "/researcher/reasons"):
            researcher.open(path)
            researcher.looks_right()
            found += problems(researcher, path)
    assert found == []
    scores = [one.score for one in critics.study.ratings.all() if one.rater == "ben"]
    assert set(scores) == {4}


def problems(person: Person, where: str) -> list[str]:
    """Return what axe-core calls serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if person.scheme == "dark":
        # Nothing but colours differs.
        options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}
    person.page.wait_for_timeout(150)
    results = Axe().run(person.page, options=options)
    return [
        f"{where}: {one['id']} ({one['impact']}): {one['help']}; {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in results.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
