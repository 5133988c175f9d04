"""The commands: help, version, exit codes, what goes to which stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from evenhand import __version__
from evenhand.cli.main import main

Cli = Callable[..., subprocess.CompletedProcess[str]]

# Group a is selected three times as often as group b.
BROKEN = "g,y\n" + "a,1\n" * 90 + "a,0\n" * 10 + "b,1\n" * 30 + "b,0\n" * 70
EVEN = "g,y\n" + "a,1\nb,1\na,0\nb,0\n" * 400
FEW = "g,y\n" + "a,1\nb,1\na,0\nb,0\n" * 4
TOML = """
[data]
source = "d.csv"
groups = ["g"]
predictions = { m = "y" }

[parity]
metrics = ["selection_rate"]
resamples = 200

[[thresholds]]
metric = "selection_rate"
min = 0.8
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.toml").write_text(TOML)
    (tmp_path / "d.csv").write_text(EVEN)
    return tmp_path


@pytest.mark.parametrize("command", ["", "demo", "init", "audit", "data", "data list", "data fetch"])
def test_help(cli: Cli, command: str) -> None:
    for flag in ("--help", "-h"):
        done = cli(*command.split(), flag)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: evenhand {command}".strip() in done.stdout


def test_help_tells_the_exit_codes(cli: Cli) -> None:
    words = " ".join(cli("--help").stdout.split())
    codes = "0 success · 1 a --check threshold is broken · 2 bad input · 3 undecided with --strict · 130 stopped"
    assert codes in words


def test_version(cli: Cli) -> None:
    done = cli("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"evenhand {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["adit"], "No such command 'adit'"),
        (["audit"], "Missing argument"),
        (["audit", "d.csv", "--grups", "g"], "No such option: --grups"),
        (["audit", "d.csv", "--seed", "-1"], "'--seed'"),
        (["audit", "d.csv", "--seed", "x"], "'--seed'"),
        (["demo", "--rows", "5"], "'--rows'"),
    ],
)
def test_usage_mistakes(cli: Cli, arguments: list[str], words: str) -> None:
    done = cli(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


# Exit codes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options", "code", "said"),
    [
        (BROKEN, [], 0, ""),
        (BROKEN, ["--check"], 1, "Check: 1 of 1 comparison with a threshold does not meet it.\n"),
        (BROKEN, ["--check", "--strict"], 1, "Check: 1 of 1 comparison with a threshold does not meet it.\n"),
        (BROKEN, ["--check", "--quiet"], 1, ""),
        (EVEN, ["--check", "--strict"], 0, ""),
        (FEW, ["--check"], 0, ""),
        (FEW, ["--check", "--strict"], 3, "Check: for 1 of 1 comparison with a threshold the data cannot tell.\n"),
        (FEW, ["--check", "--strict", "-q"], 3, ""),
    ],
)
def test_check(cli: Cli, place: Path, data: str, options: list[str], code: int, said: str) -> None:
    (place / "d.csv").write_text(data)
    done = cli("audit", "audit.toml", *options)
    assert (done.returncode, done.stderr) == (code, said)
    assert (place / "out/report.html").exists()


def test_check_needs_thresholds(cli: Cli, place: Path) -> None:
    done = cli("audit", "d.csv", "--groups", "g", "--decisions", "y", "--check", "-q")
    assert done.returncode == 2
    assert done.stderr == (
        "Error: --check needs thresholds: --require 'selection_rate>=0.8' for a data file, or in audit.toml a "
        "[[thresholds]] table with metric and min or max.\n"
    )


def test_strict_needs_check(cli: Cli, place: Path) -> None:
    done = cli("audit", "audit.toml", "--strict")
    assert (done.returncode, done.stderr) == (2, "Error: --strict needs --check; give both.\n")


