"""Level and power of the improvability test by splits.

A line is one population: samples of n test rows are drawn, 10 % are selected by the status quo and 10 % by the
candidate, a third of them by both. It reports the share of samples with p <= 0.05 by the signed test, beside the
published test. The pair of groups and its sign come from 2 n separate training rows. Values of groups are set
exactly; accuracy is clearly better for both groups unless it is the null, so that fairness decides.

Nulls: `boundary`, gap1 = (1 - delta) gap0, with gap0 of 3.5 standard errors at every n (`fixed`: 0.8 standard
deviations of the outcome at every n; `reversed`: gap1 of the other sign); `no gaps`, both 0; `accuracy`, no gain for
one group; `three groups`, the boundary for one pair of three. Power: gap1 = 0.2 gap0. `hospital`: rows drawn from the
real hold-out (only where EVENHAND_DATA has it).

The last lines combine 5 splits of one sample (a third of the rows test) at a nominal 10 %. Several candidates, a search
that chooses for each margin, more groups and several utilities are in improvability_several.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    Rows,
    SplitTest,
    bootstrap_values,
    combine_splits,
    get_utility,
    random_splits,
)
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEASURED = ("stats/improvability",)

ALPHA = 0.05
SIZES = (500, 2_000)
DELTAS = (0.0, 0.25, 0.725)
RESAMPLES = 199
SHARES = {2: (0.7, 0.3), 3: (0.5, 0.3, 0.2)}
SELECTED, BOTH = 0.10, 1 / 3
CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))


@dataclass(frozen=True)
class Case:
    """One line: a population, a margin and a sample size."""

    name: str
    kind: str
    n: int
    delta: float
    gap0: float
    gap1: float
    groups: int = 2
    gain: tuple[float, float] | None = None
    null: bool = True

    def targets(self) -> FloatArray:
        """Return (G, 2) the groups' values; from first to last group they rise by gap0, and by gap1 for the candidate.

        With gains, the candidate's values are the status quo's values plus the gains.
        """
        place = np.linspace(0.0, 1.0, self.groups)
        old = 5.0 + self.gap0 * place
        new = 8.0 + self.gap1 * place if self.gain is None else old + np.array(self.gain)
        return np.column_stack([old, new])


def outcomes(kind: str, size: int, rng: Generator) -> FloatArray:
    """Return outcomes with mean 0 and standard deviation 1; counts stay on a grid."""
    if kind == "exponential":
        return rng.exponential(1.0, size) - 1.0
    if kind == "counts":  # negative binomial: mean 1.5, variance 3
        return np.asarray((rng.negative_binomial(1.5, 0.5, size) - 1.5) / np.sqrt(3.0), dtype=np.float64)
    return rng.standard_normal(size)


def draw(case: Case, n: int, rng: Generator) -> Rows:
    """Return n random rows: groups, selections by both algorithms, and outcomes shifted to the case's values."""
    if case.kind == "hospital":
        return draw_hospital(case, n, rng)
    group = rng.choice(case.groups, size=n, p=SHARES[case.groups])
    place = rng.random(n)
    only = SELECTED * (1 - BOTH)
    old = place < SELECTED
    new = (place >= only) & (place < only + SELECTED)
    return shifted(case.targets(), group, outcomes(case.kind, n, rng), old, new)


def shifted(targets: FloatArray, group: IntArray, y: FloatArray, old: BoolArray, new: BoolArray) -> Rows:
    """Return rows whose population values under both algorithms are the targets."""
    terms = np.zeros((group.size, 1, 2, 2))
    for t, chosen in enumerate((old, new)):
        terms[:, 0, t, 1] = chosen
        terms[:, 0, t, 0] = np.where(chosen, y + targets[group, t], 0.0)
    return Rows(group, terms, tuple("abc"[: len(targets)]), ("calibration",))


@cache
def hospital() -> tuple[IntArray, FloatArray, BoolArray, BoolArray, FloatArray]:
    """Return the hold-out as a population: group (1 is Black), illnesses, both decisions, and values."""
    from evenhand.datasets import load_hospital
    from evenhand.stats.improvability import select_top

    table = load_hospital("holdout", backend="polars")
    group = (table["race"] == "Black").to_numpy().astype(np.int64)
    y = table["gagne_sum_t"].to_numpy().astype(np.float64)
    rng = np.random.default_rng(0)
    old, new = (select_top(table[name].to_numpy(), 0.03, rng).selected for name in ("risk_score_t", "gagne_sum_t_hat"))
    values = np.array([[y[chosen & (group == g)].mean() for chosen in (old, new)] for g in (0, 1)])
    return group, y, old, new, values


def draw_hospital(case: Case, n: int, rng: Generator) -> Rows:
    """Return random rows of the hold-out, with the candidate's values shifted to the gap of the null."""
    group, y, old, new, values = hospital()
    at = rng.integers(group.size, size=n)
    targets = values.copy()
    targets[1, 1] = values[0, 1] + (1 - case.delta) * (values[1, 0] - values[0, 0])
    return shifted(targets - values, group[at], y[at], old[at], new[at])


