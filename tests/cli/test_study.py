"""`evenhand study`: every command, on a study whose answers were put into its database directly."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("sqlalchemy", reason="the study server needs evenhand[study]")

import evenhand as eh
from evenhand.cli.main import main
from evenhand.study.flow.design import load_design
from evenhand.study.ratings import Rating, reasons_to_rate
from evenhand.study.schema import Kind
from evenhand.study.store import Study, open_store
from evenhand.study.template import INSTRUCTIONS

Cli = Callable[..., subprocess.CompletedProcess[str]]
COMMANDS = (
    "new",
    "serve",
    "password",
    "simulate",
    "status",
    "export",
    "analyze",
    "recruits",
    "ratings",
    "bonus",
    "backup",
    "close",
    "reopen",
    "withdraw",
    "erase-ids",
)
PAIR = {
    "trajectory": 2,
    "aggregate": 5,
    "overall": 3,
    "factor_trajectory": 1,
    "factor_aggregate": 0,
    "factor_other": 0,
    "factor_text": None,
    "predicted": 0.6,
    "risk": 0.4,
    "risk_reference": 0.3,
    "reason": "=1+1",
}


@pytest.fixture(scope="module", params=["effort", "disagreement"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, kind: str) -> Path:
    """A new study with the answers of twelve people, two of whom stopped in the middle."""
    folder = tmp_path_factory.mktemp(kind)
    with pytest.raises(SystemExit) as left:
        main(["study", "new", str(folder), "--kind", kind])
    assert left.value.code == 0
    path = folder / "study.toml"
    text = path.read_text().replace("per_critic = 50", "per_critic = 10")
    if kind == "disagreement":
        assert [line for line in text.splitlines() if line.startswith("after")][1:] == ["after = 25", "after = 40"]
        text = text.replace("after = 10 ", "after = 1 ").replace("after = 25", "after = 2").replace("= 40", "= 3")
    path.write_text(text, encoding="utf-8")
    design = load_design(eh.study.read_study(path))
    with open_store(str(folder / "study.db")) as store:
        fill(store.register(design), design)
    return folder


def fill(study: Study, design: Any) -> None:
    for number in range(12):
        person = study.participants.enrol(f"key {number}", recruitment_id=f"id-{number}", language="en")
        steps = design.plan(person.condition, person.place).steps
        for index, step in enumerate(steps if number < 10 else steps[:7]):
            payload: dict[str, Any] = {}
            if step.kind == "check":
                payload = {"choice": "Blue", "passed": 1}
            elif step.kind in ("pair", "case") and design.kind == "effort":
                payload = {
                    **PAIR,
                    "predicted": number / 12,
                    "trajectory": 1 + (index + number) % 6,
                    "overall": 1 + (index * number) % 6,
                }
            elif step.kind in ("pair", "case"):
                label = design.cases[step.item][design.spec.disagreement.decision]
                payload = {"decision": label, "answer": ("agree", "disagree")[index % 2], "reason": None}
            last = index + 1 == len(steps)
            assert study.answers.save(person, step, index, payload, revision=0, last=last).status == "saved"


@pytest.fixture
def place(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that study, in the current folder."""
    for path in written.iterdir():
        if path.name in ("study.toml", "study.db", "cases.csv", "income.json", "arrests.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENHAND_STUDY_DATABASE", raising=False)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_help(cli: Cli, command: str) -> None:
    done = cli("study", command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: evenhand study {command}" in done.stdout


# New --------------------------------------------------------------------------------------------------------


def test_new_does_not_overwrite(cli: Cli, place: Path, kind: str) -> None:
    before = (place / "study.toml").read_text()
    done = cli("study", "new", ".", "--kind", kind)
    assert done.returncode == 2
    assert done.stderr == (
        "Error: 'study.toml' exists already; give --force to overwrite it, or name another folder.\n"
    )
    assert (place / "study.toml").read_text() == before
    assert cli("study", "new", ".", "--kind", kind, "--force").returncode == 0
    known: Kind = "effort" if kind == "effort" else "disagreement"
    checks = (1, 2, 3) if known == "effort" else (10, 25, 40)
    text = eh.study.study_template(known, instructions=INSTRUCTIONS[known], checks=checks)
    assert (place / "study.toml").read_text() == text
    assert "\ninstructions = " in text


def test_new_says_what_comes_next(cli: Cli, tmp_path: Path, kind: str) -> None:
    done = cli("study", "new", tmp_path / "mine", "--kind", kind)
    lines = done.stdout.splitlines()
    files = "income.json, arrests.json" if kind == "effort" else "cases.csv"
    assert lines[0] == f"Wrote {tmp_path / 'mine' / 'study.toml'} and {files}."
    assert "replace them before you ask anybody" in done.stdout
    assert lines[-1] == f"Then: evenhand study serve {tmp_path / 'mine' / 'study.toml'}"
    load_design(eh.study.read_study(tmp_path / "mine" / "study.toml"))


def test_new_with_sets_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    cli("study", "new", tmp_path / "a", "--kind", "effort")
    sets = tmp_path / "a" / "income.json"
    done = cli("study", "new", tmp_path / "b", "--kind", "effort", "--data", sets)
    assert (done.returncode, done.stderr) == (0, "")
    spec = eh.study.read_study(tmp_path / "b" / "study.toml")
    assert list(spec.conditions) == ["income"]
    assert (tmp_path / "b" / "income.json").read_text() == sets.read_text()
    assert "Check what each condition is about." in done.stdout


def test_new_with_cases_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    rows = "".join(f"{n},{'ab'[n % 2]},{20 + n % 50},{('yes', 'no')[n % 3 == 0]}\n" for n in range(60))
    (tmp_path / "mine.csv").write_text("case,sex,years,approved\n" + rows)
    done = cli("study", "new", tmp_path / "b", "--kind", "disagreement", "--data", tmp_path / "mine.csv")
    assert (done.returncode, done.stderr) == (0, "")
    asked = eh.study.read_study(tmp_path / "b" / "study.toml").disagreement
    assert asked is not None
    assert (asked.id, asked.decision, asked.labels, asked.groups) == ("case", "approved", ("no", "yes"), ("sex",))
    assert asked.shown == ("years",)
    assert "what the columns of [disagreement] mean, and which are shown: a guess." in done.stdout
    assert "  Not shown to people (a protected group by its name): 'sex'." in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1].startswith("Then: evenhand study serve")


