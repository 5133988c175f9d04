"""The settings of the agreement audit: arguments of `eh.agreement` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from evenhand.audits.agreement.metrics import METRICS, AgreementMetric, Scale
from evenhand.core.spec import Names, Reference, Spec
from evenhand.errors import SettingError, problem, require_name
from evenhand.settings import named_once
from evenhand.table.roles import Columns, Scalar


class AgreementSpec(Spec):
    """The settings of the agreement audit.

    Examples
    --------
    >>> AgreementSpec(raters=["nurse", "doctor"]).raters
    ('nurse', 'doctor')
    >>> AgreementSpec(item="case", rater="coder", rating="grade").is_long
    True
    """

    audit: ClassVar[str] = "agreement"
    takes_clusters: ClassVar[bool] = True
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("grouping", "group")
    column_settings: ClassVar[tuple[str, ...]] = ("raters", "item", "rater", "rating")
    input_types: ClassVar[Mapping[str, str]] = {
        "raters": "ColumnArgument | Sequence[str | ColumnArgument] | Mapping[str, ColumnArgument] | None"
    }

    raters: Columns | None = Field(
        None,
        description="Columns of two or more raters' ratings of the same people; or give `item`, `rater`, `rating`.",
    )
    item: str | None = Field(
        None, description="Where a row is one rating: column of who or what was rated. Not all raters need rate all."
    )
    rater: str | None = Field(None, description="Where a row is one rating: column of who rated.")
    rating: str | None = Field(None, description="Where a row is one rating: column of the rating.")
    scale: Scale | None = Field(
        None, description="What the ratings are; by default two values are binary, text nominal, numbers interval."
    )
    categories: tuple[Scalar, ...] | None = Field(
        None, description="All values a rating can take, lowest first; by default those that occur."
    )
    positive: Scalar | None = Field(
        None, description="The value of a binary rating that counts as positive; by default 1, true, yes, or the last."
    )
    metrics: Names | None = Field(
        None,
        min_length=1,
        description="Metrics to compute, all of which are tested and reported as findings; by default all that the "
        "ratings allow, of which the headline ones are reported.",
    )
    reference: Reference = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    missing: Literal["error", "drop", "keep"] | None = Field(
        None,
        description="People with a missing rating: refuse, leave out, or use the others; by default the table's, and "
        "'keep' where a row is one rating.",
    )
    resamples: int = Field(2_000, ge=100, le=1_000_000, description="Bootstrap resamples of people.")

    @property
    def is_long(self) -> bool:
        """Whether a row of the table is one rating, not one person."""
        return self.raters is None

    def known_metrics(self) -> Mapping[str, AgreementMetric]:
        """Return the metrics of all scales."""
        return METRICS

    @field_validator("raters", mode="before")
    @classmethod
    def _not_none(cls, value: object) -> object:
        if isinstance(value, list | tuple) and not value:
            raise SettingError("`raters` needs two or more columns; got none")
        return value

    @field_validator("raters")
    @classmethod
    def _two_or_more(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and len(named_once("raters", value)) < 2:
            raise SettingError("`raters` needs two or more columns; got {number}", number=len(value))
        return value

    @field_validator("categories")
    @classmethod
    def _different(cls, value: tuple[Scalar, ...] | None) -> tuple[Scalar, ...] | None:
        if value is not None and (len(value) < 2 or len(set(value)) < len(value)):
            raise SettingError("`categories` must be two or more different values; got {value}", value=list(value))
        return value

    @field_validator("metrics")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value == ():
            raise SettingError("`metrics` names no metric; name some, or leave it out")
        for name in value or ():
            require_name(name, METRICS, "there is no metric {name!r}; {hint}", SettingError)
        return value

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        long = {"item": self.item, "rater": self.rater, "rating": self.rating}
        absent = [name for name, column in long.items() if column is None]
        if self.raters is not None and len(absent) < len(long):
            raise SettingError(
                "give `raters`, a column for each, or `item`, `rater` and `rating`, a row for each rating"
            )
        if self.raters is None and absent:
            all_absent = len(absent) == len(long)
            needs = problem("`raters`, a column for each rater") if all_absent else problem("`{name}`", name=absent[0])
            raise SettingError(
                "needs {needs}, or all of `item`, `rater` and `rating` where a row is one rating", needs=needs
            )
        if self.raters is None:
            named_once("item, rater, rating", tuple(map(str, long.values())))
        return self

    @model_validator(mode="after")
    def _fits_the_scale(self) -> Self:
        if self.positive is not None and self.scale not in (None, "binary"):
            raise SettingError("`positive` applies to binary ratings only")
        if self.categories is not None and self.scale == "interval":
            raise SettingError("`categories` do not go with the interval scale")
        return self
