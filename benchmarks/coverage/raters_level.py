"""Promises of reliability, agreement and disagreement where people are few.

The test for few people (reliability): damage of people in two groups with the same mean, of very different shapes; and
a group of which nobody is hurt against 1,000. The oracle knows that nobody can be hurt there, and takes the other
group's share alone. The test of scores (agreement): two groups with the same errors, held against the standard errors
of each group alone. A group that has missed its largest damage (reliability): the test with and without an allowance
for it, and what the allowance costs where nothing was missed. The gap that critics see (disagreement): coverage, and
how often a true gap is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Simulate
from evenhand.stats.agreement import coefficient_difference, shared_shape_stderr, unseen_tail
from evenhand.stats.feedback import Answers, Feedback, gap_intervals
from evenhand.stats.reliability import Unseen, bounded_difference, bounded_limits
from evenhand.stats.reliability.bounded import half_widths
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/reliability", "stats/agreement", "stats/feedback")

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


def of_group_means(a: FloatArray, b: FloatArray, decisions: bool, allowed: bool = True) -> bool | None:
    """Return whether a gap of means over people is told, as the audit does; None where it gives no test.

    The bootstrap's standard error and freedom are taken by their formulas; `allowed` is the allowance for damage that a
    group has missed. Damage that rests on too few people has the limits for few people, that to scores has no test.
    """
    if min(d.sum() ** 2 / (d**2).sum() if d.any() else 0.0 for d in (a, b)) < (5 if decisions else 10):
        low, high = bounded_difference(a, b, 0.025) if decisions else (0.0, 0.0)
        return bool(low > 0 or high < 0) if decisions else None
    own, sizes = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size]), np.array([a.size, b.size])
    alike = float((own * sizes**2).sum() / sizes.sum() * (1 / sizes).sum())
    freedom = float(own.sum() ** 2 / (own**2 / (sizes - 1)).sum())
    first, second = 1 - a.mean(), 1 - b.mean()
    unseen = Unseen((a, b), (first, second), (float(np.sqrt(own[0])), float(np.sqrt(own[1]))), decisions)
    stderr = float(np.sqrt(max(own.sum(), alike)))
    down, up = half_widths(stderr, freedom, 0.025, unseen if allowed else None)
    return bool(first - second > down or second - first > up)


def tested(draw: Callable[[Generator], tuple[FloatArray, FloatArray]], decisions: bool) -> Simulate:
    """Return a simulation of the test on these people: ours, and without an allowance for the missed."""

    def simulate(samples: int, rng: Generator) -> tuple[BoolArray, BoolArray]:
        told = []
        for _ in range(samples):
            people = draw(rng)
            told.append([of_group_means(*people, decisions, allowed) for allowed in (True, False)])
        known = np.array([both for both in told if None not in both], dtype=np.bool_).reshape(-1, 2)
        return known[:, 0], known[:, 1]

    return simulate


def one_in_a_hundred(rng: Generator, people: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return one in a hundred hurt wholly and the others a little, and damage that is as large and spread out."""
    a = np.where(rng.random(people[0]) < 0.01, 1.0, rng.beta(1, 99, people[0]))
    return a, rng.beta(2, 98.5, people[1])


def twice_as_much(rng: Generator, people: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return three in ten hurt by shares all over, and six in ten."""
    a, b = (np.where(rng.random(n) < share, rng.random(n), 0.0) for n, share in zip(people, (0.3, 0.6), strict=True))
    return a / 2, b / 2


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
    alike = shared_shape_stderr((value[0], stderr[0], people[0]), (value[1], stderr[1], people[1]))
    called = []
    for one, missed in ((alike, unseen), (stderr, ())):
        first, second = ((value[at], one[at], people[at] - 1) for at in (0, 1))
        low, high = coefficient_difference(first, second, tail, missed)
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
        answers = Answers(
            critic=critic,
            case=case,
            answer=disagree.astype(np.int64),
            group=group,
            label=label,
            groups=2,
            critics=critics,
            feedback=Feedback(2),
        )
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
    for people, decisions in product(((100, 1_000), (300, 1_000), (1_000, 1_000)), (True, False)):
        who = "decisions" if decisions else "squared errors of scores"
        book.measure(
            "mean gap of reliability, errors that a group has missed",
            f"{who}: one in a hundred hurt wholly, against damage spread out; {people[0]} against {people[1]:,}",
            tested(partial(one_in_a_hundred, people=people), decisions),
            kind="test",
            nominal=0.05,
            samples=2_000,
            guard=100,
            oracle="without an allowance for the missed",
        )
        book.measure(
            "mean gap of reliability",
            f"{who}: three in ten hurt, against six in ten; {people[0]} against {people[1]:,}",
            tested(partial(twice_as_much, people=people), decisions),
            kind="power",
            samples=500,
            oracle="without an allowance for the missed",
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