def test_new_shows_few_columns_and_neither_groups_nor_the_decision_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"grant": "1", "refuse": "0"}
    extra = [f"fact_{number}" for number in range(12)]
    lines = [",".join(["case", "label", "race", "female", "race_black", "race_white", "recoded", *extra])]
    for at in range(60):
        label = ("grant", "refuse")[at % 2]
        group = "AB"[at % 3 == 0]
        dummies = [str(at % 2), str(int(group == "A")), str(int(group == "B"))]
        lines.append(
            ",".join([f"s{at}", label, group, *dummies, words[label], *(str((at * n) % 17) for n in range(12))])
        )
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["study", "new", str(tmp_path / "b"), "--kind", "disagreement", "--data", str(tmp_path / "mine.csv")])
    spec = eh.study.read_study(tmp_path / "b" / "study.toml")
    assert spec.kind == "disagreement"
    assert spec.disagreement is not None
    assert spec.disagreement.shown == tuple(extra[:8])
    said = " ".join(capsys.readouterr().out.split())
    assert "Not shown to people (a protected group by its name): 'race', 'female', 'race_black'" in said
    assert "Not shown to people (the decision in other words): 'recoded'." in said
    assert "which are much to read): 'fact_8', 'fact_9', 'fact_10', 'fact_11'." in said


