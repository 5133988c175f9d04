"""How often a whole report claims a difference where nothing differs.

People of five races and two sexes; outcomes, scores of two models, histories, raters, answers of critics and inputs are
drawn without looking at either. Every sentence that claims a difference between groups or models, an improvement, or
that a group is worse off is then false. The report has six audits by race, sex and race × sex; parity and effort alone
are the second population. A report counts once, however many false sentences it has. Where groups do differ, the power
of the report's headline is held against the same test alone, without the rest of the report.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator

import evenhand as eh
from benchmarks.coverage._lines import Book
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("core", "audits", "stats/multiplicity.py")

CLAIMS = {
    *("two_values_worse_off", "two_values_differ", "some_groups_differ", "fairer_model", "least_equal", "lower"),
    *("less_agreement", "slightly_lower", "hurt_more", "hurt_slightly_more", "kinds_differ", "fairer", "fairer_by"),
    *("more_accurate", "bounded", "statistical_parity", "calibration", "accuracy_equality", "equal_opportunity"),
    *("predictive_equality", "overall_misclassification"),
}
"""The sentences that claim a difference."""

RACES = ["a", "b", "c", "d", "e"]
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


def people(n: int, rng: Generator, gap: float = 0.0) -> eh.Table:
    """Return people of whom nothing depends on race or sex, but for a gap in the first model's scores by sex."""
    sex = rng.choice(["F", "M"], n)
    outcome = (rng.random(n) < 0.4).astype(int)
    first = np.where(rng.random(n) < 0.8, outcome, 1 - outcome)

    def scores(shift: FloatArray | float) -> FloatArray:
        return np.clip(rng.beta(2, 3, n) + 0.2 * (outcome - 0.4) + shift, 0, 1).round(6)

    columns = {
        "id": np.arange(n),
        "race": rng.choice(RACES, n, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
        "sex": sex,
        "outcome": outcome,
        "score": scores(gap * (sex == "M")),
        "other_score": scores(0.0),
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
        predictions={"one": "score", "two": "other_score"},
        favourable="selected",
    )


def reports(samples: int, rng: Generator, *, n: int, audits: tuple[str, ...], gap: float = 0.0) -> Any:
    """Yield reports, one after the other."""
    sections: dict[str, Any] = {name: AUDITS[name] for name in audits} if audits != ONE else {"parity": SMALL}
    return (eh.audit(people(n, rng, gap), **sections) for _ in range(samples))


def claims(audit: eh.Audit) -> tuple[bool, bool]:
    """Tell whether a sentence of a report claims a difference, and whether one would with each test alone at 5 %."""
    said = any(finding.sentence_id in CLAIMS or _at_most_5(finding.p_adjusted) for finding in audit.findings)
    return said, any(_at_most_5(finding.p_value) for finding in audit.findings)


def worse_off(audit: eh.Audit) -> tuple[bool, bool]:
    """Tell whether a row of a table says that a group is worse off, and whether one would with each test alone."""
    gaps: list[Any] = [gap for result in audit.results.values() for gap in result.tables["gaps"]]
    return any(gap.worse_off is not None for gap in gaps), any(_at_most_5(gap.p_value) for gap in gaps)


def _at_most_5(p: float | None) -> bool:
    return p is not None and p <= 0.05


@cache
def null_reports(samples: int, n: int, audits: tuple[str, ...]) -> BoolArray:
    """Return (2, 2, samples) for reports where nothing differs: a sentence or a row claims, now or each test alone."""
    rng = named_rng(0, "null reports", *audits, str(n))
    seen = [(claims(report), worse_off(report)) for report in reports(samples, rng, n=n, audits=audits)]
    return np.moveaxis(np.array(seen), 0, -1)


def null_lines(samples: int, _: Generator, *, position: int, n: int, audits: tuple[str, ...]) -> tuple[Any, Any]:
    """Return one of the two answers of the reports; both lines rest on the same reports, which are made once."""
    now, alone = null_reports(samples, n, audits)[position]
    return now, alone


def found(samples: int, rng: Generator, **how: Any) -> tuple[list[bool], list[bool]]:
    """Return whether the report finds the gap between the sexes in the first model, and whether its test alone does."""
    ours, alone = [], []
    for report in reports(samples, rng, **how):
        told = [
            f
            for f in report.findings
            if (f.audit, f.model, f.grouping, f.metric) == ("parity", "one", "sex", "selection_rate")
        ]
        ours.append(any(finding.sentence_id in CLAIMS for finding in told))
        alone.append(any((finding.p_value or 0.0) <= 0.05 for finding in told))
    return ours, alone


def promises(book: Book) -> None:
    """Measure how often reports claim what is not there, and how often they find what is."""
    two, six = ("parity", "effort"), tuple(AUDITS)
    every = "race, sex and race × sex (10 cells), 2 models, nothing differs"
    what = ("a headline of a report claims a difference", "a row of a report says “worse off”")
    for audits, n, samples, guard in ((ONE, 300, 400, 8), (two, 600, 60, 0), (six, 800, 120, 0)):
        who = {ONE: "selection rates alone", two: "parity and effort", six: "six audits"}[audits]
        for position, name in enumerate(what):
            book.measure(
                name,
                f"{who}, {n:,} people, {every}",
                partial(null_lines, position=position, n=n, audits=audits),
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
            partial(found, n=n, audits=two, gap=gap),
            kind="power",
            samples=25,
            oracle="the same test alone, at 5 %",
        )
