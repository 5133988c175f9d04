"""Flags for every argument that a message names, errors for programs, and `evenhand doctor`."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from shlex import quote

import pytest

from evenhand.cli import commands
from evenhand.cli.audit import audit
from evenhand.cli.flags import COMMAND, FLAGS
from evenhand.cli.init import init
from evenhand.errors import DataError, EvenhandError, error_messages_for, problem
from evenhand.messages import language
from evenhand.messages.settings import FILE
from evenhand.table.files import FileOptions
from evenhand.table.roles import Roles

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{'ab'[i % 2]};{'xy'[i // 2 % 2]};{i % 3 % 2};{'NA' if i == 7 else i % 10 / 10}" for i in range(80)]
    (tmp_path / "d.csv").write_text("g;h;y;s\n" + "\n".join(rows) + "\n")
    return tmp_path


# Flags ----------------------------------------------------------------------------------------------------


def test_every_argument_that_a_message_translates_is_a_flag() -> None:
    options = {"score_range": "range", "id_column": "id"}
    assert {options.get(name, name) for name in inspect.signature(audit).parameters} >= FLAGS


def test_every_option_of_the_readers_is_a_flag() -> None:
    options = set(FileOptions.model_fields) - {"types_from_all_rows"}
    assert options <= FLAGS
    assert options - {"memory_limit"} <= set(inspect.signature(init).parameters)  # a first look takes few rows


def test_every_role_of_a_table_is_a_flag() -> None:
    assert set(Roles.model_fields) - {"missing", "predictions", "outcome_kind"} <= FLAGS


def test_options_of_the_readers_and_lists_of_columns(cli: Cli, place: Path) -> None:
    given = ("d.csv", "--groups", "g,h", "--groups", "g+h", "--scores", "s", "--delimiter", ";", "--drop-missing")
    done = cli("audit", *given, "--missing-values", "NA", "--metrics", "selection_rate,mean_score", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert written["config"]["data"]["groups"] == [["g"], ["h"], ["g", "h"]]
    assert written["config"]["parity"]["metrics"] == ["selection_rate", "mean_score"]
    assert written["data"]["rows_dropped"] == 1
    (place / "odd.csv").write_text('"g,h";"a+b";y\n' + "a;x;1\nb;y;0\n" * 20)
    done = cli("audit", "odd.csv", "--groups", "g,h", "--groups", "a+b", "--decisions", "y", "--json")
    assert json.loads(done.stdout)["config"]["data"]["groups"] == [["g,h"], ["a+b"]]


def test_labels_and_columns_of_0_and_1(cli: Cli, place: Path) -> None:
    (place / "hot.csv").write_text("race_black,race_white,sex,y\n" + "1,0,0,1\n0,1,1,0\n0,0,1,1\n" * 20)
    given = ("--groups", "race,sex", "--one-hot", "race=race_black,race_white", "--labels", "sex:0=men,1=women")
    done = cli("audit", "hot.csv", *given, "--decisions", "y", "--metrics", "selection_rate", "--json")
    assert done.returncode == 0, done.stderr
    groups = {value["group"] for value in json.loads(done.stdout)["audits"]["parity"]["values"]}
    assert groups >= {"black", "white", "none of these", "men", "women"}
    done = cli("audit", "hot.csv", "--groups", "race", "--one-hot", "race=race_black", "--decisions", "y")
    assert "Error: --one-hot 'race' needs at least two columns, each named once; got ['race_black']." in done.stderr


@pytest.mark.parametrize(
    ("start", "name", "words"),
    [
        (b"PK\x03\x04", "d.csv", "is a zip archive by its contents, whatever its name says; unpack it first."),
        (b"PAR1", "d.json", "is a Parquet file by its contents"),
    ],
)
def test_a_file_that_is_something_else_inside(cli: Cli, place: Path, start: bytes, name: str, words: str) -> None:
    (place / name).write_bytes(start + bytes(100))
    done = cli("audit", name, "--groups", "g", "--scores", "s")
    assert done.returncode == 2
    assert words in done.stderr


# Translation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "python", "flags", "settings"),
    [
        (
            "with `missing='drop'`.",
            "with missing='drop'.",
            "with --drop-missing.",
            'with `missing = "drop"` in [data].',
        ),
        (
            "give `cuts={'my age': [1.5, 2]}`",
            "give cuts={'my age': [1.5, 2]}",
            "give --cuts 'my age'=1.5,2",
            'give `cuts = { "my age" = [1.5, 2] }`',
        ),
        ("`kind='score'` here", "kind='score' here", "--scores here", '`kind = "score"` here'),
        ("`groups=['column', ...]`.", "groups=['column', ...].", "--groups column.", '`groups = ["column"]`.'),
        ("`reference` is wrong", "`reference` is wrong", "`reference` is wrong", "`reference` is wrong"),
        (
            "`missing_values=['N/A', '-']`",
            "missing_values=['N/A', '-']",
            "--missing-values N/A --missing-values '-'",
            '`missing_values = ["N/A", "-"]`',
        ),
        ("`missing='keep'`", "missing='keep'", "missing='keep'", '`missing = "keep"`'),
        (
            "`missing='drop' in eh.Table`",
            "missing='drop' in eh.Table",
            "--drop-missing",
            '`missing = "drop"` in [data]',
        ),
        ("the `key` of people", "the `key` of people", "the --key of people", "the `key` of people"),
        ("threshold=5 is text", "threshold=5 is text", "threshold=5 is text", "threshold=5 is text"),
    ],
)
def test_settings_become_flags_and_settings_of_a_file(sentence: str, python: str, flags: str, settings: str) -> None:
    message = problem(sentence)
    assert message.text == python
    assert language().render(message, COMMAND) == flags
    assert language().render(message, FILE) == settings


@pytest.mark.parametrize("value", ["threshold=5", "`threshold=5`", "missing='drop'", "{value}", "--range"])
def test_a_value_of_the_data_is_never_taken_for_a_setting(value: str) -> None:
    message = problem("column {column!r} holds {value}; drop it with `missing='drop'`.", column=value, value=value)
    said = language().render(message, COMMAND)
    assert said == f"column {value!r} holds {value}; drop it with --drop-missing."


def test_the_value_of_a_setting_may_come_from_the_data() -> None:
    message = problem("give `missing_values={found!r}`.", found=("N/A", "a b"))
    assert message.text == "give missing_values=('N/A', 'a b')."
    assert language().render(message, COMMAND) == "give --missing-values N/A --missing-values 'a b'."


@pytest.mark.parametrize("column", ["age, ...", "x in y", "a`b", "a{b}", "a'g\"e"])
def test_the_value_of_a_setting_is_not_read_from_its_text(column: str) -> None:
    cuts = {column: [25, 45]}
    message = problem("give `cuts={cuts}`.", cuts=cuts)
    assert message.text == f"give cuts={cuts}."
    assert language().render(message, FILE) == f"give `cuts = {{ {json.dumps(column)} = [25, 45] }}`."
    again = pickle.loads(pickle.dumps(message))  # noqa: S301
    assert language().render(again, COMMAND) == f"give --cuts {quote(column)}=25,45."


def test_every_problem_names_flags_and_other_errors_pass() -> None:
    with pytest.raises(DataError) as told, error_messages_for(COMMAND):
        raise DataError([problem("a needs `missing='drop'`."), problem("b needs `decimal=','`.")])
    assert told.value.problems == ("a needs --drop-missing.", "b needs --decimal ','.")
    assert "--drop-missing" in str(told.value)
    with pytest.raises(KeyError), error_messages_for(FILE):
        raise KeyError("missing='drop'")
    assert issubclass(DataError, EvenhandError)


# For programs ---------------------------------------------------------------------------------------------


def test_errors_as_json(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("audit", "d.csv", "--groups", "rcae", "--scores", "scroe")
    for words in (("--json-errors", *given), (*given, "--json-errors")):
        done = cli(*words)
        assert (done.returncode, done.stdout) == (2, "")
        told = json.loads(done.stderr)
        assert (told["error"], told["exit_code"], len(told["problems"])) == ("DataError", 2, 2)
        assert told["problems"][0].startswith("group column 'rcae' is not in the data")
    told = json.loads(cli("audit", "--nope", "--json-errors").stderr)
    assert (told["error"], told["exit_code"]) == ("NoSuchOption", 2)
    for error, name, code in ((KeyboardInterrupt(), "KeyboardInterrupt", 130), (RuntimeError(), "InternalError", 70)):

        def fail(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        monkeypatch.setattr("evenhand.cli.audit._run", fail)
        told = json.loads(cli("audit", "d.csv", "--groups", "g", "--scores", "s", "--json-errors").stderr)
        assert (told["error"], told["exit_code"]) == (name, code)


# Doctor ---------------------------------------------------------------------------------------------------


def test_doctor_says_what_is_there(cli: Cli) -> None:
    done = cli("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"numpy {metadata.version('numpy')}" in re.sub(" +", " ", done.stdout)
    assert "Everything that evenhand needs works." in done.stdout


def test_doctor_says_what_is_missing_and_the_line_that_installs_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package in ("polars", "skops", "numba"):
            raise metadata.PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(commands, "version", version)
    monkeypatch.setattr(commands, "_broken_features", lambda: iter(["the disk"]))
    done = cli("doctor")
    assert done.returncode == 1
    for package, line in {"polars": "polars", "skops": "'evenhand[models]'", "numba": "evenhand"}.items():
        assert any(package in row and f"pip install {line}" in row for row in done.stdout.splitlines())
    assert done.stdout.rstrip().endswith("Not working: numba; the disk")


def test_doctor_tells_of_what_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("evenhand.core.files.write_files", fail)
    assert list(commands._broken_features()) == [
        "reading a file, drawing a chart and writing it failed (OSError: no room)"
    ]
