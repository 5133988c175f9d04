"""Gaps between groups as records: to the reference group, and the largest of all pairs; what may be tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.audits.reliability.intervals import centred, why_no_intervals, why_undefined_at
from evenhand.audits.reliability.records import GapRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.trials import Trial
from evenhand.audits.reliability.words import HARM
from evenhand.core.numbers import finite
from evenhand.errors import count
from evenhand.stats.agreement import COUNT_METRICS
from evenhand.stats.correlation import adjusted_p
from evenhand.stats.intervals import bonferroni, t_quantile
from evenhand.stats.reliability import (
    Curves,
    Gap,
    curves,
    gap_of,
    pilot_variance,
    share_lower,
    spread_of_runs,
)
from evenhand.stats.types import BoolArray, FloatArray

LEAST_PEOPLE, LEAST_IN_A_FOLD, LEAST_FOR_RATIOS = 50, 10, 20
"""People of a group, in all and in each fold, below which there is no interval, test or verdict.

Below them intervals miss and tests reject more often than they say: a few people do not show how skewed the effect of
mistakes is. Kappa, ICC and their like are ratios, which are biased in small folds, so that they need more people there
than means over people do. See the table of levels in docs/methods/reliability.md.
"""

TOO_FEW = ", and a test needs "

LEAST_DAMAGED, LEAST_MOVED = 5, 10
"""People that the damage must rest on, to decisions and to scores, for an interval, test or verdict.

