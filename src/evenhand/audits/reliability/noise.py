"""From settings to mistakes: which columns go wrong, how, how often and under which name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.audits.reliability.derived import group_features, group_notes
from evenhand.audits.reliability.mistakes import FeatureNoise, NoiseSetting
from evenhand.audits.reliability.people import Feature, People, copy_notes
from evenhand.audits.reliability.pilot import read_pilot
from evenhand.audits.reliability.profiles import (
    Groupings,
    Profiles,
    by_profile,
    make_profiles,
    noise_grouping,
)
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, count
from evenhand.stats.noise import (
    Confusion,
    Flip,
    NoiseItem,
    NoiseModel,
    Normal,
    OneHot,
    Shares,
    largest_level,
    neighbours,
    published_noise,
)
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key

MOST_CATEGORIES = 50
Renew = Callable[[np.random.Generator], Sequence[NoiseItem]]


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The mistakes of one setting.

    Parameters
    ----------
    setting : its name.
    items : what goes wrong.
    names : what the items are called.
    shares : how a noise level is turned into touched entries.
    noise_levels : rising.
    attribution_level : the noise level at which the gap is shared out, or None.
    renew : for a pilot that is drawn anew in every replicate.
    profiles : who goes wrong in a way of their own; None where all go wrong alike.
    notes : remarks on them.
    """

    setting: str
    items: tuple[NoiseItem, ...]
    names: tuple[str, ...]
    shares: Shares
    noise_levels: FloatArray
    attribution_level: float | None
    renew: Renew | None
    profiles: Profiles | None
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The places of the features that go wrong."""
        return tuple(column for item in self.items for column in item.columns)


def make_mistakes(
    setting: NoiseSetting, people: People, groupings: Groupings, untouched: dict[str, str], spec: ReliabilitySpec
) -> Mistakes:
    """Return the mistakes of a setting.

    Parameters
    ----------
    setting : the setting.
    people : whose features go wrong.
    groupings : the groupings of the table, by one of which mistakes may differ.
    untouched : features that must not go wrong, and why.
    spec : the settings of the audit.
    """
    free = _free(setting, people, untouched)
    grouping = noise_grouping(setting, groupings, spec)
    items: Sequence[NoiseItem]
    renew: Renew | None = None
    shares: Shares = "bernoulli"
    notes: list[str] = []
    learned: tuple[str, ...] = ()
    if setting.pilot is not None:
        pilot, names, learned, notes = read_pilot(setting.pilot, free, people, groupings, spec)
        items, renew = pilot.items(), pilot.resampled() if setting.pilot.resample else None
        if setting.pilot.together:
            names = [" + ".join(names)]
    elif setting.published is not None:
        shares = published_noise(setting.published).shares
        items, names, notes = _published(setting.published, free, people, spec)
    else:
        items, names = _given(setting.features, untouched, people)
    profiles = None
    if grouping is not None:
        profiles = make_profiles(grouping, learned, groupings, people, spec)
        items, renew, added = _of_profiles(items, renew, learned, profiles, untouched, people, spec)
        names = [*names, *added]
    notes += [*group_notes(setting, items, people), *_limit_notes(setting, items, people, profiles, spec)]
    notes += copy_notes(people)
    levels = _levels(spec, learned=setting.pilot is not None)
    at = _attribution_level(spec, levels, learned=setting.pilot is not None)
    _require_possible(levels, at, items, people, profiles, spec.shares or shares)
    return Mistakes(
        setting.name, tuple(items), tuple(names), spec.shares or shares, levels, at, renew, profiles, tuple(notes)
    )


def every_mistake(people: People, spec: ReliabilitySpec) -> tuple[NoiseItem, ...]:
    """Return all that can go wrong, in any setting and for any group: what a model must be able to take.

    Parameters
    ----------
    people : whose features go wrong.
    spec : the settings of the audit, without features that follow others.
    """
    defining = [name for name in people.names if column_key(name) in people.groups.codes]
    untouched = untouched_features(people, defining, (), spec)
    found: list[NoiseItem] = []
    for setting in spec.noise:
        free = _free(setting, people, untouched)
        if setting.pilot is not None:  # the groups of a pilot err as some of its people do
            found += read_pilot(setting.pilot.model_copy(update={"by": None}), free, people, {}, spec)[0].items()
        elif setting.published is not None:
            found += _published(setting.published, free, people, spec)[0]
        else:
            found += _given(setting.features, untouched, people)[0]
    for told in (own for groups in spec.group_noise.values() for own in groups.values()):
        found += _given(told.noise, untouched, people)[0]
    return tuple(found)


def _free(setting: NoiseSetting, people: People, untouched: dict[str, str]) -> list[Feature]:
    """Return the features that may go wrong: in a published setting none that tells the group."""
    held = {*untouched, *(group_features(people) if setting.published is not None else ())}
    return [feature for feature in people.features if feature.name not in held]


def _limit_notes(
    setting: NoiseSetting, items: Sequence[NoiseItem], people: People, profiles: Profiles | None, spec: ReliabilitySpec
) -> Iterator[str]:
    """Warn of limits that the data itself does not keep: any mistake takes such an entry to the limit."""
    found: dict[tuple[int, str, float], int] = {}

    def look(at: int, minimum: float | None, maximum: float | None, own: BoolArray | bool) -> None:
        values = people.matrix[:, at]
        for which, limit, sign in (("minimum", minimum, 1.0), ("maximum", maximum, -1.0)):
            if limit is not None and (n := int(((sign * values < sign * limit) & own).sum())):
                found[at, which, limit] = found.get((at, which, limit), 0) + n

    for item in items:
        for profile, model in enumerate((item.model, *item.others)):
            if isinstance(model, Normal):
                own = profiles is None or not item.others or profiles.code == profile
                look(item.columns[0], model.minimum, model.maximum, own)
    if setting.pilot is not None:
        for name, least in spec.minima.items():
            look(people.places([name])[0], least, None, True)
    for (at, which, limit), n in found.items():
        yield (
            f"Warning: {people.names[at]!r} is {'below' if which == 'minimum' else 'above'} its {which} {limit:g} for "
            f"{count(n, 'person', 'people')} of {len(people.matrix):,}. However small the error, a mistake takes such "
            f"an entry to {limit:g}; give a {which} that the data keeps."
        )


def _of_profiles(
    items: Sequence[NoiseItem],
    renew: Renew | None,
    learned: Sequence[str],
    profiles: Profiles,
    untouched: dict[str, str],
    people: People,
    spec: ReliabilitySpec,
) -> tuple[tuple[NoiseItem, ...], Renew | None, list[str]]:
    """Return items with a model for each profile, how they are drawn anew, and the names of items that are new."""
    own: dict[str, dict[tuple[int, ...], NoiseModel]] = {}
    called: dict[tuple[int, ...], str] = {}
    for group, told in spec.group_noise.get(profiles.grouping, {}).items():
        given, names = _given(told.noise, untouched, people)
        own[group] = {item.columns: item.model for item in given}
        called |= {item.columns: name for item, name in zip(given, names, strict=True)}
    shaped = by_profile(items, learned, profiles.groups, own)
    for item in shaped[len(items) :]:
        for other in shaped:
            if other is not item and set(other.columns) & set(item.columns):
                raise ConfigError(
                    f"`group_noise` lets {called[item.columns]!r} go wrong by itself, and `noise` together with other "
                    "columns; let both name the same columns."
                )
    again = None if renew is None else lambda rng: by_profile(renew(rng), learned, profiles.groups, own)
    return shaped, again, [called[item.columns] for item in shaped[len(items) :]]


def _require_possible(
    levels: FloatArray,
    at: float | None,
    items: Sequence[NoiseItem],
    people: People,
    profiles: Profiles | None,
    shares: Shares,
) -> None:
    """Refuse noise levels at which more than every entry would be wrong."""
    code, paces = (None, None) if profiles is None else (profiles.code, profiles.paces)
    most = largest_level(items, people.matrix, code, paces)
    if shares == "exact":
        most = min(most, 1.0 if paces is None else 1.0 / max(1.0, float(paces.max())))
    for where, level in (("noise_levels", float(levels[-1])), ("attribution", at or 0.0)):
        if level > most * (1 + 1e-9):
            named = "`noise_levels` go up to" if where == "noise_levels" else "`attribution` is"
            raise ConfigError(
                f"{named} {level:g}, and more than {most:.3g} would change more than every entry; lower "
                f"{'them' if where == 'noise_levels' else 'it'}."
            )


def _levels(spec: ReliabilitySpec, *, learned: bool) -> FloatArray:
    if spec.noise_levels is not None:
        return np.array(spec.noise_levels, dtype=np.float64)
    return np.round(np.arange(11) * 0.1, 5) if learned else np.round(np.arange(31) * 0.01, 5)


def _attribution_level(spec: ReliabilitySpec, levels: FloatArray, *, learned: bool) -> float | None:
    """Return the level asked for; by default the one nearest to two thirds of the highest, with a pilot the pilot's."""
    if spec.attribution is False or levels[-1] == 0:
        return None
    if spec.attribution is not True:
        return float(spec.attribution)
    wanted = min(1.0, levels[-1]) if learned else 2.0 * levels[-1] / 3.0
    above = levels[levels > 0]
    return float(above[np.argmin(np.abs(above - wanted))])


