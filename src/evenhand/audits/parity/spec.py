"""What the parity audit can be told: arguments of `eh.parity` and the `[parity]` section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_serializer, field_validator

from evenhand.audits.parity.metrics import METRICS
from evenhand.core.spec import Spec
from evenhand.errors import did_you_mean


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class ParitySpec(Spec):
    """The settings of the parity audit.

    Examples
    --------
    >>> ParitySpec(metrics=["tpr", "fpr"]).metrics
    ('tpr', 'fpr')
    """

    code: ClassVar[tuple[str, ...]] = ("custom",)

    metrics: Names | None = Field(None, description="Metrics to compute; by default all that the data allows.")
    custom: dict[str, Callable[..., Any]] = Field({}, description="Your own metrics: functions of a group's cells.")
    reference: dict[str, str] | str | None = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    within: Names = Field((), description="Legitimate factors: compare groups within their strata.")
    bins: int = Field(10, ge=2, le=100, description="Equal score bins for calibration.")
    interval: Literal["auto", "percentile", "basic", "bca"] = Field(
        "auto", description="auto: Wilson, t and DeLong limits where they hold best; else that bootstrap interval."
    )

    @field_validator("metrics")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name not in METRICS:
                raise ValueError(f"there is no metric {name!r}; {did_you_mean(name, METRICS)}")
        return value

    @field_validator("custom")
    @classmethod
    def _new_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in METRICS:
                raise ValueError(f"{name!r} is a built-in metric; give your own another name")
        return value

    @field_serializer("custom")
    def _by_name(self, value: dict[str, Any]) -> dict[str, str]:
        return {name: f"{function.__module__}:{function.__qualname__}" for name, function in value.items()}
