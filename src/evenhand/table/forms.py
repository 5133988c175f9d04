"""Infer the types of columns in text and JSON files from the forms of their values.

DuckDB converts later values to the type of the first values: it rounds 0.6 to 1, and reads 01 as 1. So every column is
read as text, and the type of each needed column is inferred from its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from evenhand.table.files import FileOptions

LATER_FORM = "a later row has another form than the first rows"
SAMPLED_ROWS = 20_480
_RAISE = f"error('{LATER_FORM}')"
_INTEGER, _REAL, _TEXT, _BOOLEAN, _NESTED = 1, 2, 4, 8, 16
_COLUMNS_AT_ONCE = 1_000
FRACTION_AS_TEXT = (
    "case when isnan({x}) then null when {x} = floor({x}) and abs({x}) < 1e15 "
    "then cast(cast({x} as bigint) as varchar) else cast({x} as varchar) end as {x}"
)
"""SQL for fractions as text, used for columns with both fractions and text; `{{x}}` is the column."""


@dataclass(frozen=True)
class Forms:
    """SQL that classifies and converts the values of a file, with `{x}` for the column.

    Parameters
    ----------
    form : the form of a value, one of the numbers above; 0 if it is missing.
    text : the value as text.
    casts : the value in the type for a combination of forms; columns with other combinations are text.
    """

    form: str
    text: str
    casts: Mapping[int, str]

    def cast(self, forms: int, column: str, *, known: bool) -> str:
        """Return the SQL of a column with these forms; unless all forms are `known`, it raises at any other form."""
        cast = self.casts.get(forms, self.text)
        if forms in self.casts and not known:
            cast = f"case when ({self.form}) & {~forms} <> 0 then {_RAISE} else {cast} end"
        return f"{_of(cast, column)} as {identifier(column)}"


def literal(value: str | Sequence[str]) -> str:
    """Return a setting or a path as an SQL literal."""
    if not isinstance(value, str):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _of(sql: str, column: str) -> str:
    return sql.replace("{x}", identifier(column))


def with_types(
    connection: duckdb.DuckDBPyConnection, source: str, columns: Sequence[str], forms: Forms, options: FileOptions
) -> duckdb.DuckDBPyRelation:
    """Return the columns with the types of their first rows, or of all rows; a row that does not fit raises.

    So the row order never determines a type, and values are never rounded.
    """
    casts: list[str] = []
    for first in range(0, len(columns), _COLUMNS_AT_ONCE):
        part = columns[first : first + _COLUMNS_AT_ONCE]
        found, unknown, known = dict[str, int](), part, set(part)
        if not options.types_from_all_rows:
            rows, found = _forms_of(connection, f"{source} limit {SAMPLED_ROWS}", part, forms)
            unknown = [column for column in part if not found[column]] if rows == SAMPLED_ROWS else []
            known = set(unknown) if rows == SAMPLED_ROWS else known
        if unknown:
            found |= _forms_of(connection, source, unknown, forms)[1]
        casts += [forms.cast(found[column], column, known=column in known) for column in part]
    return connection.sql(f"from {source}").project(", ".join(casts))


def _forms_of(
    connection: duckdb.DuckDBPyConnection, source: str, columns: Sequence[str], forms: Forms
) -> tuple[int, dict[str, int]]:
    """Return the number of rows, and the combined forms of each column's values."""
    tests = ", ".join(f"bit_or({_of(forms.form, column)})" for column in columns)
    picked = connection.sql(f"from {source}").project(", ".join(map(identifier, columns)))
    row = picked.aggregate(f"count(*), {tests}").fetchall()[0]
    return int(row[0]), {column: int(form or 0) for column, form in zip(columns, row[1:], strict=True)}


def csv_forms(options: FileOptions) -> Forms:
    """Return the forms of CSV values; 01, +1, 1_000 and 0x10 are codes and remain text."""
    whole, power, point = "(0|[1-9][0-9]*)", "[eE][+-]?[0-9]+", f"[{options.decimal}]"
    real = f"-?(({whole}{point}[0-9]*|{point}[0-9]+)({power})?|{whole}{power}|(?i:nan|inf|infinity))"
    trimmed = "trim({x}, ' \t')"
    form = (
        "case when {x} is null then 0 "
        f"when cast(try_cast({{x}} as bigint) as varchar) = {{x}} then {_INTEGER} "
        f"when regexp_full_match({trimmed}, '{real}') then {_REAL} "
        f"when regexp_full_match({trimmed}, '-?{whole}') and try_cast({trimmed} as bigint) is not null "
        f"then {_INTEGER} when {trimmed} = '' then 0 else {_TEXT} end"
    )
    number = f"cast(nullif(replace({trimmed}, '{options.decimal}', '.'), '') as {{type}})"
    double = number.replace("{type}", "double")
    return Forms(form, "{x}", {_INTEGER: number.replace("{type}", "bigint"), _REAL: double, _INTEGER | _REAL: double})


def json_forms(options: FileOptions) -> Forms:
    """Return the forms of JSON values by their JSON types; columns of several types become text."""
    text = "({x} ->> '$')"
    absent = f"json_type({{x}}) = 'VARCHAR' and {text} in ({literal(options.missing_values)[1:-1]})"
    form = (
        f"case when {{x}} is null or {absent} then 0 else case json_type({{x}}) when 'NULL' then 0 "
        f"when 'UBIGINT' then case when try_cast({{x}} as bigint) is null then {_TEXT} else {_INTEGER} end "
        f"when 'BIGINT' then {_INTEGER} when 'DOUBLE' then {_REAL} when 'BOOLEAN' then {_BOOLEAN} "
        f"when 'VARCHAR' then {_TEXT} else {_NESTED} end end"
    )
    number = "cast({x} as double)"
    is_whole = f"json_type({{x}}) = 'DOUBLE' and {number} = floor({number}) and abs({number}) < 1e15"
    whole = f"cast(cast({number} as bigint) as varchar)"
    words = f"case when {absent} then null when {is_whole} then {whole} else {text} end"
    known = f"case when {absent} then null else cast({{x}} as {{type}}) end"
    types = {_INTEGER: "bigint", _REAL: "double", _INTEGER | _REAL: "double", _BOOLEAN: "boolean"}
    casts = {forms: known.replace("{type}", kind) for forms, kind in types.items()}
    nested = dict.fromkeys(range(_NESTED, 2 * _NESTED), "list_value({x})")  # refused if it has a role
    return Forms(form, words, casts | nested)
