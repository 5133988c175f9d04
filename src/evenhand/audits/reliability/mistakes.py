"""What can be said about the mistakes: settings of a feature, of a published study, or of a pilot with two raters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from evenhand.settings import Settings
from evenhand.stats.noise import published_noise
from evenhand.table.keys import label_of
from evenhand.table.roles import Columns, Scalar, grouping_name

GIVEN, LEARNED = "given", "pilot"
"""The names of settings that were not published: mistakes given by feature, and learned from a pilot."""


ENOUGH = 60
"""People of a pilot from which the mistakes of one group are learned."""


def _as_grouping(value: Any) -> Any:
    """Accept `["race", "sex"]` for the grouping that is called 'race × sex'."""
    return grouping_name(value) if isinstance(value, list | tuple) else value


class FeatureNoise(Settings):
    """How one feature goes wrong: exactly one of `flip`, `sd`, `chances`, `ordinal` and `one_hot`.

    Parameters
    ----------
    flip : a category becomes another one, each other one with equal chance. Written as `"flip"` too.
    sd : a number is off by a normal error with this standard deviation, in the units of the column. A bare number is
        the same.
    whole : whether such errors are rounded to whole numbers; by default where the column holds whole numbers only.
    minimum, maximum : changed numbers beyond these are set to them.
    chances : the chance that a touched entry of the category `values[i]` becomes `values[j]`; each row adds up to 1.
    values : the categories that `chances` is about.
    ordinal : true, or the categories from the lowest to the highest: an entry moves to a neighbour.
    reach : how many steps away neighbours are.
    one_hot : columns of 0 and 1 that hold one category together; the 1 moves to another of them.

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

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = {
            "flip": self.flip,
            "sd": self.sd is not None,
            "chances": self.chances is not None,
            "ordinal": bool(self.ordinal),
            "one_hot": self.one_hot is not None,
        }
        chosen = [name for name, asked in ways.items() if asked]
        if len(chosen) != 1:
            raise ValueError(f"give exactly one of {', '.join(f'`{name}`' for name in ways)}; got {len(chosen)}")
        if (self.values is not None) != (self.chances is not None):
            raise ValueError("`values` and `chances` go together")
        limits = (self.minimum, self.maximum, self.whole)
        if self.sd is None and any(limit is not None for limit in limits):
            raise ValueError("`whole`, `minimum` and `maximum` go with `sd`")
        return self


class PilotTable(Settings):
    """A small table in which two raters rated the same people.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a file; `source` is the same for `audit.toml`.
    suffixes : what the columns of the first and of the second rater end in: `["_a", "_b"]` for age_a and age_b.
    columns : for a feature, its column of the first and of the second rater.
    together : draw the errors of all features from one person of the pilot, to keep errors together.
    near : for numbers, draw errors from this many people with the nearest values; by default from all.
    by : a grouping of the audit, whose columns the pilot has too: groups with enough people in the pilot have mistakes
        of their own, the others those of the whole pilot.
    enough : how many people of the pilot a group needs for mistakes of its own.
    resample : draw a new pilot from the pilot for every replicate, to carry its own uncertainty.

    Examples
    --------
    >>> PilotTable(data={}, suffixes=["_a", "_b"]).pair("age")
    ('age_a', 'age_b')
    """

    data: Any = Field(None, exclude=True)
    source: str | None = None
    suffixes: tuple[str, str] | None = None
    columns: dict[str, tuple[str, str]] = Field({})
    together: bool = False
    near: int | None = Field(None, ge=1)
    by: Annotated[str | None, BeforeValidator(_as_grouping)] = None
    enough: int = Field(ENOUGH, ge=2)
    resample: bool = True

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.data is None) == (self.source is None):
            raise ValueError("`pilot` needs its table: give exactly one of `data` and `source`")
        if self.suffixes is None and not self.columns:
            raise ValueError("`pilot` needs `suffixes` or `columns`, to tell the columns of the two raters")
        if self.suffixes is not None and self.suffixes[0] == self.suffixes[1]:
            raise ValueError(f"`suffixes` must differ; got {self.suffixes[0]!r} twice")
        return self

    def pair(self, feature: str) -> tuple[str, str] | None:
        """Return the columns of the two raters for a feature, None where none is named."""
        if feature in self.columns:
            return self.columns[feature]
        return None if self.suffixes is None else (feature + self.suffixes[0], feature + self.suffixes[1])


def as_feature_noise(value: Any) -> Any:
    """Return mistakes by feature; a number is a standard deviation, and "flip" another category."""
    return {name: _as_noise(given) for name, given in value.items()} if isinstance(value, Mapping) else value


def _as_noise(given: Any) -> Any:
    if given == "flip":
        return {"flip": True}
    if isinstance(given, int | float) and not isinstance(given, bool):
        return {"sd": given}
    if isinstance(given, str):
        raise ValueError(f'a feature\'s noise in one word is "flip"; got {given!r}')
    return given


class GroupNoise(Settings):
    """How the mistakes about one group differ from those about everybody else.

    Parameters
    ----------
    times : entries about the group are touched so many times as often: a noise level of 0.1 is then 0.1 times this. A
        bare number is the same.
    noise : features that go wrong in another way for the group, as in `noise`.

    Examples
    --------
    >>> GroupNoise(times=1.5, noise={"age": {"sd": 4}}).noise["age"].sd
    4.0
    """

    model_config = ConfigDict(allow_inf_nan=False)

    times: float = Field(1.0, ge=0)
    noise: Annotated[dict[str, FeatureNoise], BeforeValidator(as_feature_noise)] = Field({})


def as_group_noise(value: Any) -> Any:
    """Return for each group of a grouping how its mistakes differ; a number is how many times as often."""
    if not isinstance(value, Mapping) or not all(isinstance(groups, Mapping) for groups in value.values()):
        raise ValueError("`group_noise` must name a grouping, and in it groups: {'race': {'Black': 1.5}}")
    return {
        _as_grouping(name): {
            label_of(group): {"times": told} if isinstance(told, int | float) and not isinstance(told, bool) else told
            for group, told in groups.items()
        }
        for name, groups in value.items()
    }


class NoiseSetting(Settings):
    """One way in which mistakes are made.

    Parameters
    ----------
    name : what the results call it.
    published : the name of a published setting.
    features : mistakes by feature.
    pilot : the table that mistakes are learned from.
    """

    name: str
    published: str | None = None
    features: dict[str, FeatureNoise] = Field({})
    pilot: PilotTable | None = None

    @field_validator("published")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None:
            published_noise(value)
        return value


def as_settings(value: Any) -> Any:
    """Return settings from a published name, several of them, mistakes by feature, or a pilot."""
    if isinstance(value, str):
        return ({"name": value, "published": value},)
    if isinstance(value, Mapping) and set(value) == {"pilot"}:
        return ({"name": LEARNED, "pilot": value["pilot"]},)
    if isinstance(value, Mapping):
        if not value:
            raise ValueError("`noise` names no feature; say how at least one goes wrong")
        return ({"name": GIVEN, "features": as_feature_noise(value)},)
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple({"name": name, "published": name} for name in dict.fromkeys(value))
    if isinstance(value, tuple) and all(isinstance(item, NoiseSetting) for item in value):
        return value
    raise ValueError(f"`noise` must be a published setting's name, a table of features, or a pilot; got {value!r}")
