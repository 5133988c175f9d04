"""Which clause asks a report for what, and where an audit has it."""

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
"""Evidence that every audit gives."""


@dataclass(frozen=True)
class _Ask:
    """What a clause asks for.

    Parameters
    ----------
    clause, asks : the clause, and what it asks for.
    places : what may have it, the best first: a part of the page, or an audit by the evidence that it gives.
    holds : what is there.
    lacking : what to do where it is not there; `{audit}` is an audit that would give it.
    needs : a setting of `[report]` that must be filled in; 'outcome'; or 'intersection', a grouping of several columns.
    """

    clause: str
    asks: str
    places: tuple[str, ...]
    holds: str
    lacking: str = ""
    needs: str = ""


def _alternatives(clause: str) -> tuple[_Ask, ...]:
    """Return what a search for less discriminatory alternatives is expected to show."""
    return (
        _Ask(
            clause,
            "A search for less discriminatory alternatives: the metrics of the status quo, the candidates and how they "
            "were searched, the constraint, the best alternative",
            ("alternatives",),
            "The candidates, the accuracy that they may not lose, and the best of them.",
            "Add {audit}.",
        ),
        _Ask(
            clause,
            "A test of the improvement on rows that were held out, with a p-value",
            ("alternatives",),
            "The test, its p-value, and how rows were held out.",
            "Add {audit}.",
        ),
    )


_NO_MEASUREMENT = "No measurement shows it: it is for the user of the system to argue, in a note of its own."

