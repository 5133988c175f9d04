"""Level of the gap's test and of its joint band at nominal 5 %.

First, group labels are shuffled within folds, so that no gap is real, and the whole inference is repeated: mistakes,
bootstrap over people, permutation test of the gap averaged over levels, joint (sup-t) band. Lines report the share of
relabellings in which the test rejects, and in which the band excludes 0 at some level. Beside them are invalid
criteria: `pointwise`, where any level's own 95 % limits exclude 0; and `nine of ten`, where one group is lower at nine
of ten levels or more, the criterion "always or mostly lower" of the study. The people and models are fixed, as in the
study: the COMPAS data if EVENHAND_DATA contains it, otherwise synthetic people of the same shape.

Second, small groups: randomly drawn people are compared with 300 others, without folds or in five folds, where the
audit returns a verdict. Shares are of the draws in which the statistic has an interval. `plain` is the test without the
corrections for few people: no sqrt(m / (m - 1)), no smallest standard error, a normal quantile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from benchmarks.coverage._lines import Book, Line
from benchmarks.reliability_data import BINARY, MINIMA, NUMERIC, People, experiment, fitted, linear, people
from evenhand.audits.reliability.evidence import LEAST_PEOPLE, least_in_a_fold
from evenhand.stats.noise import Experiment, Linear, published_noise, replicate_seeds, simulate
from evenhand.stats.reliability import (
    MEANS,
    GapOverLevels,
    PeopleDraws,
    bootstrap_people,
    compare_people,
    derivatives_of,
    gap_of,
    people_values,
    share_lower,
)
from evenhand.stats.types import BoolArray

MEASURED = ("stats/reliability", "stats/noise", "audits/reliability/evidence.py")

SETTINGS = ("raez-2024/all/1", "raez-2024/all/10", "raez-2024-text/all/1")
STATISTICS = ("kappa", "pabak", "icc_a1")
RESAMPLES = 200
OTHERS = 300
SMALL_STATISTICS = ("kappa", "pabak", "icc_a1", "icc_spread")
SMALL_LEVELS = np.array([0.01, 0.1, 0.3])
SMALL_REPLICATES, SMALL_RESAMPLES = 10, 100


def relabelled(trial: Experiment, rng: Generator) -> Experiment:
    """Return the experiment with groups shuffled within folds."""
    folds, groups = np.asarray(trial.folds), trial.groups.copy()
    for fold in np.unique(folds):
        own = np.flatnonzero(folds == fold)
        groups[own] = rng.permutation(groups[own])
    return replace(trial, groups=groups)


def called(p_value: float, gap: GapOverLevels) -> list[bool]:
    """Return whether each criterion calls a gap."""
    lower = float(share_lower(gap.value))
    return [
        p_value < 0.05,
        *(bool(((band.low > 0) | (band.high < 0)).any()) for band in (gap.simultaneous, gap.pointwise)),
        lower <= 0.1 or lower >= 0.9,
        lower <= 0.2 or lower >= 0.8,
    ]


@cache
def crowd() -> tuple[People, tuple[Linear, ...]]:
    """Return the people, and the fitted model of each fold."""
    from sklearn.linear_model import LogisticRegression

    found = people()
    return found, tuple(
        linear(model) for model in fitted(found, LogisticRegression(solver="newton-cholesky", tol=1e-12))
    )


def relabellings(samples: int, rng: Generator, *, setting: str, common: bool, replicates: int) -> list[Line]:
    """Return the lines of the test and of the band for each statistic under random relabelling."""
    trial = experiment(*crowd(), setting, common=common)
    found = np.zeros((samples, len(STATISTICS), 5), dtype=np.bool_)
    for number in range(samples):
        other, seeds = relabelled(trial, rng), replicate_seeds(replicates, rng)
        draws = bootstrap_people(other, seeds, STATISTICS, resamples=RESAMPLES, rng=rng, threads=1)
        found[number] = [called(*both) for both in tested(other, seeds, draws, STATISTICS)]
    numbers = f"{'common' if common else 'fresh'} random numbers, {replicates} replicates"
    who = f"{len(crowd()[0].features):,} people ({crowd()[0].source}), {setting}, {numbers}"
    lines = []
    for place, name in enumerate(STATISTICS):
        test, band, pointwise, nine, _ = found[:, place].T
        line = Line(what=f"{name}: mean gap", population=who, kind="test", nominal=0.05)
        lines.append(line.seen(test))
        apart = {"pointwise": pointwise, "nine of ten levels": nine}
        lines.append(replace(line, what=f"{name}: band of the gap leaves out 0").seen(band).held_against(apart))
    return lines


def tested(
    trial: Experiment, seeds: Sequence[SeedSequence], draws: PeopleDraws, names: Sequence[str]
) -> Iterator[tuple[float, GapOverLevels]]:
    """Yield each gap's p-value and its bands, as in the audit."""
    ratios = [name for name in names if name not in MEANS]
    runs = simulate(trial, seeds, derivatives=derivatives_of(ratios), threads=1)
    influence, in_first = iter(runs.influence), trial.base.cell % 2 == 1
    for name in names:
        values = people_values(trial, runs, name, None if name in MEANS else next(influence))
        if not np.isfinite(values).all():
            yield np.nan, gap_of(draws.gap(name, 1, 0))
            continue
        found = compare_people(values, trial.base.fold, in_first)
        levels, freedom = draws.levels[draws.levels > 0], draws.freedom(name, 1, 0)
        limits = found.limits(0.95)
        yield found.p_value, gap_of(draws.gap(name, 1, 0), freedom=freedom, levels=levels, mean_limits=limits)


