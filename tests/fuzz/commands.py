"""The command line: sound files and words, then a file that was damaged or a word that was changed."""

from __future__ import annotations

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pandas as pd
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from evenhand.cli.main import main
from evenhand.errors import EvenhandError
from evenhand.study import study_template

from . import laws
from .audits import Target
from .others import tamper, tampering
from .settings import Settings, one
from .tables import Columns, as_kind, people, spoilt

AUDIT_TOML = """\
[data]
source = "people.csv"
outcome = "y"
groups = ["g"]
predictions = { m = "s" }

[parity]
metrics = ["selection_rate"]
resamples = 100
min_count = 1

[[thresholds]]
metric = "selection_rate"
max = 0.2

[report]
title = "A title"

[power]
groups = { g = { a = 0.7, b = 0.3 } }
rates = { selection_rate = 0.4 }
"""

ODD_TOML = ("1", "-1", "0.5", "nan", "inf", '""', '"x"', "[]", "{}", "[1]", "{ a = 1 }", "true", "2020-01-01", "9" * 30)
ODD_WORDS = (
    "",
    "x",
    "-1",
    "0",
    "1e400",
    "nan",
    "g",
    "s,y",
    "=",
    "a=b",
    "\x00",
    "\ud800",
    "../..",
    "--",
    "-h",
    "x" * 300,
    "é",
)
STUDY_WORDS = ("analyze", "export", "status", "bonus", "close", "reopen", "ratings", "backup", "erase-ids", "withdraw")


class Command(NamedTuple):
    """Words, and what lies in the folder where they are said."""

    words: tuple[str, ...]
    columns: Columns
    toml: bytes = AUDIT_TOML.encode()
    tampered: Settings | None = None
    kind: str = "csv"


def run_command(command: Command, folder: Path) -> None:
    """Say the words in a folder of their own: an exit code that means something, and never a traceback."""
    given = as_kind(command.columns, command.kind, folder)
    if isinstance(given, dict):  # a kind of file that cannot hold these columns
        texts = {
            name: [str(value).encode(errors="replace").decode() for value in column] for name, column in given.items()
        }
        pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in texts.items()}).to_csv(
            folder / "people.csv", index=False
        )
    (folder / "audit.toml").write_bytes(command.toml)
    (folder / "study.toml").write_text(study_template("effort"), encoding="utf-8")
    if command.tampered is not None:
        tamper(folder, command.tampered)
    out, err, code = io.StringIO(), io.StringIO(), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, {"EVENHAND_DEBUG": "1"}):
        try:
            main([*command.words])
        except SystemExit as left:
            code = int(left.code or 0)
    told = err.getvalue()
    assert "Traceback" not in told, told
    assert code in (0, 1, 2, 3), (code, told)
    if code == 2:
        said_what = " ".join((told or out.getvalue()).split()) or out.getvalue()
        assert said_what, "nothing was said"
        raise EvenhandError(said_what)
    laws.require_whole(_without_words(out.getvalue(), command.words))


def _without_words(text: str, words: tuple[str, ...]) -> str:
    """Return what was printed without the files and folders that the words themselves name, such as `--out nan`."""
    for word in words:
        if len(word) > 1:
            text = text.replace(f"{word}{os.sep}", "")
    return text


