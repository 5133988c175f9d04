"""Recovery of the true weight of trajectory by a study.

Simulated studies of 149 people, half in each condition, 12 pairs each; the weight of trajectory is known. The interval
uses resampled people with t (the default); beside it are the percentiles of the same resamples, clustered standard
errors (delta method), and the published form that treats answers as people (delta method). The test at 5 % asks whether
trajectory and aggregate correlate equally with the overall distance: by people, beside Williams and Meng; with weight
0.5, where they do, this is the level, otherwise the power.

The populations: people alike, people who differ as in the default of `Respondents`, people who differ a lot, and the
null. The true weight is the weight used to simulate the answers; the scale's six points and its ends distort the
answers, so an interval may also miss for this reason.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.stats.correlation import (
    cluster_t,
    contrast,
    meng_z,
    rank_bootstrap,
    spearman_matrix,
    two_sided_p,
    williams_t,
)
from evenhand.stats.draws import Draws
from evenhand.stats.regression import bootstrap_weight, coefficient_bootstrap, delta_weight, ols
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.simulate import Respondents, draw_answers

MEASURED = ("stats/correlation.py", "stats/regression.py", "stats/bootstrap.py", "stats/draws.py", "study/simulate.py")

PEOPLE, RESAMPLES, RANK_RESAMPLES = 149, 400, 200
POPULATIONS = {
    "alike": Respondents(weight=0.6577, heterogeneity=0.0, level=0.0, habit=0.0, careless=0.0),
    "default (income)": Respondents(weight=0.6577, careless=0.0),
    "default (arrests)": Respondents(weight=0.6037, careless=0.0),
    "differ a lot": Respondents(weight=0.6037, heterogeneity=0.3, level=0.5, careless=0.0),
    "null": Respondents(weight=0.5, heterogeneity=0.3, careless=0.0),
}
INTERVALS = ("percentiles", "clustered", "answers as people")
TESTS = ("Williams", "Meng")


def one_study(x: FloatArray, y: FloatArray, who: IntArray, people: int, rng: np.random.Generator) -> list[float]:
    """Return the weight, the limits of its four intervals, and the three p-values."""
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


def lines(studies: int, rng: Generator, *, name: str) -> list[Line]:
    """Return the lines of one population."""
    respondents, people = POPULATIONS[name], PEOPLE // 2
    who = np.repeat(np.arange(people), 12)
    found = []
    for _ in range(studies):
        drawn = draw_answers(respondents, studies=1, people=people, rng=rng)
        x = np.column_stack([drawn.aggregate.ravel(), drawn.trajectory.ravel()])
        found.append(one_study(x, drawn.overall.ravel(), who, people, rng))
    table, truth = np.array(found), respondents.weight
    covers = [(table[:, at] <= truth) & (truth <= table[:, at + 1]) for at in (1, 3, 5, 7)]
    rejects = [table[:, at] < 0.05 for at in (9, 10, 11)]
    about = f"{people} people a condition, weight {truth:g}, {name}"
    null = truth == 0.5
    weight = Line(what="weight of trajectory, 95 %", population=about, kind="interval", nominal=0.95)
    test = Line(
        what="trajectory and aggregate correlate alike",
        population=about,
        kind="test" if null else "power",
        nominal=0.05 if null else None,
    )
    return [
        weight.seen(covers[0]).held_against(dict(zip(INTERVALS, covers[1:], strict=True))),
        test.seen(rejects[0]).held_against(dict(zip(TESTS, rejects[1:], strict=True))),
    ]


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for name in POPULATIONS:
        book.several(name, partial(lines, name=name), samples=600)
