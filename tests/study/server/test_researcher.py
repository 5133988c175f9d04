"""The researcher's pages: the dashboard, exports, and what is done with a study."""

from __future__ import annotations

import csv
import io
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.study.flow.design import Design
from evenhand.study.server.dashboard import (
    Estimate,
    LiveEstimates,
    Series,
    Snapshot,
    arrivals,
    first_answers,
    page_names,
    points,
)
from evenhand.study.server.dashboard_charts import axes, dropout, times, trend
from evenhand.study.server.security import hash_password, is_password
from evenhand.study.store import open_store
from evenhand.study.store.records import PageCounts, Times


def estimate(value: float | None = 0.5, **changes: Any) -> Estimate:
    known = value is not None
    told: dict[str, Any] = {
        "label": "Weight",
        "group": "income",
        "value": value,
        "low": 0.4 if known else None,
        "high": 0.6 if known else None,
        "lower": None,
        "upper": None,
        "n": 3,
        "answers": 12,
        "status": OK if known else shared("undefined", why=Message("too few answers")),
    }
    return Estimate(**(told | changes))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, effort_design: Design, make: Any) -> Path:
    """A database of three people who finished, and one who stopped at the third page."""
    path = tmp_path_factory.mktemp("answers") / "study.db"
    with open_store(str(path)) as store:
        served = make(store, effort_design)
        for number in range(3):
            browser = served.browser()
            browser.begin(f"?PROLIFIC_PID=person{number}")
            browser.finish(overall=str(1 + 2 * number), reason=f"reason {number}")
        browser = served.browser()
        browser.begin("?PROLIFIC_PID=stopped")
        browser.answer("/step/0")
        browser.answer("/step/1")
    return path


@pytest.fixture
def answered(answers: Path, effort_design: Design, serve_copy: Any) -> Any:
    """A study in which three people finished and one stopped at the third page."""
    return serve_copy(answers, effort_design)