def uncorrected(draws: PeopleDraws, name: str) -> bool:
    """Return whether the plain bootstrap's z test rejects; its variance of m people is (m - 1) / m of ours."""
    variance = (draws.variances[name] * (draws.sizes - 1) / draws.sizes).sum()
    estimate = float(draws.gap(name, 1, 0).estimate[-1])
    return bool(abs(estimate) > 1.959964 * np.sqrt(variance))


def small_groups(samples: int, rng: Generator, *, setting: str, size: int, folds: int) -> list[Line]:
    """Return the lines of the test and of the band for a small group with a verdict in the audit."""
    everybody, models = crowd()
    noise = published_noise(setting)
    items = noise.items(NUMERIC, BINARY, MINIMA)
    fold = np.concatenate([np.arange(size) % folds, np.arange(OTHERS) % folds])
    group = np.repeat([1, 0], [size, OTHERS])
    found = np.zeros((samples, len(SMALL_STATISTICS), 4), dtype=np.bool_)
    for number in range(samples):
        own = rng.choice(len(everybody.features), size + OTHERS, replace=False)
        trial = Experiment(
            features=everybody.features[own],
            predictors=models[:folds],
            items=items,
            groups=group,
            folds=fold,
            levels=SMALL_LEVELS,
            shares=noise.shares,
        )
        seeds = replicate_seeds(SMALL_REPLICATES, rng)
        drawn = bootstrap_people(trial, seeds, SMALL_STATISTICS, resamples=SMALL_RESAMPLES, rng=rng, threads=1)
        for place, (p_value, gap) in enumerate(tested(trial, seeds, drawn, SMALL_STATISTICS)):
            plain = uncorrected(drawn, SMALL_STATISTICS[place])
            found[number, place] = [np.isfinite(p_value), plain, *called(p_value, gap)[:2]]
    who = f"{size} people against {OTHERS}, {'no folds' if folds == 1 else f'{folds} folds'}, {setting}"
    return [line for place, name in enumerate(SMALL_STATISTICS) for line in _small_lines(name, who, found[:, place])]


def _small_lines(name: str, who: str, found: BoolArray) -> list[Line]:
    known, plain, test, band = found.T
    line = Line(what=f"{name}: mean gap", population=who, kind="test", nominal=0.05)
    banded = replace(line, what=f"{name}: band of the gap leaves out 0")
    return [line.seen(test[known]).held_against({"plain": plain[known]}), banded.seen(band[known])]


def promises(book: Book) -> None:
    """Declare the lines of relabellings, and of small groups tested by the audit."""
    for setting in SETTINGS:
        for common, replicates in ((True, 8), (False, 1)):
            where: dict[str, Any] = {"setting": setting, "common": common, "replicates": replicates}
            name = f"relabelled, {setting}, {'common' if common else 'fresh'}"
            book.several(name, partial(relabellings, **where), samples=120)
    for setting in SETTINGS[:2]:
        for size, folds in ((50, 1), (100, 1), (100, 5)):
            if size < LEAST_PEOPLE or (folds > 1 and size // folds < max(map(least_in_a_fold, SMALL_STATISTICS))):
                continue  # the audit gives no verdict
            where = {"setting": setting, "size": size, "folds": folds}
            book.several(f"small, {setting}, {size}, {folds} folds", partial(small_groups, **where), samples=100)
