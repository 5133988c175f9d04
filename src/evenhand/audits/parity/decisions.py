"""Decisions of the audit about simulated samples: its test of equal rates and its verdicts on limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.core.findings import Claim
from evenhand.core.records import Gap, Kind, Value
from evenhand.core.thresholds import Threshold
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import tail_share
from evenhand.stats.two_rates import RateComparison, compare_rates
from evenhand.stats.two_rates.comparison import FEWEST_EXPECTED
from evenhand.stats.types import BoolArray, FloatArray, IntArray

SAMPLES, EXACT_SAMPLES = 2_000, 400
"""The numbers of simulated samples, in general and for exact tests, which take longer."""

_MOST_PAIRS = 8
"""The number of simulated pairs; pairs with gaps far within the limit do not affect the decision."""


@dataclass(frozen=True, kw_only=True)
class RateDecision:
    """The audit's decision on a difference between rates, or on a limit for it.

    Parameters
    ----------
    kind : the kind of gap: difference or ratio.
    limit : the limit; None for the test of equality.
    confidence : the confidence of the audit.
    family : the number of tests (or of verdicts) in the run.
    near_tail : the tail probability of the limits behind the verdict "does not meet", before the adjustment for the
        family.
    pairs : the number of pairs of groups that the test of equality is adjusted for.
    """

    kind: Kind
    limit: float | None
    confidence: float
    family: int
    near_tail: float
    pairs: int = 1

    def shown(self, pairs: RateComparison) -> BoolArray:
        """Return the mask of samples in which a difference, or a violation of the limit, is significant."""
        if self.limit is None:
            least = pairs.p_value * self.pairs
            return np.asarray((least <= (1.0 - self.confidence) / self.family).any(axis=-1))
        high, low = self._ends
        tail = self.near_tail / self.family
        beyond = pairs.is_rejected("lower", high, tail) | pairs.is_rejected("upper", low, tail)
        return np.asarray(beyond.any(axis=-1))

    def met(self, pairs: RateComparison) -> BoolArray:
        """Return the mask of samples in which every pair's one-sided limits show the limit to be met."""
        high, low = self._ends
        tail = 1.0 - self.confidence  # one-sided limits
        within = pairs.is_rejected("upper", high, tail) & pairs.is_rejected("lower", low, tail)
        return np.asarray(within.all(axis=-1))

    @property
    def _ends(self) -> tuple[float, float]:
        """The largest and the smallest gap that meet the limit."""
        limit = self.limit or 0.0
        return (1.0 / limit if limit > 0 else np.inf, limit) if self.kind == "ratio" else (limit, -limit)


@dataclass(frozen=True)
class RatesOfGroups:
    """The rates of compared groups, taken as the true rates in a simulation.

    Parameters
    ----------
    rate, people : the rate and the number of people of each group.
    first, second : the pairs of groups, by position.
    confidence : the confidence of the audit.
    joint_tail : the tail probability of the limits simultaneous over all pairs.
    """

    rate: FloatArray
    people: IntArray
    first: IntArray
    second: IntArray
    confidence: float
    joint_tail: float

    def chance(self, threshold: Threshold, family: int, times: float, *, broken: bool) -> float:
        """Return the probability of the verdict that the rates suggest, in samples of `times` as many people."""
        question = RateDecision(
            kind=threshold.kind or "difference",
            limit=threshold.limit,
            confidence=self.confidence,
            family=family if broken else 1,
            near_tail=self.joint_tail,
        )
        people = np.maximum(1, np.rint(self.people * times)).astype(np.int64)
        pairs = compare_rates(*self._nearest(question, people), question.kind)
        return float((question.shown(pairs) if broken else question.met(pairs)).mean())

    def _nearest(self, question: RateDecision, people: IntArray) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
        """Return simulated counts of the pairs with gaps nearest to the limit, or farthest beyond it."""
        from scipy.stats import binom

        p, q = self.rate[self.first], self.rate[self.second]
        if question.kind == "ratio":
            size = np.maximum(p, q) * (question.limit or 0.0) - np.minimum(p, q)
        else:
            size = np.abs(p - q) - (question.limit or 0.0)
        error = np.sqrt(p * (1 - p) / people[self.first] + q * (1 - q) / people[self.second])
        nearest = np.argsort(-size / np.maximum(error, 1e-12), kind="stable")[:_MOST_PAIRS]
        first, second = self.first[nearest], self.second[nearest]
        rarer = (people * np.minimum(self.rate, 1.0 - self.rate)).min()
        samples = SAMPLES if rarer > FEWEST_EXPECTED else EXACT_SAMPLES
        draws = named_rng(0, "people still needed", *map(str, self.people)).random((samples, len(people)))
        yes = np.asarray(binom.ppf(draws, people, self.rate))
        return yes[:, first], people[first], yes[:, second], people[second]


def with_chance(claim: Claim, gap: Gap, groups: Sequence[Value], confidence: float) -> Claim:
    """Return a claim on a gap between rates with the probability of a verdict in larger samples."""
    groups = sorted(groups, key=lambda record: (record.n, record.value))  # the result must not depend on names
    if gap.value is None or gap.against == "overall":
        return claim
    names = [record.group for record in groups]
    rate, people = np.array([record.value for record in groups], dtype=np.float64), np.array([r.n for r in groups])
    tail = tail_share(confidence)
    if gap.against == "worst_pair":
        first, second = np.triu_indices(len(groups), 1)
        joint_tail = tail / len(first)
    else:
        first, second = (np.array([names.index(str(side))]) for side in (gap.group, gap.reference))
        joint_tail = tail_share(confidence ** (1.0 / max(1, len(groups) - 1)))
    rates = RatesOfGroups(rate, people, first, second, confidence, joint_tail)
    return replace(claim, chance=rates.chance)