def _published(
    name: str, free: Sequence[Feature], people: People, spec: ReliabilitySpec
) -> tuple[list[NoiseItem], list[str], list[str]]:
    noise, notes = published_noise(name), []
    numeric = [feature for feature in free if not feature.categorical]
    binary = [feature for feature in free if feature.categorical and len(feature.distinct) <= 2]
    wider = [feature for feature in free if feature.categorical and len(feature.distinct) > 2 and noise.flips]
    places = [people.places([feature.name for feature in kind]) for kind in (numeric, binary)]
    least = {at: spec.minima.get(f.name, float(f.distinct[0])) for at, f in zip(places[0], numeric, strict=True)}
    items = list(noise.items(places[0], places[1], least))
    names = [f.name for f in numeric if noise.sd is not None] + [f.name for f in binary if noise.flips]
    for feature in wider:
        items.append(NoiseItem(tuple(people.places([feature.name])), _other_category(feature)))
        names.append(feature.name)
        notes.append(
            f"The published study had no feature with more than two categories; {feature.name!r} has "
            f"{len(feature.distinct)}, and a mistake makes it one of the others, each with equal chance."
        )
    if not items:
        raise ConfigError(f"the noise setting {name!r} perturbs nothing: no feature of its kind is free to go wrong.")
    return items, names, notes


