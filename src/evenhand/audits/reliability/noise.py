"""Settings of mistakes: noise by feature, noise levels, differences by group, and derived features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_serializer, field_validator, model_validator

from evenhand.audits.reliability.model_sources import described
from evenhand.core.spec import Code, Names
from evenhand.core.thresholds import GroupingName
from evenhand.errors import SettingError, brief, problem
from evenhand.messages import Setting
from evenhand.settings import Settings
from evenhand.stats.noise import published_noise
from evenhand.table.labels import plain_label
from evenhand.table.roles import Columns, Scalar, grouping_name

BY_FEATURE, LEARNED = "given", "pilot"
"""The names of unpublished settings: mistakes by feature, and mistakes learned from a pilot."""

SOURCES = ("features", "published", "pilot")
"""The settings of `Noise` that define mistakes. Exactly one is needed, so a mapping with none is by feature."""

ENOUGH = 60
"""The number of people in a pilot needed to learn the mistakes of one group."""


class FeatureNoise(Settings):
    """The noise of one feature: exactly one of `flip`, `sd`, `chances`, `ordinal` and `one_hot`.

    Parameters
    ----------
    flip : a category is replaced by another category, all with equal probability; `"flip"` alone is the same.
    sd : the standard deviation of a normal error, in the units of the column; a bare number is the same.
    whole : whether changed numbers are rounded to whole numbers; by default if the column has only whole numbers.
    minimum, maximum : the limits to which changed numbers are clipped.
    chances : the probability that a wrong entry of the category `values[i]` becomes `values[j]`; each row sums to 1.
    values : the categories of the rows and columns of `chances`.
    ordinal : true, or the categories in rising order: a wrong entry moves to a neighbouring category.
    reach : the largest number of steps to a neighbouring category.
    one_hot : columns of 0 and 1 that encode one category; a mistake moves the 1 to another column.

    Examples
    --------
    >>> FeatureNoise(sd=5, minimum=18).sd
    5.0
    """

    model_config = ConfigDict(allow_inf_nan=False)

    flip: bool = False
    sd: float | None = Field(None, ge=0)
    whole: bool | None = None
    minimum: float | None = None
    maximum: float | None = None
    chances: tuple[tuple[float, ...], ...] | None = None
    values: tuple[Scalar, ...] | None = None
    ordinal: bool | tuple[Scalar, ...] = False
    reach: int = Field(1, ge=1)
    one_hot: Columns | None = None

    def _kinds_set(self) -> dict[str, bool]:
        return {
            "flip": self.flip,
            "sd": self.sd is not None,
            "chances": self.chances is not None,
            "ordinal": bool(self.ordinal),
            "one_hot": self.one_hot is not None,
        }

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns that go wrong together for this feature."""
        return self.one_hot or (name,)

    @model_validator(mode="after")
    def _require_one_kind(self) -> Self:
        kinds = self._kinds_set()
        chosen = [name for name, is_chosen in kinds.items() if is_chosen]
        if len(chosen) != 1:
            raise SettingError(
                "give exactly one of {names}; got {number}",
                names=tuple(Setting(name=name) for name in kinds),
                number=len(chosen),
            )
        if (self.values is not None) != (self.chances is not None):
            raise SettingError("`values` and `chances` go together")
        limits = (self.minimum, self.maximum, self.whole)
        if self.sd is None and any(limit is not None for limit in limits):
            raise SettingError("`whole`, `minimum` and `maximum` go with `sd`")
        return self


