"""Coverage of estimates about people's positions under mistakes, and error rates of a verdict on accuracy.

Scores have a beta distribution; mistakes shift a share of them by a normal error on the log-odds scale. The true values
come from 40,000 people. Lines report the coverage of the passing rate, of its gap between two groups with different
scores, and of weighted kappa with its parts and the share of people who stay in a level. Further lines report how often
a model less accurate by exactly the margin is called no less accurate.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.audits.reliability.mitigation import accuracy_change
from evenhand.stats.intervals import bonferroni
from evenhand.stats.reliability.moved import InfluenceEstimate, level_estimates, passing, risk_level
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/reliability/moved.py", "stats/paired.py", "audits/reliability/mitigation.py")

CUTS = np.array([0.3, 0.6])
ALIKE = 0.02


def drawn(rng: Generator, people: int, share: float, replicates: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return scores without mistakes, scores with mistakes, and a mask of the first group."""
    first = np.arange(people) < people // 3
    score = np.where(first, rng.beta(2, 5, people), rng.beta(3, 3, people))
    odds = np.log(score / (1 - score)) + 0.8 * rng.standard_normal((replicates, people))
    return score, np.where(rng.random(odds.shape) < share, 1 / (1 + np.exp(-odds)), score), first


def estimates(
    name: str, people: tuple[FloatArray, FloatArray, BoolArray]
) -> tuple[InfluenceEstimate, InfluenceEstimate]:
    """Return the estimates of a metric for both groups."""
    score, moved, first = people
    if name == "passing":
        return passing(score, moved, ALIKE, first), passing(score, moved, ALIKE, ~first)
    levels = np.broadcast_to(risk_level(score, CUTS), moved.shape), risk_level(moved, CUTS)
    a, b = (level_estimates(*levels, 3, inside)[name] for inside in (first, ~first))
    return a, b


@cache
def truth(name: str, share: float) -> tuple[float, float]:
    """Return the true metric of both groups, from very many people."""
    a, b = estimates(name, drawn(np.random.default_rng(0), 40_000, share, 20))
    return a.value, b.value


def covers(samples: int, rng: Generator, name: str, people: int, share: float, gap: bool) -> BoolArray:
    """Return whether the limits of each sample cover the true value; samples without limits are ignored."""
    right, held = truth(name, share), []
    for _ in range(samples):
        a, b = estimates(name, drawn(rng, people, share, 20))
        limits = a.difference(b, 0.95) if gap else a.interval(0.95)
        if limits is not None:
            value = right[0] - right[1] if gap else right[0]
            held.append(limits.low <= value <= limits.high)
    return np.array(held)


NAMES = {
    "passing": "passing rate",
    "weighted_kappa_linear": "weighted kappa of risk levels",
    "prevalence_part": "prevalence part of weighted kappa",
    "stays 2": "share who stay in the highest level",
}


def called_no_less(samples: int, rng: Generator, people: int, others: int, lost: float) -> BoolArray:
    """Return whether any model worse by exactly the margin is called no less accurate, for each sample.

    Such a model is wrong and the given model right for a share `lost` of people, and the reverse for a share `lost` -
    0.01.
    """
    found = []
    for _ in range(samples):
        given = rng.random(people) < 0.7
        chance = rng.random((others, people))
        worse = given & (chance >= lost / 0.7) | ~given & (chance < (lost - 0.01) / 0.3)
        limits = [
            accuracy_change(one.astype(np.float64), given.astype(np.float64), bonferroni(0.95, others)) for one in worse
        ]
        found.append(any((change["accuracy_change_low"] or 0.0) >= -0.01 for change in limits))
    return np.array(found)


def promises(book: Book) -> None:
    """Declare the lines of all metrics and models."""
    for name, title in NAMES.items():
        for people, share in ((150, 0.3), (600, 0.1)) if name != "prevalence_part" else ((600, 0.3), (600, 0.1)):
            for gap in (False, True):
                book.measure(
                    f"gap of the {title}" if gap else title,
                    f"{people // 3} people{f' against {people - people // 3}' if gap else ''}, {share:.0%} go wrong",
                    partial(covers, name=name, people=people, share=share, gap=gap),
                    kind="interval",
                    nominal=0.95,
                    samples=500,
                    guard=30 if people == 150 and not gap else 0,
                )
    for people, others, lost in product((200, 2_000), (1, 7), (0.01, 0.042)):
        models = "7 models that are worse by the margin" if others == 7 else "a model that is worse by the margin"
        book.measure(
            "a model is no less accurate (mitigation)",
            f"{people:,} people, {models}, {'few' if lost == 0.01 else 'many'} decided differently",
            partial(called_no_less, people=people, others=others, lost=lost),
            kind="verdict",
            nominal=0.025,
            samples=2_000,
            guard=200,
        )
