"""The mistakes that people make, with the very message each gets: in the words of the place where it was made.

The page shows what is run here. Where a message changes on purpose, `python tests/docs/test_mistakes.py` writes it
anew.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.main import main

PAGE = Path(__file__).parents[2] / "docs/reference/mistakes.md"
GROUPS = ("White", "Black", "Asian")
DATA = """[data]
source = "people.csv"
groups = ["race"]
"""

COMMANDS = {
    "A file name with a typo": "poeple.csv --groups race --scores score",
    "A column with a typo": "people.csv --groups rcae --scores score",
    "An option with a typo": "people.csv --group race --scores score",
    "Two columns separated by a space": "people.csv --groups race age --scores score",
    "No columns named": "people.csv",
    "Scores in percent": "people.csv --groups race --scores percent",
    "Scores with decimal commas": "people.csv --groups race --scores comma",
    "Words for missing values among the scores": "people.csv --groups race --scores holes",
    "Words for missing values in the outcome": "people.csv --groups race --scores score --outcome unsure",
    "Scores with percent signs": "people.csv --groups race --scores signs",
    "A missing outcome": "people.csv --groups race --scores score --outcome late",
    "Decisions in words": "people.csv --groups race --decisions decision",
    "A decision that never occurs": "people.csv --groups race --decisions decision --selected approved",
    "A threshold of 50 for scores from 0 to 1": "people.csv --groups race --scores score --threshold 50",
    "A number as a group": "people.csv --groups age --scores score",
    "One grouping in several columns of 0 and 1": "people.csv --groups race --scores score --one-hot race=black,white",
    "Names of groups without a column": "people.csv --groups hired --scores score --labels 1=hired",
    "An identifier as a group": "people.csv --groups person --scores score",
    "Days as groups": "people.csv --groups day --scores score",
    "A group that everybody belongs to": "people.csv --groups country --scores score",
    "A metric of scores for decisions": "people.csv --groups race --decisions hired --metrics auc",
    "A metric with a typo": "people.csv --groups race --decisions hired --metrics selection_rte",
    "A check without a limit": "people.csv --groups race --decisions hired --check",
    "A limit with the wrong sign": "people.csv --groups race --decisions hired --require selection_rate=0.8",
    "An unknown encoding": "people.csv --groups race --scores score --encoding utf8",
    "An archive named CSV": "archive.csv --groups race --scores score",
    "A row with too many fields": "ragged.csv --groups race --scores score",
    "A negative weight": "people.csv --groups race --scores score --weight balance",
    "An option that belongs in the file": "audit.toml --outcome repaid",
}
FILES = {
    "A setting with a typo": DATA + 'outcom = "repaid"\npredictions = "score"\n[parity]\n',
    "A section with a typo": DATA + 'predictions = "score"\n[partiy]\n',
    "No audit requested": DATA + 'predictions = "score"\n',
    "A missing outcome": DATA + 'predictions = "score"\noutcome = "late"\n[parity]\n',
    "Scores in percent": DATA + 'predictions = "percent"\n[parity]\n',
    "Scores with decimal commas": DATA + 'predictions = { m = { column = "comma", kind = "score" } }\n[parity]\n',
    "A confidence in percent": DATA + 'predictions = "score"\n[parity]\nconfidence = 95\n',
    "A limit for an unknown metric": (
        DATA + 'predictions = "score"\n[parity]\n[[thresholds]]\nmetric = "selection"\nmin = 0.8\n'
    ),
    "Invalid TOML": DATA + "predictions = score\n[parity]\n",
    "A person with several rows": DATA + 'id = "household"\npredictions = "score"\n[parity]\n',
}
PYTHON: dict[str, str] = {
    "A data frame instead of a table": "eh.parity(people)",
    "A column with a typo": 'eh.Table(people, groups="rcae", predictions="score")',
    "A missing outcome": 'eh.Table(people, groups="race", outcome="late", predictions="score")',
    "Scores in percent": 'eh.Table(people, groups="race", predictions="percent")',
    "A number as a group": 'eh.Table(people, groups="age", predictions="score")',
    "Answers of 0 and 1": 'eh.disagreement(table, decision="hired", answer="repaid", critic="household")',
    "A confidence in percent": "eh.parity(table, confidence=95)",
    "A result that does not exist": 'eh.audit(table)["effort"]',
}


def people() -> dict[str, list[Any]]:
    """Return a small table in which most things can go wrong."""
    rows = range(120)
    return {
        "person": [f"p{row:03}" for row in rows],
        "household": [row // 2 for row in rows],
        "year": [2020 + row % 2 for row in rows],
        "race": [GROUPS[row % 3] for row in rows],
        "age": [20 + row % 50 for row in rows],
        "day": [f"2024-{1 + row % 12:02}-{1 + row % 27:02}" for row in rows],
        "country": ["NL" for _ in rows],
        "repaid": [int(row % 5 > 1) for row in rows],
        "late": [None if row % 40 == 3 else int(row % 4 > 1) for row in rows],
        "hired": [int(row % 7 > 2) for row in rows],
        "decision": ["granted" if row % 7 > 2 else "denied" for row in rows],
        "score": [(row * 37 % 100) / 100 for row in rows],
        "percent": [row * 37 % 100 + 0.5 for row in rows],
        "comma": [f"0,{row * 37 % 90 + 10}" for row in rows],
        "holes": ["N/A" if row % 30 == 4 else f"{(row * 37 % 100) / 100}" for row in rows],
        "unsure": ["N/A" if row % 40 == 3 else int(row % 4 > 1) for row in rows],
        "signs": [f"{row * 37 % 100}%" for row in rows],
        "balance": [float(row - 3) for row in rows],
    }


def write_files(folder: Path) -> None:
    columns = people()
    lines = (";".join("" if cell is None else str(cell) for cell in row) for row in zip(*columns.values(), strict=True))
    (folder / "people.csv").write_text("\n".join([";".join(columns), *lines]) + "\n")
    (folder / "archive.csv").write_bytes(b"PK\x03\x04\x14\x00\x06\x00" + bytes(200))
    (folder / "ragged.csv").write_text("race,score\nWhite,0.5\nBlack,0.4,7\n")
    (folder / "audit.toml").write_text(DATA + 'predictions = "score"\n[parity]\n')


def of_command(line: str) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as told, pytest.raises(SystemExit) as left:
        main(["audit", *line.split()])
    assert left.value.code == 2, line
    return told.getvalue().strip()


def of_file(text: str) -> str:
    Path("mine.toml").write_text(text)
    return of_command("mine.toml")


def of_python(line: str) -> str:
    data = people()
    table = eh.Table(data, groups="race", outcome="repaid", predictions="score")
    with pytest.raises(eh.EvenhandError) as told:
        eval(line, {"eh": eh, "people": data, "table": table})  # noqa: S307
    return f"{type(told.value).__name__}: {told.value}"


PLACES: dict[str, tuple[dict[str, str], Callable[[str], str]]] = {
    "On the command line": (COMMANDS, of_command),
    "In audit.toml": (FILES, of_file),
    "In Python": (PYTHON, of_python),
}
HEAD = """# Common mistakes and their messages

