"""Level and power of the improvability test: `python benchmarks/improvability_level.py [--quick]`.

A line is one population: samples of n test rows are drawn, 10 % are selected by the status quo and 10 % by the
candidate, a third of them by both, and the share of samples with p <= 0.05 is shown for the signed and for the
published fairness test. The pair of groups and its sign come from 2 n training rows of their own. Values of groups are
set exactly; accuracy is clearly better for both groups unless it is the null, so that fairness decides.

Nulls: `boundary`, gap1 = (1 - delta) gap0, with gap0 of 3.5 standard errors at every n (`fixed`: 0.8 standard
deviations of the outcome at every n; `reversed`: gap1 of the other sign); `no gaps`, both 0; `accuracy`, no gain for
one group; `three groups`, the boundary for one pair of three. `power`: gap1 = 0.2 gap0. `hospital`: rows drawn from the
real hold-out (only where EVENHAND_DATA has it).

The second table combines 5 splits of one sample (a third of the rows test) at a nominal 10 %. Several candidates, a
search that chooses for each margin, more groups and several utilities are in improvability_several.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np

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

ALPHA = 0.05
SIZES = (500, 2_000, 10_000)
DELTAS = (0.0, 0.25, 0.5, 0.725, 0.9)
RESAMPLES = 399
SHARES = {2: (0.7, 0.3), 3: (0.5, 0.3, 0.2)}
SELECTED, BOTH = 0.10, 1 / 3
CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))


@dataclass(frozen=True)
class Case:
    """One line: a population, a margin and a size."""

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
        """Return (G, 2) the values: the last group is above the first by gap0, and by gap1 under the candidate.

        Where gains are given, the candidate's values are the status quo's and these instead.
        """
        place = np.linspace(0.0, 1.0, self.groups)
        old = 5.0 + self.gap0 * place
        new = 8.0 + self.gap1 * place if self.gain is None else old + np.array(self.gain)
        return np.column_stack([old, new])


def outcomes(kind: str, size: int, rng: np.random.Generator) -> FloatArray:
    """Return outcomes with mean 0 and standard deviation 1; counts keep to a grid."""
    if kind == "exponential":
        return rng.exponential(1.0, size) - 1.0
    if kind == "counts":  # negative binomial: mean 1.5, variance 3
        return np.asarray((rng.negative_binomial(1.5, 0.5, size) - 1.5) / np.sqrt(3.0), dtype=np.float64)
    return rng.standard_normal(size)


def draw(case: Case, n: int, rng: np.random.Generator) -> Rows:
    """Draw n rows: groups, who is selected by which algorithm, and outcomes shifted to the values of the case."""
    if case.kind == "hospital":
        return draw_hospital(case, n, rng)
    group = rng.choice(case.groups, size=n, p=SHARES[case.groups])
    place = rng.random(n)
    only = SELECTED * (1 - BOTH)
    old = place < SELECTED
    new = (place >= only) & (place < only + SELECTED)
    return shifted(case.targets(), group, outcomes(case.kind, n, rng), old, new)


def shifted(targets: FloatArray, group: IntArray, y: FloatArray, old: BoolArray, new: BoolArray) -> Rows:
    """Return rows whose values under either algorithm are the targets in the population."""
    terms = np.zeros((group.size, 1, 2, 2))
    for t, chosen in enumerate((old, new)):
        terms[:, 0, t, 1] = chosen
        terms[:, 0, t, 0] = np.where(chosen, y + targets[group, t], 0.0)
    return Rows(group, terms, tuple("abc"[: len(targets)]), ("calibration",))


@cache
def hospital() -> tuple[IntArray, FloatArray, BoolArray, BoolArray, FloatArray]:
    """Return the hold-out as a population: group (1 is Black), illnesses, both decisions, and the values."""
    from evenhand.datasets import load_hospital
    from evenhand.stats.improvability import select_top

    table = load_hospital("holdout", backend="polars")
    group = (table["race"] == "Black").to_numpy().astype(np.int64)
    y = table["gagne_sum_t"].to_numpy().astype(np.float64)
    rng = np.random.default_rng(0)
    old, new = (select_top(table[name].to_numpy(), 0.03, rng).selected for name in ("risk_score_t", "gagne_sum_t_hat"))
    values = np.array([[y[chosen & (group == g)].mean() for chosen in (old, new)] for g in (0, 1)])
    return group, y, old, new, values


def draw_hospital(case: Case, n: int, rng: np.random.Generator) -> Rows:
    """Draw rows of the hold-out; the candidate's values are moved so that the gap is that of the null."""
    group, y, old, new, values = hospital()
    at = rng.integers(group.size, size=n)
    targets = values.copy()
    targets[1, 1] = values[0, 1] + (1 - case.delta) * (values[1, 0] - values[0, 0])
    return shifted(targets - values, group[at], y[at], old[at], new[at])


def training_pair(case: Case, rng: np.random.Generator) -> Pair:
    """Return the worst pair of the status quo on 2 n training rows; only those it selects have to be drawn."""
    if case.kind == "hospital":
        return status_quo_pair(draw_hospital(case, 2 * case.n, rng))
    shares = np.array(SHARES[case.groups]) * SELECTED
    sizes = rng.multinomial(2 * case.n, [*shares, 1.0 - shares.sum()])[:-1]
    means = [outcomes(case.kind, max(int(size), 1), rng).mean() for size in sizes]
    return pair_of(case.targets()[:, 0] + np.array(means))