def test_an_error_of_our_own(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("evenhand.run.auditing"), "make_table", lambda _: 1 / 0)
    done = cli("audit", "audit.toml")
    assert done.returncode == 70
    assert done.stderr == (
        "evenhand stopped on an error of its own: ZeroDivisionError: division by zero\n"
        "Please report it; EVENHAND_DEBUG=1 shows where it happened.\n"
    )
    monkeypatch.setenv("EVENHAND_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["audit", "audit.toml"])


def test_ctrl_c_while_data_is_read(tmp_path: Path) -> None:
    rows = "".join(f"{'ab'[row % 2]},{row % 2},{row / 1_000_000!r}\n" for row in range(1_000_000))
    (tmp_path / "d.csv").write_text("g,y,s\n" + rows)
    command = ["audit", "d.csv", "--groups", "g", "--scores", "s", "--outcome", "y"]
    code = (
        "from evenhand.cli.main import main\nimport evenhand.report, duckdb, scipy.stats\n"
        f"print('ready', flush=True)\nmain({command!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "Stopped.\n")


def test_ctrl_c_anywhere(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("evenhand.run.auditing"), "make_table", interrupted)
    done = cli("audit", "audit.toml")
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


# Streams --------------------------------------------------------------------------------------------------


def test_json_is_all_of_standard_output(cli: Cli, place: Path) -> None:
    done = cli("audit", "audit.toml", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["evenhand"] == __version__
    assert done.stdout == (place / "out/results.json").read_text(encoding="utf-8")


def test_quiet_prints_nothing(cli: Cli, place: Path) -> None:
    done = cli("audit", "audit.toml", "--quiet", "-o", "quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in (place / "quiet").iterdir()) == ["report.html", "results.json", "run.json"]


def test_the_summary(cli: Cli, place: Path) -> None:
    done = cli("audit", "audit.toml")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["Fairness audit", "1,600 people"]
    assert lines[-1] == "Report: out/report.html"
    assert "Traceback" not in done.stderr


def test_many_tables_are_one_line_of_the_summary(cli: Cli, place: Path) -> None:
    rows = [f"{i % 7},{i % 3},{i * 7 % 100 / 100},{i % 2}" for i in range(600)]
    (place / "long.csv").write_text("\n".join(["g,h,s,y", *rows]), encoding="utf-8")
    asked = ("--groups", "g,h,g+h", "--scores", "s", "--outcome", "y", "--metrics", "selection_rate,tpr,fpr")
    done = cli("audit", "long.csv", *asked)
    assert len(list((place / "out").glob("table-*.csv"))) > 1
    assert done.stdout.endswith("Report: out/report.html\nTables too long for the page: out/table-*.csv\n")


def test_a_data_file_that_is_not_there_is_told_before_its_columns_are_asked_for(cli: Cli) -> None:
    done = cli("audit", "nowhere.csv")
    assert done.returncode == 2
    assert "nowhere.csv" in done.stderr
    assert "name its columns" not in done.stderr


def test_characters_that_the_terminal_lacks(place: Path) -> None:
    (place / "d.csv").write_text("g,y\n" + "é🙂,1\nb,1\né🙂,1\nb,0\n" * 20, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200"}
    code = (
        "from evenhand.cli.main import main\nfor more in [], ['--json']:\n"
        "    try: main(['audit', 'audit.toml', *more])\n    except SystemExit as left: assert left.code == 0"
    )
    arguments = [sys.executable, "-c", code]
    done = subprocess.run(arguments, cwd=place, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    summary, _, results = done.stdout.partition(b"Report: out/report.html\n")
    assert b"100.0% (??)" in summary
    assert "é🙂" in results.decode("utf-8")


def test_control_characters_do_not_reach_the_terminal(cli: Cli, place: Path) -> None:
    (place / "d.csv").write_text("g,y\n" + "\x1b[31mred,1\nb,1\n\x1b[31mred,1\nb,0\n" * 20)
    done = cli("audit", "audit.toml")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mre" in done.stdout
    (place / "d.csv").write_text("a\x1b[31m,b\n1,2\n")
    assert "\x1b" not in cli("init", "d.csv", "--force").stderr


def test_nobody_reads_on(place: Path) -> None:
    code = "from evenhand.cli.main import main\nmain(['data', 'list'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as errors:
        assert (process.wait(timeout=30), errors.read()) == (0, "")


def test_seed(cli: Cli, place: Path) -> None:
    seeds = [json.loads(cli("audit", "audit.toml", "--json", "--seed", seed).stdout) for seed in (0, 7)]
    assert [audit["config"]["parity"]["seed"] for audit in seeds] == [0, 7]
    assert json.loads(cli("audit", "audit.toml", "--json").stdout) == seeds[0]


def test_an_unwritable_folder(cli: Cli, place: Path) -> None:
    (place / "file").write_text("x")
    for folder in ("file", "file/below", "/proc/evenhand"):
        done = cli("audit", "audit.toml", "-q", "--out", folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"Error: the folder '{folder}' cannot be written to: ")


# A data file by options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [],
            "to audit a data file name its columns with --groups and --scores, --decisions or --numbers "
            "(and --outcome); or write an audit.toml with: evenhand init d.csv",
        ),
        (["--groups", "g"], "to audit a data file name its columns"),
        (
            ["--groups", "g", "--decisions", "y", "--scores", "y"],
            "two predictions are called 'y'; name one of them otherwise, as in other=y.",
        ),
        (
            ["--groups", "g", "--decisions", "y", "--outcome", "y", "--positive", "2"],
            "--positive is '2', which outcome column 'y' never holds; it holds '0', '1'.",
        ),
        (["--groups", "g", "--decisions", "y", "--decimal", ";"], "--decimal: must be '.' or ','"),
        (["--groups", "g", "--decisions", "y", "--within", "z"], "--within column 'z' is not in the data"),
        (["--groups", "g", "--scores", "y", "--threshold", "2"], "--threshold 2 lies outside the score range 0 to 1"),
    ],
)
def test_bad_options(cli: Cli, place: Path, options: list[str], message: str) -> None:
    done = cli("audit", "d.csv", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_options_name_the_roles(cli: Cli, place: Path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{'xyz'[i % 3]},{i % 4 // 2},{i % 10 / 10},{1 + i % 3},\n" for i in range(120))
    (place / "d.csv").write_text("g,h,y,s,w,e\n" + rows + "a,x,,0.5,1,\n")
    done = cli(
        "audit",
        "d.csv",
        "--json",
        "--groups",
        "g",
        "--groups",
        "h",
        "--groups",
        "g+h",
        "--scores",
        "model=s",
        "--decisions",
        "copy=y",
        "--outcome",
        "y",
        "--positive",
        "0",
        "--threshold",
        "0.3",
        "--weight",
        "w",
        "--drop-missing",
        "--seed",
        "5",
    )
    assert (done.returncode, done.stderr) == (0, "")
    results = json.loads(done.stdout)
    data = results["config"]["data"]
    asked = {"outcome": "y", "positive": "0", "groups": [["g"], ["h"], ["g", "h"]], "weight": "w", "missing": "drop"}
    assert {name: data[name] for name in asked} == asked
    model, copy = data["predictions"]["model"], data["predictions"]["copy"]
    assert (model["column"], model["kind"], model["threshold"]) == ("s", "score", 0.3)
    assert (copy["column"], copy["kind"]) == ("y", "decision")
    assert (results["data"]["rows_used"], results["data"]["rows_dropped"]) == (120, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--groups", "g"], "--groups is for a data file"),
        (["--outcome", "y", "--drop-missing"], "--outcome, --drop-missing are for a data file"),
        (["--threshold", "0.5"], "--threshold is for a data file"),
        (["--weight", "w", "--within", "x", "--positive", "1"], "--positive, --weight, --within are for a data file"),
    ],
)
def test_options_of_a_data_file_beside_a_toml(cli: Cli, place: Path, options: list[str], message: str) -> None:
    done = cli("audit", "audit.toml", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


# Other commands -------------------------------------------------------------------------------------------


def test_demo(cli: Cli, place: Path) -> None:
    done = cli("demo", "--rows", 100, "-o", "here")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Demonstration audit of three credit models\n100 people\n")
    assert done.stdout.endswith("Report: here/report.html\nNext: evenhand init YOUR_DATA.csv\n")


def test_data_list(cli: Cli) -> None:
    done = cli("data", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[:4] == ["Name", "Title", "Rows", "Licence"]
    assert "compas" in done.stdout


def test_data_fetch_of_an_unknown_name(cli: Cli) -> None:
    done = cli("data", "fetch", "compass")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'compass'" in done.stderr
    assert "did you mean 'compas'" in done.stderr


def test_shell_completion() -> None:
    # Without it the shell is guessed from the processes above, which may be `make` and `sh`.
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    arguments = [sys.executable, "-m", "evenhand", "--show-completion", "bash"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "COMPREPLY" in done.stdout


def test_thresholds_of_a_data_file(cli: Cli, place: Path) -> None:
    (place / "d.csv").write_text("g,y\n" + "a,1\nb,0\na,1\nb,1\n" * 50, encoding="utf-8")
    asked = ("audit", "d.csv", "--groups", "g", "--decisions", "y", "--favourable", "selected")
    assert cli(*asked, "--require", "selection_rate>=0.9", "--check").returncode == 1
    assert cli(*asked, "--require", "selection_rate<=0.9", "--check").returncode == 0
    done = cli(*asked, "--require", "selection_rate=0.9")
    assert done.returncode == 2
    assert "such as 'selection_rate>=0.8'" in done.stderr
    assert "--require 'selection_rate>=0.8' for a data file" in cli(*asked, "--check").stderr


def test_options_for_decisions_ranges_cuts_and_metrics(cli: Cli, place: Path) -> None:
    rows = [f"{20 + i % 40},{1 + i % 10},{'deny' if i % 3 else 'grant'}" for i in range(400)]
    (place / "people.csv").write_text("\n".join(["age,decile,decision", *rows]) + "\n")
    done = cli(
        "audit",
        "people.csv",
        "--groups",
        "age",
        "--cuts",
        "age=30,45",
        "--scores",
        "decile",
        "--range",
        "1,10",
        "--threshold",
        5,
        "--decisions",
        "decision",
        "--selected",
        "deny",
        "--metrics",
        "selection_rate",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["config"]["data"]["cuts"] == {"age": [30, 45]}
    assert result["config"]["data"]["predictions"]["decile"]["range"] == [1, 10]
    groups = result["audits"]["parity"]["values"]
    assert {r["metric"] for r in groups} == {"selection_rate"}
    oldest = {r["model"]: r["value"] for r in groups if r["group"] == "45 and over"}
    denied = [row for row in rows if int(row[:2]) >= 45 and row.endswith("deny")]
    assert oldest == pytest.approx({"decile": 10 / 15, "decision": len(denied) / 150})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cuts", "age"], "--cuts got 'age'; write a column and its cut points"),
        (["--cuts", "age=a,b"], "--cuts got 'a,b'; write numbers"),
        (["--range", "1"], "--range got '1'; write two numbers"),
    ],
)
def test_bad_numbers_in_options(cli: Cli, place: Path, options: list[str], message: str) -> None:
    done = cli("audit", "d.csv", "--groups", "g", "--scores", "y", *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_timings_stand_at_the_end(cli: Cli, place: Path) -> None:
    told = cli("audit", "audit.toml", "--timings", "-f", "csv")
    where = told.stdout.partition("Where the time went")[2]
    assert [line.split()[0] for line in where.splitlines()[1:] if line[:1].isalpha()] == [
        "read",
        "parity",
        "verdicts",
        "hash",
        "report",
        "all",
    ]
    printed = cli("audit", "d.csv", "--groups", "g", "--decisions", "y", "--timings", "--json", "-f", "csv")
    assert json.loads(printed.stdout)["audits"]
    assert "Where the time went" in printed.stderr
