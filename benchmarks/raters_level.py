"""Promises of reliability, agreement and disagreement where people are few: `python benchmarks/raters_level.py`.

The test for few people (reliability): damage of people in two groups with the same mean, of very different shapes; and
a group of which nobody is hurt against 1,000. The oracle knows that nobody can be hurt there, and takes the other
group's share alone. The test of scores (agreement): two groups with the same errors, held against the standard errors
of each group alone. Where a group has missed its largest damage, the bootstrap's test is shown to be too sure. The gap
that critics see (disagreement): coverage, and how often a true gap is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator
from promises import Book, run

from evenhand.stats.agreement import alike_stderr, coefficient_difference, unseen_tail
from evenhand.stats.feedback import Answers, Feedback, gap_intervals
from evenhand.stats.intervals import t_quantile
from evenhand.stats.reliability import bounded_difference, bounded_limits
from evenhand.stats.types import BoolArray, FloatArray

Draw = Callable[[Generator, int], FloatArray]


def rare(share: float, damage: float) -> Draw:
    """Return people of whom this share is hurt, all alike."""
    return lambda rng, n: np.where(rng.random(n) < share, damage, 0.0)


def spread(a: float, b: float) -> Draw:
    """Return people with damage from a beta distribution."""
    return lambda rng, n: np.round(rng.beta(a, b, n), 3)


DAMAGE: dict[str, tuple[Draw, Draw]] = {
    "one in fifty hurt by half, in both": (rare(0.02, 0.5), rare(0.02, 0.5)),
    "one in twenty hurt wholly, against damage spread out": (rare(0.05, 0.999), spread(0.9 * 0.999, 17.1)),
    "three in ten hurt, against damage spread out": (rare(0.3, 0.9), spread(2.7, 7.3)),
    "beta(0.1, 0.9) in both": (spread(0.1, 0.9), spread(0.1, 0.9)),
}


def false_gaps(samples: int, rng: Generator, draws: tuple[Draw, Draw], people: tuple[int, int]) -> BoolArray:
    """Return in which samples the test for few people tells a gap."""
    found = []
    for _ in range(samples):
        low, high = bounded_difference(draws[0](rng, people[0]), draws[1](rng, people[1]), 0.025)
        found.append(low > 0 or high < 0)
    return np.array(found)


def unseen_damage(samples: int, rng: Generator, people: tuple[int, int]) -> BoolArray:
    """Return in which of the tests that are made a gap is told: one in a hundred is hurt wholly, the others a little.

    The test is the bootstrap's for a mean over people, by its formulas: standard error, the least one, freedom.
    """
    a = np.where(rng.random((samples, people[0])) < 0.01, 1.0, rng.beta(1, 99, (samples, people[0])))
    b = rng.beta(2, 98.5, (samples, people[1]))
    variance = np.stack([a.var(axis=1, ddof=1), b.var(axis=1, ddof=1)])
    m = np.array(people, dtype=np.float64)[:, np.newaxis]
    own, alike = variance / m, (variance * m).sum(axis=0) / m.sum()
    stderr = np.sqrt(np.maximum(own.sum(axis=0), (alike / m).sum(axis=0)))
    freedom = own.sum(axis=0) ** 2 / (own**2 / (m - 1)).sum(axis=0)
    told = np.abs(a.mean(axis=1) - b.mean(axis=1)) > t_quantile(freedom, 0.95) * stderr
    rests = [d.sum(axis=1) ** 2 / (d**2).sum(axis=1) >= 10 for d in (a, b)]
    return np.asarray(told[rests[0] & rests[1]])


def nobody_hurt(samples: int, rng: Generator, people: int, mean: float) -> tuple[BoolArray, BoolArray]:
    """Return in which samples the gap to 1,000 people is told, by us and by who knows that nobody can be hurt."""
    ours, oracle = [], []
    for _ in range(samples):
        others = np.where(rng.random(1_000) < 2 * mean, rng.random(1_000), 0.0)
        ours.append(bounded_difference(np.zeros(people), others, 0.025).high < 0)
        oracle.append(bounded_limits(others, 0.025).low > 0)
    return np.array(ours), np.array(oracle)


def tail_errors(samples: int, rng: Generator, people: tuple[int, int], heavy: bool) -> tuple[BoolArray, BoolArray]:
    """Return which tests of the spread-adjusted ICC are false, by us and with each group's own standard error."""
    value, stderr, sizes, enough = [], [], [], np.ones(samples, dtype=np.bool_)
    for n in people:
        errors = rng.standard_t(3, (2, samples, n)) if heavy else rng.standard_normal((2, samples, n))
        squares = (errors[0] - errors[1]) ** 2
        value.append(1 - squares.mean(axis=1) / 50)
        stderr.append(squares.std(axis=1, ddof=1) / 50 / np.sqrt(n))
        sizes.append((squares.max(axis=1), squares.mean(axis=1)))
        enough &= squares.sum(axis=1) ** 2 / (squares**2).sum(axis=1) >= 10
    tail = np.full(samples, 0.025)
    unseen = [
        unseen_tail(value[at], people[at], sizes[at][0] / sizes[at][1], sizes[1 - at][0] / sizes[at][1], tail)
        for at in (0, 1)
    ]
    alike = alike_stderr(value[0], stderr[0], people[0], value[1], stderr[1], people[1])
    called = []
    for one, missed in ((alike, unseen), (stderr, ())):
        groups = (value[0], one[0], people[0] - 1, value[1], one[1], people[1] - 1)
        low, high = coefficient_difference(*groups, tail, missed)
        called.append(((low > 0) | (high < 0))[enough])
    return called[0], called[1]


