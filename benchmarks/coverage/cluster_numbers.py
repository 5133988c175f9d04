"""Level and coverage of means, medians and RMSE of clustered numbers, with 10 to 200 clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, sqrt

import numpy as np
from numpy.random import Generator
from scipy import stats

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.parity.clustered_numbers import with_clusters_of_numbers
from evenhand.audits.parity.number_metrics import NUMBER_METRICS
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.pairs import make_pairs
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.rows import NumberRows

MEASURED = (
    "audits/parity/clustered.py",
    "audits/parity/clustered_numbers.py",
    "audits/parity/numbers.py",
    "stats/clusters.py",
    "stats/quantiles.py",
    "stats/skewed.py",
)


@dataclass(frozen=True)
class Population:
    """A distribution of numbers defined as a function of correlated normal numbers."""

    name: str
    of: Callable[[FloatArray], FloatArray]
    mean: float
    median: float
    rmse: float


POPULATIONS = (
    Population("normal", lambda z: 10.0 + z, 10.0, 10.0, sqrt(101.0)),
    Population("lognormal, sigma 1", np.exp, exp(0.5), 1.0, exp(1.0)),
    Population(
        "70 % zeros, else lognormal",
        lambda z: np.where(stats.norm.cdf(z) < 0.7, 0.0, np.exp(_normal_above(z))),
        0.3 * exp(0.5),
        0.0,
        sqrt(0.3) * exp(1.0),
    ),
)
CLUSTERS = ((10, 10), (10, 50), (30, 30), (100, 100))
CORRELATIONS = (0.05, 0.1, 0.3)
METRICS = ("mean", "median", "rmse")
LEAST = {"mean": 0.90, "median": 0.95, "rmse": 0.90}
LEAST_OF_SQUARES = 0.55
FEW = "few clusters of so skewed numbers may hold none of the large ones"


def _normal_above(z: FloatArray) -> FloatArray:
    """Return the normal number at z's rank among the largest 30 %."""
    return np.asarray(stats.norm.ppf(np.clip((stats.norm.cdf(z) - 0.7) / 0.3, 1e-12, 1 - 1e-12)))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A population with its numbers and sizes of clusters."""

    of: Population
    clusters: tuple[int, int]
    within: float
    even: bool

    @property
    def name(self) -> str:
        """The name of the line."""
        sizes = "4 rows" if self.even else "uneven sizes"
        first, second = self.clusters
        return f"{self.of.name}, {first} and {second} clusters of {sizes}, correlation {self.within}"

    def drawn(self, rng: Generator) -> tuple[FloatArray, IntArray, IntArray]:
        """Return sorted numbers of rows with their group and cluster; both groups have one distribution."""
        number = sum(self.clusters)
        sizes = np.full(number, 4) if self.even else np.maximum(1, rng.lognormal(1.0, 0.8, number)).astype(np.int64)
        cluster = np.repeat(np.arange(number), sizes)
        shared, own = rng.normal(size=number)[cluster], rng.normal(size=len(cluster))
        value = self.of.of(sqrt(self.within) * shared + sqrt(1 - self.within) * own)
        order = np.argsort(value, kind="stable")
        return value[order], (cluster >= self.clusters[0]).astype(np.int64)[order], cluster[order]


def lines_of(samples: int, rng: Generator, case: Case) -> Sequence[Line]:
    """Return the coverage for one group and for the difference; for means beside Welch's interval of rows."""
    found: dict[tuple[str, str], list[bool]] = {}
    welch: list[bool] = []
    for _ in range(samples):
        value, codes, cluster = case.drawn(rng)
        labels = {"cluster": tuple(map(str, range(sum(case.clusters))))}
        cells = Cells({"cluster": cluster}, labels, np.ones(len(value), dtype=np.int64))
        people = NumberPeople(NumberRows(value, np.zeros(len(value)), None, cells), codes, 2)
        for name in METRICS:
            values = with_clusters_of_numbers(people, "cluster", people.values(NUMBER_METRICS[name]))
            first, second = (values.only(np.array([group])) for group in (0, 1))
            one, gap = first.limits(0.95), make_pairs(first, second).limits("difference", 0.95)
            truth = float(getattr(case.of, name))
            found.setdefault((name, "one group"), []).append(bool(one.low[0] <= truth <= one.high[0]))
            found.setdefault((name, "a difference"), []).append(bool(gap.low[0] <= 0.0 <= gap.high[0]))
        low, high = stats.ttest_ind(value[codes == 0], value[codes == 1], equal_var=False).confidence_interval(0.95)
        welch.append(bool(low <= 0.0 <= high))
    return [_line(key, covered, welch, case) for key, covered in found.items()]


def _line(key: tuple[str, str], covered: list[bool], welch: list[bool], case: Case) -> Line:
    name, what = key
    least = LEAST_OF_SQUARES if name == "rmse" and case.of.name != "normal" else LEAST[name]
    line = Line(
        what=f"{NUMBER_METRICS[name].title_in_sentence}: interval of {what}, rows in clusters",
        population=case.name,
        kind="interval",
        nominal=0.95,
        allowed=None if least == 0.95 else least,
        why="" if least == 0.95 else FEW,
        oracle="Welch, row by row" if key == ("mean", "a difference") else "",
    )
    return line.seen((np.array(covered), np.array(welch)) if line.oracle else np.array(covered))


def promises(book: Book) -> None:
    """Declare the lines of all cases."""
    for of in POPULATIONS:
        for clusters in CLUSTERS:
            for within in CORRELATIONS:
                for even in (True, False) if clusters == (30, 30) else (True,):
                    case = Case(of=of, clusters=clusters, within=within, even=even)
                    guard = 40 if clusters == (30, 30) and within == 0.1 and even else 0
                    book.several(case.name, partial(lines_of, case=case), samples=600, guard=guard)
