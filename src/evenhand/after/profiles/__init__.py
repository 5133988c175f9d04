"""Dated legal profiles: the tables, terms and minimum contents that a rule requires of a report.

Each profile is a file in this folder. Its description of the law is a survey of reporting conventions with date and
sources, not legal advice. Anything outside the survey is called unchecked. A profile has indicators; it never states a
violation.
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
    """A content that a clause requires of the report.

    Parameters
    ----------
    clause, asks : the clause, and the required content.
    places : the possible places of the content, the best first: a part of the page, or an audit named by its kind of
        evidence.
    holds : the content that the report has.
    lacking : advice if the content is missing; `{audit}` stands for an audit that would provide it.
    needs : a required setting of `[report]`; or 'outcome'; or 'intersection', a grouping of several columns.
    """

    clause: str
    asks: str
    places: tuple[str, ...]
    holds: str = ""
    lacking: str = ""
    needs: str = ""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A rule, as described on a date.

    Parameters
    ----------
    title : the heading of the section.
    date : the date of the described version of the rule.
    about : a sentence on the contents of the section.
    status : the changes since that date, with their dates.
    sources : the sources of the description.
    unchecked : the topics outside the survey.
    table : the table of counts, or None: `impact` (people selected), or `rates` (also scores above the median).
    methods, caveats : the methods behind the numbers, and their limitations.
    clauses : the required contents, in order.
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
