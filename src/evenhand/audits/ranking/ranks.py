"""The shortlisting, exposure and pairwise accuracy of each candidate in a list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RankedRows:
    """The rows of all lists, sorted by descending score within each list.

    Parameters
    ----------
    query : (rows,) the code of the row's list, in rising order.
    first, last : (rows,) the first and last rank, from 1, of the candidates tied with the row in its list.
    length : (rows,) the length of the row's list.
    positive : (rows,) whether the outcome is positive.
    order : (rows,) the positions of the rows in the data.
    """

    query: IntArray
    first: IntArray
    last: IntArray
    length: IntArray
    positive: BoolArray
    order: IntArray

    @classmethod
    def build(cls, query: IntArray, score: FloatArray, positive: BoolArray) -> RankedRows:
        """Rank the rows of every list."""
        order = np.lexsort((-score, query))
        of, value = query[order], score[order]
        sizes = np.bincount(of)
        start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        is_new = np.append(True, (of[1:] != of[:-1]) | (value[1:] != value[:-1]))
        block = np.cumsum(is_new) - 1
        begins = np.flatnonzero(is_new)
        ends = np.append(begins[1:], len(of))
        return cls(
            of, begins[block] - start[of] + 1, ends[block] - start[of], sizes[of], np.asarray(positive[order]), order
        )

    def shortlisted(self, size: int) -> FloatArray:
        """Return the probability that each candidate is shortlisted (ties at random); nan if the whole list fits.

        Examples
        --------
        >>> scores, jobs = np.array([3.0, 2.0, 2.0, 1.0]), np.zeros(4, dtype=int)
        >>> RankedRows.build(jobs, scores, np.zeros(4, dtype=bool)).shortlisted(2).tolist()
        [1.0, 0.5, 0.5, 0.0]
        """
        tied = self.last - self.first + 1
        return np.where(self.length > size, np.clip((size - self.first + 1) / tied, 0.0, 1.0), np.nan)

    def exposure(self) -> FloatArray:
        """Return each candidate's exposure 1 / log2(1 + rank), averaged over ties and divided by its list's mean."""
        weight = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(1.0 + np.arange(1, self.length.max() + 1)))])
        own = (weight[self.last] - weight[self.first - 1]) / (self.last - self.first + 1)
        return np.asarray(own / (weight[self.length] / self.length))

    def pairwise_accuracy(self) -> FloatArray:
        """Return the share of a list's negative candidates below each positive candidate; a tie counts half.

        The value is nan for negative candidates, and in lists without a negative candidate.
        """
        negative = np.concatenate([[0], np.cumsum(~self.positive)])
        start = np.flatnonzero(np.append(True, self.query[1:] != self.query[:-1]))[self.query]
        above, upto = negative[start + self.first - 1], negative[start + self.last]
        total = negative[start + self.length] - negative[start]
        with np.errstate(all="ignore"):
            below = (negative[start + self.length] - (above + upto) / 2) / total
        return np.where(self.positive & (total > 0), below, np.nan)
