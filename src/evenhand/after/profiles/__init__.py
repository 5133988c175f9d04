"""Dated legal profiles: the tables, words and minimum contents that a rule asks of a report.

Each profile is a file in this folder. Its description of the law is a survey of reporting conventions with date and
sources, and no legal advice. Anything the survey did not cover is called unchecked. A profile has indicators; it never
finds a violation.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from evenhand.core.display import Method

SURVEYED = "November 2026"
NO_ADVICE = (
    "This is not legal advice: it describes what a rule asks a report to contain, as surveyed in " + SURVEYED + "."
)


@dataclass(frozen=True)
class Requirement:
    """The content that a clause requires.

    Parameters
    ----------
    clause, asks : the clause, and the requested content.
    places : what may have it, the best first: a part of the page, or an audit by the evidence that it gives.
    holds : the content of the report.
    lacking : what to do where it is not there; `{audit}` is an audit that would give it.
    needs : a setting of `[report]` that must be filled in; 'outcome'; or 'intersection', a grouping of several columns.
    """

    clause: str
    asks: str
    places: tuple[str, ...]
    holds: str = ""
    lacking: str = ""
    needs: str = ""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One rule, as described on a date.

    Parameters
    ----------
    title : the heading of the section.
    date : the date of the rule as it is described here.
    about : what the section holds, in a sentence.
    status : the changes since, with dates.
    sources : where it was read.
    unchecked : what the survey did not cover.
    table : what it counts, if anything: `impact`, the people selected, or `rates`, also of scores above the median.
    methods, caveats : how its numbers are computed, and what they do not show.
    clauses : what it asks for, in order.
    """

    title: str
    date: str
    about: str
    status: tuple[str, ...]
    sources: tuple[str, ...]
    unchecked: str
    table: Literal["impact", "rates"] | None = None
    methods: tuple[Method, ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()
    clauses: tuple[Requirement, ...] = ()


def _read(name: str) -> Profile:
    written: dict[str, Any] = tomllib.loads((files(__name__) / f"{name}.toml").read_text("utf-8"))
    written |= {key: tuple(value) for key, value in written.items() if isinstance(value, list)}
    written["methods"] = tuple(Method(**method) for method in written.get("methods", ()))
    written["caveats"] = tuple((caveat["title"], caveat["text"]) for caveat in written.get("caveats", ()))
    written["clauses"] = tuple(
        Requirement(**{**clause, "places": tuple(clause["places"])}) for clause in written.get("clauses", ())
    )
    return Profile(**written)


PROFILES = {
    name: _read(name)
    for name, suffix in sorted(file.name.rsplit(".", 1) for file in files(__name__).iterdir() if file.is_file())
    if suffix == "toml"
}
"""The profiles by name."""
