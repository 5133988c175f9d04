"""Where the test stands in a disparate-impact case, and what it does and does not establish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.audits.improvability.metrics import MEANINGS
from evenhand.audits.improvability.spec import STATUS_QUO
from evenhand.core.display import DisplayTable
from evenhand.core.formats import show, show_p
from evenhand.core.records import OVERALL
from evenhand.errors import count

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import Decision, ImprovabilityResult

_SHOWN = (
    (
        "It establishes",
        "At this level of error, that an algorithm exists which is fairer and no less accurate by these measures. The "
        "algorithm itself can be exported and examined.",
    ),
    (
        "It does not establish",
        "That this alternative is the best one; that it is lawful, practical or cheap; that it serves interests which "
        "the measures leave out; or that it would do as well in another population or year.",
    ),
)
_NOT_SHOWN = (
    ("It establishes", "That these candidates were not shown to be better in all measures at once on these rows."),
    (
        "It does not establish",
        "That the disparity is necessary. A better algorithm may exist that these rules did not find, or the rows may "
        "be too few to show it; the next table says which is more plausible.",
    ),
)


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
    return DisplayTable("The three-part process of a disparate-impact case", columns, rows)


def scope_table(result: ImprovabilityResult) -> DisplayTable:
    """Return what the result establishes, and what it does not."""
    fairness = " and in ".join(_meaning(utility.name) for utility in result.spec.fairness)
    error = (
        "If no candidate were better in all measures at once, the test would still reject in at most "
        f"{show(result.spec.test.alpha, 'percent')} of samples, adjusted for all candidates, in large samples."
    )
    rows = (
        ("Population", _population(result)),
        ("Measures", f"Accuracy is {_interest(result)}; fairness is the gap between groups in {fairness}."),
        ("Error", error),
        *(_SHOWN if result.established else _NOT_SHOWN),
    )
    return DisplayTable("What this establishes", ("", ""), rows)


def _population(result: ImprovabilityResult) -> str:
    known = f" Only people whose outcome is known: {count(result.unlabelled, 'row')} without were left out."
    return (
        f"The population that these {count(result.n, 'row')} were drawn from, by {result.groupings[0]} "
        f"({', '.join(result.groups)}).{known if result.unlabelled else ''}"
    )


def _interest(result: ImprovabilityResult) -> str:
    who = "for everyone together" if result.spec.test.accuracy_of == "everyone" else "for each group"
    return f"{_meaning(result.spec.utility.name)} {who}{'' if result.better == 'higher' else ', lower is better'}"


def _meaning(utility: str) -> str:
    return MEANINGS.get(utility, utility)


def _gap(result: ImprovabilityResult) -> str:
    utility = result.spec.fairness[0].name
    style = result.metrics[utility].style()
    values = result.rows("values", model=STATUS_QUO, metric=utility)
    listed = ", ".join(
        f"{v.group} {show(v.value, style)}" for v in values if v.group != OVERALL and v.value is not None
    )
    return f"For orientation, {utility.replace('_', ' ')} under the status quo: {listed}."


def _answer(result: ImprovabilityResult) -> str:
    spec, several = result.spec, len(result.spec.candidates)
    if result.established:
        best = _clearest(result.established)
        names = ", ".join(decision.model for decision in result.established)
        adjusted = f", and {show_p(best.p_adjusted or 0.0)} adjusted for all candidates" if several > 1 else ""
        return (
            f"Yes, by these measures: {names}. For {best.model} the hypothesis of no improvement is rejected at level "
            f"{spec.test.alpha:g} (median {show_p(best.p_median or 0.0)}; combined {show_p(best.p_value or 0.0)}"
            f"{adjusted})."
        )
    if result.rejections:
        best = _clearest(result.rejections)
        return (
            f"Not established. The test of {best.model} alone rejects (combined {show_p(best.p_value or 0.0)}), but "
            f"{several} candidates were tried, and adjusted for all of them it does not "
            f"({show_p(best.p_adjusted or 0.0)}). It would count if {best.model} had been named beforehand."
        )
    return "No such alternative was shown. That is not the same as there being none: see what this does not establish."


def _clearest(decisions: tuple[Decision, ...]) -> Decision:
    return min(decisions, key=lambda decision: decision.p_median or 0.0)
