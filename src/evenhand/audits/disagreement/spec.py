"""What the disagreement audit can be told: arguments of `eh.disagreement`, the `[disagreement]` of `audit.toml`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from evenhand.core.spec import Spec, Threshold, require_known_metrics
from evenhand.settings import Settings
from evenhand.stats.feedback import METRICS, Bounds
from evenhand.table.roles import Scalar

COLUMNS = ("critic", "disagree", "answer", "direction", "case", "stakeholder", "truth", "answered")
"""The settings that name columns of the answers, in one table or in a table of feedback."""


class FeedbackTable(Settings):
    """A table of answers, one row each, beside the table of cases.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a file; `source` is the same for `audit.toml`.
    case : its column with the values of the table's id column; by default it has the same name.
    critic, disagree, answer, direction, stakeholder, truth, answered : its other columns, as in the settings above.
    """

    data: Any = Field(None, exclude=True)
    source: str | None = None
    case: str | None = None
    critic: str | None = None
    disagree: str | None = None
    answer: str | None = None
    direction: str | None = None
    stakeholder: str | None = None
    truth: str | None = None
    answered: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.data is None) == (self.source is None):
            raise ValueError("`feedback` needs its table: give exactly one of `data` and `source`")
        return self


class DisagreementSpec(Spec):
    """The settings of the disagreement audit.

    Examples
    --------
    >>> DisagreementSpec(decision="quality", critic="who", disagree="disagrees").column("critic")
    'who'
    """

    decision: str = Field(description="Column of the label that the system gave to the case.")
    critic: str | None = Field(None, description="Column that says who answered.")
    disagree: str | None = Field(None, description="Column of the answer as yes or no: 1 when the critic disagrees.")
    answer: str | None = Field(
        None, description="Column of the answer in words: agree, disagree; or right, too high, too low."
    )
    direction: str | None = Field(
        None, description="Column beside `disagree` that says which way: too high, too low; right or empty if neither."
    )
    case: str | None = Field(None, description="Column that says which case was answered; critics may share cases.")
    stakeholder: str | None = Field(None, description="Column with the kind of critic: patient, surgeon ...")
    feedback: FeedbackTable | None = Field(
        None, description="A table of answers of its own, joined to a table of cases by the cases' id."
    )
    labels: tuple[Scalar, ...] | None = Field(
        None, description="All labels that the system can give, lowest first; by default those seen."
    )
    ordered: bool | None = Field(
        None, description="Whether the labels have an order; by default numbers have one and words have none."
    )
    tolerance: int | None = Field(
        None, ge=0, description="A critic agrees when the two labels are at most this many steps apart; by default 0."
    )
    bounds: Bounds = Field("sharp", description="Sharp bounds, or the looser ones that were published.")
    truth: str | None = Field(None, description="Column of the critic's own label, where that is known.")
    contradictions: Literal["error", "latest"] = Field(
        "error", description="What to do when a critic answers a case in two ways: refuse, or take the latest."
    )
    answered: str | None = Field(None, description="Column of the time of the answer, for `contradictions = 'latest'`.")
    cases: Literal["sample", "all"] = Field(
        "sample", description="Whether the cases are a sample of those that matter, or all of them."
    )
    target_width: float | None = Field(
        None, gt=0, lt=1, description="Plan how many more answers would narrow each interval to this width."
    )
    resamples: int = Field(1_000, ge=100, le=1_000_000, description="Bootstrap resamples of critics and cases.")
    min_count: int = Field(10, ge=1, description="Groups with fewer cases are listed but left out of gaps.")

    def column(self, role: str) -> str | None:
        """Return the column that has a role among the answers; the table of feedback may name it too."""
        own: str | None = getattr(self, role)
        inner: str | None = None if self.feedback is None else getattr(self.feedback, role)
        return own if inner is None else inner

    @field_validator("labels")
    @classmethod
    def _labels(cls, value: tuple[Scalar, ...] | None) -> tuple[Scalar, ...] | None:
        if value is None:
            return value
        if len(value) < 2:
            raise ValueError(f"`labels` needs at least two labels, or there is nothing to disagree about; got {value}")
        kinds = {"text" if isinstance(v, str) else "boolean" if isinstance(v, bool) else "number" for v in value}
        if len(kinds) > 1:
            raise ValueError(f"`labels` must be all numbers or all text; got {list(value)}")
        twice = next((label for place, label in enumerate(value) if label in value[:place]), None)
        if twice is not None:
            raise ValueError(f"`labels` names {twice!r} twice")
        return value

    @field_validator("thresholds")
    @classmethod
    def _known_limits(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        require_known_metrics(value, METRICS)
        for threshold in value:
            if threshold.max is None or not 0 <= threshold.max < 1:
                raise ValueError(
                    f"the threshold for {threshold.metric!r} limits a difference: give max= of 0 or more and below 1; "
                    f"got {threshold.in_words()}"
                )
            if "audit" in threshold.model_fields_set and threshold.audit != "disagreement":
                raise ValueError(f"a threshold of the disagreement audit has `audit` {threshold.audit!r}; leave it out")
            if threshold.model is not None or threshold.against != "worst_pair" or threshold.kind == "ratio":
                raise ValueError(
                    f"a threshold for {threshold.metric!r} has no `model`, `against` or `kind` 'ratio': it limits the "
                    "largest difference between two groups; leave them out"
                )
        return tuple(threshold.model_copy(update={"audit": "disagreement"}) for threshold in value)

    @model_validator(mode="after")
    def _columns(self) -> Self:
        for role in COLUMNS:
            own, inner = getattr(self, role), getattr(self.feedback, role, None)
            if own is not None and inner is not None and own != inner:
                raise ValueError(f"`{role}` is {own!r}, but {inner!r} in `feedback`; give it once")
        if self.column("critic") is None:
            raise ValueError("`critic` is required: the column that says who answered")
        if (self.column("disagree") is None) == (self.column("answer") is None):
            raise ValueError("give either `disagree` (a column of yes and no) or `answer` (a column of words)")
        if self.column("direction") is not None and self.column("disagree") is None:
            raise ValueError("`direction` goes with `disagree`; answers in words say the direction themselves")
        if self.contradictions == "latest" and self.column("answered") is None:
            raise ValueError("`contradictions` 'latest' needs `answered`, the column of the time of the answer")
        return self

    @model_validator(mode="after")
    def _sense(self) -> Self:
        if self.ordered is False and self.column("direction") is not None:
            raise ValueError("`direction` needs ordered labels, but `ordered` is false; leave one of them out")
        if self.ordered is False and self.tolerance:
            raise ValueError("`tolerance` needs ordered labels, but `ordered` is false; leave one of them out")
        if self.bounds == "published" and self.tolerance:
            raise ValueError("`bounds` 'published' knows no tolerance; use 'sharp', or leave `tolerance` out")
        if self.bounds == "published" and any(t.metric == "overall_misclassification" for t in self.thresholds):
            raise ValueError(
                "a threshold for 'overall_misclassification' cannot be judged by `bounds` 'published': the truth can "
                "lie outside of them; use 'sharp', or leave the threshold out"
            )
        if self.target_width is not None and self.cases == "all":
            raise ValueError("`target_width` plans for a sample of cases; leave it out, or set `cases` to 'sample'")
        return self
