"""How many more answers would narrow the interval of a gap to a wanted width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.errors import ConfigError
from evenhand.stats.feedback.answers import Answers
from evenhand.stats.feedback.inference import GapInterval
from evenhand.stats.types import FloatArray

Hurdle = Literal["open", "cases", "no_interval"]
_MOST = 1e6


@dataclass(frozen=True)
class Plan:
    """What it takes to know a gap better.

    Attributes
    ----------
    width
        The wanted width of the interval.
    now
        Its width at present.
    least
        The width that no number of critics gets below.
    critics, cases, answers
        How many more of each are needed at the present design, 0 when the interval is narrow enough; None when the
        width cannot be reached.
    hurdle
        Why it cannot: 'open', the answers leave more than that open, whoever is asked; 'cases', more critics on the
        same cases do not help, new cases would; 'no_interval', there is none to begin with. None when it can.
    """

    width: float
    now: float
    least: float
    critics: int | None
    cases: int | None
    answers: int | None
    hurdle: Hurdle | None


def plan_answers(interval: GapInterval, answers: Answers, width: float, *, new_cases: bool = True) -> Plan:
    """Return how many more critics, cases and answers would narrow the interval of a gap to a width.

    With f times the critics, each answering as many cases as now, the variance of a bound is critics / f + cases / g +
    answers / f, where g = f when the cases grow along and g = 1 when they stay the same, and the three parts are those
    of the crossed bootstrap. The limits move towards the bounds as the standard errors do. What the answers leave open
    does not shrink with their number.

    Parameters
    ----------
    interval
        The interval at present, with critics and cases both resampled.
    answers
        The answers behind it.
    width
        The wanted width, above 0.
    new_cases
        Whether new critics come with new cases, so that as many critics see each case as now; else they see the same
        cases.

    Examples
    --------
    >>> from evenhand.stats.feedback import Feedback, gap_intervals
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100
    >>> group, label = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> disagree = (seed.random(800) < np.array([0.1, 0.5])[group[case]]).astype(int)
    >>> answers = Answers(critic, case, disagree, group, label, 2, 40, Feedback(2))
    >>> found = gap_intervals(answers, ["calibration"], rng=seed)["calibration"]
    >>> plan = plan_answers(found, answers, width=0.1)
    >>> round(plan.now, 3), plan.critics, plan.cases, plan.answers
    (0.194, 111, 276, 2220)
    """
    if not width > 0:
        raise ConfigError(f"`width` must be above 0; got {width!r}.")
    if interval.components is None:
        raise ConfigError("`interval` must come from resampling both critics and cases; set `resampled` to 'both'.")
    if np.isnan(interval.low):
        nothing = float("nan")
        return Plan(width, nothing, nothing, None, None, None, "no_interval")
    now, least = (_width(interval, factor, new_cases) for factor in (1.0, math.inf))
    if now <= width:
        return Plan(width, now, least, 0, 0, 0, None)
    if _width(interval, _MOST, new_cases) > width:
        still_open = _width(interval, math.inf, new_cases=True) >= width
        return Plan(width, now, least, None, None, None, "open" if still_open else "cases")
    factor = _least_factor(interval, width, new_cases)
    critics = math.ceil(answers.critics * factor - 1e-9)
    cases = math.ceil(answers.cases * factor - 1e-9) if new_cases else answers.cases
    each = len(answers.answer) / answers.critics
    more = math.ceil((critics - answers.critics) * each)
    return Plan(width, now, least, critics - answers.critics, cases - answers.cases, more, None)


def _least_factor(interval: GapInterval, width: float, new_cases: bool) -> float:
    low, high = 0.0, math.log(_MOST)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _width(interval, math.exp(middle), new_cases) <= width else (middle, high)
    return math.exp(high)


def _width(interval: GapInterval, factor: float, new_cases: bool) -> float:
    """Return the width of the interval with so many times the critics."""
    lower, upper = (float(share) for share in _shrunk(interval, factor, new_cases))
    low = max(float(interval.gap.lower) - interval.below * lower, 0.0)
    return min(float(interval.gap.upper) + interval.above * upper, 1.0) - low


def _shrunk(interval: GapInterval, factor: float, new_cases: bool) -> FloatArray:
    """Return (2,) the standard errors of the two bounds, as shares of what they are."""
    assert interval.components is not None  # noqa: S101 -- checked by the caller
    critics, cases, single = interval.components
    total = critics + cases + single
    left = (critics + single) / factor + cases / (factor if new_cases else 1.0)
    return np.asarray(np.sqrt(np.divide(left, total, out=np.full(2, 1.0 / factor), where=total > 0)))
