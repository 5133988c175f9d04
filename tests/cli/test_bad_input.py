"""Bad input on the command line: exit code 2, one clear message, never a traceback; odd but sound input works."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.errors import ConfigError
from evenhand.messages import showable

Cli = Callable[..., subprocess.CompletedProcess[str]]

ROWS = ["a,1,0.2", "b,0,0.7", "a,0,0.4", "b,1,0.9"] * 15
GOOD = "\n".join(["g,y,s", *ROWS]) + "\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(cli: Cli, *arguments: object) -> str:
    """Run a command that must fail on its input; return the one message."""
    done = cli("audit", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("Error") == 1
    assert "Traceback" not in done.stderr
    assert not Path("out").exists()
    return done.stderr.removeprefix("Error: ").rstrip("\n")


def by_decision(path: object) -> tuple[object, ...]:
    return (path, "--groups", "g", "--decisions", "y")


def by_score(path: object) -> tuple[object, ...]:
    return (path, "--groups", "g", "--scores", "s")


def groups_found(cli: Cli, *arguments: object) -> list[str]:
    """Run an audit that must work; return the groups in its results."""
    done = cli("audit", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    records = json.loads(done.stdout)["audits"]["parity"]["values"]
    return list(dict.fromkeys(record["group"] for record in records if record["group"] != "(overall)"))


# Too little data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file 'd.csv' is empty (0 bytes)."),
        ("g,y,s\n", "the data has no rows."),
        ("g,y,s", "the data has no rows."),
        ("g,y,s\na,1,0.5\n", "group column 'g' has only one group ('a'); there is nothing to compare: leave it out."),
        (
            GOOD.replace("b,", "a,"),
            "group column 'g' has only one group ('a'); there is nothing to compare: leave it out.",
        ),
        (
            GOOD.replace("a,", ",").replace("b,", ","),
            "group column 'g' has no values: every row is missing.",
        ),
        ("g,y,s\na,,\nb,,\n", "prediction column 'y' has no values: every row is missing."),
        (
            "g,y,s\n" + "".join(f"g{row},1,0.5\n" for row in range(5000)),
            "group column 'g' has 5,000 groups, more than 1,000; is it an identifier? Choose something coarser.",
        ),
        (
            "g,y,y\na,1,0\nb,0,1\n",
            "the header of 'd.csv' has the column 'y' more than once; rename the columns so that each is unique.",
        ),
        ("g,y,s\na,1\nb,0,0.5\n", "'d.csv' could not be read: line 2 has 2 fields where the header has 3 ('a,1')."),
        (
            "gg,yy\na,1\nb,0\n",
            "2 problems with the data:\n"
            "  - group column 'g' is not in the data; did you mean 'gg'?\n"
            "  - prediction column 'y' is not in the data; did you mean 'yy'?",
        ),
    ],
)
def test_tables(cli: Cli, place: Path, content: str, message: str) -> None:
    write(place / "d.csv", content)
    assert refusal(cli, *by_decision("d.csv")) == message


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            ["low", "high"] * 2,
            "score column 's' (model 's') holds text (such as 'high', 'low'), not numbers; "
            "convert it; words for missing values need --missing-values high.",
        ),
        (
            ["0.5", "1.5", "inf", "0"],
            "score column 's' lies outside 0 to 1 in 2 rows (such as '1.5', 'inf'); "
            "rescale it, give its --range lowest,highest and --threshold, or for a number such as a salary say "
            "--numbers.",
        ),
        (
            ["0.5", "", "nan", "0"],
            "prediction column 's' is missing in 2 rows of 4 (rows 2, 3); fill them, or drop them with --drop-missing.",
        ),
        ([""] * 4, "score column 's' (model 's') has no values: every row is missing."),
    ],
)
def test_scores(cli: Cli, place: Path, scores: list[str], message: str) -> None:
    write(place / "d.csv", "g,s\n" + "".join(f"{'ab'[i % 2]},{score}\n" for i, score in enumerate(scores)))
    assert refusal(cli, *by_score("d.csv")) == message


# Broken files ---------------------------------------------------------------------------------------------


def test_broken_files(cli: Cli, place: Path) -> None:
    pq.write_table(pa.table({"g": ["a", "b"] * 500, "y": [1, 0] * 500}), place / "whole.parquet")
    broken: dict[str, tuple[bytes, str]] = {
        "cut.parquet": ((place / "whole.parquet").read_bytes()[:-100], "No magic bytes found at end of file"),
        "text.parquet": (GOOD.encode(), "No magic bytes found at end of file"),
        "cut.json": (b'[{"g": "a", "y": 1}, {"g":', "unexpected end of data"),
        "words.json": (b"hello", "Malformed JSON"),
        "cut.csv.gz": (gzip.compress(GOOD.encode())[:20], "ended before the end-of-stream marker"),
        "quotes.csv": (b'g,y\n"a,1\nb,0\n', "line 3 is not valid CSV"),
        "windows.csv": ("g,y\n“a”,1\nb,0\n".encode("cp1252"), "it is not all LATIN-1; save it as UTF-8."),
    }
    for name, (content, words) in broken.items():
        write(place / name, content)
        message = refusal(cli, *by_decision(name))
        assert message.startswith(f"'{name}' could not be read: "), name
        assert words in message, name
        assert "\n" not in message, name


def test_paths_that_lead_nowhere(cli: Cli, place: Path) -> None:
    write(place / "people.csv", GOOD)
    write(place / "notes.docx", "x")
    assert refusal(cli, *by_decision("poeple.csv")) == "there is no file 'poeple.csv'; did you mean 'people.csv'?"
    assert refusal(cli, *by_decision(".")) == "'.' is a folder; give a file or a pattern such as './*.parquet'."
    assert refusal(cli, *by_decision("notes.docx")).startswith("the format of 'notes.docx' is not known from its name;")
    assert refusal(cli, *by_decision("*.tsv")) == "no file matches '*.tsv'; check the folder and the pattern."
    assert refusal(cli, *by_decision("no/such.csv")) == "there is no file 'no/such.csv'; there is no folder 'no'."
    assert refusal(cli, "no.toml") == "there is no file 'no.toml'; write one with: evenhand init DATA"


# Odd but sound --------------------------------------------------------------------------------------------

ODD_GROUPS = ["two words", "emoji 🙂", "<script>alert(1)</script>", "=cmd()", "[red]bold[/red]", "a & b", ":smile:"]


def test_groups_of_any_text(cli: Cli, place: Path) -> None:
    rows = [f"{group},{(i + row) % 3 == 0:d}" for i, group in enumerate(ODD_GROUPS) for row in range(20)]
    write(place / "d.csv", "g,y\n" + "\n".join(rows) + "\n")
    assert groups_found(cli, *by_decision("d.csv")) == sorted(ODD_GROUPS)
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "emoji 🙂" in page
    shown = cli("audit", *by_decision("d.csv")).stdout
    assert "<script>" in shown or "=cmd()" in shown or "[red]" in shown or ":smile:" in shown


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + GOOD,
        GOOD.replace(",", ";"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("1,", "Yes,").replace("0,", "No,"),
        GOOD.replace("1,", "TRUE,").replace("0,", "False,"),
        GOOD.encode("utf-16"),
    ],
)
def test_dialects(cli: Cli, place: Path, content: str | bytes) -> None:
    write(place / "d.csv", content)
    assert groups_found(cli, *by_decision("d.csv")) == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["a b.csv", "it's.csv", 'say "hi".csv', "data[1].csv", "späße 🙂.csv", "d*?.csv", "[x]/d.csv"]
)
def test_paths(cli: Cli, place: Path, name: str) -> None:
    write(place / name, GOOD)
    assert groups_found(cli, *by_decision(name), "--out", "o [bold]ut") == ["a", "b"]


def test_the_path_of_the_report_is_shown_as_it_is(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD)
    done = cli("audit", *by_decision("d.csv"), "--out", "o [bold]ut :smile:")
    assert done.stdout.endswith("Report: o [bold]ut :smile:/report.html\n")


def test_quoted_newlines(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD.replace("a,", '"two\nlines",'))
    assert groups_found(cli, *by_decision("d.csv")) == ["b", "two\nlines"]


def test_decimal_commas(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD.replace(",", ";").replace("0.", "0,"))
    message = refusal(cli, *by_score("d.csv"))
    assert "holds text (such as '0,2', '0,4', '0,7', '0,9'), not numbers" in message
    assert "these are decimal commas: in a file, say --decimal ','." in message
    assert groups_found(cli, *by_score("d.csv"), "--decimal", ",") == ["a", "b"]


def test_latin_1_is_read_with_a_note(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD.replace("a,", "México,").encode("latin-1"))
    assert groups_found(cli, *by_decision("d.csv")) == ["México", "b"]
    note = "The file is not UTF-8; it was read as latin-1."
    written = json.loads((place / "out/results.json").read_text(encoding="utf-8"))["audits"]["parity"]["notes"]
    assert note in [each["text"] for each in written]
    assert f"Note: {note}" in cli("audit", *by_decision("d.csv")).stdout
    assert note not in cli("audit", *by_decision("d.csv"), "--encoding", "latin-1").stdout


def test_types_that_change_after_30_000_rows(cli: Cli, place: Path) -> None:
    write(place / "d.csv", "g,y\n" + "1,0\n2,1\n" * 15_000 + "x,1\nx,0\n" * 10)
    assert groups_found(cli, *by_decision("d.csv")) == ["g = 1", "g = 2", "x"]


# Paths and files that once ended in a traceback ----------------------------------------------------------------


def toml(place: Path, text: str) -> str:
    write(place / "d.csv", GOOD)
    return str(write(place / "audit.toml", '[data]\nsource = "d.csv"\ngroups = "g"\n' + text).relative_to(place))


def test_paths_that_are_no_files(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD)
    for ending in ("toml", "csv"):
        (place / f"loop.{ending}").symlink_to(f"loop.{ending}")
        os.mkfifo(place / f"pipe.{ending}")
    (place / "gone.csv").symlink_to("nowhere.csv")
    nowhere = "write one with: evenhand init DATA"
    for path, message in {
        "d.csv/y.csv": "there is no file 'd.csv/y.csv'; 'd.csv' is a file, not a folder.",
        "loop.csv": "'loop.csv' cannot be read: too many levels of symbolic links.",
        "pipe.csv": "'pipe.csv' is a pipe or a device; save the data as a file first.",
        "gone.csv": "there is no file 'gone.csv'; it is a link to a file that is not there.",
        f"{'a' * 300}.csv": f"'{'a' * 300}.csv' cannot be read: file name too long.",
        "d\udcff.csv": "there is no file 'd\\udcff.csv'; did you mean 'd.csv'?",
    }.items():
        assert refusal(cli, *by_decision(path)) == message
    for path, message in {
        "x.toml/y.toml": f"there is no file 'x.toml/y.toml'; {nowhere}",
        "loop.toml": "'loop.toml' cannot be read: too many levels of symbolic links.",
        "pipe.toml": "'pipe.toml' is a pipe or a device; give the path of a .toml file.",
        "nul\0.toml": f"no file can be called 'nul\\x00.toml'; {nowhere}",
    }.items():
        assert refusal(cli, path) == message


def test_files_that_may_not_be_read(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place / "d.csv", GOOD)
    write(place / "audit.toml", "")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be allowed to read everything
    assert refusal(cli, *by_decision("d.csv")) == "'d.csv' cannot be read: permission denied."

    def deny(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", deny)
    assert refusal(cli, "audit.toml") == "'audit.toml' cannot be read: permission denied."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = " + "[" * 2000 + "]" * 2000, "its lists or tables are nested too deep."),
        ("x = " + "{a = " * 2000 + "1" + "}" * 2000, "its lists or tables are nested too deep."),
        ("x = " + "9" * 5000, "it has a number of more than 4,300 digits."),
    ],
)
def test_toml_that_python_cannot_hold(cli: Cli, place: Path, text: str, fault: str) -> None:
    assert refusal(cli, toml(place, text)) == f"'audit.toml' is not valid TOML: {fault}"


def test_toml_with_a_byte_order_mark_is_read(cli: Cli, place: Path) -> None:
    path = place / toml(place, 'predictions = "y"\n[parity]\nresamples = 100\n')
    write(path, "\ufeff" + path.read_text())
    assert cli("audit", path).returncode == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("predictions = 3", "`predictions` must be a column, a list of columns, or a table of models"),
        ("predictions = [['y']]", "`predictions"),
        ("predictions = [{column = 'y'}]", "`predictions"),
        ("predictions = {m = ['y']}", "`predictions.m` in [data]: "),
        ("predictions = 'y'\ndata = 3", "there is no setting `data` in [data] of 'audit.toml'"),
        ("predictions = 'y'\npositive = {a = 1}", "`positive` in [data]: "),
        ("predictions = 'y'\n[models]\nfit = 3\nfeatures = 's'", "`fit` in [models] of audit.toml: give estimators by"),
        ("predictions = 'y'\n[models]\nfit = [['x']]\nfeatures = 's'", "`fit` in [models] of audit.toml: give estim"),
        ("predictions = 'y'\n[models]\nfit = {a = 3}\nfeatures = 's'", "`fit.a` in [models] of audit.toml: "),
        ("predictions = 'y'\n[models.fit.logistic.x]", "`features` in [models] of audit.toml: it is required"),
        ("predictions = 'y'\n[models]\nfit = 'logistic'\nfeatures = {a = 1}", "`features` in [models] of audit.toml: "),
        ("[improvability]\njobs = 0\ngrouping = 'g'", "`jobs` in [improvability] of audit.toml: "),
        (f"[improvability]\njobs = {2**63}\ngrouping = 'g'", "`jobs` in [improvability] of audit.toml: "),
        ("[parity]\n[[thresholds]]\naudit = ['x']\nmetric = 'tpr'", "is for the audit ['x'], which is not run"),
    ],
)
def test_settings_of_an_odd_shape(cli: Cli, place: Path, data: str, message: str) -> None:
    section = "" if "[parity]" in data or "[improvability]" in data else "\n[parity]\n"
    assert message in refusal(cli, toml(place, data + section))


def test_utf_16_with_and_without_its_mark(cli: Cli, place: Path) -> None:
    wide = GOOD.replace("a,", "é,")
    write(place / "little.csv", wide.encode("utf-16-le"))
    assert groups_found(cli, *by_decision("little.csv")) == ["b", "é"]
    assert groups_found(cli, *by_decision("little.csv"), "--encoding", "utf-16") == ["b", "é"]
    write(place / "big.csv", wide.encode("utf-16-be"))
    write(place / "marked.csv", b"\xfe\xff" + wide.encode("utf-16-be"))
    for name in ("big.csv", "marked.csv"):
        shutil.rmtree(place / "out", ignore_errors=True)
        fault = f"'{name}' could not be read: it is UTF-16 of the big-endian kind; save it as UTF-8."
        assert refusal(cli, *by_decision(name)) == fault


# Text that steers a terminal or turns a page around --------------------------------------------------------------

STEERING = "\x1b]0;owned\x07\x1b[31mred\u202edesrever\u2066\x85"
SHOWN = "\\x1b]0;owned"
TITLE = 'title = "' + "".join(f"\\u{ord(letter):04x}" for letter in STEERING) + '"'


def unsafe(text: str) -> set[str]:
    return {letter for letter in text if letter not in "\n\t" and showable(letter) != letter}


def test_no_foreign_text_steers_the_terminal_or_the_page(cli: Cli, place: Path) -> None:
    path = toml(place, f'predictions = {{ "m" = "y" }}\n[report]\n{TITLE}\nauditor = "[red]me[/red]"\n[parity]\n')
    write(place / "d.csv", GOOD.replace("a,", f"{STEERING},"))
    done = cli("audit", path)
    assert done.returncode == 0
    for text in (done.stdout, done.stderr, *(file.read_text(encoding="utf-8") for file in (place / "out").iterdir())):
        assert not unsafe(text)
    assert SHOWN in done.stdout
    assert "\\u202edesrever" in done.stdout
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert "\\u202edesrever" in page
    assert "[red]me[/red]" in page
    results = (place / "out/results.json").read_text(encoding="utf-8")
    assert json.loads(results)["config"]["report"]["title"] == STEERING  # nothing is lost in the file for programs
    assert not unsafe(cli("audit", path, "--json").stdout)


@pytest.mark.parametrize(
    "arguments", [["audit", f"{STEERING}.csv"], ["audit", "--\x1b[31m\u202e"], [f"\x1b[31m{STEERING}"]]
)
def test_no_argument_steers_the_terminal(cli: Cli, place: Path, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert not unsafe(done.stdout + done.stderr)
    assert "\\x1b[31m" in done.stderr


def test_model_names_that_steer_are_refused(cli: Cli, place: Path) -> None:
    told = refusal(cli, toml(place, 'predictions = { "m\\u001b[31m" = "y" }\n[parity]\n'))
    assert told.endswith("the model name 'm\\x1b[31m' has control characters; rename it.")
    with pytest.raises(ConfigError, match=r"string; got '\\ud800'|has control characters; rename it"):
        eh.Table({"g": ["a", "b"], "d": [1, 0]}, groups="g", predictions={"\ud800": "d"})
    table = eh.Table({"g": ["a", "b"] * 20, "d": [1, 0] * 20}, groups="g", predictions="d")
    with pytest.raises(ConfigError, match="`title` in "):
        eh.audit(table, parity={}, report={"title": "\ud800"})
