"""The names of groups: labels of values, families of 0/1 columns, and remarks on odd labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw

from evenhand.errors import DataError, did_you_mean, problem
from evenhand.messages import Message
from evenhand.table.keys import (
    ABSENT,
    BLANKS,
    INVALID,
    YES,
    Key,
    Kind,
    as_number,
    binary_state,
    column_key,
    group_key,
    label_of,
    recoded,
    shown,
)
from evenhand.table.messages import say
from evenhand.table.roles import MISSING, TIMES, Roles

if TYPE_CHECKING:
    from evenhand.table.table import Table

MAX_NUMERIC_GROUPS = 20
NONE_OF_THESE, SEVERAL_OF_THESE = "none of these", "several of these"
_NEITHER = "neither 0/1 nor yes/no"
_NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?|inf)")
COMMA_NUMBER = re.compile(r"\s*[+-]?\d*,\d+\s*")
PERCENT = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*%\s*")
_YES_OR_NO = ("true", "false", "yes", "no")
MISSING_WORDS = ("na", "n/a", "#n/a", "nan", "null", "none", "unknown", "missing", "not available", *"-?.", "--")
_SHOWN = 5


def group_label(column: str, named: Mapping[str, str], value: object) -> str:
    """Return a group's name: its label, or its value, prefixed with the column if it is a bare number, yes or no.

    Examples
    --------
    >>> group_label("black", {}, 1.0), group_label("sex", {}, " F "), group_label("black", {"1": "Black"}, 1)
    ('black = 1', 'F', 'Black')
    >>> group_label("age", {}, float("-inf"))
    'age = -inf'
    """
    text = label_of(value).strip(BLANKS)
    if text in named:
        return named[text]
    return f"{column} = {text}" if _NUMBER.fullmatch(text) or text.lower() in _YES_OR_NO else text


def with_value_labels(roles: Roles, labels: Mapping[str, Mapping[Any, str]]) -> Roles:
    """Return roles with the value labels of a Stata or SPSS file added for groups without user labels."""
    value_labels = {
        column: {label_of(value): str(label) for value, label in labels[column].items()}
        for column in roles.group_columns
        if column in labels and column not in roles.labels and column not in roles.cuts
    }
    distinct = {column: named for column, named in value_labels.items() if len(set(named.values())) == len(named)}
    return roles.model_copy(update={"labels": {**roles.labels, **distinct}}) if distinct else roles


def known_label(grouping: str, label: str, labels: Sequence[str]) -> str:
    """Return the label of a group named by its label or its bare value; other text unchanged.

    Examples
    --------
    >>> known_label("black", "1", ["black = 0", "black = 1"])
    'black = 1'
    """
    full = plain_label(grouping, label)
    return full if label not in labels and full in labels else label


def plain_label(grouping: str, value: object) -> str:
    """Return the label of a group named by its bare values.

    Examples
    --------
    >>> plain_label("race × black", "A × 1"), plain_label("black", 1)
    ('A × black = 1', 'black = 1')
    """
    columns, parts = grouping.split(TIMES), label_of(value).split(TIMES)
    is_intersection = len(columns) == len(parts)
    named: Iterable[tuple[str, object]] = zip(columns, parts, strict=True) if is_intersection else [(grouping, value)]
    return TIMES.join(group_label(column, {}, part) for column, part in named)


def labelled_key(roles: Roles, column: str, kind: Kind, *, portable: bool) -> Key:
    """Return the key of a group column, with the labels of its groups."""
    named = dict(roles.labels.get(column, {}))
    for member in roles.one_hot.get(column, ()):
        named.setdefault(member, re.sub(rf"^{re.escape(column)}[\W_]+", "", member))
    return group_key(column, kind, roles.cuts.get(column), partial(group_label, column, named), portable=portable)


# One column of groups from several 0/1 columns --------------------------------------------------------------


def families(roles: Roles, kinds: Mapping[str, Kind], *, portable: bool) -> dict[str, nw.Expr]:
    """Return for each valid family of 0/1 columns an expression of the name of the column equal to 1."""
    for family in roles.one_hot:
        if family in kinds:
            raise DataError(
                "`one_hot` makes a column {family!r}, which the data has already; choose another name.", family=family
            )
    return {
        family: _member(members, kinds, portable=portable)
        for family, members in roles.one_hot.items()
        if all(kinds.get(member, "other") != "other" for member in members)
    }


def _member(members: Sequence[str], kinds: Mapping[str, Kind], *, portable: bool) -> nw.Expr:
    states = [binary_state(member, kinds[member], None, portable=portable) for member in members]
    number_of_ones = sum((as_number(state == YES) for state in states[1:]), as_number(states[0] == YES))
    value: Any = nw.when(_any([state == INVALID for state in states])).then(nw.lit(_NEITHER))
    value = value.when(_any([state == ABSENT for state in states])).then(nw.lit(MISSING))
    value = (
        value.when(number_of_ones == 0)
        .then(nw.lit(NONE_OF_THESE))
        .when(number_of_ones > 1)
        .then(nw.lit(SEVERAL_OF_THESE))
    )
    for member, state in zip(members[:-1], states[:-1], strict=True):
        value = value.when(state == YES).then(nw.lit(member))
    expression: nw.Expr = value.otherwise(nw.lit(members[-1]))
    return expression


def _any(tests: Sequence[nw.Expr]) -> nw.Expr:
    first, *rest = tests
    for test in rest:
        first = first | test
    return first


def name_problems(roles: Roles, kinds: Mapping[str, Kind]) -> Iterator[tuple[str | None, Message]]:
    """Yield problems of 0/1 families and labels that are visible from column names alone."""
    for family, members in roles.one_hot.items():
        start = problem("`one_hot` {family!r}", family=family)
        for member in members:
            if member not in kinds:
                yield (
                    family,
                    problem(
                        "{start} names {member!r}, which is not in the data; {hint}",
                        start=start,
                        member=member,
                        hint=did_you_mean(member, kinds),
                    ),
                )
            elif kinds[member] == "other":
                yield (
                    family,
                    problem(
                        "{start} names {member!r}, which holds no plain values; give columns of 0 and 1.",
                        start=start,
                        member=member,
                    ),
                )
        if family not in roles.group_columns:
            yield None, problem("{start} is not among the `groups`; name it there.", start=start)
    for column in roles.labels:
        if column not in kinds and column not in roles.one_hot:
            yield (
                None,
                problem(
                    "`labels` names {column!r}, which is not in the data; {hint}",
                    column=column,
                    hint=did_you_mean(column, kinds),
                ),
            )


def label_problems(roles: Roles, column: str, values: Sequence[Any]) -> Iterator[Message]:
    """Yield problems of a group column's labels, and of the values of a 0/1 family."""
    named, texts = roles.labels.get(column, {}), [label_of(value).strip(BLANKS) for value in values]
    if named and not set(named) & set(texts):
        yield (
            problem(
                "`labels` of {column!r} name {named}, which do not occur in it; it contains {held}.",
                column=column,
                named=shown(list(named), _SHOWN),
                held=shown(texts, _SHOWN),
            )
        )
    for text in texts:
        full = group_label(column, named, text)
        if full != text and text not in named and full in texts:
            yield problem(
                "group column {column!r} contains {text!r} and {full!r}, which would both be shown as {full!r}; name "
                "{text!r} in `labels`.",
                column=column,
                text=text,
                full=full,
            )
    if column in roles.one_hot and _NEITHER in texts:
        listed = ", ".join(map(repr, roles.one_hot[column]))
        yield problem(
            "the columns of `one_hot` {column!r} ({listed}) must hold 0/1 or yes/no; some row holds something else.",
            column=column,
            listed=listed,
        )


