"""Share of whole reports that claim a difference where nothing differs.

People have several races and two sexes; outcomes, scores of models, histories, ratings, critics' answers and inputs are
independent of both. Every sentence that claims a difference between groups or models, an improvement, or that a group
is worse off is then false. The report has six audits by race, sex and race × sex; parity and effort alone are the
second population. Races are 2 to 12, models 1 to 12, scores ordinary or, as with fraud, nearly all near 0 and one in 40
near 1. A report counts once, however many false sentences it has. Where groups differ, the power of the report's
headline is compared with the same test alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator

import evenhand as eh
from benchmarks.coverage._lines import Book
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEASURED = ("core", "audits", "stats/multiplicity.py")

CLAIMS = {
    *("two_values_worse_off", "two_values_worse_off_listed", "two_values_differ", "some_groups_differ"),
    *("fairer_model", "least_equal", "lower"),
    *("less_agreement", "slightly_lower", "hurt_more", "hurt_slightly_more", "kinds_differ", "fairer", "fairer_by"),
    *("more_accurate", "bounded", "statistical_parity", "calibration", "accuracy_equality", "equal_opportunity"),
    *("predictive_equality", "overall_misclassification"),
}
"""The sentences that claim a difference."""

AUDITS: dict[str, dict[str, Any]] = {
    "parity": {},
    "effort": {"trajectory": ["y1", "y2", "y3"], "scale": 100, "width": 0.5},
    "disagreement": {"decision": "label", "critic": "critic", "disagree": "disagree", "resamples": 100},
    "reliability": {
        "model": lambda rows: 1 / (1 + np.exp(-(rows[:, 0] + rows[:, 1]) / 10)),
        "features": ["age", "income"],
        "noise": {"features": {"age": 5, "income": 5}, "noise_levels": [0.1, 0.3]},
        "replicates": 3,
        "resamples": 100,
    },
    "agreement": {"raters": ["rater_a", "rater_b"], "resamples": 200},
    "improvability": {
        "status_quo": "hired",
        "grouping": "sex",
        "candidates": "other",
        "resamples": 400,
    },
}

ONE, SMALL = ("parity",), {"metrics": ["selection_rate"]}
"""A report that is quick to make, for the small version."""


@dataclass(frozen=True)
class Crowd:
    """A population of reports: numbers of people, races and models.

    Parameters
    ----------
    people, races, models : the numbers of people, races and models.
    gap : the amount by which men's scores are higher in the first model.
    extremes : whether one score in 40 is near 1, and the others near 0.
    """

    people: int
    races: int = 5
    models: int = 2
    gap: float = 0.0
    extremes: bool = False

    def scores(self, outcome: IntArray, rng: Generator) -> FloatArray:
        """Return the scores of a model."""
        n = self.people
        if not self.extremes:
            return rng.beta(2, 3, n) + 0.2 * (outcome - 0.4)
        return np.where(rng.random(n) < 0.025, rng.beta(40, 2, n), rng.beta(1, 20, n))

    def table(self, rng: Generator) -> eh.Table:
        """Return a table of people in which only the gap by sex depends on race or sex."""
        n = self.people
        sex = rng.choice(["F", "M"], n)
        outcome = (rng.random(n) < 0.4).astype(int)
        first = np.where(rng.random(n) < 0.8, outcome, 1 - outcome)
        scores = {f"model {number}": self.scores(outcome, rng) for number in range(self.models)}
        scores["model 0"] = scores["model 0"] + self.gap * (sex == "M")
        share = 1.0 / np.arange(2, self.races + 2)
        columns = {
            "id": np.arange(n),
            "race": rng.choice([chr(ord("a") + race) for race in range(self.races)], n, p=share / share.sum()),
            "sex": sex,
            "outcome": outcome,
            **{name: np.clip(score, 0, 1).round(6) for name, score in scores.items()},
            "age": rng.normal(0, 10, n).round(2),
            "income": rng.normal(0, 10, n).round(2),
            **{f"y{year}": rng.uniform(20, 60, n).round(2) for year in (1, 2, 3)},
            "rater_a": first,
            "rater_b": np.where(rng.random(n) < 0.8, first, 1 - first),
            "label": rng.choice(["high", "low"], n),
            "critic": [f"critic {number % 30}" for number in range(n)],
            "disagree": (rng.random(n) < 0.3).astype(int),
            "hired": (rng.random(n) < 0.4).astype(int),
            "other": (rng.random(n) < 0.4).astype(int),
        }
        return eh.Table(
            {name: np.asarray(column).tolist() for name, column in columns.items()},
            id="id",
            outcome="outcome",
            groups=["race", "sex", ["race", "sex"]],
            predictions={name: name for name in scores},
            favourable="selected",
        )


def reports(samples: int, rng: Generator, *, crowd: Crowd, audits: tuple[str, ...]) -> Any:
    """Return a generator of random reports."""
    sections: dict[str, Any] = {name: AUDITS[name] for name in audits} if audits != ONE else {"parity": SMALL}
    return (eh.audit(crowd.table(rng), **sections) for _ in range(samples))


def claims(audit: eh.Audit) -> tuple[bool, bool]:
    """Return whether any sentence of a report claims a difference, and whether any separate test at 5 % does."""
    said = any(finding.sentence_id in CLAIMS or _at_most_5(finding.p_adjusted) for finding in audit.findings)
    return said, any(_at_most_5(finding.p_value) for finding in audit.findings)


def worse_off(audit: eh.Audit) -> tuple[bool, bool]:
    """Return whether any row of a table claims that a group is worse off, and whether any separate test does."""
    gaps: list[Any] = [gap for result in audit.results.values() for gap in result.tables["gaps"]]
    return any(gap.worse_off is not None for gap in gaps), any(_at_most_5(gap.p_value) for gap in gaps)


def _at_most_5(p: float | None) -> bool:
    return p is not None and p <= 0.05


@cache
def null_reports(samples: int, crowd: Crowd, audits: tuple[str, ...]) -> BoolArray:
    """Return (2, 2, samples) claims of reports where nothing differs: by sentences or rows, ours and separate tests."""
    rng = named_rng(0, "null reports", *audits, str(crowd))
    seen = [(claims(report), worse_off(report)) for report in reports(samples, rng, crowd=crowd, audits=audits)]
    return np.moveaxis(np.array(seen), 0, -1)


def null_lines(samples: int, _: Generator, *, position: int, crowd: Crowd, audits: tuple[str, ...]) -> tuple[Any, Any]:
    """Return one of the two claims of the reports; both lines share the same cached reports."""
    now, alone = null_reports(samples, crowd, audits)[position]
    return now, alone


def found(samples: int, rng: Generator, **how: Any) -> tuple[list[bool], list[bool]]:
    """Return whether the report, and its test alone, detect the gap between the sexes in the first model."""
    ours, alone = [], []
    for report in reports(samples, rng, **how):
        told = [
            f
            for f in report.findings
            if (f.audit, f.model, f.grouping, f.metric) == ("parity", "model 0", "sex", "selection_rate")
        ]
        ours.append(any(finding.sentence_id in CLAIMS for finding in told))
        alone.append(any((finding.p_value or 0.0) <= 0.05 for finding in told))
    return ours, alone


TWO, SIX = ("parity", "effort"), tuple(AUDITS)
NULLS: tuple[tuple[tuple[str, ...], Crowd, int, int], ...] = (
    (ONE, Crowd(300), 400, 8),
    (TWO, Crowd(600), 60, 0),
    (TWO, Crowd(600, extremes=True), 60, 0),
    (TWO, Crowd(1_200, races=12, models=1, extremes=True), 60, 0),
    (SIX, Crowd(800), 80, 0),
    (SIX, Crowd(400, races=2, models=1, extremes=True), 200, 0),
    (SIX, Crowd(800, extremes=True), 80, 0),
    (SIX, Crowd(1_200, races=12, extremes=True), 30, 0),
    (SIX, Crowd(600, races=2, models=12, extremes=True), 30, 0),
)
"""The audits of a report, its people, and how many reports are made, also in the small version."""


def promises(book: Book) -> None:
    """Declare the lines of false and of true claims of reports."""
    what = ("a headline of a report claims a difference", "a row of a report says “worse off”")
    for audits, crowd, samples, guard in NULLS:
        who = {ONE: "selection rates alone", TWO: "parity and effort", SIX: "six audits"}[audits]
        scores = ", scores with rare extremes" if crowd.extremes else ""
        many = f"{crowd.people:,} people of {crowd.races} races and 2 sexes, {crowd.models} models{scores}"
        for position, name in enumerate(what):
            book.measure(
                name,
                f"{who}, {many}, nothing differs",
                partial(null_lines, position=position, crowd=crowd, audits=audits),
                kind="verdict",
                nominal=0.05,
                samples=samples,
                guard=guard,
                oracle="each test alone at 5 %",
            )
    for n, gap in ((600, 0.1), (600, 0.15)):
        book.measure(
            "a report finds a gap in selection between two groups",
            f"parity and effort, {n:,} people, scores of men higher by {gap}",
            partial(found, crowd=Crowd(n, gap=gap), audits=TWO),
            kind="power",
            samples=25,
            oracle="the same test alone, at 5 %",
        )
