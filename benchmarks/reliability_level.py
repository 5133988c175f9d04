"""Level of the gap's test and of its joint band at nominal 5 %: `python benchmarks/reliability_level.py [--quick]`.

In the first table group labels are shuffled within folds, so that no gap is real, and the whole inference is run again:
mistakes, bootstrap over people, test of the gap averaged over levels, joint (sup-t) band. `test` and `band` are the
shares of relabellings in which the test rejects, and in which the band leaves out 0 at some level. Beside them what not
to use: `pointwise`, the share in which some level's own 95 % limits leave out 0; and `0.9`, `0.8`, the shares in which
one group is lower at nine or eight of ten levels or more, the criterion "always or mostly lower" of the study. The
people and models are fixed, as in the study. `numbers` says whether levels share random numbers, and how many
replicates are averaged. Two standard errors of a share of 5 % are 0.031 for 200 relabellings.

The second table is of small groups: `people` drawn at random are held against 300 others, without folds or in five.
`defined` is the share of draws in which the statistic has an interval, the shares after it are of those. `normal` is
what the test would reject without the corrections for few people: no sqrt(m / (m - 1)), no least standard error, a
normal quantile. `verdict`
says whether the audit gives one, with so many people in a fold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from _reliability_data import BINARY, MINIMA, NUMERIC, People, experiment, fitted, linear, people

from evenhand.audits.reliability.evidence import LEAST_PEOPLE, least_in_a_fold
from evenhand.stats.noise import Experiment, Linear, published_noise, replicate_seeds
from evenhand.stats.reliability import Gap, PeopleDraws, bootstrap_people, gap_of, share_lower
from evenhand.stats.types import FloatArray

SETTINGS = ("raez-2024/all/1", "raez-2024/all/10", "raez-2024-text/all/1")
STATISTICS = ("kappa", "pabak", "icc_a1")
RESAMPLES = 500
SMALL, OTHERS, FOLDS = (15, 20, 50, 100), 300, (1, 5)
SMALL_SETTINGS, SMALL_STATISTICS = SETTINGS[:2], ("kappa", "pabak", "icc_a1", "icc_spread")
SMALL_LEVELS = np.array([0.01, 0.1, 0.3])
SMALL_REPLICATES, SMALL_RESAMPLES = 20, 200


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
        found[number] = [called(tested(draws, name)) for name in STATISTICS]
    return np.asarray(found.mean(axis=0))


def tested(draws: PeopleDraws, name: str) -> Gap:
    """Return the gap as the audit tests it."""
    levels, least = draws.levels[draws.levels > 0], draws.pooled_stderr(name, 1, 0)
    return gap_of(draws.gap(name, 1, 0), freedom=draws.freedom(name, 1, 0), levels=levels, least_stderr=least)


def uncorrected(draws: PeopleDraws, name: str) -> bool:
    """Tell whether the plain bootstrap's z test rejects: its variance of m people is (m - 1) / m of ours."""
    variance = (draws.variances[name] * (draws.sizes - 1) / draws.sizes).sum()
    estimate = float(draws.gap(name, 1, 0).estimate[-1])
    return bool(abs(estimate) > 1.959964 * np.sqrt(variance))


def small_groups(
    crowd: People, models: tuple[Linear, ...], setting: str, size: int, folds: int, draws: int
) -> FloatArray:
    """Return (draws, statistics, 4) whether a gap that is not there has an interval, and is called by each way."""
    noise = published_noise(setting)
    items = noise.items(NUMERIC, BINARY, MINIMA)
    fold = np.concatenate([np.arange(size) % folds, np.arange(OTHERS) % folds])
    group = np.repeat([1, 0], [size, OTHERS])
    found = np.zeros((draws, len(SMALL_STATISTICS), 4))
    for number in range(draws):
        rng = np.random.default_rng([number, size, folds])
        own = rng.choice(len(crowd.features), size + OTHERS, replace=False)
        trial = Experiment(crowd.features[own], models[:folds], items, group, fold, SMALL_LEVELS, noise.shares)
        seeds = replicate_seeds(SMALL_REPLICATES, rng)
        drawn = bootstrap_people(trial, seeds, SMALL_STATISTICS, resamples=SMALL_RESAMPLES, rng=rng, threads=1)
        for place, name in enumerate(SMALL_STATISTICS):
            gap = tested(drawn, name)
            found[number, place] = [np.isfinite(gap.p_value), uncorrected(drawn, name), *called(gap)[:2]]
    return found


