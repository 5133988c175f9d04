"""Level and power of the improvability test in one pass.

Columns: n rows are drawn, 10 % are selected by the status quo and 10 % (`wide`: 90 %, against 5 %) by the candidate, a
third of them by both; values of groups are set exactly and accuracy is clearly better for both groups, so that fairness
decides. Nulls: gap1 = (1 - delta) gap0, with gap0 of 0, 1 or 3.5 standard errors or of the other sign. Beside the
calibrated test is the test with known direction.

Fitted: eight steps after a fifth of the rows. `ranked`: features are independent of the group, and the outcome is
higher in one group by a constant, so any ranking by features leaves the gap unchanged. `noise`: purely random labels,
decided by nearest neighbour or by a tree; the status quo is right equally often in one group (accuracy is at the
boundary) and less often in the other. Beside it is five-fold cross-fitting, whose level requires a stable rule. Nearest
neighbour is the least stable rule: two rows that are each other's neighbour count twice.

Power: beside it are five splits combined by the exchangeable rule. The median rule's is printed by
improvability_level.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    Rows,
    Split,
    SplitTest,
    Utility,
    bootstrap_values,
    combine_splits,
    forward_splits,
    get_utility,
    make_rows,
    random_splits,
)
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEASURED = ("stats/improvability", "stats/multiplicity.py")

RESAMPLES = 399
SHARE = 0.3
CALIBRATION, RIGHT = get_utility("calibration"), get_utility("classification")
LOOSE = Criteria(CALIBRATION, (CALIBRATION,))
Found = tuple[BoolArray, BoolArray]
Learner = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


# Columns --------------------------------------------------------------------------------------------------------------


def gap_error(n: int, selected: float) -> float:
    """Return the standard error of the gap between two groups with this selected share."""
    return float(np.sqrt(1 / (selected * SHARE * n) + 1 / (selected * (1 - SHARE) * n)))


def draw(n: int, gaps: tuple[float, float], shares: tuple[float, float], skewed: bool, rng: Generator) -> Rows:
    """Return random rows of two groups with these gaps under the status quo and the candidate."""
    group = (rng.random(n) < SHARE).astype(np.int64)
    y = rng.exponential(1.0, n) - 1.0 if skewed else rng.standard_normal(n)
    place, terms = rng.random(n), np.zeros((n, 1, 2, 2))
    for side, (gap, share, level) in enumerate(zip(gaps, shares, (5.0, 9.0), strict=True)):
        start = 0.0 if side == 0 else shares[0] * 2 / 3 * (shares[1] <= 0.5)
        chosen = (place >= start) & (place < start + share)
        terms[:, 0, side, 1] = chosen
        terms[:, 0, side, 0] = np.where(chosen, y + level + gap * group, 0.0)
    return Rows(group, terms, ("a", "b"), ("calibration",))


def column(
    samples: int,
    rng: Generator,
    *,
    n: int,
    alpha: float,
    errors: float,
    delta: float = 0.0,
    sign: float = 1.0,
    wide: bool = False,
    skewed: bool = False,
) -> Found:
    """Return whether a true null is rejected by the calibrated test, and by the test with known direction."""
    shares = (0.05, 0.9) if wide else (0.1, 0.1)
    gap = errors * gap_error(n, shares[0])
    p = np.empty((samples, 2))
    for at in range(samples):
        rows = draw(n, (gap, sign * (1 - delta) * gap), shares, skewed, rng)
        draws = bootstrap_values(rows, resamples=RESAMPLES, rng=rng, method="rows", threads=1)
        tests = (
            SplitTest(draws=draws, criteria=LOOSE, worst=[Pair(1, 0)], direction=way) for way in ("either", "named")
        )
        p[at] = [test.components(fairness=delta).p for test in tests]
    return p[:, 0] <= alpha, p[:, 1] <= alpha


def groups(samples: int, rng: Generator, *, n: int, number: int, alpha: float) -> BoolArray:
    """Return whether fairness is claimed with more than two groups at the boundary."""
    place, found = np.linspace(0.0, 1.0, number), np.empty(samples)
    gap = 3.5 * np.sqrt(2 * number / (0.1 * n))
    for at in range(samples):
        group, chosen = rng.integers(number, size=n), rng.random((n, 2)) < 0.1
        y, terms = rng.standard_normal(n), np.zeros((n, 1, 2, 2))
        for side, level in enumerate((5.0, 9.0)):
            terms[:, 0, side, 1] = chosen[:, side]
            terms[:, 0, side, 0] = np.where(chosen[:, side], y + level + gap * place[group], 0.0)
        rows = Rows(group, terms, tuple("abcde"[:number]), ("calibration",))
        draws = bootstrap_values(rows, resamples=999, rng=rng, method="rows", threads=1)
        found[at] = (
            SplitTest(draws=draws, criteria=LOOSE, worst=[Pair(number - 1, 0)], direction="either").components().p
        )
    return found <= alpha


# Fitted candidates ----------------------------------------------------------------------------------------------------


def least_squares(x: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Return predictions of a linear regression."""
    design = np.column_stack([np.ones(len(x)), x])
    return np.asarray(np.column_stack([np.ones(len(new)), new]) @ np.linalg.lstsq(design, y, rcond=None)[0])