Where a few people make most of it, other people of the group may make none, or twice as much, and the resamples do not
show that: they only know these few. The agreement audit asks for as many.
"""

RESTS_ON = "what mistakes change rests on "


def gap_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[GapRecord]:
    """Yield the gaps of every statistic to the reference group, and of more than two groups the largest of all pairs.

    A gap to the reference is yielded as the mean over levels above 0, and then at each of them.
    """
    if not np.any(trial.experiment.levels > 0):
        return
    for name in spec.statistics:
        found = curves(trial.experiment, trial.simulation, name)
        for group in trial.groups.others:
            yield from _to_reference(trial, name, found, group, spec)
        if len(trial.groups.groups) > 2:
            yield _worst_pair(trial, name, found, spec)


def adjusted(gaps: Sequence[GapRecord]) -> list[GapRecord]:
    """Return the gaps with Holm's p-values; the family is all tests of a run.

    That is over models, groupings, groups, statistics and ways of going wrong.
    """
    found = list(gaps)
    tested = [at for at, gap in enumerate(gaps) if gap.p_value is not None]
    p = adjusted_p([gaps[at].p_value or 0.0 for at in tested])
    for at, value in zip(tested, p.tolist(), strict=True):
        found[at] = replace(gaps[at], p_adjusted=value)
    return found


def least_in_a_fold(statistic: str) -> int:
    """Return the people of a group that a test of a statistic needs in each fold."""
    return LEAST_IN_A_FOLD if statistic in HARM else LEAST_FOR_RATIOS


def too_few(trial: Trial, group: int, statistic: str) -> str | None:
    """Return why a group is too small for a test, None where it is not."""
    sizes, label = trial.draws.sizes[:, group], trial.groups.groups[group]
    if sizes.sum() < LEAST_PEOPLE:
        people, least = count(int(sizes.sum()), "person", "people"), LEAST_PEOPLE
        return f"no interval: {label} has {people}{TOO_FEW}{least}"
    if len(sizes) > 1 and sizes.min() < least_in_a_fold(statistic):
        people, least = count(int(sizes.min()), "person", "people"), least_in_a_fold(statistic)
        return f"no interval: {label} has {people} in a fold{TOO_FEW}{least}"
    return None


def too_concentrated(trial: Trial, group: int, statistic: str) -> str | None:
    """Return why the damage to a group rests on too few people for a test, None where it does not."""
    scores = statistic not in COUNT_METRICS
    people, least = float(trial.draws.rests_on[int(scores), group]), LEAST_MOVED if scores else LEAST_DAMAGED
    if people >= least:
        return None
    amount = f"{people:.1f} of its people" if people else "nobody"
    return f"no interval: for {trial.groups.groups[group]}, {RESTS_ON}{amount}, and it takes {least}"


def pilot_unknown(trial: Trial, spec: ReliabilitySpec) -> str | None:
    """Return why it is not known how far another pilot would move gaps, None where it is or plays no part."""
    setting = next(one for one in spec.noise if one.name == trial.mistakes.setting)
    if setting.pilot is None or setting.pilot.by is None or trial.same_pilot is not None:
        return None
    if not setting.pilot.resample:
        return "no interval: mistakes were learned by group, and what another pilot would give takes `resample`"
    return "no interval: mistakes were learned by group, and what another pilot would give takes more replicates"


@dataclass(frozen=True, eq=False)
class ReferenceGap:
    """A group's gap to the reference group, and why it may not be tested.

    Parameters
    ----------
    gap : at every noise level above 0, and on average.
    levels : those noise levels.
    sd : (levels + 1,) standard deviations between replicates.
    untested : why nothing of it is tested, None where it may be.
    lacking : for each level, and last for the average, why there is no interval.
    """

    gap: Gap
    levels: FloatArray
    sd: FloatArray
    untested: str | None
    lacking: list[str | None]

    def clear_at(self, level: float) -> bool:
        """Tell whether the interval of the gap at a noise level leaves out 0; between levels that of the average."""
        at = np.flatnonzero(self.levels == level)
        place = int(at[0]) if at.size else -1
        gap = self.gap
        low, high = (
            (gap.simultaneous.low[place], gap.simultaneous.high[place])
            if at.size
            else (gap.average_low, gap.average_high)
        )
        return self.untested is None and self.lacking[place] is None and bool(low > 0 or high < 0)


def reference_gap(trial: Trial, name: str, group: int, spec: ReliabilitySpec) -> ReferenceGap:
    """Return the gap of a statistic between a group and the reference group."""
    found = curves(trial.experiment, trial.simulation, name)
    above, reference = found.levels > 0, trial.groups.reference
    runs = _runs(found, group, reference)
    draws = centred(trial.draws.gap(name, group, reference), runs.mean(axis=0))
    freedom, least = trial.draws.freedom(name, group, reference), trial.draws.pooled_stderr(name, group, reference)
    known = float(np.fmax(draws.stderr()[-1], least)) ** 2
    more, freedom = _with_pilot(trial, name, runs, (group, reference), known, freedom, spec)
    gap = gap_of(draws, spec.confidence, freedom, found.levels[above], least, more)
    few, lacking = _untested(trial, name, (group, reference), spec), why_no_intervals(draws)
    rests = _rests_on_few(trial, name, (group, reference))
    sd = spread_of_runs(runs)
    return ReferenceGap(gap, found.levels[above], sd, few, [why or rests for why in lacking])


def _runs(found: Curves, group: int, reference: int) -> FloatArray:
    """Return (replicates, levels + 1) the gaps at levels above 0, and last their mean."""
    above = found.levels > 0
    runs = found.values[:, above, group] - found.values[:, above, reference]
    return np.concatenate([runs, runs.mean(axis=1, keepdims=True)], axis=1)


def _with_pilot(
    trial: Trial,
    name: str,
    runs: FloatArray,
    pair: tuple[int, int],
    variance: float,
    freedom: float,
    spec: ReliabilitySpec,
) -> tuple[FloatArray | None, float]:
    """Return what a pilot that was learned by group adds to the variance of gaps, and the degrees of freedom with it.

    What random mistakes add is taken off where that is known well enough; otherwise, where the interval is shorter for
    it, it stays in.
    """
    setting = next(one for one in spec.noise if one.name == trial.mistakes.setting)
    if trial.same_pilot is None or setting.pilot is None:
        return None, freedom
    fixed, people = _runs(curves(trial.experiment, trial.same_pilot, name), *pair), float(setting.pilot.enough)
    found = []
    for pilot in (pilot_variance(runs, fixed, people), pilot_variance(runs, None, people)):
        joint = pilot.freedom(-1, variance, freedom)
        half = float(t_quantile(joint, spec.confidence)) * float(np.sqrt(variance + pilot.value[-1]))
        found.append((half, pilot.value, joint))
    _, value, joint = min(found, key=lambda one: one[0])
    return value, joint


def _untested(trial: Trial, name: str, pair: tuple[int, int], spec: ReliabilitySpec) -> str | None:
    """Return why a gap of two groups is not tested, None where it may be."""
    few = next((why for group in pair if (why := too_few(trial, group, name))), None)
    return few or pilot_unknown(trial, spec)


def _rests_on_few(trial: Trial, name: str, pair: tuple[int, int]) -> str | None:
    return next((why for group in pair if (why := too_concentrated(trial, group, name))), None)


def _to_reference(trial: Trial, name: str, found: Curves, group: int, spec: ReliabilitySpec) -> Iterator[GapRecord]:
    above, reference = found.levels > 0, trial.groups.reference
    whole = reference_gap(trial, name, group, spec)
    gap, sd, few, lacking = whole.gap, whole.sd, whole.untested, whole.lacking
    groups = trial.groups
    who = (*trial.place, groups.groups[group], groups.groups[reference], "reference", name)
    n = groups.sizes[group] + groups.sizes[reference]
    status = _average_status(gap, found, above, (group, reference)) or few or lacking[-1] or "ok"
    tested = status == "ok"
    yield GapRecord(
        *who,
        None,
        n,
        finite(gap.average_stderr),
        finite(gap.freedom) if tested else None,
        finite(gap.p_value) if tested else None,
        None,
        finite(float(share_lower(gap.value))),
        finite(sd[-1]),
        finite(gap.average),
        finite(gap.average_low) if tested else None,
        finite(gap.average_high) if tested else None,
        status,
    )
    for at, noise_level in enumerate(found.levels[above]):
        undefined = why_undefined_at(found, int(np.flatnonzero(above)[at]), (group, reference))
        status = undefined or few or lacking[at] or "ok"
        shown = status == "ok"
        yield GapRecord(
            *who,
            float(noise_level),
            n,
            finite(gap.stderr[at]),
            None,
            None,
            None,
            None,
            finite(sd[at]),
            finite(gap.value[at]),
            finite(gap.simultaneous.low[at]) if shown else None,
            finite(gap.simultaneous.high[at]) if shown else None,
            status,
        )


@dataclass(frozen=True)
class _Pair:
    """Two groups, the lower first: how far they are apart, the standard error, and half of the interval."""

    lower: int
    higher: int
    size: float
    stderr: float
    freedom: float
    half: float
    unknown: str | None


def _worst_pair(trial: Trial, name: str, found: Curves, spec: ReliabilitySpec) -> GapRecord:
    """Return the largest gap of all pairs, with limits that hold for all pairs together (Bonferroni).

    The largest true gap is at least the largest of the pairs' lower limits, and at most the largest of their upper
    limits. A pair without limits leaves it open upwards.
    """
    groups, every = trial.groups, list(combinations(range(len(trial.groups.groups)), 2))
    confidence = bonferroni(spec.confidence, len(every))
    pairs = [_pair(trial, name, found, pair, confidence, spec) for pair in every]
    known, unknown = [p for p in pairs if p.unknown is None], [p for p in pairs if p.unknown is not None]
    sized = [p for p in pairs if np.isfinite(p.size)]
    worst = max(sized, key=lambda p: p.size) if sized else pairs[0]
    status = "ok"
    if unknown:
        why = str(unknown[0].unknown).removeprefix("no interval: ")
        verb = "has" if len(unknown) == 1 else "have"
        status = f"unbounded above: {len(unknown)} of {count(len(pairs), 'pair')} {verb} no interval; {why}"
    least = max([0.0, *(p.size - p.half for p in known)])
    most = max(p.size + p.half for p in known) if not unknown else np.nan
    if unknown and least == 0:
        least = np.nan  # nothing is known
    if not sized:
        status = str(pairs[0].unknown)
    own = worst.unknown is None
    return GapRecord(
        *trial.place,
        groups.groups[worst.lower],
        groups.groups[worst.higher],
        "worst_pair",
        name,
        None,
        sum(groups.sizes),
        finite(worst.stderr) if own else None,
        finite(worst.freedom) if own else None,
        None,
        None,
        None,
        None,
        finite(0.0 - worst.size),
        finite(0.0 - most),
        finite(0.0 - least),
        status,
    )


def _pair(
    trial: Trial, name: str, found: Curves, pair: tuple[int, int], confidence: float, spec: ReliabilitySpec
) -> _Pair:
    above = found.levels > 0
    mean = found.mean[above].mean(axis=0)
    lower, higher = pair if not mean[pair[1]] < mean[pair[0]] else pair[::-1]
    draws = trial.draws.gap(name, lower, higher).part(slice(-1, None))
    stderr, freedom = float(draws.stderr()[0]), trial.draws.freedom(name, lower, higher)
    gone = [why for at in np.flatnonzero(above) if (why := why_undefined_at(found, int(at), pair))]
    few = _untested(trial, name, pair, spec) or why_no_intervals(draws)[0] or _rests_on_few(trial, name, pair)
    unknown = next(iter(gone), None) or few
    stderr = float(np.fmax(stderr, trial.draws.pooled_stderr(name, lower, higher)))
    more, freedom = _with_pilot(trial, name, _runs(found, lower, higher), (lower, higher), stderr**2, freedom, spec)
    if more is not None:
        stderr = float(np.sqrt(stderr**2 + more[-1]))
    half = float(t_quantile(freedom, confidence)) * stderr
    return _Pair(lower, higher, float(mean[higher] - mean[lower]), stderr, freedom, half, unknown)


def _average_status(gap: Gap, found: Curves, above: BoolArray, groups: tuple[int, int]) -> str | None:
    if not np.isnan(gap.average):
        return None
    places = np.flatnonzero(above)
    gone = [why for place in places if (why := why_undefined_at(found, int(place), groups))]
    why = gone[0].removeprefix("undefined: ") if gone else "a replicate has no value"
    return f"undefined: at {len(gone)} of {len(places)} noise levels, since {why}"
