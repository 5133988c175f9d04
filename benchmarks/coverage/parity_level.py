"""Level, coverage and power of the parity audit for worst pairs, gaps to a reference, and small-sample AUCs.

Every number comes from the audit's functions. Beside it is the replaced method: Bonferroni at both ends of a worst
pair; pointwise Wilson limits of gaps to a reference; Student's t without `steady_stderr` for AUCs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtri

from benchmarks.coverage._lines import Book
from benchmarks.coverage._parity.core import all_pairs, areas, compare, rates
from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.gaps import joint_confidence
from evenhand.audits.parity.pairs import worst_p
from evenhand.core.records import Kind
from evenhand.stats.auc import delong
from evenhand.stats.intervals import bonferroni, clopper_pearson, logit_t, mover_difference, mover_ratio, wilson
from evenhand.stats.types import BoolArray, FloatArray, Interval
from evenhand.stats.worst_pair import equality_p_values, narrowest_ratio, widest_difference

MEASURED = (
    "audits/parity/estimate.py",
    "audits/parity/gaps.py",
    "audits/parity/pairs.py",
    "stats/two_rates",
    "stats/intervals.py",
    "stats/worst_pair.py",
    "stats/auc.py",
)

Populations = Callable[[Generator], tuple[FloatArray, FloatArray]]
Both = tuple[BoolArray, BoolArray]
KINDS: tuple[Kind, ...] = ("difference", "ratio")


def values_of(rate: FloatArray, people: FloatArray, rng: Generator) -> GroupValues:
    """Return the rates of one random sample."""
    return rates(rng.binomial(people.astype(np.int64), rate) / people, people)


def target(rate: FloatArray, kind: Kind) -> float:
    """Return the true gap of the worst pair."""
    return float(rate.max() - rate.min() if kind == "difference" else rate.min() / rate.max())


def bonferroni_limits(values: GroupValues, kind: Kind) -> tuple[float, float]:
    """Return the former limits of a worst pair, with Bonferroni over all pairs at both ends."""
    p, k = values.value, len(values.value)
    i, j = np.triu_indices(k, 1)
    own = clopper_pearson(p, values.trials, bonferroni(0.95, len(i)))
    move = mover_difference if kind == "difference" else mover_ratio
    found = move(p[i], Interval(own.low[i], own.high[i]), p[j], Interval(own.low[j], own.high[j]))
    empty = (p[i] == 0) & (p[j] == 0) & (kind == "ratio")
    pairs = Interval(np.where(empty, 0.0, found.low), np.where(empty, np.inf, found.high))
    return widest_difference(pairs) if kind == "difference" else narrowest_ratio(pairs)


def covers_worst(samples: int, rng: Generator, population: Populations, kind: Kind) -> Both:
    """Return whether the limits of the worst pair cover the true gap: ours, and Bonferroni's."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        rate, people = population(rng)
        values, truth = values_of(rate, people, rng), target(rate, kind)
        ends = all_pairs(values).widest(kind, 0.95), bonferroni_limits(values, kind)
        found[sample] = [low - 1e-12 <= truth <= high + 1e-12 for low, high in ends]
    return found[:, 0], found[:, 1]


def meets_worst(samples: int, rng: Generator, population: Populations, limit: float) -> Both:
    """Return whether the worst difference is shown to be within a limit: ours, and Bonferroni's."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        rate, people = population(rng)
        values = values_of(rate, people, rng)
        ends = (
            all_pairs(values).widest("difference", 0.95),
            bonferroni_limits(values, "difference"),
        )
        found[sample] = [high <= limit for _, high in ends]
    return found[:, 0], found[:, 1]


def fixed(rate: Sequence[float], people: Sequence[int]) -> Populations:
    """Return a function that always returns the same population."""
    return lambda _: (np.array(rate), np.array(people, dtype=np.float64))


def any_population(rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Return a random population of 2 to 30 groups of 5 to 5,000 people, with extreme, tied or spread rates."""
    groups = int(rng.integers(2, 31))
    people = np.exp(rng.uniform(np.log(5), np.log(5_000), groups)).round()
    a, b = ((0.5, 10.0), (10.0, 0.5), (2.0, 2.0), (1.0, 1.0))[int(rng.integers(0, 4))]
    rate = rng.beta(a, b, groups)
    if rng.random() < 0.5:  # many groups alike, or all
        rate = np.where(rng.random(groups) < rng.choice([0.5, 1.0]), rate[0], rate)
    return np.clip(rate, 1e-3, 1 - 1e-3), np.asarray(people, dtype=np.float64)


# Against a reference --------------------------------------------------------------------------------------------------


def wrong_reference(samples: int, rng: Generator, base: float, small: int, groups: int, limit: float) -> Both:
    """Return whether any group exactly at the limit falsely fails it: ours, and by pointwise Wilson limits."""
    people = np.array([5_000, *[small] * groups], dtype=np.float64)
    rate = np.array([base, *[base + limit] * groups])
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        values = values_of(rate, people, rng)
        small_groups, base_group = values.only(np.arange(1, groups + 1)), values.only(np.zeros(groups, dtype=np.int64))
        joint = compare(small_groups, base_group, "difference", joint_confidence(0.95, groups))
        own = [wilson(side.value, side.trials) for side in (small_groups, base_group)]
        pointwise = mover_difference(small_groups.value, own[0], base_group.value, own[1])
        found[sample] = [(np.maximum(ends.low, -ends.high) > limit).any() for ends in (joint, pointwise)]
    return found[:, 0], found[:, 1]


# Tests of equality ----------------------------------------------------------------------------------------------------


