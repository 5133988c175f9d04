"""The power of a plan to show an improvement, from a pilot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evenhand.audits.improvability.audit import run
from evenhand.audits.improvability.messages import say
from evenhand.core.power import Power, PowerLine, PowerPlan
from evenhand.messages.shared import say as shared


def lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield the power for each candidate's planned improvement, from the pilot's rows."""
    spec: Any = plan.specs.get("improvability")
    if spec is None:
        return
    if plan.pilot is None:
        yield PowerLine(audit="improvability", metric="improvable_fairness", how=shared("needs_pilot"))
        return
    result = run(plan.pilot, spec).result
    how = say("planned_improvement", gain=spec.plan.gain, reduction=spec.plan.reduction)
    for model in spec.candidates:
        curve = [(r.n, r.value) for r in result.rows("power", model=model, scenario="planned") if r.value is not None]
        needed = result.get("sample_sizes", model=model, scenario="planned").n
        sizes, chances = np.array(curve, dtype=np.float64).T if curve else (np.array([1.0]), np.array([np.nan]))
        chance = float(np.interp(np.log(plan.rows), np.log(sizes), chances))
        yield PowerLine(
            audit="improvability",
            metric="improvable_fairness",
            model=model,
            grouping=result.groupings[0],
            chance=None if np.isnan(chance) else chance,
            rows=needed,
            how=how,
        )


POWER = Power(lines=lines)
"""The improvability audit's power calculation."""
