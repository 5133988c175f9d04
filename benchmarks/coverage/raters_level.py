"""Level, coverage and power of reliability, agreement and disagreement with few people.

The test of the mean gap (reliability): equal damage in both groups, with rare extremes; damage with the same mean and
very different shapes; and its power, beside a permutation of the plain difference. The test of scores (agreement): two
groups with the same errors, beside the test with separate standard errors. The gap seen by critics (disagreement):
coverage, and how often a true gap is detected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.stats import ttest_ind

from benchmarks.coverage._lines import Book
from evenhand.stats.agreement import coefficient_difference, shared_shape_stderr, unseen_tail
from evenhand.stats.feedback import Answers, Feedback, gap_intervals
from evenhand.stats.reliability import compare_people
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/reliability/people.py", "stats/permutation", "stats/agreement", "stats/feedback")

Draw = Callable[[Generator, int], FloatArray]


def rare(share: float, damage: float) -> Draw:
    """Return a function that draws the damage of people: equal for this share, otherwise 0."""
    return lambda rng, n: np.where(rng.random(n) < share, damage, 0.0)


def spread(a: float, b: float) -> Draw:
    """Return a function that draws the damage of people from a beta distribution."""
    return lambda rng, n: np.round(rng.beta(a, b, n), 3)


def mixed(share: float, a: float, b: float) -> Draw:
    """Return a function that draws the damage of people: from a beta distribution for this share, otherwise 0."""
    return lambda rng, n: np.where(rng.random(n) < share, rng.beta(a, b, n), 0.0)


def rare_beside(share: float, most: Draw) -> Draw:
    """Return a function that draws the damage of people: 1 for this share, otherwise from another draw."""
    return lambda rng, n: np.where(rng.random(n) < share, 1.0, most(rng, n))


ALIKE: dict[str, Draw] = {
    "one in fifty hurt by half": rare(0.02, 0.5),
    "one in forty hurt nearly wholly, the others a little": rare_beside(0.025, spread(1, 20)),
    "beta(0.1, 0.9)": spread(0.1, 0.9),
}
UNLIKE: dict[str, tuple[Draw, Draw]] = {
    "three in ten hurt, against damage spread out": (rare(0.3, 0.9), spread(2.7, 7.3)),
    "one in twenty hurt wholly, against damage spread out": (rare(0.05, 0.999), spread(0.9 * 0.999, 17.1)),
    "one in a hundred hurt wholly, against damage spread out": (rare_beside(0.01, spread(1, 99)), spread(2, 98.5)),
}
HURT: dict[str, tuple[Draw, Draw]] = {
    "nobody hurt, against one in ten": (rare(0.0, 0.0), mixed(0.1, 2, 2)),
    "nobody hurt, against one in five": (rare(0.0, 0.0), mixed(0.2, 2, 2)),
    "three in ten hurt, against six in ten": (mixed(0.3, 1, 1), mixed(0.6, 1, 1)),
    "one in ten hurt, against three in ten": (mixed(0.1, 2, 2), mixed(0.3, 2, 2)),
}


POWER = (
    ("nobody hurt, against one in ten", (60, 600)),
    ("nobody hurt, against one in five", (60, 600)),
    ("nobody hurt, against one in five", (40, 40)),
    ("three in ten hurt, against six in ten", (50, 50)),
    ("one in ten hurt, against three in ten", (80, 80)),
    ("one in ten hurt, against three in ten", (100, 1_000)),
)
_UNLIKE = {
    ("one in twenty hurt wholly, against damage spread out", 100): 0.10,
    ("one in a hundred hurt wholly, against damage spread out", 100): 0.45,
    ("one in a hundred hurt wholly, against damage spread out", 300): 0.13,
}
"""The errors of people whose groups have the same mean and very different shapes, where the test does not hold."""


def gaps_told(
    samples: int, rng: Generator, draws: tuple[Draw, Draw], people: tuple[int, int], shuffles: int = 0
) -> BoolArray | tuple[BoolArray, BoolArray]:
    """Return whether each sample's gap is detected; with `shuffles`, also by permuting the plain difference."""
    first = np.arange(sum(people)) < people[0]
    ours, plain = np.empty(samples, dtype=np.bool_), np.empty(samples, dtype=np.bool_)
    for sample in range(samples):
        damage = np.concatenate([draw(rng, n) for draw, n in zip(draws, people, strict=True)])
        found = compare_people(1.0 - 2.0 * damage, np.zeros(first.size, dtype=np.int64), first, bounds=(-1.0, 1.0))
        ours[sample] = found.p_value < 0.05
        if shuffles:
            away = np.array([damage[rng.permutation(first.size)[: people[0]]].mean() for _ in range(shuffles)])
            far = np.abs(away - damage.mean()) >= abs(damage[first].mean() - damage.mean()) - 1e-12
            plain[sample] = (1 + far.sum()) / (1 + shuffles) < 0.05
    return (ours, plain) if shuffles else ours