An error says what was wrong, where, and what to do, in the terms of the place where the mistake was made: flags on the
command line, settings in `audit.toml`, arguments in Python. These are the most common mistakes, each with its exact
message. For programs, `--json-errors` writes an error as one line of JSON to standard error; the exit code is 2.
"""


def block(place: str, what: str) -> str:
    """Run one mistake, and return what the page says of it."""
    mistakes, message_of = PLACES[place]
    done = mistakes[what]
    line = f"$ evenhand audit {done}" if message_of is of_command else done.removeprefix(DATA).strip()
    return f"### {what}\n\n```text\n{line}\n\n{message_of(done)}\n```\n"


def shown(place: str) -> list[str]:
    """Return what the page says of each mistake of a place."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {place}\n")[1].split("\n## ")[0]
    return [f"### {part.rstrip()}\n" for part in section.split("\n### ")[1:]]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    made = tmp_path_factory.mktemp("mistakes")
    write_files(made)
    with contextlib.chdir(made):
        yield


@pytest.mark.parametrize(("place", "what"), [(place, what) for place, (all_, _) in PLACES.items() for what in all_])
def test_a_mistake_gets_the_message_that_the_page_shows(place: str, what: str) -> None:
    assert block(place, what) in shown(place)


def test_the_page_shows_nothing_else() -> None:
    assert PAGE.read_text(encoding="utf-8").startswith(HEAD)
    assert sum(map(len, map(shown, PLACES))) == sum(len(mistakes) for mistakes, _ in PLACES.values()) >= 30


@pytest.mark.parametrize("place", PLACES)
def test_a_message_speaks_the_language_of_its_place(place: str) -> None:
    for part in shown(place):
        message = part.split("```")[1].split("\n\n", 1)[1]
        if place == "In Python":
            assert " --" not in message
        else:
            assert "missing='drop'" not in message
            assert "eh.Table" not in message
            assert "the arguments of audit()" not in message
        if place == "On the command line":
            assert "`" not in message


def test_the_files_of_the_page_are_toml_but_for_the_one_that_is_not() -> None:
    broken = [what for what, text in FILES.items() if _is_broken(text)]
    assert broken == ["Invalid TOML"]


def _is_broken(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return True
    return False


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        write_files(Path(temporary))
        parts = [HEAD]
        for name, (listed, _) in PLACES.items():
            parts += [f"## {name}\n", *(block(name, mistake) for mistake in listed)]
        PAGE.write_text("\n".join(parts), encoding="utf-8")
