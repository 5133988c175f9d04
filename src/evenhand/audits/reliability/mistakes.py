"""Convert noise settings to simulated mistakes: columns, noise models, rates, groups and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.audits.reliability.derived import features_of_groups
from evenhand.audits.reliability.gather import Groupings, ModelFeature, ScoredPeople, read_pilot
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.noise import FeatureNoise, GroupNoise, NoiseSetting
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, problem, require_name
from evenhand.messages import Message
from evenhand.stats.noise import (
    Confusion,
    Flip,
    NoiseItem,
    NoiseModel,
    Normal,
    OneHot,
    Right,
    Shares,
    largest_level,
    neighbours,
    published_noise,
)
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING

MOST_CATEGORIES = 50
Untouched = Literal["fixed", "follows", "groups"]
"""Why a feature must have no mistakes."""

_UNTOUCHED: dict[Untouched, Message] = {
    "fixed": problem("is held fixed"),
    "follows": problem("follows other features"),
    "groups": problem("defines groups and stays as it is"),
}
Reasons = Mapping[str, Untouched]
"""Features that must have no mistakes, and why."""

Redraw = Callable[[np.random.Generator], Sequence[NoiseItem]]


@dataclass(frozen=True, eq=False)
class Profiles:
    """The groups with separate mistakes.

    Parameters
    ----------
    grouping : the grouping of these groups.
    groups : the labels of the groups; the first label has profile 1, and people of all other groups have profile 0.
    code : (people,) the profile of each person.
    paces : (profiles,) the factor on the share of entries with a mistake.
    """

    grouping: str
    groups: tuple[str, ...]
    code: IntArray
    paces: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Mistakes:
    """The mistakes of one setting.

    Parameters
    ----------
    setting : the setting.
    items : the columns that go wrong together, with their noise.
    names : the names of the items.
    shares : the conversion of a noise level to entries with a mistake.
    noise_levels : the noise levels, in rising order.
    attribution_level : the noise level at which the gap is attributed to features, or None.
    redraw : a function that resamples the pilot for a replicate; None unless requested.
    profiles : the groups with separate mistakes; None if mistakes do not differ by group.
    notes : notes on the mistakes.
    """

    setting: NoiseSetting
    items: tuple[NoiseItem, ...]
    names: tuple[str, ...]
    shares: Shares
    noise_levels: FloatArray
    attribution_level: float | None
    redraw: Redraw | None
    profiles: Profiles | None
    notes: tuple[Message, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of all features with mistakes."""
        return tuple(column for item in self.items for column in item.columns)

    @property
    def learned_by_group(self) -> bool:
        """Whether each group's mistakes are learned separately from a pilot."""
        return self.setting.pilot is not None and self.setting.pilot.by is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Items:
    """Noise items, their names, the function that redraws them, groups with learned mistakes, and notes."""

    items: tuple[NoiseItem, ...]
    names: tuple[str, ...]
    shares: Shares = "bernoulli"
    redraw: Redraw | None = None
    learned: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()


def make_mistakes(
    setting: NoiseSetting, people: ScoredPeople, groupings: Groupings, untouched: Reasons, spec: ReliabilitySpec
) -> Mistakes:
    """Return the mistakes of a noise setting.

    Parameters
    ----------
    setting : the noise setting.
    people : the people whose features go wrong.
    groupings : the groupings of the table; mistakes may differ by one of them.
    untouched : features that must have no mistakes, and why.
    spec : the settings of the audit.
    """
    grouping = _noise_grouping(setting, groupings, spec)
    made = _make_items(setting, people, groupings, untouched, spec)
    items, names, redraw, profiles = made.items, made.names, made.redraw, None
    if grouping is not None:
        profiles = _make_profiles(grouping, made.learned, groupings, people, spec)
        items, redraw, added = _with_profiles(made, profiles, untouched, people, spec)
        names = (*names, *added)
    shares = spec.noise.shares or made.shares
    levels = _levels(spec, learned=setting.pilot is not None)
    attribution_level = _attribution_level(spec, levels, learned=setting.pilot is not None)
    _require_possible(levels, attribution_level, items, people=people, profiles=profiles, shares=shares)
    return Mistakes(
        setting=setting,
        items=items,
        names=names,
        shares=shares,
        noise_levels=levels,
        attribution_level=attribution_level,
        redraw=redraw,
        profiles=profiles,
        notes=made.notes,
    )


