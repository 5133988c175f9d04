"""Coverage of intervals for shares of similar pairs judged by critics.

Cases have a trait; the system's label follows the trait with an error per case, and the critic's label with a bias per
critic and an error per answer. Each critic judges 20 randomly drawn cases; similar cases differ by at most 0.3 in the
trait. The true shares come from 4,000 critics with 40 separate cases each. An interval must cover the true share of
split answers, and of pairs treated apart though held alike by the critics' labels, which with three labels lies between
bounds. Beside it is the interval for independent pairs.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.stats.feedback import Answers, Feedback
from evenhand.stats.feedback.pairs import APART, SPLIT, LikePairs, find_like_pairs
from evenhand.stats.intervals import wilson
from evenhand.stats.types import BoolArray

MEASURED = ("stats/feedback/pairs.py",)

CUTS = {2: np.array([0.5]), 3: np.array([-0.4, 0.6])}
LIKE = 0.3


def judged(
    rng: Generator, critics: int, cases: int, each: int, labels: int, noise: float
) -> tuple[LikePairs, LikePairs]:
    """Return the similar pairs derived from the answers, and from the critics' own labels."""
    trait = rng.standard_normal(cases)
    label = np.searchsorted(CUTS[labels], trait + noise * rng.standard_normal(cases))
    critic = np.repeat(np.arange(critics), each)
    case = (
        np.arange(cases)
        if cases == critics * each
        else np.concatenate([rng.permutation(cases)[:each] for _ in range(critics)])
    )
    leaning = noise * rng.standard_normal(critics)[critic] + 0.5 * noise * rng.standard_normal(case.size)
    own = np.searchsorted(CUTS[labels], trait[case] + leaning)
    one_group = np.zeros(cases, dtype=np.int64)
    both = (
        Answers(
            critic=critic,
            case=case,
            answer=answer.astype(np.int64),
            group=one_group,
            label=label,
            groups=1,
            critics=critics,
            feedback=feedback,
        )
        for answer, feedback in ((own != label[case], Feedback(labels)), (own, Feedback(labels, "label")))
    )
    told, known = (find_like_pairs(answers, trait[:, np.newaxis], [LIKE]) for answers in both)
    return told, known


@cache
def truth(labels: int, noise: float, metric: str) -> float:
    """Return the population's share."""
    _, known = judged(np.random.default_rng(0), 4_000, 160_000, 40, labels, noise)
    return float(known.most[metric].mean())


def covers(
    samples: int, rng: Generator, critics: int, cases: int, labels: int, noise: float, metric: str
) -> tuple[BoolArray, BoolArray]:
    """Return whether each interval covers the true share: ours, and the interval for independent pairs."""
    right, ours, plain = truth(labels, noise, metric), [], []
    for _ in range(samples):
        pairs, known = judged(rng, critics, cases, 20, labels, noise)
        found = pairs.share(metric)
        if np.isnan(found.low):
            continue
        ours.append(found.low <= right <= found.high)
        low, high = wilson(known.most[metric].mean(), len(known))
        plain.append(bool(low <= right <= high))
    return np.array(ours), np.array(plain)


def promises(book: Book) -> None:
    """Declare the lines of all designs."""
    for critics, cases in ((5, 100), (10, 40), (20, 100), (60, 200)):
        for labels, noise in ((2, 0.5), (2, 0.1), (3, 0.5)):
            for metric, title in (
                (SPLIT, "split answers of like pairs"),
                (APART, "like pairs held alike, treated apart"),
            ):
                book.measure(
                    title,
                    f"{critics} critics, {cases} cases, {labels} labels, errors of {noise:g}",
                    partial(covers, critics=critics, cases=cases, labels=labels, noise=noise, metric=metric),
                    kind="interval",
                    nominal=0.95,
                    samples=400,
                    guard=30 if (critics, labels, noise) == (20, 2, 0.5) else 0,
                    oracle="as if pairs were independent (Wilson)",
                )
