"""Mistakes that differ by group: who makes them how often, and in which way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.audits.reliability.mistakes import GroupNoise, NoiseSetting
from evenhand.audits.reliability.people import People
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, did_you_mean
from evenhand.stats.noise import NoiseItem, NoiseModel, Right
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.roles import MISSING

Groupings = Mapping[str, tuple[str, ...]]
"""The groupings of a table: the columns of each."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """The groups whose mistakes are not those of everybody else.

    Parameters
    ----------
    grouping : the grouping they are of.
    groups : their labels; the first has profile 1, and everybody else has profile 0.
    code : (people,) the profile of each person.
    paces : (profiles,) how many times as often entries are touched.
    """

    grouping: str
    groups: tuple[str, ...]
    code: IntArray
    paces: FloatArray


def noise_grouping(setting: NoiseSetting, groupings: Groupings, spec: ReliabilitySpec) -> str | None:
    """Return the grouping by which mistakes differ, None where they do not."""
    told, learned = next(iter(spec.group_noise), None), setting.pilot.by if setting.pilot is not None else None
    for where, name in (("group_noise", told), ("by", learned)):
        if name is not None and name not in groupings:
            raise ConfigError(f"`{where}` names the grouping {name!r}; {did_you_mean(name, groupings)}")
    if told is not None and learned is not None and told != learned:
        raise ConfigError(
            f"`group_noise` is about {told!r} and `pilot` learns by {learned!r}; let both be about one grouping."
        )
    return told or learned


def make_profiles(
    grouping: str, learned: Sequence[str], groupings: Groupings, people: People, spec: ReliabilitySpec
) -> Profiles:
    """Return who goes wrong how often.

    Parameters
    ----------
    grouping : the grouping by which mistakes differ.
    learned : groups with a profile learned from a pilot.
    groupings, people, spec : the table's groupings, the people, and the settings of the audit.
    """
    codes, labels = people.groups.joint(groupings[grouping])
    told = spec.group_noise.get(grouping, {})
    known = [label for label in labels if label != MISSING]
    for group in told:
        if group not in known:
            raise ConfigError(f"`group_noise` names {group!r} of {grouping!r}; {did_you_mean(group, known)}")
    groups = tuple(label for label in known if label in told or label in learned)
    profile_of = np.array([groups.index(label) + 1 if label in groups else 0 for label in labels], dtype=np.int64)
    paces = np.array([1.0, *(told.get(group, GroupNoise()).times for group in groups)])
    return Profiles(grouping, groups, profile_of[codes], paces)


def by_profile(
    items: Sequence[NoiseItem],
    learned: Sequence[str],
    groups: Sequence[str],
    own: Mapping[str, Mapping[tuple[int, ...], NoiseModel]],
) -> tuple[NoiseItem, ...]:
    """Return items with one model a profile.

    Parameters
    ----------
    items : what goes wrong for everybody; their `others` are those of the learned groups.
    learned, groups : the groups with a learned profile, and all that have a profile.
    own : for groups, the models of columns that go wrong in another way.
    """
    added = dict.fromkeys(columns for models in own.values() for columns in models)
    whole = [*items, *(NoiseItem(columns, Right()) for columns in added if columns not in [i.columns for i in items])]
    found = []
    for item in whole:
        learned_models = dict(zip(learned, item.others, strict=False))
        others = [own.get(group, {}).get(item.columns, learned_models.get(group, item.model)) for group in groups]
        same = all(model is item.model for model in others)
        found.append(NoiseItem(item.columns, item.model, () if same else tuple(others)))
    return tuple(found)
