"""Level of the gap's test and of its joint band at nominal 5 %: `python benchmarks/reliability_level.py [--quick]`.

Group labels are shuffled within folds, so that no gap is real, and the whole inference is run again: mistakes,
bootstrap over people, test of the gap averaged over levels, joint (sup-t) band. `test` and `band` are the shares of
relabellings in which the test rejects, and in which the band leaves out 0 at some level. Beside them what not to use:
`pointwise`, the share in which some level's own 95 % limits leave out 0; and `0.9`, `0.8`, the shares in which one
group is lower at nine or eight of ten levels or more, the criterion "always or mostly lower" of the published study.

The people and models are fixed, as in the study. `numbers` says whether levels share random numbers, and how many
replicates are averaged. Two standard errors of a share of 5 % are 0.031 for 200 relabellings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from _reliability_data import experiment, fitted, linear, people

from evenhand.stats.noise import Experiment, replicate_seeds
from evenhand.stats.reliability import Gap, bootstrap_people, gap_of, share_lower
from evenhand.stats.types import FloatArray

# numba imports `coverage` where it finds one, and would find the benchmark of that name beside this file.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]

SETTINGS = ("raez-2024/all/1", "raez-2024/all/10", "raez-2024-text/all/1")
STATISTICS = ("kappa", "pabak", "icc_a1")
RESAMPLES = 500


def relabelled(trial: Experiment, rng: np.random.Generator) -> Experiment:
    """Return the experiment with groups shuffled within folds."""
    folds, groups = np.asarray(trial.folds), trial.groups.copy()
    for fold in np.unique(folds):
        own = np.flatnonzero(folds == fold)
        groups[own] = rng.permutation(groups[own])
    return replace(trial, groups=groups)


def called(gap: Gap) -> list[bool]:
    """Return whether each criterion calls a gap."""
    lower = float(share_lower(gap.value))
    return [
        gap.p_value < 0.05,
        *(bool(((band.low > 0) | (band.high < 0)).any()) for band in (gap.simultaneous, gap.pointwise)),
        lower <= 0.1 or lower >= 0.9,
        lower <= 0.2 or lower >= 0.8,
    ]


def shares_called(trial: Experiment, replicates: int, relabellings: int) -> FloatArray:
    """Return (statistics, 5) the shares of relabellings in which each criterion calls a gap that is not there."""
    found = np.zeros((relabellings, len(STATISTICS), 5))
    for number in range(relabellings):
        rng = np.random.default_rng([number, replicates])
        other = relabelled(trial, rng)
        seeds = replicate_seeds(replicates, rng)
        draws = bootstrap_people(other, seeds, STATISTICS, resamples=RESAMPLES, rng=rng, threads=2)
        found[number] = [called(gap_of(draws.gap(name, 1, 0))) for name in STATISTICS]
    return np.asarray(found.mean(axis=0))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    from sklearn.linear_model import LogisticRegression

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few relabellings: a look, not a measurement")
    parser.add_argument("--relabellings", type=int, default=200)
    parser.add_argument("--setting", choices=SETTINGS, help="one setting only")
    options = parser.parse_args(argv)
    relabellings = 10 if options.quick else options.relabellings
    start, crowd = perf_counter(), people()
    models = tuple(linear(model) for model in fitted(crowd, LogisticRegression(solver="newton-cholesky", tol=1e-12)))
    heads = ("test", "band", "pointwise", "0.9", "0.8")
    print(f"{len(crowd.features):,} people ({crowd.source})")
    print(f"{'setting':22}{'numbers':12}{'statistic':10}" + "".join(f"{head:>11}" for head in heads))
    for setting in [options.setting] if options.setting else SETTINGS:
        for common, replicates in ((True, 8), (False, 1)):
            shares = shares_called(experiment(crowd, models, setting, common=common), replicates, relabellings)
            kind = f"{'common' if common else 'fresh'}, {replicates}"
            for name, row in zip(STATISTICS, shares, strict=True):
                print(f"{setting:22}{kind:12}{name:10}" + "".join(f"{share:11.3f}" for share in row), flush=True)
    noise = 2 * np.sqrt(0.0475 / relabellings)
    took = perf_counter() - start
    print(f"{relabellings} relabellings a line in {took:.0f} s; two standard errors of 5 %: {noise:.3f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