def critics_see(samples: int, rng: Generator, critics: int, cases: int, more: float) -> tuple[BoolArray, BoolArray]:
    """Return in which samples the interval of the gap in accuracy covers the truth, and in which a gap is told."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = [float(weights @ (1 / (1 + np.exp(1 - shift - np.sqrt(0.5) * nodes)))) for shift in (0.0, more)]
    truth = (chance[1] - chance[0]) / weights.sum()
    covers, told = [], []
    for _ in range(samples):
        critic = np.repeat(np.arange(critics), 20)
        case = np.concatenate([rng.permutation(cases)[:20] for _ in range(critics)])
        group, label = np.arange(cases) % 2, np.arange(cases) // 2 % 2
        moods = 0.5 * rng.standard_normal(critics)[critic] + 0.5 * rng.standard_normal(cases)[case]
        disagree = rng.random(case.size) < 1 / (1 + np.exp(1 - more * group[case] - moods))
        answers = Answers(critic, case, disagree.astype(np.int64), group, label, 2, critics, Feedback(2))
        found = gap_intervals(answers, ["accuracy_equality"], rng=rng, draws=300)["accuracy_equality"]
        covers.append(found.low <= truth <= found.high)
        told.append(found.low > 0)
    return np.array(covers), np.array(told)


def promises(book: Book) -> None:
    """Declare the lines."""
    for name, draws in DAMAGE.items():
        for people in ((15, 1_000), (40, 1_000), (300, 1_000), (30, 30)):
            book.measure(
                "gap of PABAK, few people",
                f"{name}; {people[0]} against {people[1]:,}",
                partial(false_gaps, draws=draws, people=people),
                kind="test",
                nominal=0.05,
                samples=400,
                guard=15,
            )
    for people in ((100, 1_000), (300, 1_000), (1_000, 1_000)):
        book.measure(
            "mean gap of reliability, errors that a group has missed",
            f"one in a hundred hurt wholly, against damage spread out; {people[0]} against {people[1]:,}",
            partial(unseen_damage, people=people),
            kind="test",
            nominal=0.05,
            samples=2_000,
        )
    for hurt_not, mean in ((40, 0.1), (40, 0.2), (100, 0.05), (100, 0.1), (300, 0.05)):
        book.measure(
            "gap of PABAK, few people",
            f"nobody of {hurt_not} hurt, 1,000 with a mean damage of {mean}",
            partial(nobody_hurt, people=hurt_not, mean=mean),
            kind="power",
            samples=200,
            oracle="who knows that nobody can be hurt",
        )
    for sizes in ((50, 50), (50, 500), (200, 2_000)):
        for heavy in (True, False):
            book.measure(
                "gap of the spread-adjusted ICC",
                f"{'t(3)' if heavy else 'normal'} errors in both groups; {sizes[0]} against {sizes[1]:,}",
                partial(tail_errors, people=sizes, heavy=heavy),
                kind="test",
                nominal=0.05,
                samples=2_000,
                guard=300,
                oracle="each group's own standard error",
            )
    for critics, cases in ((20, 50), (40, 100)):
        for more in (0.0, 0.5, 1.2):
            book.measure(
                "gap in accuracy that critics see",
                f"{critics} critics, {cases} cases, log odds {more} apart",
                partial(critics_see, critics=critics, cases=cases, more=more),
                kind="interval",
                nominal=0.95,
                samples=150,
                oracle="share told to differ",
            )


if __name__ == "__main__":
    run(promises, __file__, "stats/reliability", "stats/agreement", "stats/feedback")