def _limits(values: Any, confidence: FloatArray) -> Any:
    """Return the exact limits of each group at the first of several equal confidences."""
    return values.limits(float(confidence[0]), exact=True)


def rejects(samples: int, rng: Generator, population: Populations, alpha: float) -> Both:
    """Return whether equality of all groups is rejected: by the tests of all pairs, and by MOVER limits."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        rate, people = population(rng)
        values = values_of(rate, people, rng)
        by_limits = equality_p_values(values.value, partial(_limits, values), [len(rate)])[0]
        found[sample] = worst_p(all_pairs(values)) < alpha, by_limits <= alpha
    return found[:, 0], found[:, 1]


# AUCs of few people -----------------------------------------------------------------------------------------


def covers_auc(samples: int, rng: Generator, auc: float, positives: int, negatives: int, spread: float) -> Both:
    """Return whether the limits of an AUC cover the true value: ours, and without `steady_stderr`."""
    positive = np.arange(positives + negatives) < positives
    shift = float(np.sqrt(1 + spread**2) * ndtri(auc))
    found = []
    for _ in range(samples):
        scores = rng.standard_normal(positive.size)
        found.append(delong(np.where(positive, shift + spread * scores, scores), positive))
    value, stderr = np.array([x.value for x in found]), np.array([x.stderr for x in found])
    ours = areas(value, stderr, positives).limits(0.95)
    before = logit_t(value, stderr, positives - 1.0)
    hold = [(limits.low <= auc) & (auc <= limits.high) for limits in (ours, before)]
    return hold[0], hold[1]


# The lines ------------------------------------------------------------------------------------------------------------


def promises(book: Book) -> None:
    """Declare the lines of all three parts."""
    worst_pairs(book)
    references(book)
    small_samples(book)


def worst_pairs(book: Book) -> None:
    """Declare the lines of worst pairs."""
    places: dict[str, Populations] = {
        "random: 2-30 groups of 5-5,000": any_population,
        "20 groups of 500, true gap .05": fixed([0.3] * 10 + [0.35] * 10, [500] * 20),
        "5,000 and ten of 12, all at .02": fixed([0.02] * 11, [5_000, *[12] * 10]),
        "4 groups of 15, all at .3": fixed([0.3] * 4, [15] * 4),
        "2 groups of 200, .02 and .05": fixed([0.02, 0.05], [200, 200]),
        "3 groups of 40, .02, .5, .97": fixed([0.02, 0.5, 0.97], [40, 40, 40]),
    }
    for name, place in places.items():
        for kind in KINDS:
            book.measure(
                f"worst {kind} of rates, 95 % interval",
                name,
                partial(covers_worst, population=place, kind=kind),
                kind="interval",
                nominal=0.95,
                oracle="Bonferroni",
                samples=3_000,
                guard=200 if name.startswith("random") else 0,
            )
    book.measure(
        "worst difference of rates meets .2",
        "20 groups of 500, true gap .05",
        partial(meets_worst, population=places["20 groups of 500, true gap .05"], limit=0.2),
        kind="power",
        oracle="Bonferroni",
        samples=300,
    )
    for name in ("5,000 and ten of 12, all at .02", "4 groups of 15, all at .3"):
        for alpha in (0.05, 0.005):
            book.measure(
                f"test of equal rates in all groups (all pairs), {alpha:g}",
                name,
                partial(rejects, population=places[name], alpha=alpha),
                kind="test",
                nominal=alpha,
                oracle="MOVER limits of the worst pair",
                samples=800,
                guard=100 if alpha == 0.05 and name.startswith("4") else 0,
            )
    book.measure(
        "test of equal rates in all groups (all pairs), 0.05",
        "10 groups of 50, five at .1 and five at .25",
        partial(rejects, population=fixed([0.1] * 5 + [0.25] * 5, [50] * 10), alpha=0.05),
        kind="power",
        oracle="MOVER limits of the worst pair",
        samples=300,
    )


def references(book: Book) -> None:
    """Declare the lines of gaps to a reference."""
    for base, small, groups, limit in (
        (0.05, 15, 10, 0.05),
        (0.01, 15, 10, 0.0),
        (0.01, 40, 20, 0.02),
        (0.3, 30, 10, 0.1),
    ):
        book.measure(
            "gap to a reference: some false 'does not meet'",
            f"5,000 against {groups} of {small}, all at the limit of {limit:g} (rate {base:g})",
            partial(wrong_reference, base=base, small=small, groups=groups, limit=limit),
            kind="verdict",
            nominal=0.05,
            oracle="pointwise Wilson",
            samples=1_500,
            guard=150 if base == 0.05 else 0,
        )


def small_samples(book: Book) -> None:
    """Declare the lines of AUCs with few people."""
    for auc, positives, negatives, spread in (
        (0.96, 20, 180, 1.0),
        (0.96, 20, 1_000, 1.0),
        (0.9, 20, 180, 1.0),
        (0.8, 50, 200, 1.0),
        (0.99, 20, 1_000, 3.0),
        (0.9, 20, 180, 3.0),
    ):
        allowed: dict[str, Any] = (
            {"allowed": 0.90, "why": "placements so skewed that 20 people do not show it"} if spread > 1 else {}
        )
        book.measure(
            "AUC, 95 % interval",
            f"{auc:g} with {positives} positives of {positives + negatives:,}, spread {spread:g}",
            partial(covers_auc, auc=auc, positives=positives, negatives=negatives, spread=spread),
            kind="interval",
            nominal=0.95,
            oracle="without two more people",
            samples=1_500,
            **allowed,
        )
