"""The settings of the effort audit: arguments of `eh.effort` and the `[effort]` section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from evenhand.audits.effort.choices import Choices, as_choices
from evenhand.audits.effort.metrics import METRICS
from evenhand.core.metrics import Metric
from evenhand.core.spec import Spec, is_from_json, limits
from evenhand.core.thresholds import Threshold
from evenhand.errors import SettingError, did_you_mean
from evenhand.settings import Settings, named_once
from evenhand.stats.effort import TrajectoryMeasure
from evenhand.stats.pairs import Device
from evenhand.table.roles import Columns

CURVE_WEIGHTS = tuple(k / 10 for k in range(11))
"""Weights of effort at which the curve of individual fairness is computed."""


class History(Settings):
    """A long table of trajectories: one row for each person and time.

    Examples
    --------
    >>> History(source="incomes.csv", time="year", value="income").value
    'income'
    """

    data: Any = Field(None, exclude=True, description="A data frame or a mapping of columns, in Python.")
    source: str | None = Field(None, description="The path of a file, relative to that of `audit.toml`.")
    id: str | None = Field(None, description="Its column with the table's ids; by default it has the same name.")
    time: str = Field(description="Its column of time stamps, numbers.")
    value: str = Field(description="Its column of the feature.")

    @model_validator(mode="after")
    def _one_source(self, info: ValidationInfo) -> Self:
        if (self.data is None) == (self.source is None) and not is_from_json(info):
            raise SettingError("`history` needs its table: give exactly one of `data` and `source`")
        return self


class InertiaSource(Settings):
    """One source of inertia with its standard errors: rates by group, or a column of each person's own numbers.

    Examples
    --------
    >>> InertiaSource(by="race", rates={"White": 13, "Black": 39}, errors={"Black": 1.5}).by
    ('race',)
    """

    by: Columns | None = Field(None, description="The group column of `rates`, or several: rates of combinations.")
    rates: dict[str, float] = Field({}, description="A rate for every group ('Black × F' for a combination).")
    errors: dict[str, float] = Field({}, description="Standard errors of the rates; one that is not named is known.")
    column: str | None = Field(None, description="A column of everybody's own number, instead of rates.")
    error_column: str | None = Field(None, description="The column of their standard errors.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.column is None) == (not self.rates):
            raise SettingError("a source of inertia needs either `rates` with `by`, or a `column`")
        if self.rates and self.by is None:
            raise SettingError("`rates` need `by`, the group column that they refer to")
        unknown = [group for group in self.errors if group not in self.rates]
        if unknown:
            raise SettingError(
                "`errors` has {unknown!r}, which has no rate; {hint}",
                unknown=unknown[0],
                hint=did_you_mean(unknown[0], self.rates),
            )
        for name, numbers in (("rates", self.rates), ("errors", self.errors)):
            for group, number in numbers.items():
                if not (isfinite(number) and (number > 0 if name == "rates" else number >= 0)):
                    raise SettingError(
                        "`{name}` of {group!r} must be finite and not below 0; got {number:g}",
                        name=name,
                        group=group,
                        number=number,
                    )
        return self


class InertiaSources(Settings):
    """Several sources of inertia, combined for each person.

    Rates by group are divided by the largest rate; columns are used unchanged. `product` multiplies the sources, and
    `sum` averages them. A table of combinations is one source with several columns in `by`.
    """

    sources: dict[str, InertiaSource] = Field(min_length=1, description="The sources, by names of your own.")
    combine: Literal["product", "sum"] = Field("product", description="How a person's sources make one inertia.")
    imputations: int = Field(
        20, ge=2, le=200, description="Sets of rates as they may truly be, which carry the errors into the intervals."
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with people's own numbers and their errors."""
        names = (name for source in self.sources.values() for name in (source.column, source.error_column))
        return tuple(dict.fromkeys(name for name in names if name is not None))


def _as_inertia(value: object) -> object:
    """Convert a mapping with `sources`, so that error messages are about the intended form."""
    return InertiaSources.model_validate(value) if isinstance(value, Mapping) and "sources" in value else value


class SimilarPairs(Settings):
    """A table of judged pairs of people, one row each, to learn a distance from.

    Examples
    --------
    >>> SimilarPairs(source="judged.csv", first="a", second="b").similar
    'similar'
    """

    data: Any = Field(None, exclude=True, description="A data frame or a mapping of columns, in Python.")
    source: str | None = Field(None, description="The path of a file, relative to that of `audit.toml`.")
    first: str = Field("first", description="Its column with the id of the one.")
    second: str = Field("second", description="Its column with the id of the other.")
    similar: str = Field("similar", description="Its column of judgements: 1 where the two are similar, else 0.")

    @model_validator(mode="after")
    def _one_source(self, info: ValidationInfo) -> Self:
        if (self.data is None) == (self.source is None) and not is_from_json(info):
            raise SettingError("`similar` needs its table: give exactly one of `data` and `source`")
        return self


