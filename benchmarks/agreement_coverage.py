"""Coverage of the intervals of the agreement audit: `python benchmarks/agreement_coverage.py [--quick]`.

Two raters say yes or no about people of one population; kappa is 0.6, and yes is usual (one half) or rare (15 %). Of
each statistic: how often the 95 % interval of a group holds the truth (BCa bootstrap), and how often that of the gap
between two such groups holds 0 (normal, from the bootstrap's standard errors). A sample in which a statistic has no
interval (nobody differs, or nobody is rated yes) counts as a miss.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from evenhand.stats.agreement import BinaryCounts
from evenhand.stats.bootstrap import CellMoments, Draws, resample
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.types import FloatArray

# numba imports `coverage` where it finds one, and would find the benchmark of that name beside this file.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]

STATISTICS = ("kappa", "pabak", "ac1", "alpha")
KAPPA = 0.6
RESAMPLES = 500


def statistics(counts: FloatArray, sums: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return the statistics (..., 4) of counts (..., 4)."""
    found = BinaryCounts(*np.moveaxis(counts, -1, 0))
    return np.stack([found.kappa(), found.pabak(), found.ac1(), found.alpha()], axis=-1)


def chances(share: float) -> FloatArray:
    """Return the chances of (yes, yes), (no, yes), (yes, no) and (no, no) of raters who say yes equally often."""
    both = share**2 + KAPPA * share * (1 - share)
    return np.array([both, share - both, share - both, 1 - 2 * share + both])


def coverage(people: int, share: float, samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return the coverage of the intervals of a group and of a gap, for each statistic."""
    truth = statistics(chances(share) * 1e9, np.zeros(0))
    own, gap = np.zeros(len(STATISTICS)), np.zeros(len(STATISTICS))
    for _ in range(samples):
        drawn = [
            resample(CellMoments.from_counts(rng.multinomial(people, chances(share))), statistics, resamples=RESAMPLES,
                     rng=rng)
            for _ in range(2)
        ]  # fmt: skip
        limits = drawn[0].bca()
        own += (limits.low <= truth + 1e-9) & (truth - 1e-9 <= limits.high)
        difference = Draws(drawn[0].estimate - drawn[1].estimate, drawn[0].values - drawn[1].values)
        gap += np.abs(difference.estimate) <= normal_quantile(0.95) * difference.stderr()
    return own / samples, gap / samples


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    options = parser.parse_args(argv)
    samples = 50 if options.quick else 2_000
    start, rng = perf_counter(), np.random.default_rng(0)
    heads = [f"{name}{of}" for of in ("", " gap") for name in STATISTICS]
    print(f"{'people':>7}{'yes':>6}" + "".join(f"{head:>11}" for head in heads))
    for people in (30, 50, 100, 400):
        for share in (0.5, 0.15):
            own, gap = coverage(people, share, samples, rng)
            print(f"{people:7}{share:6.2f}" + "".join(f"{value:11.3f}" for value in (*own, *gap)), flush=True)
    print(f"{samples} samples a line in {perf_counter() - start:.0f} s; two standard errors: "
          f"{2 * np.sqrt(0.0475 / samples):.3f}.")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