def print_small(
    crowd: People, models: tuple[Linear, ...], settings: Sequence[str], sizes: Sequence[int], draws: int
) -> None:
    """Print the table of small groups."""
    heads = ("defined", "normal", "test", "band")
    first = f"{'setting':22}{'people':>7}{'in a fold':>10}  {'statistic':11}"
    print(f"\n{first}" + "".join(f"{head:>9}" for head in heads) + "  verdict")
    for setting in settings:
        for size in sizes:
            for folds in FOLDS:
                found = small_groups(crowd, models, setting, size, folds, draws)
                for place, name in enumerate(SMALL_STATISTICS):
                    known = found[:, place, 0] > 0
                    shares = found[known, place, 1:].mean(axis=0) if known.any() else np.full(3, np.nan)
                    given = size >= LEAST_PEOPLE and (folds == 1 or size // folds >= least_in_a_fold(name))
                    line = f"{setting:22}{size:7}{size // folds:10}  {name:11}{known.mean():9.2f}"
                    print(
                        line + "".join(f"{share:9.3f}" for share in shares) + ("  yes" if given else "  no"), flush=True
                    )
    print(f"{draws} draws a line; two standard errors of 5 %: {2 * np.sqrt(0.0475 / draws):.3f}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    from sklearn.linear_model import LogisticRegression

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few relabellings: a look, not a measurement")
    parser.add_argument("--relabellings", type=int, default=200)
    parser.add_argument("--setting", choices=SETTINGS, help="one setting only")
    parser.add_argument("--only", choices=("published", "small"), help="one table only")
    parser.add_argument("--people", type=int, choices=SMALL, help="one size of small groups only")
    options = parser.parse_args(argv)
    relabellings = 10 if options.quick else options.relabellings
    start, crowd = perf_counter(), people()
    models = tuple(linear(model) for model in fitted(crowd, LogisticRegression(solver="newton-cholesky", tol=1e-12)))
    settings = [options.setting] if options.setting else list(SETTINGS)
    print(f"{len(crowd.features):,} people ({crowd.source})")
    if options.only != "small":
        print_published(crowd, models, settings, relabellings)
    if options.only != "published":
        own = [setting for setting in settings if setting in SMALL_SETTINGS]
        print_small(crowd, models, own, [options.people] if options.people else SMALL, relabellings)
    print(f"{perf_counter() - start:.0f} s")
    return 0


def print_published(crowd: People, models: tuple[Linear, ...], settings: Sequence[str], relabellings: int) -> None:
    """Print the table of the study's people."""
    heads = ("test", "band", "pointwise", "0.9", "0.8")
    print(f"{'setting':22}{'numbers':12}{'statistic':10}" + "".join(f"{head:>11}" for head in heads))
    for setting in settings:
        for common, replicates in ((True, 8), (False, 1)):
            shares = shares_called(experiment(crowd, models, setting, common=common), replicates, relabellings)
            kind = f"{'common' if common else 'fresh'}, {replicates}"
            for name, row in zip(STATISTICS, shares, strict=True):
                print(f"{setting:22}{kind:12}{name:10}" + "".join(f"{share:11.3f}" for share in row), flush=True)
    print(f"{relabellings} relabellings a line; two standard errors of 5 %: {2 * np.sqrt(0.0475 / relabellings):.3f}.")


if __name__ == "__main__":
    sys.exit(main())
