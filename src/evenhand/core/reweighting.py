"""Verdicts among people with other shares of groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from evenhand.core.findings import Finding
from evenhand.core.thresholds import Threshold, Verdict, is_least
from evenhand.messages import Message
from evenhand.stats.types import FloatArray
from evenhand.stats.weighted import Judged

if TYPE_CHECKING:
    from evenhand.table.table import Table


@dataclass(frozen=True)
class Mix:
    """People with other shares of the groups of one column.

    Parameters
    ----------
    column, what : the column, and the shares in words.
    weight : the weight of each group of the column.
    spread : the covariance of the weights, if the shares are those of a sample.
    """

    column: str
    what: Message
    weight: FloatArray
    spread: FloatArray | None = None

    @property
    def as_is(self) -> Mix:
        """The people with their actual shares."""
        return replace(self, weight=np.ones_like(self.weight), spread=None)


class Reweighter(Protocol):
    """Judges the verdicts of one audit among weighted people."""

    @property
    def by_counts(self) -> bool:
        """Whether its numbers follow from counts by group, outcome and decision alone."""

    def why_not(self, finding: Finding) -> Message | None:
        """Return why a verdict cannot be judged among weighted people; None if it can."""

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Return whether shares of a column can matter."""

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the number among weighted people with its limits, and the verdict."""


MakeReweighter: TypeAlias = "Callable[[Table, Any, Any], Reweighter]"
"""Makes a reweighter from the table, the result of the audit, and the settings that it ran with."""


def threshold_of(finding: Finding) -> Threshold:
    """Return the threshold that a finding was judged by."""
    side = "min" if finding.threshold is not None and is_least(finding.threshold) else "max"
    return Threshold.model_validate({"metric": finding.metric, side: finding.limit})