def neighbour(x: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Return the outcome of the nearest row."""
    from scipy.spatial import cKDTree

    return np.asarray(y[cKDTree(x).query(new)[1]], dtype=np.float64)


def tree(x: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Return the predictions of a deep regression tree."""
    from sklearn.tree import DecisionTreeRegressor

    return np.asarray(DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(x, y).predict(new))


LEARNERS: dict[str, Learner] = {"linear": least_squares, "nearest neighbour": neighbour, "deep tree": tree}


def top(score: FloatArray, rng: Generator) -> FloatArray:
    """Return a 0/1 selection of the highest tenth of the scores, with random ties."""
    order = np.lexsort((rng.random(score.size), score))
    chosen = np.zeros(score.size)
    chosen[order[-round(0.1 * score.size) :]] = 1.0
    return chosen


def in_steps(
    x: FloatArray, y: FloatArray, learner: Learner, ranked: bool, splits: Sequence[Split], rng: Generator
) -> tuple[FloatArray, IntArray]:
    """Return each row's decision by its split's candidate, and the number of the split (-1 for none)."""
    decision, part = np.zeros(len(y)), np.full(len(y), -1)
    for number, split in enumerate(splits):
        score = learner(x[split.train], y[split.train], x[split.test])
        decision[split.test] = top(score, rng) if ranked else score > 0.5
        part[split.test] = number
    return decision, part


def folds(n: int, rng: Generator) -> tuple[Split, ...]:
    """Return five random cross-validation folds."""
    fold = rng.permutation(n) % 5
    return tuple(Split(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5))


def ranked_data(n: int, rng: Generator) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return data under a null: group, features, outcome, and a status quo that selects at random."""
    group, x = (rng.random(n) < SHARE).astype(np.int64), rng.standard_normal((n, 3))
    y = 10.0 + x[:, 0] + 0.5 * x[:, 1] + 3.5 * gap_error(n, 0.1) * 1.5 * group + rng.standard_normal(n)
    return group, x, y, top(rng.random(n), rng)


def noise_data(n: int, rng: Generator) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return data under a null of accuracy: random labels; the status quo is right in 1/2 or 1/5 of a group's rows."""
    group, x, y = rng.integers(2, size=n), rng.standard_normal((n, 2)), rng.integers(2, size=n).astype(np.float64)
    right = rng.random(n) < np.where(group == 1, 0.2, 0.5)
    return group, x, y, np.where(right, y, 1 - y)


def better_data(n: int, rng: Generator) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return data on which a linear rule is better than the status quo, whose score is noisier for one group."""
    group, x = rng.integers(2, size=n), rng.standard_normal((n, 3))
    score = 0.4 * (x[:, 0] + x[:, 1]) + np.where(group == 1, 0.7, 1.2) * rng.standard_normal(n)
    return group, x, x[:, 0] + x[:, 1] + rng.standard_normal(n), top(score, rng)


def p_fitted(
    data: tuple[IntArray, FloatArray, FloatArray, FloatArray],
    learner: Learner,
    utility: Utility,
    splits: Sequence[Split],
    rng: Generator,
) -> tuple[float, float]:
    """Return the p-values with the splits' candidates: calibrated, and with the fairness p-value doubled."""
    group, x, y, old = data
    new, part = in_steps(x, y, learner, utility is CALIBRATION, splits, rng)
    at = np.flatnonzero(part >= 0)
    rows = make_rows(group[at], y[at], old[at], new[at], utilities=[utility], names=("a", "b"))
    draws = bootstrap_values(rows, resamples=RESAMPLES, rng=rng, threads=1, part=part[at])
    criteria = Criteria(utility, (utility,))
    either = SplitTest(draws=draws, criteria=criteria, worst=[Pair(1, 0)], direction="either").components().p
    both = [SplitTest(draws=draws, criteria=criteria, worst=[pair]).components() for pair in (Pair(1, 0), Pair(0, 1))]
    doubled = max(both[0].accuracy.max(), 2 * min(test.fairness[0] for test in both))
    return either, float(doubled)


def fitted(samples: int, rng: Generator, *, n: int, data: str, learner: str, alpha: float) -> Found:
    """Return whether a true null is rejected: in steps, and by cross-fitting with the smaller p-value doubled."""
    make, utility = (noise_data, RIGHT) if data == "noise" else (ranked_data, CALIBRATION)
    p = np.empty((samples, 2))
    for at in range(samples):
        drawn, rule = make(n, rng), LEARNERS[learner]
        p[at, 0] = p_fitted(drawn, rule, utility, forward_splits(n, 0.2, 8, rng), rng)[0]
        p[at, 1] = p_fitted(drawn, rule, utility, folds(n, rng), rng)[1]
    return p[:, 0] <= alpha, p[:, 1] <= alpha


# Power ----------------------------------------------------------------------------------------------------------------


def split_p(rows: Callable[[IntArray, IntArray], tuple[Rows, Pair]], n: int, rng: Generator) -> FloatArray:
    """Return the p-values of five splits; `rows` returns the test rows and the pair from the training rows."""
    p = []
    for split in random_splits(n, 5, 2 / 3, rng):
        tested, pair = rows(split.train, split.test)
        draws = bootstrap_values(tested, resamples=RESAMPLES, rng=rng, threads=1)
        p.append(SplitTest(draws=draws, criteria=LOOSE, worst=[pair]).components().p)
    return np.array(p)


def pair_of(values: FloatArray) -> Pair:
    """Return the pair of the groups with the higher and the lower value."""
    return Pair(int(np.argmax(values)), int(np.argmin(values)))


def column_power(samples: int, rng: Generator, *, n: int) -> Found:
    """Return whether an improvement is detected: on all rows, and by five splits."""
    found = np.empty((samples, 2), dtype=np.bool_)
    for at in range(samples):
        rows = draw(n, (0.5, 0.05), (0.1, 0.1), False, rng)
        draws = bootstrap_values(rows, resamples=RESAMPLES, rng=rng, method="rows", threads=1)
        p = SplitTest(draws=draws, criteria=LOOSE, worst=[Pair(1, 0)], direction="either").components().p

        def parts(train: IntArray, test: IntArray, rows: Rows = rows) -> tuple[Rows, Pair]:
            seen, tested = (Rows(rows.group[at], rows.terms[at], rows.names, rows.utilities) for at in (train, test))
            return tested, pair_of(seen.values()[:-1, 0, 0])

        found[at] = p <= 0.1, combine_splits(split_p(parts, n, rng), 0.1).rejected
    return found[:, 0], found[:, 1]


def fitted_power(samples: int, rng: Generator, *, n: int, learner: str) -> Found:
    """Return whether an improvement is detected: in steps, and by five splits."""
    found = np.empty((samples, 2), dtype=np.bool_)
    for at in range(samples):
        drawn, rule = better_data(n, rng), LEARNERS[learner]
        p = p_fitted(drawn, rule, CALIBRATION, forward_splits(n, 0.2, 8, rng), rng)[0]
        parts = partial(_split_parts, drawn, rule, rng)
        found[at] = p <= 0.1, combine_splits(split_p(parts, n, rng), 0.1).rejected
    return found[:, 0], found[:, 1]


def _split_parts(
    data: tuple[IntArray, FloatArray, FloatArray, FloatArray],
    learner: Learner,
    rng: Generator,
    train: IntArray,
    test: IntArray,
) -> tuple[Rows, Pair]:
    """Return the test rows of a split, and the pair from its training rows."""
    group, x, y, old = data
    new = top(learner(x[train], y[train], x[test]), rng)
    means = [y[train][(group[train] == k) & (old[train] == 1)].mean() for k in (0, 1)]
    return make_rows(group[test], y[test], old[test], new, utilities=[CALIBRATION], names=("a", "b")), pair_of(
        np.array(means)
    )


def promises(book: Book) -> None:
    """Declare the lines of columns and fitted candidates."""
    nulls: dict[str, dict[str, Any]] = {
        "no gaps": {"errors": 0.0},
        "no gaps, wide candidate": {"errors": 0.0, "wide": True},
        "gap of 1 se kept, wide candidate": {"errors": 1.0, "wide": True},
        "gap of 2 se kept, wide candidate": {"errors": 2.0, "wide": True},
        "gap of 1 se kept": {"errors": 1.0},
        "gap of 3.5 se kept": {"errors": 3.5},
        "gap of 3.5 se reversed": {"errors": 3.5, "sign": -1.0},
        "gap of 3.5 se halved, margin 0.5": {"errors": 3.5, "delta": 0.5},
        "gap of 3.5 se kept, exponential": {"errors": 3.5, "skewed": True},
        "gap of 1 se kept, wide, exponential": {"errors": 1.0, "wide": True, "skewed": True},
    }
    hard = ("gap of 1 se kept, wide candidate", "gap of 3.5 se kept", "gap of 3.5 se kept, exponential")
    plan = [(name, 1_000, 0.10) for name in nulls]
    plan += [(name, n, alpha) for name in hard for n, alpha in ((1_000, 0.05), (4_000, 0.10))]
    for name, n, alpha in plan:
        book.measure(
            "improvability of a column",
            f"{name}; n = {n:,}; alpha {alpha:g}",
            partial(column, n=n, alpha=alpha, **nulls[name]),
            nominal=alpha,
            samples=1_000,
            guard=80 if (name, n, alpha) == (hard[0], 1_000, 0.1) else 0,
            kind="test",
            oracle="direction known",
        )
    for number in (3, 5):
        book.measure(
            "improvability of a column",
            f"{number} groups, gap kept; n = 4,000; alpha 0.1",
            partial(groups, n=4_000, number=number, alpha=0.1),
            nominal=0.1,
            samples=400,
            kind="test",
        )
    rules = [("ranked", learner) for learner in LEARNERS] + [("noise", "nearest neighbour"), ("noise", "deep tree")]
    for data, learner in rules:
        for n, alpha in ((500, 0.10), (500, 0.05), (2_000, 0.10)):
            book.measure(
                "improvability of a fitted candidate",
                f"{data}; {learner}; n = {n:,}; alpha {alpha:g}",
                partial(fitted, n=n, data=data, learner=learner, alpha=alpha),
                nominal=alpha,
                samples=500,
                guard=40 if (data, learner, n, alpha) == ("ranked", "linear", 500, 0.1) else 0,
                kind="test",
                oracle="cross-fitting",
            )
    for n in (1_000, 2_000, 4_000):
        book.measure(
            "improvability of a column",
            f"gap 0.5 to 0.05 sd; n = {n:,}; alpha 0.1",
            partial(column_power, n=n),
            kind="power",
            samples=200,
            oracle="5 splits, exchangeable",
        )
        book.measure(
            "improvability of a fitted candidate",
            f"a linear rule that helps; n = {n:,}; alpha 0.1",
            partial(fitted_power, n=n, learner="linear"),
            kind="power",
            samples=200,
            oracle="5 splits, exchangeable",
        )
