"""The legal exhibit: where the test stands in a disparate-impact case, and what it does and does not establish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.numbers import shown
from evenhand.core.sections import DisplayTable
from evenhand.errors import count

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import ImprovabilityResult


def process_table(result: ImprovabilityResult) -> DisplayTable:
    """Return the three parts of a disparate-impact case, and what this result says to each."""
    rows = (
        (
            "1. Prima facie case. Do the benefits or harms fall disproportionately on a protected group?",
            f"Not tested here. {_gap(result)} The parity audit speaks to this part.",
        ),
        (
            "2. Business necessity. "
            "Is the policy necessary to achieve a legitimate interest that does not discriminate?",
            f"Not tested here. The interest is taken to be measured by {_interest(result)}; whether that is the "
            "legitimate interest is for the parties and the court.",
        ),
        (
            "3. Less discriminatory alternative. "
            "Is there an alternative that serves the same interest and discriminates less?",
            _answer(result),
        ),
    )
    columns = ("Part of the process", "What this result says")
    return DisplayTable("The three-part process of a disparate-impact case", columns, rows, (False, False))


def scope_table(result: ImprovabilityResult) -> DisplayTable:
    """Return what the result establishes, and what it does not."""
    spec, rejected = result.spec, bool(result.established)
    rows = [
        ("Population", _population(result)),
        ("Measures", f"Accuracy is {_interest(result)}; fairness is the gap between groups in {_fairness(result)}."),
        (
            "Error",
            f"If no candidate were better in all measures at once, the test would still reject in at most "
            f"{shown(spec.test.alpha, percent=True)} of samples, with all candidates allowed for, in large samples.",
        ),
    ]
    if rejected:
        rows += [
            (
                "It establishes",
                "At this level of error, that an algorithm exists which is fairer and no less accurate "
                "by these measures. The algorithm itself can be exported and examined.",
            ),
            (
                "It does not establish",
                "That this alternative is the best one; that it is lawful, practical or cheap; "
                "that it serves interests which the measures leave out; or that it would do as well in another "
                "population or year.",
            ),
        ]
    else:
        rows += [
            (
                "It establishes",
                "That these candidates were not shown to be better in all measures at once on these rows.",
            ),
            (
                "It does not establish",
                "That the disparity is necessary. A better algorithm may exist that these rules "
                "did not find, or the rows may be too few to show it; the next table says which is more plausible.",
            ),
        ]
    return DisplayTable("What this establishes", ("", ""), tuple(rows), (False, False))


def _population(result: ImprovabilityResult) -> str:
    sample = result.inputs.sample
    groups = ", ".join(sample.groups)
    known = f" Only people whose outcome is known: {count(sample.unlabelled, 'row')} without were left out."
    return (
        f"The population that these {count(len(sample), 'row')} were drawn from, by {sample.grouping} ({groups})."
        f"{known if sample.unlabelled else ''}"
    )


def _interest(result: ImprovabilityResult) -> str:
    who = "for everyone together" if result.spec.test.accuracy_of == "everyone" else "for each group"
    better = "" if result.spec.utility.better == "higher" else ", lower is better"
    return f"{_meaning(result.spec.utility.name)} {who}{better}"


def _fairness(result: ImprovabilityResult) -> str:
    return " and in ".join(_meaning(utility.name) for utility in result.spec.fairness)


def _meaning(utility: str) -> str:
    known = {
        "classification": "the share of right decisions (classification)",
        "calibration": "the mean outcome of the selected (calibration)",
        "false_positive_rate": "the share of those with outcome 0 who are selected (false positive rate)",
        "false_negative_rate": "the share of those with outcome 1 who are not selected (false negative rate)",
        "profit": "the mean price that is paid (profit)",
    }
    return known.get(utility, utility)


def _gap(result: ImprovabilityResult) -> str:
    utility = result.spec.fairness[0].name
    own = [r for r in result.values if r.candidate is None and r.utility == utility and r.value is not None]
    own = [r for r in own if r.group in result.inputs.sample.groups]
    said = ", ".join(f"{r.group} {shown(r.value)}" for r in own)
    return f"For orientation, {utility.replace('_', ' ')} under the status quo: {said}."


def _answer(result: ImprovabilityResult) -> str:
    spec, several = result.spec, len(result.spec.candidates) > 1
    if result.established:
        best = min(result.established, key=lambda one: one.p_median or 0.0)
        names = ", ".join(one.candidate for one in result.established)
        adjusted = f", and {shown(best.p_adjusted)} with all candidates allowed for" if several else ""
        return (
            f"Yes, by these measures: {names}. For {best.candidate} the hypothesis of no improvement is rejected at "
            f"level {spec.test.alpha:g} (median p = {shown(best.p_median)}; combined p = {shown(best.value)}{adjusted})."
        )
    if result.rejections:
        best = min(result.rejections, key=lambda one: one.p_median or 0.0)
        return (
            f"Not established. The test of {best.candidate} alone rejects (combined p = {shown(best.value)}), but "
            f"{len(spec.candidates)} candidates were tried, and with all of them allowed for the p-value is "
            f"{shown(best.p_adjusted)}. It would count if {best.candidate} had been named beforehand."
        )
    return "No such alternative was shown. That is not the same as there being none: see what this does not establish."
