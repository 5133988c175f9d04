"""From a table to people: trajectories, effort and aggregate, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.audits.effort.history import Trajectories, read_history
from evenhand.audits.effort.inertia import TABLES, named_rates, scaled
from evenhand.audits.effort.spec import EffortSpec
from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.stats.effort import aggregate_scores, effort_scores
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.roles import MISSING
from evenhand.table.rows import PersonRows
from evenhand.table.table import Table

LARGEST = 1e15


@dataclass(frozen=True)
class People:
    """The people an effort audit compares.

    Parameters
    ----------
    rows : their numbers and scores.
    steps : what the time steps are called.
    times : their stamps, or None when they are one unit apart.
    values : trajectories, shape (people, time steps).
    inertia : disadvantage outside their control, above 0.
    effort, aggregate : what the paper makes of them.
    dropped : people left out for a missing value.
    strangers : people of a history whom the table does not know.
    """

    rows: PersonRows
    steps: tuple[str, ...]
    times: tuple[float, ...] | None
    values: FloatArray
    inertia: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    dropped: int
    strangers: int

    @property
    def highest(self) -> float:
        """The largest effort."""
        return float(self.effort.max())

    def digest(self) -> str:
        """Return the SHA-256 of what every number is computed from; the same on every engine."""
        found = hashlib.sha256()
        weight = [] if self.rows.weight is None else [self.rows.weight]
        for column in (*self.values.T, self.inertia, *self.rows.scores.values(), *weight):
            found.update(np.ascontiguousarray(column + 0.0, dtype="<f8").tobytes())
        for name, codes in sorted(self.rows.groups.codes.items()):
            found.update(json.dumps([name, self.rows.groups.labels[name]]).encode())
            found.update(np.ascontiguousarray(codes, dtype="<i8").tobytes())
        return found.hexdigest()


def gather(table: Table, spec: EffortSpec) -> People:
    """Read the people of a table, refuse or drop those with gaps, and work out effort and aggregate."""
    column = inertia_column(spec)
    others = spec.robustness.columns if spec.robustness is not None else ()
    wanted = [*spec.trajectory, *([column] if column is not None else []), *others]
    rows = table.person_rows(list(dict.fromkeys(wanted)))
    found = _trajectories(table, rows, spec)
    inertia = rows.numbers[column] if column is not None else _by_group(table, rows, spec)
    _refuse_infinite(found)
    refuse_huge(dict(zip(found.names, np.abs(np.nan_to_num(found.values)).max(axis=0, initial=0.0), strict=True)))
    whole = np.isfinite(found.values).all(axis=1) & ~np.isnan(inertia)
    if not whole.all() and table.roles.missing != "drop":
        refuse_gaps(dict(zip(found.names, np.isnan(found.values).sum(axis=0).tolist(), strict=True)), whole)
    rows, values, inertia = _kept(rows, whole), found.values[whole], inertia[whole]
    require_pairs(len(values))
    if not (np.isfinite(inertia) & (inertia > 0)).all():
        refuse_inertia(column, float(inertia[~(np.isfinite(inertia) & (inertia > 0))][0]))
    effort = effort_scores(values, inertia, spec.desirable, spec.unit, found.times, spec.measure)
    return People(
        rows,
        found.names,
        found.times,
        values,
        inertia,
        effort,
        aggregate_scores(values, spec.scale),
        int((~whole).sum()),
        found.strangers,
    )


def inertia_column(spec: EffortSpec) -> str | None:
    """Return the column that holds each person's inertia, where it is given so."""
    return spec.inertia if isinstance(spec.inertia, str) and spec.inertia not in TABLES else None


def group_rates(table: Table, spec: EffortSpec) -> tuple[str, dict[str, float]]:
    """Return the group column of the rates of inertia, and the rates, one for every group that the table has."""
    assert spec.inertia is not None  # noqa: S101
    rates = named_rates(spec.inertia) if isinstance(spec.inertia, str) else scaled(spec.inertia)
    by = spec.inertia_by or "race"
    if by not in table.roles.group_columns:
        raise ConfigError(
            f"rates of inertia by group need their group column among the table's groups; `inertia_by` is {by!r}; "
            f"{did_you_mean(by, table.roles.group_columns)}"
        )
    codes, labels = table.cells.joint([by])
    unknown = [label for code, label in enumerate(labels) if label not in (MISSING, *rates) and (codes == code).any()]
    if unknown:
        raise DataError(
            f"`inertia` has no rate for {', '.join(repr(label) for label in unknown[:5])} of column {by!r}; "
            f"give one for every group (known: {', '.join(repr(group) for group in rates)})."
        )
    return by, rates


def refuse_gaps(gaps: dict[str, int], whole: BoolArray | tuple[int, int]) -> None:
    """Say in how many rows a trajectory or the inertia is missing, and in which columns."""
    lost, rows = whole if isinstance(whole, tuple) else (int((~whole).sum()), len(whole))
    where = ", ".join(f"{name!r} in {n:,}" for name, n in gaps.items() if n) or "the inertia"
    raise DataError(
        f"trajectories are missing in {count(lost, 'row')} of {rows:,} ({where}); fill them, or drop these people "
        "with missing='drop'."
    )


def refuse_inertia(column: str | None, value: float) -> None:
    """Say that an inertia is not above 0."""
    raise DataError(f"inertia column {column!r} must be above 0 and finite; it holds {value:g}.")


def refuse_huge(sizes: Mapping[str, float]) -> None:
    """Refuse values so large that sums and squares of them lose all meaning."""
    for name, size in sizes.items():
        if size > LARGEST:
            raise DataError(f"trajectory column {name!r} holds values up to {size:g}; give it in a larger unit.")


def require_pairs(people: int) -> None:
    """Refuse fewer than two people."""
    if people < 2:
        raise DataError(f"the effort audit compares pairs of people; only {count(people, 'person', 'people')} left.")


def _trajectories(table: Table, rows: PersonRows, spec: EffortSpec) -> Trajectories:
    if spec.history is not None:
        return read_history(spec.history, rows.ids, table.roles.id, spec.folder)
    values = np.column_stack([rows.numbers[name] for name in spec.trajectory])
    return Trajectories(spec.trajectory, spec.times, values)


def _by_group(table: Table, rows: PersonRows, spec: EffortSpec) -> FloatArray:
    """Return each person's inertia from rates by group; 1 for everybody where none are given."""
    if spec.inertia is None:
        return np.ones(len(rows.groups.n))
    by, rates = group_rates(table, spec)
    codes, labels = rows.groups.joint([by])
    return np.array([rates.get(label, np.nan) for label in labels])[codes]


def _refuse_infinite(found: Trajectories) -> None:
    infinite = np.isinf(found.values).any(axis=0)
    if infinite.any():
        raise DataError(f"trajectory column {found.names[int(np.argmax(infinite))]!r} holds infinite values.")


def _kept(rows: PersonRows, keep: BoolArray) -> PersonRows:
    if keep.all():
        return rows
    return PersonRows(
        {name: values[keep] for name, values in rows.numbers.items()},
        {name: values[keep] for name, values in rows.scores.items()},
        None if rows.weight is None else rows.weight[keep],
        rows.groups.where(keep),
        None if rows.ids is None else tuple(i for i, kept in zip(rows.ids, keep, strict=True) if kept),
    )
