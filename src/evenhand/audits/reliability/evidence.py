"""The evidence on a gap: whether its groups are large enough, its limits at any confidence, its test."""

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
from evenhand.stats.agreement import COUNT_METRICS
from evenhand.stats.intervals import t_quantile, tail_share
from evenhand.stats.reliability import (
    Curves,
    GapOverLevels,
    bounded_difference,
    bounded_limits,
    bounded_p,
    curves,
    gap_of,
    pilot_variance,
    spread_of_runs,
)
from evenhand.stats.types import FloatArray

LEAST_PEOPLE, LEAST_IN_A_FOLD, LEAST_FOR_RATIOS = 50, 10, 20
"""The people of a group, in total and per fold, below which the bootstrap gives no interval, test or verdict.

Below them intervals miss and tests reject more often than their level: few people do not show how skewed the effect of
mistakes is. Kappa, ICC and similar metrics are ratios, which are biased in small folds, so they need more people there
than means over people. No fold may have less than three quarters as many. See the table of levels in
docs/methods/reliability.md.
"""

LEAST_DAMAGED, LEAST_MOVED = 5, 10
"""The effective number of people with damage to decisions, and to scores, that the bootstrap needs.

If a few people make most of it, other people of the group may make none, or twice as much, and the resamples, which
contain only these few, do not show that. The agreement audit requires as many.
"""

BOUNDED = "pabak"
"""The metric whose gap is one of means between 0 and 1, of shares of changed decisions: its limits hold for any number
of people, even if few are hurt."""


def least_in_a_fold(metric: str) -> int:
    """Return the people per fold that a test of a metric needs in a group."""
    return LEAST_IN_A_FOLD if measures_harm(metric) else LEAST_FOR_RATIOS


def too_few(status: Message) -> Message | None:
    """Return the group that is too small for a test, as a clause.

    None if another reason applies.
    """
    why = without_kind(status)
    who = why.args.get("who") if why.id == "reliability.few_people" else None
    return who if isinstance(who, Message) else None


def rests_on_few(status: Message) -> str | None:
    """Return the group whose damage is too concentrated for a test.

    None if another reason applies.
    """
    why = without_kind(status)
    return str(why.args["group"]) if why.id in ("reliability.rests_on", "reliability.rests_on_nobody") else None


def _size_reason(simulated: Simulated, group: int, metric: str) -> Message | None:
    """Return why a group is too small for a test, or None."""
    sizes, label = simulated.draws.sizes[:, group], simulated.label(group)
    if sizes.sum() < LEAST_PEOPLE:
        who = say("has_people", group=label, n=int(sizes.sum()))
        return shared("no_interval", why=say("few_people", who=who, least=LEAST_PEOPLE))
    least = least_in_a_fold(metric)
    if len(sizes) > 1 and (sizes.mean() < least or sizes.min() < 0.75 * least):  # folds differ by one person at most
        who = say("has_people_in_a_fold", group=label, n=int(sizes.min()))
        return shared("no_interval", why=say("few_people", who=who, least=least))
    return None


def _concentration_reason(simulated: Simulated, group: int, metric: str) -> Message | None:
    """Return why the damage to a group is too concentrated for a test, or None."""
    scores = metric not in COUNT_METRICS
    people, least = float(simulated.draws.rests_on[int(scores), group]), LEAST_MOVED if scores else LEAST_DAMAGED
    if people >= least:
        return None
    label = simulated.label(group)
    why = say("rests_on", group=label, people=people, least=least)
    return shared("no_interval", why=why if people else say("rests_on_nobody", group=label, least=least))


def _pilot_reason(simulated: Simulated) -> Message | None:
    """Return why the gaps' variation over pilots is unknown, or None if it is known or irrelevant."""
    pilot = simulated.mistakes.setting.pilot
    if pilot is None or not simulated.mistakes.learned_by_group or simulated.same_pilot is not None:
        return None
    return shared("no_interval", why=say("pilot_takes_replicates" if pilot.resample else "pilot_takes_resample"))


def _why_untested(simulated: Simulated, metric: str, pair: tuple[int, int]) -> Message | None:
    """Return why a gap of two groups is not tested by the bootstrap, or None."""
    few = next((why for group in pair if (why := _size_reason(simulated, group, metric))), None)
    return few or _pilot_reason(simulated)


