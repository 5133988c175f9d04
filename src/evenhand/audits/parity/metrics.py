"""The table of group metrics. Options, tables, captions and docs are generated from it.

Every metric but AUC is a ratio of sums over a group's people. The people fall into four cells by decision
and outcome: `tp` (selected, positive), `fp` (selected, negative), `fn` (not selected, positive) and `tn`.
`score` and `loss` are the sums of the scores and of the squared errors over all four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.core.spec import Against, Kind
from evenhand.stats.types import FloatArray

ALL = ("tp", "fp", "fn", "tn")
CELLS = {"tp": (1, 1), "fp": (0, 1), "fn": (1, 0), "tn": (0, 0)}
WEIGHT, SCORE, LOSS = range(3)

Direction = Literal["higher", "lower", "neither"]

_WORSE: dict[str, tuple[Literal["lower", "higher"] | None, Literal["lower", "higher"] | None]] = {
    "selection_rate": ("lower", "higher"),
    "mean_score": ("lower", "higher"),
    "tpr": ("lower", None),
    "fnr": ("higher", None),
    "fpr": (None, "higher"),
    "tnr": (None, "lower"),
    "accuracy": ("lower", "lower"),
    "auc": ("lower", "lower"),
    "brier": ("higher", "higher"),
}
"""Which value is worse for the people of a group: where being selected is good for them, and where it is bad."""

_HARDT = "Hardt, Price and Srebro 2016, Equality of opportunity in supervised learning, NeurIPS 29"
_CHOULDECHOVA = "Chouldechova 2017, Fair prediction with disparate impact, Big Data 5(2)"
_DWORK = "Dwork et al. 2012, Fairness through awareness, ITCS"
_CORBETT = "Corbett-Davies et al. 2017, Algorithmic decision making and the cost of fairness, KDD"
_LABELS = "It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so is this."


@dataclass(frozen=True)
class Metric:
    """One group metric.

    Parameters
    ----------
    name : the short name used in options and records.
    title : the name in words.
    meaning : what it is the share or mean of, to complete "the ...".
    numerator, denominator : the cells (or sums) above and below the line.
    kind : 'rate' (Wilson intervals), 'mean' (Student's t on the logit scale), 'rank' (DeLong) or 'custom' (bootstrap).
    direction : which way is better for the system's users: 'higher', 'lower' or 'neither'.
    needs : what the table must have: 'outcome', 'scores', 'scores between 0 and 1'.
    empty : why it is undefined when the denominator is empty.
    caveat : what a gap in it does not show.
    citation : where it comes from.
    default : whether it is computed when no metrics are named.
    headline : whether its worst gap is a finding of its own.
    """

    name: str
    title: str
    meaning: str
    numerator: tuple[str, ...]
    denominator: tuple[str, ...]
    kind: Literal["rate", "mean", "rank", "custom"]
    direction: Direction
    needs: tuple[str, ...]
    empty: str
    caveat: str
    citation: str
    default: bool = True
    headline: bool = False

    @property
    def formula(self) -> str:
        """The definition in cells, as in 'tp / (tp + fn)'."""
        return f"{_sum_of(self.numerator)} / {_sum_of(self.denominator)}" if self.numerator else self.meaning

    def worse(self, favourable: str | None) -> Literal["lower", "higher"] | None:
        """Return which value is worse for the people of a group, or None where neither is or nobody said.

        Parameters
        ----------
        favourable : 'selected' or 'not_selected', the side of the decision that is good for the person, or None.
        """
        good, bad = _WORSE.get(self.name, (None, None))
        if favourable is None:
            return good if good == bad else None
        return good if favourable == "selected" else bad

    @property
    def title_in_sentence(self) -> str:
        """The title as it stands inside a sentence; an abbreviation keeps its capitals."""
        return self.title if self.title.isupper() else f"{self.title[:1].lower()}{self.title[1:]}"

    @property
    def percent(self) -> bool:
        """Whether values are shown as percentages."""
        return self.kind == "rate"

    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Return the numerator's coefficients by (outcome, decision, row value) and the denominator's by cell."""
        above, below = np.zeros((2, 2, 3)), np.zeros((2, 2))
        for term in self.numerator:
            if term in CELLS:
                above[(*CELLS[term], WEIGHT)] = 1.0
            else:
                above[..., {"score": SCORE, "loss": LOSS}[term]] = 1.0
        for term in self.denominator:
            below[CELLS[term]] = 1.0
        return above, below


def _sum_of(terms: tuple[str, ...]) -> str:
    if terms == ALL:
        return "n"
    return terms[0] if len(terms) == 1 else "(" + " + ".join(terms) + ")"


_NOBODY = "the group has no people"
_NO_POSITIVES = "nobody in the group has the positive outcome"
_NO_NEGATIVES = "nobody in the group has the negative outcome"
_NO_SELECTED = "nobody in the group is selected"
_ALL_SELECTED = "everybody in the group is selected"


def _rate(
    name: str,
    title: str,
    meaning: str,
    above: tuple[str, ...],
    below: tuple[str, ...],
    direction: Direction,
    empty: str,
    citation: str,
    *,
    caveat: str = _LABELS,
    needs: tuple[str, ...] = ("outcome",),
    default: bool = True,
    headline: bool = False,
) -> Metric:
    return Metric(
        name, title, meaning, above, below, "rate", direction, needs, empty, caveat, citation, default, headline
    )


_TABLE = (
    _rate(
        "selection_rate",
        "Selection rate",
        "share of people who are selected",
        ("tp", "fp"),
        ALL,
        "neither",
        _NOBODY,
        _DWORK,
        needs=(),
        headline=True,
        caveat="It does not say whether the groups differ in what the decision should rest on; compare people who are "
        "alike in that.",
    ),
    Metric(
        "mean_score",
        "Mean score",
        "mean score",
        ("score",),
        ALL,
        "mean",
        "neither",
        ("scores",),
        _NOBODY,
        "Equal means can hide unequal decisions at the threshold, and unequal means can be deserved.",
        _DWORK,
        headline=True,
    ),
    _rate(
        "tpr",
        "True positive rate",
        "share selected among people with the positive outcome",
        ("tp",),
        ("tp", "fn"),
        "higher",
        _NO_POSITIVES,
        _HARDT,
        headline=True,
    ),
    _rate(
        "fpr",
        "False positive rate",
        "share selected among people with the negative outcome",
        ("fp",),
        ("fp", "tn"),
        "lower",
        _NO_NEGATIVES,
        _HARDT,
        headline=True,
    ),
    _rate(
        "fnr",
        "False negative rate",
        "share not selected among people with the positive outcome",
        ("fn",),
        ("tp", "fn"),
        "lower",
        _NO_POSITIVES,
        _CHOULDECHOVA,
    ),
    _rate(
        "tnr",
        "True negative rate",
        "share not selected among people with the negative outcome",
        ("tn",),
        ("fp", "tn"),
        "higher",
        _NO_NEGATIVES,
        _CHOULDECHOVA,
        default=False,
    ),
    _rate(
        "ppv",
        "Positive predictive value",
        "share with the positive outcome among people selected",
        ("tp",),
        ("tp", "fp"),
        "higher",
        _NO_SELECTED,
        _CHOULDECHOVA,
    ),
    _rate(
        "npv",
        "Negative predictive value",
        "share with the negative outcome among people not selected",
        ("tn",),
        ("fn", "tn"),
        "higher",
        _ALL_SELECTED,
        _CHOULDECHOVA,
    ),
    _rate(
        "accuracy",
        "Accuracy",
        "share of people whose decision matches the outcome",
        ("tp", "tn"),
        ALL,
        "higher",
        _NOBODY,
        _CORBETT,
        caveat="It weighs both kinds of mistakes alike, and it follows the group's base rate. " + _LABELS,
    ),
    _rate(
        "base_rate",
        "Base rate",
        "share of people with the positive outcome",
        ("tp", "fn"),
        ALL,
        "neither",
        _NOBODY,
        _CHOULDECHOVA,
        default=False,
        caveat="It describes the data, not the system; but it moves most of the metrics above.",
    ),
    Metric(
        "brier",
        "Brier score",
        "mean squared distance of the score from the outcome",
        ("loss",),
        ALL,
        "mean",
        "lower",
        ("outcome", "scores between 0 and 1"),
        _NOBODY,
        "It mixes calibration with how predictable a group is. " + _LABELS,
        "Brier 1950, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78",
    ),
    Metric(
        "auc",
        "AUC",
        "probability that a person with the positive outcome scores above one without, ties counting half",
        (),
        (),
        "rank",
        "higher",
        ("outcome", "scores"),
        "the group has only one of the two outcomes",
        "It compares people within a group only; equal AUCs can go with very unequal scores between groups. " + _LABELS,
        "DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}
"""The metrics by name, in the order in which they are shown."""

NAMED_GAPS: dict[str, tuple[str, Kind, Against]] = {
    "traditional_parity": ("mean_score", "ratio", "worst_pair"),
    "demographic_parity_difference": ("selection_rate", "difference", "worst_pair"),
    "demographic_parity_ratio": ("selection_rate", "ratio", "worst_pair"),
    "equal_opportunity_difference": ("tpr", "difference", "worst_pair"),
    "predictive_equality_difference": ("fpr", "difference", "worst_pair"),
}
"""Gaps that the literature knows by a name of their own. Traditional parity is that of the effort paper."""

GAP_NAMES = {gap: name for name, gap in NAMED_GAPS.items()}
