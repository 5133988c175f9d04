"""The first step of a table: its data opened, and the columns that its roles add, with nothing checked yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import narwhals as nw

from evenhand.table import keys
from evenhand.table.files import FileOptions
from evenhand.table.frames import TableData
from evenhand.table.keys import Kind
from evenhand.table.labels import families, with_value_labels
from evenhand.table.role_keys import RoleKeys
from evenhand.table.roles import Roles
from evenhand.table.sources import Source, engine_errors, open_source, with_percentiles


@dataclass(frozen=True, kw_only=True)
class OpenedTable:
    """Opened data with the roles of its columns.

    Parameters
    ----------
    data, options : what was opened, and how.
    roles : the roles, with the value labels of the file, and with percentiles as thresholds.
    source : the opened data, with the columns that the roles add.
    kinds : the kind of every column.
    derived : group columns that are worked out from those of the data.
    """

    data: TableData | None
    options: FileOptions
    roles: Roles
    source: Source
    kinds: Mapping[str, Kind]
    derived: Mapping[str, nw.Expr] = field(default_factory=dict)

    @property
    def keys(self) -> RoleKeys:
        """The keys of the columns that have a role."""
        return RoleKeys(self.roles, self.kinds, self.source.portable_sql)

    @property
    def can_retype(self) -> bool:
        """Whether the types of a file's columns were inferred from its first rows only."""
        return bool(self.source.paths) and not self.options.types_from_all_rows

    def retyped(self) -> OpenedTable:
        """Open the data again, with types inferred from all rows."""
        options = self.options.model_copy(update={"types_from_all_rows": True})
        return open_table(self.data, options, self.roles, self.derived)


def open_table(
    data: TableData | None, options: FileOptions, roles: Roles, derived: Mapping[str, nw.Expr] | None = None
) -> OpenedTable:
    """Open data and add the columns that its roles ask for.

    Examples
    --------
    >>> roles = Roles(groups=(("race",),), one_hot={"race": ("is_a", "is_b")})
    >>> opened = open_table({"is_a": [1, 0], "is_b": [0, 1]}, FileOptions(), roles)
    >>> opened.kinds
    {'is_a': 'whole', 'is_b': 'whole', 'race': 'text'}
    """
    source = open_source(data, options)
    columns = dict(derived or {})
    value_labels = {column: labels for column, labels in source.labels.items() if column not in columns}
    roles = with_value_labels(roles, value_labels)
    kinds = _kinds(source)
    roles, source = with_percentiles(roles, source, kinds)
    joined = families(roles, kinds, portable=source.portable_sql)
    if joined:
        source = replace(source, frame=source.frame.with_columns(**joined))
        kinds |= dict.fromkeys(joined, "text")
    if columns:
        source = replace(source, frame=source.frame.with_columns(**columns))
        found = _kinds(source)
        kinds |= {name: found[name] for name in columns}
    return OpenedTable(data=data, options=options, roles=roles, source=source, kinds=kinds, derived=columns)


def _kinds(source: Source) -> dict[str, Kind]:
    with engine_errors():
        return keys.kinds_of(source.frame.collect_schema())
