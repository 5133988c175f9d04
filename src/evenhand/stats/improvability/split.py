"""Test on one split of whether the candidate is more accurate and fairer, and decisions from several splits.

The null is that A_1g <= (1 + D_g) A_0g for some group g, or abs(gap_1) >= (1 - D_f) abs(gap_0). A component tests each
of these inequalities, and the null is rejected if all components reject: p is the largest of their p-values
(intersection-union).

Reference: E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the fairness-improvability of
algorithms, section 3. (It prints hypothesis (3) as "is an improvement"; the null is that it is not.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, require_at_least, require_choice, require_share
from evenhand.stats.improvability import resampling
from evenhand.stats.improvability.resampling import Contrast, ValueDraws
from evenhand.stats.improvability.rows import CANDIDATE, STATUS_QUO, Pair
from evenhand.stats.improvability.utilities import Utility
from evenhand.stats.multiplicity import calibrated_p
from evenhand.stats.types import BoolArray, FloatArray, IntArray

FairnessTest = Literal["signed", "published"]
FAIRNESS_TESTS: tuple[FairnessTest, ...] = ("signed", "published")
AccuracyOf = Literal["groups", "everyone"]
ACCURACY_OF: tuple[AccuracyOf, ...] = ("groups", "everyone")
Goal = Literal["fairness", "joint_accuracy"] | int
"""What a margin applies to: fairness, accuracy of all groups, or accuracy of one group (its number)."""
Direction = Literal["named", "either"]
DIRECTIONS: tuple[Direction, ...] = ("named", "either")
Rule = Literal["median", "exchangeable"]
RULES: tuple[Rule, ...] = ("median", "exchangeable")


@dataclass(frozen=True)
class Criteria:
    """The utilities that must improve: one of accuracy, and one or more of fairness.

    Attributes
    ----------
    accuracy
        The utility of accuracy.
    fairness
        The utilities of fairness; the candidate must be fairer by each of them.
    accuracy_of
        Whether accuracy must improve for each group ("groups") or over all rows together ("everyone").

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility
    >>> calibration = get_utility("calibration")
    >>> criteria = Criteria(calibration, (calibration, get_utility("false_positive_rate")))
    >>> [utility.name for utility in criteria.utilities], criteria.fairness_index
    (['calibration', 'false_positive_rate'], (0, 1))
    """

    accuracy: Utility
    fairness: tuple[Utility, ...]
    accuracy_of: AccuracyOf = "groups"

    def __post_init__(self) -> None:
        require_choice("accuracy_of", self.accuracy_of, ACCURACY_OF)
        if not self.fairness:
            raise ConfigError("`fairness` must name at least one utility.")

    @property
    def utilities(self) -> tuple[Utility, ...]:
        """The distinct utilities: the accuracy utility first, then the fairness utilities."""
        return tuple(dict.fromkeys((self.accuracy, *self.fairness)))

    @property
    def fairness_index(self) -> tuple[int, ...]:
        """The index of each fairness utility in `utilities`."""
        return tuple(self.utilities.index(utility) for utility in self.fairness)


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitTest:
    """The components of the test on one set of rows, for any margins, from one set of draws.

    The signed fairness test (the default): with (high, low) the status quo's worst pair of groups, named beforehand
    or *by other rows*, abs(gap_1) >= (1 - delta) abs(gap_0) is the union over ordered pairs (g, h) of (1 - delta)
    (F_0high - F_0low) - (F_1g - F_1h) <= 0. Each is smooth in means; p is the largest of their p-values. At large
    delta it hardly ever rejects, because it must then show that two values are equal within a small margin, which
    takes many rows. If no pair is named, every pair is tested in both directions (`calibrated_p`), and the smallest
    p-value is multiplied by the number of pairs.

    The published test: T = (F_1r - F_1b)² - (1 - delta)² (F_0r - F_0b)². Squares of gaps near 0 are far from normal,
    and for delta > 0 it rejects true nulls too often; its p-value may even fall as delta grows. It requires two groups.

    Attributes
    ----------
    draws
        The values of the split's test rows and of their resamples, in the order of `criteria.utilities`.
    criteria
        The utilities that must improve.
    worst
        For each fairness utility the status quo's worst pair (`worst_pair`), from other rows or named beforehand. If
        `direction` is "either", it is used for planning only.
    fairness_test
        "signed" or "published".
    studentised
        Whether to divide errors by their standard errors (draws must hold their spread). Not for "published".
    direction
        The assumption about the status quo's gap: "named" takes the pair and its sign from `worst`; "either" assumes
        nothing.

    Examples
    --------
    >>> from evenhand.stats.improvability import bootstrap_values, get_utility, make_rows
    >>> rng = np.random.default_rng(0)
    >>> group, y = np.arange(2000) % 2, rng.integers(0, 2, 2000)
    >>> old = np.where(rng.random(2000) < 0.55 + 0.3 * group, y, 1 - y)
    >>> new = np.where(rng.random(2000) < 0.90, y, 1 - y)
    >>> right = get_utility("classification")
    >>> draws = bootstrap_values(make_rows(group, y, old, new, [right], names="ab"), rng=rng)
    >>> test = SplitTest(draws=draws, criteria=Criteria(right, (right,)), worst=[Pair(1, 0)])
    >>> test.components().p < 0.05, float(test.curve("fairness", [0.0, 0.5, 0.999])[-1]) > 0.1
    (True, True)
    """

    draws: ValueDraws
    criteria: Criteria
    worst: Sequence[Pair]
    fairness_test: FairnessTest = "signed"
    studentised: bool = False
    direction: Direction = "named"

    def __post_init__(self) -> None:
        require_choice("fairness_test", self.fairness_test, FAIRNESS_TESTS)
        require_choice("direction", self.direction, DIRECTIONS)
        if len(self.worst) != len(self.criteria.fairness):
            raise ConfigError(
                "`worst` must hold one pair of groups for each fairness utility, {wanted} here; got {given}.",
                wanted=len(self.criteria.fairness),
                given=len(self.worst),
            )
        if self.fairness_test == "published" and self.draws.groups > 2:
            raise ConfigError(
                "the published fairness test compares two groups; here are {groups}. Use `fairness_test = "
                "'signed'`, which compares every pair.",
                groups=self.draws.groups,
            )

    def components(self, accuracy: ArrayLike = 0.0, fairness: float = 0.0) -> Components:
        """Return the p-values of the components at the chosen margins.

        Parameters
        ----------
        accuracy
            Margins D_g: the share by which accuracy must improve, one number for all groups or one per group.
        fairness
            Margin D_f: the share by which the gap must shrink.
        """
        margins = np.broadcast_to(np.asarray(accuracy, dtype=np.float64), (len(self.accuracy_contrasts),))
        accuracy_p = [self.accuracy_p(a, margins[a : a + 1])[0] for a in range(margins.size)]
        gaps = [self.fairness_p(f, np.array([fairness]))[0] for f in range(len(self.worst))]
        return Components(np.array(accuracy_p), np.array(gaps))

    def curve(self, goal: Goal, deltas: ArrayLike) -> FloatArray:
        """Return (D,) the p-value at each margin of fairness, of joint accuracy, or of one group's accuracy.

        Parameters
        ----------
        goal
            "fairness" for (0, .., 0, delta), "joint_accuracy" for (delta, .., delta, 0), or a group's number for delta
            on its accuracy alone.
        deltas
            (D,) the margins.
        """
        grid = np.asarray(deltas, dtype=np.float64)
        zero = np.zeros(1)
        groups = range(len(self.accuracy_contrasts))
        with_margin = set(groups) if goal == "joint_accuracy" else {goal}
        if goal not in ("fairness", "joint_accuracy") and goal not in groups:
            raise ConfigError(
                "`goal` must be 'fairness', 'joint_accuracy' or a group from 0 to {groups}; got {goal!r}.",
                groups=groups[-1],
                goal=goal,
            )
        accuracy_p = [self.accuracy_p(a, grid if a in with_margin else zero) for a in groups]
        gaps = [self.fairness_p(f, grid if goal == "fairness" else zero) for f in range(len(self.worst))]
        return np.asarray(np.max(np.stack([np.broadcast_to(p, grid.shape) for p in (*accuracy_p, *gaps)]), axis=0))

    @cached_property
    def accuracy_contrasts(self) -> tuple[Contrast, ...]:
        """The contrasts of accuracy: one for each group, or one for all rows.

        Each is A_1 - x A_0 with x = 1 + D if higher is better, otherwise x A_0 - A_1 with x = 1 - D.
        """
        groups = self.draws.groups
        sign = 1.0 if self.criteria.accuracy.better == "higher" else -1.0
        contrasts = []
        for g in [groups] if self.criteria.accuracy_of == "everyone" else range(groups):
            constant, slope = np.zeros((2, groups + 1, 2))
            constant[g, CANDIDATE], slope[g, STATUS_QUO] = sign, -sign
            contrasts.append(Contrast(0, constant, slope))
        return tuple(contrasts)

    @cached_property
    def fairness_contrasts(self) -> tuple[tuple[Contrast, ...], ...]:
        """For each fairness utility, the contrasts x (F_0high - F_0low) - (F_1g - F_1h) of all ordered pairs (g, h)."""
        return tuple(
            self._contrasts(utility, pair)
            for utility, pair in zip(self.criteria.fairness_index, self.worst, strict=True)
        )

    def _contrasts(self, utility: int, pair: Pair) -> tuple[Contrast, ...]:
        """Return the contrasts of one utility for one pair of groups under the status quo."""
        groups = self.draws.groups
        slope = np.zeros((groups + 1, 2))
        slope[pair.high, STATUS_QUO], slope[pair.low, STATUS_QUO] = 1.0, -1.0
        contrasts = []
        for g, h in permutations(range(groups), 2):
            constant = np.zeros((groups + 1, 2))
            constant[g, CANDIDATE], constant[h, CANDIDATE] = -1.0, 1.0
            contrasts.append(Contrast(utility, constant, slope))
        return tuple(contrasts)

    def accuracy_p(self, number: int, deltas: FloatArray) -> FloatArray:
        """Return (D,) the p-values of one accuracy component: a group's number, or 0 for all rows."""
        contrast = self.accuracy_contrasts[number]
        higher = self.criteria.accuracy.better == "higher"
        slope = contrast.parts(self.draws.estimate)[1]
        old = float(-slope if higher else slope)
        if (deltas > 0).any() and old < 0:
            raise ConfigError(
                "the status quo's value of {name} is negative ({old:g}), so an improvement by a share of it "
                "means nothing; test with a margin of 0, or shift the utility.",
                name=self.criteria.accuracy.name,
                old=old,
            )
        return self._p(contrast, 1.0 + deltas if higher else 1.0 - deltas)

    def fairness_p(self, number: int, deltas: FloatArray) -> FloatArray:
        """Return (D,) the p-values of one fairness utility's component."""
        if self.fairness_test == "published":
            first = self.fairness_contrasts[number][0]
            status_quo = Contrast(first.utility, first.slope, np.zeros_like(first.slope))
            return resampling.squared_p_values(self.draws, status_quo, first, 1.0 - deltas)
        if self.direction == "named":
            return self._largest_p(self.fairness_contrasts[number], 1.0 - deltas)
        utility = self.criteria.fairness_index[number]
        pairs = [
            self._either_p(utility, Pair(h, k), 1.0 - deltas) for h, k in combinations(range(self.draws.groups), 2)
        ]
        return np.asarray(np.minimum(1.0, len(pairs) * np.min(pairs, axis=0)))

    def _either_p(self, utility: int, pair: Pair, x: FloatArray) -> FloatArray:
        """Return (D,) the p-values for one pair of groups, allowing either sign of the status quo's gap."""
        both = [self._contrasts(utility, direction) for direction in (pair, Pair(pair.low, pair.high))]
        smaller = np.min([self._largest_p(contrasts, x) for contrasts in both], axis=0)
        rho = np.max([resampling.parts_correlation(self.draws, contrast, x) for contrast in both[0]], axis=0)
        return calibrated_p(smaller, rho)

    def _largest_p(self, contrasts: Sequence[Contrast], x: FloatArray) -> FloatArray:
        return np.asarray(np.max([self._p(contrast, x) for contrast in contrasts], axis=0))

    def _p(self, contrast: Contrast, x: FloatArray) -> FloatArray:
        return (resampling.studentised_p_values if self.studentised else resampling.p_values)(self.draws, contrast, x)


