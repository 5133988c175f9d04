"""Individual fairness of several models at equal spread of scores, since a smaller spread alone raises it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.pairs.fairness import individual_fairness
from evenhand.stats.pairs.inputs import TOLERANCE, excess_of, some_pairs
from evenhand.stats.pairs.result import PairFairness

Spreads = Mapping[str, PairFairness]
"""The spread of each model's scores, as `spread_of` returns it."""


def spread_of(score: ArrayLike, survey_weight: ArrayLike | None = None) -> PairFairness:
    """Return individual fairness at distance 0: 1 minus the mean absolute difference of two scores.

    Parameters
    ----------
    score, survey_weight
        As for `individual_fairness`.

    Examples
    --------
    >>> round(1 - spread_of([0.2, 0.9, 0.4]).value, 6)  # the differences are 0.7, 0.2 and 0.5
    0.466667
    """
    nowhere = np.zeros(np.size(score))
    return individual_fairness(score, nowhere, nowhere, survey_weight=survey_weight)


def shrinkages(spreads: Spreads) -> dict[tuple[str, str], float]:
    """Return, for every two models, the one with the wider scores, the other, and the factor for equal spread.

    Multiplying scores by c <= 1 multiplies their differences by c, like shrinking the scores towards their mean.

    Examples
    --------
    >>> shrinkages({"a": spread_of([0.1, 0.3]), "b": spread_of([0.1, 0.9])})
    {('b', 'a'): 0.2499...}
    """
    factors = {}
    for pair in combinations(spreads, 2):
        wide, narrow = sorted(pair, key=lambda model: spreads[model].value)
        apart = 1.0 - spreads[wide].value
        factors[wide, narrow] = (1.0 - spreads[narrow].value) / apart if apart > 0 else 1.0
    return factors


@dataclass(frozen=True, eq=False, kw_only=True)
class FairnessOfModels:
    """Individual fairness of several models for the same people.

    Parameters
    ----------
    own : the result of every model and weight.
    shrunk : for a model, another model with a smaller spread of scores, and a weight: the result with scores shrunk to
        the other's spread.
    spreads : the spread of every model's scores.
    """

    own: Mapping[tuple[str, float], PairFairness]
    shrunk: Mapping[tuple[str, str, float], PairFairness]
    spreads: Spreads

    @classmethod
    def of(cls, found: Mapping[tuple[str, str, float], PairFairness], spreads: Spreads) -> FairnessOfModels:
        """Return the results, separated by whether scores are at the model's own spread or at another model's."""
        return cls(
            own={(model, weight): each for (model, to, weight), each in found.items() if model == to},
            shrunk={
                (model, to, weight): allow_for_factor(each, spreads[model], spreads[to])
                for (model, to, weight), each in found.items()
                if model != to
            },
            spreads=spreads,
        )

    def at_equal_spread(self, model: str, other: str, weight: float) -> PairFairness:
        """Return individual fairness of a model at the smaller of its own spread and another model's."""
        return self.shrunk.get((model, other, weight), self.own[model, weight])

    def at_least_spread(self, model: str, weight: float) -> PairFairness:
        """Return individual fairness of a model at the smallest spread of all models."""
        least = max(self.spreads, key=lambda name: self.spreads[name].value)
        return self.at_equal_spread(model, least, weight)

    def without_people(self) -> FairnessOfModels:
        """Return a copy without data on single people."""
        return replace(
            self,
            own={key: each.without_people() for key, each in self.own.items()},
            shrunk={key: each.without_people() for key, each in self.shrunk.items()},
            spreads={model: each.without_people() for model, each in self.spreads.items()},
        )


def allow_for_factor(shrunk: PairFairness, own: PairFairness, to: PairFairness) -> PairFairness:
    """Return individual fairness of shrunk scores, with row means that include the influence of the estimated factor.

    With c = G' / G the mean over pairs of max(0, c D - d) has the derivative k = mean(D; c D > d) in c, and c changes
    with a pair by (D' - c D) / G. F is therefore replaced by F - k (D' - c D) / G, which has the same mean.

    Parameters
    ----------
    shrunk : the result for the scores times c.
    own, to : the spread of the original scores, and the spread to which they were shrunk.

    References
    ----------
    W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, Annals of Mathematical
    Statistics 19, section 7 (functions of U-statistics).
    """
    apart = 1.0 - own.value
    if shrunk.row_means is None or own.row_means is None or to.row_means is None or apart <= 0.0:
        return shrunk
    factor = (1.0 - to.value) / apart
    slope = _slope(shrunk, factor) if factor > 0.0 else 0.0
    lever = slope / apart
    influence = lever * ((1.0 - to.row_means) - factor * (1.0 - own.row_means))
    error = shrunk.error + lever * (to.error + factor * own.error) + TOLERANCE  # c is rounded
    return replace(shrunk, row_means=shrunk.row_means - influence, error=error, lever=lever)


def _slope(shrunk: PairFairness, factor: float) -> float:
    """Return the mean over all pairs of D where c D > d, and 0 elsewhere, estimated from some of the pairs."""
    people = shrunk.people
    assert people is not None  # noqa: S101
    survey = () if people.survey is None else (people.survey,)
    i, j = some_pairs(people.score, people.effort, people.aggregate, *survey)
    weights = np.where(excess_of(people, shrunk.weight, i, j) > 0, people.weights[i] * people.weights[j], 0.0)
    if not weights.any():
        return 0.0
    return shrunk.violated * float(np.average(np.abs(people.score[i] - people.score[j]), weights=weights)) / factor
