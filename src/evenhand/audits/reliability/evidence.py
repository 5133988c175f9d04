"""Evidence on a gap: sufficient group sizes, limits at any confidence, and the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.audits.reliability.estimate import Simulated, centred, why_no_intervals, why_undefined_at
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import measures_harm
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.findings import without_kind
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.correlation import two_sided_p
from evenhand.stats.intervals import t_quantile
from evenhand.stats.reliability import (
    Curves,
    GapOverLevels,
    PeopleGap,
    curves,
    gap_of,
    pilot_variance,
    spread_of_runs,
)
from evenhand.stats.types import FloatArray

LEAST_PEOPLE, LEAST_IN_A_FOLD, LEAST_FOR_RATIOS = 50, 10, 20
"""The minimum group sizes, in total and per fold, for bands at single noise levels and for the test of ratios.

Few people do not show the bootstrap how skewed the effect of mistakes is. Kappa, ICC and similar metrics are ratios,
which are biased in small folds, so they need more people there than means over people. No fold may have less than three
quarters as many. The mean gap of a metric that is a mean over people is tested with any number of people.
"""


def least_in_a_fold(metric: str) -> int:
    """Return the minimum number of people per fold that a group needs for a metric's band."""
    return LEAST_IN_A_FOLD if measures_harm(metric) else LEAST_FOR_RATIOS


def too_few(status: Message) -> Message | None:
    """Return a clause that names the group too small for a test.

    Return None if the status has another reason.
    """
    why = without_kind(status)
    who = why.args.get("who") if why.id == "reliability.few_people" else None
    return who if isinstance(who, Message) else None


def _size_reason(simulated: Simulated, group: int, metric: str) -> Message | None:
    """Return the reason why a group is too small for a test, or None if it is large enough."""
    sizes, label = simulated.draws.sizes[:, group], simulated.label(group)
    if sizes.sum() < LEAST_PEOPLE:
        who = say("has_people", group=label, n=int(sizes.sum()))
        return shared("no_interval", why=say("few_people", who=who, least=LEAST_PEOPLE))
    least = least_in_a_fold(metric)
    if len(sizes) > 1 and (sizes.mean() < least or sizes.min() < 0.75 * least):  # folds differ by one person at most
        who = say("has_people_in_a_fold", group=label, n=int(sizes.min()))
        return shared("no_interval", why=say("few_people", who=who, least=least))
    return None


def _pilot_reason(simulated: Simulated) -> Message | None:
    """Return the reason why the gaps' variation over pilots is unknown, or None if it is known or irrelevant."""
    pilot = simulated.mistakes.setting.pilot
    if pilot is None or not simulated.mistakes.learned_by_group or simulated.same_pilot is not None:
        return None
    return shared("no_interval", why=say("pilot_takes_replicates" if pilot.resample else "pilot_takes_resample"))


def _too_small(simulated: Simulated, metric: str, pair: tuple[int, int]) -> Message | None:
    """Return the reason why a pair of groups is too small for the bootstrap, or None if both are large enough."""
    return next((why for group in pair if (why := _size_reason(simulated, group, metric))), None)


# A gap at every level -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelGaps:
    """The bootstrapped gap of two groups, and the reason if it may not be tested.

    Parameters
    ----------
    gap : the gap at every noise level above 0, and its average over them.
    levels : the noise levels above 0.
    sd : (levels + 1,) standard deviations between replicates.
    untested : the reason why the gap is not tested, or None.
    no_interval : the reason why a number has no interval (or None), for each level and then for the average.
    """

    gap: GapOverLevels
    levels: FloatArray
    sd: FloatArray
    untested: Message | None
    no_interval: list[Message | None]

    def clear_at(self, level: float) -> bool:
        """Return whether the interval of the gap at a noise level excludes 0.

        If the level is not among `levels`, the interval of the average decides.
        """
        gap, positions = self.gap, np.flatnonzero(self.levels == level)
        position = int(positions[0]) if positions.size else -1
        low, high = gap.average_low, gap.average_high
        if positions.size:
            low, high = gap.simultaneous.low[position], gap.simultaneous.high[position]
        return self.untested is None and self.no_interval[position] is None and bool(low > 0 or high < 0)