def _given(
    noise: dict[str, FeatureNoise], untouched: dict[str, str], people: People
) -> tuple[list[NoiseItem], list[str]]:
    items, names = [], []
    for name, how in noise.items():
        columns = how.one_hot or (name,)
        for column in columns:
            if column in untouched:
                raise ConfigError(f"`noise` names {column!r}, which {untouched[column]}; leave it out.")
        places = people.places(columns)
        model: NoiseModel = OneHot() if how.one_hot else _model(how, people.features[places[0]])
        items.append(NoiseItem(tuple(places), model))
        names.append(name)
    return items, names


def _model(how: FeatureNoise, feature: Feature) -> NoiseModel:
    if how.sd is not None:
        if feature.labels is not None or feature.truth:
            raise ConfigError(f'`noise` gives {feature.name!r} an `sd`, but it holds no numbers; use "flip".')
        whole = feature.whole if how.whole is None else how.whole
        return Normal(how.sd, whole=whole, minimum=how.minimum, maximum=how.maximum)
    if how.flip:
        return _other_category(feature)
    if how.chances is not None:
        values = tuple(feature.number_of(value) for value in how.values or ())
        _require_listed(feature, values, "values")
        return Confusion(values, how.chances)
    return _neighbour(how, feature)


def _other_category(feature: Feature) -> NoiseModel:
    """Return the noise that takes an entry to another category, each with equal chance."""
    values = feature.distinct
    if feature.labels is None and np.isin(values, (0.0, 1.0)).all():
        return Flip()
    if len(values) == 2:
        return Flip(float(values[0]), float(values[1]))
    if len(values) < 2:
        raise ConfigError(f"{feature.name!r} has one value only, so there is nothing to flip it to; leave it out.")
    if len(values) > MOST_CATEGORIES:
        raise ConfigError(f"{feature.name!r} has {len(values)} different values; for numbers give the `sd` of errors.")
    chances = (1.0 - np.eye(len(values))) / (len(values) - 1)
    return Confusion(tuple(values.tolist()), tuple(tuple(row) for row in chances.tolist()))


def _neighbour(how: FeatureNoise, feature: Feature) -> NoiseModel:
    if how.ordinal is True:
        if feature.labels is not None:
            raise ConfigError(f"{feature.name!r} holds text, which has no order; list its values as `ordinal`.")
        values = tuple(feature.distinct.tolist())
    else:
        listed = how.ordinal if isinstance(how.ordinal, tuple) else ()
        values = tuple(feature.number_of(value) for value in listed)
        _require_listed(feature, values, "ordinal")
    if len(values) > MOST_CATEGORIES:
        raise ConfigError(f"{feature.name!r} has {len(values)} different values; for numbers give the `sd` of errors.")
    return Confusion(values, neighbours(tuple(range(len(values))), how.reach).chances)


def _require_listed(feature: Feature, values: Sequence[float], where: str) -> None:
    lacking = [feature.shown(number) for number in feature.distinct if number not in values]
    if lacking:
        shown = ", ".join(lacking[:5])
        raise ConfigError(f"`{where}` of the noise of {feature.name!r} leaves out {shown}; list all values.")


def untouched_features(
    people: People, group_columns: Sequence[str], following: Sequence[str], spec: ReliabilitySpec
) -> dict[str, str]:
    """Return the features that must not go wrong, and why."""
    found = dict.fromkeys((name for name in people.names if name in spec.fixed), "is held fixed")
    found |= dict.fromkeys(following, "follows other features")
    return found | {name: "defines groups and stays as it is" for name in people.names if name in group_columns}
