"""What each person adds to the error of a parity metric, so that two audits of the same people can be compared."""

from __future__ import annotations

import numpy as np

from evenhand.audits.parity.influence import metric_influence
from evenhand.audits.parity.metrics import METRICS
from evenhand.audits.parity.spec import ParitySpec
from evenhand.stats.auc import auc_influence
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.decided import DecidedRows


def influence(
    spec: ParitySpec, people: DecidedRows, model: str, members: BoolArray, metric: str
) -> tuple[float, FloatArray] | None:
    """Return a metric of a group with each person's influence on it; None where it is custom or undefined."""
    row = None if metric in spec.custom else METRICS.get(metric)
    if row is None or model not in people.selected:
        return None
    if row.method == "rank":
        if model not in people.score:
            return None
        psi = np.zeros(len(members))
        parts = (people.score[model][members], people.positive[members], people.weight[members])
        value, psi[members] = auc_influence(*parts)
        return value, psi
    outcome, decision = people.positive.astype(np.float64), people.selected[model].astype(np.float64)
    score = people.score.get(model, np.zeros(len(outcome)))
    columns = {"outcome": outcome, "decision": decision, "people": np.ones(len(outcome))}
    columns |= {"score": score, "loss": (score - outcome) ** 2}
    return metric_influence(row, columns, np.where(members, people.weight, 0.0))