class TestDashboard:
    def test_is_only_for_who_is_logged_in(self, effort: Any) -> None:
        assert effort.browser().get("/researcher").headers["location"] == "/researcher/login"

    def test_counts_people_pages_and_checks(self, answered: Any) -> None:
        page = answered.researcher().get("/researcher").text
        people = {
            name: [int(number) for number in re.findall(r'<td class="num[^"]*"[^>]*>([\d,]+)</td>', row)]
            for name, row in re.findall(r'<tr><th scope="row">(income|arrests|Together)</th>(.*?)</tr>', page, re.S)
        }
        assert [a + b for a, b in zip(people["income"], people["arrests"], strict=True)] == people["Together"]
        assert people["Together"] == [4, 1, 0, 0, 3, 0]
        assert "page 3 (set 1, pair 2): 0 dropped out, 1 still on it" in page
        assert "To show that you read this, choose Blue." in page
        assert re.search(
            r'choose Blue\.</th><td class="num">3</td><td class="num zero">0</td>\s*<td class="num">100%', page
        )

    def test_an_empty_study_has_a_dashboard(self, feedback: Any) -> None:
        page = feedback.researcher().get("/researcher")
        assert page.status_code == 200
        assert "There are no answers yet." in page.text
        assert "none yet" in page.text

    def test_who_was_not_seen_for_long_has_dropped_out(self, effort: Any) -> None:
        long_ago = datetime.now(UTC) - timedelta(hours=5)
        effort.study.participants.enrol("key", recruitment_id=None, language="en", now=long_ago)
        assert "page 1 (practice): 1 dropped out, 0 still on it" in effort.researcher().get("/researcher").text

    def test_who_is_quiet_for_ten_minutes_is_away(self, effort: Any) -> None:
        begun = datetime.now(UTC) - timedelta(minutes=30)
        for key, minutes in (("quiet", 11), ("busy", 9)):
            person = effort.study.participants.enrol(key, recruitment_id=None, language="en", now=begun)
            step = effort.design.plan(person.condition, person.place).steps[0]
            lately = datetime.now(UTC) - timedelta(minutes=minutes)
            effort.study.answers.save(person, step, 0, {}, revision=0, last=False, now=lately)
        counts = effort.study.results.counts().conditions
        assert sum(one.active for one in counts) == sum(one.away for one in counts) == 1
        page = effort.researcher().get("/researcher").text
        assert re.search(r"<dt>Active now</dt><dd>1</dd>", page)
        assert '<th scope="col" class="num">Away</th>' in page

    def test_shows_the_link_and_the_completion_code(self, effort: Any) -> None:
        page = effort.researcher().get("/researcher").text
        assert "http://study.example/?PROLIFIC_PID=ID" in page
        assert effort.study.completion_code in page

    def test_says_how_many_places_are_taken(self, effort: Any, serve: Any, feedback_design: Any) -> None:
        assert "Places taken" not in effort.researcher().get("/researcher").text
        feedback = serve(feedback_design)
        feedback.browser().begin()
        page = feedback.researcher().get("/researcher").text
        assert re.search(rf"Places taken</dt><dd[^>]*>1 of {feedback_design.places}</dd>", page)

    def test_speaks_of_bonuses_only_where_there_are_some(self, effort: Any, feedback: Any) -> None:
        for served, there in ((effort, True), (feedback, False)):
            researcher = served.researcher()
            asked = researcher.post("/researcher/erase", {"csrf": researcher.token("/researcher")}).text
            assert ("bonus list" in asked) == ("bonus list" in researcher.get("/researcher").text) == there

    def test_says_how_often_logins_failed_but_no_unknown_name_or_address(self, effort: Any) -> None:
        for name in ("anna", "anna", "anna", "my secret password"):
            effort.browser("203.0.113.77").login(name, "wrong password")
        page = effort.researcher().get("/researcher").text
        assert "<td>anna</td><td>failed to log in: 3 times</td>" in page
        assert "<td>(unknown name)</td><td>failed to log in</td>" in page
        assert "my secret password" not in page
        assert "203.0.113.77" not in page

    def test_says_what_was_done_and_by_whom(self, answered: Any) -> None:
        researcher = answered.researcher()
        csrf = {"csrf": researcher.form("/researcher")["csrf"]}
        for action in ("close", "reopen"):
            researcher.post(f"/researcher/{action}", csrf)
        researcher.post("/researcher/erase", {**csrf, "confirm": "yes"})
        researcher.get("/researcher/export/csv")
        done = re.findall(r"<td>anna</td><td>([^<]*)</td>", researcher.get("/researcher").text)
        assert done == [
            "exported the answers: csv",
            "erased the recruitment ids: 4",
            "reopened the study",
            "closed the study",
            "logged in",
        ]

    def test_pages_are_named(self, effort: Any, feedback_design: Any) -> None:
        assert page_names(effort.design)[:3] == ("practice", "set 1, pair 1", "set 1, pair 2")
        assert page_names(effort.design)[-1].startswith("check ")
        assert page_names(feedback_design)[1:3] == ("case 1", "check 1")

    def test_without_a_researcher_the_login_says_how_to_make_one(self, effort: Any) -> None:
        assert "evenhand study password" not in effort.browser().get("/researcher/login").text
        with effort.study._database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM researchers")
        assert "evenhand study password" in effort.browser().get("/researcher/login").text


class TestExports:
    def test_all_formats_hold_the_same_and_can_be_read_back(self, answered: Any, tmp_path: Path) -> None:
        researcher, read = answered.researcher(), {}
        for form in ("csv", "parquet", "json"):
            answer = researcher.get(f"/researcher/export/{form}")
            assert answer.headers["content-disposition"] == f'attachment; filename="who-is-alike.{form}"'
            (tmp_path / f"a.{form}").write_bytes(answer.content)
            read[form] = eh.study.read_responses(tmp_path / f"a.{form}")
        assert read["csv"].to_csv() == read["json"].to_csv() == read["parquet"].to_csv()
        assert len(read["csv"].person) == 13
        assert "person0" not in read["csv"].to_csv()
        assert researcher.get("/researcher/export/xls").status_code == 404

    def test_an_empty_study_can_be_exported(self, effort: Any) -> None:
        researcher = effort.researcher()
        for form in ("csv", "parquet", "json"):
            assert researcher.get(f"/researcher/export/{form}").status_code == 200
        assert researcher.get("/researcher/bonus.csv").status_code == 200

    @pytest.mark.parametrize("url", ["/researcher/export/csv", "/researcher/bonus.csv"])
    def test_what_keeps_answers_from_being_exported_is_said(
        self, answered: Any, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: Any) -> None:
            raise ConfigError("the sets <changed>.")

        for name in ("export", "bonus_list"):
            monkeypatch.setattr(f"evenhand.study.server.researcher.{name}", fails)
        answer = answered.researcher().get(url)
        assert answer.status_code == 422
        assert "This could not be exported: the sets &lt;changed&gt;." in answer.text
        assert "nothing to export" not in answer.text

    def test_the_bonus_list_is_who_finished_and_scored_best(self, answered: Any) -> None:
        paid = rows(answered.researcher().get("/researcher/bonus.csv").text)
        spec = answered.design.spec
        best = {one.participant for one in spec.analyze(answered.study.results.responses()).bonus if one.bonus}
        finished = {row.participant: row.recruitment_id for row in answered.study.participants.bonus_rows()}
        assert {row["participant"] for row in paid} == best & set(finished)
        assert all(row["recruitment_id"] == finished[row["participant"]] for row in paid)
        assert {(row["amount"], row["currency"], row["reason"]) for row in paid} == {("5", "USD", "truth_serum")}

    def test_without_ids_the_bonus_list_has_the_codes(self, answered: Any) -> None:
        answered.study.participants.erase_recruitment_ids()
        paid = rows(answered.researcher().get("/researcher/bonus.csv").text)
        assert paid
        assert all(row["recruitment_id"] == "" and row["participant"].startswith("p") for row in paid)


