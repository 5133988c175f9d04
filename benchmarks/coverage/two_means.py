"""Level and coverage of the studentised permutation of two groups, with rare extremes, skewness, weights or strata.

Beside them are the level of Welch's test and the coverage of its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from scipy.stats import ttest_ind

from benchmarks.coverage._lines import Book, Line
from evenhand.stats.permutation import compare_means
from evenhand.stats.types import FloatArray

MEASURED = ("stats/permutation", "stats/bounded.py")

Draw = Callable[[Generator, int], FloatArray]


def rare(share: float) -> Draw:
    """Return a function that draws scores: above .97 for this share, otherwise from beta(1, 20)."""

    def draw(rng: Generator, people: int) -> FloatArray:
        return np.where(rng.random(people) < share, 1 - 0.03 * rng.random(people), rng.beta(1, 20, people))

    return draw


def hurt(share: float) -> Draw:
    """Return a function that draws damage: from beta(2, 5) for this share, otherwise 0."""
    return lambda rng, people: np.where(rng.random(people) < share, rng.beta(2, 5, people), 0.0)


def normal(spread: float) -> Draw:
    """Return a function that draws normal numbers with mean 1."""
    return lambda rng, people: rng.normal(1.0, spread, people)


def exponential(rng: Generator, people: int) -> FloatArray:
    """Return random exponential numbers with mean 1."""
    return rng.exponential(1.0, people)


@dataclass(frozen=True)
class Population:
    """Two groups with their sizes and true difference of means."""

    name: str
    first: Draw
    second: Draw
    sizes: tuple[int, int]
    truth: float = 0.0
    bounds: tuple[float, float] | None = None
    allowed: float | None = None
    why: str = ""


def _gap(first: float, second: float) -> float:
    """Return the true difference of means of two `rare` score distributions."""
    return (first - second) * (0.985 - 1 / 21)


SHARE = (0.0, 1.0)
UNSEEN = "80 people often hold no extreme score, and then nothing shows that there are any"
FEW = "few people carry the variance, and their number differs between the groups"
UNEQUAL = "the variance of the small group is nine times that of the large one, whose values most draws have"
POPULATIONS = (
    *(
        Population("equal, 2.5 % near 1", rare(0.025), rare(0.025), sizes, bounds=SHARE)
        for sizes in ((2_000, 80), (3_000, 300), (300, 300), (100, 40))
    ),
    Population("6 % against 2.5 % near 1", rare(0.06), rare(0.025), (2_000, 80), _gap(0.06, 0.025), SHARE, 0.91, FEW),
    Population("2.5 % against 6 % near 1", rare(0.025), rare(0.06), (2_000, 80), _gap(0.025, 0.06), SHARE),
    Population("2.5 % against none near 1", rare(0.025), rare(0.0), (2_000, 80), _gap(0.025, 0.0), SHARE),
    Population(
        "none against 2.5 % near 1",
        rare(0.0),
        rare(0.025),
        (2_000, 80),
        -_gap(0.025, 0.0),
        SHARE,
        0.85,
        UNSEEN,
    ),
    Population("damage: equal, 10 % hurt", hurt(0.1), hurt(0.1), (600, 60), bounds=SHARE),
    Population("damage: equal, 2 % hurt", hurt(0.02), hurt(0.02), (1_000, 40), bounds=SHARE),
    Population("damage: nobody against 10 % hurt", hurt(0.0), hurt(0.1), (60, 600), -0.1 * 2 / 7, SHARE),
    Population("damage: 2 % against 10 % hurt", hurt(0.02), hurt(0.1), (60, 600), -0.08 * 2 / 7, SHARE),
    Population("normal, sd 1 against 3", normal(1.0), normal(3.0), (200, 40), 0.0, None, 0.91, UNEQUAL),
    Population("normal, sd 3 against 1", normal(3.0), normal(1.0), (200, 40)),
    Population("exponential, equal", exponential, exponential, (1_000, 400)),
    Population("normal against exponential", normal(1.0), exponential, (200, 40)),
)


def lines_of(samples: int, rng: Generator, of: Population) -> Sequence[Line]:
    """Return the lines of coverage and of rejections (level or power)."""
    found = np.zeros((samples, 4), dtype=np.bool_)
    sizes = [*of.sizes]
    in_first = np.repeat([1, 0], sizes)
    for sample in range(samples):
        x, y = of.first(rng, sizes[0]), of.second(rng, sizes[1])
        ours = compare_means(np.concatenate([x, y]), in_first, 1 - in_first, bounds=of.bounds)
        welch = ttest_ind(x, y, equal_var=False)
        limits = welch.confidence_interval(0.95)
        low, high = ours.limits(0.05)
        found[sample] = (
            low <= of.truth <= high,
            ours.p_value < 0.05,
            limits[0] <= of.truth <= limits[1],
            welch.pvalue < 0.05,
        )
    population = f"{of.name}, {sizes[0]} and {sizes[1]} people"
    why, allowed = of.why, of.allowed
    interval = Line(
        what="interval of a difference of means",
        population=population,
        kind="interval",
        nominal=0.95,
        allowed=allowed,
        why=why,
        oracle="Welch",
    )
    is_null = of.truth == 0.0
    test = Line(
        what="test of equal means",
        population=population,
        kind="test" if is_null else "power",
        oracle="Welch",
        nominal=0.05 if is_null else None,
        allowed=None if allowed is None or not is_null else 1.0 - allowed,
        why=why,
    )
    return [interval.seen((found[:, 0], found[:, 2])), test.seen((found[:, 1], found[:, 3]))]


def strata_level(samples: int, rng: Generator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether groups that differ only by strata are reported as different, with weights."""
    found = np.zeros(samples, dtype=np.bool_)
    for sample in range(samples):
        stratum = rng.integers(0, 5, 400)
        in_a = rng.random(400) < np.array([0.1, 0.3, 0.5, 0.7, 0.9])[stratum]
        score = 0.5 * rng.beta(1, 8, 400) + 0.1 * stratum
        weight = rng.choice([0.5, 1.0, 3.0], 400)
        found[sample] = compare_means(score, in_a, ~in_a, strata=stratum, weights=weight).p_value < 0.05
    return found


