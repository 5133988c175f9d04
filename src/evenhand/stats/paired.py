"""Comparison of two decisions about the same people by their shares of right decisions."""

from __future__ import annotations

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import normal_quantile

_BELOW = 1e-12


def paired_difference(gained: int, lost: int, people: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return limits of the difference between two shares of the same people (Tango's score interval).

    With b people whom only the first decision gets right, c whom only the second does, and n people in all, the limits
    are the differences d with

    (b - c - n d)² = z² n (2 q + d (1 - d)), q = (sqrt(B² - 8 n C) - B) / (4 n),
    B = (2 n - b + c) d - b - c, C = -c d (1 - d),

    q being the most likely share of the c people if the difference is d. Unlike limits from a standard error they are
    valid even if the decisions differ for few people: if they differ for no one, the limits are ± z² / (n + z²), not ±
    0.

    Parameters
    ----------
    gained, lost
        The numbers of people for whom only the first, and only the second, decision is right.
    people
        The number of all people, including people with both decisions right or both wrong.
    confidence
        Two-sided confidence.

    References
    ----------
    T. Tango (1998), Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design, Statistics in Medicine 17. M. W. Fagerland, S. Lydersen and P. Laake (2014), Recommended tests and
    confidence intervals for paired binomial proportions, Statistics in Medicine 33.

    Examples
    --------
    >>> [round(limit, 3) for limit in paired_difference(1, 7, 21)]
    [-0.517, -0.026]
    >>> [round(limit, 3) for limit in paired_difference(0, 0, 50)]
    [-0.071, 0.071]
    """
    if gained < 0 or lost < 0 or gained + lost > people or people < 1:
        raise EvenhandError(
            "`gained` and `lost` must be numbers of some of the people; got {gained} and {lost} of {people}.",
            gained=gained,
            lost=lost,
            people=people,
        )
    return _lowest(gained, lost, people, confidence), -_lowest(lost, gained, people, confidence)


def _lowest(gained: int, lost: int, people: int, confidence: float) -> float:
    """Return the lower limit of the difference."""
    from scipy.optimize import brentq

    z, seen = normal_quantile(confidence), (gained - lost) / people

    def beyond(difference: float) -> float:
        """Return the estimate minus a difference, minus z standard errors; it is 0 at the limit."""
        b = (2 * people - gained + lost) * difference - gained - lost
        c = -lost * difference * (1.0 - difference)
        share = (np.sqrt(max(b * b - 8.0 * people * c, 0.0)) - b) / (4.0 * people)
        variance = max(2.0 * share + difference * (1.0 - difference), 0.0) / people
        return float(seen - difference - z * np.sqrt(variance))

    # If nobody or everybody is decided differently, the estimate itself is another root.
    return -1.0 if beyond(-1.0) <= 0.0 else float(brentq(beyond, -1.0, seen - _BELOW, xtol=1e-14))
