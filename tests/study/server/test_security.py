"""The study server on the open internet: what a stranger, a curious participant or a hostile page may try."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from itsdangerous import BadSignature
from starlette.requests import Request
from starlette.routing import Route

from evenhand.errors import ConfigError
from evenhand.study.server import middleware
from evenhand.study.server.middleware import require_proxies
from evenhand.study.store import StoreError

PARTICIPANT = (
    ("POST", "/about"),
    ("POST", "/consent"),
    ("POST", "/step/0"),
    ("POST", "/withdraw"),
    ("PUT", "/api/draft/0"),
)
DESK = tuple(
    ("POST", f"/researcher/{action}")
    for action in ("login", "logout", "withdraw", "close", "reopen", "erase", "reasons/rate", "reasons/enter")
)
UNSAFE = (*PARTICIPANT, *DESK)
PAGES = (
    "/",
    "/consent",
    "/step/0",
    "/done",
    "/withdraw",
    "/study/closed",
    "/researcher",
    "/researcher/login",
    "/researcher/export/csv",
    "/researcher/bonus.csv",
    "/api/health",
    "/api/dashboard",
    "/static/researcher.css",
    "/static/none.css",
    "/nowhere",
)
HEADERS = (
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "permissions-policy",
    "cross-origin-opener-policy",
    "x-frame-options",
    "cache-control",
)


@pytest.fixture
def answers(effort: Any) -> Callable[[], int]:
    """Return how many answers of any kind are stored."""
    return lambda: sum(page.times.answers for page in effort.study.results.counts().pages if page.times)


def send(browser: Any, method: str, url: str, token: str | None, **headers: str) -> Any:
    """Send a form, or a draft, with a token against forged requests or without."""
    if method == "PUT":
        held: dict[str, Any] = {**headers, **({} if token is None else {"x-csrf-token": token.encode()})}
        return browser.send("PUT", url, json={"fields": {"reason": "x"}}, headers=held)
    data = {"agree": "yes", "revision": "0", "confirm": "yes", "who": "p", "name": "anna", "password": "x" * 12}
    data |= {} if token is None else {"csrf": token}
    return browser.post(url, data, headers=headers)


def visitor_for(effort: Any, url: str) -> Any:
    """Return a browser in which a form can be sent: enrolled, logged in, or just arrived."""
    if url.startswith("/researcher") and not url.endswith("login"):
        return effort.researcher()
    browser = effort.browser()
    if url in ("/consent", "/researcher/login"):
        browser.get(url)
    else:
        browser.begin()
    return browser


def state(effort: Any) -> tuple[Any, ...]:
    counts = effort.study.results.counts()
    return (
        counts.conditions,
        counts.answers,
        effort.study.closed,
        [one.action for one in effort.study.researchers.actions()],
    )


class TestForgedRequests:
    def test_every_route_that_changes_something_is_in_this_file(self, effort: Any) -> None:
        found = {
            (method, re.sub(r"\{index[^}]*\}", "0", path))
            for path, methods in _routes(effort.app)
            for method in methods - {"GET", "HEAD"}
        }
        assert found == set(UNSAFE)

    @pytest.mark.parametrize(("method", "url"), UNSAFE)
    def test_a_form_without_its_token_changes_nothing(self, effort: Any, method: str, url: str) -> None:
        browser, other = visitor_for(effort, url), visitor_for(effort, url)
        of_another = other.token(url)
        before = state(effort)
        for token in (None, "", "0" * 64, of_another, "é"):
            assert send(browser, method, url, token).status_code == 403, token
        assert state(effort) == before

    @pytest.mark.parametrize(("method", "url"), [one for one in UNSAFE if one[1] != "/researcher/reasons/rate"])
    def test_the_right_token_is_taken(self, effort: Any, method: str, url: str) -> None:
        browser = visitor_for(effort, url)
        assert send(browser, method, url, browser.token(url)).status_code != 403

    @pytest.mark.parametrize(("method", "url"), UNSAFE)
    def test_a_form_of_another_site_is_refused_even_with_its_token(self, effort: Any, method: str, url: str) -> None:
        browser = visitor_for(effort, url)
        token, before = browser.token(url), state(effort)
        origins = ("https://evil.example", "null", "http://study.example:8080", "http://[broken", "")
        for headers in (
            *({"origin": origin} for origin in origins),
            *({"sec-fetch-site": site} for site in ("cross-site", "same-site", "x")),
        ):
            assert send(browser, method, url, token, **headers).status_code == 403, headers
        assert state(effort) == before

    def test_our_own_origin_is_taken(self, effort: Any) -> None:
        browser = effort.browser()
        form = browser.form("/consent")
        ours = {"origin": "http://study.example", "sec-fetch-site": "same-origin"}
        assert browser.post("/consent", {**form, "agree": "yes"}, headers=ours).status_code == 303

    def test_over_https_an_http_origin_is_refused(self, serve: Any, effort_design: Any) -> None:
        browser = serve(effort_design, https=True).browser()
        data = {**browser.form("/consent"), "agree": "yes"}
        assert browser.post("/consent", data, headers={"origin": "http://study.example"}).status_code == 403
        assert browser.post("/consent", data, headers={"origin": "https://study.example"}).status_code == 303

    def test_a_tag_of_another_site_may_load_nothing(self, effort: Any) -> None:
        assert effort.browser().get("/consent").headers["cross-origin-resource-policy"] == "same-origin"


class TestCookies:
    @pytest.mark.parametrize("https", [False, True])
    def test_flags(self, serve: Any, effort_design: Any, https: bool) -> None:
        served = serve(effort_design, https=https)
        for url in ("/", "/researcher/login"):
            (cookie,) = served.browser().get(url).headers.get_list("set-cookie")
            flags = {part.strip().lower() for part in cookie.split(";")[1:]}
            assert {"httponly", "samesite=lax", "path=/"} <= flags
            assert ("secure" in flags) == https
            assert cookie.startswith("__Host-") == https
            assert not any(flag.startswith("domain") for flag in flags)

    @pytest.mark.parametrize("position", [0, 5, -2])  # of the last letter of a signature not all bits count
    def test_a_tampered_cookie_is_nobody(self, effort: Any, position: int) -> None:
        browser = effort.browser()
        browser.begin()
        name, value = next(iter(browser.jar.items()))
        assert browser.get("/step/0").status_code == 200
        letter = "A" if value[position] != "A" else "B"
        changed = value[:position] + letter + value[position + 1 :]
        browser.jar = httpx.Cookies({name: changed})
        answer = browser.get("/step/0")
        assert (answer.status_code, answer.headers["location"]) == (303, "/consent")

    @pytest.mark.parametrize("value", ["", "x", "a.b.c", "." * 40, "W10", "ÿ", "eyJ0IjogMX0.x.y"])
    def test_a_forged_cookie_is_nobody(self, effort: Any, value: str) -> None:
        security = effort.app.state.context.security
        for name, url, way in (
            (security.visitor_cookie, "/step/0", "/consent"),
            (security.researcher_cookie, "/researcher", "/researcher/login"),
        ):
            answer = effort.browser().get(url, headers={"cookie": f"{name}={value}".encode("latin-1")})
            assert (answer.status_code, answer.headers["location"]) == (303, way)

    def test_a_cookie_that_we_signed_for_something_else_is_nobody(self, effort: Any) -> None:
        browser, security = effort.browser(), effort.app.state.context.security
        browser.begin()
        value = next(iter(browser.jar.values()))
        browser.jar = httpx.Cookies({security.researcher_cookie: value})
        assert browser.get("/researcher").headers["location"] == "/researcher/login"
        with pytest.raises(BadSignature):
            security._serializers[security.researcher_cookie].loads(value)

    def test_a_cookie_of_another_study_is_nobody_even_under_one_key(
        self, serve: Any, effort_design: Any, feedback_design: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("EVENHAND_STUDY_SECRET", "s" * 40)
        one, two = serve(effort_design), serve(feedback_design)
        assert one.study.secret == two.study.secret
        browser = one.browser()
        browser.begin()
        value = next(iter(browser.jar.values()))
        elsewhere = two.browser()
        elsewhere.jar = httpx.Cookies({two.app.state.context.security.visitor_cookie: value})
        assert elsewhere.get("/step/0").headers["location"] == "/consent"
        assert "set-cookie" in elsewhere.get("/consent").headers, "the cookie was taken for one of this study"

    @pytest.mark.parametrize(
        ("ahead", "taken"),
        [(30, True), (23 * 3600, True), (25 * 3600, False), (-89 * 86400, True), (-91 * 86400, False)],
    )
    def test_a_cookie_of_a_clock_that_was_ahead_is_taken(
        self, effort: Any, monkeypatch: pytest.MonkeyPatch, ahead: int, taken: bool
    ) -> None:
        now, security = time.time(), effort.app.state.context.security
        with monkeypatch.context() as patched:
            patched.setattr("itsdangerous.timed.time.time", lambda: now + ahead)
            value = security._serializers[security.visitor_cookie].dumps(["session", None, 0, None, "en", False, None])
        request = Request({"type": "http", "headers": [(b"cookie", f"evenhand-who-is-alike={value}".encode())]})
        assert (security.visitor(request) is not None) == taken

    def test_a_cookie_survives_a_restart(self, serve: Any, effort_design: Any) -> None:
        browser = serve(effort_design).browser()
        browser.begin()
        browser.app = serve(effort_design).app
        assert browser.get("/step/0").status_code == 200


class TestReplay:
    def test_the_same_form_twice_enrols_once(self, effort: Any) -> None:
        browser = effort.browser()
        form = {**browser.form("/consent"), "agree": "yes"}
        before = dict(browser.jar)
        browser.post("/consent", form)
        browser.jar = httpx.Cookies(before)
        browser.post("/consent", form)
        assert sum(one.enrolled for one in effort.study.results.counts().conditions) == 1

    def test_the_same_answer_twice_is_one_answer(self, effort: Any, answers: Callable[[], int]) -> None:
        browser = effort.browser()
        browser.begin()
        form = browser.fields("/step/0")
        first, second = browser.post("/step/0", form), browser.post("/step/0", form)
        assert first.headers["location"] == second.headers["location"] == "/step/1"
        assert answers() == 1

    def test_an_old_form_does_not_bring_an_old_answer_back(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        url = "/step/1"
        old = browser.fields(url, answer="agree", reason="the old one")
        browser.post(url, old)
        browser.post(url, browser.fields(url, answer="disagree", reason="the new one"))
        assert browser.post(url, old).headers["location"] == f"{url}?stale=1"
        assert "the new one" in browser.get(url).text
        assert "the old one" not in browser.get(url).text

    def test_an_attention_check_cannot_be_mended(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        url = "/step/0"
        while 'name="choice"' not in browser.get(url).text:
            url = browser.answer(url).headers["location"]
        browser.post(url, browser.fields(url, choice="Red"))
        browser.post(url, browser.fields(url, choice="Blue"))
        (check,) = feedback.study.results.counts().checks
        assert (check.passed, check.failed) == (0, 1)


class TestLogin:
    def test_guesses_from_one_address_are_stopped(self, effort: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("evenhand.study.server.security.is_password", lambda stored, given: False)
        browser = effort.browser()
        statuses = [browser.login(f"name{at}", "wrong password").status_code for at in range(12)]
        assert statuses[:10] == [422] * 10
        assert statuses[10:] == [429] * 2
        assert int(browser.login().headers["retry-after"]) > 0

    def test_guesses_for_one_name_from_many_addresses_are_stopped_also_after_a_restart(
        self, serve: Any, effort_design: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "evenhand.study.server.security.is_password", lambda stored, given: given == "right password"
        )
        served = serve(effort_design)
        statuses = [served.browser(f"203.0.113.{at}").login("anna", "wrong").status_code for at in range(12)]
        served = serve(effort_design)
        statuses += [served.browser(f"203.0.113.{at}").login("ANNA", "wrong").status_code for at in range(12, 22)]
        assert statuses == [422] * 20 + [429] * 2
        assert served.browser("203.0.113.99").login("anna", "right password").status_code == 429
        assert served.browser("203.0.113.99").login("otto", "right password").status_code != 429

    def test_one_address_does_not_lock_a_name(self, effort: Any) -> None:
        for _ in range(25):
            effort.browser("203.0.113.66").login("anna", "wrong password")
        assert effort.browser("198.51.100.1").login().headers["location"] == "/researcher"

    def test_other_people_do_not_lock_a_browser_that_was_logged_in(self, effort: Any) -> None:
        researcher = effort.researcher()
        researcher.post("/researcher/logout", {"csrf": researcher.token("/researcher")})
        for at in range(21):
            effort.browser(f"203.0.113.{at}").login("anna", "wrong password")
        for _ in range(11):
            effort.browser(researcher.address).login("otto", "wrong password")
        assert effort.browser(researcher.address).login().status_code == 429
        assert effort.browser("192.0.2.9").login().status_code == 429
        assert researcher.login().headers["location"] == "/researcher"

    def test_a_browser_that_was_logged_in_guesses_no_longer_than_others(
        self, effort: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        researcher = effort.researcher()
        researcher.post("/researcher/logout", {"csrf": researcher.token("/researcher")})
        monkeypatch.setattr("evenhand.study.server.security.is_password", lambda stored, given: False)
        assert [researcher.login().status_code for _ in range(21)] == [422] * 20 + [429]
        statuses = [researcher.login(f"name{at}").status_code for at in range(11)]
        assert statuses[-1] == 429, "it has no limit of its own for other names"

    def test_the_count_is_of_a_network_not_of_an_address_in_ipv6(
        self, effort: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("evenhand.study.server.security.is_password", lambda stored, given: False)
        statuses = [
            effort.browser(f"2001:db8::{at:x}").login(f"name{at}", "wrong password").status_code for at in range(11)
        ]
        assert statuses[-1] == 429

    def test_an_unknown_name_costs_as_much_as_a_wrong_password(
        self, effort: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from evenhand.study.server import security

        effort.study.researchers.set_password("anna", security.hash_password("correct horse battery"))
        seen: list[str] = []
        verify = type(security._HASHER).verify

        def noted(self: Any, stored: str, given: str) -> bool:
            seen.append(stored.split("$")[3])
            return bool(verify(self, stored, given))

        monkeypatch.setattr(type(security._HASHER), "verify", noted)
        known, unknown = effort.browser().login("anna", "wrong password"), effort.browser().login("otto")
        assert len(seen) == 2
        assert seen[0] == seen[1]
        assert 'value="anna"' in known.text, "what was typed is kept"
        pages = [re.sub('value="[0-9a-f]{64}"', "", page.text) for page in (known, unknown)]
        assert pages[0].replace("anna", "otto") == pages[1]
        assert known.status_code == unknown.status_code == 422

    def test_a_session_is_new_at_login_and_gone_at_logout(self, effort: Any) -> None:
        browser = effort.browser()
        browser.get("/researcher/login")
        planted = next(iter(browser.jar.values()))
        token = browser.token("/researcher/login")
        browser.login()
        held = httpx.Cookies(dict(browser.jar))
        assert next(iter(held.values())) != planted
        assert browser.token("/researcher") != token
        browser.jar = httpx.Cookies({next(iter(held)): planted})
        assert browser.get("/researcher").headers["location"] == "/researcher/login"
        browser.jar = httpx.Cookies(dict(held))
        out = browser.post("/researcher/logout", {"csrf": browser.token("/researcher")})
        assert "max-age=0" in out.headers["set-cookie"].lower()
        browser.jar = httpx.Cookies(dict(held))
        assert browser.get("/researcher").headers["location"] == "/researcher/login"
        assert browser.get("/api/dashboard").status_code == 401

    def test_a_new_password_ends_old_sessions(self, effort: Any, password_hash: str) -> None:
        researcher = effort.researcher()
        assert researcher.get("/researcher").status_code == 200
        effort.study.researchers.set_password("anna", password_hash)
        assert researcher.get("/researcher").status_code == 303

    def test_a_session_runs_out(self, effort: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        researcher = effort.researcher()
        monkeypatch.setattr("evenhand.study.store.researchers.seconds_of", lambda _: 4e9)
        assert researcher.get("/researcher").headers["location"] == "/researcher/login"

    @pytest.mark.parametrize(
        "url", ["/researcher/export/csv", "/researcher/export/json", "/researcher/bonus.csv", "/api/dashboard"]
    )
    def test_a_participant_gets_nothing_of_the_desk(self, effort: Any, url: str) -> None:
        browser = effort.browser()
        browser.begin()
        assert browser.get(url).status_code == 401
        assert "participant" not in browser.get(url).text


class TestOthers:
    def test_a_cookie_opens_only_its_own_pages(self, feedback: Any) -> None:
        one, two = feedback.browser(), feedback.browser()
        one.begin("?PROLIFIC_PID=one")
        two.begin("?PROLIFIC_PID=two")
        for browser, reason in ((one, "mine alone"), (two, "yours alone")):
            browser.answer("/step/0")
            browser.answer("/step/1", reason=reason)
        assert "mine alone" in one.get("/step/1").text
        assert "mine alone" not in two.get("/step/1").text
        assert "yours alone" not in one.get("/step/1").text

    def test_who_knows_a_recruitment_id_sees_no_answers(self, feedback: Any) -> None:
        owner = feedback.browser()
        owner.begin("?PROLIFIC_PID=abc")
        owner.answer("/step/0")
        owner.answer("/step/1", reason="mine alone")
        headers = {"x-csrf-token": owner.token("/step/1")}
        owner.send("PUT", "/api/draft/1", json={"fields": {"reason": "a draft", "revision": "1"}}, headers=headers)
        stranger = feedback.browser()
        assert stranger.get("/?PROLIFIC_PID=abc").headers["location"] == "/step/2"
        for url in ("/step/0", "/step/1", "/step/2"):
            page = stranger.get(url)
            assert "mine alone" not in page.text
            assert "a draft" not in page.text
        headers = {"x-csrf-token": stranger.form("/step/2")["csrf"]}
        assert stranger.send("PUT", "/api/draft/1", json={"fields": {}}, headers=headers).status_code == 404
        assert stranger.answer("/step/2").headers["location"] == "/step/3"
        assert "mine alone" in owner.get("/step/1").text or "a draft" in owner.get("/step/1").text

    def test_another_id_in_the_same_browser_is_another_person(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin("?PROLIFIC_PID=one")
        browser.answer("/step/0")
        browser.answer("/step/1", reason="of the first")
        browser.begin("?PROLIFIC_PID=two")
        browser.answer("/step/0")
        assert "of the first" not in browser.get("/step/1").text
        assert sum(one.enrolled for one in feedback.study.results.counts().conditions) == 2

    def test_who_withdrew_can_answer_no_more(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        form = browser.fields("/step/1")
        browser.post("/withdraw", {"csrf": form["csrf"]})
        assert browser.get(browser.post("/step/1", form).headers["location"]).headers["location"] == "/study/deleted"
        headers = {"x-csrf-token": form["csrf"]}
        kept = browser.send("PUT", "/api/draft/1", json={"fields": {"reason": "x"}}, headers=headers)
        assert kept.json() == {"kept": False}
        assert feedback.study.results.counts().answers == 0


class TestAnswers:
    @pytest.mark.parametrize("https", [False, True])
    def test_every_answer_has_the_headers(self, serve: Any, effort_design: Any, https: bool) -> None:
        served = serve(effort_design, https=https)
        for browser in (served.browser(), served.researcher()):
            answers = [browser.get(url) for url in PAGES]
            answers.append(browser.post("/consent", {}))
            answers.append(browser.post("/consent", {"a": "b" * 70_000}))
            answers.append(browser.post("/consent", {"a": "\0"}))
            answers.append(browser.post("/consent", headers={"origin": "https://evil.example"}))
            assert {303, 403, 404, 413, 422} <= {answer.status_code for answer in answers}
            for answer in answers:
                assert all(name in answer.headers for name in HEADERS), (answer.url, answer.status_code)
                assert ("strict-transport-security" in answer.headers) == https
                assert "server" not in answer.headers
                if "/static/" not in str(answer.url):
                    assert answer.headers["cache-control"] == "no-store"

    def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(self, effort: Any) -> None:
        policy = dict(
            part.strip().split(" ", 1)
            for part in effort.browser().get("/consent").headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert not any("unsafe" in value or "http" in value or "*" in value for value in policy.values())

    @pytest.mark.parametrize("url", ["/step/0", "/api/draft/0", "/researcher"])
    def test_an_error_of_ours_tells_nothing(
        self, effort: Any, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        browser = effort.researcher()
        browser.begin()
        token, secret = browser.token("/step/0"), "what the person wrote"

        def fails(*_: object, **__: object) -> None:
            raise RuntimeError(secret)

        monkeypatch.setattr(type(effort.study.participants), "by_token", fails)
        monkeypatch.setattr(type(effort.study.researchers), "session", fails)
        answer = send(browser, "PUT", url, token) if "api" in url else browser.get(url)
        assert answer.status_code == 500
        assert all(name in answer.headers for name in HEADERS)
        assert not re.search(rf"Traceback|RuntimeError|\.py|{secret}", answer.text)
        assert "RuntimeError" in caplog.text
        assert secret not in caplog.text

    def test_an_error_of_the_error_page_ends_in_an_answer(self, effort: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: object, **__: object) -> None:
            raise RuntimeError("again")

        monkeypatch.setattr(type(effort.app.state.context), "page", fails)
        answer = effort.browser().get("/consent")
        assert answer.status_code == 500
        assert "RuntimeError" not in answer.text

    @pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PATCH", "DELETE", "PROPFIND", "GE T", "X" * 500])
    def test_odd_methods_are_refused_or_answered(self, effort: Any, method: str) -> None:
        browser = effort.researcher()
        for url in PAGES:
            answer = browser.send(method, url)
            assert answer.status_code in (200, 303, 401, 404, 405)
            assert all(name in answer.headers for name in HEADERS)
            if method == "HEAD":
                assert answer.content == b"" or answer.status_code == 405
            else:
                assert answer.status_code in (404, 405)

    @pytest.mark.parametrize("names", [1, 70], ids=["one", "many"])
    def test_headers_that_arrive_in_one_piece_are_limited_too(self, effort: Any, names: int) -> None:
        headers = {f"x-{number}": "a" * (70_000 // names) for number in range(names)}
        assert effort.browser().get("/consent", headers=headers).status_code == 431
        assert effort.browser().get("/consent", headers={"x": "a" * 40_000}).status_code == 200

    def test_too_many_requests_are_told_to_wait(self, serve: Any, effort_design: Any) -> None:
        served = serve(effort_design, rate=0.5)
        browser = served.browser()
        assert [browser.get("/api/health").status_code for _ in range(2)] == [200] * 2
        refused = browser.get("/consent")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert served.browser("203.0.113.8").get("/api/health").status_code == 200

    def test_an_address_enrols_so_many_people_an_hour_and_others_are_free(self, serve: Any, effort_design: Any) -> None:
        served = serve(effort_design, enrolments=2)
        first = served.browser()
        assert first.begin("?PROLIFIC_PID=1").status_code == 303
        assert served.browser().begin("?PROLIFIC_PID=2").status_code == 303
        refused = served.browser().begin("?PROLIFIC_PID=3")
        assert refused.status_code == 429
        assert 1_700 <= int(refused.headers["retry-after"]) <= 1_800
        assert "try again" in refused.text
        # Who is known goes on, in the same browser or another, and so does everybody elsewhere.
        assert first.get("/").headers["location"] == "/step/0"
        assert served.browser().get("/?PROLIFIC_PID=1").headers["location"] == "/step/0"
        assert served.browser("203.0.113.8").begin("?PROLIFIC_PID=3").status_code == 303
        assert sum(row.enrolled for row in served.study.results.counts().conditions) == 3


class TestProxies:
    @pytest.mark.parametrize("given", ["192.0.2.1", "10.0.0.0/8", "192.0.2.1, 2001:db8::/32", "::1", None])
    def test_are_named_by_address_or_network(self, given: str | None) -> None:
        require_proxies(given)

    @pytest.mark.parametrize("given", ["*", "", "proxy.example", "192.0.2.1,*", "0.0.0.0/0", "::/0", "10.0.0.1/8"])
    def test_that_anybody_could_be_are_refused(self, given: str) -> None:
        with pytest.raises(ConfigError, match="--proxy must be the IP address or network"):
            require_proxies(given)


class TestLogs:
    def test_what_the_database_said_is_in_the_log_and_not_on_the_page(
        self, effort: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sentence = "the database 'study.db' cannot be used: the disk is full."

        def full(_: Any) -> bool:
            raise StoreError(sentence)

        monkeypatch.setattr(type(effort.study), "closed", property(full))
        answer = effort.browser().get("/api/health")
        assert answer.status_code == 503
        assert "disk" not in answer.text
        (said,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        assert sentence in said.getMessage()

    def test_an_outage_of_the_database_is_one_line_and_a_count(
        self, effort: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sentence = "the database 'study' cannot be used: connection refused."

        def away(_: Any) -> bool:
            raise StoreError(sentence)

        later = 0.0
        monkeypatch.setattr(middleware, "monotonic", lambda: later)
        browser = effort.browser()
        with monkeypatch.context() as broken:
            broken.setattr(type(effort.study), "closed", property(away))
            assert [browser.get("/api/health").status_code for _ in range(50)] == [503] * 50
            said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
            assert said == [f"a request failed: {sentence}"]
            later = 61.0
            browser.get("/api/health")
        said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        assert said[1:] == [f"50 more requests failed in 61 s; the last: {sentence}"]
        later = 130.0
        assert browser.get("/api/health").status_code == 200
        assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 2

    def test_a_whole_run_leaves_no_secret_in_the_log(self, effort: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        browser = effort.browser()
        browser.begin("?PROLIFIC_PID=id-of-a-person&lang=en")
        browser.finish(reason="what a person wrote")
        researcher = effort.researcher()
        effort.browser().login("anna", "a wrong password")
        researcher.get("/researcher/export/csv")
        researcher.get("/researcher/bonus.csv")
        form = {"csrf": researcher.token("/researcher"), "who": "id-of-a-person"}
        page = researcher.post("/researcher/withdraw", form)
        code = re.search(r'name="who" value="(p\w{10})"', page.text)
        assert code is not None
        researcher.post("/researcher/withdraw", {**form, "who": code[1], "confirm": "yes"})
        ours = [record for record in caplog.records if not record.name.startswith("httpx")]
        logged = "\n".join(record.getMessage() for record in ours)
        assert "method=POST path=/consent status=303" in logged
        assert "method=GET path=/researcher/bonus.csv status=200" in logged
        secrets = ["id-of-a-person", "what a person wrote", "correct horse battery", "a wrong password", form["csrf"]]
        secrets += [*browser.jar.values(), *researcher.jar.values(), "PROLIFIC_PID", "$argon2"]
        assert not [secret for secret in secrets if secret in logged]
        assert "id-of-a-person" not in json.dumps([one.detail for one in effort.study.researchers.actions()])

    def test_a_path_forges_no_line_of_the_log(self, effort: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "evenhand.study")
        effort.browser().get("/a%0amethod=GET path=/forged status=200")
        effort.browser().get("/" + "a" * 10_000)
        assert all("\n" not in record.getMessage() for record in caplog.records)
        assert max(len(record.getMessage()) for record in caplog.records) < 400


def _routes(app: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield the paths of an application or router with their methods; newer FastAPI keeps routers within routers."""
    for route in app.routes:
        if isinstance(route, Route):
            yield route.path, set(route.methods or ())
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router)
