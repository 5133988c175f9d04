"""Combining splits: random splits of the rows, and one decision from their p-values."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, require_choice
from evenhand.stats.types import BoolArray, FloatArray, IntArray

Rule = Literal["median", "exchangeable"]
RULES: tuple[Rule, ...] = ("median", "exchangeable")


class Split(NamedTuple):
    """The rows that choose the candidate, and the rows that test it."""

    train: IntArray
    test: IntArray


def random_splits(rows: int, splits: int, train: float, rng: np.random.Generator) -> tuple[Split, ...]:
    """Return independent random splits in a fixed order: floor(train * rows) rows to train, the others to test.

    Examples
    --------
    >>> [split.train.size for split in random_splits(100, 2, 2 / 3, np.random.default_rng(0))]
    [66, 66]
    """
    if splits < 1:
        raise ConfigError(f"`splits` must be at least 1; got {splits!r}.")
    if not 0.0 < train < 1.0:
        raise ConfigError(f"`train` must be between 0 and 1; got {train!r}.")
    size = int(np.floor(train * rows + 1e-9))
    if not 0 < size < rows:
        raise ConfigError(f"{rows} rows cannot be split with a training share of {train:g}: one part is empty.")
    drawn = (rng.permutation(rows) for _ in range(splits))
    return tuple(Split(np.sort(order[:size]), np.sort(order[size:])) for order in drawn)


class Combined(NamedTuple):
    """The decision from several splits.

    Attributes
    ----------
    p
        The combined p-value: the smallest alpha at which the null is rejected (for the median rule the limit of such).
    median
        The median of the splits' p-values.
    rejected
        Whether the null is rejected at alpha.
    """

    p: FloatArray
    median: FloatArray
    rejected: BoolArray


def combine_splits(p: npt.ArrayLike, alpha: float, rule: Rule = "median") -> Combined:
    """Return one decision of level alpha from the p-values of K splits.

    A single split rejects when p < alpha. With more, "median" rejects when the median p < alpha / 2 (corollary 1 of the
    reference; very conservative, because splits overlap). "exchangeable" rejects when for some k <= K at least half of
    p_1 .. p_k are at most alpha / 2: valid for splits drawn independently in a fixed order, and it rejects whenever the
    median rule does.

    Parameters
    ----------
    p
        (K, ...) p-values in the order in which the splits were drawn; further axes, such as margins, are kept.
    alpha
        The level.
    rule
        How to combine.

    References
    ----------
    Auerbach, Liang, Tabord-Meehan and Okumura (2024), corollary 1. M. Gasparin, R. Wang and A. Ramdas (2025), Combining
    exchangeable p-values, Proceedings of the National Academy of Sciences 122.

    Examples
    --------
    >>> splits = [0.0524, 0.0530, 0.0223, 0.0312, 0.0158]
    >>> combine_splits(splits, 0.10)
    Combined(p=array(0.0624), median=array(0.0312), rejected=array(True))
    >>> [bool(combine_splits([0.04, 0.06, 0.20], 0.10, rule).rejected) for rule in RULES]
    [False, True]
    """
    require_choice("rule", rule, RULES)
    if not 0.0 < alpha < 1.0:
        raise ConfigError(f"`alpha` must be between 0 and 1; got {alpha!r}.")
    values = np.asarray(p, dtype=np.float64)
    if values.ndim == 0 or len(values) == 0 or not np.all((values >= 0) & (values <= 1)):
        raise ConfigError("`p` must hold one p-value between 0 and 1 for each split.")
    median = np.asarray(np.median(values, axis=0))
    if len(values) == 1:
        return Combined(values[0], median, np.asarray(values[0] < alpha))
    if rule == "median":
        return Combined(np.asarray(np.minimum(1.0, 2.0 * median)), median, np.asarray(median < alpha / 2))
    halves = [np.sort(values[:k], axis=0)[(k + 1) // 2 - 1] for k in range(1, len(values) + 1)]
    least = np.min(halves, axis=0)
    return Combined(np.asarray(np.minimum(1.0, 2.0 * least)), median, np.asarray(least <= alpha / 2))