def test_the_dashboard_works_on_both_databases(store_url: str, effort_design: Any, make: Any) -> None:
    with open_store(store_url) as store:
        served = make(store, effort_design, estimates=lambda known: [estimate(answers=len(known.person))])
        for number in range(2):
            browser = served.browser()
            browser.begin(f"?PROLIFIC_PID={number}")
            browser.finish(reason="Grüße, 你好, \U0001f600")
        refused = browser.send(
            "POST", "/withdraw", content=b"csrf=a%00b", headers={"content-type": "application/x-www-form-urlencoded"}
        )
        assert refused.status_code == 422
        researcher = served.researcher()
        researcher.get("/researcher")
        served.app.state.dashboard.wait(10)
        assert "As of 8 answers" in researcher.get("/researcher").text
        assert served.app.state.dashboard.state().counts.answers == 8
        exported = researcher.get("/researcher/export/json").json()
        assert {row["reason"] for row in exported} == {"Grüße, 你好, \U0001f600"}
        researcher.post("/researcher/erase", {"csrf": researcher.token("/researcher"), "confirm": "yes"})
        assert served.study.participants.by_recruitment_id("0") is None


class TestManaging:
    def test_withdrawing_asks_first_and_takes_a_code_or_an_id(self, answered: Any) -> None:
        researcher = answered.researcher()
        csrf = {"csrf": researcher.form("/researcher")["csrf"]}
        asked = researcher.post("/researcher/withdraw", {**csrf, "who": "person1"}).text
        code = re.search(r'name="who" value="(p\w{10})"', asked)
        assert code is not None
        assert answered.study.results.counts().answers == 13
        sent = researcher.post("/researcher/withdraw", {**csrf, "who": code[1], "confirm": "yes"})
        assert sent.headers["location"] == "/researcher?done=withdrawn"
        assert "were deleted" in researcher.get("/researcher?done=withdrawn").text
        assert answered.study.results.counts().answers == 9
        assert "reason 1" not in researcher.get("/researcher/export/csv").text
        assert sum(one.withdrawn for one in answered.study.results.counts().conditions) == 1
        nobody = researcher.post("/researcher/withdraw", {**csrf, "who": "pnobody", "confirm": "yes"})
        assert nobody.headers["location"] == "/researcher?done=nobody"

    def test_erasing_asks_first(self, answered: Any) -> None:
        researcher = answered.researcher()
        csrf = {"csrf": researcher.form("/researcher")["csrf"]}
        assert "cannot be undone" in researcher.post("/researcher/erase", csrf).text
        assert answered.study.participants.by_recruitment_id("person1") is not None
        researcher.post("/researcher/erase", {**csrf, "confirm": "yes"})
        assert answered.study.participants.by_recruitment_id("person1") is None
        assert answered.study.results.counts().answers == 13

    def test_a_closed_study_takes_nobody_until_it_is_opened(self, effort: Any) -> None:
        begun = effort.browser()
        begun.begin()
        researcher = effort.researcher()
        csrf = {"csrf": researcher.form("/researcher")["csrf"]}
        researcher.post("/researcher/close", csrf)
        assert effort.browser().get("/consent").headers["location"] == "/study/closed"
        assert begun.answer("/step/0").headers["location"] == "/step/1"
        assert "Closed" in researcher.get("/researcher").text
        researcher.post("/researcher/reopen", csrf)
        assert effort.browser().get("/consent").status_code == 200

    def test_a_notice_is_never_of_the_visitors_making(self, effort: Any) -> None:
        assert "pwned" not in effort.researcher().get("/researcher?done=pwned").text