def every_mistake(people: ScoredPeople, spec: ReliabilitySpec) -> tuple[NoiseItem, ...]:
    """Return all mistakes of any setting and group; a model must accept all of them.

    Parameters
    ----------
    people : the people whose features go wrong.
    spec : the settings of the audit, without derived features.
    """
    defining = [name for name in people.names if column_key(name) in people.groups.codes]
    untouched = untouched_features(people, defining, (), spec)
    items: list[NoiseItem] = []
    for setting in spec.noise.settings:
        if setting.pilot is not None:  # mistakes learned by group are a subset of the whole pilot's mistakes
            setting = setting.model_copy(update={"pilot": setting.pilot.model_copy(update={"by": None})})
        items += _make_items(setting, people, {}, untouched, spec).items
    for groups in spec.noise.group_noise.values():
        for group in groups.values():
            items += _items_by_feature(group.noise, untouched, people).items
    return tuple(items)


def untouched_features(
    people: ScoredPeople, group_columns: Sequence[str], following: Sequence[str], spec: ReliabilitySpec
) -> dict[str, Untouched]:
    """Return the features that must have no mistakes, and why."""
    follows: Untouched = "follows"
    reasons: dict[str, Untouched] = {name: "fixed" for name in people.names if name in spec.noise.fixed}
    reasons |= dict.fromkeys(following, follows)
    return reasons | {name: "groups" for name in people.names if name in group_columns}


def _make_items(
    setting: NoiseSetting, people: ScoredPeople, groupings: Groupings, untouched: Reasons, spec: ReliabilitySpec
) -> _Items:
    if setting.published is None and setting.pilot is None:
        return _items_by_feature(setting.features, untouched, people)
    excluded = {*untouched, *(features_of_groups(people) if setting.published is not None else ())}
    free = [feature for feature in people.features if feature.name not in excluded]
    if setting.published is not None:
        return _published_items(setting.published, free, people, spec)
    assert setting.pilot is not None  # noqa: S101
    learned = read_pilot(setting.pilot, free, people, groupings, spec)
    return _Items(
        items=tuple(learned.pilot.items()),
        names=(" + ".join(learned.names),) if setting.pilot.together else learned.names,
        redraw=learned.pilot.resampled() if setting.pilot.resample else None,
        learned=learned.groups,
        notes=learned.notes,
    )


# Levels ---------------------------------------------------------------------------------------------------------------


def _levels(spec: ReliabilitySpec, *, learned: bool) -> FloatArray:
    if spec.noise.noise_levels is not None:
        return np.array(spec.noise.noise_levels, dtype=np.float64)
    return np.round(np.arange(11) * 0.1, 5) if learned else np.round(np.arange(31) * 0.01, 5)


def _attribution_level(spec: ReliabilitySpec, levels: FloatArray, *, learned: bool) -> float | None:
    """Return the requested level; by default the level nearest 2/3 of the highest, or the pilot's own level."""
    if spec.attribution is False or levels[-1] == 0:
        return None
    if spec.attribution is not True:
        return float(spec.attribution)
    wanted = min(1.0, levels[-1]) if learned else 2.0 * levels[-1] / 3.0
    above = levels[levels > 0]
    return float(above[np.argmin(np.abs(above - wanted))])


def _require_possible(
    levels: FloatArray,
    attribution_level: float | None,
    items: Sequence[NoiseItem],
    *,
    people: ScoredPeople,
    profiles: Profiles | None,
    shares: Shares,
) -> None:
    """Refuse noise levels that require a share of wrong entries above 1."""
    code, paces = (None, None) if profiles is None else (profiles.code, profiles.paces)
    most = largest_level(items, people.matrix, code, paces)
    if shares == "exact":
        most = min(most, 1.0 if paces is None else 1.0 / max(1.0, float(paces.max())))
    possible = most * (1 + 1e-9)
    if levels[-1] > possible:
        raise ConfigError(
            "`noise_levels` go up to {level:g}, and more than {most:.3g} would change more than every entry; lower "
            "them.",
            level=float(levels[-1]),
            most=most,
        )
    if attribution_level is not None and attribution_level > possible:
        raise ConfigError(
            "`attribution` is {level:g}, and more than {most:.3g} would change more than every entry; lower it.",
            level=attribution_level,
            most=most,
        )


# Items ----------------------------------------------------------------------------------------------------------------


