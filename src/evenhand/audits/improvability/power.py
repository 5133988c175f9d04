"""What a plan could show of an improvement, from a pilot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evenhand.audits.improvability.audit import run
from evenhand.core.power import Plan, Power, PowerLine


def lines(plan: Plan) -> Iterator[PowerLine]:
    """Yield the chance of the planned improvement of each candidate, from the pilot's rows."""
    spec: Any = plan.specs.get("improvability")
    if spec is None:
        return
    if plan.pilot is None:
        yield PowerLine(audit="improvability", metric="improvable_fairness", how="needs a pilot: give --pilot FILE")
        return
    found = run(plan.pilot, spec).result
    what = f"accuracy up by {spec.plan.gain:.0%} and a gap down by {spec.plan.reduction:.0%}"
    for model in spec.candidates:
        curve = [(r.n, r.value) for r in found.rows("power", model=model, scenario="planned") if r.value is not None]
        needed = found.get("sample_sizes", model=model, scenario="planned").n
        sizes, chances = np.array(curve, dtype=np.float64).T if curve else (np.array([1.0]), np.array([np.nan]))
        chance = float(np.interp(np.log(plan.rows), np.log(sizes), chances))
        yield PowerLine(
            audit="improvability",
            metric="improvable_fairness",
            model=model,
            grouping=found.groupings[0],
            chance=None if np.isnan(chance) else chance,
            rows=needed,
            how=f"the pilot's resamples; planned: {what}",
        )


POWER = Power(lines=lines)
"""How the improvability audit says what a plan could show."""
