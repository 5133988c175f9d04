"""How the numbers of the disagreement audit were computed, in the words of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.disagreement.charts import told_notions
from evenhand.audits.disagreement.notions import WORDS
from evenhand.core.sections import Method

if TYPE_CHECKING:
    from evenhand.audits.disagreement.result import DisagreementResult

_PAPER = "Telukunta and Nadendla, Towards inclusive fairness evaluation via eliciting disagreement feedback"


def methods_of(result: DisagreementResult) -> Iterator[Method]:
    """Yield how each number was computed."""
    spec = result.spec
    yield Method(
        "What is compared",
        "The system gives a case the label y. A critic has a label z in mind that nobody sees, and answers. An answer "
        "leaves a set of labels open: agree {y}; disagree all others; too high those below y; too low those above"
        + (f"; agree means at most {spec.tolerance} steps apart." if spec.tolerance else "."),
        _PAPER,
    )
    for notion in told_notions(gap for gap in result.gaps if gap.critic is None):
        yield Method(WORDS[notion].title, f"{WORDS[notion].rate} within each group. {WORDS[notion].asks}", _PAPER)
    if spec.bounds == "sharp":
        yield Method(
            "Bounds of a rate",
            "With T the mass of cases that critic and system both call k, and Q the mass that the critic alone calls "
            "k, equal opportunity is T / (T + Q). Answers that leave one label open fix a part of T and Q; the others "
            "may count or not. T rests on the cases labelled k and Q on all others, so both ends are reached: the "
            "bounds are sharp. Predictive equality likewise.",
            "Manski 2003, Partial Identification of Probability Distributions",
        )
    else:
        yield Method(
            "Bounds of a rate",
            "As published: lower bounds that let a critic who agrees with a label mean another one, and 1 as upper "
            "bound. The lower bound of overall misclassification should be an upper bound.",
            _PAPER,
        )
    yield Method(
        "Gap",
        "The largest difference R_mk - R_m'k over labels k and pairs of groups. Its upper bound is reached; its lower "
        "bound is the smallest gap over everything that the answers leave open, all labels of two groups at once.",
    )
    drawn = "Critics and cases are both drawn again" if spec.cases == "sample" else "Critics are drawn again"
    yield Method(
        "Intervals",
        f"{drawn}, an answer counting as often as its critic times as often as its case, {spec.resamples:,} times "
        "unless a note says fewer. The limits hold for the true gap wherever it lies between its bounds; since a "
        "gap is a largest difference, they go back to the single differences.",
        "Owen 2007, Annals of Applied Statistics 1; Stoye 2009, Econometrica 77; Chernozhukov, Lee and Rosen 2013, "
        "Econometrica 81",
    )
    if result.stakeholders:
        yield Method(
            "Kinds of critics",
            "On the cases that both have seen, each case counting the same for both. Student's t on the standard error "
            "of the bootstrap; p-values adjusted by Holm over all comparisons of a grouping.",
            "Holm 1979, Scandinavian Journal of Statistics 6; Cameron, Gelbach and Miller 2011, Journal of Business "
            "and Economic Statistics 29",
        )
    yield Method(
        "What it cannot tell",
        "Whether critics are right; why they disagree; what they would have said to another label or to cases they did "
        "not see. A gap says that critics and system part more often over one group than over another. It does not say "
        "which of the two treats the group unfairly.",
    )
