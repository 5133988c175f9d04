"""Checklists: the contents that each clause requires, and their places in the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import Clause
from evenhand.audits import REGISTRY
from evenhand.core.result import Result

if TYPE_CHECKING:
    from evenhand.run.config import AuditConfig

PAGE = {
    "about": "Title page",
    "answer": "Is there a problem?",
    "findings": "Findings",
    "left-out": "Left out",
    "provenance": "Provenance",
}
"""The parts of every report."""

NOT_HERE = "not in this report"
ANY_AUDIT = "any audit"
"""The evidence that every audit provides."""


def checklist(profile: str, config: AuditConfig, results: Mapping[str, Result]) -> Iterator[Clause]:
    """Yield a profile's clauses, each with the place in the report that satisfies it.

    `results` are the results of the run.
    """
    section_titles = {profile: "This section"} if profile == "nyc-ll144-2023" else {}
    titles = {name: result.title for name, result in results.items()} | PAGE | section_titles
    for ask in PROFILES[profile].clauses:
        place = next((candidate for name in ask.places for candidate in _matching_parts(name, results, titles)), None)
        if place is None or not _fill_placeholders(ask.needs, config):
            lacking = ask.lacking.replace("{audit}", _audit_for(ask.places))
            yield Clause(clause=ask.clause, asks=ask.asks, place=None, where=NOT_HERE, remark=lacking)
        else:
            yield Clause(clause=ask.clause, asks=ask.asks, place=place, where=titles[place], remark=ask.holds)


def _matching_parts(name: str, results: Mapping[str, Result], titles: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a report that match a name or kind of evidence."""
    for place, result in results.items():
        if name in (*result.descriptor.evidence, ANY_AUDIT):
            yield place
    if name in titles and name not in results:
        yield name


def _audit_for(evidence: Sequence[str]) -> str:
    """Return an installed audit that provides one of the kinds of evidence, such as 'a parity audit'."""
    for name, audit in REGISTRY.items():
        if set(evidence) & set(audit.evidence):
            return f"{'an' if name[0] in 'aeiou' else 'a'} {name} audit"
    return "an audit"


def without_rates(profile: str, clauses: Iterable[Clause], some: bool, why: str) -> Iterator[Clause]:
    """Yield the checklist of a report that withholds rates: all of them, or only a part if `some` is true."""
    for clause in clauses:
        if clause.place != profile:
            yield clause
        elif some:
            yield replace(clause, remark=f"{clause.remark} Only in part: {why}")
        else:
            yield replace(clause, place=None, where=NOT_HERE, remark=f"{why[:1].upper()}{why[1:]}")


def _fill_placeholders(needs: str, config: AuditConfig) -> bool:
    if needs == "intersection":
        groups = config.data.get("groups", ())
        return any(len(columns) > 1 for columns in groups)
    if needs == "outcome":
        return config.data.get("outcome") is not None
    return not needs or bool(getattr(config.report, needs))