def test_new_says_when_it_is_not_ready(cli: Cli, tmp_path: Path) -> None:
    rows = "".join(f"{n},{'a' if n else 'b'},{n},{('yes', 'no')[n % 2]}\n" for n in range(120))
    (tmp_path / "mine.csv").write_text("case,sex,years,approved\n" + rows)
    done = cli("study", "new", tmp_path / "b", "--kind", "disagreement", "--data", tmp_path / "mine.csv")
    assert done.returncode == 0
    assert "Not ready yet: group 'b' has 0 cases, too few for 2 subsets" in done.stdout
    assert "Then:" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kind", "efort"], "`--kind` got 'efort'; did you mean 'effort'?"),
        (["--kind", "effort", "--data", "none.json"], "there is no file 'none.json'"),
        (["--kind", "effort", "--data", "bad.json"], "'bad.json' is not an instrument of design_sets(): it holds"),
        (
            ["--kind", "disagreement", "--data", "bad.json", "--data", "bad.json"],
            "one file of cases; --data was given 2",
        ),
        (
            ["--kind", "disagreement", "--data", "odd.csv"],
            "no column of 'odd.csv' says by its name that it identifies a case",
        ),
    ],
)
def test_new_refuses(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("[]")
    (tmp_path / "odd.csv").write_text("x,y\n1,2\n1,3\n")
    done = cli("study", "new", "b", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert not (tmp_path / "b").exists()


# What is in the database ------------------------------------------------------------------------------------


def test_no_database_yet(cli: Cli, tmp_path: Path) -> None:
    cli("study", "new", tmp_path, "--kind", "disagreement")
    for command in ("status", "export", "bonus", "analyze", "close", "erase-ids"):
        done = cli("study", command, tmp_path / "study.toml")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(
            f"Error: there is no database '{tmp_path / 'study.db'}' yet; evenhand study serve"
        )
    assert not (tmp_path / "study.db").exists()


def test_status(cli: Cli, place: Path, kind: str) -> None:
    done = cli("study", "status")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{kind} study), open" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[2:] if "ttention" not in line]
    counts = [list(map(int, row[1:])) for row in rows if row[1:] and all(cell.isdigit() for cell in row[1:])]
    assert [sum(column) for column in zip(*counts, strict=True)] == [12, 2, 0, 0, 10, 0]
    assert re.search(r"\d+ answers to (pairs|cases); the last at \d{4}-", done.stdout)


@pytest.mark.parametrize("kind", ["effort"], indirect=True)
def test_status_and_export_on_read_only_media(place: Path) -> None:
    rights = "-dac_override,-dac_read_search,-fowner"
    as_anybody = ["setpriv", "--bounding-set", rights, "--inh-caps", rights] if os.geteuid() == 0 else []
    code = "\n".join(
        ["from contextlib import suppress", "from evenhand.cli.main import main"]
        + [f"with suppress(SystemExit): main(['study', {name!r}])" for name in ("status", "export")]
    )
    words = [*as_anybody, sys.executable, "-c", code]
    place.chmod(0o500)
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    finally:
        place.chmod(0o700)
    assert done.stderr == ""
    status, _, exported = done.stdout.partition("participant,condition")
    assert "12" in status
    assert exported


def test_another_database(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "study.db").rename(place / "other.db")
    assert cli("study", "status").returncode == 2
    assert cli("study", "status", "--database", "other.db").returncode == 0
    monkeypatch.setenv("EVENHAND_STUDY_DATABASE", "other.db")
    assert cli("study", "status").returncode == 0
    done = cli("study", "status", "--database", "mysql://root:secret@host/x")
    assert done.returncode == 2
    assert "a study runs on SQLite or PostgreSQL, not on 'mysql'" in done.stderr
    assert "secret" not in done.stderr


def test_export_in_every_format(cli: Cli, place: Path, kind: str) -> None:
    text = cli("study", "export").stdout
    (place / "a.csv").write_text(text)
    assert (
        cli("study", "export", "-o", "b.csv").stdout == f"Wrote b.csv: 12 people, {text.count(chr(10)) - 1} answers.\n"
    )
    assert (place / "b.csv").read_text() == text
    assert "id-0" not in text
    cli("study", "export", "--format", "json", "-o", "a.json")
    cli("study", "export", "--format", "parquet", "-o", "a.parquet")
    frames = [eh.study.read_responses(str(place / f"a.{end}")).to_csv() for end in ("csv", "json", "parquet")]
    assert frames[0] == frames[1] == frames[2] == text
    if kind == "effort":
        assert ",'=1+1," in text
        assert {row["reason"] for row in json.loads((place / "a.json").read_text())} == {"=1+1"}
    done = cli("study", "export", "--format", "parquet")
    assert (done.returncode, done.stderr) == (2, "Error: Parquet is no text; name a file with --out.\n")
    assert "did you mean 'csv'?" in cli("study", "export", "--format", "cvs").stderr


def test_analyze(cli: Cli, place: Path, kind: str) -> None:
    done = cli("study", "analyze", "--out", "found")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("No exclusion rule left anybody out.\n\nReport: found/report.html\n")
    results = json.loads((place / "found/results.json").read_text())
    assert list(results["audits"]) == ["study" if kind == "effort" else "disagreement"]
    cli("study", "export", "-o", "a.csv")
    again = cli("study", "analyze", "--responses", "a.csv", "--out", "again", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    same = json.loads((place / "again/results.json").read_text())
    assert same["findings"] == results["findings"]


def test_analyze_without_answers(cli: Cli, place: Path) -> None:
    columns = (place / "study.db").read_bytes()
    assert columns
    (place / "none.csv").write_text(cli("study", "export").stdout.splitlines()[0] + "\n")
    done = cli("study", "analyze", "--responses", "none.csv")
    assert (done.returncode, done.stderr) == (2, "Error: nobody has answered yet; there is nothing to analyse.\n")


def test_bonus(cli: Cli, place: Path, kind: str) -> None:
    lines = cli("study", "bonus").stdout.splitlines()
    assert lines[0] == "recruitment_id,participant,amount,currency,reason"
    if kind == "effort":
        assert re.fullmatch(r"id-\d,p\w{10},5,USD,truth_serum", lines[1])
    else:
        assert len(lines) == 1


def test_recruits(cli: Cli, place: Path, kind: str) -> None:
    path = place / "study.toml"
    filters = '[[recruitment.filters]]\ncolumn = "Country"\nvalues = ["Chad"]\n'
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{filters}", encoding="utf-8")
    with open_store(str(place / "study.db")) as store:
        study = store.study(eh.study.read_study(path).name)
        ids = sorted(one for one, _ in study.participants.recruits() if one is not None)
    lines = [f"{one},{'Chad' if number else 'Peru'}" for number, one in enumerate(ids[:3])]
    (place / "prolific.csv").write_text("\n".join(["Participant id,Country", *lines, "5f0,Chad"]), encoding="utf-8")
    done = cli("study", "recruits", "prolific.csv", "--out", "check.csv")
    assert done.returncode == 1
    assert "3 people checked: 2 meet every filter, 1 break one; about 0 the recruiter does not say." in done.stdout
    assert f"  {ids[0]} (" in done.stdout
    assert "Country is 'Peru', not Chad" in done.stdout
    assert "1 person in the export, but not in the study: 5f0" in done.stdout
    assert len((place / "check.csv").read_text().splitlines()) == 4
    (place / "prolific.csv").write_text("Participant id,Land\n5f0,Chad\n", encoding="utf-8")
    done = cli("study", "recruits", "prolific.csv")
    assert done.returncode == 0
    assert "Not checked: the export has no column 'Country'" in done.stderr


def test_ratings_and_the_bonus_from_them(cli: Cli, place: Path, kind: str) -> None:
    done = cli("study", "ratings")
    assert done.returncode != 0
    assert "name two `raters` in [rationales]" in done.stderr
    path = place / "study.toml"
    more = '[rationales]\nraters = ["ann", "ben"]\n\n[[payment.bonuses]]\nby = "reasons"\namount = 7\nshare = 0.1\n'
    text = path.read_text(encoding="utf-8").replace(
        '\n[[payment.bonuses]]\nby = "reasons"\namount = 5\nshare = 0.1\n', ""
    )
    path.write_text(f"{text}\n{more}", encoding="utf-8")
    with open_store(str(place / "study.db")) as store:
        study = store.study(eh.study.read_study(path).name)
        said = study.results.responses()
        for who, item in zip(said.people["participant"][said.person], said.answers["item"], strict=True):
            study.ratings.enter(who, f"case:{item}", "because")  # who wrote nothing, where they did
        reasons = reasons_to_rate(study.results.responses())
        for number, reason in enumerate(reasons):
            for rater in ("ann", "ben"):
                score = 4 if number == 0 else 1 + number % 3
                study.ratings.rate(Rating(reason.participant, reason.step, rater, score))
    done = cli("study", "ratings", "--out", "ratings.csv")
    assert f"{len(reasons)} reasons of people who finished; {len(reasons)} rated by both raters." in done.stdout
    assert "points: Weighted kappa, quadratic: 1.000" in done.stdout
    assert len((place / "ratings.csv").read_text().splitlines()) == 1 + 2 * len(reasons)
    done = cli("study", "bonus", "--out", "bonus.csv")
    assert "reasons" in (place / "bonus.csv").read_text()
    assert "Bonuses for the best reasons are not in it" not in done.stderr


def test_close_and_reopen(cli: Cli, place: Path) -> None:
    assert "is closed." in cli("study", "close").stdout
    assert "closed: nobody new is taken in" in cli("study", "status").stdout
    assert "is open." in cli("study", "reopen").stdout
    assert "study), open" in cli("study", "status").stdout


def test_withdraw(cli: Cli, place: Path) -> None:
    everybody = cli("study", "export").stdout
    assert cli("study", "withdraw", "id-9", "--yes").stdout == "The answers of id-9 are deleted.\n"
    assert 0 < len(cli("study", "export").stdout) < len(everybody)
    before = cli("study", "export").stdout
    code = before.splitlines()[1].split(",")[0]
    done = cli("study", "withdraw", code, "--yes")
    assert (done.returncode, done.stdout) == (0, f"The answers of {code} are deleted.\n")
    assert code in before
    assert code not in cli("study", "export").stdout
    done = cli("study", "withdraw", "nobody", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no participant 'nobody' in " in done.stderr


def test_what_deletes_asks_first(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cli("study", "bonus").stdout
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        for command in (["erase-ids"], ["withdraw", "pabc"]):
            assert cli("study", *command).returncode == 130
    assert cli("study", "bonus").stdout == before


def test_erase_ids(cli: Cli, place: Path) -> None:
    assert b"id-3" in (place / "study.db").read_bytes()
    assert cli("study", "erase-ids", "-y").stdout == "12 recruitment ids deleted.\n"
    assert all(b"id-3" not in path.read_bytes() for path in place.glob("study.db*"))
    assert "id-" not in cli("study", "bonus").stdout


def test_backup(cli: Cli, place: Path) -> None:
    done = cli("study", "backup", "copy.db")
    assert re.fullmatch(r"Wrote copy\.db, [\d,]+ bytes\.\n", done.stdout)
    assert cli("study", "export", "--database", "copy.db").stdout == cli("study", "export").stdout
    done = cli("study", "backup", "copy.db")
    assert (done.returncode, done.stderr[:33]) == (2, "Error: 'copy.db' exists already; ")


def test_password(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cli("study", "password", "--generate")
    assert re.fullmatch(r"The password of researcher is now: (\w{5}-){3}\w{5}\n", done.stdout)
    name = eh.study.read_study("study.toml").name
    with open_store("study.db") as store:
        made = store.study(name).researchers.password_hash("researcher")
    assert made is not None
    assert made.startswith("$argon2id$")
    assert done.stdout.split()[-1] not in made
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "short")
    done = cli("study", "password")
    assert (done.returncode, done.stderr) == (2, "Error: a password needs at least 12 characters; got 5.\n")


# Serve ------------------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_port_in_use(cli: Cli, place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        done = cli("study", "serve", "--port", number)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"Error: port {number} of 127.0.0.1 cannot be used: Address already in use; give another"
    )


def test_a_changed_study_is_not_served(cli: Cli, place: Path) -> None:
    text = (place / "study.toml").read_text()
    (place / "study.toml").write_text(text.replace("seed = 0", "seed = 1"))
    done = cli("study", "serve", "--port", "0")
    assert done.returncode == 2
    assert "--accept" in done.stderr
    assert cli("study", "status").returncode == 0


def test_a_broken_study_is_not_served(cli: Cli, place: Path) -> None:
    (place / "study.toml").write_text((place / "study.toml").read_text().replace("seed = 0", "seeed = 0"))
    done = cli("study", "serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'seed'?" in done.stderr


@pytest.mark.parametrize("kind", ["effort"], indirect=True)
def test_serve_until_ctrl_c(place: Path, port: int) -> None:
    (place / "study.db").unlink()
    printed = []
    for _ in range(2):
        command = [sys.executable, "-m", "evenhand", "study", "serve", "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_for(f"http://127.0.0.1:{port}/api/health", process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out
        printed.append(out)
    assert f"http://127.0.0.1:{port}/?PROLIFIC_PID=ID\n" in printed[0]
    assert f"http://127.0.0.1:{port}/researcher\n" in printed[0]
    assert re.search(r"Password +(\w{5}-){3}\w{5}\n", printed[0])
    assert "Password" not in printed[1]
    assert printed[1].endswith("Stopped. Everything that was acknowledged is stored.\n")
    assert "effort study" in printed[1]


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            with urlopen(url, timeout=5):  # noqa: S310
                return
        except OSError:
            assert process.poll() is None, process.stdout and process.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.1)


def test_cases_of_ones_own_are_found_by_name_or_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"s{at},{'grant' if at % 2 else 'refuse'},{at % 3}" for at in range(60))
    Path("plain.csv").write_text(f"case,label,marks\n{rows}\n", encoding="utf-8")
    Path("odd.csv").write_text(f"student,result,marks\n{rows}\n", encoding="utf-8")
    told = ["--id", "student", "--decision", "result"]
    for folder, given in (("one", ["--data", "plain.csv"]), ("two", ["--data", "odd.csv", *told])):
        with pytest.raises(SystemExit) as left:
            main(["study", "new", folder, "--kind", "disagreement", *given])
        assert left.value.code == 0
        spec = eh.study.read_study(tmp_path / folder / "study.toml")
        assert spec.disagreement is not None
        assert spec.disagreement.labels == ("grant", "refuse")
        assert [check.after for check in spec.attention] == [10, 25, 40]


def test_a_column_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.csv").write_text("student,result\ns1,yes\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(
            [
                "study",
                "new",
                str(tmp_path / "x"),
                "--kind",
                "disagreement",
                "--data",
                str(tmp_path / "odd.csv"),
                "--id",
                "studnt",
            ]
        )
    assert "--id got 'studnt'; did you mean 'student'?" in capsys.readouterr().err
