"""How kappa and PABAK are tied by the prevalence index and the bias index, in both directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats.agreement.counts import ratio
from evenhand.stats.agreement.ratings import plain
from evenhand.stats.types import FloatArray


class PabakParts(NamedTuple):
    """The parts of PABAK - kappa that prevalence and bias make; they add up to it exactly."""

    prevalence: FloatArray
    bias: FloatArray


def kappa_from_pabak(
    pabak: npt.ArrayLike, prevalence_index: npt.ArrayLike = 0.0, bias_index: npt.ArrayLike = 0.0
) -> FloatArray:
    """Return what kappa is for a PABAK at given indices: (PABAK - PI² + BI²) / (1 - PI² + BI²).

    With one index set to 0 this takes that index's effect *out of kappa*: PI = 0 leaves a value near PABAK. The
    published figures use the other direction, `pabak_from_kappa`. Undefined (nan) where PI is 1 or -1.

    References
    ----------
    T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46.

    Examples
    --------
    >>> round(float(kappa_from_pabak(0.7, 0.75, -0.05)), 4)
    0.3182
    """
    prevalence, bias = _square(prevalence_index), _square(bias_index)
    shift = bias - prevalence
    return plain(ratio(np.asarray(pabak, dtype=np.float64) + shift, np.asarray(1.0 + shift)))


def pabak_from_kappa(
    kappa: npt.ArrayLike, prevalence_index: npt.ArrayLike = 0.0, bias_index: npt.ArrayLike = 0.0
) -> FloatArray:
    """Return what PABAK is for a kappa at given indices: kappa (1 - PI² + BI²) + PI² - BI².

    With one index set to 0 this *adds only the other correction to kappa*: BI = 0 gives the prevalence-adjusted kappa
    ("PAK") and PI = 0 the bias-adjusted kappa ("BAK") of the published figures.

    Examples
    --------
    >>> round(float(pabak_from_kappa(0.318182, 0.75, -0.05)), 4)
    0.7
    """
    value = np.asarray(kappa, dtype=np.float64)
    return plain(value + (1.0 - value) * (_square(prevalence_index) - _square(bias_index)))


def pabak_minus_kappa(kappa: npt.ArrayLike, prevalence_index: npt.ArrayLike, bias_index: npt.ArrayLike) -> PabakParts:
    """Return the parts of PABAK - kappa = (1 - kappa)(PI² - BI²): (1 - kappa) PI² and -(1 - kappa) BI².

    Examples
    --------
    >>> parts = pabak_minus_kappa(0.318182, 0.75, -0.05)
    >>> [round(float(part), 4) for part in parts]
    [0.3835, -0.0017]
    """
    rest = 1.0 - np.asarray(kappa, dtype=np.float64)
    return PabakParts(plain(rest * _square(prevalence_index)), plain(-rest * _square(bias_index)))


def _square(index: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.square(np.asarray(index, dtype=np.float64)))
