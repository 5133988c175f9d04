"""The number of additional people that would decide an undecided verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, inf, log, log10, sqrt
from statistics import NormalDist

from evenhand.core.families import ClaimCheck, ClaimOutcome
from evenhand.core.records import Gap, Value, limits_to_judge, open_range
from evenhand.core.thresholds import Threshold, sized
from evenhand.stats.intervals import normal_quantile

POWER = 0.8
"""The probability of a verdict with the additional people."""

_Z_POWER = NormalDist().inv_cdf(POWER)
_CORRECTIONS = 5
_CLOSE = 0.03  # about 0.8 percentage points of probability
_MOST_TIMES = 1_000
"""The multiple of the people above which no advice to count more people is given."""


def people_still_needed(check: ClaimCheck, outcome: ClaimOutcome, record: Value | Gap) -> float:
    """Return the number of additional people for an 80 % probability of a verdict, to two digits.

    If the estimate is the true value, the standard error se shrinks with the square root of the number of people, and

        N = n ((z + z_0.8) se / distance)²

    people are needed, with the distance of the value from the limit. z is the quantile of the limits that decide. For a
    value within the limit, these are one-sided limits if the claim supports them, or else limits at the audit's
    confidence. For a value beyond the limit, these are limits at the level of all verdicts of the run (Bonferroni; the
    run itself uses Holm, which never needs more people). Ratios are on the log scale. If the claim can simulate its own
    test, the simulation corrects N. The result is N - n; it is infinite if N exceeds 1,000 n, and 0 if unknown.
    """
    claim, threshold = check.claim, check.threshold
    people = record.n if claim.tested_people is None else claim.tested_people
    if threshold is None or record.value is None or not people:
        return 0.0
    place = _Place.of(record, threshold)
    if place.distance == 0:
        return inf
    stderr = place.stderr(record, check.alpha, claim.pairs)
    if not stderr:
        return 0.0
    family = max(1, outcome.verdict_family.size) if place.is_beyond and outcome.verdict_family is not None else 1
    z = place.z(record, stderr, check, family)
    times = ((z + _Z_POWER) * stderr / place.distance) ** 2
    if times <= _MOST_TIMES and claim.chance is not None:
        times = _corrected(times, z, partial(claim.chance, threshold, family, broken=place.is_beyond))
    return inf if times > _MOST_TIMES else two_digits(people * (times - 1.0))


def _corrected(times: float, z: float, chance: Callable[[float], float]) -> float:
    """Return the multiple of the people at which the simulated probability is 80 %.

    The quantile of the probability is nearly linear in the square root of the multiple. The first line has the value
    -z at 0; later lines pass through the last two simulations (secant method).
    """
    from scipy.special import ndtri

    root, last_root, last_quantile = sqrt(times), 0.0, -z
    for _ in range(_CORRECTIONS):
        quantile = float(ndtri(min(max(chance(root**2), 0.002), 0.998)))
        slope = (quantile - last_quantile) / (root - last_root)
        if abs(quantile - _Z_POWER) < _CLOSE or slope <= 0:
            break
        last_root, last_quantile = root, quantile
        root = min(max(root + (_Z_POWER - quantile) / slope, root / 2), root * 2)
    return root**2


@dataclass(frozen=True)
class _Place:
    """A value and its limit, both as distances from equality."""

    value: float
    limit: float
    is_gap: bool
    is_ratio: bool
    is_beyond: bool

    @classmethod
    def of(cls, record: Value | Gap, threshold: Threshold) -> _Place:
        value, limit, bounds = sized(record, None, None)[0] or 0.0, threshold.limit, open_range(record)
        if bounds is not None:  # the value in the open range that is nearest to the limit
            value = min(max(limit, bounds[0]), bounds[1])
        is_gap = isinstance(record, Gap)
        is_ratio = isinstance(record, Gap) and record.kind == "ratio" and value > 0 and limit > 0
        return cls(value, limit, is_gap, is_ratio, (value > limit) == (threshold.side == "max"))

    @property
    def distance(self) -> float:
        """The distance of the value from the limit; for ratios, on the log scale."""
        return abs(self._scaled(self.value) - self._scaled(self.limit))

    def stderr(self, record: Value | Gap, alpha: float, pairs: int) -> float | None:
        """Return the standard error implied by the record's limits, on the side of the threshold.

        The near limit of a worst pair is simultaneous over all pairs. If it equals equality, it is not informative,
        and the far limit is used.
        """
        low, high = sized(record, record.low, record.high)[1:]
        end, other = (low, high) if self.limit < self.value else (high, low)
        if self._is_near_equality and end == (1.0 if self.is_ratio else 0.0):
            end, pairs = other, 1
        arm = self._arm(end)
        return None if arm is None else arm / normal_quantile(1.0 - alpha / (pairs if self._is_near_equality else 1))

    def z(self, record: Value | Gap, stderr: float, check: ClaimCheck, family: int) -> float:
        """Return the quantile of the deciding limits, widened for a family of verdicts."""
        from scipy.special import ndtr, ndtri

        if not self.is_beyond and check.claim.one_sided:
            return normal_quantile(1.0 - 2.0 * check.alpha)
        z = normal_quantile(1.0 - check.alpha / (check.claim.pairs if self._is_near_equality else 1))
        if self.is_beyond:
            low, high = sized(record, *limits_to_judge(record))[1:]
            z = max(z, (self._arm(low if self.limit < self.value else high) or 0.0) / stderr)
        return float(-ndtri(ndtr(-z) / family))

    @property
    def _is_near_equality(self) -> bool:
        """Whether a gap's limit lies between its value and equality."""
        return self.is_gap and (self.limit < self.value) != self.is_ratio

    def _arm(self, end: float | None) -> float | None:
        """Return the distance of the value from a limit of its interval, or None without that limit."""
        if end is None or (self.is_ratio and end <= 0):
            return None
        return abs(self._scaled(self.value) - self._scaled(end))

    def _scaled(self, number: float) -> float:
        return log(number) if self.is_ratio else number


def two_digits(number: float) -> float:
    """Return a number rounded up to two digits, or 0 if it is not positive.

    Examples
    --------
    >>> two_digits(74.2), two_digits(1_204), two_digits(-3)
    (75.0, 1300.0, 0.0)
    """
    if number <= 0:
        return 0.0
    scale = 10.0 ** max(0, floor(log10(number)) - 1)
    return float(ceil(number / scale) * scale)