# Hidden groups ----------------------------------------------------------------------------------------------


def hide_groups(
    table: Table,
    hidden: Mapping[str, Collection[str]],
    withheld: Collection[str] = (),
    more: Mapping[str, nw.Expr] | None = None,
) -> Table:
    """Return a table with some groups merged into "(missing)", and without withheld groupings.

    Parameters
    ----------
    table
        The table.
    hidden
        The groups to hide, by grouping.
    withheld
        Groupings to leave out.
    more
        Columns to add, computed from the groups before hiding.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table({"race": ["A", "B", "C"], "hired": [1, 0, 1]}, groups="race", predictions="hired")
    >>> hide_groups(table, {"race": ["C"]}).cells.labels["race"]
    ('A', 'B', '(missing)')
    """
    columns: dict[str, nw.Expr] = dict(more or {})
    groups: list[tuple[str, ...]] = []
    for name, parts in table.groupings.items():
        if hidden.get(name) or (len(parts) > 1 and any(hidden.get(part) for part in parts)):
            columns[name] = _named_groups(table, parts, hidden.get(name, ()))
        if name not in withheld:
            groups.append((name,) if name in columns else parts)
    named = {
        role: {column: value for column, value in getattr(table.roles, role).items() if column not in columns}
        for role in ("cuts", "labels")
    }
    return table.with_groups(columns, table.roles.model_copy(update={"groups": tuple(groups), **named}))


