"""The settings of the disagreement audit: arguments of `eh.disagreement` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from evenhand.audits.disagreement.metrics import CriticMetric, metrics_for
from evenhand.core.spec import Spec, limits
from evenhand.core.thresholds import Threshold
from evenhand.errors import SettingError
from evenhand.settings import Settings
from evenhand.stats.feedback import Bounds
from evenhand.table.roles import Scalar


class Answers(Settings):
    """Settings for reading the answers, and their table if it is separate.

    Examples
    --------
    >>> Answers(labels=["low", "medium", "high"], ordered=True).tolerance
    0
    """

    data: Any = Field(
        None,
        exclude=True,
        description="A table of answers, one row each, joined to the table of cases by the cases' id: a data frame, "
        "a mapping of columns, or the path of a file. Critics, answers and cases are then columns of this table.",
    )
    source: str | None = Field(None, description="The same as a file, relative to `audit.toml`.")
    labels: tuple[Scalar, ...] | None = Field(
        None, description="All labels that the system can give, lowest first; by default those seen."
    )
    ordered: bool | None = Field(
        None, description="Whether the labels have an order; by default numbers have one and words have none."
    )
    tolerance: int = Field(
        0, ge=0, description="A critic agrees when the two labels are at most this many steps apart."
    )
    truth: str | None = Field(None, description="Column of the critic's own label, where that is known.")
    contradictions: Literal["error", "latest"] = Field(
        "error", description="What to do when a critic answers a case in two ways: refuse, or take the latest."
    )
    answered: str | None = Field(None, description="Column of the time of the answer, for `contradictions = 'latest'`.")
    cases: Literal["sample", "all"] = Field(
        "sample",
        description="Whether the cases are a sample of those that matter, or all of them. Critics are always a sample.",
    )
    target_width: float | None = Field(
        None, gt=0, lt=1, description="Plan how many more answers would narrow the interval of each gap to this width."
    )

    @property
    def apart(self) -> bool:
        """Whether the answers are in a separate table."""
        return self.data is not None or self.source is not None

    @field_validator("labels")
    @classmethod
    def _distinct_labels(cls, value: tuple[Scalar, ...] | None) -> tuple[Scalar, ...] | None:
        if value is None:
            return value
        if len(value) < 2:
            raise SettingError(
                "`labels` needs at least two labels, or there is nothing to disagree about; got {value}",
                value=list(value),
            )
        kinds = {"text" if isinstance(v, str) else "boolean" if isinstance(v, bool) else "number" for v in value}
        if len(kinds) > 1:
            raise SettingError("`labels` must be all numbers or all text; got {value}", value=list(value))
        twice = next((label for position, label in enumerate(value) if label in value[:position]), None)
        if twice is not None:
            raise SettingError("`labels` names {twice!r} twice", twice=twice)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.data is not None and self.source is not None:
            raise SettingError("give the table of answers once: as `data` or as `source`")
        if self.contradictions == "latest" and self.answered is None:
            raise SettingError("`contradictions` 'latest' needs `answered`, the column of the time of the answer")
        if self.ordered is False and self.tolerance:
            raise SettingError("`tolerance` needs ordered labels, but `ordered` is false; leave one of them out")
        if self.target_width is not None and self.cases == "all":
            raise SettingError("`target_width` plans for a sample of cases; leave it out, or set `cases` to 'sample'")
        return self


class DisagreementThreshold(Threshold):
    """A limit on a number of the disagreement audit."""

    pooled: ClassVar[tuple[str, ...]] = ("stratum", "stakeholder")

    stakeholder: str | None = Field(None, description="Limit only this kind of critic; by default all.")


class DisagreementSpec(Spec):
    """The settings of the disagreement audit.

    Examples
    --------
    >>> DisagreementSpec(decision="quality", critic="who", disagree="disagrees").columns
    {'critic': 'who', 'disagree': 'disagrees'}
    """

    audit: ClassVar[str] = "disagreement"
    thresholds: tuple[DisagreementThreshold, ...] = limits()
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("grouping",)
    column_settings: ClassVar[tuple[str, ...]] = (
        "decision",
        "critic",
        "disagree",
        "answer",
        "direction",
        "case",
        "stakeholder",
    )
    counted: ClassVar[str] = "answers"
    own_clusters: ClassVar[tuple[str, ...]] = ("critic", "case")

    decision: str = Field(description="Column of the label that the system gave to the case.")
    critic: str = Field(description="Column that says who answered.")
    disagree: str | None = Field(None, description="Column of the answer as yes or no: 1 when the critic disagrees.")
    answer: str | None = Field(
        None, description="Column of the answer in words: agree, disagree; or right, too high, too low."
    )
    direction: str | None = Field(
        None, description="Column beside `disagree` that says which way: too high, too low; right or empty if neither."
    )
    case: str | None = Field(
        None,
        description="Column that says which case was answered; critics may share cases. Without it each answer counts "
        "as a case of its own; in a table of answers it is by default named like the id of the cases.",
    )
    stakeholder: str | None = Field(None, description="Column with the kind of critic: patient, surgeon ...")
    like: dict[str, float] | None = Field(
        None,
        description="Columns of the cases that make two of them like one another, with how far apart they may be, 0 "
        "for the same: {age = 5, charge = 0}. Pairs of like cases that one critic judged are then compared.",
    )
    answers: Answers = Field(
        Answers(), description="How the answers are read, and where they are if they have a table of their own."
    )
    bounds: Bounds = Field("sharp", description="Sharp bounds, or the looser ones that were published.")
    resamples: int = Field(5_000, ge=100, le=1_000_000, description="Bootstrap resamples of critics and cases.")
    min_count: int = Field(10, ge=1, description="Groups with fewer cases are listed but left out of gaps.")
    individuals: bool = Field(False, description="Publish the gaps that critics see one by one.")

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the answers, by role."""
        named = {
            "critic": self.critic,
            "disagree": self.disagree,
            "answer": self.answer,
            "direction": self.direction,
            "case": self.case,
            "stakeholder": self.stakeholder,
            "truth": self.answers.truth,
            "answered": self.answers.answered,
        }
        return {role: column for role, column in named.items() if column is not None}

    def known_metrics(self) -> Mapping[str, CriticMetric]:
        """Return the metrics available under these settings."""
        return metrics_for(self.answers.tolerance, self.bounds)

    @field_validator("like")
    @classmethod
    def _far_enough(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is not None and not value:
            raise SettingError("`like` names no column; name some, or leave it out")
        for column, far in (value or {}).items():
            if not 0 <= far < float("inf"):
                raise SettingError(
                    "`like` of {column!r} must be a number of at least 0; got {far}", column=column, far=far
                )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.disagree is None) == (self.answer is None):
            raise SettingError("give either `disagree` (a column of yes and no) or `answer` (a column of words)")
        if self.direction is not None and self.disagree is None:
            raise SettingError("`direction` applies to `disagree` only; answers in words say the direction themselves")
        if self.direction is not None and self.answers.ordered is False:
            raise SettingError("`direction` needs ordered labels, but `ordered` is false; leave one of them out")
        if self.bounds == "published" and self.answers.tolerance:
            raise SettingError("`bounds` 'published' knows no tolerance; use 'sharp', or leave `tolerance` out")
        if self.bounds == "published" and any(t.metric == "overall_misclassification" for t in self.thresholds):
            raise SettingError(
                "a threshold for 'overall_misclassification' cannot be judged by `bounds` 'published': the truth can "
                "lie outside of them; use 'sharp', or leave the threshold out"
            )
        return self