def level_gaps(
    simulated: Simulated, name: str, pair: tuple[int, int], mean: MeanGap, spec: ReliabilitySpec
) -> LevelGaps:
    """Return the gap of a metric (first group minus second) at every noise level.

    Where the limits of the mean gap are wider than the bootstrap's, the limits at single levels are widened, too.
    """
    curve = curves(simulated.experiment, simulated.runs, name)
    levels, runs = curve.levels[curve.levels > 0], _gap_runs(curve, *pair)
    draws = centred(simulated.draws.gap(name, *pair), runs.mean(axis=0))
    freedom = simulated.draws.freedom(name, *pair)
    limits = mean.limits(spec.confidence) if mean.unknown is None else None
    return LevelGaps(
        gap_of(draws, spec.confidence, freedom=freedom, levels=levels, mean_limits=limits),
        levels,
        spread_of_runs(runs),
        _too_small(simulated, name, pair) or _pilot_reason(simulated),
        why_no_intervals(draws),
    )


def _gap_runs(curve: Curves, group: int, reference: int) -> FloatArray:
    """Return the gaps at levels above 0 and then their mean, with shape (replicates, levels + 1)."""
    above = curve.levels > 0
    runs = curve.values[:, above, group] - curve.values[:, above, reference]
    return np.concatenate([runs, runs.mean(axis=1, keepdims=True)], axis=1)


# The mean gap ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanGap:
    """A gap averaged over noise levels (first group minus second), with its limits and test.

    Parameters
    ----------
    value : the gap.
    unknown : the reason why the gap has no value or no limits, or None.
    limits : a function that returns the limits at a confidence.
    p_value : the smallest alpha at which the limits of confidence 1 - alpha exclude 0; nan without limits.
    stderr, freedom : the standard error and degrees of freedom of a Student's t test; nan for other tests.
    rests_on : the basis of the limits and the test.
    """

    value: float
    unknown: Message | None
    limits: Callable[[float], tuple[float, float]] = lambda _: (float("nan"), float("nan"))
    p_value: float = float("nan")
    stderr: float = float("nan")
    freedom: float = float("nan")
    rests_on: str | None = None


def mean_gap(simulated: Simulated, name: str, pair: tuple[int, int], spec: ReliabilitySpec) -> MeanGap:
    """Return the mean gap of two groups, computed from values by person."""
    curve = curves(simulated.experiment, simulated.runs, name)
    found = simulated.compared.get((name, min(pair), max(pair)))
    if found is None:
        return MeanGap(value=float("nan"), unknown=_why_undefined(curve, pair))
    found = found if pair[0] < pair[1] else found.swapped()
    why = _pilot_reason(simulated)
    if not measures_harm(name):
        draws = simulated.draws.gap(name, *pair)
        why = why or _too_small(simulated, name, pair) or why_no_intervals(draws)[-1]
    if why is not None:
        return MeanGap(value=found.value, unknown=why)
    if not simulated.mistakes.learned_by_group:
        return MeanGap(
            value=found.value,
            unknown=None,
            limits=found.limits,
            p_value=found.p_value,
            stderr=found.stderr,
            rests_on="few people" if found.few else found.rests_on,
        )
    stderr, freedom = _with_pilot(simulated, name, pair, found, spec.confidence)

    def limits(confidence: float) -> tuple[float, float]:
        half = float(t_quantile(freedom, confidence)) * stderr
        return found.value - half, found.value + half

    return MeanGap(
        value=found.value,
        unknown=None,
        limits=limits,
        p_value=float(two_sided_p(found.value / stderr if stderr > 0 else 0.0, freedom)),
        stderr=stderr,
        freedom=freedom,
        rests_on="pilot",
    )


def _with_pilot(
    simulated: Simulated, name: str, pair: tuple[int, int], found: PeopleGap, confidence: float
) -> tuple[float, float]:
    """Return the standard error and degrees of freedom of a gap with a pilot learned by group.

    The variance of random mistakes can be subtracted or left in; the choice with the shorter interval is used.
    """
    runs, fixed = (
        _gap_runs(curves(simulated.experiment, done, name), *pair)
        for done in (simulated.runs, simulated.same_pilot or simulated.runs)
    )
    people = float(getattr(simulated.mistakes.setting.pilot, "enough", np.inf))
    choices = []
    for pilot in (pilot_variance(runs, other, people) for other in (fixed, None)):
        joint = pilot.freedom(-1, found.stderr**2, found.freedom)
        stderr = float(np.sqrt(found.stderr**2 + pilot.value[-1]))
        choices.append((float(t_quantile(joint, confidence)) * stderr, stderr, joint))
    return min(choices)[1:]


def _why_undefined(curve: Curves, groups: tuple[int, int]) -> Message:
    levels = np.flatnonzero(curve.levels > 0)
    lost = [why for level in levels if (why := why_undefined_at(curve, int(level), groups))]
    why = without_kind(lost[0]) if lost else say("replicate_without_value")
    return shared("undefined", why=say("at_levels", lost=len(lost), levels=len(levels), why=why))
