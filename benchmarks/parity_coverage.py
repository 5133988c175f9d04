"""Coverage of every interval at nominal 95 %: `python benchmarks/parity_coverage.py [--quick]`.

Rates are enumerated (exact); the rest is simulated. The interval named is the one the audits use, computed by the
functions that they call; beside it stand others it was chosen over. `none` is the share of samples without an
interval; coverage is among the rest. `basis` is the number of samples; two standard errors are 0.004 at 10,000 and
0.014 at 1,000. Bootstraps beside have 1,000 to 3,000. The last line names the rows outside 93 to 97 %, and why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

import numpy as np
from _coverage_core import HEADER, Effort, Row, outside
from _coverage_means import auc, mean_score, small_ratio, weak_ratio, weighted_mean
from _coverage_overall import drawn_share, overall_auc, overall_mean, overall_rate, overall_weighted
from _coverage_rates import lowest_rate, single_rate, two_rates, two_weighted_rates, weighted_rate
from _coverage_strata import custom_f1, standardised
from _coverage_worst import uneven_means, uneven_rates, worst_areas, worst_means, worst_rates

SIZES = (200, 2_000, 20_000)
RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
BESIDE = (10, 30, 100, 200)  # people of a group that is compared with everybody

Simulation = Callable[[int, float, Effort, np.random.Generator], list[Row]]
Task = tuple[Simulation, int, float, Effort, int]


def tasks(effort: Effort) -> list[Task]:
    """Return every simulation with its own seed, so that the table does not depend on their order."""
    grid = [(size, rate) for size in SIZES for rate in RATES]
    small = [(size, mean) for size in (10, 15, 20) for mean in (0.2, 0.5)]
    worst = [(size, groups) for size in (15, 200) for groups in (2.0, 4.0)]
    over_grid: tuple[Simulation, ...] = (
        single_rate,
        two_rates,
        mean_score,
        auc,
        weighted_rate,
        two_weighted_rates,
        weighted_mean,
    )
    plan: list[tuple[Simulation, int, float]] = [(run, *place) for run in over_grid for place in grid]
    plan += [(small_ratio, *place) for place in small]
    plan += [(weak_ratio, size, mean) for size, mean in ((10, 0.05), (10, 0.1), (30, 0.02))]
    plan += [(run, *place) for run in (worst_means, worst_rates) for place in worst]
    # At the end, so that the rows above keep their seeds. Thirty groups at a rate of 0.02 are written 30.02.
    plan += [(lowest_rate, size, 0.5) for size in (10, 30, 200)]
    plan += [(uneven_rates, *place) for place in ((12, 10.02), (20, 30.02), (10, 5.02), (10, 5.2))]
    plan += [(uneven_means, *place) for place in ((12, 0.05), (12, 0.2), (30, 0.05))]
    plan += [(worst_areas, *place) for place in ((100, 0.1), (200, 0.3))]
    plan += [(overall_rate, size, rate) for size in BESIDE for rate in RATES]
    plan += [(overall_mean, size, mean) for size in BESIDE for mean in (0.05, 0.2, 0.5)]
    plan += [(overall_weighted, size, rate) for size in BESIDE for rate in (0.05, 0.2, 0.5)]
    plan += [(overall_auc, *place) for place in ((30, 0.33), (100, 0.3), (200, 0.3))]
    plan += [(drawn_share, *place) for place in ((1_000, 0.1), (1_000, 0.5))]
    plan += [(standardised, size, rate) for size in (150, 600) for rate in (0.05, 0.2, 0.5)]
    plan += [(custom_f1, size, 0.3) for size in (50, 200, 1_000)]
    plan += [(uneven_means, *place) for place in ((100, 0.02), (100, 0.05))]
    return [(*step, effort, seed) for seed, step in enumerate(plan)]


def perform(task: Task) -> list[Row]:
    """Run one simulation."""
    run, size, at, effort, seed = task
    with np.errstate(all="ignore"):
        return run(size, at, effort, np.random.default_rng(seed))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    effort = Effort(400, 60, 500, 2_000_000) if options.quick else Effort()
    start = perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        found = pool.map(perform, tasks(effort))
        rows = [row for part in found for row in part]
    print(HEADER, *rows, sep="\n")
    print(f"{len(rows)} rows in {perf_counter() - start:.0f} s; two standard errors: 0.004 at 10,000 samples.")
    print(outside(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
