"""The metrics of the audit: six of fairness between groups of cases, two with a tolerance, and three of pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.core.metrics import Metric, gap_limits
from evenhand.stats.feedback import DEFINITE, INDEFINITE, TOLERANT, Bounds, FeedbackMetric

PAPER = "Telukunta and Nadendla, Towards inclusive fairness evaluation via eliciting disagreement feedback"
DISAGREEMENT = "disagreement"
"""The metric that compares kinds of critics; it has no gap between groups."""

_NOT_WHO_IS_RIGHT = "It says what critics would have decided, not who is right."
_OPEN = "Who disagrees does not say which label would be right; the bounds hold for everything the answers leave open."
_PUBLISHED = "Who disagrees does not say which label would be right; the published bounds may be too wide."
_WRONG_WAY = (
    "Who disagrees does not say which label would be right; the published bounds of this metric do not hold, so that "
    "the truth can lie outside."
)
_SHOWN_CASES = "which cases were shown to whom: a case that more critics saw counts more"
_WHO_ANSWERS = "who answers, and which cases they were shown"


@dataclass(frozen=True, kw_only=True)
class CriticMetric(Metric):
    """A metric estimated from critics' answers.

    Parameters
    ----------
    asks : the question behind the metric, for respondents and readers.
    """

    asks: str


def _row(
    name: str, title: str, *, asks: str, formula: str, caveat: str, moves_with: str = _WHO_ANSWERS
) -> CriticMetric:
    """Return a metric of fairness; its formula has the system's label y and the critic's own label z."""
    return CriticMetric(
        name=name,
        title=title,
        unit="share",
        formula=formula,
        reference=PAPER,
        caveat=caveat,
        headline=True,
        moves_with=moves_with,
        limits=gap_limits(against=("worst_pair",)),
        asks=asks,
    )


_ROWS = (
    _row(
        "statistical_parity",
        "Statistical parity",
        asks="How often does the system give this label?",
        formula="P(y = k)",
        caveat="It rests on the system's labels alone; the answers have no part in it.",
        moves_with=_SHOWN_CASES,
    ),
    _row(
        "calibration",
        "Calibration",
        asks="When the system gives this label, how often do critics agree?",
        formula="P(z = k | y = k)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    _row(
        "accuracy_equality",
        "Accuracy equality",
        asks="How often do critics agree with the system, whatever the label?",
        formula="P(z = y)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    _row(
        "equal_opportunity",
        "Equal opportunity",
        asks="Of the cases that critics would give this label, how many did the system give it?",
        formula="P(y = k | z = k)",
        caveat=_OPEN,
    ),
    _row(
        "predictive_equality",
        "Predictive equality",
        asks="Of the cases that critics would not give this label, how many did the system give it?",
        formula="P(y = k | z is not k)",
        caveat=_OPEN,
    ),
    _row(
        "overall_misclassification",
        "Overall misclassification",
        asks="Of the cases that critics would give this label, how many did the system not give it?",
        formula="P(y is not k | z = k)",
        caveat=_OPEN,
    ),
    _row(
        "tolerant_calibration",
        "Tolerant calibration",
        asks="When the system gives this label, how often do critics find it near enough?",
        formula="P(z near k | y = k)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    _row(
        "tolerant_accuracy",
        "Tolerant accuracy",
        asks="How often do critics find the system near enough, whatever the label?",
        formula="P(z near y)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    CriticMetric(
        name=DISAGREEMENT,
        title="Disagreement",
        unit="share",
        formula="P(z is not k | y = k)",
        reference=PAPER,
        caveat="That two kinds of people see a case differently does not say which of them is right.",
        moves_with=_WHO_ANSWERS,
        asks="When the system gives this label, how often do critics disagree?",
    ),
)

_PAIR_ROWS = tuple(
    CriticMetric(
        name=name,
        title=title,
        unit="share",
        formula=formula,
        reference="ours, after the wish of Telukunta and Nadendla",
        caveat="It does not say who is inconsistent, the system or the critic.",
        moves_with=_WHO_ANSWERS,
        asks=asks,
    )
    for name, title, formula, asks in (
        (
            "split_answers",
            "Split answers",
            "P(z_i = y_i and z_j is not y_j, or the other way round | i and j are like cases)",
            "Of two like cases, how often does a critic agree with the one decision and not with the other?",
        ),
        (
            "held_alike_treated_apart",
            "Held alike, treated apart",
            "P(z_i = z_j and y_i is not y_j | i and j are like cases)",
            "Of two like cases, how often would the critic give both one label, and the system gave two?",
        ),
        (
            "held_apart_treated_alike",
            "Held apart, treated alike",
            "P(z_i is not z_j and y_i = y_j | i and j are like cases)",
            "Of two like cases, how often would the critic give them two labels, and the system gave one?",
        ),
    )
)

METRICS: dict[str, CriticMetric] = {row.name: row for row in (*_ROWS, *_PAIR_ROWS)}
_CAVEATS_PUBLISHED = dict.fromkeys(INDEFINITE, _PUBLISHED) | {"overall_misclassification": _WRONG_WAY}


def computed_metrics(tolerance: int) -> tuple[FeedbackMetric, ...]:
    """Return the metrics with computed gaps: six, and two more with a tolerance."""
    return (*DEFINITE, *INDEFINITE, *(TOLERANT if tolerance else ()))


def metrics_for(tolerance: int, bounds: Bounds) -> dict[str, CriticMetric]:
    """Return the computed metrics by name.

    With published bounds, some metrics have other caveats.
    """
    rows = {name: METRICS[name] for name in (*computed_metrics(tolerance), DISAGREEMENT)}
    if bounds == "published":
        rows |= {name: replace(METRICS[name], caveat=caveat) for name, caveat in _CAVEATS_PUBLISHED.items()}
    return rows