class PilotTable(Settings):
    """A small table in which two raters rated the same people.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a file; in `audit.toml`, use `source`.
    suffixes : the suffixes of the first and second rater's columns: `["_a", "_b"]` for age_a and age_b.
    columns : the first and second rater's column, by feature.
    together : draw the errors of all features from one person of the pilot, to keep errors together.
    near : for numbers, the number of people with the nearest values to draw errors from; by default all people.
    by : a grouping of the audit whose columns the pilot has, too. Groups with enough people in the pilot get their own
        mistakes; all other groups get the mistakes of the whole pilot.
    enough : the number of people in the pilot that a group needs for its own mistakes.
    resample : resample the pilot for every replicate, so that the results include the pilot's uncertainty.

    Examples
    --------
    >>> PilotTable(data={}, suffixes=["_a", "_b"]).pair("age")
    ('age_a', 'age_b')
    """

    data: Any = None
    source: str | None = Field(None, description="Path of the table, seen from the folder of the file.")
    suffixes: tuple[str, str] | None = None
    columns: dict[str, tuple[str, str]] = Field({})
    together: bool = False
    near: int | None = Field(None, ge=1)
    by: GroupingName | None = None
    enough: int = Field(ENOUGH, ge=2)
    resample: bool = True

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.data is None) == (self.source is None):
            raise SettingError("`pilot` needs its table: give exactly one of `data` and `source`")
        if self.suffixes is None and not self.columns:
            raise SettingError("`pilot` needs `suffixes` or `columns`, to tell the columns of the two raters")
        if self.suffixes is not None and self.suffixes[0] == self.suffixes[1]:
            raise SettingError("`suffixes` must differ; got {suffixes!r} twice", suffixes=self.suffixes[0])
        return self

    def pair(self, feature: str) -> tuple[str, str] | None:
        """Return the two raters' columns of a feature, or None."""
        if feature in self.columns:
            return self.columns[feature]
        return None if self.suffixes is None else (feature + self.suffixes[0], feature + self.suffixes[1])

    @field_serializer("data")
    def _kind_of_data(self, value: object) -> str | None:
        """Serialise only the kind of the data, because a result must not contain rows of a pilot."""
        return value if value is None or isinstance(value, str) else described(value)


def as_feature_noise(value: object) -> object:
    """Convert noise by feature: a number is a standard deviation, and "flip" means another category."""
    return (
        {name: _as_feature_noise(settings) for name, settings in value.items()} if isinstance(value, Mapping) else value
    )


def _as_feature_noise(settings: object) -> object:
    if settings == "flip":
        return {"flip": True}
    if isinstance(settings, int | float) and not isinstance(settings, bool):
        return {"sd": settings}
    if isinstance(settings, str):
        raise SettingError('a feature\'s noise in one word is "flip"; got {given!r}', given=settings)
    return settings


FeatureNoises = Annotated[dict[str, FeatureNoise], BeforeValidator(as_feature_noise)]


class GroupNoise(Settings):
    """Differences of one group's mistakes from all other people's.

    Parameters
    ----------
    times : the factor on the group's noise level: a noise level of 0.1 becomes 0.1 times this. A bare number is the
        same.
    noise : the noise of features that differ for the group, in the format of `noise`.

    Examples
    --------
    >>> GroupNoise(times=1.5, noise={"age": {"sd": 4}}).noise["age"].sd
    4.0
    """

    model_config = ConfigDict(allow_inf_nan=False)

    times: float = Field(1.0, ge=0)
    noise: FeatureNoises = Field({})


def as_group_noise(value: object) -> object:
    """Convert the mistakes of groups; a number is the factor on the group's noise level."""
    if not isinstance(value, Mapping) or not all(isinstance(groups, Mapping) for groups in value.values()):
        raise SettingError("`group_noise` must name a grouping, and in it groups: {'race': {'Black': 1.5}}")
    named = {grouping_name(name) if isinstance(name, list | tuple) else name: groups for name, groups in value.items()}
    return {
        name: {
            plain_label(name, group): {"times": how}
            if isinstance(how, int | float) and not isinstance(how, bool)
            else how
            for group, how in groups.items()
        }
        for name, groups in named.items()
    }


