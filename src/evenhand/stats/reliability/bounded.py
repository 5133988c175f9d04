"""Limits of damage between 0 and 1 for any distribution, and a gap's allowance for unobserved damage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.agreement import p_of_equality, share_difference, unseen_tail
from evenhand.stats.bounded import bounded_limits, p_of_tail, student_quantile
from evenhand.stats.intervals import mover_difference
from evenhand.stats.types import FloatArray, Interval


def bounded_difference(a: FloatArray, b: FloatArray, tail: float) -> Interval:
    """Return limits of mean(a) - mean(b) of numbers between 0 and 1, by MOVER of limits for any distribution.

    Numbers that are all 0 or 1 have Clopper and Pearson's limits (`share_difference`), others `bounded_limits`.

    Parameters
    ----------
    a, b
        The damage to the people of two groups.
    tail
        The share beyond either limit.

    Examples
    --------
    >>> nobody, some = np.zeros(100), np.repeat([0.0, 0.4], [600, 400])
    >>> [round(float(limit), 3) for limit in bounded_difference(nobody, some, 0.025)]
    [-0.173, -0.122]
    """
    if _all_or_nothing(a, b):
        return share_difference(a.mean(), a.size, b.mean(), b.size, tail)
    return mover_difference(a.mean(), bounded_limits(a, tail), b.mean(), bounded_limits(b, tail))


def _all_or_nothing(*groups: FloatArray) -> bool:
    return all(bool(np.isin(values, (0.0, 1.0)).all()) for values in groups)


def bounded_p(a: FloatArray, b: FloatArray) -> float:
    """Return the smallest alpha at which `bounded_difference` excludes 0.

    Examples
    --------
    >>> bounded_p(np.zeros(100), np.repeat([0.0, 0.4], [600, 400])) < 0.001
    True
    """
    if _all_or_nothing(a, b):
        return float(p_of_equality(lambda tail: share_difference(a.mean(), a.size, b.mean(), b.size, tail), ()))

    def beyond(tail: float) -> float:
        """Return the distance of the limits from 0; negative if they include it."""
        low, high = bounded_difference(a, b, tail)
        return max(float(low), -float(high))

    return p_of_tail(beyond)


@dataclass(frozen=True, eq=False)
class Unseen:
    """Damage missing from the samples of two groups, for which a coefficient's standard error does not allow.

    If one person in a hundred is damaged completely and the others slightly, a sample of a hundred often has none of
    the first, looks half as damaged as the group is, and no resample of it shows that. Damage to decisions lies between
    0 and 1, so that its mean has a valid upper limit nevertheless (`bounded_limits`). Squared errors of scores have no
    such near bound; they get the allowance of the agreement audit (`unseen_tail`).

    Attributes
    ----------
    damage
        The damage to each person of the first and of the second group: share of decisions changed, or mean square.
    values, stderr
        The two coefficients, 1 - D, and their standard errors.
    bounded
        Whether damage lies between 0 and 1.
    """

    damage: tuple[FloatArray, FloatArray]
    values: tuple[float, float]
    stderr: tuple[float, float]
    bounded: bool

    def lower(self, group: int, tail: float) -> float:
        """Return how far a coefficient's lower limit lies below that from its standard error, at least 0.

        With u the upper limit of the mean damage m of n people, (1 - coefficient) (u - m - t s / sqrt(n)) / m.

        Examples
        --------
        >>> hurt = np.repeat([0.0, 0.1], 50)
        >>> round(Unseen((hurt, hurt), (0.9, 0.9), (0.01, 0.01), True).lower(0, 0.025), 3)
        0.052
        """
        damage, other_damage = self.damage[group], self.damage[1 - group]
        n, mean, short = damage.size, float(damage.mean()), 1.0 - self.values[group]
        if n < 2 or mean <= 0:
            return 0.0
        if not self.bounded:
            return float(unseen_tail(self.values[group], n, damage.max() / mean, other_damage.max() / mean, tail))
        allowed = student_quantile(n - 1, tail) * float(damage.std(ddof=1)) / np.sqrt(n)
        return float(short * max(0.0, float(bounded_limits(damage, tail).high) - mean - allowed) / mean)


def half_widths(stderr: float, freedom: float, tail: float, unseen: Unseen | None) -> tuple[float, float]:
    """Return the distances of the limits of first - second below and above it, by MOVER.

    A group's distance downwards is t s + e, with s its standard error and e `Unseen.lower`, so that of the gap is
    sqrt((t se)² + 2 t s e + e²). Damage missing in the first sample lowers the gap, in the second raises it.
    """
    quantile = student_quantile(freedom, tail)
    half = quantile * stderr
    if unseen is None or not half > 0:
        return half, half
    unseen_parts = [unseen.lower(group, tail) for group in (0, 1)]
    down, up = (
        float(np.sqrt(half**2 + 2.0 * quantile * stderr_of_group * unseen_part + unseen_part**2))
        for stderr_of_group, unseen_part in zip(unseen.stderr, unseen_parts, strict=True)
    )
    return down, up
