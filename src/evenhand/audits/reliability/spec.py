"""What the reliability audit can be told: arguments of `eh.reliability`, the `[reliability]` of `audit.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_serializer, field_validator, model_validator

from evenhand.audits.reliability.mistakes import FeatureNoise, GroupNoise, NoiseSetting, as_group_noise, as_settings
from evenhand.audits.reliability.sources import ModelSource, as_models, described
from evenhand.core.spec import Spec, Threshold, require_known_metrics
from evenhand.errors import did_you_mean
from evenhand.stats.reliability import RELIABILITY
from evenhand.table.roles import Columns

HEADLINE = ("kappa", "pabak", "icc_a1", "icc_spread")
"""Statistics that are compared unless others are asked for."""


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _level_or_not(value: Any) -> Any:
    """Keep the number 1 apart from true."""
    return value if isinstance(value, bool) or not isinstance(value, int) else float(value)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class ReliabilitySpec(Spec):
    """The settings of the reliability audit.

    Examples
    --------
    >>> spec = ReliabilitySpec(model="logistic", features=["age", "sex"], noise={"age": 5, "sex": "flip"})
    >>> spec.model["logistic"].estimator, spec.noise[0].features["sex"].flip
    ('logistic', True)
    """

    model_config = ConfigDict(allow_inf_nan=False)

    code: ClassVar[tuple[str, ...]] = ("derive",)
    code_or_name: ClassVar[tuple[str, ...]] = ("model",)
    runs_code: ClassVar[tuple[str, ...]] = ("allow_pickle", "trusted")

    model: Annotated[dict[str, ModelSource], BeforeValidator(as_models)] = Field(
        description="An estimator's name, a file, or several models by name, each with settings of its own."
    )
    features: Columns = Field(description="Columns that the models use: numbers, true or false, or text.")
    noise: Annotated[tuple[NoiseSetting, ...], BeforeValidator(as_settings)] = Field(
        description="The mistakes: a published setting such as raez-2024/all/5, a table of features, or a pilot.",
    )
    group_noise: Annotated[dict[str, dict[str, GroupNoise]], BeforeValidator(as_group_noise)] = Field(
        {},
        description="For groups of one grouping, how many times as often entries go wrong, or in which other way.",
    )
    threshold: float = Field(0.5, description="A person is selected when the score is above it.")
    noise_levels: tuple[float, ...] | None = Field(
        None, description="Rising shares of entries that go wrong; by default 0 to 0.30 by 0.01, with a pilot 0 to 1."
    )
    replicates: int = Field(100, ge=1, le=1_000_000, description="How often the mistakes are drawn.")
    folds: int | None = Field(
        None, ge=2, le=100, description="Parts in which estimators are fitted again; by default 5 for those not fitted."
    )
    shares: Literal["bernoulli", "exact"] | None = Field(
        None,
        description="Each entry with that chance, or that share of each group to within one entry; by default the "
        "setting's.",
    )
    fresh: bool = Field(False, description="Draw the mistakes of every noise level afresh.")
    noisy_raters: Literal[1, 2] = Field(1, description="2 when the first rater makes mistakes too.")
    fixed: Names = Field((), description="Features that are not perturbed.")
    minima: dict[str, float] = Field(
        {}, description="Least values, for settings with minima and for a pilot; by default the least in the data."
    )
    linked: dict[str, str | tuple[str, ...]] = Field(
        {}, description="Features made of others: a list is their product, one name a function of it as in the data."
    )
    derive: Callable[..., Any] | None = Field(
        None, description="A function that returns the derived features of rows, given their columns."
    )
    statistics: Names = Field(HEADLINE, min_length=1, description="Statistics that are compared between groups.")
    reference: dict[str, str] | str | None = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    attribution: Annotated[bool | float, BeforeValidator(_level_or_not)] = Field(
        True, description="Whether, or at which noise level, the gap is shared out among the features."
    )
    missing: Literal["error", "drop", "keep"] | None = Field(
        None,
        description="People with a missing feature: refuse, leave out, or give to the model; by default the table's.",
    )
    rows: Literal["auto", "array", "frame"] = Field(
        "auto", description="What models of the user's get: an array of numbers or a data frame."
    )
    trusted: Names = Field((), description="Types that a skops file may hold beside those that skops trusts.")
    allow_pickle: bool = Field(False, description="Whether pickle and joblib files, which can run any code, are read.")
    memory: int = Field(64, ge=1, description="Megabytes for rows and draws at once.")
    resamples: int = Field(1_000, ge=100, le=100_000, description="Bootstrap resamples of people.")

    def noise_by_group(self) -> Iterator[tuple[str, dict[str, FeatureNoise]]]:
        """Yield the mistakes by feature that some group has of its own, and the setting they stand in."""
        for groups in self.group_noise.values():
            yield from (("group_noise", told.noise) for told in groups.values() if told.noise)

    @field_validator("group_noise")
    @classmethod
    def _one_grouping(cls, value: dict[str, dict[str, GroupNoise]]) -> dict[str, dict[str, GroupNoise]]:
        if len(value) > 1:
            raise ValueError(f"`group_noise` must be about one grouping; got {' and '.join(map(repr, value))}")
        return value

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for place, name in enumerate(value) if name in value[:place]), None)
        if twice is not None:
            raise ValueError(f"`features` names the column {twice!r} twice")
        return value

    @field_validator("noise_levels")
    @classmethod
    def _rising(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and (not value or value[0] < 0 or list(value) != sorted(set(value))):
            raise ValueError(f"`noise_levels` must be one or more rising numbers from 0 on; got {list(value)}")
        return value

    @field_validator("attribution")
    @classmethod
    def _some_mistakes(cls, value: bool | float) -> bool | float:
        if not isinstance(value, bool) and not value > 0:
            raise ValueError(f"`attribution` must be a noise level above 0, true or false; got {value:g}")
        return value

    @field_validator("statistics")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in RELIABILITY:
                raise ValueError(f"there is no statistic {name!r} to compare; {did_you_mean(name, RELIABILITY)}")
        return tuple(dict.fromkeys(value))

    @field_serializer("derive")
    def _by_name(self, value: Callable[..., Any] | None) -> str | None:
        return None if value is None else described(value)

    @model_validator(mode="after")
    def _only_features(self) -> Self:
        """Refuse names that are not features, in the settings that speak of features."""
        asked = [("fixed", name) for name in self.fixed] + [("minima", name) for name in self.minima]
        for name, sources in self.linked.items():
            asked += [("linked", name), *(("linked", source) for source in _names(sources))]
        for setting in self.noise:
            for name, noise in setting.features.items():
                asked += [("noise", column) for column in noise.one_hot or (name,)]
        for _, told in self.noise_by_group():
            asked += [("group_noise", column) for name, noise in told.items() for column in noise.one_hot or (name,)]
        for model in self.model.values():
            asked += [("features", name) for name in model.features or ()]
        for where, name in asked:
            if name not in self.features:
                raise ValueError(f"`{where}` names {name!r}, which is no feature; {did_you_mean(name, self.features)}")
        return self

    @model_validator(mode="after")
    def _once(self) -> Self:
        """Refuse a feature that is told two things."""
        for where, features in [("noise", setting.features) for setting in self.noise] + list(self.noise_by_group()):
            told = [c for name, noise in features.items() for c in noise.one_hot or (name,)]
            for name in told:
                if told.count(name) > 1:
                    raise ValueError(f"`{where}` speaks of {name!r} twice")
                if name in self.fixed or name in self.linked:
                    other = "fixed" if name in self.fixed else "linked"
                    raise ValueError(f"{name!r} is in `{where}` and in `{other}`; it cannot be both")
        for name, sources in self.linked.items():
            if name in _names(sources):
                raise ValueError(f"`linked` makes {name!r} of itself")
        try:
            TopologicalSorter({name: _names(sources) for name, sources in self.linked.items()}).prepare()
        except CycleError as error:
            circle = ", which is made of ".join(repr(name) for name in reversed(error.args[1]))
            raise ValueError(f"`linked` goes round in a circle: {circle}") from None
        return self

    @field_validator("thresholds")
    @classmethod
    def _known_limits(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        require_known_metrics(value, RELIABILITY)
        for threshold in value:
            if threshold.max is None or not 0 <= threshold.max < 2:
                raise ValueError(
                    f"the threshold for {threshold.metric!r} limits the size of a gap: give max= of 0 or more and "
                    f"below 2; got {threshold.in_words()}"
                )
            if "audit" in threshold.model_fields_set and threshold.audit != "reliability":
                raise ValueError(f"a threshold of the reliability audit has `audit` {threshold.audit!r}; leave it out")
            if threshold.stratum is not None or threshold.kind == "ratio":
                raise ValueError(
                    f"a threshold for {threshold.metric!r} has no `stratum` and no `kind` 'ratio': it limits a "
                    "difference between groups; leave them out"
                )
            if threshold.against == "overall":
                raise ValueError(
                    f"a threshold for {threshold.metric!r} has `against` 'overall', but groups are compared with each "
                    "other; use 'worst_pair' or 'reference'"
                )
        return tuple(threshold.model_copy(update={"audit": "reliability"}) for threshold in value)

    @model_validator(mode="after")
    def _limits_of_what_is_there(self) -> Self:
        if self.thresholds and self.noise_levels is not None and self.noise_levels[-1] == 0:
            raise ValueError("a threshold limits a gap, but without `noise_levels` above 0 there is none; give some")
        for threshold in self.thresholds:
            if threshold.metric not in self.statistics:
                raise ValueError(f"a threshold limits {threshold.metric!r}, which is not among `statistics`")
            if threshold.model is not None and threshold.model not in self.model:
                hint = did_you_mean(threshold.model, self.model)
                raise ValueError(f"`model` {threshold.model!r} of a threshold is not known; {hint}")
        return self
