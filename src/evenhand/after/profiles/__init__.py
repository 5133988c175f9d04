"""Dated legal profiles: the tables, words and minimum contents that a rule asks of a report.

Its description of the law is a survey of reporting conventions with date and sources, and no legal advice.
Anything the survey did not cover is called unchecked. A profile has indicators; it never finds a violation.
"""

from __future__ import annotations

from dataclasses import dataclass

SURVEYED = "November 2026"
NO_ADVICE = (
    "This is not legal advice: it describes what a rule asks a report to contain, as surveyed in " + SURVEYED + "."
)


@dataclass(frozen=True)
class Profile:
    """One rule, as described on a date.

    Parameters
    ----------
    name, title : what a user writes, and the heading of the section.
    date : the date of the rule as it is described here.
    about : what the section holds, in a sentence.
    status : the changes since, with dates.
    sources : where it was read.
    unchecked : what the survey did not cover.
    counts : whether it needs the numbers of people selected, which an audit with `counts` has.
    """

    name: str
    title: str
    date: str
    about: str
    status: tuple[str, ...]
    sources: tuple[str, ...]
    unchecked: str
    counts: bool = False


_FEDERAL = (
    "Title VI: the Department of Justice rescinded its disparate-impact regulations (90 FR 57141), effective "
    "10 December 2025."
)

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "ugesp-1978",
            "UGESP (1978)",
            "1978",
            "Indicators of adverse impact in selection, by the Uniform Guidelines on Employee Selection Procedures: "
            "every group beside the one with the highest rate.",
            (
                "Title VII (Civil Rights Act of 1991) stands; in September 2025 the EEOC ordered its disparate-impact "
                "charges closed.",
                "A rate below four fifths of the highest “will generally be regarded … as evidence of adverse impact”; "
                "smaller differences may still count where they are significant, larger ones may not where numbers "
                "are small. An indicator is not a conclusion.",
            ),
            (
                "29 CFR 1607.4(D)",
                "Questions and Answers on the Uniform Guidelines",
                "OFCCP, Federal Contract Compliance Manual, 1O and 1O01",
                "dorsey.com, December 2025",
            ),
            "the Guidelines' rules on validity, on records, and on which groups need not be compared.",
            counts=True,
        ),
        Profile(
            "nyc-ll144-2023",
            "New York City Local Law 144 (2023)",
            "2023",
            "The tables of a bias audit of an automated employment decision tool: rates and impact ratios by category, "
            "each beside the category with the highest rate.",
            (
                "The rule has no threshold: it does not say that a ratio of 0.8, or any other, is enough.",
                "The State Comptroller found enforcement weak (audit 2024-N-6, 2 December 2025); others use the "
                "published figures.",
            ),
            (
                "6 RCNY 5-300 to 5-304",
                "New York State Comptroller, audit 2024-N-6",
                "bsk.com, paulhastings.com and holisticai.com on the rule",
            ),
            "which tools and employers the law covers, and the notices to candidates.",
            counts=True,
        ),
        Profile(
            "nj-13-16-2025",
            "New Jersey N.J.A.C. 13:16 (2025)",
            "effective 15 December 2025",
            "The three steps of disparate impact as New Jersey codified them, and where this report has them.",
            (
                "The rules name automated tools, and require empirical evidence and an analysis of less discriminatory "
                "alternatives.",
                _FEDERAL,
            ),
            ("regulon.ai and mondaq.com on N.J.A.C. 13:16", "90 FR 57141"),
            "the numbers of the single subsections, exceptions, and remedies.",
        ),
        Profile(
            "eu-ai-act-annex-iv",
            "EU AI Act, Annex IV",
            "as of the Council's Digital Omnibus of 29 June 2026",
            "Points of the technical documentation of Annex IV that an audit can fill, and where this report does.",
            (
                "By the Digital Omnibus (Council, 29 June 2026) the duties for high-risk systems of Annex III apply "
                "from 2 December 2027, those of Annex I from 2 August 2028.",
                "Documentation is kept for 10 years.",
            ),
            ("aiact.annotated.nl", "privacy-web.nl", "futureprep.eu and confir.eu on the Digital Omnibus"),
            "the other points of Annex IV, and whether a system is high-risk.",
        ),
        Profile(
            "nist-ai-rmf-1.0",
            "NIST AI RMF 1.0",
            "version 1.0 (NIST AI 100-1)",
            "Subcategories of MEASURE that an audit can serve, and where this report does.",
            ("A profile maps a report to the framework; it certifies nothing.",),
            ("NIST AI 100-1, table 3",),
            "the functions GOVERN, MAP and MANAGE, and the other subcategories of MEASURE.",
        ),
        Profile(
            "ecoa-reg-b",
            "ECOA and Regulation B",
            "rule of 22 April 2026, effective 21 July 2026",
            "What is left of disparate impact in lending at the federal level, and what lenders are still asked for.",
            (
                "The CFPB's final rule of 22 April 2026 removes the effects test from Regulation B, effective "
                "21 July 2026.",
                "Fair Housing Act: HUD proposed on 14 January 2026 to delete 24 CFR 100.500 (91 FR 1475); the statute "
                "and Inclusive Communities (2015) remain.",
                _FEDERAL,
            ),
            ("cooley.com, orrick.com and venable.com on the rule of 22 April 2026", "91 FR 1475", "90 FR 57141"),
            "disparate treatment, reasons for adverse action, records, and the law of single states.",
        ),
    )
}
"""The profiles by name."""