def _published_items(name: str, free: Sequence[ModelFeature], people: ScoredPeople, spec: ReliabilitySpec) -> _Items:
    noise = published_noise(name)
    numeric, binary, wider = _by_kind(free)
    numeric_at, binary_at, wider_at = (people.positions([f.name for f in kind]) for kind in (numeric, binary, wider))
    minima = (spec.noise.minima.get(feature.name, float(feature.distinct[0])) for feature in numeric)
    items = list(noise.items(numeric_at, binary_at, dict(zip(numeric_at, minima, strict=True))))
    perturbed, notes = numeric if noise.sd is not None else [], []
    if noise.flips:
        items += (NoiseItem((i,), _other_category(feature)) for i, feature in zip(wider_at, wider, strict=True))
        perturbed, notes = (
            [*perturbed, *binary, *wider],
            [say("wider", name=f.name, number=len(f.distinct)) for f in wider],
        )
    if not items:
        raise ConfigError("the noise setting {name!r} has no effect: all its features are held fixed.", name=name)
    return _Items(
        items=tuple(items), names=tuple(feature.name for feature in perturbed), shares=noise.shares, notes=tuple(notes)
    )


def _by_kind(
    features: Sequence[ModelFeature],
) -> tuple[list[ModelFeature], list[ModelFeature], list[ModelFeature]]:
    """Return numeric features, features with at most two categories, and features with more categories."""
    categorical = [feature for feature in features if feature.categorical]
    return (
        [feature for feature in features if not feature.categorical],
        [feature for feature in categorical if len(feature.distinct) <= 2],
        [feature for feature in categorical if len(feature.distinct) > 2],
    )


def _items_by_feature(noise: Mapping[str, FeatureNoise], untouched: Reasons, people: ScoredPeople) -> _Items:
    items = []
    for name, how in noise.items():
        columns = how.columns(name)
        for column in columns:
            if column in untouched:
                raise ConfigError(
                    "`noise` names {column!r}, which {why}; leave it out.",
                    column=column,
                    why=_UNTOUCHED[untouched[column]],
                )
        positions = people.positions(columns)
        model: NoiseModel = OneHot() if how.one_hot else _noise_model(how, people.features[positions[0]])
        items.append(NoiseItem(tuple(positions), model))
    return _Items(items=tuple(items), names=tuple(noise))


def _noise_model(how: FeatureNoise, feature: ModelFeature) -> NoiseModel:
    if how.sd is not None:
        if feature.kind != "number":
            raise ConfigError('`noise` gives {name!r} an `sd`, but it holds no numbers; use "flip".', name=feature.name)
        whole = feature.whole if how.whole is None else how.whole
        return Normal(how.sd, whole=whole, minimum=how.minimum, maximum=how.maximum)
    if how.flip:
        return _other_category(feature)
    if how.chances is not None:
        values = tuple(feature.number_of(value) for value in how.values or ())
        _require_listed(feature, values, "values")
        return Confusion(values, how.chances)
    return _neighbour(how, feature)


def _other_category(feature: ModelFeature) -> NoiseModel:
    """Return the noise that replaces an entry by another category, all with equal probability."""
    values = feature.distinct
    if not feature.is_text and np.isin(values, (0.0, 1.0)).all():
        return Flip()
    if len(values) == 2:
        return Flip(float(values[0]), float(values[1]))
    if len(values) < 2:
        raise ConfigError(
            "{name!r} has one value only, so there is nothing to flip it to; leave it out.", name=feature.name
        )
    _require_few(feature, values)
    chances = (1.0 - np.eye(len(values))) / (len(values) - 1)
    return Confusion(tuple(values.tolist()), tuple(tuple(row) for row in chances.tolist()))


def _neighbour(how: FeatureNoise, feature: ModelFeature) -> NoiseModel:
    if how.ordinal is True:
        if feature.is_text:
            raise ConfigError(
                "{name!r} holds text, which has no order; list its values as `ordinal`.", name=feature.name
            )
        values = tuple(feature.distinct.tolist())
    else:
        listed = how.ordinal if isinstance(how.ordinal, tuple) else ()
        values = tuple(feature.number_of(value) for value in listed)
        _require_listed(feature, values, "ordinal")
    _require_few(feature, values)
    return Confusion(values, neighbours(tuple(range(len(values))), how.reach).chances)


def _require_few(feature: ModelFeature, values: Sequence[float] | FloatArray) -> None:
    if len(values) > MOST_CATEGORIES:
        raise ConfigError(
            "{name!r} has {number} different values; for numbers give the `sd` of errors.",
            name=feature.name,
            number=len(values),
        )


