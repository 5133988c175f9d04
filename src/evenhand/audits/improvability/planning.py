"""The power of the test: for the improvement that was found, and for one that was planned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.stats.improvability import (
    SplitTest,
    component_values,
    deviations,
    planned_effects,
    power_curve,
    sample_size,
)
from evenhand.stats.types import FloatArray

SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Numbers of rows for which power is worked out, as multiples of those at hand."""


@dataclass(frozen=True, eq=False)
class Planned:
    """Power in one split.

    Parameters
    ----------
    found, wanted : (sizes,) power for the improvement found here, and for the one that was planned.
    found_rows, wanted_rows : rows in all that give the power wanted; inf where none do.
    improved : whether every component exceeds its null on the test rows, however little.
    """

    found: FloatArray
    wanted: FloatArray
    found_rows: float
    wanted_rows: float
    improved: bool


def plan(test: SplitTest, spec: ImprovabilitySpec, rows: int) -> Planned:
    """Return the power of one split's signed test of fairness at the smallest margin asked for, by number of rows.

    Its level is the one at which decisions are made, with all splits and candidates allowed for.
    """
    margin = min(spec.delta)
    noise = deviations(test, fairness=margin)
    effect = component_values(test, test.draws.estimate[np.newaxis], fairness=margin)[0]
    wanted = planned_effects(test, spec.gain, spec.reduction, fairness=margin)
    sizes = rows * np.array(SIZES)
    train = spec.train
    return Planned(
        found=power_curve(effect, noise, rows, sizes, spec.level),
        wanted=power_curve(wanted, noise, rows, sizes, spec.level),
        found_rows=sample_size(effect, noise, rows, spec.level, spec.power, train),
        wanted_rows=sample_size(wanted, noise, rows, spec.level, spec.power, train),
        improved=bool((effect > 0).all()),
    )