@dataclass(frozen=True, eq=False)
class Components:
    """The p-values of the components of one test.

    Attributes
    ----------
    accuracy
        (A,) the p-values of accuracy: one for each group, or one for all rows.
    fairness
        (F,) the p-values of fairness: one for each fairness utility.

    Examples
    --------
    >>> Components(np.array([0.01, 0.02]), np.array([0.03])).p
    0.03
    """

    accuracy: FloatArray
    fairness: FloatArray

    @property
    def p(self) -> float:
        """The p-value of the test: the largest p-value of its components."""
        return float(max(self.accuracy.max(), self.fairness.max()))


def largest_delta(deltas: ArrayLike, rejected: ArrayLike) -> float:
    """Return the largest delta up to which the null is rejected without a break from 0; nan if not rejected at 0.

    Rejections beyond the first break are ignored, so the result is a one-sided confidence bound of the possible
    improvement on the status quo.

    Parameters
    ----------
    deltas
        (D,) margins, rising from 0.
    rejected
        (D,) whether the null is rejected at each margin.

    Examples
    --------
    >>> largest_delta([0.0, 0.1, 0.2, 0.3], [True, True, False, True])
    0.1
    >>> largest_delta([0.0, 0.1], [False, True])
    nan
    """
    grid = np.asarray(deltas, dtype=np.float64)
    passed: BoolArray = np.asarray(rejected, dtype=np.bool_)
    if grid.shape != passed.shape or grid.size == 0 or grid[0] != 0 or not np.all(np.diff(grid) > 0):
        raise ConfigError("`deltas` must rise from 0, with one decision for each.")
    run = grid.size if passed.all() else int(np.argmin(passed))
    return float(grid[run - 1]) if run else float("nan")


