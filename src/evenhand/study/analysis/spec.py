"""The settings of the analysis: arguments of `eh.study.analyze`, or `[analysis]` of `study.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field, model_validator

from evenhand.core.metrics import Metric
from evenhand.core.spec import Spec, limits
from evenhand.core.thresholds import Alias, Threshold
from evenhand.study.analysis.metrics import METRICS, NAMED_GAPS, TARGETS
from evenhand.study.responses import Exclusions
from evenhand.study.schema import require_known


class StudyThreshold(Threshold):
    """A limit for a metric of a study."""

    condition: str | None = Field(None, description="Limit only this condition.")
    target: str | None = Field(None, description="Limit only this distance that people judged.")


class AnalysisSpec(Spec):
    """The settings of the analysis.

    Examples
    --------
    >>> AnalysisSpec().alpha
    0.05
    """

    audit: ClassVar[str] = "study"
    thresholds: tuple[StudyThreshold, ...] = limits()
    threshold_coordinates: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[Mapping[str, Alias]] = NAMED_GAPS

    alpha: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Below this a p-value counts as significant where the result says that a conclusion changes.",
    )
    baseline: str | None = Field(
        None, description="Condition that the moderation model compares the others with; by default the last by name."
    )
    serum_weight: float = Field(1.0, ge=0, description="Weight of the prediction score in the truth serum.")
    bonus_share: float = Field(0.1, gt=0, le=1, description="Share of people who get the honesty bonus.")
    bonus_ties: bool = Field(True, description="Whether all who tie at the last place are paid, or none of them.")
    bonus_answered: float = Field(
        0.5, ge=0, le=1, description="Share of the pairs asked that a person must have taken part in for a bonus."
    )
    exclusions: Exclusions = Field(
        Exclusions(), description='Who is left out, by named rules; {"failed_checks": false} keeps everybody.'
    )
    resamples: int = Field(10_000, ge=100, le=1_000_000, description="Bootstrap resamples of people.")
    individuals: bool = Field(
        False, description="Whether `results.json` holds everybody's truth-serum score and bonus, by participant."
    )
    min_count: int = Field(10, ge=1, description="A condition with fewer people gets no verdict.")

    @property
    def finding_alpha(self) -> float:
        """The significance level of findings without a threshold."""
        return self.alpha

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics of a study."""
        return METRICS

    @model_validator(mode="after")
    def _known_targets(self) -> Self:
        for threshold in self.thresholds:
            targets = TARGETS[:1] if threshold.metric == "effort_weight" else TARGETS
            if threshold.target is not None:
                require_known([threshold.target], targets, "`target` {name} of a threshold is not known")
        return self
