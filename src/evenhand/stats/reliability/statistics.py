"""The statistics of a simulation by name, each a function of its sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.errors import require_choice
from evenhand.stats.agreement import (
    COUNT_STATISTICS,
    SCORE_STATISTICS,
    BinaryCounts,
    Undefined,
    pabak_minus_kappa,
    pooled_spread,
)
from evenhand.stats.agreement.undefined import Reasons, first_reason
from evenhand.stats.noise import Experiment, PairSums
from evenhand.stats.types import FloatArray


def _prevalence_part(counts: BinaryCounts) -> FloatArray:
    return pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index()).prevalence


def _bias_part(counts: BinaryCounts) -> FloatArray:
    return pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index()).bias


PARTS: dict[str, Callable[[BinaryCounts], FloatArray]] = {"prevalence_part": _prevalence_part, "bias_part": _bias_part}
"""What prevalence and bias add to PABAK - kappa; they add up to it, also on average."""

SPREAD_ADJUSTED = "icc_spread"
STATISTICS: tuple[str, ...] = (*COUNT_STATISTICS, *PARTS, *SCORE_STATISTICS, SPREAD_ADJUSTED)
RELIABILITY = ("kappa", "pabak", "ac1", "alpha", "icc_a1", "concordance", SPREAD_ADJUSTED)
"""Those in which more is more reliable, so that a gap has a direction."""


def statistic(name: str, sums: PairSums, spread: FloatArray | None = None) -> FloatArray:
    """Return a statistic of sums, nan where it is undefined.

    Parameters
    ----------
    name
        One of `STATISTICS`.
    sums
        Of any shape.
    spread
        V of the spread-adjusted ICC, of a shape that broadcasts: `fold_spread`. Needed for 'icc_spread' only.

    Examples
    --------
    >>> one = np.array(1.0)
    >>> sums = PairSums(4 * one, 0 * one, 2 * one, one, one, 2 * one, one, 2 * one, one, one)
    >>> float(statistic("pabak", sums)), float(statistic("icc_spread", sums, np.array(0.5)))
    (0.5, 0.5)
    """
    require_choice("statistic", name, STATISTICS)
    if name in COUNT_STATISTICS:
        return COUNT_STATISTICS[name](sums.counts())
    if name in PARTS:
        return PARTS[name](sums.counts())
    if name in SCORE_STATISTICS:
        return SCORE_STATISTICS[name](sums.moments())
    return sums.moments().spread_adjusted(np.asarray(np.nan if spread is None else spread))


def why_undefined(name: str, sums: PairSums, spread: FloatArray | None = None) -> Reasons:
    """Return why a statistic of sums is nan, "" where it is not; parameters as for `statistic`.

    Examples
    --------
    >>> zero = np.array(0.0)
    >>> sums = PairSums(*[zero] * 10)
    >>> str(why_undefined("kappa", sums))
    'there is nobody to rate'
    """
    require_choice("statistic", name, STATISTICS)
    if name in COUNT_STATISTICS or name in PARTS:
        return sums.counts().why_undefined("kappa" if name in PARTS else name)
    if name in SCORE_STATISTICS:
        return sums.moments().why_undefined(name)
    flat = np.asarray(spread) == 0 if spread is not None else np.asarray(True)
    return first_reason([(np.asarray(sums.n == 0), Undefined.NOBODY), (flat, Undefined.NO_SPREAD)])


def fold_spread(experiment: Experiment) -> FloatArray:
    """Return (folds, 1) V = 2 var(score) of everybody in each fold, without mistakes: one spread for all groups.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem
    >>> people = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> model = Linear(np.ones(1), 0.0, link="identity")
    >>> fold_spread(Experiment(people, (model,), (NoiseItem((0,), Flip()),), np.array([0, 0, 1, 1]))).tolist()
    [[0.5]]
    """
    score, fold = experiment.base.score, experiment.base.fold
    return np.array([[float(pooled_spread(score[fold == number]))] for number in range(len(experiment.predictors))])