class Split(NamedTuple):
    """The rows for choosing the candidate, and the rows for testing it."""

    train: IntArray
    test: IntArray


def random_splits(rows: int, splits: int, train: float, rng: Generator) -> tuple[Split, ...]:
    """Return independent random splits in a fixed order, with floor(train * rows) training rows each.

    Examples
    --------
    >>> [split.train.size for split in random_splits(100, 2, 2 / 3, np.random.default_rng(0))]
    [66, 66]
    """
    require_at_least("splits", splits, 1)
    require_share("train", train)
    size = int(np.floor(train * rows + 1e-9))
    if not 0 < size < rows:
        raise ConfigError(
            "{rows} rows cannot be split with a training share of {train:g}: one part is empty.", rows=rows, train=train
        )
    drawn = (rng.permutation(rows) for _ in range(splits))
    return tuple(Split(np.sort(order[:size]), np.sort(order[size:])) for order in drawn)


def forward_splits(rows: int, start: float, steps: int, rng: Generator) -> tuple[Split, ...]:
    """Return steps through the rows in random order; each step tests the next rows and trains on all earlier rows.

    No row is tested twice, and no candidate is trained on its own test rows. Sums over the steps are therefore
    martingales, and their errors add up as for fixed candidates.

    Parameters
    ----------
    rows
        The number of rows.
    start
        The share of rows that only train.
    steps
        The number of steps, of equal size.
    rng
        Source of the order.

    Examples
    --------
    >>> [(split.train.size, split.test.size) for split in forward_splits(100, 0.2, 4, np.random.default_rng(0))]
    [(20, 20), (40, 20), (60, 20), (80, 20)]
    """
    require_at_least("steps", steps, 1)
    require_share("start", start)
    edges = np.round(np.linspace(start, 1.0, steps + 1) * rows).astype(np.int64)
    if edges[0] == 0 or not (np.diff(edges) > 0).all():
        raise ConfigError(
            "{rows} rows cannot be tested in {steps} steps after a start of {start:g}; use fewer steps.",
            rows=rows,
            steps=steps,
            start=start,
        )
    order = rng.permutation(rows)
    return tuple(Split(np.sort(order[:a]), np.sort(order[a:b])) for a, b in pairwise(edges.tolist()))


