"""What the analysis of an effort study can be told."""

from __future__ import annotations

from pydantic import Field, field_validator

from evenhand.core.spec import Spec, Threshold
from evenhand.errors import did_you_mean
from evenhand.study.responses import Exclusions

METRICS = ("effort_weight", "correlation_difference")


class AnalysisSpec(Spec):
    """The settings of the analysis.

    Examples
    --------
    >>> AnalysisSpec().alpha
    0.05
    """

    alpha: float = Field(0.05, gt=0, lt=1, description="Below this a p-value counts as significant.")
    baseline: str | None = Field(
        None, description="Condition that the moderation model compares the others with; by default the last."
    )
    serum_weight: float = Field(1.0, ge=0, description="Weight of the prediction score in the truth serum.")
    bonus_share: float = Field(0.1, gt=0, le=1, description="Share of people who get the honesty bonus.")
    bonus_ties: bool = Field(True, description="Whether all who tie at the last place are paid, or none of them.")
    bonus_answered: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Share of the pairs asked that a person must have taken part in for a bonus.",
    )
    exclusions: Exclusions = Field(Exclusions(), description="Who is left out, by named rules.")

    @field_validator("thresholds")
    @classmethod
    def _known_metrics(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        for threshold in value:
            if threshold.metric not in METRICS:
                raise ValueError(
                    f"`metric` {threshold.metric!r} of a threshold is not known; "
                    f"{did_you_mean(threshold.metric, METRICS)}"
                )
        return tuple(threshold.model_copy(update={"audit": "study"}) for threshold in value)