# A gap at every level -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelGaps:
    """The gap of two groups by the bootstrap, and why it may not be tested.

    Parameters
    ----------
    gap : at every noise level above 0, and on average.
    levels : those noise levels.
    sd : (levels + 1,) standard deviations between replicates.
    untested : why it is not tested, or None.
    no_interval : why there is no interval, for each level, and last for the average.
    """

    gap: GapOverLevels
    levels: FloatArray
    sd: FloatArray
    untested: Message | None
    no_interval: list[Message | None]

    def clear_at(self, level: float) -> bool:
        """Tell whether the interval of the gap at a noise level excludes 0.

        Between levels, the average's interval decides.
        """
        gap, positions = self.gap, np.flatnonzero(self.levels == level)
        position = int(positions[0]) if positions.size else -1
        low, high = gap.average_low, gap.average_high
        if positions.size:
            low, high = gap.simultaneous.low[position], gap.simultaneous.high[position]
        return self.untested is None and self.no_interval[position] is None and bool(low > 0 or high < 0)


def level_gaps(simulated: Simulated, name: str, pair: tuple[int, int], spec: ReliabilitySpec) -> LevelGaps:
    """Return the gap of a metric between two groups, the first less the second."""
    curve = curves(simulated.experiment, simulated.runs, name)
    above = curve.levels > 0
    runs = _gap_runs(curve, *pair)
    draws = centred(simulated.draws.gap(name, *pair), runs.mean(axis=0))
    freedom = simulated.draws.freedom(name, *pair)
    least = simulated.draws.pooled_stderr(name, *pair)
    variance = float(np.fmax(draws.stderr()[-1], least)) ** 2
    more, freedom = _with_pilot(simulated, name, runs, pair=pair, variance=variance, freedom=freedom, spec=spec)
    unseen = simulated.draws.unseen(name, *pair)
    gap = gap_of(
        draws,
        spec.confidence,
        freedom=freedom,
        levels=curve.levels[above],
        least_stderr=least,
        more_variance=more,
        unseen=unseen,
    )
    rests = next((why for group in pair if (why := _concentration_reason(simulated, group, name))), None)
    return LevelGaps(
        gap,
        curve.levels[above],
        spread_of_runs(runs),
        _why_untested(simulated, name, pair),
        [why or rests for why in why_no_intervals(draws)],
    )


def _gap_runs(curve: Curves, group: int, reference: int) -> FloatArray:
    """Return (replicates, levels + 1) the gaps at levels above 0, and last their mean."""
    above = curve.levels > 0
    runs = curve.values[:, above, group] - curve.values[:, above, reference]
    return np.concatenate([runs, runs.mean(axis=1, keepdims=True)], axis=1)


def _with_pilot(
    simulated: Simulated,
    name: str,
    runs: FloatArray,
    *,
    pair: tuple[int, int],
    variance: float,
    freedom: float,
    spec: ReliabilitySpec,
) -> tuple[FloatArray | None, float]:
    """Return the variance of gaps due to a pilot learned by group, and the resulting degrees of freedom.

    The part of random mistakes is subtracted if it is known well enough; otherwise it stays, if the interval is shorter
    with it.
    """
    settings = simulated.mistakes.setting.pilot
    if simulated.same_pilot is None or settings is None:
        return None, freedom
    fixed = _gap_runs(curves(simulated.experiment, simulated.same_pilot, name), *pair)
    choices = []
    for pilot in (pilot_variance(runs, other, float(settings.enough)) for other in (fixed, None)):
        joint = pilot.freedom(-1, variance, freedom)
        half = float(t_quantile(joint, spec.confidence)) * float(np.sqrt(variance + pilot.value[-1]))
        choices.append((half, pilot.value, joint))
    _, value, joint = min(choices, key=lambda choice: choice[0])
    return value, joint


# The mean gap ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanGap:
    """A gap averaged over noise levels, the first group less the second, with limits and test.

    Parameters
    ----------
    value : the gap.
    unknown : why it has no value or no limits, or None.
    limits : the limits at a confidence.
    p_value : the smallest alpha at which the limits of confidence 1 - alpha exclude 0; nan without limits.
    stderr, freedom : of the bootstrap's limits; nan for others.
    least_shown : for limits that hold for few people, the least gap they can show if nobody of the smaller group is
        hurt; without a test, the least that any could show; None for the bootstrap's.
    """

    value: float
    unknown: Message | None
    limits: Callable[[float], tuple[float, float]]
    p_value: float = float("nan")
    stderr: float = float("nan")
    freedom: float = float("nan")
    least_shown: float | None = None


