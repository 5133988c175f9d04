"""Why an agreement statistic has no value: a short list of reasons, in words that can be shown as they are."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from evenhand.stats.types import BoolArray

Reasons = npt.NDArray[np.str_]


class Undefined(StrEnum):
    """The reasons why a statistic is nan.

    Examples
    --------
    >>> str(Undefined.ONE_CLASS)
    'all ratings are in one class'
    """

    NOBODY = "there is nobody to rate"
    ONE_PERSON = "there is only one person"
    NO_PAIR = "nobody has two ratings"
    ONE_CLASS = "all ratings are in one class"
    NO_SPREAD = "all scores are one number"
    NO_POSITIVE = "no rating is positive"
    NO_NEGATIVE = "no rating is negative"
    ZERO_DENOMINATOR = "the formula divides by 0"


def first_reason(checks: Sequence[tuple[BoolArray, Undefined]]) -> Reasons:
    """Return for each element the first reason that applies, "" where none does.

    Examples
    --------
    >>> first_reason([(np.array([True, False]), Undefined.NOBODY)])
    array(['there is nobody to rate', ''], dtype='<U23')
    """
    longest = max(len(reason) for _, reason in checks)
    applies = np.broadcast_arrays(*(np.asarray(found) for found, _ in checks))
    return np.select(applies, [str(reason) for _, reason in checks], "").astype(f"<U{longest}")
