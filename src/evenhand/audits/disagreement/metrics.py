"""The table of the audit's metrics: six of fairness between groups of cases, and two more with a tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.stats.feedback import DEFINITE, INDEFINITE, TOLERANT, Bounds, Notion

PAPER = "Telukunta and Nadendla, Towards inclusive fairness evaluation via eliciting disagreement feedback"
DISAGREEMENT = "disagreement"
"""The metric by which kinds of critics are compared; it has no gap between groups."""

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
class CriticMetric:
    """One metric, with the question behind it.

    Parameters
    ----------
    asks : the question, for somebody who answers or reads.
    formula : the rate in symbols: y is the system's label, z the label that the critic has in mind.
    """

    name: str
    title: str
    asks: str
    formula: str
    caveat: str
    moves_with: str = _WHO_ANSWERS

    @property
    def title_in_sentence(self) -> str:
        """The title within a sentence."""
        return self.title[:1].lower() + self.title[1:]


_ROWS = (
    CriticMetric(
        name="statistical_parity",
        title="Statistical parity",
        asks="How often does the system give this label?",
        formula="P(y = k)",
        caveat="It rests on the system's labels alone; the answers have no part in it.",
        moves_with=_SHOWN_CASES,
    ),
    CriticMetric(
        name="calibration",
        title="Calibration",
        asks="When the system gives this label, how often do critics agree?",
        formula="P(z = k | y = k)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    CriticMetric(
        name="accuracy_equality",
        title="Accuracy equality",
        asks="How often do critics agree with the system, whatever the label?",
        formula="P(z = y)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    CriticMetric(
        name="equal_opportunity",
        title="Equal opportunity",
        asks="Of the cases that critics would give this label, how many did the system give it?",
        formula="P(y = k | z = k)",
        caveat=_OPEN,
    ),
    CriticMetric(
        name="predictive_equality",
        title="Predictive equality",
        asks="Of the cases that critics would not give this label, how many did the system give it?",
        formula="P(y = k | z is not k)",
        caveat=_OPEN,
    ),
    CriticMetric(
        name="overall_misclassification",
        title="Overall misclassification",
        asks="Of the cases that critics would give this label, how many did the system not give it?",
        formula="P(y is not k | z = k)",
        caveat=_OPEN,
    ),
    CriticMetric(
        name="tolerant_calibration",
        title="Tolerant calibration",
        asks="When the system gives this label, how often do critics find it near enough?",
        formula="P(z near k | y = k)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
    CriticMetric(
        name="tolerant_accuracy",
        title="Tolerant accuracy",
        asks="How often do critics find the system near enough, whatever the label?",
        formula="P(z near y)",
        caveat=_NOT_WHO_IS_RIGHT,
    ),
)

METRICS: dict[str, CriticMetric] = {row.name: row for row in _ROWS}


def caveat_of(metric: str, bounds: Bounds) -> str:
    """Return what a gap in a metric does not show, by the bounds that were used."""
    if bounds == "published" and metric in INDEFINITE:
        return _WRONG_WAY if metric == "overall_misclassification" else _PUBLISHED
    return METRICS[metric].caveat


def metrics_for(tolerance: int) -> tuple[Notion, ...]:
    """Return the metrics of an audit: six, and with a tolerance the two that stay exact."""
    return (*DEFINITE, *INDEFINITE, *(TOLERANT if tolerance else ()))