class DistanceSettings(Settings):
    """The distance between two people, which bounds the difference of their scores.

    Examples
    --------
    >>> DistanceSettings(norm="manhattan", lipschitz=0.5).lipschitz
    0.5
    """

    norm: Literal["euclidean", "manhattan", "maximum", "learned", "own"] = Field(
        "euclidean",
        description="euclidean (the paper's), manhattan, maximum, or learned from pairs of people that were judged; "
        "own for a function, which only Python can give.",
    )
    effort_scale: float = Field(1.0, gt=0, description="Differences in effort are divided by this.")
    aggregate_scale: float = Field(1.0, gt=0, description="Differences in aggregate are divided by this.")
    lipschitz: float = Field(1.0, gt=0, description="How much scores may differ for each unit of distance.")
    similar: SimilarPairs | None = Field(None, description="The judged pairs that a learned distance comes from.")
    function: Any = Field(
        None,
        exclude=True,
        description="A function of the efforts and aggregates of the one and of the other (four arrays), in Python.",
    )

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        if (self.norm == "learned") != (self.similar is not None):
            raise SettingError("the norm 'learned' needs the judged pairs `similar`, and no other norm has them")
        if self.norm == "own" and not callable(self.function) and not is_from_json(info):
            raise SettingError("the norm 'own' needs a `function` of Python")
        return self


def _as_distance(value: object) -> object:
    """Convert a norm's name or a function to the settings of a distance."""
    if callable(value) and not isinstance(value, Settings):
        return {"norm": "own", "function": value}
    return {"norm": value} if isinstance(value, str) else value


class EffortThreshold(Threshold):
    """A limit on a number of the effort audit."""

    weight: float | None = Field(None, description="Limit only this effort weight.")


class EffortSpec(Spec):
    """The settings of the effort audit.

    Examples
    --------
    >>> EffortSpec(trajectory=["y1", "y2", "y3"], scale=200_000).weights
    (0.5,)
    """

    audit: ClassVar[str] = "effort"
    thresholds: tuple[EffortThreshold, ...] = limits()
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("model", "grouping")
    column_settings: ClassVar[tuple[str, ...]] = ("trajectory",)
    input_types: ClassVar[Mapping[str, str]] = {
        "distance": 'Literal["euclidean", "manhattan", "maximum"] | Mapping[str, object] | Callable[..., object]',
        "inertia": "str | Mapping[str, float] | Mapping[str, object] | None",
        "robustness": "bool | Mapping[str, object] | None",
        "weights": "float | Sequence[float]",
    }

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
    inertia: Annotated[InertiaSources | dict[str, float] | str | None, BeforeValidator(_as_inertia)] = Field(
        None,
        description="A column, rates by group (scaled by the largest), a published table such as nces-2012, several "
        "`sources` with their errors, or none.",
    )
    inertia_by: str | None = Field(None, description="Group column that rates by group refer to; by default race.")
    weights: tuple[float, ...] = Field(
        (0.5,), min_length=1, description="Weights of effort against aggregate in the distance."
    )
    distance: Annotated[DistanceSettings, BeforeValidator(_as_distance)] = Field(
        DistanceSettings(),
        description="How far apart people are: euclidean, manhattan, maximum, a table of settings, or a function.",
    )
    parity_of: Literal["scores", "decisions"] = Field(
        "scores",
        description="Whether parity by effort compares mean scores, or shares selected by each model's threshold.",
    )
    width: float = Field(0.1, gt=0, le=1, description="Width of the effort bins of group fairness.")
    method: Literal["auto", "strips", "blocks", "grid", "sampled"] = Field(
        "auto", description="How pairs are compared."
    )
    device: Device = Field(
        "cpu",
        exclude=True,
        description="Where all pairs are compared: 'cpu'; 'cuda', a graphics card, exactly up to 5 million different "
        "people; or 'auto', a card where there is one. It is recorded in run.json.",
    )
    robustness: Annotated[Choices | None, BeforeValidator(as_choices)] = Field(
        None, description="Whether to try other defensible choices too: true, or a table of them."
    )
    worst: int = Field(
        10, ge=0, le=1_000, description="How many of the least fair pairs, and of the people in such pairs, are listed."
    )
    individuals: bool = Field(
        False, description="Whether reports and records show the least fair pairs and their people, by id."
    )

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics of the audit."""
        return METRICS

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
                raise SettingError("each of `weights` must be between 0 and 1; got {weight:g}", weight=weight)
        return tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _thresholds_name_what_can_be(self) -> Self:
        for threshold in self.thresholds:
            why = {"weight": "does not weigh effort", "grouping": "compares individuals"}
            wrong = ["weight"] if threshold.metric != "eaif" else []
            wrong += ["grouping"] if threshold.of == "value" else []
            for name in wrong:
                if getattr(threshold, name) is not None:
                    raise SettingError(
                        "a threshold for {metric!r} {why}: leave out its `{name}`",
                        metric=threshold.metric,
                        why=why[name],
                        name=name,
                    )
            if threshold.weight is not None and threshold.weight not in self.weights:
                raise SettingError(
                    "`weight` {weight:g} of a threshold is not among `weights`; add it there", weight=threshold.weight
                )
        return self

    @model_validator(mode="after")
    def _one_kind_of_trajectory(self) -> Self:
        if bool(self.trajectory) == (self.history is not None):
            raise SettingError("give either `trajectory` (columns) or `history` (a long table)")
        if self.trajectory and len(self.trajectory) < 3:
            raise SettingError("`trajectory` needs at least 3 time steps; got {number}", number=len(self.trajectory))
        if self.history is not None and self.times is not None:
            raise SettingError("`times` applies to `trajectory` only; a `history` has its own time stamps")
        if self.robustness is not None and self.trajectory:
            self.robustness.grid(self, self.trajectory)  # refuse a wrong window before any computation
        return self

    @model_validator(mode="after")
    def _stamps(self) -> Self:
        if self.times is not None and (
            len(self.times) != len(self.trajectory)
            or list(self.times) != sorted(set(self.times))
            or not all(map(isfinite, self.times))
        ):
            raise SettingError(
                "`times` must be {number} rising time stamps; got {times}",
                number=len(self.trajectory),
                times=list(self.times),
            )
        return self