CHECKLISTS: dict[str, tuple[_Ask, ...]] = {
    "nyc-ll144-2023": (
        _Ask(
            "Tables",
            "Sex, and race or ethnicity by EEO-1 categories, each for itself",
            ("nyc-ll144-2023",),
            "A table for each grouping of the data; whether they are these categories is for the auditor to say.",
        ),
        _Ask(
            "Tables",
            "Sex by race or ethnicity: the intersection",
            ("nyc-ll144-2023",),
            "A table for each grouping of several columns.",
            "Add both columns as one grouping, such as ['sex', 'race'], to the groups of the data.",
            needs="intersection",
        ),
        _Ask(
            "Unknown",
            "The number of people whose category is not known, who are not in the calculation",
            ("nyc-ll144-2023",),
            "The last row of a table, where there are any.",
        ),
        _Ask(
            "Small categories",
            "A category under 2 % of the data may be left out of the impact ratio, with the auditor's justification; "
            "its number and rate are still shown",
            ("nyc-ll144-2023",),
            "Both ratios are shown, with and without such categories. The justification is for the auditor to write.",
        ),
        _Ask(
            "Summary",
            "Source and explanation of the data",
            ("provenance",),
            "Files and hashes; what the data are is for scope in [report] to say.",
        ),
        _Ask("Summary", "Number of people, rates and impact ratios", ("nyc-ll144-2023",), "Every row."),
        _Ask("Summary", "Date of the audit, at most one year before use", ("about",), "The date of the run."),
        _Ask("Summary", "Date of distribution of the tool", (), "", "For the employer to state."),
        _Ask(
            "Auditor",
            "An independent auditor",
            ("about",),
            "The auditor is named; independence is theirs to declare.",
            "Name the auditor in [report]; independence is theirs to declare.",
            needs="auditor",
        ),
    ),
    "nj-13-16-2025": (
        _Ask(
            "Automated tools",
            "Automated tools are named by the rules",
            ("about",),
            "The system that was audited.",
            "Name the system in [report].",
            needs="system",
        ),
        _Ask(
            "Step 1: disparity",
            "A disparity, shown by empirical evidence",
            ("rates",),
            "Rates and gaps by group with intervals and tests; indicators, not conclusions.",
            "Add {audit}.",
        ),
        _Ask(
            "Step 2: justification",
            "Necessity, or a substantial legitimate justification",
            (),
            "",
            _NO_MEASUREMENT,
        ),
        *_alternatives("Step 3: alternatives"),
    ),
    "ecoa-reg-b": (
        _Ask(
            "Regulation B, effects test",
            "Removed by the rule of 22 April 2026, effective 21 July 2026",
            ("rates",),
            "Gaps by group, which states and plaintiffs may still ask for.",
            "Add {audit}, where a state or a plaintiff may ask for gaps.",
        ),
        *_alternatives("Still asked by states and plaintiffs"),
        _Ask("Still asked by states and plaintiffs", "A note on the business justification", (), "", _NO_MEASUREMENT),
    ),
    "eu-ai-act-annex-iv": (
        _Ask("2(d)", "Datasheets of the data", (), "", "Write one beside the report with --format datasheet."),
        _Ask(
            "2(g)",
            "The data used for validation and testing, and their main characteristics",
            ("in-short",),
            "Who was compared, with sizes; Provenance has the hash of the data.",
        ),
        _Ask(
            "2(g)",
            "Metrics of accuracy",
            ("rates",),
            "Errors, of everybody and by group.",
            "Add {audit} of data with an outcome.",
            needs="outcome",
        ),
        _Ask(
            "2(g)",
            "Metrics of robustness",
            ("robustness",),
            "What errors in the data do to the scores, by group.",
            "Add {audit}.",
        ),
        _Ask(
            "2(g)",
            "Metrics of potentially discriminatory impacts",
            ("gaps",),
            "Gaps between groups with intervals.",
            "Add {audit}.",
        ),
        _Ask("2(g)", "Test logs", ("provenance",), "Versions, configuration, hashes; results.json has every number."),
        _Ask(
            "2(g)",
            "Test reports that are dated and signed by the responsible persons",
            ("about",),
            "Dated. Not signed: evenhand pack --sign adds a signature.",
        ),
        _Ask(
            "3",
            "Accuracy for specific persons or groups",
            ("rates",),
            "Errors by group.",
            "Add {audit} of data with an outcome.",
            needs="outcome",
        ),
        _Ask(
            "4",
            "Whether the metrics are appropriate",
            (ANY_AUDIT,),
            "“What these numbers do not show”, in each section; the choice is for the provider to argue.",
        ),
        _Ask(
            "Article 10(2)(f) and (g), (5)",
            "An examination of possible biases of the data",
            ("rates",),
            "Gaps of the decisions, and of the outcome where there is one.",
            "Add {audit}.",
        ),
        _Ask("Retention", "Documentation is kept for 10 years", (), "", "evenhand pack makes one file to keep."),
    ),
    "nist-ai-rmf-1.0": (
        _Ask(
            "MEASURE 1.3",
            "Independent assessors",
            ("about",),
            "The auditor is named; independence is theirs to declare.",
            "Name the auditor in [report].",
            needs="auditor",
        ),
        _Ask(
            "MEASURE 1.3",
            "Affected communities are consulted",
            ("voices",),
            "What stakeholders said of decisions.",
            "Add {audit}.",
        ),
        _Ask(
            "MEASURE 2.1",
            "Test sets, metrics and tools are documented",
            ("provenance",),
            "Data, versions and configuration; “How this was computed” in each section has the metrics.",
        ),
        _Ask(
            "MEASURE 2.2",
            "Evaluations with human subjects protect them and are representative",
            ("people asked",),
            "Who took part, and who was left out; the protections are for the researcher to describe.",
            "There is no study in this report.",
        ),
        _Ask(
            "MEASURE 2.5",
            "The system is demonstrated to be valid and reliable",
            ("reliability",),
            "Reliability by group.",
            "Add {audit}.",
        ),
        _Ask(
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
    """Yield what a profile asks for and where the report has it; `results` are those of the audits that ran."""
    own = {profile: "This section"} if profile == "nyc-ll144-2023" else {}
    titles = {name: result.title for name, result in results.items()} | PAGE | own
    for ask in CHECKLISTS.get(profile, ()):
        place = next((found for name in ask.places for found in _places(name, results, titles)), None)
        if place is None or not _filled(ask.needs, config):
            lacking = ask.lacking.replace("{audit}", _audit_for(ask.places))
            yield Clause(clause=ask.clause, asks=ask.asks, place=None, where=NOT_HERE, remark=lacking)
        else:
            yield Clause(clause=ask.clause, asks=ask.asks, place=place, where=titles[place], remark=ask.holds)


def _places(name: str, results: Mapping[str, Result], titles: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a report that are called so, or that give such evidence."""
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
    """Yield a checklist that follows what is shown: rates are not in the report, or only some, for which `why` says."""
    for clause in clauses:
        if clause.place != profile:
            yield clause
        elif some:
            yield replace(clause, remark=f"{clause.remark} Only in part: {why}")
        else:
            yield replace(clause, place=None, where=NOT_HERE, remark=f"{why[:1].upper()}{why[1:]}")


def _filled(needs: str, config: AuditConfig) -> bool:
    if needs == "intersection":
        groups = config.data.get("groups", ())
        return any(len(columns) > 1 for columns in groups)
    if needs == "outcome":
        return config.data.get("outcome") is not None
    return not needs or bool(getattr(config.report, needs))