def training_pair(case: Case, rng: Generator) -> Pair:
    """Return the status quo's worst pair on 2 n training rows, drawing only the selected rows."""
    if case.kind == "hospital":
        return status_quo_pair(draw_hospital(case, 2 * case.n, rng))
    shares = np.array(SHARES[case.groups]) * SELECTED
    sizes = rng.multinomial(2 * case.n, [*shares, 1.0 - shares.sum()])[:-1]
    means = [outcomes(case.kind, max(int(size), 1), rng).mean() for size in sizes]
    return pair_of(case.targets()[:, 0] + np.array(means))


def status_quo_pair(rows: Rows) -> Pair:
    """Return the status quo's worst pair on these rows."""
    return pair_of(rows.values()[:-1, 0, 0])


def pair_of(values: FloatArray) -> Pair:
    """Return the pair of the groups with the highest and the lowest value."""
    return Pair(int(np.argmax(values)), int(np.argmin(values)))


def simulate(samples: int, rng: Generator, *, case: Case) -> list[bool] | tuple[list[bool], list[bool]]:
    """Return whether the signed test rejects in each sample, and for two groups the published test."""
    signed, published = [], []
    for _ in range(samples):
        pair = training_pair(case, rng)
        draws = bootstrap_values(draw(case, case.n, rng), resamples=RESAMPLES, rng=rng, method="rows", threads=1)
        found = SplitTest(draws=draws, criteria=CRITERIA, worst=[pair]).components(fairness=case.delta)
        signed.append(found.p <= ALPHA + 1e-9)
        if case.groups == 2:
            squared = SplitTest(draws=draws, criteria=CRITERIA, worst=[pair], fairness_test="published").fairness_p(
                0, np.array([case.delta])
            )
            published.append(max(*found.accuracy, squared[0]) <= ALPHA + 1e-9)
    return (signed, published) if case.groups == 2 else signed


def error_of_gap(n: int, groups: int = 2) -> float:
    """Return the standard error of the status quo's gap between the first and the last group."""
    shares = SHARES[groups]
    return float(np.sqrt(sum(1.0 / (SELECTED * share * n) for share in (shares[0], shares[-1]))))


def cases(sizes: Sequence[int]) -> list[Case]:
    """Return the cases to simulate."""
    plan = []
    for n in sizes:
        near = 3.5 * error_of_gap(n)
        for delta in DELTAS:
            keep = 1.0 - delta
            plan += [
                Case("boundary", kind, n, delta, near, keep * near) for kind in ("normal", "exponential", "counts")
            ]
            plan += [Case("reversed", "normal", n, delta, near, -keep * near)]
            plan += [Case("fixed", "normal", n, delta, -0.8, -keep * 0.8)]
        plan += [Case("no gaps", "normal", n, delta, 0.0, 0.0) for delta in (0.0, 0.5)]
        wide = 8.0 * error_of_gap(n)  # closed by the candidate, so that only the gain of 0 is left to find
        plan += [Case("accuracy", kind, n, 0.0, wide, 0.0, gain=(wide, 0.0)) for kind in ("normal", "exponential")]
        far = 3.5 * error_of_gap(n, 3)
        plan += [Case("three groups", "normal", n, d, far, (1 - d) * far, groups=3) for d in (0.0, 0.5)]
        plan += [Case("power", "normal", n, delta, near, 0.2 * near, null=False) for delta in (0.0, 0.25, 0.5)]
    if (Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / "obermeyer").is_dir():
        plan += [Case("hospital", "hospital", 10_000, delta, 0.0, 0.0) for delta in (0.0, 0.5, 0.9)]
    return plan


def combine(samples: int, rng: Generator, *, null: bool) -> list[Line]:
    """Return the lines of the combination rules: 5 splits of 3,000 rows with a fixed candidate."""
    near = 3.5 * error_of_gap(1_000)
    case = Case("combined", "normal", 1_000, 0.0, near, near if null else 0.0, null=null)
    p = np.empty((5, samples))
    for sample in range(samples):
        rows = draw(case, 3 * case.n, rng)
        for k, split in enumerate(random_splits(len(rows), 5, 2 / 3, rng)):
            train, test = (Rows(rows.group[at], rows.terms[at], rows.names, rows.utilities) for at in split)
            draws = bootstrap_values(test, resamples=RESAMPLES, rng=rng, method="rows", threads=1)
            p[k, sample] = SplitTest(draws=draws, criteria=CRITERIA, worst=[status_quo_pair(train)]).components().p
    median, exchangeable = (combine_splits(p, 0.10, rule).rejected for rule in ("median", "exchangeable"))
    line = Line(
        what="improvability, 5 splits: exchangeable rule",
        population=f"3,000 rows, {'at the boundary of the null' if null else 'the candidate has no gap'}",
        kind="test" if null else "power",
        nominal=0.10 if null else None,
    )
    return [line.seen(exchangeable).held_against({"the first split alone": p[0] <= 0.10, "median rule": median})]


def promises(book: Book) -> None:
    """Declare the lines of single splits, and of the rules that combine five splits."""
    for case in cases(SIZES):
        book.measure(
            "improvability, one split",
            f"{case.name}, {case.kind} outcome, {case.n:,} test rows, delta {case.delta:g}",
            partial(simulate, case=case),
            kind="test" if case.null else "power",
            nominal=ALPHA if case.null else None,
            samples=150 if case.kind != "hospital" else 60,
            oracle="published test" if case.groups == 2 else "",
        )
    for null in (True, False):
        book.several(f"five splits, {'null' if null else 'power'}", partial(combine, null=null), samples=200)
