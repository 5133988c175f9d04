"""The settings of the audit of classes: arguments of `eh.classes` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from evenhand.audits.classes.metrics import METRICS
from evenhand.core.metrics import Metric
from evenhand.core.spec import Names, Reference, Spec, limits
from evenhand.core.thresholds import Threshold
from evenhand.errors import SettingError, require_name
from evenhand.table.roles import Scalar


class ClassesThreshold(Threshold):
    """A limit on a number of the classes audit."""

    label: str | None = Field(None, description="Limit only this class; by default each.")


class ClassesSpec(Spec):
    """The settings of the audit of classes.

    Examples
    --------
    >>> ClassesSpec(decision="answer", order=["reject", "wait", "accept"]).order
    ('reject', 'wait', 'accept')
    """

    audit: ClassVar[str] = "classes"
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("grouping", "group")
    column_settings: ClassVar[tuple[str, ...]] = ("decision", "truth")

    thresholds: tuple[ClassesThreshold, ...] = limits()
    decision: str = Field(description="Column of the class that the system puts a person into.")
    truth: str | None = Field(None, description="Column of the class that was right; needed for errors.")
    order: tuple[Scalar, ...] | None = Field(
        None, description="All classes from the worst to the best for the person; needed for ordinal dominance."
    )
    metrics: Names | None = Field(
        None, min_length=1, description="Metrics to compute; by default all that the data allow."
    )
    reference: Reference = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics by name."""
        return METRICS

    @field_validator("metrics")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            require_name(name, METRICS, "there is no metric {name!r}; {hint}", SettingError)
        return value

    @field_validator("order")
    @classmethod
    def _different(cls, value: tuple[Scalar, ...] | None) -> tuple[Scalar, ...] | None:
        if value is not None and (len(value) < 2 or len(set(value)) < len(value)):
            raise SettingError("`order` must be two or more different classes; got {value}", value=list(value))
        return value
