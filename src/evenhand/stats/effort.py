"""Effort scores from trajectories, and an aggregate score of the total that ignores the trajectory's shape.

Reference: Nguyen, Xu, Che et al., Effort-aware fairness. A person has a trajectory x_0 .. x_{T-1} (income per
year, arrests per year) and an inertia m > 0 (disadvantage outside their control).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import FloatArray, IntArray

TrajectoryMeasure = Literal["acceleration", "slope", "theil_sen", "last_minus_first"]
MEASURES: tuple[TrajectoryMeasure, ...] = ("acceleration", "slope", "theil_sen", "last_minus_first")


def acceleration(x: ArrayLike, times: ArrayLike | None = None) -> FloatArray:
    """Return the mean acceleration of each person's cumulative total.

    With X_t = sum_{s<=t} x_s, h_t the gap between the time stamps t and t+1, V_t = (X_{t+1} - X_t) / h_t and A_t =
    (V_{t+1} - V_t) / ((h_t + h_{t+1}) / 2), it is the mean of A_t over t. With unit steps it telescopes to (x_{T-1} -
    x_1) / (T - 2), so only two of the T values matter, and the first value never does.

    Parameters
    ----------
    x : values, shape (people, T) with T >= 3.
    times : T rising time stamps; by default 0, 1, 2, ...

    Examples
    --------
    >>> acceleration([[5.0, 1.0, 2.0, 4.0]])
    array([1.5])
    """
    values = _trajectories(x)
    if times is None:  # telescoped: equal values give bit-identical efforts
        return np.asarray((values[:, -1] - values[:, 1]) / (values.shape[1] - 2), dtype=np.float64)
    gaps = np.diff(_stamps(times, values.shape[1]))
    velocity = values[:, 1:] / gaps
    steps = np.diff(velocity, axis=1) / ((gaps[:-1] + gaps[1:]) / 2)
    return np.asarray(steps.mean(axis=1), dtype=np.float64)


def trajectory_measure(
    x: ArrayLike, measure: TrajectoryMeasure = "acceleration", times: ArrayLike | None = None
) -> FloatArray:
    """Return a measure of each person's trajectory, in units per step.

    Parameters
    ----------
    x : values, shape (people, T) with T >= 3.
    measure : the published 'acceleration', the least-squares 'slope', the median of all pairwise slopes
        ('theil_sen'), or 'last_minus_first' over the time between them.
    times : T rising time stamps; by default 0, 1, 2, ...

    References
    ----------
    P. K. Sen (1968), Estimates of the regression coefficient based on Kendall's tau, JASA 63.

    Examples
    --------
    >>> [float(trajectory_measure([[1.0, 2.0, 9.0, 4.0]], m)[0]) for m in MEASURES]
    [1.0, 1.6, 1.0, 1.0]
    """
    if measure == "acceleration":
        return acceleration(x, times)
    values = _trajectories(x)
    stamps = _stamps(times, values.shape[1])
    if measure == "slope":
        centred = stamps - stamps.mean()
        return np.asarray((values * centred).sum(axis=1) / (centred**2).sum(), dtype=np.float64)
    if measure == "last_minus_first":
        return np.asarray((values[:, -1] - values[:, 0]) / (stamps[-1] - stamps[0]), dtype=np.float64)
    i, j = np.triu_indices(len(stamps), 1)
    return np.asarray(np.median((values[:, j] - values[:, i]) / (stamps[j] - stamps[i]), axis=1), dtype=np.float64)


def linear_weights(measure: TrajectoryMeasure, steps: int, times: ArrayLike | None = None) -> FloatArray | None:
    """Return c with measure(x) = sum_t c_t x_t, or None for the nonlinear 'theil_sen'.

    A data engine can compute a linear measure while it counts; see `trajectory_measure`.

    Examples
    --------
    >>> linear_weights("acceleration", 4)
    array([ 0. , -0.5,  0. ,  0.5])
    """
    if measure == "theil_sen":
        return None
    return trajectory_measure(np.eye(steps), measure, times)


def effort_scores(
    x: ArrayLike,
    inertia: ArrayLike = 1.0,
    desirable: bool = True,
    unit: float = 1.0,
    times: ArrayLike | None = None,
    *,
    measure: TrajectoryMeasure = "acceleration",
) -> FloatArray:
    """Return each person's effort E = m sigmoid(A), or m (1 - sigmoid(A)) if less is better.

    Parameters
    ----------
    x : values, shape (people, T) with T >= 3.
    inertia : m > 0, one number or one per person.
    desirable : whether more of the feature is better (income) or worse (arrests).
    unit : x is divided by this unit before the sigmoid (the paper: $10,000 for income, 1 for arrests).
    times : T rising time stamps; by default 0, 1, 2, ...
    measure : the measure of the trajectory; 'acceleration' in the paper.

    Examples
    --------
    >>> effort_scores([[0.0, 2.0, 2.0]], inertia=0.5)
    array([0.25])
    """
    m = np.asarray(inertia, dtype=np.float64)
    if not np.all(np.isfinite(m) & (m > 0)):
        raise EvenhandError(
            "`inertia` must be above 0 and finite; got {flat:g}.", flat=m[~(np.isfinite(m) & (m > 0))].flat[0]
        )
    if not (np.isfinite(unit) and unit > 0):
        raise EvenhandError("`unit` must be above 0; got {unit:g}.", unit=unit)
    with np.errstate(over="ignore"):
        measured = _trajectories(x) / unit
    if not np.isfinite(measured).all():
        raise EvenhandError("`unit` is too small for these values; got {unit:g}.", unit=unit)
    change = trajectory_measure(measured, measure, times)
    return np.asarray(m * _sigmoid(change if desirable else -change), dtype=np.float64)


def aggregate_scores(x: ArrayLike, scale: float) -> FloatArray:
    """Return each person's aggregate S = 2 sigmoid(sum_t x_t / scale) - 1.

    Examples
    --------
    >>> aggregate_scores([[50_000.0, 60_000.0, 90_000.0]], scale=200_000).round(4)
    array([0.4621])
    """
    if not (np.isfinite(scale) and scale > 0):
        raise EvenhandError("`scale` must be above 0; got {scale:g}.", scale=scale)
    with np.errstate(over="ignore"):  # an infinite total has aggregate 1
        total = _trajectories(x, least=1).sum(axis=1) / scale
    return np.asarray(np.tanh(total / 2), dtype=np.float64)  # 2 sigmoid(v) - 1, without cancellation


def effort_bins(effort: ArrayLike, width: float = 0.1) -> IntArray:
    """Return the number of each effort's bin, which includes its lower bound: floor(round(E / width, 9)).

    The rounding puts an effort of 0.3 into the bin that starts at 0.3, although 0.3 / 0.1 is below 3 in binary.

    Examples
    --------
    >>> effort_bins([0.3, 0.2999, 0.0])
    array([3, 2, 0])
    """
    if not 0 < width <= 1:
        raise EvenhandError("`width` must be above 0 and at most 1; got {width:g}.", width=width)
    return np.floor(np.round(np.asarray(effort, dtype=np.float64) / width, 9)).astype(np.int64)


def _sigmoid(value: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * value)), dtype=np.float64)  # never overflows


def _trajectories(x: ArrayLike, least: int = 3) -> FloatArray:
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < least:
        raise EvenhandError(
            "`x` must have one row per person and at least {least} time steps; got shape {shape}.",
            least=least,
            shape=values.shape,
        )
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise EvenhandError(
            "`x` must be finite; row {bad} holds {values}.", bad=bad, values=values[bad][~np.isfinite(values[bad])][0]
        )
    return values


def _stamps(times: ArrayLike | None, steps: int) -> FloatArray:
    if times is None:
        return np.arange(steps, dtype=np.float64)
    stamps = np.asarray(times, dtype=np.float64)
    if stamps.shape != (steps,) or not np.all(np.diff(stamps) > 0):
        raise EvenhandError(
            "`times` must be {steps} rising time stamps; got {tolist}.", steps=steps, tolist=stamps.tolist()
        )
    return stamps
