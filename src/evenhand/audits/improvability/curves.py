"""P-values of all components of one split, over all margins; every target's curve follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.stats.improvability import Contrast, Goal, SplitTest
from evenhand.stats.types import FloatArray

_STEP, _COARSE = 0.001, 0.01


class Margins(NamedTuple):
    """The margins at which components are tested, rising from 0."""

    accuracy: FloatArray
    fairness: FloatArray

    def of(self, goal: Goal) -> FloatArray:
        """Return the margins of a goal."""
        return self.fairness if goal == "fairness" else self.accuracy


def make_margins(deltas: tuple[float, ...], *, coarse: bool, higher: bool) -> Margins:
    """Return a grid over the whole range, with the margins asked for among them.

    Accuracy that is better when higher may more than double; a gap or an error rate cannot shrink by more than all.

    Examples
    --------
    >>> grid = make_margins((0.0, 0.1255), coarse=False, higher=True)
    >>> grid.fairness.size, float(grid.accuracy[-1])
    (1001, 1.999)
    """
    step = _COARSE if coarse else _STEP
    ends = (2.0 if higher else 1.0, 1.0)
    grids = [np.round(np.arange(0, end - step / 2, step), 6) for end in ends]
    return Margins(*(np.unique(np.concatenate([grid, deltas])) for grid in grids))


@dataclass(frozen=True, eq=False)
class Curves:
    """One number for each component and margin; the first margin is 0.

    Parameters
    ----------
    accuracy : (A, D) for each group, or for everyone.
    fairness : (F, D) for each fairness utility.
    """

    accuracy: FloatArray
    fairness: FloatArray

    def of(self, goal: Goal, *, lowest: bool = False) -> FloatArray:
        """Return the largest (or lowest) of all components at each margin of a goal."""
        return np.asarray((np.min if lowest else np.max)(self.parts(goal), axis=0))

    def parts(self, goal: Goal) -> FloatArray:
        """Return (A + F, D) all components at each margin of a goal, which applies to some of them."""
        wanted = range(len(self.accuracy)) if goal == "joint_accuracy" else (goal,)
        size = (self.fairness if goal == "fairness" else self.accuracy).shape[1]
        own = [row if a in wanted else np.full(size, row[0]) for a, row in enumerate(self.accuracy)]
        gaps = [row if goal == "fairness" else np.full(size, row[0]) for row in self.fairness]
        return np.stack([*own, *gaps])


def p_curves(test: SplitTest, margins: Margins) -> Curves:
    """Return the p-values of a test's components; where a share of accuracy means nothing, 1 beyond the margin of 0."""
    own = np.stack([_accuracy(test, a, margins.accuracy) for a in range(len(test.accuracy_contrasts))])
    gaps = np.stack([test.fairness_p(f, margins.fairness) for f in range(len(test.worst))])
    return Curves(own, gaps)


def _accuracy(test: SplitTest, which: int, deltas: FloatArray) -> FloatArray:
    if not shares_make_sense(test):
        return np.where(deltas == 0, test.accuracy_p(which, np.zeros(1))[0], 1.0)
    return test.accuracy_p(which, deltas)


def shares_make_sense(test: SplitTest) -> bool:
    """Tell whether the status quo's accuracy is positive, so that it can improve by a share of itself."""
    at = slice(-1, None) if test.criteria.accuracy_of == "everyone" else slice(0, -1)
    return bool((test.draws.estimate[at, 0, 0] >= 0).all())


def z_curves(test: SplitTest, margins: Margins) -> Curves:
    """Return how many standard errors each component is from its null, by the delta method; nan counts as far below.

    The draws must hold their spread.
    """
    better = 1.0 if test.criteria.accuracy.better == "higher" else -1.0
    own = [_z(test, contrast, 1.0 + better * margins.accuracy) for contrast in test.accuracy_contrasts]
    gaps = [
        np.min([_z(test, contrast, 1.0 - margins.fairness) for contrast in contrasts], axis=0)
        for contrasts in test.fairness_contrasts
    ]
    return Curves(np.stack(own), np.stack(gaps))


def _z(test: SplitTest, contrast: Contrast, x: FloatArray) -> FloatArray:
    assert test.draws.spread is not None  # noqa: S101
    with np.errstate(all="ignore"):
        z = contrast.at(test.draws.estimate, x) / np.sqrt(contrast.variance(test.draws.spread, x))
    return np.nan_to_num(np.asarray(z), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
