"""What the effort audit can be told: arguments of `eh.effort` and the `[effort]` section of `audit.toml`."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from evenhand.audits.effort.robustness.choices import Choices, as_choices
from evenhand.core.spec import Spec, Threshold, require_known_metrics
from evenhand.settings import Settings, named_once
from evenhand.stats.effort import TrajectoryMeasure

METRICS = ("eaif", "effort_parity")
"""What a threshold can limit: individual fairness, and the parity of the least equal effort bin."""


class History(Settings):
    """A long table of trajectories: one row for each person and time.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a file; `source` is the same for `audit.toml`.
    id : its column with the values of the table's id column; by default it has the same name.
    time : its column of time stamps, numbers.
    value : its column of the feature.
    """

    data: Any = Field(None, exclude=True)
    source: str | None = None
    id: str | None = None
    time: str
    value: str

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.data is None) == (self.source is None):
            raise ValueError("`history` needs its table: give exactly one of `data` and `source`")
        return self


class EffortSpec(Spec):
    """The settings of the effort audit.

    Examples
    --------
    >>> EffortSpec(trajectory=["y1", "y2", "y3"], scale=200_000).weights
    (0.5,)
    """

    trajectory: tuple[str, ...] = Field((), description="Columns of one feature over time, earliest first; at least 3.")
    history: History | None = Field(
        None, description="A long table instead of columns: its `source`, `id`, `time` and `value`."
    )
    times: tuple[float, ...] | None = Field(
        None, description="Rising time stamps of the columns; by default 0, 1, 2 ..."
    )
    measure: TrajectoryMeasure = Field(
        "acceleration", description="How a trajectory is summed up; the paper's is acceleration."
    )
    desirable: bool = Field(True, description="Whether more of the feature is better (income) or worse (arrests).")
    unit: float = Field(
        1.0, gt=0, description="The feature is measured in this unit for effort ($10,000 in the paper)."
    )
    scale: float = Field(
        1.0, gt=0, description="The total is divided by this for the aggregate ($200,000 in the paper)."
    )
    inertia: dict[str, float] | str | None = Field(
        None,
        description="A column, rates by group (scaled by the largest), a published table such as nces-2012, or none.",
    )
    inertia_by: str | None = Field(None, description="Group column that rates by group refer to; by default race.")
    weights: tuple[float, ...] = Field(
        (0.5,), min_length=1, description="Weights of effort against aggregate in the distance."
    )
    width: float = Field(0.1, gt=0, le=1, description="Width of the effort bins of group fairness.")
    method: Literal["auto", "strips", "blocks", "grid", "sampled"] = Field(
        "auto", description="How pairs are compared."
    )
    robustness: Annotated[Choices | None, BeforeValidator(as_choices)] = Field(
        None, description="Whether to try other defensible choices too: true, or a table of them."
    )
    worst: int = Field(
        10, ge=0, le=1_000, description="How many of the least fair pairs, and of the people in such pairs, are listed."
    )

    @field_validator("trajectory")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return named_once("trajectory", value)

    @field_validator("weights", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, int | float) else value

    @field_validator("weights")
    @classmethod
    def _shares(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        for weight in value:
            if not 0 <= weight <= 1:
                raise ValueError(f"each of `weights` must be between 0 and 1; got {weight:g}")
        return tuple(dict.fromkeys(value))

    @field_validator("thresholds")
    @classmethod
    def _known_limits(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        require_known_metrics(value, METRICS)
        for threshold in value:
            if threshold.metric == "eaif" and threshold.grouping is not None:
                raise ValueError("a threshold for 'eaif' compares individuals: leave out its `grouping`")
            if threshold.stratum is not None or threshold.against != "worst_pair" or threshold.kind == "difference":
                raise ValueError(
                    f"a threshold for {threshold.metric!r} has no `stratum`, `against` or `kind`: leave them out"
                )
            if threshold.min is None or not 0 < threshold.min <= 1:
                raise ValueError(
                    f"the threshold for {threshold.metric!r} must give min= above 0 and at most 1, since 1 is fair; "
                    f"got {threshold.in_words()}"
                )
        return tuple(threshold.model_copy(update={"audit": "effort"}) for threshold in value)

    @model_validator(mode="after")
    def _one_kind_of_trajectory(self) -> Self:
        if bool(self.trajectory) == (self.history is not None):
            raise ValueError("give either `trajectory` (columns) or `history` (a long table)")
        if self.trajectory and len(self.trajectory) < 3:
            raise ValueError(f"`trajectory` needs at least 3 time steps; got {len(self.trajectory)}")
        if self.history is not None and self.times is not None:
            raise ValueError("`times` goes with `trajectory`; a `history` has its own time stamps")
        if self.robustness is not None and self.trajectory:
            self.robustness.grid(self, self.trajectory)  # refuses a wrong window before the work
        return self

    @model_validator(mode="after")
    def _stamps(self) -> Self:
        if self.times is not None and (
            len(self.times) != len(self.trajectory)
            or list(self.times) != sorted(set(self.times))
            or not all(map(isfinite, self.times))
        ):
            raise ValueError(f"`times` must be {len(self.trajectory)} rising time stamps; got {list(self.times)}")
        return self
