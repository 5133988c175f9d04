"""What the engine adds up for each replicate, level, fold and group, and the statistics that follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.agreement import BinaryCounts, ScoreMoments
from evenhand.stats.types import BoolArray, FloatArray

SUMS = ("first_ones", "second_ones", "both_ones", "first", "second", "first_squares", "second_squares", "error_squares")
"""Per person: r, s, r s, x, y, x², y² and (y - x)², scores x and y taken less the centre of their cell."""

OF_THE_FIRST = ("first_ones", "first", "first_squares")
"""Those that a second rater's mistakes do not change."""


@dataclass(frozen=True)
class PairSums:
    """Sums over people of two raters' decisions and scores; arrays that broadcast, the last axes being the cells.

    Scores are taken less `centre`, a number near their mean, so that no precision is lost in the squares.

    Attributes
    ----------
    n
        People.
    centre
        What was taken off the scores.
    first_ones, second_ones, both_ones
        People selected by the first rater, by the second, by both.
    first, second, first_squares, second_squares
        Sums of scores and of their squares.
    error_squares
        Sums of (second - first)².

    Examples
    --------
    >>> one = np.array(1.0)
    >>> sums = PairSums(4 * one, 0 * one, 2 * one, one, one, 2 * one, one, 2 * one, one, one)
    >>> float(sums.counts().kappa())
    0.5
    """

    n: FloatArray
    centre: FloatArray
    first_ones: FloatArray
    second_ones: FloatArray
    both_ones: FloatArray
    first: FloatArray
    second: FloatArray
    first_squares: FloatArray
    second_squares: FloatArray
    error_squares: FloatArray

    def counts(self) -> BinaryCounts:
        """Return the counts of pairs of decisions."""
        a = self.both_ones
        b, c = self.second_ones - a, self.first_ones - a
        return BinaryCounts(*np.broadcast_arrays(a, b, c, self.n - a - b - c))

    def moments(self) -> ScoreMoments:
        """Return the moments of the scores."""
        with np.errstate(all="ignore"):
            x, y = self.first / self.n, self.second / self.n
            error = np.where(self.error_squares == 0, 0.0, y - x)
            variances = (
                self.first_squares / self.n - x**2,
                self.second_squares / self.n - y**2,
                self.error_squares / self.n - error**2,
            )
            sizes = (self.first_squares, self.second_squares, self.error_squares)
            spreads = (
                np.where(variance * self.n <= 1e-14 * size, 0.0, variance)
                for variance, size in zip(variances, sizes, strict=True)
            )
            return ScoreMoments(*np.broadcast_arrays(self.n, x + self.centre, y + self.centre, *spreads, error))


def person_sums(r: BoolArray, s: BoolArray, x: FloatArray, y: FloatArray, centre: FloatArray) -> tuple[FloatArray, ...]:
    """Return what each person adds to the sums of `PairSums`."""
    x, y = x - centre, y - centre
    first, second, both = r.astype(np.float64), s.astype(np.float64), (r & s).astype(np.float64)
    return first, second, both, x, y, x * x, y * y, (y - x) ** 2
