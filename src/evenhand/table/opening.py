"""The first step of a table: open its data, add the columns defined by its roles, and make their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import narwhals as nw

from evenhand.table import keys
from evenhand.table.cells import ColumnSum, weight_sums
from evenhand.table.files import FileOptions
from evenhand.table.frames import TableData
from evenhand.table.keys import Key, Kind
from evenhand.table.labels import families, labelled_key, with_value_labels
from evenhand.table.roles import Prediction, Roles
from evenhand.table.sources import Source, open_source, with_thresholds
from evenhand.table.validation import state_key


@dataclass(frozen=True)
class RoleKeys:
    """The keys and states of the columns with a role.

    Parameters
    ----------
    roles : the roles, whose columns must be in `kinds`.
    kinds : the kind of every column.
    portable : whether the engine needs portable SQL.
    """

    roles: Roles
    kinds: Mapping[str, Kind]
    portable: bool

    def group(self, column: str) -> Key:
        """Return the key of one group column."""
        return labelled_key(self.roles, column, self.kinds[column], portable=self.portable)

    def groups(self) -> list[Key]:
        """Return the keys of all group columns."""
        return [self.group(column) for column in self.roles.group_columns]

    def states(self) -> list[Key]:
        """Return the keys of the outcome and of each model's decision."""
        states = []
        if (outcome := self.roles.outcome) is not None:
            discrete = None if self.roles.outcome_kind == "number" else keys.discrete(outcome, self.kinds[outcome])
            states.append(Key("outcome", self.outcome_state(), column=discrete))
        for name, prediction in self.roles.predictions.items():
            column = None if prediction.kind == "number" else prediction.column
            discrete = column and keys.discrete(column, self.kinds[column])
            states.append(Key(state_key(name), self.prediction_state(prediction), column=discrete))
        return states

    def outcome_state(self) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each outcome; NO if there is no outcome."""
        outcome = self.roles.outcome
        if outcome is None:
            return nw.lit(keys.NO)
        if self.roles.outcome_kind == "number":
            return keys.number_state(outcome, self.kinds[outcome], portable=self.portable)
        return keys.binary_state(outcome, self.kinds[outcome], self.roles.positive, portable=self.portable)

    def prediction_state(self, prediction: Prediction) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each row's decision."""
        return keys.prediction_state(prediction, self.kinds[prediction.column], portable=self.portable)

    def weights(self, exponent: int) -> list[ColumnSum]:
        """Return the sums of the survey weight and its square; empty without weights."""
        return [] if self.roles.weight is None else weight_sums(self.roles.weight, exponent)


@dataclass(frozen=True, kw_only=True)
class OpenedTable:
    """Opened data with the roles of its columns.

    Parameters
    ----------
    data, options : the data argument, and the file options.
    roles : the roles, with value labels of the file, and with percentiles and capacities converted to thresholds.
    source : the opened data, with the columns added by the roles.
    kinds : the kind of every column.
    derived : group columns computed from columns of the data.
    columns : the opened columns without a role.
    """

    data: TableData | None
    options: FileOptions
    roles: Roles
    source: Source
    kinds: Mapping[str, Kind]
    derived: Mapping[str, nw.Expr] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()

    @property
    def keys(self) -> RoleKeys:
        """The keys of the columns with a role."""
        return RoleKeys(self.roles, self.kinds, self.source.portable_sql)

    @property
    def can_retype(self) -> bool:
        """Whether the types of a file's columns were inferred from its first rows only."""
        return bool(self.source.paths) and not self.options.types_from_all_rows

    def reopened(self, columns: Iterable[str] = (), *, all_rows: bool = False) -> OpenedTable:
        """Reopen the data with additional columns, or with types inferred from all rows."""
        options = self.options.model_copy(update={"types_from_all_rows": True}) if all_rows else self.options
        return open_table(self.data, options, self.roles, self.derived, self.columns | set(columns))


def open_table(
    data: TableData | None,
    options: FileOptions,
    roles: Roles,
    derived: Mapping[str, nw.Expr] | None = None,
    more: Iterable[str] = (),
) -> OpenedTable:
    """Open the columns with a role and `more`, and add the columns defined by the roles.

    Examples
    --------
    >>> roles = Roles(groups=(("race",),), one_hot={"race": ("is_a", "is_b")})
    >>> opened = open_table({"is_a": [1, 0], "is_b": [0, 1]}, FileOptions(), roles)
    >>> opened.kinds
    {'is_a': 'whole', 'is_b': 'whole', 'race': 'text'}
    """
    opened = frozenset(more)
    source = open_source(data, options, roles.columns | opened)
    columns = dict(derived or {})
    value_labels = {column: labels for column, labels in source.labels.items() if column not in columns}
    roles = with_value_labels(roles, value_labels)
    kinds = source.kinds()
    roles, source = with_thresholds(roles, source, kinds)
    one_hot_columns = families(roles, kinds, portable=source.portable_sql)
    if one_hot_columns:
        source = replace(source, frame=source.frame.with_columns(**one_hot_columns))
        kinds |= dict.fromkeys(one_hot_columns, "text")
    if columns:
        source = replace(source, frame=source.frame.with_columns(**columns))
        new_kinds = source.kinds()
        kinds |= {name: new_kinds[name] for name in columns}
    return OpenedTable(
        data=data, options=options, roles=roles, source=source, kinds=kinds, derived=columns, columns=opened
    )
