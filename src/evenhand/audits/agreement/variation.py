"""How much the ratings of a group vary: what an interval of its agreement can rest on."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, nan

import numpy as np

from evenhand.audits.agreement.statistics import Ratings
from evenhand.stats.intervals import effective_trials
from evenhand.stats.types import FloatArray

LEAST_PEOPLE = 5
"""People about whom raters disagree, and who have an uncommon rating, below whom a coefficient is not tested."""
LEAST_SHARED = 3
"""People on whom raters must agree with another than the commonest rating for a coefficient to be tested."""
LEAST_SCORED = 10
"""People that the differences of scores must rest on: the largest weigh most. `benchmarks/agreement_coverage.py`."""


@dataclass(frozen=True)
class Variation:
    """What the ratings of a group give to go on.

    Parameters
    ----------
    agreement : the share of agreeing pairs of ratings, a person's mean first; nan for scores.
    trials : how many people it is worth.
    disagreeing : how many people the disagreement rests on, (sum d)² / sum d² of their disagreements d.
    uncommon : how many people have another than the commonest rating; no limit for scores.
    shared : about how many people raters agree on another than the commonest rating; no limit for scores.
    """

    agreement: float
    trials: float
    disagreeing: float
    uncommon: float
    shared: float

    @property
    def scores(self) -> bool:
        """Whether the ratings are scores."""
        return self.uncommon == inf

    def too_little(self, group: str | None) -> str | None:
        """Return why no interval of a coefficient can rest on these ratings, None where one can."""
        where, least = "" if group is None else f" in {group}", LEAST_SCORED if self.scores else LEAST_PEOPLE
        if self.disagreeing == 0:
            return f"the raters disagree about nobody{where}"
        if self.disagreeing < least:
            return (
                f"the disagreement{where} rests on too few people: {_cut(self.disagreeing)}, where {least} are needed"
            )
        if self.uncommon < least:
            return (
                f"too few people{where} have another than the commonest rating: {_cut(self.uncommon)}, where {least} "
                "are needed"
            )
        if self.shared < LEAST_SHARED:
            return (
                f"the raters agree about too few people{where} on another than the commonest rating: "
                f"{_cut(self.shared)}, where {LEAST_SHARED} are needed"
            )
        return None


def _cut(number: float) -> str:
    """Return a number with one decimal place, cut off so that what is too few does not look enough."""
    return f"{floor(10 * number) / 10:g}"


def variation_of(given: Ratings, weight: FloatArray, count: FloatArray) -> Variation:
    """Return the variation of patterns, with the sum of weights and the number of people of each."""
    each = weight / count
    people = float(weight.sum() ** 2 / (weight * each).sum())
    ratings = np.stack(given.raters)
    if not given.categories:
        differ = np.nanmax(ratings, axis=0) > np.nanmin(ratings, axis=0)
        squares = np.where(differ, np.nanvar(ratings, axis=0), 0.0)
        return Variation(nan, people, _resting_on(squares, weight, each), inf, inf)
    rated = (~np.isnan(ratings)).sum(axis=0)
    alike, common, agreed = np.zeros(len(weight)), [], []
    for category in range(given.categories):
        chosen = (ratings == category).sum(axis=0)
        pairs = chosen * (chosen - 1) / (rated * (rated - 1))
        alike += pairs
        common.append(float((weight * chosen / rated).sum() / weight.sum()))
        agreed.append(float((weight * pairs).sum() / weight.sum()))
    share = float((weight * alike).sum() / weight.sum())
    variance = float((weight * each * (alike - share) ** 2).sum() / weight.sum() ** 2)
    trials = float(effective_trials(share, variance, people))
    uncommon, shared = 1.0 - max(common), sum(agreed) - agreed[int(np.argmax(common))]
    rests_on = _resting_on(1.0 - alike, weight, each)
    return Variation(share, trials, rests_on, round(people * uncommon, 9), round(people * shared, 9))


def _resting_on(disagreement: FloatArray, weight: FloatArray, each: FloatArray) -> float:
    total, squares = (weight * disagreement).sum(), (weight * each * disagreement**2).sum()
    return round(float(total**2 / squares), 9) if squares > 0 else 0.0
