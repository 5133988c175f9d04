"""The array types and the interval that all kernels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Summary = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""An estimate of a group, its standard error, and its degrees of freedom or number of people."""

LARGEST = 1e75
"""The fourth powers of numbers of this size, which the variance of squares takes, can still be added up."""


class Interval(NamedTuple):
    """Lower and upper limits, arrays of one shape; nan where there is no interval, inf where unbounded."""

    low: FloatArray
    high: FloatArray
