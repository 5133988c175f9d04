"""Checklists: the contents that each clause asks for, and where the report has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evenhand.after.profiles.result import Clause
from evenhand.audits import REGISTRY
from evenhand.core.result import Result

if TYPE_CHECKING:
    from evenhand.run.config import AuditConfig

PAGE = {
    "about": "Title page",
    "in-short": "In short",
    "findings": "Findings",
    "left-out": "Left out",
    "provenance": "Provenance",
}
"""The parts that every report has."""

NOT_HERE = "not in this report"
ANY_AUDIT = "any audit"
"""The evidence that every audit gives."""


@dataclass(frozen=True)
class _Entry:
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
    holds: str
    lacking: str = ""
    needs: str = ""


def _alternatives_checklist(clause: str) -> tuple[_Entry, ...]:
    """Return the checklist rows on a search for less discriminatory alternatives."""
    return (
        _Entry(
            clause,
            "A search for less discriminatory alternatives: the metrics of the status quo, the candidates and how they "
            "were searched, the constraint, the best alternative",
            ("alternatives",),
            "The candidates, the accuracy that they may not lose, and the best of them.",
            "Add {audit}.",
        ),
        _Entry(
            clause,
            "A test of the improvement on rows that were held out, with a p-value",
            ("alternatives",),
            "The test, its p-value, and how rows were held out.",
            "Add {audit}.",
        ),
    )


_NO_MEASUREMENT = "No measurement shows it: it is for the user of the system to argue, in a note of its own."

CHECKLISTS: dict[str, tuple[_Entry, ...]] = {
    "nyc-ll144-2023": (
        _Entry(
            "Tables",
            "Sex, and race or ethnicity by EEO-1 categories, each for itself",
            ("nyc-ll144-2023",),
            "A table for each grouping of the data; whether they are these categories is for the auditor to say.",
        ),
        _Entry(
            "Tables",
            "Sex by race or ethnicity: the intersection",
            ("nyc-ll144-2023",),
            "A table for each grouping of several columns.",
            "Add both columns as one grouping, such as ['sex', 'race'], to the groups of the data.",
            needs="intersection",
        ),
        _Entry(
            "Unknown",
            "The number of people whose category is not known, who are not in the calculation",
            ("nyc-ll144-2023",),
            "The last row of a table, where there are any.",
        ),
        _Entry(
            "Small categories",
            "A category under 2 % of the data may be left out of the impact ratio, with the auditor's justification; "
            "its number and rate are still shown",
            ("nyc-ll144-2023",),
            "Both ratios are shown, with and without such categories. The justification is for the auditor to write.",
        ),
        _Entry(
            "Summary",
            "Source and explanation of the data",
            ("provenance",),
            "Files and hashes; what the data are is for scope in [report] to say.",
        ),
        _Entry("Summary", "Number of people, rates and impact ratios", ("nyc-ll144-2023",), "Every row."),
        _Entry("Summary", "Date of the audit, at most one year before use", ("about",), "The date of the run."),
        _Entry("Summary", "Date of distribution of the tool", (), "", "For the employer to state."),
        _Entry(
            "Auditor",
            "An independent auditor",
            ("about",),
            "The auditor is named; independence is theirs to declare.",
            "Name the auditor in [report]; independence is theirs to declare.",
            needs="auditor",
        ),
    ),
    "nj-13-16-2025": (
        _Entry(
            "Automated tools",
            "Automated tools are named by the rules",
            ("about",),
            "The system that was audited.",
            "Name the system in [report].",
            needs="system",
        ),
        _Entry(
            "Step 1: disparity",
            "A disparity, shown by empirical evidence",
            ("rates",),
            "Rates and gaps by group with intervals and tests; indicators, not conclusions.",
            "Add {audit}.",
        ),
        _Entry(
            "Step 2: justification",
            "Necessity, or a substantial legitimate justification",
            (),
            "",
            _NO_MEASUREMENT,
        ),
        *_alternatives_checklist("Step 3: alternatives"),
    ),
    "ecoa-reg-b": (
        _Entry(
            "Regulation B, effects test",
            "Removed by the rule of 22 April 2026, effective 21 July 2026",
            ("rates",),
            "Gaps by group, which states and plaintiffs may still ask for.",
            "Add {audit}, where a state or a plaintiff may ask for gaps.",
        ),
        *_alternatives_checklist("Still asked by states and plaintiffs"),
        _Entry("Still asked by states and plaintiffs", "A note on the business justification", (), "", _NO_MEASUREMENT),
    ),
    "eu-ai-act-annex-iv": (
        _Entry("2(d)", "Datasheets of the data", (), "", "Write one beside the report with --format datasheet."),
        _Entry(
            "2(g)",
            "The data used for validation and testing, and their main characteristics",
            ("in-short",),
            "Who was compared, with sizes; Provenance has the hash of the data.",
        ),
        _Entry(
            "2(g)",
            "Metrics of accuracy",
            ("rates",),
            "Errors, of everybody and by group.",
            "Add {audit} of data with an outcome.",
            needs="outcome",
        ),
        _Entry(
            "2(g)",
            "Metrics of robustness",
            ("robustness",),
            "What errors in the data do to the scores, by group.",
            "Add {audit}.",
        ),
        _Entry(
            "2(g)",
            "Metrics of potentially discriminatory impacts",
            ("gaps",),
            "Gaps between groups with intervals.",
            "Add {audit}.",
        ),
        _Entry("2(g)", "Test logs", ("provenance",), "Versions, configuration, hashes; results.json has every number."),
        _Entry(
            "2(g)",
            "Test reports that are dated and signed by the responsible persons",
            ("about",),
            "Dated. Not signed: evenhand pack --sign adds a signature.",
        ),
        _Entry(
            "3",
            "Accuracy for specific persons or groups",
            ("rates",),
            "Errors by group.",
            "Add {audit} of data with an outcome.",
            needs="outcome",
        ),
        _Entry(
            "4",
            "Whether the metrics are appropriate",
            (ANY_AUDIT,),
            "“What these numbers do not show”, in each section; the choice is for the provider to argue.",
        ),
        _Entry(
            "Article 10(2)(f) and (g), (5)",
            "An examination of possible biases of the data",
            ("rates",),
            "Gaps of the decisions, and of the outcome where there is one.",
            "Add {audit}.",
        ),
        _Entry("Retention", "Documentation is kept for 10 years", (), "", "evenhand pack makes one file to keep."),
    ),
    "nist-ai-rmf-1.0": (
        _Entry(
            "MEASURE 1.3",
            "Independent assessors",
            ("about",),
            "The auditor is named; independence is theirs to declare.",
            "Name the auditor in [report].",
            needs="auditor",
        ),
        _Entry(
            "MEASURE 1.3",
            "Affected communities are consulted",
            ("voices",),
            "What stakeholders said of decisions.",
            "Add {audit}.",
        ),
        _Entry(
            "MEASURE 2.1",
            "Test sets, metrics and tools are documented",
            ("provenance",),
            "Data, versions and configuration; “How this was computed” in each section has the metrics.",
        ),
        _Entry(
            "MEASURE 2.2",
            "Evaluations with human subjects protect them and are representative",
            ("people asked",),
            "Who took part, and who was left out; the protections are for the researcher to describe.",
            "There is no study in this report.",
        ),
        _Entry(
            "MEASURE 2.5",
            "The system is demonstrated to be valid and reliable",
            ("reliability",),
            "Reliability by group.",
            "Add {audit}.",
        ),
        _Entry(
            "MEASURE 2.11",
            "Fairness and bias are evaluated and documented",
            ("gaps",),
            "Gaps between groups with intervals.",
            "Add {audit}.",
        ),
    ),
}
"""What each profile asks for, in order."""


def checklist(profile: str, config: AuditConfig, results: Mapping[str, Result]) -> Iterator[Clause]:
    """Yield a profile's clauses with the place in the report that satisfies each.

    `results` are those of the run.
    """
    section_titles = {profile: "This section"} if profile == "nyc-ll144-2023" else {}
    titles = {name: result.title for name, result in results.items()} | PAGE | section_titles
    for ask in CHECKLISTS.get(profile, ()):
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
    """Name an installed audit that gives such evidence, as in 'a parity audit'."""
    for name, audit in REGISTRY.items():
        if set(evidence) & set(audit.evidence):
            return f"{'an' if name[0] in 'aeiou' else 'a'} {name} audit"
    return "an audit"


def without_rates(profile: str, clauses: Iterable[Clause], some: bool, why: str) -> Iterator[Clause]:
    """Yield the checklist of a report that withholds all or some rates; `why` says which."""
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
