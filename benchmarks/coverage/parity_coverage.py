"""Coverage of every parity interval at nominal 95 %.

Rates are enumerated (exact); other metrics are simulated. The named interval is the one used by the audits, computed by
their functions; beside it are alternatives, and the share of samples without an interval if there are any. Coverage is
among samples with an interval. Intervals of rates and means are approximate: the goal is 93 to 97 %, and a line states
the reason if less is promised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from benchmarks.coverage._parity.core import Effort, Row
from benchmarks.coverage._parity.functions import rate_function, rate_function_near_1
from benchmarks.coverage._parity.means import auc, mean_score, weighted_mean
from benchmarks.coverage._parity.overall import drawn_share, overall_auc, overall_rate, overall_weighted
from benchmarks.coverage._parity.rates import lowest_rate, single_rate, two_rates, two_weighted_rates, weighted_rate
from benchmarks.coverage._parity.strata import custom_f1, standardised, weighted_f1
from benchmarks.coverage._parity.worst import uneven_rates, worst_areas, worst_rates

MEASURED = (
    "audits/parity/estimate.py",
    "audits/parity/gaps.py",
    "audits/parity/pairs.py",
    "stats/two_rates",
    "stats/intervals.py",
    "stats/worst_pair.py",
    "stats/auc.py",
)

SIZES = (200, 2_000)
RATES = (0.02, 0.1, 0.5)
BESIDE = (10, 100)  # people of a group that is compared with everybody

Simulation = Callable[[int, float, Effort, Generator], list[Row]]


def tasks() -> list[tuple[Simulation, int, float]]:
    """Return every simulation with its number of people and its second argument."""
    grid = [(size, rate) for size in SIZES for rate in RATES]
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
    plan += [(worst_rates, *place) for place in worst]
    # Thirty groups at a rate of 0.02 are written 30.02.
    plan += [(lowest_rate, size, 0.5) for size in (10, 30, 200)]
    plan += [(uneven_rates, *place) for place in ((12, 10.02), (20, 30.02), (10, 5.02), (10, 5.2))]
    plan += [(worst_areas, *place) for place in ((100, 0.1), (200, 0.3))]
    plan += [(overall_rate, size, rate) for size in BESIDE for rate in RATES]
    plan += [(overall_weighted, size, rate) for size in BESIDE for rate in (0.05, 0.2, 0.5)]
    plan += [(overall_auc, *place) for place in ((30, 0.33), (100, 0.3), (200, 0.3))]
    plan += [(drawn_share, *place) for place in ((1_000, 0.1), (1_000, 0.5))]
    plan += [(standardised, size, rate) for size in (150, 600) for rate in (0.05, 0.2, 0.5)]
    plan += [(run, size, 0.3) for run in (custom_f1, weighted_f1) for size in (50, 200, 1_000)]
    plan += [(rate_function, size, 0.3) for size in (50, 200, 1_000)]
    plan += [(rate_function_near_1, size, 0.1) for size in (100, 400, 2_000)]
    return plan


def lines(samples: int, rng: Generator, *, task: tuple[Simulation, int, float]) -> list[Line]:
    """Return the lines of one simulation."""
    simulate, size, at = task
    with np.errstate(all="ignore"):
        return [row.line() for row in simulate(size, at, Effort(samples), rng) if row.none < 1]


def promises(book: Book) -> None:
    """Declare the lines of all simulations."""
    for task in tasks():
        guard = 200 if task == (rate_function, 200, 0.3) else 0
        name = f"{task[0].__name__}, {task[1]}, {task[2]:g}"
        book.several(name, partial(lines, task=task), samples=1_000, guard=guard)
