"""Virtual respondents at a real server process: every branch, nothing lost, not even by `kill -9`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="the study server needs evenhand[study]")
pytest.importorskip("httpx", reason="virtual respondents need httpx")

import evenhand as eh
from evenhand.errors import ConfigError
from evenhand.study.bots import AnswerModel, Visit, Visitors, count_events, right_answers, visit_study
from evenhand.study.bots.browser import as_number, read_page
from evenhand.study.bots.simulation import Answerer, distances
from evenhand.study.cases import Critics
from evenhand.study.flow.design import Design, Step, load_design
from evenhand.study.responses import Responses
from evenhand.study.schema import FACTORS
from evenhand.study.simulate import Respondents
from evenhand.study.spec import read_study
from evenhand.study.store import Store, Study, open_store
from evenhand.study.template import study_template, write_made_up
from tests.study.detours import BusyVisitor, busy, lost_answers

Key = tuple[str, str, str]
"""Who answered, and about what: participant, item and subject."""
ALL_EVENTS = {
    "reloaded",
    "sent an empty form",
    "saved a draft",
    "sent a form twice",
    "changed an answer",
    "sent an old tab",
    "came back",
    "went on in another browser",
}


class Site:
    """A study at a server process of its own, and its database seen past the server."""

    def __init__(self, folder: Path, kind: str, database: str) -> None:
        self.path, self.database = folder / "study.toml", database
        write_made_up(folder, "effort" if kind == "effort" else "disagreement")
        text = study_template("effort" if kind == "effort" else "disagreement")
        text = text.replace("per_critic = 50", "per_critic = 12").replace('groups = ["race"]', 'groups = ["charge"]')
        self.path.write_text(text.replace("per_case = 20", "per_case = 2\ncases = 600"), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.design: Design = load_design(read_study(self.path))
        self.stores: list[Store] = []

    def start(self, *options: str) -> None:
        command = [sys.executable, "-m", "evenhand", "study", "serve", str(self.path), "--database", self.database]
        command += ["--port", str(self.port), "--rate", "0", *options]
        log = self.path.parent / "server.log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        end = time.monotonic() + 60
        while not self.answers():
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            with urlopen(f"{self.address}/api/health", timeout=5) as reply:  # noqa: S310
                return bool(reply.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(30)

    def open(self) -> Study:
        self.stores.append(open_store(self.database))
        return self.stores[-1].study(self.design.name)

    def end(self) -> None:
        self.stop()
        for store in self.stores:
            store.close()

    def visitors(self, people: int, **more: Any) -> Visitors:
        known = more.pop("answers", AnswerModel())
        known = AnswerModel(known.respondents, known.critics, right_answers(self.design.spec))
        return Visitors(people=people, answers=known, patience=60.0, **more)


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    kind, database = request.param
    url = str(tmp_path / "study.db") if database == "sqlite" else request.getfixturevalue("postgres_url")
    made = Site(tmp_path, kind, url)
    made.start()
    yield made
    made.end()


def stored_rows(responses: Responses) -> dict[Key, dict[str, Any]]:
    columns = responses.to_columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    return {(row["participant"], row["item"], row.get("subject") or ""): row for row in rows if row["item"] is not None}


def row_of(step: Step, fields: dict[str, list[str]]) -> dict[str, Any]:
    """Return the row that an answer must give, made from the sent fields alone."""
    sent = {name: values[-1] for name, values in fields.items() if values}
    row: dict[str, Any] = {"reason": sent["reason"] or None, "position": step.position}
    if step.kind != "pair":
        return row | {"answer": sent["answer"]}
    row |= {name: int(sent[name]) for name in ("trajectory", "aggregate", "overall")}
    row |= {name: int(sent[name]) / 100 for name in ("predicted", "risk")}
    return row | {f"factor_{name}": int(name in fields["factors"]) for name in FACTORS}


def allowed_rows(visits: list[Visit], design: Design, study: Study) -> dict[Key, list[dict[str, Any] | None]]:
    """Return what the export may hold: what was last acknowledged, or what was sent after it without an answer."""
    rows: dict[Key, list[dict[str, Any] | None]] = {}
    for visit in visits:
        person = study.participants.by_recruitment_id(visit.recruitment_id)
        if visit.ended == "withdrew" or person is None:
            assert visit.ended == "withdrew" or not visit.acknowledged
            continue
        steps = design.plan(person.condition, person.place).steps
        for index in visit.acknowledged.keys() | visit.unsure.keys():
            step = steps[index]
            if step.item is not None:
                last = visit.acknowledged.get(index)
                rows[person.code, step.item, step.subject or ""] = [
                    None if last is None else row_of(step, last),
                    *(row_of(step, fields) for fields in visit.unsure.get(index, [])),
                ]
    return rows


def assert_all_stored(site: Site, visits: list[Visit]) -> Responses:
    """What was acknowledged, what is stored and what is exported are the same."""
    study = site.open()
    assert [fault for visit in visits for fault in visit.faults] == []
    assert lost_answers(visits, site.design, study) == []
    responses = study.results.responses()
    found, allowed = stored_rows(responses), allowed_rows(visits, site.design, study)
    assert found.keys() <= allowed.keys()
    for key, rows in allowed.items():
        stored = {name: found[key][name] for name in rows[-1] or ()} if key in found else None
        assert any(stored == row if row is None else stored == pytest.approx(row) for row in rows), (key, stored, rows)
    return responses


ON_POSTGRESQL = pytest.param(("effort", "postgresql"), marks=pytest.mark.slow, id="effort-postgresql")
KINDS = [("effort", "sqlite"), ("disagreement", "sqlite"), ON_POSTGRESQL]


@pytest.mark.slow
@pytest.mark.parametrize("site", KINDS, indirect=True, ids="-".join)
def test_every_branch_and_nothing_lost(site: Site) -> None:
    visits = visit_study(site.address, site.visitors(20, visitor=BusyVisitor, seed=3))
    responses = assert_all_stored(site, visits)
    assert count_events(visits).keys() >= ALL_EVENTS
    endings = [visit.ended for visit in visits]
    assert {"finished", "dropped", "withdrew"} == set(endings)
    counts = site.open().results.counts()
    assert sum(one.finished for one in counts.conditions) == endings.count("finished")
    assert sum(one.withdrawn for one in counts.conditions) == endings.count("withdrew")
    assert counts.answers == len(responses.person)
    if site.design.kind == "effort":
        enrolled = [one.enrolled for one in counts.conditions]
        assert max(enrolled) - min(enrolled) <= 1 + endings.count("withdrew")


@pytest.mark.slow
@pytest.mark.parametrize("site", [("effort", "sqlite")], indirect=True, ids="-".join)
def test_the_analysis_finds_how_they_answered(site: Site) -> None:
    people = Respondents(weight=0.9, heterogeneity=0, careless=0, noise=0.3)
    visits = visit_study(site.address, site.visitors(24, drop=0.0, answers=AnswerModel(respondents=people)))
    assert {visit.ended for visit in visits} == {"finished"}
    result = site.design.spec.analyze(assert_all_stored(site, visits))
    for condition in ("income", "arrests"):
        assert result.weights[condition] == pytest.approx(0.9, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("site", [("disagreement", "sqlite")], indirect=True, ids="-".join)
def test_the_audit_finds_what_they_disagreed_with(site: Site, tmp_path: Path) -> None:
    critics = Critics(disagree=0.1, groups={"Felony": 0.6}, careless=0, leaning=0, case=0)
    visits = visit_study(site.address, site.visitors(40, drop=0.0, answers=AnswerModel(critics=critics)))
    responses = assert_all_stored(site, visits)
    table = eh.Table(str(tmp_path / "cases.csv"), id="case", groups="charge")
    found = eh.disagreement(
        table,
        decision="label",
        critic="participant",
        answer="answer",
        case="item",
        answers={"data": responses.to_frame()},
    )
    gap = found.get("gaps", metric="accuracy_equality")
    assert gap.value == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize("site", [("effort", "sqlite"), ON_POSTGRESQL], indirect=True, ids="-".join)
def test_a_killed_server_loses_nothing(site: Site) -> None:
    visitor = busy(drop=0.0, withdraw=0.0, elsewhere=0.0)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(visit_study, site.address, site.visitors(12, visitor=visitor, think=0.05, seed=5))
        for _ in range(2):
            time.sleep(1.5)
            site.kill()
            site.start()
        visits = work.result(timeout=180)
    assert_all_stored(site, visits)
    assert {visit.ended for visit in visits} == {"finished"}
    assert count_events(visits)["lost a connection"] > 0


@pytest.mark.parametrize("site", [("disagreement", "sqlite")], indirect=True, ids="-".join)
def test_a_full_and_a_closed_study(site: Site) -> None:
    site.open().close()
    visits = visit_study(site.address, site.visitors(3))
    assert [visit.ended for visit in visits] == ["closed"] * 3
    assert [visit.faults for visit in visits] == [[]] * 3


@pytest.mark.parametrize("site", [("effort", "sqlite")], indirect=True, ids="-".join)
def test_ctrl_c_stops_the_server_cleanly(site: Site) -> None:
    visit_study(site.address, site.visitors(2, drop=0.0))
    assert site.stop() == 0
    log = (site.path.parent / "server.log").read_text()
    assert log.endswith("Stopped. Everything that was acknowledged is stored.\n")
    assert "Traceback" not in log


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["2"])
def test_several_processes_serve_one_study(tmp_path: Path, workers: str) -> None:
    site = Site(tmp_path, "effort", str(tmp_path / "study.db"))
    site.start("--workers", workers)
    try:
        visits = visit_study(site.address, site.visitors(12, visitor=BusyVisitor, seed=8))
        assert_all_stored(site, visits)
    finally:
        site.end()


def test_nobody_there() -> None:
    with pytest.raises(ConfigError, match=r"no study answers at http://127\.0\.0\.1:9;"):
        visit_study("http://127.0.0.1:9", Visitors(people=1))
    with pytest.raises(ConfigError, match="must start with http:// or https://; got 'ftp://x'"):
        visit_study("ftp://x", Visitors(people=1))


# Reading pages and answering them ---------------------------------------------------------------------------

PAIR = """<p>Risk of Household K: 22&nbsp;%</p><table><thead><tr><td></td><th>K</th><th>L</th></tr></thead>
<tr><th>2019</th><td>${}</td><td>${}</td></tr><tr><th>2020</th><td>${}</td><td>${}</td></tr></table>
<form method="post" action="/step/3"><input type="hidden" name="csrf" value="c"><input type="hidden" name="revision"
value="0"><input type="radio" name="trajectory" value="1"><input type="radio" name="trajectory" value="6" checked>
<textarea name="reason">
so &lt;b&gt;</textarea><select name="s"><option value="a"><option value="b" selected></select>
<input name="gone" disabled value="x"><button name="go" value="1">Next</button></form>"""


def test_a_page_is_read_as_a_browser_reads_it() -> None:
    page = read_page("/step/3", 200, PAIR.format("10,000", "5", "20,000", "10"))
    assert page.form is not None
    assert page.form.values() == {
        "csrf": ["c"],
        "revision": ["0"],
        "trajectory": ["6"],
        "reason": ["so <b>"],
        "s": ["b"],
    }
    assert page.form.choices("trajectory") == ["1", "6"]
    assert page.series() == [[10_000, 20_000], [5, 10]]
    assert page.percent == 22
    assert read_page("/step/4", 200, PAIR).form is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.234,5 €", 1234.5), ("12", 12), ("−3", -3), ("1\u202f200", 1200), ("", None), ("a1b2", None), ("0.25", 0.25)],
)
def test_numbers_in_cells(text: str, number: float | None) -> None:
    assert as_number(text) == number


def test_distances_are_between_0_and_1() -> None:
    same = read_page("/step/3", 200, PAIR.format("10", "10", "20", "20"))
    opposite = read_page("/step/3", 200, PAIR.format("10", "20", "20", "10"))
    poor = read_page("/step/3", 200, PAIR.format("10", "100", "20", "110"))
    assert distances(same) == (0, 0)
    assert distances(opposite) == (1, 0)
    assert distances(poor) == (0, 1)
    assert distances(read_page("/step/3", 200, "<p>nothing</p>")) == (0.5, 0.5)


def test_careful_people_pass_checks_and_careless_ones_do_not() -> None:
    choices = "".join(f'<input type="radio" name="choice" value="{one}">' for one in ("Dog", "Chair", "Horse"))
    page = read_page("/step/2", 200, f'<p>Which is no animal?</p><form method="post">{choices}</form>')
    assert page.form is not None
    right = {frozenset(("Dog", "Chair", "Horse")): "Chair"}
    shares = []
    for careless in (0.0, 1.0):
        who = AnswerModel(Respondents(careless=careless), Critics(careless=careless), right)
        answerers = [Answerer(who, np.random.default_rng(seed)) for seed in range(400)]
        shares.append(np.mean([answerer.fill(page, page.form)["choice"] == ["Chair"] for answerer in answerers]))
    assert shares[0] == pytest.approx(0.98, abs=0.02)
    assert shares[1] == pytest.approx(0.3 + 0.7 / 3, abs=0.08)
