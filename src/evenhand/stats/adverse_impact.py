"""Indicators of adverse impact: four fifths, standard deviations, Fisher's exact test, shortfall and flip-one.

Arguments are counts, one entry per group. They are compared as integers: a rate of exactly four fifths of another is
not below it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.intervals import mover_ratio, wilson
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

Flip = Literal["no", "crosses", "overtakes"]
"""The effect of moving one person: none, the rate crosses four fifths, or the group gains the higher rate."""


class AdverseImpact(NamedTuple):
    """Comparison of each group's selection with the group that has the highest rate; nan if undefined.

    Parameters
    ----------
    highest : the index of the group with the highest rate.
    rate : selected / n.
    ratio, ratio_limits : rate divided by the highest rate, and its interval.
    difference : rate minus the highest rate.
    below : whether the ratio is below four fifths.
    deviations : the difference in standard deviations, z.
    p_value : Fisher's exact test, two-sided.
    shortfall : the number of people expected at the rate of both groups together, minus the number selected.
    to_four_fifths : the number of additional selections that bring the group to four fifths, all else equal.
    flip : the effect of selecting one person instead of another.
    """

    highest: int
    rate: FloatArray
    ratio: FloatArray
    ratio_limits: Interval
    difference: FloatArray
    below: BoolArray
    deviations: FloatArray
    p_value: FloatArray
    shortfall: FloatArray
    to_four_fifths: IntArray
    flip: tuple[Flip, ...]


def highest_rate(n: ArrayLike, selected: ArrayLike, least: int = 1) -> int:
    """Return the index of the group with the highest rate; ties go to the larger, then to the first group.

    Groups with fewer than `least` people count only if all groups are that small.

    Examples
    --------
    >>> highest_rate([80, 40, 2], [48, 12, 2], least=10)
    0
    """
    sizes, chosen = _integers(n), _integers(selected)
    large = [group for group, size in enumerate(sizes) if size >= least] or range(len(sizes))
    return max(large, key=lambda group: (Fraction(chosen[group], max(sizes[group], 1)), sizes[group], -group))


def adverse_impact(n: ArrayLike, selected: ArrayLike, least: int = 1, confidence: float = 0.95) -> AdverseImpact:
    """Compare the selection of every group with the group that has the highest rate.

    For a group with x of n selected and the highest group with y of m: the ratio is (x/n) / (y/m), below four fifths if
    5 x m < 4 y n; z = (x/n - y/m) / sqrt(p (1 - p) (1/n + 1/m)) with p = (x + y) / (n + m); the shortfall is n p - x;
    reaching four fifths requires ceil(4 y n / 5 m) - x more people, at least 0. Fisher's test sums the probabilities of
    all tables with the same margins that are at most as likely as the observed one. The interval of the ratio is
    MOVER-R from Wilson limits. It applies to this pair alone and does not account for the choice of the highest group.

    Flip-one selects one person of a group that is below instead of one of the highest group, or the reverse for a group
    that is not below, and compares the group with the group that then has the highest rate.

    Parameters
    ----------
    n, selected
        The number of people of each group, and the number of them selected.
    least
        Smaller groups are also compared, but never count as the group with the highest rate; see `highest_rate`.
    confidence
        Two-sided confidence of the interval of the ratio.

    References
    ----------
    29 CFR 1607.4(D) (1978), four fifths. Questions and Answers on the Uniform Guidelines (1979), 44 FR 11996, on one
    person's selection. R. A. Fisher (1935), The design of experiments. A. Donner and G. Y. Zou (2012), Statistical
    Methods in Medical Research 21, the interval.

    Examples
    --------
    >>> found = adverse_impact([20, 10], [3, 1])  # the example of the Questions and Answers
    >>> found.ratio.round(3).tolist(), found.below.tolist(), found.flip
    ([1.0, 0.667], [False, True], ('no', 'overtakes'))
    """
    sizes, chosen = _integers(n), _integers(selected)
    highest = highest_rate(sizes, chosen, least)
    people, x = np.asarray(sizes, np.float64), np.asarray(chosen, np.float64)
    m, y = people[highest], x[highest]
    with np.errstate(all="ignore"):
        rate = x / people
        ratio = rate / rate[highest]
        both = (x + y) / (people + m)
        error = np.sqrt(both * (1 - both) * (1 / people + 1 / m))
        deviations = np.where(error > 0, (rate - rate[highest]) / error, np.nan)
    limits = wilson(rate, people, confidence)
    of_highest = Interval(limits.low[highest], limits.high[highest])
    is_other = np.arange(len(sizes)) != highest
    return AdverseImpact(
        highest=highest,
        rate=rate,
        ratio=ratio,
        ratio_limits=mover_ratio(rate, limits, rate[highest], of_highest),
        difference=rate - rate[highest],
        below=np.array([_below(group, sizes, chosen, highest) for group in range(len(sizes))], np.bool_),
        deviations=np.where(is_other, deviations, np.nan),
        p_value=np.array(
            [_fisher(sizes, chosen, group, highest) if is_other[group] else np.nan for group in range(len(sizes))]
        ),
        shortfall=np.where(is_other, people * both - x, np.nan),
        to_four_fifths=np.array([_missing(group, sizes, chosen, highest) for group in range(len(sizes))], np.int64),
        flip=tuple(
            _flip(group, sizes, chosen, highest, least) if is_other[group] else "no" for group in range(len(sizes))
        ),
    )


def _integers(counts: ArrayLike) -> list[int]:
    return [int(count) for count in np.asarray(counts).tolist()]


def _below(group: int, n: list[int], selected: list[int], highest: int) -> bool:
    """Return whether a rate is below four fifths of another rate, in integer arithmetic."""
    return 5 * selected[group] * n[highest] < 4 * selected[highest] * n[group]


def _missing(group: int, n: list[int], selected: list[int], highest: int) -> int:
    """Return the number of additional selections a group needs to reach four fifths."""
    return max(0, -(-4 * selected[highest] * n[group] // max(1, 5 * n[highest])) - selected[group])


def _fisher(n: list[int], selected: list[int], group: int, highest: int) -> float:
    from scipy.stats import fisher_exact

    rows = np.array([[selected[k], n[k] - selected[k]] for k in (group, highest)])
    return float(fisher_exact(rows).pvalue)


def _flip(group: int, n: list[int], selected: list[int], highest: int, least: int) -> Flip:
    below = _below(group, n, selected, highest)
    moved, step = list(selected), 1 if below else -1
    moved[group] += step
    moved[highest] -= step
    if not all(0 <= moved[k] <= n[k] for k in (group, highest)):
        return "no"
    now_highest = highest_rate(n, moved, least)
    if _below(group, n, moved, now_highest) == below:
        return "no"
    overtakes = below and moved[group] * n[highest] > moved[highest] * n[group]
    return "overtakes" if overtakes else "crosses"
