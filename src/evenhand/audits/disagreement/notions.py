"""The notions of fairness in words: what each asks, and what the answers tell of it."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.stats.feedback import DEFINITE, INDEFINITE, TOLERANT, Bounds
from evenhand.stats.feedback import FeedbackMetric as Notion


@dataclass(frozen=True)
class Words:
    """One notion in words.

    Parameters
    ----------
    title : its name as it stands in a chart or table.
    asks : the question behind it, for somebody who answers or reads.
    rate : the rate in symbols: y is the system's label, z the label that the critic has in mind.
    caveat : what a gap in it does not show.
    """

    title: str
    asks: str
    rate: str
    caveat: str

    @property
    def in_sentence(self) -> str:
        """The title within a sentence."""
        return self.title[:1].lower() + self.title[1:]


_NOT_WHO_IS_RIGHT = "It says what critics would have decided, not who is right."
_OPEN = "Who disagrees does not say which label would be right; the bounds hold for everything the answers leave open."

_PUBLISHED = "Who disagrees does not say which label would be right; the published bounds may be too wide."
_WRONG_WAY = (
    "Who disagrees does not say which label would be right; the published bounds of this notion do not hold, so that "
    "the truth can lie outside."
)

WORDS: dict[str, Words] = {
    "statistical_parity": Words(
        "Statistical parity",
        "How often does the system give this label?",
        "P(y = k)",
        "It rests on the system's labels alone; the answers have no part in it.",
    ),
    "calibration": Words(
        "Calibration",
        "When the system gives this label, how often do critics agree?",
        "P(z = k | y = k)",
        _NOT_WHO_IS_RIGHT,
    ),
    "accuracy_equality": Words(
        "Accuracy equality",
        "How often do critics agree with the system, whatever the label?",
        "P(z = y)",
        _NOT_WHO_IS_RIGHT,
    ),
    "equal_opportunity": Words(
        "Equal opportunity",
        "Of the cases that critics would give this label, how many did the system give it?",
        "P(y = k | z = k)",
        _OPEN,
    ),
    "predictive_equality": Words(
        "Predictive equality",
        "Of the cases that critics would not give this label, how many did the system give it?",
        "P(y = k | z is not k)",
        _OPEN,
    ),
    "overall_misclassification": Words(
        "Overall misclassification",
        "Of the cases that critics would give this label, how many did the system not give it?",
        "P(y is not k | z = k)",
        _OPEN,
    ),
    "tolerant_calibration": Words(
        "Tolerant calibration",
        "When the system gives this label, how often do critics find it near enough?",
        "P(z near k | y = k)",
        _NOT_WHO_IS_RIGHT,
    ),
    "tolerant_accuracy": Words(
        "Tolerant accuracy",
        "How often do critics find the system near enough, whatever the label?",
        "P(z near y)",
        _NOT_WHO_IS_RIGHT,
    ),
}


def caveat_of(notion: str, bounds: Bounds) -> str:
    """Return what a gap in a notion does not show, by the bounds that were used."""
    if bounds == "published" and notion in INDEFINITE:
        return _WRONG_WAY if notion == "overall_misclassification" else _PUBLISHED
    return WORDS[notion].caveat


def notions_for(tolerance: int | None) -> tuple[Notion, ...]:
    """Return the notions of an audit: six, and with a tolerance the two that stay exact."""
    return (*DEFINITE, *INDEFINITE, *(TOLERANT if tolerance else ()))
