"""The JSON endpoints: what they say, and that nothing anybody sends brings them down."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import unsupported_method

from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.study.server.dashboard import Estimate
from evenhand.study.store.answers import DRAFT_BYTES

OPERATIONS = (("get", "/api/health"), ("put", "/api/draft/{index}"), ("get", "/api/dashboard"))


class TestHealth:
    def test_is_open_to_all(self, effort: Any) -> None:
        assert effort.browser().get("/api/health").json() == {"status": "ok"}

    def test_is_bad_without_the_database(self, effort: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def gone(_: Any) -> bool:
            raise OSError("no disk")

        monkeypatch.setattr(type(effort.study), "closed", property(gone))
        answer = effort.browser().get("/api/health")
        assert answer.status_code == 500
        assert "disk" not in answer.text


class TestDraft:
    def test_is_there_after_a_reload_and_gone_after_the_answer(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        token = browser.token("/step/0")
        kept = browser.draft("/api/draft/0", {"reason": ["half a thou"], "revision": ["0"]}, token)
        assert kept.json() == {"kept": True}
        assert "half a thou" in browser.get("/step/0").text
        browser.answer("/step/0", reason="a thought")
        assert "half a thou" not in browser.get("/step/0").text

    def test_of_an_older_answer_is_not_kept(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        token = browser.token("/step/0")
        browser.answer("/step/0", reason="a thought")
        late = browser.draft("/api/draft/0", {"reason": "a late draft", "revision": "0"}, token)
        assert late.json() == {"kept": False}
        assert "a late draft" not in browser.get("/step/0").text

    def test_beyond_its_size_is_not_kept(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        long = {"reason": "a" * DRAFT_BYTES}
        assert browser.draft("/api/draft/0", long, browser.token("/step/0")).json() == {"kept": False}

    @pytest.mark.parametrize("index", [1, 2, 500, 100_000])
    def test_of_a_page_that_is_not_open_yet_is_refused(self, feedback: Any, index: int) -> None:
        browser = feedback.browser()
        browser.begin()
        assert browser.draft(f"/api/draft/{index}", {}, browser.token("/step/0")).status_code == 404

    def test_needs_somebody_who_takes_part(self, feedback: Any) -> None:
        browser = feedback.browser()
        assert browser.draft("/api/draft/0", {}, browser.token("/consent")).status_code == 403

    def test_of_another_type_is_refused(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        headers = {"x-csrf-token": browser.token("/step/0"), "content-type": "text/plain"}
        assert browser.send("PUT", "/api/draft/0", content="{}", headers=headers).status_code == 415


class TestDashboard:
    def test_is_only_for_who_is_logged_in(self, effort: Any) -> None:
        answer = effort.browser().get("/api/dashboard")
        assert answer.status_code == 401
        assert answer.json() == {"error": "Please log in."}

    def test_holds_a_stamp_that_changes_with_the_numbers(self, effort: Any) -> None:
        researcher, browser = effort.researcher(), effort.browser()
        empty = researcher.get("/api/dashboard").json()
        browser.begin()
        browser.answer("/step/0")
        browser.answer("/step/1")
        effort.app.state.dashboard.changed()
        full = researcher.get("/api/dashboard").json()
        assert full["stamp"] != empty["stamp"]
        assert researcher.get("/api/dashboard").json() == full
        page = researcher.get("/researcher").text
        assert f'data-stamp="{full["stamp"]}"' in page
        state = effort.app.state.dashboard.state()
        assert state.counts.answers == 1
        assert sum(one.active for one in state.counts.conditions) == 1
        assert state.names[1] == "set 1, pair 1"
        assert (state.pages[1].times.answers, state.pages[2].waiting) == (1, 1)

    def test_an_undefined_estimate_is_a_sentence(self, serve: Any, effort_design: Any) -> None:
        none = Estimate(
            label="Weight",
            group="income",
            value=None,
            low=None,
            high=None,
            lower=None,
            upper=None,
            n=0,
            answers=0,
            status=shared("undefined", why=Message("too few answers")),
        )
        served = serve(effort_design, estimates=lambda _: [none])
        browser = served.browser()
        browser.begin()
        browser.finish()
        researcher = served.researcher()
        researcher.get("/researcher")
        served.app.state.dashboard.wait(10)
        assert "No number yet: too few answers." in researcher.get("/researcher").text


class TestSchema:
    def test_lists_every_json_endpoint_and_nothing_else(self, effort: Any) -> None:
        paths = effort.app.openapi()["paths"]
        assert {(method, path) for path, methods in paths.items() for method in methods} == set(OPERATIONS)

    @pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/redoc"])
    def test_is_not_served(self, effort: Any, path: str) -> None:
        assert effort.browser().get(path).status_code == 404

    @pytest.mark.parametrize("who", ["anonymous", "participant and researcher"])
    @pytest.mark.parametrize(("method", "path"), OPERATIONS)
    def test_holds_whatever_is_sent(self, effort: Any, who: str, method: str, path: str) -> None:
        schema = schemathesis.openapi.from_dict(effort.app.openapi())
        schema.app = effort.app
        cookies, headers = {}, {}
        if who != "anonymous":
            browser = effort.researcher()
            browser.begin()
            cookies, headers = dict(browser.jar), {"X-CSRF-Token": browser.token("/step/0")}
        operation = schema[path][method.upper()]

        @given(case=operation.as_strategy())
        @settings(
            max_examples=25,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            case.call_and_validate(cookies=cookies, headers=headers, excluded_checks=[unsupported_method])

        send()
