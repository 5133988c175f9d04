"""Coverage of the intervals of F1 and balanced accuracy, which are functions of rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.coverage._parity.core import UNEXPLAINED, Effort, Row, compare, covered
from benchmarks.coverage._parity.overall import REST
from benchmarks.coverage._parity.rates import KINDS
from evenhand.audits.parity.estimate import GroupValues, ratio_values
from evenhand.audits.parity.gaps import limit_pairs, pairs_with_rest
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.records import Kind
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import worst_pair

NAMES = ("f1", "balanced_accuracy")
TITLES = {"f1": "F1", "balanced_accuracy": "balanced accuracy"}
TPR = (0.5, 0.7)
"""The true positive rates of two groups."""


@dataclass(frozen=True)
class Population:
    """Two groups of one size with different true positive rates.

    Parameters
    ----------
    size : the number of people of each group.
    prevalence : the share of positive outcomes.
    easy : whether false positive rates are 0.1; otherwise they are 0.01, with true positive rates near 1.
    """

    size: int
    prevalence: float
    easy: bool

    @property
    def chances(self) -> FloatArray:
        """The probabilities of the cells, by group, outcome and decision."""
        tpr, fpr = (np.array(TPR), 0.1) if self.easy else (np.array([0.9, 0.98]), 0.01)
        found = np.empty((2, 2, 2))
        found[:, 1, 1], found[:, 1, 0] = self.prevalence * tpr, self.prevalence * (1 - tpr)
        found[:, 0, 1], found[:, 0, 0] = (1 - self.prevalence) * fpr, (1 - self.prevalence) * (1 - fpr)
        return found

    @property
    def words(self) -> str:
        """A description of the population."""
        kind = "tpr 0.5 0.7, fpr 0.1" if self.easy else "tpr 0.9 0.98, fpr 0.01"
        return f"{self.prevalence:g} positive, {kind}"


def values_of(n: IntArray, name: str) -> GroupValues:
    """Return a metric from counts by sample, outcome and decision; the axis of groups contains samples."""
    first, second = np.zeros((1, *n.shape, 3)), np.zeros((1, *n.shape, 3, 3))
    first[..., 0], second[..., 0, 0] = n, n
    cells = GroupCells(tuple(map(str, range(len(n)))), ("",), n[None], first, second, weighted=False)
    return ratio_values(cells, METRICS[name], (0.0, 1.0))


def truth_of(chances: FloatArray, name: str) -> float:
    """Return the true value of a metric from the probabilities of the cells."""
    (tn, fp), (fn, tp) = chances
    return float(2 * tp / (2 * tp + fp + fn) if name == "f1" else (tp / (tp + fn) + tn / (fp + tn)) / 2)


def beside_rest(group: IntArray, rest: IntArray, name: str, kind: Kind) -> Interval:
    """Return the audits' limits of a group against all people, for each sample's pair of counts."""
    limits = []
    for pair in np.stack([group, rest], axis=1):
        own = pairs_with_rest(values_of(pair, name).only(np.array([0]))).limits(kind, 0.95)
        limits += limit_pairs(own)
    low, high = np.array(limits).T
    return Interval(low, high)


def rate_function(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for F1 and balanced accuracy with common errors."""
    return _rows(Population(size, prevalence, True), effort, rng)


def rate_function_near_1(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for F1 and balanced accuracy with rare errors, beside the delta method."""
    return _rows(Population(size, prevalence, False), effort, rng)


def _rows(population: Population, effort: Effort, rng: np.random.Generator) -> list[Row]:
    samples, chances = 2 * effort.samples, population.chances
    a, b = (rng.multinomial(population.size, part.ravel(), samples).reshape(-1, 2, 2) for part in chances)
    rest = rng.multinomial(REST, chances[1].ravel(), samples // 4).reshape(-1, 2, 2)
    few = population.size * population.prevalence * (1 if population.easy else 0.1) < 20
    why = "few discrete counts" if few else UNEXPLAINED
    rows = []

    def add(what: str, interval: str, limits: Interval, truth: float, beside: tuple[tuple[str, float], ...]) -> None:
        coverage, none = covered(limits, truth)
        size, number = population.size, len(np.asarray(limits.low))
        rows.append(Row(what, size, population.words, interval, coverage, none, number, beside, why))

    share = population.size / (population.size + REST)
    for name in NAMES:
        left, right = values_of(a, name), values_of(b, name)
        truth = [truth_of(part, name) for part in chances]
        everybody = truth_of(share * chances[0] + (1 - share) * chances[1], name)
        normal = Interval(left.value - 1.959964 * left.stderr, left.value + 1.959964 * left.stderr)
        delta = (("delta method", covered(normal, truth[0])[0]),)
        add(f"{TITLES[name]}, value", "MOVER", left.limits(0.95), truth[0], delta)
        for kind in KINDS:
            gap = truth[0] - truth[1] if kind == "difference" else truth[0] / truth[1]
            add(f"{TITLES[name]}, {kind}", "MOVER", compare(left, right, kind, 0.95), gap, ())
            gap = truth[0] - everybody if kind == "difference" else truth[0] / everybody
            limits = beside_rest(a[: len(rest)], rest, name, kind)
            add(f"{TITLES[name]}, {kind} to all", "MOVER", limits, gap, ())
            gap = truth[1] - truth[0] if kind == "difference" else truth[0] / truth[1]
            add(f"{TITLES[name]}, worst {kind}", "worst pair", _worst(left, right, kind), gap, ())
    return rows


def _worst(left: GroupValues, right: GroupValues, kind: Kind) -> Interval:
    """Return the audits' limits of the worst pair of two groups, one per sample."""
    value = np.stack([left.value, right.value], axis=1)
    own = [side.limits(0.95, exact=True) for side in (left, right)]  # of two groups both ends are at one level
    low, high = (np.stack([np.asarray(limits[end]) for limits in own], axis=1) for end in (0, 1))
    ends = [worst_pair(value[i], partial(_at_one_level, low[i], high[i]), kind, 0.95) for i in range(len(value))]
    return Interval(*np.array(ends).T)


def _at_one_level(low: FloatArray, high: FloatArray, confidence: float) -> Interval:
    del confidence
    return Interval(low, high)
