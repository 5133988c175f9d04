"""Why a number of the reliability audit has no value or no interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.stats.bootstrap import Draws
from evenhand.stats.reliability import Curves
from evenhand.stats.types import FloatArray


def centred(draws: Draws, value: FloatArray) -> Draws:
    """Return draws around the value of all replicates; the bootstrap itself uses fewer of them."""
    return Draws(value, draws.values + (value - draws.estimate))


def why_no_intervals(draws: Draws) -> list[str | None]:
    """Return for each statistic of resamples why it has no interval, None where it has one."""
    stderr, undefined, resamples = draws.stderr(), draws.undefined, len(draws.values)
    rounding = 1e-13 * np.abs(np.where(np.isfinite(draws.values), draws.values, 0.0)).max(axis=0)
    return [
        f"no interval: it is undefined in {gone:,} of {resamples:,} resamples of people"
        if np.isnan(spread)
        else "no interval: no resample of people differs"
        if spread <= least
        else None
        for spread, gone, least in zip(stderr.tolist(), undefined.tolist(), rounding.tolist(), strict=True)
    ]


def why_undefined_at(found: Curves, at: int, groups: Sequence[int]) -> str | None:
    """Return why a statistic of some groups has no value at a noise level, None where it has one."""
    gone = [group for group in groups if np.isnan(found.mean[at, group])]
    return f"undefined: {found.reasons[at, gone[0]] or 'no value'}" if gone else None
