"""Common parts of coverage simulations: effort, rows of the table, hit counts, and values as in the audits.

Every interval under test comes from the functions that the audits call (`GroupValues.limits`, `Pairs`, `Analysis`).
These work along the axis of groups; here that axis contains samples, so one call processes thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchmarks.coverage._lines import Line
from evenhand.audits.parity.estimate import GroupValues, ratio_values
from evenhand.audits.parity.gaps import pairs_with_rest
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import METRICS
from evenhand.audits.parity.pairs import GroupPairs, make_pairs
from evenhand.core.records import Kind
from evenhand.stats.types import FloatArray, Interval

INSIDE = (0.93, 0.97)
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Effort:
    """The numbers of samples and resamples available to a simulation."""

    samples: int = 4_000
    boots: int = 900
    resamples: int = 500
    numbers: int = 8_000_000

    def samples_of(self, size: int) -> int:
        """Return the number of samples of a size to draw."""
        return min(self.samples, self.numbers // size)


@dataclass(frozen=True)
class Row:
    """One result; `below` explains coverage below 93 %, `least` is its allowed minimum; samples is 0 if exact."""

    what: str
    size: int
    at: str
    interval: str
    coverage: float
    none: float
    samples: int
    beside: tuple[tuple[str, float], ...] = ()
    below: str = UNEXPLAINED
    least: float = 0.9

    def line(self) -> Line:
        """Return the row as a promise: 93 % for an approximate interval, less where the row explains it."""
        allowed, why = (INSIDE[0], "approximate") if self.below == UNEXPLAINED else (self.least, self.below)
        known = round(self.samples * (1 - self.none))
        line = Line(
            what=f"{self.what}: {self.interval}",
            population=f"{self.size:,} people, {self.at}",
            kind="interval",
            nominal=0.95,
            allowed=allowed,
            why=why,
            observed=self.coverage,
            samples=known,
        )
        beside = dict(self.beside) | ({"without an interval": self.none} if self.none > 0 else {})
        return line.held_against(beside) if beside else line


def covered(limits: Interval, truth: float, probability: FloatArray | None = None) -> tuple[float, float]:
    """Return the coverage among samples with an interval, and the share of samples without one."""
    low, high = np.asarray(limits.low), np.asarray(limits.high)
    share = np.full(low.shape, 1.0 / low.size) if probability is None else probability
    slack = 1e-12 * max(1.0, abs(truth))
    known = ~np.isnan(low) & ~np.isnan(high)
    inside = known & (low <= truth + slack) & (truth - slack <= high)
    return float(share[inside].sum() / share[known].sum()), float(share[~known].sum() / share.sum())


def stack(limits: Sequence[Interval], column: int = 0) -> Interval:
    """Return one column of many intervals as one interval of arrays."""
    return Interval(
        np.array([float(limit.low[column]) for limit in limits]),
        np.array([float(limit.high[column]) for limit in limits]),
    )


# Values as the audits have them: the axis of groups holds samples ---------------------------------------------


def rates(rate: npt.ArrayLike, trials: npt.ArrayLike) -> GroupValues:
    """Return the rates of many samples as `GroupValues`."""
    p, n = np.broadcast_arrays(np.asarray(rate, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    found, counts = _values("selection_rate", p, np.full(p.shape, np.nan), n), p * n
    return replace(found, weighted=bool((np.abs(counts - np.rint(counts)) > 1e-6).any()))


def means(summary: tuple[FloatArray, FloatArray, FloatArray]) -> GroupValues:
    """Return the means of many samples as `GroupValues`, from means, standard errors and degrees of freedom."""
    mean, stderr, df = summary
    return _values("mean_score", mean, stderr, df + 1)


def areas(value: FloatArray, stderr: FloatArray, rarer: npt.ArrayLike) -> GroupValues:
    """Return the AUCs of many samples as `GroupValues`, with the number of people of the rarer outcome."""
    return _values("auc", value, stderr, np.broadcast_to(np.asarray(rarer, dtype=np.float64), value.shape))


def _values(metric: str, value: FloatArray, stderr: FloatArray, trials: FloatArray) -> GroupValues:
    n = np.zeros(value.shape, dtype=np.int64)
    return GroupValues(
        metric=METRICS[metric],
        value=value,
        overall=float("nan"),
        n=n,
        n_overall=0,
        counted=trials,
        stderr=stderr,
        trials=trials,
        bounds=(0.0, 1.0),
    )


def survey(
    metric: str, weight: FloatArray, *, hit: FloatArray | None = None, score: FloatArray | None = None
) -> GroupValues:
    """Return the weighted rate of `hit`, or the weighted mean of `score`, with one sample per row."""
    yes = np.zeros_like(weight) if hit is None else hit
    factors = (weight,) if score is None else (weight, weight * score)
    shape = (1, len(weight), 2, 2)
    n, first, second = np.zeros(shape), np.zeros((*shape, 3)), np.zeros((*shape, 3, 3))
    for decision, member in enumerate((1 - yes, yes)):
        n[0, :, 0, decision] = member.sum(axis=1)
        for i, a in enumerate(factors):
            first[0, :, 0, decision, i] = (a * member).sum(axis=1)
            for j, b in enumerate(factors):
                second[0, :, 0, decision, i, j] = (a * b * member).sum(axis=1)
    labels = tuple(map(str, range(len(weight))))
    cells = GroupCells(labels, ("",), n.astype(np.int64), first, second, weighted=True)
    return replace(ratio_values(cells, METRICS[metric], (0.0, 1.0)), rest=None, share=None)


def against_everybody(group: GroupValues, rest: GroupValues, share: npt.ArrayLike, kind: Kind) -> Interval:
    """Return the audits' limits of a group against all people, one pair per sample."""
    shares = np.broadcast_to(np.asarray(share, dtype=np.float64), group.value.shape)
    everybody = replace(group, rest=rest, share=shares, overall=float("nan"))
    return pairs_with_rest(everybody).limits(kind, 0.95)


def compare(a: GroupValues, b: GroupValues, kind: Kind, confidence: float = 0.95) -> Interval:
    """Return the audits' limits of the gap between two groups, one pair per sample."""
    return make_pairs(a, b).limits(kind, confidence)


def all_pairs(values: GroupValues) -> GroupPairs:
    """Return the audits' comparison of all pairs of groups of one sample."""
    order = np.argsort(-values.value, kind="stable")
    first, second = np.triu_indices(order.size, 1)
    return make_pairs(values.only(order[first]), values.only(order[second]))
