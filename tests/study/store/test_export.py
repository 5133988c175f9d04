"""Exports, counts and backups: what comes out is what went in, on either database."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert

from evenhand.errors import ConfigError
from evenhand.study.flow.design import Step
from evenhand.study.responses import Responses, read_responses
from evenhand.study.store import Store, StoreError, Study, backup, open_store
from evenhand.study.store.study import _hold
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS

HOSTILE = '=HYPERLINK("http://x.example", "click")\n<script>alert(\'é😀\')</script>, "quoted"'
INSTRUCTIONS, PRACTICE = Step(key="instructions", kind="instructions"), Step(key="practice", kind="practice")


def pair(item: str, subject: str, position: int) -> Step:
    return Step(key=f"pair:{item}/{subject}", kind="pair", item=item, subject=subject, position=position)


def fill(study: Study, start: datetime) -> None:
    """Four people: one finished, one in the middle, one who answered nothing, one who withdrew."""
    judged = {
        "trajectory": 1,
        "aggregate": 6,
        "overall": 2,
        "factor_trajectory": 1,
        "factor_aggregate": 0,
        "factor_other": 1,
        "factor_text": "-2 years",
        "predicted": 0.25,
        "risk_reference": 0.3,
        "risk": 0.45,
        "reason": HOSTILE,
    }
    steps = [
        (INSTRUCTIONS, {}),
        (PRACTICE, judged),
        (pair("set 2", "B", 1), judged),
        (Step(key="check:1", kind="check", check=1), {"choice": "blue", "passed": 1}),
        (pair("set 2", "A", 1), {**judged, "overall": 5, "reason": None, "factor_text": None}),
        (Step(key="check:2", kind="check", check=2), {"choice": "red", "passed": 0}),
    ]
    for name, reach in (("done", 6), ("middle", 4), ("silent", 2), ("withdrawn", 6)):
        person, now = study.participants.enrol(name, now=start), start
        for index, (step, payload) in enumerate(steps[:reach]):
            now += timedelta(seconds=10 + index)
            study.answers.save(person, step, index, payload, revision=0, last=index == 5, now=now)
            found = study.participants.by_token(person.token)
            assert found is not None
            person = found
        if name == "withdrawn":
            study.participants.withdraw(person)


def by_overall(responses: Responses) -> dict[str, list[Any]]:
    """Return the tidy table in an order that does not depend on the random codes, without them."""
    columns = responses.to_columns()
    keys = [columns[name].astype(str) for name in ("duration", "checks_total", "overall", "subject")]
    order = np.lexsort(keys)
    return {
        name: [None if value != value else value for value in values[order].tolist()]
        for name, values in columns.items()
        if name != "participant"
    }


@pytest.fixture
def filled(store: Store, make_design: Any, start: datetime) -> Study:
    study = store.register(make_design(conditions={"income": 1.0}))
    fill(study, start)
    return study


def test_the_tidy_table(filled: Study) -> None:
    found = by_overall(filled.results.responses())
    assert found["subject"] == ["A", "B", "B", None]
    assert found["overall"] == [5.0, 2.0, 2.0, None]
    assert found["item"] == ["set 2", "set 2", "set 2", None]
    assert found["condition"] == ["income"] * 4
    assert found["position"] == [1.0, 1.0, 1.0, None]
    assert found["seconds"] == [14.0, 12.0, 12.0, None]
    assert found["duration"] == [75.0, 46.0, 75.0, 21.0]
    assert found["finished"] == [1.0, 0.0, 1.0, 0.0]
    assert found["checks_total"] == [2.0, 1.0, 2.0, 0.0]
    assert found["checks_passed"] == [1.0, 1.0, 1.0, 0.0]
    assert found["reason"] == [None, HOSTILE, HOSTILE, None]
    assert found["factor_text"] == [None, "-2 years", "-2 years", None]
    assert found["predicted"] == [0.25, 0.25, 0.25, None]
    assert found["risk"] == [0.45, 0.45, 0.45, None]


def test_who_only_enrolled_is_in_the_export_without_an_answer(study: Study) -> None:
    assert len(study.results.responses().people["participant"]) == 0
    person = study.participants.enrol("key")
    columns = study.results.responses().to_columns()
    assert columns["participant"].tolist() == [person.code]
    assert columns["item"].tolist() == [None]
    assert np.isnan(columns["duration"]).all()


def test_both_databases_export_the_same(postgres_url: str, tmp_path: Path, make_design: Any, start: datetime) -> None:
    tables = []
    for url in (str(tmp_path / "study.db"), postgres_url):
        with open_store(url) as opened:
            study = opened.register(make_design(conditions={"income": 1.0}))
            fill(study, start)
            tables.append(by_overall(study.results.responses()))
            counts = study.results.counts(now=start)
            tables[-1]["counts"] = [counts]
    assert tables[0] == tables[1]


def test_hostile_text_is_kept_in_the_database_and_harmless_in_the_export(filled: Study, tmp_path: Path) -> None:
    text = filled.results.responses().to_csv()
    assert "'=HYPERLINK" in text
    assert ",=HYPERLINK" not in text
    assert ',"=HYPERLINK' not in text
    assert "'-2 years" in text
    read = read_responses(filled.results.responses().save(tmp_path / "out.csv"), "effort")
    assert by_overall(read) == by_overall(filled.results.responses())


def test_when_answers_were_saved(filled: Study, start: datetime) -> None:
    found = filled.results.saved_at()
    moments = sorted((item, subject, seconds - start.timestamp()) for (_, item, subject), seconds in found.items())
    assert moments == [("set 2", "A", 60.0), ("set 2", "B", 33.0), ("set 2", "B", 33.0)]


def test_clocks_that_differ_stop_no_export(study: Study, start: datetime) -> None:
    person = study.participants.enrol("key", now=start)
    study.answers.save(
        person, pair("1", "A", 1), 0, {"overall": 1}, revision=0, now=start - timedelta(seconds=90), last=True
    )
    late = study.participants.enrol("middle", now=start)
    study.answers.save(late, pair("1", "A", 1), 0, {"overall": 1}, revision=0, now=start - timedelta(seconds=1))
    responses = study.results.responses()
    assert np.isnan(responses.people["duration"]).all()
    assert np.isnan(responses.numbers("seconds")).all()


def test_the_version_changes_with_what_is_exported(study: Study, start: datetime) -> None:
    versions = [study.results.version()]

    def differs() -> bool:
        versions.append(study.results.version())
        return versions[-1] not in versions[:-1]

    person = study.participants.enrol("key", now=start)
    assert differs()
    study.answers.save(person, pair("1", "A", 1), 0, {"overall": 1}, revision=0, now=start)
    assert differs()
    study.answers.save(person, pair("1", "A", 1), 0, {"overall": 2}, revision=1, now=start)
    assert differs(), "an answer changed within the same moment"
    study.answers.save(person, pair("1", "A", 1), 0, {"overall": 2}, revision=1, now=start + timedelta(seconds=5))
    assert not differs(), "a repeated answer changes nothing"
    study.answers.save(person, pair("1", "B", 1), 1, {"overall": 2}, revision=0, last=True, now=start)
    assert differs()
    study.participants.withdraw(person)
    assert differs()
    assert not differs()


def test_an_id_that_no_key_can_hold_is_refused_at_the_start(tmp_path: Path) -> None:
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study

    cases = "\n".join(f"{'x' * (201 if number == 7 else 200 - number)},low,20" for number in range(40))
    (tmp_path / "cases.csv").write_text(f"case,label,age\n{cases}\n")
    (tmp_path / "study.toml").write_text(
        'kind = "disagreement"\nname = "real"\ntitle = "Real"\nconsent = "Yes?"\n[payment]\namount = 1\nminutes = 5\n'
        '[disagreement]\ncases = "cases.csv"\nid = "case"\ndecision = "label"\nlabels = ["low", "high"]\n'
        'shown = ["age"]\n[disagreement.assignment]\nper_critic = 10\nper_case = 2\n'
    )
    with pytest.raises(
        ConfigError, match=r"^an id in column 'case' of the cases has 201 characters, it begins 'x{20}'; give"
    ):
        load_design(read_study(tmp_path / "study.toml"))


def test_a_feedback_study(store: Store, make_design: Any) -> None:
    study = store.register(make_design(kind="disagreement", places=9))
    person = study.participants.enrol("key")
    for index, answer in enumerate(("agree", "too_high")):
        step = Step(key=f"case:{index}", kind="case", item=f"00{index}", position=index + 1)
        study.answers.save(person, step, index, {"decision": "high", "answer": answer, "reason": ""}, revision=0)
    columns = study.results.responses().to_columns()
    assert columns["item"].tolist() == ["000", "001"]
    assert columns["answer"].tolist() == ["agree", "too_high"]
    assert columns["decision"].tolist() == ["high", "high"]
    assert "subject" not in columns
    assert columns["condition"].tolist() == [None, None]


def test_a_real_design_registers(store: Store, tmp_path: Path) -> None:
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study

    cases = "\n".join(f"{number},{'high' if number % 2 else 'low'},{20 + number}" for number in range(40))
    (tmp_path / "cases.csv").write_text(f"case,label,age\n{cases}\n")
    (tmp_path / "study.toml").write_text(
        'kind = "disagreement"\nname = "real"\ntitle = "Real"\nconsent = "Yes?"\n[payment]\namount = 1\nminutes = 5\n'
        '[disagreement]\ncases = "cases.csv"\nid = "case"\ndecision = "label"\nlabels = ["low", "high"]\n'
        'shown = ["age"]\n[disagreement.assignment]\nper_critic = 10\nper_case = 2\n'
    )
    design = load_design(read_study(tmp_path / "study.toml"))
    study = store.register(design)
    person = study.participants.enrol("key")
    plan = design.plan(person.condition, person.place)
    for index, step in enumerate(plan.steps):
        payload = {"decision": "low", "answer": "agree"}
        last = index == len(plan.steps) - 1
        assert study.answers.save(person, step, index, payload, revision=0, last=last).status == "saved"
    assert len(study.results.responses().person) == 10
    assert study.results.responses().people["finished"].tolist() == [1.0]


def test_counts(filled: Study, start: datetime) -> None:
    counts = filled.results.counts(now=start + timedelta(minutes=2))
    (income,) = counts.conditions
    assert (income.enrolled, income.active, income.abandoned, income.finished, income.withdrawn) == (4, 2, 0, 1, 1)
    assert counts.answers == 3
    assert counts.last_answer == start + timedelta(seconds=75)
    assert [(check.check, check.passed, check.failed) for check in counts.checks] == [(1, 2, 0), (2, 0, 1)]
    assert [(page.waiting, page.dropped) for page in counts.pages] == [(0, 0), (0, 0), (1, 0), (0, 0), (1, 0), (0, 0)]
    times = [page.times for page in counts.pages]
    assert [None if one is None else (one.answers, one.median) for one in times] == [
        (3, 10.0),
        (3, 11.0),
        (2, 12.0),
        (2, 13.0),
        (1, 14.0),
        (1, 15.0),
    ]
    later = filled.results.counts(now=start + timedelta(days=1))
    assert (later.conditions[0].active, later.conditions[0].abandoned) == (0, 2)
    assert [(page.waiting, page.dropped) for page in later.pages][2] == (0, 1)


def test_quartiles_are_those_of_numpy(store: Store, make_design: Any, start: datetime) -> None:
    study, spent = store.register(make_design()), [3.0, 8.5, 1.25, 40.0, 7.0]
    for number, seconds in enumerate(spent):
        person = study.participants.enrol(f"key {number}", now=start)
        step = pair("1", "A", 1)
        study.answers.save(person, step, 0, {"overall": 1}, revision=0, now=start + timedelta(seconds=seconds))
    times = study.results.counts(now=start).pages[0].times
    assert times is not None
    assert (times.lower, times.median, times.upper) == tuple(np.quantile(spent, [0.25, 0.5, 0.75]))


def test_counts_of_nothing(study: Study) -> None:
    counts = study.results.counts()
    assert (counts.pages, counts.checks, counts.answers, counts.last_answer) == ((), (), 0, None)
    assert counts.conditions[0].enrolled == 0


@pytest.mark.slow
def test_a_hundred_thousand_answers_in_seconds(tmp_path: Path, make_design: Any) -> None:
    with open_store(str(tmp_path / "study.db")) as opened:
        study = opened.register(make_design(kind="disagreement"))
        people = [
            {
                "id": who,
                "study_id": 1,
                "enrolment": str(who),
                "code": f"p{who:010d}",
                "token": str(who),
                "condition": "",
                "place": who,
                "language": "en",
                "reached": 50,
                "since": 0.0,
                "enrolled_at": 0.0,
                "seen_at": 0.0,
            }
            for who in range(1, 2_001)
        ]
        payload = json.dumps({"decision": "high", "answer": "agree", "reason": "so it is"})
        answers = [
            {
                "participant_id": who,
                "step": f"case:{case}",
                "step_index": case,
                "kind": "case",
                "item": str(case),
                "position": case + 1,
                "seconds": 1.0,
                "payload": payload,
                "revision": 1,
                "saved_at": 2.0,
            }
            for who in range(1, 2_001)
            for case in range(50)
        ]
        with opened.database.writing() as connection:
            connection.execute(insert(PARTICIPANTS), people)
            connection.execute(insert(ANSWERS), answers)
        began = time.process_time()
        responses = study.results.responses()
        middle = time.process_time()
        counts = study.results.counts()
        assert len(responses.person) == counts.answers == 100_000
        # A few times what it takes, so that a quadratic step is seen and a busy machine is not.
        assert middle - began < 15
        assert time.process_time() - middle < 5


def test_a_backup_while_people_answer(store: Store, study: Study, store_url: str, tmp_path: Path) -> None:
    people = [study.participants.enrol(f"key {number}") for number in range(3)]
    stop, acknowledged = threading.Event(), [0, 0, 0]

    def answer(number: int) -> None:
        while not stop.is_set():
            index = acknowledged[number]
            study.answers.save(
                people[number],
                pair(str(index), "A", index + 1),
                index,
                {"overall": 1, "trajectory": 1, "aggregate": 1},
                revision=0,
            )
            acknowledged[number] += 1

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        while min(acknowledged) < 5:
            time.sleep(0.01)
        before = list(acknowledged)
        copy = backup(store_url, tmp_path / "copy.backup")
        after = list(acknowledged)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert copy.stat().st_mode & 0o077 == 0
    with open_store(_restored(copy, store_url)) as opened:
        responses = opened.study("arrests").results.responses()
        found = [int((responses.people["participant"][responses.person] == person.code).sum()) for person in people]
        assert all(low <= number <= high + 1 for low, number, high in zip(before, found, after, strict=True))
        for person, number in zip(people, found, strict=True):
            copied = opened.study("arrests").participants.by_token(person.token)
            assert copied is not None
            assert copied.reached == number, "the copy is of one moment"
    assert [file.name for file in tmp_path.glob(".copy*")] == []


def _restored(copy: Path, url: str) -> str:
    """Bring a backup back, and return where."""
    if "://" not in url:
        return str(copy)
    program = shutil.which("pg_restore")
    if program is None:
        pytest.skip("pg_restore is not installed")
    subprocess.run([program, "--clean", "--if-exists", "--no-owner", f"--dbname={url}", copy], check=True)
    return url


def test_a_backup_overwrites_nothing(store: Store, store_url: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(ConfigError, match="exists already; name another file for the backup"):
        backup(store_url, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    with pytest.raises(ConfigError, match=r"the folder of .* does not exist"):
        backup(store_url, tmp_path / "no" / "file")


def test_backups_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there is no database"):
        backup(str(tmp_path / "none.db"), tmp_path / "copy")
    (tmp_path / "notes.db").write_text("no database" * 1_000)
    with pytest.raises(StoreError, match="cannot be copied: file is not a database"):
        backup(str(tmp_path / "notes.db"), tmp_path / "copy")
    with pytest.raises(StoreError, match="pg_dump could not copy the database") as caught:
        backup("postgresql://anna:hunter2@127.0.0.1:1/study", tmp_path / "copy")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StoreError, match="needs the program pg_dump, which is not installed"):
        backup("postgresql://anna:hunter2@127.0.0.1:1/study", tmp_path / "copy")
    assert {file.name for file in tmp_path.iterdir()} == {"notes.db"}


KILLED = """
import os, signal, sys
from evenhand.study.store import backup as made
module = sys.modules["evenhand.study.store.study"]
module.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
made(sys.argv[1], sys.argv[2])
"""


def test_what_a_killed_backup_left_is_removed_by_the_next(tmp_path: Path, make_design: Any) -> None:
    url, folder = str(tmp_path / "study.db"), tmp_path / "backups"
    folder.mkdir()
    with open_store(url) as opened:
        opened.register(make_design())
    subprocess.run([sys.executable, "-c", KILLED, url, str(folder / "monday.db")], check=False)
    (left,) = folder.iterdir()
    assert left.stat().st_mode & 0o777 == 0o600
    backup(url, folder / "tuesday.db")
    assert [file.name for file in folder.iterdir()] == ["tuesday.db"]
    assert (folder / "tuesday.db").stat().st_mode & 0o777 == 0o600


def test_a_backup_leaves_another_that_is_being_made_alone(tmp_path: Path, make_design: Any) -> None:
    url = str(tmp_path / "study.db")
    with open_store(url) as opened:
        opened.register(make_design())
    running = tmp_path / ".other.db.abc.evenhand-part"
    with open(running, "w") as held:
        assert _hold(held.fileno())
        backup(url, tmp_path / "copy.db")
        assert running.exists()
    backup(url, tmp_path / "another.db")
    assert not running.exists()


def test_a_backup_is_one_file(tmp_path: Path, make_design: Any) -> None:
    with open_store(str(tmp_path / "study.db")) as opened:
        opened.register(make_design()).participants.enrol("key")
        copy = backup(str(tmp_path / "study.db"), tmp_path / "copy.db")
        alone = tmp_path / "elsewhere"
        alone.mkdir()
        shutil.copy(copy, alone / "copy.db")
    with sqlite3.connect(alone / "copy.db") as connection:
        assert connection.execute("SELECT count(*) FROM participants").fetchone() == (1,)
    connection.close()
