"""Coverage and level for numbers such as salaries: means, medians, a far quantile and RMSE of 15 to 5,000 people.

Beside one mean is Student's interval, beside a difference of means Welch's interval and test, and beside a test of
medians Mann and Whitney's test. Groups have one distribution, or the first group's numbers are 1.5 times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, sqrt

import numpy as np
from numpy.random import Generator
from scipy import stats

from benchmarks.coverage._lines import Book, Kind, Line
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.pairs import make_pairs
from evenhand.stats.types import FloatArray
from evenhand.table.cells import Cells
from evenhand.table.rows import NumberRows

MEASURED = (
    "stats/permutation",
    "stats/quantiles.py",
    "stats/skewed.py",
    "audits/parity/numbers.py",
    "audits/parity/pairs.py",
)


@dataclass(frozen=True)
class Population:
    """A distribution of numbers with its true mean, median, 90 % quantile and root mean square."""

    name: str
    draw: Callable[[Generator, int], FloatArray]
    mean: float
    median: float
    quantile_90: float
    rmse: float


def _some_zeros(rng: Generator, people: int) -> FloatArray:
    return rng.lognormal(0.0, 1.0, people) * (rng.random(people) < 0.3)


POPULATIONS = (
    Population("normal", lambda rng, n: rng.normal(10.0, 1.0, n), 10.0, 10.0, 10.0 + stats.norm.ppf(0.9), sqrt(101.0)),
    Population("t with 5 degrees of freedom", lambda rng, n: 10.0 + rng.standard_t(5, n), 10.0, 10.0,
               10.0 + stats.t.ppf(0.9, 5), sqrt(100.0 + 5 / 3)),
    Population("lognormal, sigma 1", lambda rng, n: rng.lognormal(0.0, 1.0, n), exp(0.5), 1.0,
               exp(stats.norm.ppf(0.9)), exp(1.0)),
    Population("70 % zeros, else lognormal", _some_zeros, 0.3 * exp(0.5), 0.0, exp(stats.norm.ppf(2 / 3)),
               sqrt(0.3) * exp(1.0)),
)  # fmt: skip
SIZES = ((15, 15), (15, 200), (60, 60), (5_000, 5_000))
METRICS = ("mean", "median", "quantile_90", "rmse")
FEW = "few people of so skewed numbers may hold none of the large ones"
LEAST = {"mean": 0.90, "median": 0.95, "quantile_90": 0.95, "rmse": 0.90}
"""What is promised: of means at least .90 in every population, of quantiles what is nominal."""
LEAST_OF_SQUARES = 0.55
"""What is promised for the RMSE of one group whose errors are themselves very skewed."""


def compared(x: FloatArray, y: FloatArray) -> Iterator[tuple[str, FloatArray, FloatArray, float, FloatArray]]:
    """Yield each metric with limits of the first group and the difference, the p-value, and limits of the ratio."""
    codes = np.repeat([0, 1], [x.size, y.size])
    numbers = np.concatenate([x, y])
    order = np.argsort(numbers, kind="stable")
    rows = NumberRows(
        numbers[order], np.zeros(numbers.size), None, Cells({}, {}, np.ones(numbers.size, dtype=np.int64))
    )
    people = NumberPeople(rows, codes[order], 2)
    for name in METRICS:
        values = people.values(NUMBER_METRICS[name])
        pairs = make_pairs(values.only(np.array([0])), values.only(np.array([1])))
        difference, ratio = (np.array([end[0] for end in pairs.limits(kind, 0.95)]) for kind in ("difference", "ratio"))
        yield name, np.array([end[0] for end in values.limits(0.95)]), difference, float(pairs.p_values[0]), ratio


def peers(x: FloatArray, y: FloatArray) -> dict[str, tuple[FloatArray, FloatArray, float]]:
    """Return Student's and Welch's limits and Welch's p-value for means, and Mann and Whitney's p-value for medians."""
    welch = stats.ttest_ind(x, y, equal_var=False)
    one = stats.t.interval(0.95, x.size - 1, x.mean(), stats.sem(x))
    rank = float(stats.mannwhitneyu(x, y).pvalue)
    nothing = np.full(2, np.nan)
    return {
        "mean": (np.array(one), np.array(welch.confidence_interval(0.95)), float(welch.pvalue)),
        "median": (nothing, nothing, rank),
    }


def lines_of(samples: int, rng: Generator, of: Population, sizes: tuple[int, int], times: float) -> Sequence[Line]:
    """Return the coverage of all intervals, and the rejection rates of the tests of equality."""
    found: dict[tuple[str, str], list[bool]] = {}
    beside: dict[tuple[str, str], list[bool]] = {}

    def covers(limits: FloatArray, truth: float) -> bool:
        return bool(limits[0] <= truth <= limits[1])

    for _ in range(samples):
        x, y = times * of.draw(rng, sizes[0]), of.draw(rng, sizes[1])
        others = peers(x, y)
        for name, one, difference, p, ratio in compared(x, y):
            truth = float(getattr(of, name))
            gap = (times - 1.0) * truth
            each = {"one": covers(one, times * truth), "difference": covers(difference, gap), "test": p < 0.05}
            if truth > 0:
                each["ratio"] = covers(ratio, times)
            for what, value in each.items():
                found.setdefault((name, what), []).append(value)
            if name in others:
                student, welch, p_value = others[name]
                each = {"one": covers(student, times * truth), "difference": covers(welch, gap), "test": p_value < 0.05}
                for what, value in each.items():
                    beside.setdefault((name, what), []).append(value)
    return [_line(key, seen, beside.get(key), of, sizes, times) for key, seen in found.items()]


def _line(
    key: tuple[str, str],
    seen: list[bool],
    beside: list[bool] | None,
    of: Population,
    sizes: tuple[int, int],
    times: float,
) -> Line:
    name, what = key
    words = {"one": "interval of one group", "difference": "interval of a difference", "ratio": "interval of a ratio"}
    is_null = times == 1.0
    kind: Kind = "interval" if what != "test" else "test" if is_null else "power"
    is_far = name == "rmse" and what == "one" and "lognormal" in of.name
    least = LEAST_OF_SQUARES if is_far else LEAST[name]
    oracle = {"mean": "Student" if what == "one" else "Welch", "median": "Mann and Whitney"}.get(name, "")
    has_peer = beside is not None and not (name == "median" and what != "test")
    line = Line(
        what=f"{NUMBER_METRICS[name].title_in_sentence}: {words.get(what, 'test of equality')}",
        population=f"{of.name}, {sizes[0]:,} and {sizes[1]:,} people{'' if is_null else f', {times:g} times'}",
        kind=kind,
        nominal=None if kind == "power" else 0.05 if kind == "test" else 0.95,
        allowed=None if least == 0.95 or kind == "power" else 1.0 - least if kind == "test" else least,
        why="" if least == 0.95 or kind == "power" else FEW,
        oracle=oracle if has_peer else "",
    )
    return line.seen((np.array(seen), np.array(beside)) if has_peer else np.array(seen))


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for of in POPULATIONS:
        for sizes in SIZES:
            for times in (1.0, 1.5) if sizes == (60, 60) else (1.0,):
                book.several(
                    f"{of.name}, {sizes}, {times}",
                    partial(lines_of, of=of, sizes=sizes, times=times),
                    samples=300 if sizes[0] > 1_000 else 1_000,
                    guard=100 if sizes == (60, 60) and times == 1.0 else 0,
                )
