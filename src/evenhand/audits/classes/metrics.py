"""The metrics of classes: shares of people in a class, one class against all others, and ordinal dominance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.core.metrics import Metric, gap_limits
from evenhand.stats.types import IntArray

_LABELS = "It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so is this."

Counts = Callable[[IntArray, int], tuple[IntArray, IntArray]]
"""Function from counts (group, decision, outcome) and a class to the counted people and all people by group."""


@dataclass(frozen=True, kw_only=True)
class ClassMetric(Metric):
    """A metric of one class: a share of people, or ordinal dominance over all classes.

    Parameters
    ----------
    counts : the function that returns the numerator and denominator of a share; None for other metrics.
    needs_outcome : whether the metric needs the right class.
    """

    counts: Counts | None = None
    needs_outcome: bool = False


def _rate(n: IntArray, label: int) -> tuple[IntArray, IntArray]:
    return n[:, label].sum(axis=-1), n.sum(axis=(-2, -1))


def _recall(n: IntArray, label: int) -> tuple[IntArray, IntArray]:
    return n[:, label, label], n[:, :, label].sum(axis=-1)


def _precision(n: IntArray, label: int) -> tuple[IntArray, IntArray]:
    return n[:, label, label], n[:, label].sum(axis=-1)


def _false_rate(n: IntArray, label: int) -> tuple[IntArray, IntArray]:
    others = np.delete(n, label, axis=2)
    return others[:, label].sum(axis=-1), others.sum(axis=(-2, -1))


_BY = "M. Sokolova and G. Lapalme (2009), Information Processing and Management 45, one class against all others"

METRICS = {
    metric.name: metric
    for metric in (
        ClassMetric(
            name="class_rate",
            title="Share in the class",
            unit="share",
            formula="people put into the class / people",
            reference=_BY,
            caveat="It does not say whether the people of the groups are alike.",
            headline=True,
            limits=gap_limits(),
            counts=_rate,
        ),
        ClassMetric(
            name="class_recall",
            title="Recall of the class",
            unit="share",
            formula="people put into the class whose outcome is the class / people whose outcome is the class",
            reference=_BY,
            caveat=_LABELS,
            headline=True,
            limits=gap_limits(),
            counts=_recall,
            needs_outcome=True,
        ),
        ClassMetric(
            name="class_precision",
            title="Precision of the class",
            unit="share",
            formula="people put into the class whose outcome is the class / people put into the class",
            reference=_BY,
            caveat=_LABELS,
            limits=gap_limits(),
            counts=_precision,
            needs_outcome=True,
        ),
        ClassMetric(
            name="class_false_rate",
            title="False rate of the class",
            unit="share",
            formula="people put into the class whose outcome is another / people whose outcome is another",
            reference=_BY,
            caveat=_LABELS,
            limits=gap_limits(),
            counts=_false_rate,
            needs_outcome=True,
        ),
        ClassMetric(
            name="dominance",
            title="Ordinal dominance",
            unit="share",
            formula="P(a person of one group is in a better class than one of the other) - P(in a worse one)",
            reference="N. Cliff (1993), Dominance statistics: ordinal analyses to answer ordinal questions, "
            "Psychological Bulletin 114",
            caveat="It does not say by how many classes, nor whether the people of the groups are alike.",
            headline=True,
            reveals="number",
            limits=gap_limits(),
        ),
    )
}
"""The metrics by name."""
