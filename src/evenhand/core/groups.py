"""The groups of a grouping that are large enough to compare, and their reference group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.records import OVERALL, LeftOut
from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.messages import Message
from evenhand.messages.shared import say
from evenhand.stats.pairs import hashes
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.labels import known_label
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

Reference = Mapping[str, str] | str | None


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The compared groups of one grouping.

    Parameters
    ----------
    name : the name of the grouping.
    groups : the compared groups, in the order of `largest_first`.
    sizes : the number of people in each group.
    reference : the position of the reference group.
    code : (people,) each person's position in `groups`; -1 for people outside these groups.
    left_out : the people outside these groups, with the reasons.
    """

    name: str
    groups: tuple[str, ...]
    sizes: tuple[int, ...]
    reference: int
    code: IntArray
    left_out: tuple[LeftOut, ...]

    @property
    def others(self) -> tuple[int, ...]:
        """The positions of the groups other than the reference."""
        return tuple(group for group in range(len(self.groups)) if group != self.reference)


def compared_groups(
    table: Table, people: Cells, reference: Reference, min_count: int, contents: Sequence[ArrayLike] = ()
) -> list[ComparedGroups]:
    """Return the compared groups of every grouping of a table.

    Parameters
    ----------
    table : the table with the groupings.
    people : the group codes of each person.
    reference : the reference group, or a reference group for each grouping; by default the largest group.
    min_count : the minimum number of people in a compared group.
    contents : columns with data on each person, which determine the order of groups of equal size.
    """
    coded = {name: people.joint(columns) for name, columns in table.groupings.items()}
    require_reference({name: labels for name, (_, labels) in coded.items()}, reference)
    contents = [*contents, *_sizes(people)]
    return [
        _compared(name, joint, contents, reference_of(reference, name, joint[1]), min_count)
        for name, joint in coded.items()
    ]


def largest_first(sizes: IntArray, code: IntArray, contents: Iterable[ArrayLike]) -> IntArray:
    """Return the positions of groups in descending size, so that no draw and no claim depends on a name.

    Groups of equal size are sorted by a hash of their rows' contents, which does not depend on the order of rows.

    Parameters
    ----------
    sizes : (groups,) the size of each group.
    code : (rows,) the group of each row.
    contents : numeric columns (rows,), in an order independent of names. Constant columns have no effect.

    Examples
    --------
    >>> code, score = np.array([0, 1, 1, 2, 2]), np.array([0.1, 0.2, 0.3, 0.3, 0.4])
    >>> largest_first(np.bincount(code), code, [score]).tolist()
    [1, 2, 0]
    >>> largest_first(np.bincount(code), np.array([0, 2, 2, 1, 1]), [score]).tolist()
    [2, 1, 0]
    """
    columns = [np.asarray(column, dtype=np.float64) for column in contents]
    columns = [np.where(np.isnan(column), np.nan, column) for column in columns if np.ptp(column) != 0]
    signature = np.zeros(len(sizes), dtype=np.uint64)
    if columns:
        np.add.at(signature, code, hashes(*columns))
    return np.asarray(np.lexsort((signature, -sizes)), dtype=np.int64)


def ranks_of_groups(people: Cells, contents: Sequence[ArrayLike]) -> list[IntArray]:
    """Return the rank of each person's group in every group column, independent of names.

    Parameters
    ----------
    people : the group codes of each person.
    contents : columns with data on each person.
    """
    contents = [*contents, *_sizes(people)]
    ranks = []
    for code in people.codes.values():
        order = largest_first(np.bincount(code), code, contents)
        ranks.append(np.argsort(order)[code])
    return ranks


def _sizes(people: Cells) -> list[IntArray]:
    """Return the size of each person's group in every group column."""
    return [np.bincount(code)[code] for code in people.codes.values()]


def reference_of(reference: Reference, grouping: str, labels: Sequence[str]) -> str | None:
    """Return the label of the reference group in one grouping, or None for the default."""
    label = reference.get(grouping) if isinstance(reference, Mapping) else reference
    return None if label is None else known_label(grouping, label, labels)


def require_reference(labels: Mapping[str, tuple[str, ...]], reference: Reference) -> None:
    """Refuse an unknown reference group or grouping, and a group called '(overall)'."""
    for grouping, groups in labels.items():
        if OVERALL in groups:
            raise DataError(
                "group column {grouping!r} has a group called {name!r}, our name for everybody: rename it.",
                grouping=grouping,
                name=OVERALL,
            )
    if isinstance(reference, str) and not any(reference_of(reference, *item) in item[1] for item in labels.items()):
        labels_of_all = sorted({label for groups in labels.values() for label in groups})
        hint = did_you_mean(reference, labels_of_all)
        raise ConfigError("`reference` {reference!r} is not a group; {hint}", reference=reference, hint=hint)
    for grouping, label in reference.items() if isinstance(reference, Mapping) else ():
        if grouping not in labels:
            hint = did_you_mean(grouping, labels)
            raise ConfigError("`reference` names the grouping {grouping!r}; {hint}", grouping=grouping, hint=hint)
        if known_label(grouping, label, labels[grouping]) not in labels[grouping]:
            hint = did_you_mean(label, labels[grouping])
            raise ConfigError(
                "`reference` {wanted!r} is not a group of {grouping!r}; {hint}",
                wanted=label,
                grouping=grouping,
                hint=hint,
            )


def _compared(
    name: str,
    joint: tuple[IntArray, tuple[str, ...]],
    contents: Sequence[ArrayLike],
    reference_label: str | None,
    min_count: int,
) -> ComparedGroups:
    code, labels = joint
    sizes = np.bincount(code, minlength=len(labels))
    large = np.array([label != MISSING for label in labels], dtype=np.bool_) & (sizes >= min_count)
    order = largest_first(sizes, code, contents)
    compared = order[large[order]]
    groups = tuple(labels[position] for position in compared)
    if reference_label in labels and reference_label not in groups:
        raise ConfigError(
            "`reference` {wanted!r} of {grouping!r} has {size} people, fewer than min_count {least}; name a larger "
            "group.",
            wanted=reference_label,
            grouping=name,
            size=int(sizes[labels.index(str(reference_label))]),
            least=min_count,
        )
    reference = (
        groups.index(str(reference_label))
        if reference_label in groups
        else int(np.argmax(sizes[compared]))
        if len(compared)
        else -1
    )
    position = np.full(len(labels), -1)
    position[compared] = np.arange(len(compared))
    left_out = tuple(
        LeftOut(grouping=name, group=label, n=int(size), reason=_why_left_out(label, min_count))
        for label, size, is_compared in zip(labels, sizes, large, strict=True)
        if not is_compared
    )
    return ComparedGroups(name, groups, tuple(sizes[compared].tolist()), reference, position[code], left_out)


def _why_left_out(label: str, min_count: int) -> Message:
    return say("group_missing") if label == MISSING else say("few_people", least=min_count)
