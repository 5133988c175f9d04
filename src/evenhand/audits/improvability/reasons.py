"""Power by the number of rows, and which of the two reasons is plausible where the test does not reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenhand.audits.improvability.curves import SCENARIOS, SIZES
from evenhand.audits.improvability.records import DecisionRecord, PowerRecord, ReasonRecord, SampleSizeRecord
from evenhand.audits.improvability.splits import Inputs, Trials
from evenhand.audits.improvability.tables import JUDGED
from evenhand.core.numbers import shown
from evenhand.errors import count

_NONE = "undefined: no split has a candidate"
_NEVER = "undefined: no number of rows gives this power"


def power_records(inputs: Inputs, trials: Trials) -> Iterator[PowerRecord]:
    """Yield the power of the test for multiples of the rows at hand."""
    spec, rows = inputs.spec, len(inputs.sample)
    for name, tested in trials.items():
        plans = [one.power for one in tested if one.power is not None]
        for scenario in SCENARIOS:
            size = (None, None) if scenario == "found" else (spec.plan.gain, spec.plan.reduction)
            curves = [one.curves[scenario] for one in plans]
            for at, factor in enumerate(SIZES):
                value = float(np.median([curve[at] for curve in curves])) if curves else None
                yield PowerRecord(
                    name, scenario, size[0], size[1], round(factor * rows), value, "ok" if curves else _NONE
                )


def size_records(inputs: Inputs, trials: Trials) -> Iterator[SampleSizeRecord]:
    """Yield how many rows the power wanted takes, the median over the splits."""
    spec = inputs.spec
    for name, tested in trials.items():
        plans = [one.power for one in tested if one.power is not None]
        for scenario in SCENARIOS:
            size = (None, None) if scenario == "found" else (spec.plan.gain, spec.plan.reduction)
            needed = [one.rows[scenario] for one in plans]
            middle = float(np.median(needed)) if needed else float("nan")
            value = round(middle) if np.isfinite(middle) else None
            status = "ok" if value is not None else _NEVER if needed else _NONE
            yield SampleSizeRecord(name, scenario, size[0], size[1], spec.plan.power, value, status)


def reason_records(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[DecisionRecord],
    power: Sequence[PowerRecord],
    sizes: Sequence[SampleSizeRecord],
) -> Iterator[ReasonRecord]:
    """Yield, for each candidate without an established improvement at the smallest margin, the plausible reason."""
    spec, rows = inputs.spec, len(inputs.sample)
    least = min(spec.test.margins)
    for name, tested in trials.items():
        own = [d for d in decisions if d.candidate == name and d.test == JUDGED and d.target == "fairness"]
        if any(d.established for d in own if d.delta == least):
            continue
        improved = sum(one.power is not None and one.power.improved for one in tested)
        here = {r.scenario: r.value for r in power if r.candidate == name and r.rows == rows}
        needed = next(r.value for r in sizes if r.candidate == name and r.scenario == "found")
        reason = _reason(improved, len(tested), here.get("planned"), spec.plan.power, needed)
        sentence = _sentence(inputs, reason, name, improved, len(tested), here, needed)
        yield ReasonRecord(
            name, reason, improved, len(tested), here.get("found"), here.get("planned"), needed, sentence
        )


def _reason(improved: int, splits: int, planned: float | None, wanted: float, needed: int | None) -> str:
    if 2 * improved > splits:
        return "too_few_rows" if needed is not None else "unclear"
    return "not_found" if planned is not None and planned >= wanted else "unclear"


def _sentence(
    inputs: Inputs,
    reason: str,
    name: str,
    improved: int,
    splits: int,
    here: Mapping[str, float | None],
    needed: int | None,
) -> str:
    spec, rows = inputs.spec, len(inputs.sample)
    where = f"in {improved} of {count(splits, 'split')}"
    seldom = f"{where} only" if improved else "in no split"
    size = f"accuracy up by {shown(spec.plan.gain, percent=True)} and a gap smaller by {shown(spec.plan.reduction, percent=True)}"
    chance = shown(here.get("planned"), percent=True)
    planned = f"An improvement as planned ({size}) would be found with a chance of {chance}."
    if here.get("planned") is None:
        return f"In no split was there a candidate of {name} to test, so nothing is known of how it would do."
    several = len(spec.candidates)
    chance_of = f"chance with {several} candidates tried" if several > 1 else "chance"
    if reason == "too_few_rows":
        allowed = f", with all {several} candidates allowed for" if several > 1 else ""
        more = (
            f"about {needed:,} rows would give the test {shown(spec.plan.power, percent=True)} power{allowed}, against "
            f"{rows:,} here"
        )
        return (
            f"{name} is better than the status quo on the test rows {where}, but not beyond {chance_of}. The plausible "
            f"reason is too few rows: if the improvement is real and of this size, {more}."
        )
    if reason == "not_found":
        return (
            f"{name} is better than the status quo on the test rows {seldom}. {planned} So too few rows are not "
            "the likely reason: this rule did not find a better algorithm. There may be none among those it can reach; "
            "another rule or other features may still find one."
        )
    if 2 * improved > splits:
        return (
            f"{name} is better than the status quo on the test rows {where}, but not beyond {chance_of}, and in most "
            "splits by so little that no number of rows would give the test the power wanted. The reason is unclear."
        )
    return (
        f"{name} is better than the status quo on the test rows {seldom}. {planned} So both reasons remain: the "
        "rule may not have found a better algorithm that exists, and with so few rows the test could have missed it."
    )
