"""Bad input on the command line: exit code 2, one clear message, never a traceback; odd but sound input works."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
            "convert it; in a file, decimal commas need decimal=',' and words for missing values need missing_values.",
        ),
        (
            ["0.5", "1.5", "inf", "0"],
            "score column 's' lies outside 0 to 1 in 2 rows (such as '1.5', 'inf'); "
            "rescale it, or give its range=(lowest, highest) and threshold.",
        ),
        (
            ["0.5", "", "nan", "0"],
            "prediction column 's' is missing in 2 rows of 4 (rows 2, 3); fill them, or drop them with missing='drop'.",
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
    assert "decimal commas need decimal=','" in message
    assert groups_found(cli, *by_score("d.csv"), "--decimal", ",") == ["a", "b"]


def test_latin_1_is_read_with_a_note(cli: Cli, place: Path) -> None:
    write(place / "d.csv", GOOD.replace("a,", "México,").encode("latin-1"))
    assert groups_found(cli, *by_decision("d.csv")) == ["México", "b"]
    note = "The file is not UTF-8; it was read as latin-1."
    assert note in json.loads((place / "out/results.json").read_text(encoding="utf-8"))["audits"]["parity"]["notes"]
    assert f"Note: {note}" in cli("audit", *by_decision("d.csv")).stdout
    assert note not in cli("audit", *by_decision("d.csv"), "--encoding", "latin-1").stdout


def test_types_that_change_after_30_000_rows(cli: Cli, place: Path) -> None:
    write(place / "d.csv", "g,y\n" + "1,0\n2,1\n" * 15_000 + "x,1\nx,0\n" * 10)
    assert groups_found(cli, *by_decision("d.csv")) == ["1", "2", "x"]