class Combined(NamedTuple):
    """The combined decision from several splits.

    Attributes
    ----------
    p
        The combined p-value: the smallest alpha at which the null is rejected (for the median rule, the infimum).
    median
        The median of the splits' p-values.
    rejected
        Whether the null is rejected at alpha.
    """

    p: FloatArray
    median: FloatArray
    rejected: BoolArray


def combine_splits(p: ArrayLike, alpha: float, rule: Rule = "exchangeable") -> Combined:
    """Return one decision of level alpha from the p-values of K splits.

    A single split rejects if p < alpha. With more, "median" rejects if the median p < alpha / 2 (corollary 1 of the
    reference; very conservative, because splits overlap). For an even number of splits the median is the mean of the
    middle two; this is stricter than the reference's test, which rejects if half of the splits do. "exchangeable"
    rejects if for some k <= K at least half of p_1 .. p_k are at most alpha / 2: valid for splits drawn independently
    in a fixed order, and it rejects whenever the median rule does.

    Parameters
    ----------
    p
        (K, ...) p-values in the order in which the splits were drawn; further axes, such as margins, are kept.
    alpha
        The level.
    rule
        How to combine.

    References
    ----------
    Auerbach, Liang, Tabord-Meehan and Okumura (2024), corollary 1. M. Gasparin, R. Wang and A. Ramdas (2025), Combining
    exchangeable p-values, Proceedings of the National Academy of Sciences 122.

    Examples
    --------
    >>> splits = [0.0524, 0.0530, 0.0223, 0.0312, 0.0158]
    >>> combine_splits(splits, 0.10, "median")
    Combined(p=array(0.0624), median=array(0.0312), rejected=array(True))
    >>> [bool(combine_splits([0.04, 0.06, 0.20], 0.10, rule).rejected) for rule in RULES]
    [False, True]
    """
    require_choice("rule", rule, RULES)
    require_share("alpha", alpha)
    values = np.asarray(p, dtype=np.float64)
    if values.ndim == 0 or len(values) == 0 or not np.all((values >= 0) & (values <= 1)):
        raise ConfigError("`p` must hold one p-value between 0 and 1 for each split.")
    median = np.asarray(np.median(values, axis=0))
    if len(values) == 1:
        return Combined(values[0], median, np.asarray(values[0] < alpha))
    if rule == "median":
        return Combined(np.asarray(np.minimum(1.0, 2.0 * median)), median, np.asarray(median < alpha / 2))
    halves = [np.sort(values[:k], axis=0)[(k + 1) // 2 - 1] for k in range(1, len(values) + 1)]
    least = np.min(halves, axis=0)
    return Combined(np.asarray(np.minimum(1.0, 2.0 * least)), median, np.asarray(least <= alpha / 2))
