"""The array types and the interval that all kernels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Interval(NamedTuple):
    """Lower and upper limits, arrays of one shape; nan where there is no interval, inf where unbounded."""

    low: FloatArray
    high: FloatArray