def _require_listed(feature: ModelFeature, values: Sequence[float], setting: str) -> None:
    lacking = [feature.shown(number) for number in feature.distinct if number not in values]
    if lacking:
        shown = ", ".join(lacking[:5])
        raise ConfigError(
            "`{setting}` of the noise of {name!r} leaves out {shown}; list all values.",
            setting=setting,
            name=feature.name,
            shown=shown,
        )


# Mistakes that differ by group ----------------------------------------------------------------------------------------


def _noise_grouping(setting: NoiseSetting, groupings: Groupings, spec: ReliabilitySpec) -> str | None:
    """Return the grouping by which mistakes differ, or None."""
    given_grouping, learned = (
        next(iter(spec.noise.group_noise), None),
        setting.pilot.by if setting.pilot is not None else None,
    )
    for option, grouping in (("group_noise", given_grouping), ("by", learned)):
        if grouping is not None:
            require_name(grouping, groupings, "`{option}` names the grouping {name!r}; {hint}", option=option)
    if given_grouping is not None and learned is not None and given_grouping != learned:
        raise ConfigError(
            "`group_noise` is about {given!r} and `pilot` learns by {learned!r}; let both be about one grouping.",
            given=given_grouping,
            learned=learned,
        )
    return given_grouping or learned


def _make_profiles(
    grouping: str, learned: Sequence[str], groupings: Groupings, people: ScoredPeople, spec: ReliabilitySpec
) -> Profiles:
    """Return the profiles of groups; `learned` are the groups with separate mistakes from a pilot."""
    codes, labels = people.groups.joint(groupings[grouping])
    group_noise = spec.noise.group_noise.get(grouping, {})
    named = [label for label in labels if label != MISSING]
    for group in group_noise:
        require_name(group, named, "`group_noise` names {name!r} of {grouping!r}; {hint}", grouping=grouping)
    groups = tuple(label for label in named if label in group_noise or label in learned)
    profile_of = np.array([groups.index(label) + 1 if label in groups else 0 for label in labels], dtype=np.int64)
    paces = np.array([1.0, *(group_noise.get(group, GroupNoise()).times for group in groups)])
    return Profiles(grouping, groups, profile_of[codes], paces)


def _with_profiles(
    made: _Items, profiles: Profiles, untouched: Reasons, people: ScoredPeople, spec: ReliabilitySpec
) -> tuple[tuple[NoiseItem, ...], Redraw | None, list[str]]:
    """Return items with a noise model for each profile, their redraw function, and the names of added items."""
    by_group: dict[str, dict[tuple[int, ...], NoiseModel]] = {}
    names: dict[tuple[int, ...], str] = {}
    for group, how in spec.noise.group_noise.get(profiles.grouping, {}).items():
        group_items = _items_by_feature(how.noise, untouched, people)
        by_group[group] = {item.columns: item.model for item in group_items.items}
        names |= {item.columns: name for item, name in zip(group_items.items, group_items.names, strict=True)}

    def shaped(items: Sequence[NoiseItem]) -> tuple[NoiseItem, ...]:
        return _by_profile(items, made.learned, profiles.groups, by_group)

    items = shaped(made.items)
    added = items[len(made.items) :]
    for item in added:
        if any(other is not item and set(other.columns) & set(item.columns) for other in items):
            raise ConfigError(
                "`group_noise` lets {names!r} go wrong by itself, and `noise` together with other columns; let "
                "both name the same columns.",
                names=names[item.columns],
            )
    redraw = made.redraw
    redraw_all = None if redraw is None else lambda rng: shaped(redraw(rng))
    return items, redraw_all, [names[item.columns] for item in added]


def _by_profile(
    items: Sequence[NoiseItem],
    learned: Sequence[str],
    groups: Sequence[str],
    by_group: Mapping[str, Mapping[tuple[int, ...], NoiseModel]],
) -> tuple[NoiseItem, ...]:
    """Return items with one noise model for each profile.

    Parameters
    ----------
    items : the items with the common noise models; their `others` are the models of the learned groups.
    learned, groups : the groups with learned mistakes, and all groups with a profile.
    by_group : the noise models of columns with separate mistakes, by group.
    """
    common = [item.columns for item in items]
    added = dict.fromkeys(columns for models in by_group.values() for columns in models if columns not in common)
    shaped = []
    for item in (*items, *(NoiseItem(columns, Right()) for columns in added)):
        learned_models = dict(zip(learned, item.others, strict=False))
        others = [by_group.get(group, {}).get(item.columns, learned_models.get(group, item.model)) for group in groups]
        same = all(model is item.model for model in others)
        shaped.append(NoiseItem(item.columns, item.model, () if same else tuple(others)))
    return tuple(shaped)