class NoiseSetting(Settings):
    """One noise setting, simulated once for each model.

    Parameters
    ----------
    name : the name of the setting in the results.
    published : the name of a published setting.
    features : mistakes by feature.
    pilot : the table from which mistakes are learned.
    """

    name: str
    published: str | None = None
    features: dict[str, FeatureNoise] = Field({})
    pilot: PilotTable | None = None


class Noise(Settings):
    """The source of mistakes (exactly one of `features`, `published` and `pilot`), their frequency and their groups.

    Examples
    --------
    >>> Noise(features={"age": 5, "sex": "flip"}, noise_levels=[0.1, 0.2]).features["age"].sd
    5.0
    """

    model_config = ConfigDict(allow_inf_nan=False)

    features: FeatureNoises = Field(
        {},
        description='Mistakes by feature: {"age": 5, "sex": "flip"} is an error with standard deviation 5, and another '
        "category.",
    )
    published: Names = Field((), description="Published settings by name, such as raez-2024/all/5.")
    pilot: PilotTable | None = Field(
        None, description="A table in which two raters rated the same people; mistakes are learned from it."
    )
    group_noise: Annotated[dict[str, dict[str, GroupNoise]], BeforeValidator(as_group_noise)] = Field(
        {},
        description="For groups of one grouping, how many times as often entries go wrong, or in which other way: "
        '{"race": {"Black": 1.5}}.',
    )
    noise_levels: tuple[float, ...] | None = Field(
        None, description="Rising shares of entries that go wrong; by default 0 to 0.30 by 0.01, with a pilot 0 to 1."
    )
    shares: Literal["bernoulli", "exact"] | None = Field(
        None,
        description="'bernoulli': each entry goes wrong with that chance; 'exact': that share of each group and fold, "
        "to within one entry; by default as the published setting has it, else 'bernoulli'.",
    )
    fresh: bool = Field(False, description="Draw the mistakes of every noise level afresh.")
    noisy_raters: Literal[1, 2] = Field(1, description="2 when the first rater makes mistakes too.")
    fixed: Names = Field((), description="Features that do not go wrong. Those that define groups never do.")
    minima: dict[str, float] = Field(
        {}, description="Least values, for published settings and a pilot; by default the least in the data."
    )
    linked: dict[str, str | tuple[str, ...]] = Field(
        {}, description="Features made of others: a list is their product, one name a function of it as in the data."
    )
    derive: Code = Field(None, description="A function that takes the columns by name and returns the derived ones.")

    @property
    def settings(self) -> tuple[NoiseSetting, ...]:
        """The noise settings, in order."""
        if self.pilot is not None:
            return (NoiseSetting(name=LEARNED, pilot=self.pilot),)
        if self.features:
            return (NoiseSetting(name=BY_FEATURE, features=self.features),)
        return tuple(NoiseSetting(name=name, published=name) for name in self.published)

    @property
    def by_feature(self) -> Iterator[tuple[str, dict[str, FeatureNoise]]]:
        """Each mapping of noise by feature, with the name of its setting."""
        yield "noise", self.features
        for groups in self.group_noise.values():
            yield from (("group_noise", group.noise) for group in groups.values() if group.noise)

    def features_named(self) -> Iterator[tuple[str, str]]:
        """Yield every feature named in a setting, as pairs of setting and feature."""
        yield from (("fixed", name) for name in self.fixed)
        yield from (("minima", name) for name in self.minima)
        for name, sources in self.linked.items():
            yield from (("linked", column) for column in (name, *as_names(sources)))
        for setting, features in self.by_feature:
            for name, noise in features.items():
                yield from ((setting, column) for column in noise.columns(name))

    @field_validator("published")
    @classmethod
    def _known_settings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            published_noise(name)
        return tuple(dict.fromkeys(value))

    @field_validator("group_noise")
    @classmethod
    def _one_grouping(cls, value: dict[str, dict[str, GroupNoise]]) -> dict[str, dict[str, GroupNoise]]:
        if len(value) > 1:
            raise SettingError(
                "`group_noise` must be about one grouping; got {names}", names=" and ".join(map(repr, value))
            )
        return value

    @field_validator("noise_levels")
    @classmethod
    def _rising(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and (not value or value[0] < 0 or list(value) != sorted(set(value))):
            raise SettingError(
                "`noise_levels` must be one or more rising numbers from 0 on; got {value}", value=list(value)
            )
        return value

    @field_validator("linked")
    @classmethod
    def _no_circle(cls, value: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
        for name, sources in value.items():
            if name in as_names(sources):
                raise SettingError("`linked` makes {name!r} of itself", name=name)
        try:
            TopologicalSorter({name: as_names(sources) for name, sources in value.items()}).prepare()
        except CycleError as error:
            circle = ", which is made of ".join(repr(name) for name in reversed(error.args[1]))
            raise SettingError("`linked` goes round in a circle: {circle}", circle=circle) from None
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        chosen = [name for name in SOURCES if getattr(self, name)]
        if len(chosen) != 1:
            listed = tuple(Setting(name=name) for name in SOURCES)
            raise SettingError(
                "`noise` needs exactly one of {listed}; got {value}",
                listed=listed,
                value=" and ".join(chosen) or "none",
            )
        return self

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        """Refuse a feature named in two settings."""
        for setting, features in self.by_feature:
            columns = [column for name, noise in features.items() for column in noise.columns(name)]
            for name in columns:
                if columns.count(name) > 1:
                    raise SettingError("`{setting}` speaks of {name!r} twice", setting=setting, name=name)
                if name in self.fixed or name in self.linked:
                    other = "fixed" if name in self.fixed else "linked"
                    raise SettingError(
                        "{name!r} is in `{setting}` and in `{other}`; it cannot be both",
                        name=name,
                        setting=setting,
                        other=other,
                    )
        return self


def as_names(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one name or several names as a tuple."""
    return (value,) if isinstance(value, str) else value


def as_noise(value: object) -> object:
    """Convert one or several published names, or a mapping, to the settings of `Noise`.

    A mapping with `features`, `published` or `pilot` holds the settings of `Noise`; any other holds features.

    Examples
    --------
    >>> as_noise({"age": 5}), as_noise("raez-2024/all/5")
    ({'features': {'age': 5}}, {'published': 'raez-2024/all/5'})
    """
    if isinstance(value, Noise):
        return value
    if isinstance(value, Mapping):
        return _noise_of_mapping(value)
    if isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)):
        return {"published": value}
    raise SettingError(
        "`noise` must be a Noise(...), a published setting's name, or a mapping of features; got {value}",
        value=brief(value),
    )


def _noise_of_mapping(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if not value:
        raise SettingError("`noise` names no feature; say how at least one goes wrong")
    source = next((name for name in SOURCES if name in value), None)
    if source is None:
        _require_features(value)
        return {"features": value}
    other = next((name for name in value if name not in Noise.model_fields), None)
    is_feature = not isinstance(value.get("pilot"), Mapping | PilotTable | None)
    if other is not None or is_feature:
        example = {"features": {other or "pilot": "..."}}
        none = "" if other is None else problem(", and {name!r} is none", name=other)
        raise SettingError(
            "a mapping with {source!r} holds the settings of Noise{none}; write features as {example}",
            source=source,
            none=none,
            example=example,
        )
    return value


def _require_features(value: Mapping[str, Any]) -> None:
    """Refuse settings of `Noise` mixed with features."""
    for name, how in value.items():
        if name in Noise.model_fields and not _is_noise(how):
            raise SettingError("to set Noise's `{name}`, write the features under `features` beside it", name=name)


def _is_noise(value: object) -> bool:
    """Return whether a value describes the noise of a feature."""
    if isinstance(value, Mapping):
        return bool(value) and set(value) <= set(FeatureNoise.model_fields)
    return (
        value == "flip"
        or isinstance(value, FeatureNoise)
        or (isinstance(value, int | float) and not isinstance(value, bool))
    )
