"""From a table to people: trajectories, effort and aggregate, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.effort.inertia import TABLES, named_rates, scaled
from evenhand.audits.effort.spec import EffortSpec
from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.stats.effort import aggregate_scores, effort_scores
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING
from evenhand.table.rows import PersonRows
from evenhand.table.table import Table


@dataclass(frozen=True)
class People:
    """The people an effort audit compares.

    Parameters
    ----------
    rows : their numbers and scores.
    values : trajectories, shape (people, time steps).
    inertia : disadvantage outside their control, above 0.
    effort, aggregate : what the paper makes of them.
    dropped : people left out for a missing value.
    """

    rows: PersonRows
    values: FloatArray
    inertia: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    dropped: int


def gather(table: Table, spec: EffortSpec) -> People:
    """Read the people of a table, refuse or drop those with gaps, and work out effort and aggregate."""
    column = spec.inertia if isinstance(spec.inertia, str) and spec.inertia not in TABLES else None
    wanted = [*spec.trajectory, *([column] if column is not None else [])]
    rows = table.person_rows(wanted)
    values = np.column_stack([rows.numbers[name] for name in spec.trajectory])
    inertia = rows.numbers[column] if column is not None else _by_group(table, rows, spec)
    whole = np.isfinite(values).all(axis=1) & np.isfinite(inertia)
    _refuse_gaps(table, values, whole, spec)
    rows, values, inertia = _kept(rows, whole), values[whole], inertia[whole]
    if len(values) < 2:
        raise DataError(
            f"the effort audit compares pairs of people; only {count(len(values), 'person', 'people')} left."
        )
    if not (inertia > 0).all():
        raise DataError(f"inertia column {column!r} must be above 0; it holds {inertia[~(inertia > 0)][0]:g}.")
    effort = effort_scores(values, inertia, spec.desirable, spec.unit, spec.times, spec.measure)
    return People(rows, values, inertia, effort, aggregate_scores(values, spec.scale), int((~whole).sum()))


def _by_group(table: Table, rows: PersonRows, spec: EffortSpec) -> FloatArray:
    """Return each person's inertia from rates by group; 1 for everybody where none are given."""
    if spec.inertia is None:
        return np.ones(len(rows.groups.n))
    rates = named_rates(spec.inertia) if isinstance(spec.inertia, str) else scaled(spec.inertia)
    by = spec.inertia_by or "race"
    if by not in table.roles.group_columns:
        raise ConfigError(
            f"rates of inertia by group need their group column among the table's groups; `inertia_by` is {by!r}; "
            f"{did_you_mean(by, table.roles.group_columns)}"
        )
    codes, labels = rows.groups.joint([column_key(by)])
    present = [label for code, label in enumerate(labels) if label != MISSING and (codes == code).any()]
    unknown = [label for label in present if label not in rates]
    if unknown:
        raise DataError(
            f"`inertia` has no rate for {', '.join(repr(label) for label in unknown[:5])} of column {by!r}; "
            f"give one for every group (known: {', '.join(repr(group) for group in rates)})."
        )
    return np.array([rates.get(label, np.nan) for label in labels])[codes]


def _refuse_gaps(table: Table, values: FloatArray, whole: BoolArray, spec: EffortSpec) -> None:
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        raise DataError(f"trajectory column {spec.trajectory[int(np.argmax(infinite))]!r} holds infinite values.")
    if whole.all() or table.roles.missing == "drop":
        return
    gaps = [
        f"{name!r} in {int(n):,}" for name, n in zip(spec.trajectory, np.isnan(values).sum(axis=0), strict=True) if n
    ]
    where = ", ".join(gaps) or "the inertia"
    raise DataError(
        f"trajectories are missing in {count(int((~whole).sum()), 'row')} of {len(whole):,} ({where}); fill "
        "them, or drop "
        "these people with missing='drop'."
    )


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
