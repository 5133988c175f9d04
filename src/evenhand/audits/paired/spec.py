"""The settings of the paired tests: arguments of `eh.paired` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from evenhand.audits.paired.metrics import METRICS
from evenhand.core.metrics import Metric
from evenhand.core.spec import Names, Reference, Spec
from evenhand.errors import SettingError, require_name
from evenhand.settings import named_once
from evenhand.table.roles import Columns, Scalar


class PairedSpec(Spec):
    """The settings of the paired tests.

    Examples
    --------
    >>> PairedSpec(template="prompt", answer="verdict", placebo="order").placebo
    ('order',)
    """

    audit: ClassVar[str] = "paired"
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("grouping", "group")
    column_settings: ClassVar[tuple[str, ...]] = ("template", "answer", "placebo")
    counted: ClassVar[str] = "answers"
    input_types: ClassVar[Mapping[str, str]] = {"placebo": "ColumnArgument | Sequence[str | ColumnArgument] | None"}

    template: str = Field(
        description="Column of what stays the same while the person changes: a prompt, a CV, an advertisement."
    )
    answer: str = Field(description="Column of the answer: one of two values (pass or fail), or a number (a rating).")
    positive: Scalar | None = Field(
        None, description="The answer that is a pass; by default 1, true or yes. All others fail."
    )
    refused: tuple[Scalar, ...] = Field((), description="Answers that are refusals, which neither pass nor fail.")
    missing: Literal["error", "drop", "refusal"] | None = Field(
        None, description="Rows without an answer: refuse, leave out, or take as refusals; by default the table's."
    )
    placebo: Columns | None = Field(
        None,
        description="Columns that should change nothing, such as the order of the options or which of several names "
        "stands for a group; they are compared in the same way, within each template and group.",
    )
    favourable: Literal["higher", "lower"] | None = Field(
        None,
        description="Which answers are good for the person: 'higher' (or a pass), or 'lower'; without it no group is "
        "called worse off.",
    )
    metrics: Names | None = Field(None, min_length=1, description="Metrics to compute; by default all that apply.")
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

    @model_validator(mode="after")
    def _different_columns(self) -> Self:
        named_once("template, answer, placebo", (self.template, self.answer, *(self.placebo or ())))
        return self
