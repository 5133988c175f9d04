"""P-values that invert limits, and Student's quantile for tiny tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_SMALLEST_P = 1e-15


def p_of_tail(beyond: Callable[[float], float]) -> float:
    """Return twice the tail at which the limits reach the null, to six digits."""
    from scipy.optimize import brentq

    most, least = np.log(0.5), np.log(_SMALLEST_P / 2)
    if beyond(0.5) <= 0:
        return 1.0
    if beyond(_SMALLEST_P / 2) > 0:
        return _SMALLEST_P
    log_tail = brentq(lambda log_tail: beyond(float(np.exp(log_tail))), least, most, xtol=1e-7)
    return float(f"{2.0 * np.exp(log_tail):.6g}")  # further digits depend on the processor


def student_quantile(freedom: float, tail: float) -> float:
    """Return Student's quantile for a tail, which may be tiny; nan without degrees of freedom.

    Examples
    --------
    >>> round(student_quantile(10, 0.025), 4), round(student_quantile(float("inf"), 0.025), 4)
    (2.2281, 1.96)
    """
    from scipy.special import ndtri, stdtrit

    return -float(stdtrit(freedom, tail) if freedom < 1e9 else ndtri(tail)) if freedom > 0 else float("nan")
