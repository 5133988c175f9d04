"""Every table of an audit as rows of plain values, for tabular formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.after.profiles.result import TABLES
from evenhand.after.records import EXTRAS
from evenhand.core.findings import Finding
from evenhand.core.records import Record
from evenhand.core.result import plain_cell
from evenhand.messages.formats import rounded

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def all_tables(audit: Audit) -> Iterator[tuple[str, Sequence[str], list[list[Any]]]]:
    """Yield the name, columns and rows of every table of the audit, findings first."""
    columns = list(Finding.columns())
    yield "findings", columns, [_row(finding, columns) for finding in audit.findings]
    for name, kind, records in _records(audit):
        columns = list(kind.columns())
        yield name, columns, [_row(record, columns) for record in records]


def _records(audit: Audit) -> Iterator[tuple[str, type[Record], Sequence[Record]]]:
    """Yield the name, record type and records of every table of results, extras and profiles."""
    for name, result in audit.results.items():
        for table, kind in result.record_types().items():
            records = result.tables[table]
            if records and (not kind.individual or result.shows_individuals):
                yield f"{name}-{table}", kind, records
    for extra in audit.extras:
        for table, records in extra.tables.items():
            yield f"{extra.name}-{table}", EXTRAS[extra.name][table], records
    for profile in audit.profiles:
        for table, records in profile.tables.items():
            yield f"{profile.name}-{table}", TABLES[table], records


def _row(record: Record, columns: Iterable[str]) -> list[Any]:
    return [_plain(getattr(record, column)) for column in columns]


def _plain(value: object) -> object:
    """Return a value as plain data, with the digits of `results.json`."""
    return rounded(plain_cell(value))
