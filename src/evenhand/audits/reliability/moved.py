"""Changes of risk level, and the passing rate: how often a mistake reorders two people with similar scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.audits.reliability.estimate import PEOPLE_REPLICATES, Simulated
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.result import MovedRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.noise import paths, replicate_seeds
from evenhand.stats.reliability.moved import InfluenceEstimate, Reach, level_estimates, risk_level
from evenhand.stats.types import FloatArray, Interval

PASSING = "passing"
PARTS, LEAST_FOR_PARTS = ("prevalence_part", "bias_part"), 200
"""The number of people below which the limits of the parts are too short: `benchmarks/coverage/moved.py`."""
_SHARES = ("stays", "agreement", PASSING)
"""The metrics that cannot be negative."""
TITLES = {
    "weighted_kappa_linear": "Weighted kappa, linear",
    "weighted_pabak": "Weighted PABAK, linear",
    "prevalence_part": "Weighted PABAK - kappa: prevalence",
    "bias_part": "Weighted PABAK - kappa: bias",
    "weighted_kappa_quadratic": "Weighted kappa, quadratic",
    "kappa": "Kappa of the levels",
    "agreement": "Same level",
    "stays": "Stays in its level",
    PASSING: "Passing rate",
}
"""The titles of the metrics."""


@dataclass(frozen=True, eq=False)
class Moved:
    """The estimates at every noise level above 0, by group, with limits at any confidence.

    Parameters
    ----------
    simulated : the model, the mistakes and the groups.
    cuts : the cut-offs between risk levels; empty if there are no risk levels.
    estimates : the estimates by noise level, group and metric.
    """

    simulated: Simulated
    cuts: FloatArray
    estimates: Mapping[tuple[float, int, str], InfluenceEstimate]


def move(simulated: Simulated, spec: ReliabilitySpec) -> Moved:
    """Simulate mistakes, and estimate how they change people's risk levels and order."""
    experiment = simulated.experiment
    step(f"Who changes place: {simulated.model.name} by {simulated.groups.name}")
    rng = named_rng(spec.seed, simulated.mistakes.setting.name, *map(str, simulated.groups.sizes))
    score = experiment.base.score
    cuts = spec.scoring.cuts(score)
    seeds = replicate_seeds(spec.replicates, rng)[:PEOPLE_REPLICATES]
    done = [paths(experiment, [seed]) for seed in seeds]
    group = simulated.groups.code[simulated.groups.code >= 0][experiment.base.order]
    estimates: dict[tuple[float, int, str], InfluenceEstimate] = {}
    for position, noise_level in enumerate(experiment.levels):
        if noise_level == 0:
            continue
        second = np.stack([run.second_score[0, position] for run in done])
        reach = Reach(score, second, spec.scoring.alike)
        for number in range(len(simulated.groups.groups)):
            inside = group == number
            if not spec.scoring.are_numbers or "alike" in spec.scoring.model_fields_set:
                estimates[float(noise_level), number, PASSING] = reach.passing(inside)
            if cuts.size:
                first = np.stack([run.first_score[0, position] for run in done])
                levels = risk_level(first, cuts), risk_level(second, cuts)
                for name, estimate in level_estimates(*levels, cuts.size + 1, inside).items():
                    estimates[float(noise_level), number, name] = estimate
    return Moved(simulated, cuts, estimates)


def level_labels(cuts: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the risk levels between cut-offs.

    Examples
    --------
    >>> level_labels([0.3, 0.6])
    ('up to 0.3', '0.3 to 0.6', 'above 0.6')
    """
    shown = [f"{cut:.3g}" for cut in cuts]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    return (f"up to {shown[0]}", *between, f"above {shown[-1]}")


def moved_records(moved: Moved, spec: ReliabilitySpec) -> Iterator[MovedRecord]:
    """Yield every estimate with its interval, and its gap to the reference group."""
    groups = moved.simulated.groups
    labels = level_labels(moved.cuts.tolist()) if moved.cuts.size else ()
    for (noise_level, number, name), estimate in moved.estimates.items():
        metric, _, level = name.partition(" ")
        columns: dict[str, Any] = {
            **moved.simulated.coordinates,
            "group": groups.groups[number],
            "reference": None,
            "metric": metric,
            "risk_level": labels[int(level)] if level else None,
            "noise_level": noise_level,
            "n": groups.sizes[number],
            "value": finite(estimate.value),
        }
        few = metric in PARTS and groups.sizes[number] < LEAST_FOR_PARTS
        limits = None if few else estimate.interval(spec.confidence, least=0.0 if metric in _SHARES else -1.0)
        columns |= _ends("", limits)
        if number != groups.reference:
            reference = moved.estimates[noise_level, groups.reference, name]
            columns |= {"reference": groups.groups[groups.reference], "gap": finite(estimate.value - reference.value)}
            columns |= _ends("gap_", None if few else estimate.difference(reference, spec.confidence))
        yield MovedRecord(**columns, status=_status(estimate, metric, few=few, has_limits=limits is not None))


def _ends(name: str, limits: Interval | None) -> dict[str, float | None]:
    """Return two limits by column name; None if there are no limits."""
    low, high = (None, None) if limits is None else (float(limits.low), float(limits.high))
    return {f"{name}low": low, f"{name}high": high}


def _status(estimate: InfluenceEstimate, metric: str, *, few: bool, has_limits: bool) -> Message:
    if few:
        return shared("no_interval", why=say("fewer_people", least=LEAST_FOR_PARTS))
    if not np.isfinite(estimate.value):
        return shared("undefined", why=say("no_two_alike" if metric == PASSING else "nobody_in_level"))
    return OK if has_limits else shared("no_interval", why=say("changes_rest_on_few"))
