"""What the agreement audit can be told: arguments of `eh.agreement`, the `[agreement]` of `audit.toml`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from evenhand.audits.agreement.statistics import Scale, compared_statistics, known_statistics
from evenhand.core.spec import Spec, Threshold, require_known_metrics
from evenhand.errors import did_you_mean
from evenhand.table.roles import Columns, Scalar


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class AgreementSpec(Spec):
    """The settings of the agreement audit.

    Examples
    --------
    >>> AgreementSpec(raters=["nurse", "doctor"]).raters
    ('nurse', 'doctor')
    """

    raters: Columns = Field(description="Columns of two or more raters' ratings of the same people.")
    scale: Scale | None = Field(
        None,
        description="What the ratings are; by default two values are binary, text nominal, numbers interval.",
    )
    categories: tuple[Scalar, ...] | None = Field(
        None, description="All values a rating can take, lowest first; by default those that occur."
    )
    positive: Scalar | None = Field(
        None, description="The value of a binary rating that counts as positive; by default 1, true, yes, or the last."
    )
    statistics: Names | None = Field(None, description="Statistics; by default all that the ratings allow.")
    reference: dict[str, str] | str | None = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    missing: Literal["error", "drop", "keep"] | None = Field(
        None,
        description="People with a missing rating: refuse, leave out, or use the others; by default the table's.",
    )
    resamples: int = Field(2_000, ge=100, le=1_000_000, description="Bootstrap resamples of people.")

    @field_validator("raters", mode="before")
    @classmethod
    def _not_none(cls, value: Any) -> Any:
        if isinstance(value, list | tuple) and not value:
            raise ValueError("`raters` needs two or more columns; got none")
        return value

    @field_validator("raters")
    @classmethod
    def _two_or_more(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for place, name in enumerate(value) if name in value[:place]), None)
        if twice is not None:
            raise ValueError(f"`raters` names the column {twice!r} twice")
        if len(value) < 2:
            raise ValueError(f"`raters` needs two or more columns; got {len(value)}")
        return value

    @field_validator("categories")
    @classmethod
    def _different(cls, value: tuple[Scalar, ...] | None) -> tuple[Scalar, ...] | None:
        if value is not None and (len(value) < 2 or len(set(value)) < len(value)):
            raise ValueError(f"`categories` must be two or more different values; got {list(value)}")
        return value

    @field_validator("statistics")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name not in known_statistics():
                raise ValueError(f"there is no statistic {name!r}; {did_you_mean(name, known_statistics())}")
        return value

    @field_validator("thresholds")
    @classmethod
    def _known_limits(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        require_known_metrics(value, known_statistics())
        for threshold in value:
            _require_sense(threshold)
        return tuple(threshold.model_copy(update={"audit": "agreement"}) for threshold in value)

    @model_validator(mode="after")
    def _sense(self) -> Self:
        if self.positive is not None and self.scale not in (None, "binary"):
            raise ValueError("`positive` goes with binary ratings")
        if self.categories is not None and self.scale == "interval":
            raise ValueError("`categories` do not go with the interval scale")
        for threshold in self.thresholds:
            if self.statistics is not None and threshold.metric not in self.statistics:
                raise ValueError(f"a threshold limits {threshold.metric!r}, which is not among `statistics`")
        return self


def _require_sense(threshold: Threshold) -> None:
    """Refuse a limit of something that the audit does not compare, and one that every gap meets."""
    what = f"the threshold for {threshold.metric!r}"
    if threshold.metric not in compared_statistics():
        raise ValueError(f"{what} limits nothing: it has no gap, since more of it is not more agreement; leave it out")
    most = 1 if threshold.metric.endswith("agreement") else 2
    if threshold.kind == "ratio" or threshold.max is None or not 0 <= threshold.max < most:
        raise ValueError(
            f"{what} limits the size of a gap, a difference: give max= of 0 or more and below {most}, and no `kind` "
            f"'ratio'; got {threshold.in_words()}"
        )
    if threshold.against == "overall":
        raise ValueError(f"{what} has `against` 'overall'; groups are compared with each other or with 'reference'")
    for name in ("model", "stratum"):
        if getattr(threshold, name) is not None:
            raise ValueError(f"a threshold of the agreement audit has no `{name}`; leave it out")
    if "audit" in threshold.model_fields_set and threshold.audit != "agreement":
        raise ValueError(f"a threshold of the agreement audit has `audit` {threshold.audit!r}; leave it out")
