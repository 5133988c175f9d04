"""The groups of a grouping that are large enough to be compared, and the one they are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import ConfigError, did_you_mean
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

Reference = Mapping[str, str] | str | None


@dataclass(frozen=True, eq=False)
class Compared:
    """One grouping of people.

    Parameters
    ----------
    name : its name.
    groups : the groups that are compared, in order.
    sizes : how many people each has.
    reference : the position of the group that the others are held against.
    code : (people,) each person's position in `groups`, -1 for those who are in none of them.
    left_out : who is in none of them, and why.
    """

    name: str
    groups: tuple[str, ...]
    sizes: tuple[int, ...]
    reference: int
    code: IntArray
    left_out: tuple[dict[str, Any], ...]

    @property
    def others(self) -> tuple[int, ...]:
        """The positions of the groups other than the reference."""
        return tuple(group for group in range(len(self.groups)) if group != self.reference)


def compared_groups(table: Table, people: Cells, reference: Reference, min_count: int) -> list[Compared]:
    """Return the groupings of a table for people whose group codes are given.

    Parameters
    ----------
    table : the table, for its groupings.
    people : one cell a person.
    reference : the reference group, or one for each grouping; by default the largest group.
    min_count : groups with fewer people are not compared.
    """
    labels = {name: people.joint(columns)[1] for name, columns in table.groupings.items()}
    _require_reference(labels, reference)
    found = []
    for name, columns in table.groupings.items():
        wanted = reference.get(name) if isinstance(reference, Mapping) else reference
        found.append(_compared(name, *people.joint(columns), wanted, min_count))
    return found


def _compared(name: str, code: IntArray, labels: tuple[str, ...], wanted: str | None, min_count: int) -> Compared:
    sizes = np.bincount(code, minlength=len(labels))
    large = np.array([label != MISSING for label in labels], dtype=np.bool_) & (sizes >= min_count)
    kept = np.flatnonzero(large)
    groups = tuple(labels[at] for at in kept)
    if wanted in labels and wanted not in groups:
        raise ConfigError(
            f"`reference` {wanted!r} of {name!r} has {sizes[labels.index(str(wanted))]} people, fewer than min_count "
            f"{min_count}; name a larger group."
        )
    reference = groups.index(str(wanted)) if wanted in groups else int(np.argmax(sizes[kept])) if len(kept) else -1
    place = np.where(large, np.cumsum(large) - 1, -1)
    left_out = tuple(
        {
            "model": None,
            "grouping": name,
            "group": label,
            "n": int(size),
            "reason": "missing group: not compared" if label == MISSING else f"fewer than min_count {min_count} people",
        }
        for label, size, kept_one in zip(labels, sizes, large, strict=True)
        if not kept_one
    )
    return Compared(name, groups, tuple(sizes[kept].tolist()), reference, place[code], left_out)


def _require_reference(labels: Mapping[str, tuple[str, ...]], reference: Reference) -> None:
    """Refuse a reference group, or a grouping, that the data does not have."""
    if isinstance(reference, str) and not any(reference in groups for groups in labels.values()):
        known = sorted({label for groups in labels.values() for label in groups})
        raise ConfigError(f"`reference` {reference!r} is not a group; {did_you_mean(reference, known)}")
    for grouping, wanted in reference.items() if isinstance(reference, Mapping) else ():
        if grouping not in labels:
            raise ConfigError(f"`reference` names the grouping {grouping!r}; {did_you_mean(grouping, labels)}")
        if wanted not in labels[grouping]:
            hint = did_you_mean(wanted, labels[grouping])
            raise ConfigError(f"`reference` {wanted!r} is not a group of {grouping!r}; {hint}")
