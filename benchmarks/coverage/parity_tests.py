"""Calibration of parity: null reports with rare extremes, names and seeds, "meets" with few people, and power.

The populations are those in which earlier tests, limits and verdicts of parity contradicted each other or failed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from scipy.stats import binom

import evenhand as eh
from benchmarks.coverage._lines import Book
from evenhand.stats.permutation import compare_means
from evenhand.stats.two_rates import compare_rates
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEASURED = ("audits/parity/pairs.py", "audits/parity/gaps.py", "stats/two_rates", "stats/permutation")


def fraud(rng: Generator, people: int) -> tuple[FloatArray, FloatArray]:
    """Return scores and outcomes of people, with 2.5 % of the scores near 1."""
    score = np.where(rng.random(people) < 0.025, 1 - 0.03 * rng.random(people), rng.beta(1, 20, people))
    return score, (rng.random(people) < score).astype(np.float64)


def null_reports(samples: int, rng: Generator, small: int) -> BoolArray:
    """Return whether each report on mean score and Brier score of equal groups has a false finding."""
    found = np.zeros(samples, dtype=np.bool_)
    for sample in range(samples):
        score, outcome = (np.concatenate(part) for part in zip(fraud(rng, small), fraud(rng, 2_000), strict=True))
        people = {"group": ["a"] * small + ["b"] * 2_000, "score": score, "outcome": outcome}
        table = eh.Table(people, groups="group", outcome="outcome", predictions={"m": "score"})
        report = eh.parity(table, metrics=["mean_score", "brier"])
        found[sample] = any((finding.p_adjusted or 0.0) < 0.05 for finding in report.findings)
    return found


def weighted_rates(samples: int, rng: Generator, rate: float, small: int) -> BoolArray:
    """Return whether each test falsely rejects equal rates of people with survey weights."""
    in_small = np.arange(600 + small) < small
    found = np.zeros(samples, dtype=np.bool_)
    for sample in range(samples):
        weight = rng.gamma(1.5, size=in_small.size)
        chosen = (rng.random(in_small.size) < rate).astype(np.float64)
        found[sample] = compare_means(chosen, in_small, ~in_small, weights=weight, bounds=(0.0, 1.0)).p_value < 0.05
    return found


def renamed(samples: int, rng: Generator) -> BoolArray:
    """Return whether another column name or seed changes the p-value of 30 of 100 against 44 of 100."""
    chosen = [1] * 30 + [0] * 70 + [1] * 44 + [0] * 56
    found = []
    for sample in range(samples):
        column = f"column {rng.integers(10**6)}"
        table = eh.Table({column: ["a"] * 100 + ["b"] * 100, "d": chosen}, groups=column, predictions="d")
        gap = eh.parity(table, seed=sample).get("gaps", kind="difference", against="worst_pair")
        found.append(gap.p_value != float(compare_rates(30, 100, 44, 100).p_value))
    return np.array(found)


def false_meets(samples: int, rng: Generator, small: int, base: float, limit: float) -> BoolArray:
    """Return whether a group just beyond a limit falsely meets it, against a reference of 5,000."""
    counts = rng.binomial(small, base + limit + 1e-9, samples), rng.binomial(5_000, base, samples)
    compared = compare_rates(counts[0], small, counts[1], 5_000)
    return np.asarray((compared.one_sided("upper", limit) < 0.05) & (compared.one_sided("lower", -limit) < 0.05))


def two_rates(samples: int, rng: Generator, rates: tuple[float, float], people: int) -> tuple[BoolArray, BoolArray]:
    """Return whether two groups are reported as different: by the exact score test, and by Barnard's test."""
    x, y = (rng.binomial(people, rate, samples) for rate in rates)
    return compare_rates(x, people, y, people).p_value < 0.05, barnard(x, y, people) < 0.05


def barnard(x: IntArray, y: IntArray, people: int) -> FloatArray:
    """Return the p-values of Barnard's test with the pooled z, maximised over 250 common rates."""
    counts = np.arange(people + 1, dtype=np.int64)
    statistic = _pooled_z(counts[:, np.newaxis], counts, people).ravel()
    order = np.argsort(-statistic, kind="stable")
    every = statistic[order]
    last = np.searchsorted(-every, 1e-9 - _pooled_z(x, y, people), "right") - 1
    largest = np.zeros(last.shape)
    for rate in np.linspace(0.001, 0.5, 250):
        chance = binom.pmf(counts, people, rate)
        largest = np.maximum(largest, np.cumsum(np.outer(chance, chance).ravel()[order])[last])
    return largest


def _pooled_z(x: IntArray, y: IntArray, people: int) -> FloatArray:
    pooled = (x + y) * (2.0 * people - x - y)
    return np.asarray(np.abs(x - y) / np.sqrt(np.where(pooled > 0, pooled, 1.0)))


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for small in (60, 300):
        book.measure(
            "null report on mean score and Brier score has a false finding",
            f"{small} against 2,000 people, 2.5 % of scores near 1",
            partial(null_reports, small=small),
            kind="test",
            nominal=0.05,
            allowed=0.08,
            why="exact if scores and outcomes are distributed alike; two findings share draws of few people",
            samples=400,
        )
    for rate, size in ((0.1, 60), (0.3, 60), (0.1, 300)):
        book.measure(
            "test of equal rates with survey weights",
            f"{size} against 600 people, rate {rate:g}, gamma weights",
            partial(weighted_rates, rate=rate, small=size),
            kind="test",
            nominal=0.05,
            samples=1_000,
        )
    book.measure(
        "p-value moves with the name of the column or the seed",
        "30 of 100 against 44 of 100",
        renamed,
        kind="verdict",
        nominal=0.0,
        samples=40,
        guard=5,
    )
    for small, base, limit in ((2, 0.01, 0.66), (3, 0.01, 0.56), (15, 0.01, 0.2), (40, 0.05, 0.1), (30, 0.3, 0.25)):
        book.measure(
            "gap to a reference: false 'meets' by the one-sided limit",
            f"5,000 against {small} just beyond the limit of {limit:g} (rate {base:g})",
            partial(false_meets, small=small, base=base, limit=limit),
            kind="verdict",
            nominal=0.05,
            samples=2_000,
            guard=200 if small == 15 else 0,
        )
    for rates, people in (((0.1, 0.3), 61), ((0.02, 0.15), 66), ((0.3, 0.5), 94)):
        book.measure(
            "two rates are said to differ",
            f"{rates[0]:g} against {rates[1]:g}, {people} people each",
            partial(two_rates, rates=rates, people=people),
            kind="power",
            oracle="Barnard",
            samples=4_000,
        )
