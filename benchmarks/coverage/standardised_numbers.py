"""Coverage and level of means of numbers standardised over strata: three job grades that depend on the group.

Salaries are lognormal within a grade and depend only on the grade, or are 10 % higher in the first group. Beside them
are the normal interval and test with the same standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from scipy import stats

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.pairs import make_pairs
from evenhand.audits.parity.standardised_numbers import standardised
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.rows import NumberRows

MEASURED = (
    "stats/permutation",
    "stats/skewed.py",
    "audits/parity/numbers.py",
    "audits/parity/pairs.py",
    "audits/parity/standardised_numbers.py",
)
GRADES = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
LEVEL = np.array([1.0, 1.5, 2.5])
SIGMA = 0.6


def lines_of(samples: int, rng: Generator, sizes: tuple[int, int], times: float) -> Sequence[Line]:
    """Return the coverage of one group's mean and of the difference, and the share of rejections."""
    found, beside = np.zeros((samples, 3), dtype=np.bool_), np.zeros((samples, 3), dtype=np.bool_)
    metric, codes = NUMBER_METRICS["mean"], np.repeat([0, 1], sizes)
    for sample in range(samples):
        grade = np.concatenate([rng.permutation(_dealt(n, GRADES[g])) for g, n in enumerate(sizes)])
        salary = LEVEL[grade] * np.where(codes == 0, times, 1.0) * rng.lognormal(0.0, SIGMA, codes.size)
        nothing = Cells({}, {}, np.ones(codes.size, dtype=np.int64))
        people = standardised(NumberPeople(NumberRows(salary, None, None, nothing), codes, 2), grade, np.arange(3))
        values = people.values(metric)
        base = float((people.shares * LEVEL).sum() * np.exp(SIGMA**2 / 2))  # given the strata, as they are held
        truth, gap = times * base, (times - 1.0) * base
        low, high = (float(end[0]) for end in values.limits(0.95))
        pairs = make_pairs(values.only(np.array([0])), values.only(np.array([1])))
        least, most = (float(end[0]) for end in pairs.limits("difference", 0.95))
        found[sample] = low <= truth <= high, least <= gap <= most, pairs.p_values[0] < 0.05
        error = float(np.hypot(*values.stderr))
        away = float(values.value[0] - values.value[1])
        beside[sample] = (
            abs(values.value[0] - truth) <= 1.96 * values.stderr[0],
            abs(away - gap) <= 1.96 * error,
            2 * stats.norm.sf(abs(away) / error) < 0.05,
        )
    population = f"3 grades, {sizes[0]:,} and {sizes[1]:,} people{'' if times == 1.0 else f', {times:g} times'}"
    is_null = times == 1.0
    about = (
        ("standardised mean of one group", "interval", 0.95),
        ("difference of standardised means", "interval", 0.95),
        ("test of equal standardised means", "test" if is_null else "power", 0.05 if is_null else None),
    )
    return [
        Line(
            what=what,
            population=population,
            kind=kind,  # type: ignore[arg-type]
            nominal=nominal,
            allowed=0.93 if kind == "interval" else 0.06 if kind == "test" else None,
            why="skewed numbers of few people in a grade" if kind != "power" else "",
            oracle="normal",
        ).seen((found[:, column], beside[:, column]))
        for column, (what, kind, nominal) in enumerate(about)
    ]


def _dealt(people: int, shares: FloatArray) -> IntArray:
    """Return the grade of each person, by fixed shares."""
    numbers = np.floor(shares * people).astype(np.int64)
    numbers[0] += people - numbers.sum()
    return np.repeat(np.arange(shares.size), numbers)


def promises(book: Book) -> None:
    """Declare the lines of all sizes."""
    for sizes in ((60, 60), (60, 400), (400, 400)):
        for times in (1.0, 1.1):
            book.several(
                f"{sizes}, {times}",
                partial(lines_of, sizes=sizes, times=times),
                samples=1_000,
                guard=50 if sizes == (400, 400) and times == 1.0 else 0,
            )
