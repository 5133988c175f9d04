"""Does a study find the weight it should? `python benchmarks/study_recovery.py [--quick]`.

Simulated studies of 149 people, half in each condition, 12 pairs each; the weight of trajectory is known. `bias` is the
mean error of the weight, `covers` the share of 95 % intervals that hold it: resampled people with t (the default), the
percentiles of the same resamples, clustered standard errors (delta method), and the published form that takes answers
for people (delta method). The last three columns test at 5 % whether trajectory and aggregate correlate alike with the
overall distance: by people, Williams and Meng. Where the truth is that they do (weight 0.5), this is the level.

The populations: people alike, people who differ as in the default of `Respondents`, people who differ a lot, and the
null. The truth is the weight the answers were made with; the scale's six points and its ends bend the answers, so the
bias holds that too. Two standard errors of a share are 0.010 at 2,000 studies.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

import numpy as np

from evenhand.stats.bootstrap import Draws
from evenhand.stats.correlation import (
    cluster_t,
    contrast,
    meng_z,
    rank_bootstrap,
    spearman_matrix,
    two_sided_p,
    williams_t,
)
from evenhand.stats.regression import bootstrap_weight, coefficient_bootstrap, delta_weight, ols
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.simulate import Respondents, draw_answers

PEOPLE, RESAMPLES, RANK_RESAMPLES = 149, 1_000, 400
POPULATIONS = {
    "alike": Respondents(weight=0.6577, heterogeneity=0.0, level=0.0, habit=0.0, careless=0.0),
    "default (income)": Respondents(weight=0.6577, careless=0.0),
    "default (arrests)": Respondents(weight=0.6037, careless=0.0),
    "differ a lot": Respondents(weight=0.6037, heterogeneity=0.3, level=0.5, careless=0.0),
    "null": Respondents(weight=0.5, heterogeneity=0.3, careless=0.0),
}
Task = tuple[str, int, int]


def one_study(x: FloatArray, y: FloatArray, who: IntArray, people: int, rng: np.random.Generator) -> list[float]:
    """Return the weight, the limits of its four intervals and the three p-values."""
    fit = ols(x, y, ("aggregate", "trajectory"), who)
    draws = coefficient_bootstrap(x, y, who, resamples=RESAMPLES, rng=rng)
    by_t = bootstrap_weight(draws, people, trajectory=2, aggregate=1)
    ratio = draws.values[:, 2] / (draws.values[:, 1] + draws.values[:, 2])
    low, high = Draws(np.array([by_t.value]), ratio[:, np.newaxis]).percentile()
    limits = [by_t.low, by_t.high, float(low[0]), float(high[0])]
    for inference in ("cluster", "classical"):
        delta = delta_weight(fit, inference=inference)
        limits += [delta.low, delta.high]
    columns = np.column_stack([x, y])
    between, aggregate, trajectory = spearman_matrix(columns)[np.triu_indices(3, 1)]
    ranks = rank_bootstrap(columns, who, resamples=RANK_RESAMPLES, rng=rng)
    p = [
        float(cluster_t(contrast(ranks, 2, 1), people).p_value[0]),
        float(two_sided_p(williams_t(trajectory, aggregate, between, len(y)), len(y) - 3)),
        float(two_sided_p(meng_z(trajectory, aggregate, between, len(y)))),
    ]
    return [by_t.value, *limits, *p]


def simulate(task: Task) -> str:
    """Return the line of one population."""
    name, studies, seed = task
    respondents = POPULATIONS[name]
    people = PEOPLE // 2
    rng = np.random.default_rng([seed, len(name)])
    who = np.repeat(np.arange(people), 12)
    found = []
    for _ in range(studies):
        drawn = draw_answers(respondents, studies=1, people=people, rng=rng)
        x = np.column_stack([drawn.aggregate.ravel(), drawn.trajectory.ravel()])
        found.append(one_study(x, drawn.overall.ravel(), who, people, rng))
    table = np.array(found)
    truth = respondents.weight
    covers = [((table[:, at] <= truth) & (truth <= table[:, at + 1])).mean() for at in (1, 3, 5, 7)]
    rejected = (table[:, 9:] < 0.05).mean(axis=0)
    numbers = "".join(f"{share:>9.3f}" for share in (*covers, *rejected))
    return f"{name:19}{truth:>8.4f}{table[:, 0].mean() - truth:>+9.4f}{table[:, 0].std():>8.4f}{numbers}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few studies: a look, not a measurement")
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    studies = 60 if options.quick else options.studies
    start = perf_counter()
    heads = ("people t", "percent.", "cluster", "rows", "people", "Williams", "Meng")
    print(f"{'':44}{'covers':>9}{'':27}{'rejects':>9}")
    print(f"{'respondents':19}{'weight':>8}{'bias':>9}{'sd':>8}{''.join(f'{head:>9}' for head in heads)}")
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for line in pool.map(simulate, [(name, studies, 0) for name in POPULATIONS]):
            print(line, flush=True)
    noise = 2 * np.sqrt(0.0475 / studies)
    print(
        f"{studies:,} studies of {PEOPLE} people ({PEOPLE // 2} a condition) a line in {perf_counter() - start:.0f} s; "
        f"two standard errors of a coverage: {noise:.3f}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
