"""Replication of the disagreement paper: figure 1, with Dressel and Farid's critics of COMPAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from evenhand.charts import curve
from evenhand.core.display import Figure
from evenhand.datasets import load_dressel_farid
from evenhand.datasets.registry import at_hand
from evenhand.messages.formats import show
from evenhand.replication.records import Chapter, Claim, PrintedLine, published
from evenhand.stats.feedback import Feedback, FeedbackMetric, gap
from evenhand.stats.types import FloatArray

NOTIONS: dict[FeedbackMetric, str] = {
    "equal_opportunity": "EO",
    "predictive_equality": "PE",
    "overall_misclassification": "OMR",
}
"""The fairness notions of figure 1, with the paper's abbreviations."""

GLOSSES = {"differs from COMPAS": "disagrees", "predicts wrongly": "wrong"}
"""Two definitions of a critic's disagreement: the paper's formula, and its description in words."""


class CriticErrors(NamedTuple):
    """Each critic's gap between White and Black defendants: the true gap, its estimate and its bounds."""

    truth: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def error(self) -> FloatArray:
        """The absolute error of each critic's estimate."""
        return np.abs(self.estimate - self.truth)

    @property
    def outside(self) -> int:
        """The number of critics whose true gap lies outside the bounds."""
        return int(((self.truth < self.lower - 1e-9) | (self.truth > self.upper + 1e-9)).sum())


def critic_errors(
    answers: Mapping[str, Any], condition: str, notion: FeedbackMetric, *, feedback: str = "disagrees", bounds: str
) -> CriticErrors:
    """Return the gaps of a condition's 400 critics, as in figure 1 of the paper.

    Parameters
    ----------
    answers
        The columns of `load_dressel_farid`.
    condition
        "race" or "no_race".
    notion
        One of `NOTIONS`.
    feedback
        "disagrees" with the COMPAS decision (s = y XOR z), or "wrong" about the outcome, the paper's wording.
    bounds
        "published" or "sharp".
    """
    column = {name: np.asarray(values) for name, values in answers.items()}
    keep = (column["condition"] == condition) & np.isin(column["race"], ["White", "Black"])
    column = {name: values[keep] for name, values in column.items()}
    critics, critic = np.unique(column["critic"], return_inverse=True)
    group = (column["race"] == "Black").astype(np.int64)
    label, judgement = column["compas_decision"].astype(np.int64), column["prediction"].astype(np.int64)
    disagrees = judgement != (label if feedback == "disagrees" else column["two_year_recid"])
    code = ((critic * 2 + group) * 2 + label) * 2
    shape = (critics.size, 2, 2, 2)
    masses, true = (
        np.bincount(code + mark, minlength=int(np.prod(shape))).reshape(shape)
        for mark in (disagrees, judgement != label)
    )
    two = Feedback(2)
    estimated = gap(masses, two, notion, bounds="sharp" if bounds == "sharp" else "published")
    return CriticErrors(gap(true, two, notion).estimate, estimated.estimate, estimated.lower, estimated.upper)


def replicate_disagreement() -> Chapter:
    """Replicate the disagreement paper: figure 1, with the critics of Dressel and Farid."""
    if not all(at_hand(f"dressel_farid_{part}") for part in ("cases", "no_race", "race")):
        return Chapter("disagreement", absent=("critics", "kidneys"))
    table = load_dressel_farid()
    answers = {name: np.asarray(table[name]) for name in _ANSWER_COLUMNS}
    lines, claims = [*_error_lines(answers)], [*_critic_claims(answers)]
    return Chapter("disagreement", lines, claims, ["kidneys"], [*_critic_figures(answers)])


_ANSWER_COLUMNS = ("condition", "race", "critic", "case", "compas_decision", "prediction", "two_year_recid")


def _error_lines(answers: Mapping[str, Any]) -> Iterator[PrintedLine]:
    printed = published()["disagreement_paper"]
    race_known = answers["condition"] == "race"
    for what, column, ours in (("critics", "critics", "critic"), ("defendants", "cases", "case")):
        number = np.unique(answers[ours][race_known]).size
        yield PrintedLine("Section 7", what, printed[column], number, 0.5)
    for condition, words in (("race", "told the race, as described"), ("no_race", "not told the race")):
        for notion, short in NOTIONS.items():
            error = critic_errors(answers, condition, notion, bounds="published").error
            why = "White and Black defendants, the paper's bounds; see the errata on figure 1d"
            value = printed["figure1d_mean_abs_error"][short]
            yield PrintedLine("Figure 1d", f"{short}, {words}: mean error", value, float(error.mean()), 0.005, why)
    error = critic_errors(answers, "race", "equal_opportunity", bounds="published").error
    low, high = printed["figure1d_range"]["EO"]
    for name, value, ours in (("smallest", low, error.min()), ("largest", high, error.max())):
        what = f"EO, told the race: {name} error"
        yield PrintedLine("Figure 1d", what, value, float(ours), 0.02, "read off in the text")


def _critic_claims(answers: Mapping[str, Any]) -> Iterator[Claim]:
    outside = {
        (words, notion, condition): critic_errors(
            answers, condition, notion, feedback=column, bounds="published"
        ).outside
        for words, column in GLOSSES.items()
        for notion in NOTIONS
        for condition in ("race", "no_race")
    }
    counts = {key: f"{outside[(*key, 'race')]} and {outside[(*key, 'no_race')]}" for key in {k[:2] for k in outside}}
    yield Claim(
        "Section 7",
        "A few true gaps in equal opportunity violate the bounds, because people deviate from Bayes' rule.",
        "does not hold",
        f"critics of 400 outside (told, not told the race): {counts['differs from COMPAS', 'equal_opportunity']} with "
        f"s = y XOR z; {counts['predicts wrongly', 'equal_opportunity']} where to disagree is to predict wrongly",
    )
    yield Claim(
        "Section 7",
        "There are more violations in overall misclassification.",
        "holds",
        f"{counts['differs from COMPAS', 'overall_misclassification']} of 400 (told, not told the race): the bound of "
        "proposition 5 points the wrong way",
    )
    sharp = max(
        float(critic_errors(answers, condition, notion, bounds="sharp").error.max())
        for condition in ("race", "no_race")
        for notion in NOTIONS
    )
    yield Claim(
        "Section 6",
        "The notions cannot be computed precisely from disagreement.",
        "does not hold",
        f"with two labels they can: the largest error of 800 critics and three notions is {show(sharp)}",
    )


def _critic_figures(answers: Mapping[str, Any]) -> Iterator[Figure]:
    panels, described = [], []
    for notion, short in NOTIONS.items():
        errors = critic_errors(answers, "race", notion, bounds="published")
        order = np.argsort(errors.truth, kind="stable")
        series = {"true": errors.truth, "estimate": errors.estimate, "upper": errors.upper, "lower": errors.lower}
        rows = [
            {"x": rank / order.size, "y": float(values[critic]), "series": name}
            for name, values in series.items()
            for rank, critic in list(enumerate(order))[::4]
        ]
        panels.append(
            curve(rows, title=short, x="Critics by their true gap", y="Gap", intervals="none", percent_x=True)
        )
        described.append(f"{short}: mean error {show(float(errors.error.mean()))}, {errors.outside} outside")
    yield Figure(
        "Figure 1",
        "The true gap of each critic, the published estimate and the published bounds, critics in the order of their "
        "true gap; race was told.",
        "; ".join(described) + ".",
        tuple(panels),
    )
