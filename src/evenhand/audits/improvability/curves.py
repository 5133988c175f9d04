"""The test of one split: p-values of its components over all margins, and power by number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.stats import improvability as stats
from evenhand.stats.types import FloatArray

Scenario = Literal["found", "planned"]
SCENARIOS: tuple[Scenario, ...] = ("found", "planned")
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The numbers of rows for which power is computed, as multiples of the available rows."""
_STEP, _COARSE = 0.001, 0.01


class Margins(NamedTuple):
    """The margins at which components are tested, in rising order from 0."""

    accuracy: FloatArray
    fairness: FloatArray

    def of(self, goal: stats.Goal) -> FloatArray:
        """Return the margins of a goal."""
        return self.fairness if goal == "fairness" else self.accuracy


def make_margins(requested: tuple[float, ...], *, coarse: bool, higher: bool) -> Margins:
    """Return a grid of margins over the whole range, including the requested margins.

    If higher accuracy is better, it can more than double. A gap or an error rate can shrink by at most 100%.

    Examples
    --------
    >>> grid = make_margins((0.0, 0.1255), coarse=False, higher=True)
    >>> grid.fairness.size, float(grid.accuracy[-1])
    (1001, 1.999)
    """
    step = _COARSE if coarse else _STEP
    ends = (2.0 if higher else 1.0, 1.0)
    grids = [np.round(np.arange(0, end - step / 2, step), 6) for end in ends]
    return Margins(*(np.unique(np.concatenate([grid, requested])) for grid in grids))


@dataclass(frozen=True, eq=False)
class Curves:
    """A number for each component and margin; the first margin is 0.

    Parameters
    ----------
    accuracy : (components, margins) the numbers for each group, or for all people.
    fairness : (utilities, margins) the numbers for each fairness utility.
    """

    accuracy: FloatArray
    fairness: FloatArray

    def of(self, goal: stats.Goal, *, lowest: bool = False) -> FloatArray:
        """Return the largest (or smallest) number of all components at each margin of a goal."""
        return np.asarray((np.min if lowest else np.max)(self.parts(goal), axis=0))

    def parts(self, goal: stats.Goal) -> FloatArray:
        """Return all components' numbers at each margin of a goal (components, margins)."""
        wanted = range(len(self.accuracy)) if goal == "joint_accuracy" else (goal,)
        size = (self.fairness if goal == "fairness" else self.accuracy).shape[1]
        accuracy = [row if a in wanted else np.full(size, row[0]) for a, row in enumerate(self.accuracy)]
        fairness = [row if goal == "fairness" else np.full(size, row[0]) for row in self.fairness]
        return np.stack([*accuracy, *fairness])


def p_curves(test: stats.SplitTest, margins: Margins) -> Curves:
    """Return the p-values of a test's components.

    If relative changes of accuracy are undefined, the p-values are 1 at margins above 0.
    """
    accuracy = np.stack([_accuracy(test, a, margins.accuracy) for a in range(len(test.accuracy_contrasts))])
    fairness = np.stack([test.fairness_p(f, margins.fairness) for f in range(len(test.worst))])
    return Curves(accuracy, fairness)


def _accuracy(test: stats.SplitTest, component: int, margins: FloatArray) -> FloatArray:
    if not shares_defined(test):
        return np.where(margins == 0, test.accuracy_p(component, np.zeros(1))[0], 1.0)
    return test.accuracy_p(component, margins)


def shares_defined(test: stats.SplitTest) -> bool:
    """Return whether the status quo's accuracy is not negative, so that relative improvements are defined."""
    judged = slice(-1, None) if test.criteria.accuracy_of == "everyone" else slice(0, -1)
    return bool((test.draws.estimate[judged, 0, 0] >= 0).all())


def z_curves(test: stats.SplitTest, margins: Margins) -> Curves:
    """Return each component's distance from its null in standard errors, by the delta method.

    Undefined distances are -inf.

    The draws must include their variances.
    """
    better = 1.0 if test.criteria.accuracy.better == "higher" else -1.0
    accuracy = [_excess(test, contrast, 1.0 + better * margins.accuracy) for contrast in test.accuracy_contrasts]
    fairness = [
        np.min([_excess(test, contrast, 1.0 - margins.fairness) for contrast in contrasts], axis=0)
        for contrasts in test.fairness_contrasts
    ]
    return Curves(np.stack(accuracy), np.stack(fairness))


def _excess(test: stats.SplitTest, contrast: stats.Contrast, x: FloatArray) -> FloatArray:
    assert test.draws.spread is not None  # noqa: S101
    with np.errstate(all="ignore"):
        z = contrast.at(test.draws.estimate, x) / np.sqrt(contrast.variance(test.draws.spread, x))
    return np.nan_to_num(np.asarray(z), nan=-np.inf, posinf=np.inf, neginf=-np.inf)


@dataclass(frozen=True, eq=False)
class Power:
    """The power in one split, for the estimated and the planned improvement.

    Parameters
    ----------
    curves : the power by scenario, as arrays over the numbers of rows.
    rows : the total number of rows for the required power by scenario; inf if no number suffices.
    improved : whether every component exceeds its null on the test rows, by any amount.
    """

    curves: Mapping[Scenario, FloatArray]
    rows: Mapping[Scenario, float]
    improved: bool


def split_power(test: stats.SplitTest, spec: ImprovabilitySpec, level: float, train: float) -> Power:
    """Return the power of a signed fairness test at the smallest requested margin, by number of rows.

    `level` is the level of decisions, adjusted for all splits and candidates. `train` is the share of rows not used
    for testing. If the pair of groups is not named, the test is adjusted for the number of pairs.
    """
    margin, plan, rows = min(spec.test.margins), spec.plan, test.draws.rows
    pairs = 1 if test.direction == "named" else math.comb(test.draws.groups, 2)
    noise = stats.deviations(test, fairness=margin)
    effects: dict[Scenario, FloatArray] = {
        "found": stats.component_values(test, test.draws.estimate[np.newaxis], fairness=margin)[0],
        "planned": stats.planned_effects(test, plan.gain, plan.reduction, fairness=margin),
    }
    sizes = rows * np.array(SIZES)
    return Power(
        {name: stats.power_curve(effect, noise, rows, sizes, level / pairs) for name, effect in effects.items()},
        {
            name: stats.sample_size(effect, noise, rows, level=level / pairs, power=plan.power, train=train)
            for name, effect in effects.items()
        },
        bool((effects["found"] > 0).all()),
    )


def component_changes(test: stats.SplitTest, values: FloatArray) -> FloatArray:
    """Return the rise in accuracy and the shrinkage of the gap (draws, components) for draws of values."""
    every = stats.component_values(test, values)
    accuracy = len(test.accuracy_contrasts)
    pairs = every[:, accuracy:].reshape(len(values), len(test.worst), -1)
    return np.concatenate([every[:, :accuracy], pairs.min(axis=2)], axis=1)
