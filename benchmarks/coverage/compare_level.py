"""Level, coverage and power of `eh.compare` for two audits.

Two audits of independent samples are compared by `eh.compare`. If both come from one population, every "worse" or
"better" is false, and the interval of the change of a gap should cover 0. If the gap grows, detecting it is power,
beside a z-test of the change for the known pair of groups. Further lines are about the same people under two models
with mostly equal decisions: intervals of the change that use each person's contributions to both gaps, beside intervals
that treat the samples as independent.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

import evenhand as eh
from benchmarks.coverage._lines import Book, Line
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("evidence/changes.py", "evidence/comparison.py", "evidence/pairing.py", "audits/parity")

TWO = ((500, 0.3), (500, 0.3))
SIX = ((1000, 0.1), (400, 0.1), (200, 0.1), (100, 0.1), (60, 0.1), (40, 0.1))
APART = ((500, 0.25), (500, 0.3), (300, 0.35))
GROWN = ((500, 0.20), (500, 0.3), (300, 0.35))
LOWER, HIGHER = ((500, 0.30), (500, 0.33)), ((500, 0.33), (500, 0.30))
Groups = tuple[tuple[int, float], ...]


def draw(groups: Groups, rng: Generator) -> tuple[eh.Audit, FloatArray]:
    """Return an audit of a random sample, and the selection rates by group."""
    selected = [rng.random(n) < rate for n, rate in groups]
    names = np.repeat([f"g{number}" for number in range(len(groups))], [n for n, _ in groups])
    table = eh.Table(
        {"group": names, "hired": np.concatenate(selected).astype(int)}, groups="group", predictions="hired"
    )
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=[{"metric": "selection_rate", "max": 0.1}])
    return audit, np.array([each.mean() for each in selected])


def false_claims(samples: int, rng: Generator, groups: Groups) -> tuple[BoolArray, BoolArray]:
    """Return whether each comparison of one population claims a change, and whether its interval covers 0."""
    claimed, covers = [], []
    for _ in range(samples):
        old, new = draw(groups, rng)[0], draw(groups, rng)[0]
        if old.data["hash"] == new.data["hash"]:  # the same counts by chance: refused, and no claim
            claimed.append(False)
            covers.append(True)
            continue
        comparison = eh.compare(old, new)
        claimed.append(any(change.direction != "unclear" for change in comparison.changes))
        worst = comparison.changes[0]
        covers.append(worst.low is None or worst.high is None or worst.low <= 0 <= worst.high)
    return np.array(claimed), np.array(covers)


def found(samples: int, rng: Generator) -> tuple[BoolArray, BoolArray]:
    """Return whether each comparison detects a gap that grew: ours, and a z-test of the pair."""
    ours, oracle = [], []
    for _ in range(samples):
        (old, old_rates), (new, new_rates) = draw(APART, rng), draw(GROWN, rng)
        ours.append(bool(eh.compare(old, new).worse))
        variance = sum(rate * (1 - rate) / n for groups in (APART, GROWN) for n, rate in (groups[0], groups[2]))
        z = ((new_rates[2] - new_rates[0]) - (old_rates[2] - old_rates[0])) / np.sqrt(variance)
        oracle.append(2 * ndtr(-abs(z)) <= 0.05)
    return np.array(ours), np.array(oracle)


def widest(groups: Groups) -> float:
    """Return the largest gap in selection rates of a population."""
    return float(np.ptp([rate for _, rate in groups]))


def decide_twice(groups: Groups, later: Groups, agree: float, rng: Generator) -> tuple[list[eh.Table], list[eh.Audit]]:
    """Return tables and audits of the same people under two models that share a share `agree` of random numbers."""
    size = [n for n, _ in groups]
    names = np.repeat([f"g{number}" for number in range(len(groups))], size)
    luck = rng.random(len(names))
    other = np.where(rng.random(len(names)) < agree, luck, rng.random(len(names)))
    tables = [
        eh.Table(
            {"group": names, "hired": (drawn < np.repeat([rate for _, rate in rates], size)).astype(int)},
            groups="group",
            predictions="hired",
        )
        for drawn, rates in ((luck, groups), (other, later))
    ]
    limits = [{"metric": "selection_rate", "max": 0.1}]
    return tables, [eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=limits) for table in tables]


def paired(
    samples: int, rng: Generator, groups: Groups, later: Groups, agree: float = 0.9
) -> dict[str, tuple[BoolArray, BoolArray]]:
    """Return whether each pair of audits claims a change, and whether its interval covers the true change.

    Each result is beside the result of treating the two audits as independent samples.
    """
    truth = widest(later) - widest(groups)
    told: dict[str, list[list[bool]]] = {"claimed": [], "covers": []}
    for _ in range(samples):
        tables, audits = decide_twice(groups, later, agree, rng)
        if audits[0].data["hash"] == audits[1].data["hash"]:
            told["claimed"].append([False, False])
            told["covers"].append([truth == 0.0, truth == 0.0])
            continue
        both = [eh.compare(*audits, tables=(tables[0], tables[1])), eh.compare(*audits)]
        told["claimed"].append([any(c.direction != "unclear" for c in found.changes) for found in both])
        ends = [(found.changes[0].low, found.changes[0].high) for found in both]
        told["covers"].append([low is None or high is None or low - 1e-9 <= truth <= high + 1e-9 for low, high in ends])
    return {name: (np.array(rows)[:, 0], np.array(rows)[:, 1]) for name, rows in told.items()}


def lines_apart(samples: int, rng: Generator, groups: Groups, population: str) -> list[Line]:
    """Return the lines of two independent audits of one population."""
    claimed, covers = false_claims(samples, rng, groups)
    interval = Line(
        what="95 % interval of the change of a worst pair", population=population, kind="interval", nominal=0.95
    )
    verdict = Line(what="“worse” or “better” of two audits", population=population, kind="verdict", nominal=0.05)
    return [interval.seen(covers), verdict.seen(claimed)]


def lines_paired(samples: int, rng: Generator, groups: Groups, later: Groups, population: str) -> list[Line]:
    """Return the lines of the same people under two models."""
    found = paired(samples, rng, groups, later)
    about: dict[str, Any] = {"population": population, "oracle": "taken for independent samples"}
    interval = Line(
        what="95 % interval of the change of a worst pair, same people", kind="interval", nominal=0.95, **about
    )
    claim = (
        Line(what="a gap that grew, same people", kind="power", **about)
        if widest(groups) != widest(later)
        else Line(what="“worse” or “better” of the same people", kind="verdict", nominal=0.05, **about)
    )
    return [interval.seen(found["covers"]), claim.seen(found["claimed"])]


def promises(book: Book) -> None:
    """Declare the lines of two compared audits."""
    groups: Groups
    later: Groups
    for name, groups in (("2 groups of 500", TWO), ("6 groups of 40 to 1,000", SIX)):
        population = f"no change, {name}"
        book.several(population, partial(lines_apart, groups=groups, population=population), samples=200)
    book.measure(
        "a gap that grew between two audits",
        "10 to 15 points, groups of 300 to 500",
        found,
        kind="power",
        oracle="z-test of the known pair",
        samples=200,
    )
    for name, groups, later in (
        ("no change, 2 groups of 500, 9 of 10 decided alike", TWO, TWO),
        ("no change, 6 groups of 40 to 1,000, 9 of 10 decided alike", SIX, SIX),
        ("3 points in the other direction, 2 groups of 500, 9 of 10 decided alike", LOWER, HIGHER),
        ("10 to 15 points, 3 groups of 300 to 500, 9 of 10 decided alike", APART, GROWN),
    ):
        book.several(name, partial(lines_paired, groups=groups, later=later, population=name), samples=200)