def tail_errors(samples: int, rng: Generator, people: tuple[int, int], heavy: bool) -> tuple[BoolArray, BoolArray]:
    """Return whether each test of the spread-adjusted ICC is false: ours, and with separate standard errors."""
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
    """Return whether the interval of the gap in accuracy covers the true gap, and whether a gap is detected."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = [float(weights @ (1 / (1 + np.exp(1 - shift - np.sqrt(0.5) * nodes)))) for shift in (0.0, more)]
    truth = (chance[1] - chance[0]) / weights.sum()
    covers, told = [], []
    for _ in range(samples):
        answers = answers_of(rng, critics, cases, more)
        found = gap_intervals(answers, ["accuracy_equality"], rng=rng, draws=300)["accuracy_equality"]
        covers.append(found.low <= truth <= found.high)
        told.append(found.low > 0)
    return np.array(covers), np.array(told)


def answers_of(rng: Generator, critics: int, cases: int, more: float) -> Answers:
    """Return answers of critics to 20 cases each; the odds of disagreement differ between two groups of cases."""
    critic = np.repeat(np.arange(critics), 20)
    case = np.concatenate([rng.permutation(cases)[:20] for _ in range(critics)])
    group, label = np.arange(cases) % 2, np.arange(cases) // 2 % 2
    moods = 0.5 * rng.standard_normal(critics)[critic] + 0.5 * rng.standard_normal(cases)[case]
    disagree = rng.random(case.size) < 1 / (1 + np.exp(1 - more * group[case] - moods))
    return Answers(
        critic=critic,
        case=case,
        answer=disagree.astype(np.int64),
        group=group,
        label=label,
        groups=2,
        critics=critics,
        feedback=Feedback(2),
    )


def critics_told(
    samples: int, rng: Generator, critics: int, cases: int, more: float, fewer: float
) -> tuple[BoolArray, BoolArray]:
    """Return whether a gap is detected: ours, and by Welch's test of cases with fewer cases.

    The test of cases compares, for each case, the mean disagreement minus the critics' means; critics answer about both
    groups, so differences between critics cancel.
    """
    ours, theirs = np.empty(samples, dtype=np.bool_), np.empty(samples, dtype=np.bool_)
    for sample in range(samples):
        answers = answers_of(rng, critics, cases, more)
        ours[sample] = gap_intervals(answers, ["accuracy_equality"], rng=rng, draws=300)["accuracy_equality"].low > 0
        other = answers_of(rng, critics, round(cases / fewer), more)
        mean = np.bincount(other.critic, other.answer) / np.bincount(other.critic)
        seen = np.bincount(other.case, minlength=other.group.size)
        with np.errstate(invalid="ignore"):
            by_case = np.bincount(other.case, other.answer - mean[other.critic], other.group.size) / seen
        sides = [by_case[(other.group == group) & (seen > 0)] for group in (0, 1)]
        theirs[sample] = ttest_ind(*sides, equal_var=False).pvalue < 0.05
    return ours, theirs


def promises(book: Book) -> None:
    """Declare the lines of all three audits."""
    few = ((15, 1_000), (40, 1_000), (300, 1_000), (30, 30))
    for (name, draw), people in product(ALIKE.items(), few):
        book.measure(
            "mean gap of reliability",
            f"{name}, in both; {people[0]} against {people[1]:,}",
            partial(gaps_told, draws=(draw, draw), people=people),
            kind="test",
            nominal=0.05,
            samples=400,
            guard=15,
        )
    for (name, draws), people in product(UNLIKE.items(), ((100, 1_000), (300, 1_000), (1_000, 1_000))):
        book.measure(
            "mean gap of reliability",
            f"{name}, the same mean; {people[0]} against {people[1]:,}",
            partial(gaps_told, draws=draws, people=people),
            kind="test",
            nominal=0.05,
            allowed=_UNLIKE.get((name, people[0]), 0.05),
            why="a sample that has missed those who are hurt most looks like one of a group in which nobody is",
            samples=400,
            guard=15,
        )
    for name, people in POWER:
        book.measure(
            "mean gap of reliability",
            f"{name}; {people[0]} against {people[1]:,}",
            partial(gaps_told, draws=HURT[name], people=people, shuffles=399),
            kind="power",
            samples=200,
            oracle="permutation of the plain difference, valid only where groups are alike",
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
    for critics, cases, more in ((20, 50, 0.0), (40, 100, 0.0), (20, 50, 0.7), (40, 100, 0.5), (40, 100, 0.7)):
        null: dict[str, Any] = {"kind": "test", "nominal": 0.05} if more == 0.0 else {"kind": "power"}
        fewer = 1.0 if more == 0.0 else 1.1
        book.measure(
            "gap in accuracy that critics see is told",
            f"{critics} critics, {cases} cases, log odds {more} apart",
            partial(critics_told, critics=critics, cases=cases, more=more, fewer=fewer),
            samples=400,
            oracle="test of cases" if more == 0.0 else "test of cases, a tenth fewer of them",
            **null,
        )
