"""The people of a table counted by group, class and right class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.audits.classes.spec import ClassesSpec
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.keys import label_of
from evenhand.table.table import Table

_MOST_CLASSES = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class Classified:
    """People with their assigned and right classes.

    Parameters
    ----------
    decision, truth : (people,) the positions of the assigned and the right class; `truth` is None if unknown.
    labels : the classes, from worst to best if they are ordered.
    groups : the group codes of the people.
    dropped : the number of rows left out for a missing class.
    """

    decision: IntArray
    truth: IntArray | None
    labels: tuple[str, ...]
    groups: Cells
    dropped: int

    def counts(self, code: IntArray, groups: int) -> IntArray:
        """Return the number of people (groups, classes, right classes); the last axis is 1 without right classes."""
        classes = len(self.labels)
        truth = np.zeros_like(self.decision) if self.truth is None else self.truth
        rights = 1 if self.truth is None else classes
        inside = code >= 0
        cell = (code[inside] * classes + self.decision[inside]) * rights + truth[inside]
        return np.bincount(cell, minlength=groups * classes * rights).reshape(groups, classes, rights)


def gather(table: Table, spec: ClassesSpec) -> Classified:
    """Read the classes of a table."""
    if table.roles.weight is not None:
        raise ConfigError(
            "the audit of classes counts people; leave the survey weight {weight!r} out.", weight=table.roles.weight
        )
    truth = {} if spec.truth is None else {"truth": spec.truth}
    rows = table.coded_rows({"decision": spec.decision, **truth})
    keep = np.all([column.codes >= 0 for column in rows.columns.values()], axis=0)
    if table.roles.missing == "error" and not keep.all():
        raise DataError(
            "a class is missing in {rows}; fill it, or drop the rows with `missing='drop'`.",
            rows=count(int((~keep).sum()), "row"),
        )
    labels = _labels(list(rows.columns.values()), spec)
    codes = {name: _positions(column, labels)[keep] for name, column in rows.columns.items()}
    order = np.lexsort(list(codes.values()))
    return Classified(
        decision=codes["decision"][order],
        truth=codes["truth"][order] if truth else None,
        labels=labels,
        groups=rows.groups.where(np.flatnonzero(keep)[order]),
        dropped=int((~keep).sum()),
    )


def _labels(columns: Sequence[Coded], spec: ClassesSpec) -> tuple[str, ...]:
    """Return the classes of `order`, or else the sorted classes of the data."""
    seen = dict.fromkeys(label for column in columns for label in column.labels)
    if spec.order is None:
        labels = tuple(sorted(seen))
    else:
        labels = tuple(label_of(value) for value in spec.order)
        if unknown := [label for label in seen if label not in labels]:
            raise DataError("the class {name!r} is not in `order`; list all classes.", name=unknown[0])
    if not 2 <= len(labels) <= _MOST_CLASSES:
        raise DataError(
            "there are {number} classes; the audit takes 2 to {most}. Compare numbers with eh.parity.",
            number=len(labels),
            most=_MOST_CLASSES,
        )
    return labels


def _positions(column: Coded, labels: Sequence[str]) -> IntArray:
    position = {label: index for index, label in enumerate(labels)}
    return np.array([*(position[label] for label in column.labels), -1], dtype=np.int64)[column.codes]