class TestPasswords:
    def test_right_and_wrong(self) -> None:
        stored = hash_password("a long password")
        assert stored.startswith("$argon2id$")
        assert is_password(stored, "a long password")
        assert not is_password(stored, "another password")
        assert not is_password(None, "a long password")
        assert not is_password("no hash at all", "a long password")
        assert not is_password(None, "the password of nobody")

    def test_too_short_or_too_long(self) -> None:
        for password in ("short", "a" * 1_001):
            with pytest.raises(ConfigError, match="a password"):
                hash_password(password)


class TestLiveEstimates:
    def test_points_are_few_and_stay(self) -> None:
        for answers in (0, 1, 9, 10, 79, 80, 81, 640, 5_000, 99_999):
            found = points(answers)
            assert len(found) <= 8
            assert found == sorted(found)
            assert (found or [0])[-1] == answers
        assert set(points(1_000)[:-1]) <= set(points(1_100))

    def test_the_first_answers_are_those_that_arrived_first(self, answered: Any) -> None:
        responses = answered.study.results.responses()
        order = arrivals(answered.study, responses)
        first = first_answers(responses, order, 4)
        assert set(first.answers["reason"]) == {"reason 0"}
        assert len(first.people["participant"]) == 1
        last = responses.people["participant"][responses.person[order[-1]]]
        stopped = answered.study.participants.by_recruitment_id("stopped")
        assert last == stopped.code

    def test_computes_beside_the_page_and_only_what_is_new(self) -> None:
        responses = eh.study.simulate_responses(10, seed=1)
        seen: list[int] = []

        def slow(known: Any) -> list[Estimate]:
            seen.append(len(known.person))
            time.sleep(0.05)
            return [estimate()]

        live = LiveEstimates(slow, lambda: (responses, np.arange(len(responses.person))))
        clock = time.perf_counter()
        assert live.latest(120).series == ()
        assert time.perf_counter() - clock < 0.05
        live.wait(10)
        found = live.latest(120)
        assert found.answers == 120
        assert [n for n, _ in found.series[0].points] == [20, 40, 60, 80, 100, 120]
        assert seen == [120, 100, 80, 60, 40, 20]
        live.forget()
        live.latest(120)
        live.wait(10)
        assert len(seen) == 6
        live.close()
        live.forget()
        live.latest(121)
        assert len(seen) == 6

    def test_does_not_compute_all_the_time(self) -> None:
        responses, times = eh.study.simulate_responses(2, seed=1), []

        def counted(_: Any) -> list[Estimate]:
            times.append(1)
            return [estimate()]

        live = LiveEstimates(counted, lambda: (responses, np.arange(24)))
        for answers in range(24, 30):
            live.latest(answers)
            live.wait(10)
        assert len(times) == len(points(24))

    def test_a_changed_answer_counts(self, serve: Any, effort_design: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("evenhand.study.server.dashboard._LEAST_REST", 0.0)
        monkeypatch.setattr("evenhand.study.server.dashboard._REST", 0.0)
        served = serve(effort_design, estimates=lambda known: [estimate(float(known.answers["overall"][0]))])
        browser = served.browser()
        browser.begin()
        browser.answer("/step/0")
        browser.answer("/step/1", overall="3")
        dashboard, found = served.app.state.dashboard, []
        for overall in ("3", "6"):
            browser.answer("/step/1", overall=overall)
            dashboard._counted = 0.0
            dashboard.state()
            dashboard.wait(10)
            found.append(dashboard.state().snapshot.series[0].now.value)
        assert found == [3.0, 6.0]

    def test_a_failure_is_a_sentence(self, caplog: pytest.LogCaptureFixture) -> None:
        def fails(_: Any) -> list[Estimate]:
            raise RuntimeError("what a person wrote")

        live = LiveEstimates(fails, lambda: (eh.study.simulate_responses(2, seed=1), np.arange(24)))
        live.latest(24)
        live.wait(10)
        assert "could not be computed" in str(live.latest(24).problem)
        assert "what a person wrote" not in caplog.text

    def test_the_dashboard_says_how_many_answers_they_rest_on(self, serve: Any, effort_design: Any) -> None:
        served = serve(effort_design, estimates=lambda known: [estimate(answers=len(known.person))])
        browser = served.browser()
        browser.begin()
        browser.finish()
        researcher = served.researcher()
        for _ in range(100):
            page = researcher.get("/researcher").text
            if "As of 4 answers" in page:
                break
            time.sleep(0.05)
        assert "As of 4 answers" in page
        assert "interval 0.40 to 0.60" in page
        assert "Weight, income: after 4 answers 0.50, interval 0.40 to 0.60" in page


class TestCharts:
    def test_a_trend_says_in_words_what_it_draws(self) -> None:
        series = Series("Weight", "<b>", ((10, estimate(None)), (20, estimate(0.5)), (25, estimate(0.7, low=None))))
        drawn = trend(series, (0.0, 1.0))
        assert "Weight, &lt;b&gt;: after 10 answers undefined: too few answers; after 20 answers 0.50" in drawn
        assert dots(drawn) == 2
        assert 'style="' not in drawn
        assert "<b>" not in drawn
        assert trend(Series("Weight", "", ((10, estimate(None)),)), (0.0, 1.0)) == ""

    def test_what_is_left_open_has_no_middle(self) -> None:
        wide = estimate(0.5, lower=0.3, upper=0.7)
        drawn = trend(Series("Gap", "race", ((10, wide), (20, wide))), (0.0, 1.0))
        assert drawn.count('opacity=".15"') == 2, "the interval, and what is left open"
        assert dots(drawn) == 0
        assert "between 0.30 and 0.70" in drawn

    def test_charts_of_one_kind_share_an_axis(self) -> None:
        series = [
            Series(kind, "", ((10, estimate(value, low=value - 0.1, high=value + 0.1, kind=kind)),))
            for kind, value in (("correlation", 0.5), ("correlation", -0.3), ("weight", 0.5), ("gap", 1.7))
        ]
        shared = axes(Snapshot(10, tuple(series)))
        assert shared["correlation"] == (-1.0, 1.0)
        assert shared["weight"] == (0.0, 1.0)
        assert shared["gap"][-1] >= 1.8
        assert axes(Snapshot(0, (Series("Weight", "", ((0, estimate(None)),)),))) == {"": (0.0, 1.0)}

    @pytest.mark.parametrize("longest", [0.02, 0.1, 0.9, 2.0, 3.7, 40.0, 2_500.0])
    def test_no_two_labels_of_an_axis_are_the_same(self, longest: float) -> None:
        drawn = times([PageCounts(0, 0, 0, Times(1, 0.0, 0.0, longest))], ["page"])
        labels = re.findall(r'<text [^>]*text-anchor="end"[^>]*>([^<]*)<', drawn)
        assert len(set(labels)) == len(labels) >= 3
        values = sorted(float(label.replace(",", "")) for label in labels)
        steps = np.diff(values)
        assert np.allclose(steps, steps[0]), "a label is rounded"

    def test_people_are_drawn_where_they_stopped(self) -> None:
        pages = [PageCounts(0, 0, 0, None), PageCounts(1, 2, 3, Times(9, 1.0, 2.0, 4.0))]
        stopped = dropout(pages, ["consent", "case 1"])
        assert "dropped out</text>" in stopped
        assert "page 2 (case 1): 3 dropped out, 2 still on it" in stopped
        assert "page 2 (case 1): median 2.0 seconds" in times(pages, ["consent", "case 1"])

    @pytest.mark.parametrize("pages", [0, 1, 80, 400])
    def test_any_number_of_pages_can_be_drawn(self, pages: int) -> None:
        counted = [PageCounts(index, index, 1, Times(1, 0.0, 0.0, 0.0)) for index in range(pages)]
        names = [str(index) for index in range(pages)]
        for drawn in (dropout(counted, names), times(counted, names)):
            assert "nan" not in drawn.lower()
            assert drawn.count("<text") < 50


def dots(drawn: str) -> int:
    """Return how many points a chart marks."""
    return sum(path.count("h.01") for path in re.findall(r'stroke-linecap="round" d="([^"]*)"', drawn))