def _named_groups(table: Table, columns: Sequence[str], hidden: Collection[str]) -> nw.Expr:
    """Return an expression for the label of each row's group in a grouping; "(missing)" for hidden groups."""
    codes, labels = table.cells.joint(columns)
    of_row: nw.Expr = nw.lit(0)
    of_cell = codes * 0
    for column in columns:
        key = column_key(column)
        size = len(table.cells.labels[key]) + 1
        of_row, of_cell = of_row * size + table.group_codes(column), of_cell * size + table.cells.codes[key]
    labels_by_code = {code: labels[group] for code, group in zip(of_cell.tolist(), codes.tolist(), strict=True)}
    shown_labels = {code: MISSING if label in hidden else label for code, label in labels_by_code.items()}
    return recoded(of_row, shown_labels, MISSING, nw.String, portable=table.source.portable_sql)


# Odd labels -------------------------------------------------------------------------------------------------


def label_notes(column: str, kind: Kind, values: Sequence[Any], labels: Sequence[str]) -> Iterator[Message]:
    """Yield remarks on labels that a reader may confuse with each other or with missing values."""
    if kind != "text":
        return
    padded = [value for value in values if str(value).strip(BLANKS) != str(value)]
    if padded:
        yield say("trimmed", column=column, examples=shown(padded, 2))
    remarks = (*_remarks([name for name in labels if name != MISSING]), *numbers_as_text(values))
    yield from (say("of_column", column=column, remark=remark) for remark in remarks)


def numbers_as_text(values: Sequence[Any]) -> Iterator[Message]:
    """Yield a remark if a few words among many numbers make a column text, so that it has no cut points."""
    texts = [label_of(value).strip(BLANKS) for value in values]
    words = [text for text in texts if not _NUMBER.fullmatch(text)]
    numbers = len(texts) - len(words)
    if words and len(texts) > MAX_NUMERIC_GROUPS and numbers > 0.8 * len(texts):
        yield say("numbers_as_text", numbers=numbers, groups=len(texts), words=shown(words, _SHOWN))


def _remarks(labels: Sequence[str]) -> Iterator[Message]:
    composed = {label: unicodedata.normalize("NFC", label) for label in labels}
    spellings: dict[str, list[str]] = {}
    for label in labels:
        spellings.setdefault(" ".join(composed[label].split()).casefold(), []).append(label)
    for same in spellings.values():
        if len({composed[label] for label in same}) < len(same):
            yield say("look_alike", labels=tuple(map(ascii, same)), groups=len(same))
        elif len(same) > 1:
            yield say("spelt_alike", labels=tuple(map(repr, same)), groups=len(same))
    for label in labels:
        if label.casefold() in MISSING_WORDS:
            yield say("means_missing", label=label)