def mean_gap(
    whole: LevelGaps, simulated: Simulated, name: str, pair: tuple[int, int], spec: ReliabilitySpec
) -> MeanGap:
    """Return the mean gap with bootstrap limits, or small-sample limits for few people."""
    gap = whole.gap
    undefined = _why_undefined(gap, curves(simulated.experiment, simulated.runs, name), pair)
    untested = whole.untested or whole.no_interval[-1]
    if undefined is None and untested is not None and name == BOUNDED and not simulated.mistakes.learned_by_group:
        return _bounded_gap(simulated, pair, gap.average, spec)
    few = undefined is None and untested is not None and (too_few(untested) or rests_on_few(untested))
    least = _least_of_any_test(simulated, name, pair, spec) if few else None
    return MeanGap(
        value=gap.average,
        unknown=undefined or untested,
        limits=gap.limits,
        p_value=gap.p_value,
        stderr=gap.average_stderr,
        freedom=gap.freedom,
        least_shown=least,
    )


def _least_of_any_test(simulated: Simulated, name: str, pair: tuple[int, int], spec: ReliabilitySpec) -> float | None:
    """Return the gap below which no test of any kind could show one, regardless of the larger group's size.

    Where nobody of n people is hurt, no limit that holds for every distribution puts the share of the hurt below 1 -
    tail^(1 / n). Kappa and alpha are 1 - D / (2 p q), AC1 1 - D / (1 - 2 p q) with p and q = 1 - p the shares of the
    two decisions and D that of the changed ones; ICC and similar metrics 1 - D / (2 variance) with D a mean of squared
    changes, each at most 1.
    """
    base, groups = simulated.experiment.base, simulated.experiment.cells[1]
    small = min(pair, key=lambda group: int(simulated.draws.sizes[:, group].sum()))
    in_smaller = base.cell % groups == small
    yes = float(base.label[in_smaller].mean())
    spread = float(np.var(base.score if name == "icc_spread" else base.score[in_smaller]))
    expected = 2.0 * yes * (1.0 - yes)
    unit = {"kappa": expected, "alpha": expected, "ac1": 1.0 - expected}.get(name, 2.0 * spread)
    is_bounded = name in COUNT_METRICS or bool(np.all((base.score >= 0) & (base.score <= 1)))
    share = 1.0 - tail_share(spec.confidence) ** (1.0 / int(in_smaller.sum()))
    return share / unit if is_bounded and unit > 0 else None


def _bounded_gap(simulated: Simulated, pair: tuple[int, int], value: float, spec: ReliabilitySpec) -> MeanGap:
    """Return the gap of PABAK with limits of bounded damage: it is 2 (mean of the second - mean of the first).

    A group's mean is that of its folds' means, so that a person of a small fold weighs more; the largest possible
    weight is the bound.
    """
    folds, groups = simulated.experiment.cells
    fold, group = np.divmod(simulated.experiment.base.cell, groups)
    sizes = simulated.draws.sizes[:, pair]
    counts = sizes.sum(axis=0) / (folds * sizes)  # the weight of a person of each fold
    top = float(counts.max())
    first, second = (
        simulated.runs.damage[group == code] * counts[fold[group == code], number] / top
        for number, code in enumerate(pair)
    )

    def limits(confidence: float) -> tuple[float, float]:
        low, high = bounded_difference(second, first, tail_share(confidence))
        return 2.0 * top * float(low), 2.0 * top * float(high)

    nobody = np.zeros(min(first.size, second.size))
    least = 2.0 * top * float(bounded_limits(nobody, tail_share(spec.confidence)).high)
    return MeanGap(value=value, unknown=None, limits=limits, p_value=bounded_p(second, first), least_shown=least)


def _why_undefined(gap: GapOverLevels, curve: Curves, groups: tuple[int, int]) -> Message | None:
    if not np.isnan(gap.average):
        return None
    levels = np.flatnonzero(curve.levels > 0)
    lost = [why for level in levels if (why := why_undefined_at(curve, int(level), groups))]
    why = without_kind(lost[0]) if lost else say("replicate_without_value")
    return shared("undefined", why=say("at_levels", lost=len(lost), levels=len(levels), why=why))
