"""The settings of the reliability audit: arguments of `eh.reliability` and its section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from evenhand.audits.reliability.metrics import (
    COMPANIONS,
    COMPANIONS_OF_NUMBERS,
    COMPARED,
    COMPARED_BY_DEFAULT,
    METRICS,
)
from evenhand.audits.reliability.model_sources import ModelSource, as_models
from evenhand.audits.reliability.noise import Noise, as_noise
from evenhand.core.metrics import Metric
from evenhand.core.spec import Names, Reference, Spec, limits
from evenhand.core.thresholds import Threshold
from evenhand.errors import SettingError, did_you_mean, require_name
from evenhand.settings import Settings, named_once
from evenhand.stats.types import FloatArray
from evenhand.table.roles import Columns


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _number_or_truth(value: object) -> object:
    """Convert an integer to float, so that the number 1 is not taken for true."""
    return value if isinstance(value, bool) or not isinstance(value, int) else float(value)


MOST_CUTS = 19


class Scoring(Settings):
    """Settings for reading models from files and computing their scores.

    Examples
    --------
    >>> Scoring(threshold=0.3, rows="frame").rows
    'frame'
    """

    model_config = ConfigDict(allow_inf_nan=False)

    threshold: float | tuple[float, ...] | Literal["deciles"] = Field(
        0.5,
        description="A person is selected when the score is above it. Several are the cuts between risk levels, or "
        "'deciles' of the scores without mistakes; a person is then selected above the last cut, or above 0.5.",
    )
    alike: float = Field(
        0.02,
        gt=0,
        description="Two people are no different when their scores without mistakes differ by no more than this; the "
        "passing rate is how often a mistake moves one further than that from the other.",
    )
    kind: Literal["score", "number"] | None = Field(
        None,
        description="What models give: a 'score', or a 'number' such as a salary, which has no threshold; by default a "
        "number where the table's outcome is one, or without an outcome where a regressor predicts no shares.",
    )
    missing: Literal["error", "drop", "keep"] | None = Field(
        None,
        description="People with a missing feature: refuse, leave out, or give to the model; by default the table's.",
    )
    rows: Literal["auto", "array", "frame"] = Field(
        "auto",
        description="What models of the user's get: 'array' (numbers), 'frame', or 'auto': a frame where the model was "
        "fitted to one or features hold text.",
    )
    trusted: Names = Field((), description="Types that a skops file may hold beside those that skops trusts.")
    allow_pickle: bool = Field(False, description="Whether pickle and joblib files, which can run any code, are read.")
    memory: int = Field(
        64, ge=1, description="Megabytes for rows at once; draws of people may take eight times as many."
    )

    @field_validator("threshold")
    @classmethod
    def _rising(cls, value: object) -> object:
        if isinstance(value, tuple):
            if len(value) < 2 or any(low >= high for low, high in pairwise(value)):
                raise SettingError(
                    "`threshold` as a list needs two or more rising cuts; got {value}", value=list(value)
                )
            if len(value) > MOST_CUTS:
                raise SettingError(
                    "`threshold` has {number} cuts; give at most {most}", number=len(value), most=MOST_CUTS
                )
        return value

    @property
    def are_numbers(self) -> bool:
        """Whether models predict numbers."""
        return self.kind == "number"

    @property
    def decision(self) -> float:
        """The cut-off of decisions."""
        if isinstance(self.threshold, str):
            return 0.5
        return self.threshold[-1] if isinstance(self.threshold, tuple) else self.threshold

    def cuts(self, scores: FloatArray) -> FloatArray:
        """Return the cut-offs between risk levels.

        They are empty for a single threshold. `scores` are the scores without mistakes.
        """
        if isinstance(self.threshold, str):
            return np.unique(np.quantile(scores, np.arange(1, 10) / 10))
        return np.asarray(self.threshold if isinstance(self.threshold, tuple) else (), dtype=np.float64)


class Mitigation(Settings):
    """The alternative models to try, and the accuracy that they may cost.

    Examples
    --------
    >>> Mitigation(family="sparse").family
    ('sparse',)
    """

    model_config = ConfigDict(allow_inf_nan=False)

    family: Annotated[tuple[Literal["sparse", "regularised", "monotone"], ...], BeforeValidator(_as_tuple)] = Field(
        min_length=1,
        description="Families of models that are fitted here: 'sparse' (few features), 'regularised' (small weights), "
        "'monotone' (scores that only rise, or only fall, with each number).",
    )
    model: str | None = Field(None, description="The model that they are compared with; by default the first.")
    margin: float = Field(
        0.01, ge=0, lt=1, description="A model is no less accurate when its accuracy is shown to be lower by no more."
    )
    export: str | None = Field(
        None, description="A .skops file for the chosen model, fitted to everybody, seen from the folder of audit.toml."
    )

    @field_validator("export")
    @classmethod
    def _skops(cls, value: str | None) -> str | None:
        if value is not None and not value.endswith(".skops"):
            raise SettingError("`export` must end in .skops; got {value!r}", value=value)
        return value


class ReliabilityThreshold(Threshold):
    """A limit on a gap of the reliability audit."""

    setting: str | None = Field(None, description="Limit only this noise setting.")


class ReliabilitySpec(Spec):
    """The settings of the reliability audit.

    Examples
    --------
    >>> spec = ReliabilitySpec(model="logistic", features=["age", "sex"], noise={"age": 5, "sex": "flip"})
    >>> spec.model["logistic"].estimator, spec.noise.features["sex"].flip
    ('logistic', True)
    """

    model_config = ConfigDict(allow_inf_nan=False)

    audit: ClassVar[str] = "reliability"
    thresholds: tuple[ReliabilityThreshold, ...] = limits()
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("model", "grouping", "group")
    column_settings: ClassVar[tuple[str, ...]] = ("features",)
    code_or_name: ClassVar[tuple[str, ...]] = ("model", "noise.derive")
    input_types: ClassVar[Mapping[str, str]] = {
        "model": "object",
        "features": "str | Sequence[str] | ColumnArgument",
        "noise": "str | Sequence[str] | Mapping[str, object] | Noise",
        "attribution": "bool | float",
    }
    runs_code: ClassVar[tuple[str, ...]] = ("scoring.allow_pickle", "scoring.trusted")

    model: Annotated[dict[str, ModelSource], BeforeValidator(as_models)] = Field(
        description="An estimator's name, a file, or several models by name, each with settings of its own."
    )
    features: Columns = Field(description="Columns that the models use: numbers, true or false, or text.")
    noise: Annotated[Noise, BeforeValidator(as_noise)] = Field(
        description='How mistakes are made: a Noise(...), mistakes by feature such as {"age": 5, "sex": "flip"}, or '
        "published settings by name, such as raez-2024/all/5.",
    )
    scoring: Scoring = Field(Scoring(), description="How models are read from files and asked for scores.")
    replicates: int = Field(100, ge=1, le=1_000_000, description="How often the mistakes are drawn.")
    folds: int | None = Field(
        None, ge=2, le=100, description="Parts in which estimators are fitted again; by default 5 for those not fitted."
    )
    metrics: Names = Field(
        COMPARED_BY_DEFAULT,
        min_length=1,
        description="Metrics that are compared between groups; findings are about PABAK, or else the first.",
    )
    reference: Reference = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    attribution: Annotated[bool | float, BeforeValidator(_number_or_truth)] = Field(
        True, description="Whether, or at which noise level, the gap is shared out among the features."
    )
    mitigation: Mitigation | None = Field(
        None, description="Families of other models to try: whether they suffer less, at no less accuracy."
    )
    resamples: int = Field(1_000, ge=100, le=100_000, description="Bootstrap resamples of people.")

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The compared metrics, and the metrics that explain them."""
        return (*self.metrics, *(COMPANIONS_OF_NUMBERS if self.scoring.are_numbers else COMPANIONS))

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return all metrics of the tables by name."""
        return METRICS

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return named_once("features", value)

    @field_validator("attribution")
    @classmethod
    def _some_mistakes(cls, value: bool | float) -> bool | float:
        if not isinstance(value, bool) and not value > 0:
            raise SettingError("`attribution` must be a noise level above 0, true or false; got {value:g}", value=value)
        return value

    @field_validator("metrics")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            require_name(name, COMPARED, "there is no metric {name!r} to compare; {hint}", SettingError)
        return tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _known_model(self) -> Self:
        name = None if self.mitigation is None else self.mitigation.model
        if name is not None:
            require_name(name, self.model, "`mitigation` is compared with {name!r}; {hint}", SettingError)
        return self

    @model_validator(mode="after")
    def _only_features(self) -> Self:
        """Refuse settings that name an unknown feature."""
        by_model = [("features", name) for model in self.model.values() for name in model.features or ()]
        for setting, name in (*self.noise.features_named(), *by_model):
            require_name(
                name,
                self.features,
                "`{setting}` names {name!r}, which is no feature; {hint}",
                SettingError,
                setting=setting,
            )
        return self

    @model_validator(mode="after")
    def _limits_of_what_is_there(self) -> Self:
        levels = self.noise.noise_levels
        if self.thresholds and levels is not None and levels[-1] == 0:
            raise SettingError("a threshold limits a gap, but without `noise_levels` above 0 there is none; give some")
        for threshold in self.thresholds:
            if threshold.metric not in self.metrics:
                raise SettingError(
                    "a threshold limits {metric!r}, which is not among `metrics`", metric=threshold.metric
                )
            settings = [setting.name for setting in self.noise.settings]
            if threshold.setting is not None and threshold.setting not in settings:
                hint = did_you_mean(threshold.setting, settings)
                raise SettingError(
                    "`setting` {setting!r} of a threshold is not known; {hint}", setting=threshold.setting, hint=hint
                )
        return self
