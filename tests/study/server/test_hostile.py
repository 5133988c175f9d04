"""What a stranger may send to the study server: too much of it, odd characters, code as text, and odd addresses."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import httpx
import pytest

FORMS = ("/consent", "/step/0", "/withdraw", *(f"/researcher/{action}" for action in ("login", "withdraw", "erase")))
SCRIPT = "<script>alert('evenhand')</script>"
FORMULA = '=HYPERLINK("http://evil.example";"click")'


class TestSizes:
    def test_a_large_body_is_refused(self, effort: Any) -> None:
        browser, large = effort.browser(), b"a" * (64 * 1024 + 1)
        form, draft = {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "application/json"}
        for url in FORMS:
            assert browser.send("POST", url, content=large, headers=form).status_code == 413
        assert browser.send("PUT", "/api/draft/0", content=large, headers=draft).status_code == 413

    def test_a_large_body_in_chunks_is_refused(self, effort: Any, chunks: Any) -> None:
        browser = effort.browser()
        browser.begin()
        token = browser.token("/step/0")
        form = {"content-type": "application/x-www-form-urlencoded"}
        sent = browser.send("POST", "/step/0", content=chunks(b"reason=" + b"a" * 8_000, 9), headers=form)
        assert sent.request.headers["transfer-encoding"] == "chunked"
        assert sent.status_code == 413
        draft = {"content-type": "application/json", "x-csrf-token": token}
        assert browser.send("PUT", "/api/draft/0", content=chunks(b" " * 8_000, 9), headers=draft).status_code == 413

    def test_a_body_at_the_limit_is_read(self, effort: Any) -> None:
        browser = effort.browser()
        form = browser.form("/consent")
        padding = 64 * 1024 - len(f"csrf={form['csrf']}&agree=yes&x=")
        assert browser.post("/consent", {"csrf": form["csrf"], "agree": "yes", "x": "a" * padding}).status_code == 303

    @pytest.mark.parametrize("length", ["-1", "x", "1e9", "", "٣"])
    def test_a_length_that_is_no_number_is_refused(self, effort: Any, length: str) -> None:
        headers = {"content-length": length.encode(), "content-type": b"application/x-www-form-urlencoded"}
        assert effort.browser().send("POST", "/consent", content=b"a=b", headers=headers).status_code == 400

    def test_too_many_fields_are_refused(self, effort: Any) -> None:
        browser = effort.browser()
        form = browser.form("/consent")
        assert browser.post("/consent", {**form, **{f"f{at}": "" for at in range(100)}}).status_code == 422
        browser.begin()
        token, many = browser.token("/step/0"), {f"f{at}": "" for at in range(101)}
        headers = {"x-csrf-token": token}
        assert browser.send("PUT", "/api/draft/0", json={"fields": many}, headers=headers).status_code == 422

    def test_a_reason_beyond_its_limit_is_not_stored(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        answer = browser.answer("/step/1", reason="a" * 2_001)
        assert answer.headers.get("location", "") != "/step/2"
        assert feedback.study.results.counts().answers == 0

    @pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/json", ""])
    def test_a_form_in_another_coding_is_refused(self, effort: Any, kind: str) -> None:
        sent = effort.browser().send("POST", "/consent", content=b"csrf=1", headers={"content-type": kind})
        assert sent.status_code == 415


class TestCharacters:
    @pytest.mark.parametrize("body", [b"reason=%ff%fe", b"reason=\xff\xfe", b"reason=a%00b", b"%00=a", b"a%ed%a0%80=1"])
    def test_what_no_database_stores_is_refused(self, effort: Any, body: bytes) -> None:
        browser = effort.browser()
        browser.begin()
        token = browser.token("/step/0").encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        sent = browser.send("POST", "/step/0", content=b"csrf=" + token + b"&" + body, headers=headers)
        assert sent.status_code == 422
        form = browser.form("/researcher/login")["csrf"].encode()
        login = browser.send("POST", "/researcher/login", content=b"csrf=" + form + b"&" + body, headers=headers)
        assert login.status_code == 422

    @pytest.mark.parametrize(
        "body",
        [
            b'{"fields": {"reason": "a\\u0000b"}}',
            b'{"fields": {"reason": "\\ud800"}}',
            b'{"fields": {"\\u0000": "a"}}',
            b'{"fields": {"reason": NaN}}',
            b'{"fields": {"a": {"b": 1}}}',
            b'{"fields": []}',
            b"[]",
            b"null",
            b"{",
            b"",
            b"\xff",
            b"[" * 30_000,
            b"[" * 900 + b"]" * 900,
            b'{"fields": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
            b'{"fields": {"reason": 5}}',
        ],
    )
    def test_a_draft_of_another_shape_is_refused(self, effort: Any, body: bytes) -> None:
        browser = effort.browser()
        browser.begin()
        headers = {"content-type": "application/json", "x-csrf-token": browser.token("/step/0")}
        assert browser.send("PUT", "/api/draft/0", content=body, headers=headers).status_code in (400, 422)

    @pytest.mark.parametrize(
        "query", ["?PROLIFIC_PID=a%00b", "?PROLIFIC_PID=%ff", "?lang=%00", "?PROLIFIC_PID=" + "a" * 5000]
    )
    def test_odd_parameters_do_no_harm(self, effort: Any, query: str) -> None:
        browser = effort.browser()
        assert browser.begin(query).headers["location"] == "/step/0"

    @pytest.mark.parametrize("who", ["%00", "%ff", "a" * 5_000, "%ed%a0%80"])
    def test_odd_names_of_people_do_no_harm(self, effort: Any, who: str) -> None:
        researcher = effort.researcher()
        body = f"csrf={researcher.token('/researcher')}&confirm=yes&who={who}"
        headers = {"content-type": "application/x-www-form-urlencoded"}
        assert researcher.send("POST", "/researcher/withdraw", content=body, headers=headers).status_code in (303, 422)


class TestText:
    def test_a_script_in_a_reason_is_text_wherever_it_is_shown(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        browser.answer("/step/1", reason=SCRIPT)
        shown = browser.get("/step/1").text
        assert "alert(" in shown
        assert SCRIPT not in shown
        researcher = feedback.researcher()
        for url in ("/researcher", "/api/dashboard", "/researcher/export/json"):
            answer = researcher.get(url)
            assert SCRIPT not in answer.text or not answer.headers["content-type"].startswith("text/html")
            assert answer.headers["x-content-type-options"] == "nosniff"
        exported = researcher.get("/researcher/export/json")
        assert exported.json()[0]["reason"] == SCRIPT
        assert exported.headers["content-disposition"].startswith("attachment")

    def test_text_that_turns_around_is_written_out_on_every_page_and_in_the_export(self, feedback: Any) -> None:
        turned = "yes \u202eon\u202c really"
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        browser.answer("/step/1", reason=turned)
        assert "yes \\u202eon\\u202c really" in browser.get("/step/1").text
        researcher = feedback.researcher()
        typed = researcher.post("/researcher/withdraw", {"csrf": researcher.token("/researcher"), "who": turned})
        for page in (browser.get("/step/1"), typed, researcher.get("/researcher")):
            assert "\u202e" not in page.text
        assert researcher.get("/researcher/export/json").json()[0]["reason"] == "yes \\u202eon\\u202c really"

    def test_a_script_that_a_researcher_types_is_text(self, effort: Any) -> None:
        researcher = effort.researcher()
        page = researcher.post("/researcher/withdraw", {"csrf": researcher.token("/researcher"), "who": SCRIPT})
        assert "alert(" in page.text
        assert SCRIPT not in page.text

    def test_a_script_as_a_name_at_login_is_text(self, effort: Any) -> None:
        assert SCRIPT not in effort.browser().login(SCRIPT, "x" * 12).text

    def test_a_script_in_a_draft_is_text(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        headers = {"x-csrf-token": browser.token("/step/0")}
        fields = {"reason": [f'"></textarea>{SCRIPT}'], "answer": ['" onclick="x']}
        assert browser.send("PUT", "/api/draft/0", json={"fields": fields}, headers=headers).json() == {"kept": True}
        page = browser.get("/step/0").text
        assert "alert(" in page
        assert SCRIPT not in page
        assert 'onclick="' not in page

    def test_a_formula_is_neutral_in_a_spreadsheet_and_whole_elsewhere(self, feedback: Any) -> None:
        browser = feedback.browser()
        browser.begin()
        browser.answer("/step/0")
        for at, reason in enumerate([FORMULA, "+1", "-1+2", "@SUM(A1)", "\t=1", FORMULA], 1):
            browser.answer(f"/step/{at}", reason=reason)
        researcher = feedback.researcher()
        rows = list(csv.DictReader(io.StringIO(researcher.get("/researcher/export/csv").text)))
        reasons = [row["reason"] for row in rows if row["reason"]]
        assert f"'{FORMULA}" in reasons
        assert not [reason for reason in reasons if reason[0] in "=+-@\t\r"]
        assert FORMULA in [row["reason"] for row in researcher.get("/researcher/export/json").json()]

    def test_a_formula_as_a_recruitment_id_is_neutral_in_the_bonus_list(self, effort: Any) -> None:
        for number in range(3):
            browser = effort.browser()
            browser.begin(f"?PROLIFIC_PID==1%2B{number}")
            browser.finish(overall=str(1 + 2 * number))
        rows = list(csv.DictReader(io.StringIO(effort.researcher().get("/researcher/bonus.csv").text)))
        assert rows
        assert all(row["recruitment_id"].startswith("'=1+") for row in rows)

    def test_no_page_has_a_script_or_a_style_of_its_own(self, effort: Any) -> None:
        browser = effort.browser()
        browser.begin()
        pages = [browser.get(url).text for url in ("/consent", "/step/0", "/withdraw", "/researcher/login", "/nowhere")]
        pages.append(effort.researcher().get("/researcher").text)
        for page in pages:
            assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|<script(?![^>]* src=\"/static/)", page)


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "../app.py",
            "..%2fapp.py",
            "%2e%2e/app.py",
            "....//app.py",
            "..\\app.py",
            "/etc/passwd",
            "%2fetc%2fpasswd",
            "researcher.css/../../app.py",
            "researcher.css%00",
            "",
            ".",
            "templates",
            "researcher.css/",
            "DESK.CSS",
            "__init__.py",
        ],
    )
    def test_nothing_but_the_static_files_is_served(self, effort: Any, path: str) -> None:
        assert effort.browser().get(f"/static/{path}").status_code == 404

    def test_raw_dots_in_a_path_reach_nothing(self, effort: Any) -> None:
        asked = httpx.URL("http://study.example").copy_with(raw_path=b"/static/../app.py")
        assert effort.browser().get(asked).status_code == 404

    def test_static_files_are_kept_only_under_their_version(self, effort: Any) -> None:
        browser = effort.browser()
        address = re.search(r'href="(/static/researcher\.css\?v=\w+)"', browser.get("/researcher/login").text)
        assert address is not None
        assert "immutable" in browser.get(address[1]).headers["cache-control"]
        assert browser.get("/static/researcher.css?v=old").headers["cache-control"] == "no-cache"

    @pytest.mark.parametrize(
        "query",
        ["?lang=//evil.example", "?next=https://evil.example", "?lang=https://evil.example&next=//evil.example"],
    )
    def test_nobody_is_sent_elsewhere(self, effort: Any, query: str) -> None:
        browser = effort.browser()
        for url in ("/", "/consent", "/researcher", "/researcher/login", "/step/0", "/done"):
            assert browser.get(url + query).headers.get("location", "/").startswith("/")
            assert not browser.get(url + query).headers.get("location", "/").startswith("//")
        slashes = httpx.URL("http://study.example").copy_with(raw_path=b"//evil.example/%2f..")
        assert browser.get(slashes).status_code == 404
        login = browser.post(
            f"/researcher/login{query}",
            {**browser.form("/researcher/login"), "name": "anna", "password": "correct horse battery"},
        )
        assert login.headers["location"] == "/researcher"

    @pytest.mark.parametrize("lang", ["de%0d%0aset-cookie:%20a=b", "en%0d%0a%0d%0a<h1>", "%e2%80%a8", "../en"])
    def test_a_language_injects_no_header(self, effort: Any, lang: str) -> None:
        answer = effort.browser().get(f"/?lang={lang}", headers={"accept-language": "en\x01, de;q=x"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/consent"
        assert len(answer.headers.get_list("set-cookie")) == 1

    @pytest.mark.parametrize("index", ["-1", "99", "99999999999999999999", "x", "0x1", "1e3", "%00"])
    def test_a_step_that_is_none_is_no_error(self, effort: Any, index: str) -> None:
        browser = effort.browser()
        browser.begin()
        assert browser.get(f"/step/{index}").status_code in (303, 404)
        headers = {"x-csrf-token": browser.token("/step/0")}
        sent = browser.send("PUT", f"/api/draft/{index}", json={"fields": {}}, headers=headers)
        assert sent.status_code == 404
