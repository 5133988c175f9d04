"""The settings of the ranking audit: arguments of `eh.ranking` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from evenhand.audits.ranking.metrics import METRICS
from evenhand.core.metrics import Metric
from evenhand.core.spec import Names, Reference, Spec
from evenhand.errors import SettingError, require_name


class RankingSpec(Spec):
    """The settings of the ranking audit.

    Examples
    --------
    >>> RankingSpec(query="job", size=20).size
    20
    """

    audit: ClassVar[str] = "ranking"
    column_settings: ClassVar[tuple[str, ...]] = ("query",)
    counted: ClassVar[str] = "rows"

    query: str = Field(description="Column of the list that a row belongs to: a job, a search, a day.")
    size: int = Field(
        10, ge=1, le=1_000, description="Places on the shortlist; the rates at all smaller sizes are shown, too."
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
