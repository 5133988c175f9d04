"""What the waiting audit can be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from evenhand.core.metrics import Metric
from evenhand.core.spec import Reference, Spec, limits
from evenhand.core.thresholds import Threshold
from evenhand_wait.metrics import METRICS


class WaitThreshold(Threshold):
    """A limit for waiting times; it may name the ward."""

    ward: str | None = Field(None, description="Limit only this ward.")


class WaitSpec(Spec):
    """The settings of the audit."""

    audit: ClassVar[str] = "wait"
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("grouping", "group")
    column_settings: ClassVar[tuple[str, ...]] = ("days",)

    thresholds: tuple[WaitThreshold, ...] = limits()
    days: str = Field(description="Column of the days that each person waited.")
    ward: str = Field("everywhere", description="Where people waited.")
    long: float | None = Field(None, description="Count the people who waited longer than so many days.")
    reference: Reference = Field(None, description="The group that others are compared with; by default the largest.")

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics, by name."""
        return METRICS