@st.composite
def damaged(draw: DrawFn, text: str) -> bytes:
    """Draw a text file with one line changed, taken out or said twice, or with other bytes."""
    how = draw(
        one("none", "none", "value", "value", "value", "without", "twice", "cut", "bytes", "utf-16", "marked", "crlf")
    )
    lines = text.split("\n")
    place = draw(st.integers(0, len(lines) - 1))
    if how == "value" and "=" in lines[place]:
        lines[place] = f"{lines[place].partition('=')[0]}= {draw(st.sampled_from(ODD_TOML))}"
    elif how == "without":
        del lines[place]
    elif how == "twice":
        lines.insert(place, lines[place])
    whole = "\n".join(lines)
    made = {
        "cut": lambda: whole.encode()[: len(whole) * (place + 1) // (len(lines) + 1)],
        "bytes": lambda: whole.encode().replace(b"=", b"\xff\xfe", 1),
        "utf-16": lambda: whole.encode("utf-16"),
        "marked": lambda: b"\xef\xbb\xbf" + whole.encode(),
        "crlf": lambda: whole.replace("\n", "\r\n").encode(),
    }
    return made[how]() if how in made else whole.encode()


@st.composite
def said(draw: DrawFn, *words: str) -> tuple[str, ...]:
    """Draw the words, sometimes with one changed, taken out or added."""
    how = draw(one(None, None, None, "odd", "without", "more"))
    given = list(words)
    place = draw(st.integers(1, max(len(given) - 1, 1)))
    if how == "odd" and len(given) > 1:
        given[place] = draw(st.sampled_from(ODD_WORDS))
    elif how == "without" and len(given) > 1:
        del given[place]
    elif how == "more":
        given.insert(
            place, draw(st.sampled_from((*ODD_WORDS, "--json", "--quiet", "--check", "--strict", "--json-errors")))
        )
    return tuple(given)


COLUMNS = ("h", "y", "s", "d", "id")


@st.composite
def audit_of_settings(draw: DrawFn, *words: str) -> Command:
    """Draw a command that reads audit.toml."""
    columns = draw(people(COLUMNS))
    return Command(draw(said(*words)), columns, draw(damaged(AUDIT_TOML)))


@st.composite
def audit_of_data(draw: DrawFn, command: str, *more: str) -> Command:
    """Draw a command that reads a data file, sometimes a damaged one."""
    columns = draw(people(COLUMNS))
    if draw(one(False, False, True)):
        columns = draw(spoilt(columns))
    kind = draw(one("csv", "csv", "csv.gz", "parquet", "json", "ndjson", "feather", "xlsx", "dta"))
    words = draw(said(command, f"people.{kind}", "--groups", draw(one("g", "g,h", "g+h")), *more))
    return Command(words, columns, kind=kind)


@st.composite
def selections(draw: DrawFn, command: str) -> Command:
    """Draw a command on counts of people, or on people and how many a row stands for."""
    columns = draw(people((*COLUMNS, "chosen", "pool")))
    if draw(one(False, False, True)):
        columns = draw(spoilt(columns))
    kind = draw(one("csv", "csv", "parquet", "xlsx"))
    counts, rows = ("--selected", "chosen", "--total", "pool"), ("--decision", "d")
    given = draw(one(counts, (*counts, "--event", "h"), rows, (*rows, "--count", "pool")))
    words = draw(said(command, f"people.{kind}", "--group", "g", "--format", "md", *given))
    return Command(words, columns, kind=kind)


@st.composite
def on_saved(draw: DrawFn, *words: str) -> Command:
    """Draw a command on a saved audit, sometimes tampered with."""
    return Command(draw(said(*words)), {"g": ["a", "b"]}, tampered=draw(tampering()))


@st.composite
def alone(draw: DrawFn, *choices: tuple[str, ...]) -> Command:
    """Draw a command that needs no data."""
    return Command(draw(said(*draw(st.sampled_from(choices)))), {"g": ["a", "b"]}, draw(damaged(AUDIT_TOML)))


COMMANDS: dict[str, tuple[SearchStrategy[Command], ...]] = {
    "evenhand audit": (
        audit_of_settings("audit", "audit.toml", "--out", "out", "--format", "md"),
        audit_of_data("audit", "--decisions", "d", "--out", "out", "--format", "csv"),
        selections("adverse-impact"),
    ),
    "evenhand init, plan, power": (
        audit_of_data("init", "--decisions", "d", "--outcome", "y", "--yes", "--force"),
        audit_of_settings("plan", "audit.toml", "--out", "plan.json"),
        audit_of_settings("power", "audit.toml", "--rows", "200"),
    ),
    "evenhand verify, report, compare, pack": (
        on_saved("verify", "saved"),
        on_saved("report", "saved", "--format", "md,junit", "--out", "again"),
        on_saved("compare", "saved", "other"),
        on_saved("pack", "saved", "--out", "pack.zip", "--format", "md"),
    ),
    "evenhand study, data, demo, doctor, replicate": (
        alone(*(("study", word, "study.toml") for word in STUDY_WORDS)),
        alone(
            ("doctor",),
            ("data", "list"),
            ("data", "fetch", "nothing"),
            ("replicate", "nothing"),
            ("demo", "--rows", "5"),
            ("study", "new", "made", "--kind", "effort"),
            ("study", "new", "made", "--kind", "disagreement"),
            ("study", "serve", "missing.toml"),
            ("study", "simulate", "missing.toml"),
            ("study", "password", "missing.toml", "me"),
            ("study", "recruits", "missing.toml", "people.csv"),
            ("nothing",),
            ("--version",),
        ),
    ),
}
CLI: dict[str, Target] = {name: Target(st.one_of(*words), run_command) for name, words in COMMANDS.items()}