def status_quo_pair(rows: Rows) -> Pair:
    """Return the worst pair of the status quo on given rows."""
    return pair_of(rows.values()[:-1, 0, 0])


def pair_of(values: FloatArray) -> Pair:
    """Return the groups with the highest and the lowest value."""
    return Pair(int(np.argmax(values)), int(np.argmin(values)))


def simulate(task: tuple[Case, int]) -> str:
    """Return the line of one case."""
    case, samples = task
    rng = np.random.default_rng([case.n, int(1000 * case.delta), case.groups, *case.name.encode(), *case.kind.encode()])
    rejected = {"signed": 0, "published": 0}
    for _ in range(samples):
        pair = training_pair(case, rng)
        draws = bootstrap_values(draw(case, case.n, rng), resamples=RESAMPLES, rng=rng, method="rows", threads=1)
        found = SplitTest(draws, CRITERIA, [pair]).components(fairness=case.delta)
        rejected["signed"] += found.p <= ALPHA
        if case.groups == 2:
            squared = SplitTest(draws, CRITERIA, [pair], "published").fairness_p(0, np.array([case.delta]))
            rejected["published"] += max(*found.accuracy, squared[0]) <= ALPHA
    signed, published = (rejected[kind] / samples for kind in ("signed", "published"))
    shown = f"{published:>11.3f}" if case.groups == 2 else f"{'':>11}"
    mark = "null" if case.null else "power"
    return f"{case.name:14}{case.kind:13}{case.n:>7,}{case.delta:>8}{signed:>9.3f}{shown}  {mark}"


def error_of_gap(n: int, groups: int = 2) -> float:
    """Return the standard error of the status quo's gap between the first and the last group."""
    shares = SHARES[groups]
    return float(np.sqrt(sum(1.0 / (SELECTED * share * n) for share in (shares[0], shares[-1]))))


def cases(sizes: Sequence[int]) -> list[Case]:
    """Return what is simulated."""
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
        plan += [Case("power, fixed", "normal", n, delta, 0.8, 0.16, null=False) for delta in (0.0, 0.25, 0.5)]
    if (Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / "obermeyer").is_dir():
        plan += [Case("hospital", "hospital", 10_000, delta, 0.0, 0.0) for delta in DELTAS]
    return plan


def combine(task: tuple[bool, int]) -> str:
    """Return the line of the combination rules: 5 splits of 3,000 rows, a candidate that is given."""
    null, samples = task
    near = 3.5 * error_of_gap(1_000)
    case = Case("combined", "normal", 1_000, 0.0, near, near if null else 0.0, null=null)
    rng = np.random.default_rng([5, int(null)])
    p = np.empty((5, samples))
    for sample in range(samples):
        rows = draw(case, 3 * case.n, rng)
        for k, split in enumerate(random_splits(len(rows), 5, 2 / 3, rng)):
            train, test = (Rows(rows.group[at], rows.terms[at], rows.names, rows.utilities) for at in split)
            draws = bootstrap_values(test, resamples=RESAMPLES, rng=rng, method="rows", threads=1)
            p[k, sample] = SplitTest(draws, CRITERIA, [status_quo_pair(train)]).components().p
    single = float((p[0] <= 0.10).mean())
    rules = [float(combine_splits(p, 0.10, rule).rejected.mean()) for rule in ("median", "exchangeable")]
    return f"{'null (boundary)' if null else 'power (no gap)':18}{single:>13.3f}{rules[0]:>9.3f}{rules[1]:>15.3f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; fail where the signed test's level is above alpha by more than chance allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="populations to simulate, by name; 'combined' for the second table")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of test rows")
    options = parser.parse_args(argv)
    samples = 60 if options.quick else options.samples
    start = perf_counter()
    print(f"{'population':14}{'outcome':13}{'n':>7}{'delta':>8}{'signed':>9}{'published':>11}")
    levels = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        wanted = (case for case in cases(options.sizes) if not options.only or case.name in options.only)
        for line in pool.map(simulate, [(case, samples) for case in wanted]):
            print(line, flush=True)
            if line.endswith("null"):
                levels.append(float(line[42:51]))
        if not options.only or "combined" in options.only:
            print(f"\n{'5 splits, 10 %':18}{'first alone':>13}{'median':>9}{'exchangeable':>15}")
            for line in pool.map(combine, [(True, samples), (False, samples)]):
                print(line, flush=True)
    error = float(np.sqrt(ALPHA * (1 - ALPHA) / samples))
    print(f"{samples:,} samples a line in {perf_counter() - start:.0f} s; two standard errors: {2 * error:.3f}.")
    if not levels:
        return 0
    above = [level for level in levels if level > ALPHA + 2 * error]
    print(
        f"The signed test's level: at most {max(levels):.3f} over {len(levels)} nulls; "
        f"above {ALPHA} + 2 standard errors in {len(above)} (chance alone: about {0.023 * len(levels):.0f})."
    )
    return int(max(levels) > ALPHA + 4 * error)


if __name__ == "__main__":
    sys.exit(main())