ASSIGNED, FAR, LEAST = 20_000, 3.0, 1e-5  # assignments of the same people, how far from a level others are, and `level`


def far_levels(samples: int, rng: Generator, of: Population) -> Sequence[Line]:
    """Return the levels of the test at .001 and .0001 over random assignments of the same people to groups.

    Only assignments with the most extreme t are tested; all others have p-values well above both levels.
    """
    first, people = of.sizes[0], sum(of.sizes)
    levels, found = (1e-3, 1e-4), []
    for _ in range(samples):
        values = of.first(rng, people)
        chosen = np.stack([rng.choice(people, of.sizes[1], replace=False) for _ in range(ASSIGNED)])
        small = values[chosen]
        mean, square = small.mean(axis=1), (small**2).sum(axis=1)
        rest = (values.sum() - small.sum(axis=1)) / first
        variance = (square / of.sizes[1] - mean**2) / (of.sizes[1] - 1)
        variance += (((values**2).sum() - square) / first - rest**2) / (first - 1)
        order = np.argsort((mean - rest) / np.sqrt(variance))
        each = int(FAR * levels[0] / 2 * ASSIGNED)
        p = np.ones(ASSIGNED)
        for which in (*order[:each], *order[-each:]):
            in_second = np.isin(np.arange(people), chosen[which])
            p[which] = compare_means(values, ~in_second, in_second, bounds=of.bounds, level=LEAST).p_value
        found.append(p)
    p_values = np.concatenate(found)
    return [
        Line(
            what=f"test of equal means at {level:g}",
            population=f"{of.name}, {first} and {of.sizes[1]} people",
            kind="test",
            nominal=level,
        ).seen(p_values < level)
        for level in levels
    ]


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for population in POPULATIONS[:4]:
        book.several(f"far, {population.sizes}", partial(far_levels, of=population), samples=25)
    for population in POPULATIONS:
        book.several(
            f"{population.name}, {population.sizes}",
            partial(lines_of, of=population),
            samples=2_000,
            guard=100 if population.sizes == (300, 300) else 0,
        )
    book.measure(
        "test of equal means",
        "standardised over 5 strata, with weights; groups differ only by stratum",
        strata_level,
        kind="test",
        nominal=0.05,
        samples=2_000,
        guard=50,
    )
