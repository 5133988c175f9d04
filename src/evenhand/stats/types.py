"""Array types and the interval type of all kernels."""

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
"""Numbers of this size have fourth powers, needed for the variance of squares, that can still be summed."""


class Interval(NamedTuple):
    """Lower and upper limits, arrays of one shape; nan without an interval, inf if unbounded."""

    low: FloatArray
    high: FloatArray
