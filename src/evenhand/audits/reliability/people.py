"""From a table to people: features as numbers and codes, groups and outcome, in one canonical order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of, showable
from evenhand.table.roles import Scalar
from evenhand.table.rows import Coded
from evenhand.table.table import Table

MOST_COPIES = 0.01  # share of rows that are copies, above which a note warns
MOST_LABELS = 200  # different texts of a feature; more would be names, not kinds


@dataclass(frozen=True, eq=False)
class Feature:
    """One column as models see it.

    Parameters
    ----------
    name : the column.
    labels : what the codes 0, 1 ... mean, for text; None for numbers and truth values.
    truth : whether it holds truth values, as 0 and 1.
    distinct : the numbers that occur, rising.
    integer : whether the column is of an integer type.
    """

    name: str
    labels: tuple[str, ...] | None
    truth: bool
    distinct: FloatArray
    integer: bool = False

    @property
    def categorical(self) -> bool:
        """Whether it holds categories: text, truth values, or only 0 and 1."""
        return self.labels is not None or self.truth or bool(np.isin(self.distinct, (0.0, 1.0)).all())

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers only."""
        return bool(np.all(self.distinct == np.rint(self.distinct)))

    def number_of(self, value: Scalar) -> float:
        """Return the number that stands for a value as the user writes it."""
        word = value if isinstance(value, str) else label_of(value)
        if self.labels is not None:
            if word in self.labels:
                return float(self.labels.index(word))
        else:
            try:
                return {"true": 1.0, "false": 0.0}[word] if word in ("true", "false") else float(value)
            except ValueError:
                pass
        known = ", ".join(self.shown(number) for number in self.distinct[:8])
        raise ConfigError(
            f"`noise` names the value {value!r} of {self.name!r}, which does not hold it; it has {known}."
        )

    def shown(self, number: float) -> str:
        """Return a number as the data has it."""
        return repr(showable(self.labels[int(number)])) if self.labels is not None else f"{number:g}"

    def as_column(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers as a column of the kind that the data has; missing text is None."""
        if self.labels is not None:
            known = np.array([*self.labels, None], dtype=object)
            return known[np.where(np.isnan(numbers), len(self.labels), numbers).astype(np.int64)]
        if self.truth and not np.isnan(numbers).any():
            return numbers.astype(np.bool_)
        return numbers

    def as_given(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers as a column of a frame for a model: integers where the data has them and all are whole."""
        column = self.as_column(numbers)
        if self.integer and np.all(np.abs(numbers) < 2.0**53) and np.all(numbers == np.rint(numbers)):
            return column.astype(np.int64)
        return column


@dataclass(frozen=True, eq=False)
class People:
    """The people of a reliability audit.

    Parameters
    ----------
    features : the columns of `matrix`.
    matrix : (people, features) numbers, and codes of text; nan where missing.
    groups : one cell a person.
    outcome : whether the outcome is positive; None where the table has none.
    dropped : people left out for a missing feature.
    copies : people who equal another one in all of this, where no id tells people apart; 0 where one does.
    """

    features: tuple[Feature, ...]
    matrix: FloatArray
    groups: Cells
    outcome: BoolArray | None
    dropped: int
    copies: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self.features)

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where features are in the matrix."""
        return [self.names.index(name) for name in names]

    def digest(self) -> str:
        """Return the SHA-256 of what every number is computed from; the same on every engine and in any order."""
        head = repr((self.names, [feature.labels for feature in self.features], self.matrix.shape))
        found = hashlib.sha256(head.encode())
        found.update(np.ascontiguousarray(self.matrix + 0.0, dtype="<f8").tobytes())
        for name in sorted(self.groups.codes):
            found.update(np.ascontiguousarray(self.groups.codes[name], dtype="<i8").tobytes())
        if self.outcome is not None:
            found.update(self.outcome.tobytes())
        return found.hexdigest()


def gather(table: Table, spec: ReliabilitySpec) -> People:
    """Read the people of a table; refuse or drop those with a missing feature, or keep them."""
    _require_roles(table, spec)
    outcome = {} if table.roles.outcome is None else {"outcome": table.roles.outcome}
    rows = table.coded_rows({**{f"feature {name}": name for name in spec.features}, **outcome})
    features, columns = [], []
    for name in spec.features:
        feature, values = _feature(name, rows.columns[f"feature {name}"])
        features.append(feature)
        columns.append(values)
    matrix = np.column_stack(columns)
    _refuse_infinite(features, matrix)
    positive = _positive(rows.columns["outcome"], table.roles.positive) if outcome else None
    whole = ~np.isnan(matrix).any(axis=1)
    policy = spec.missing or table.roles.missing
    if policy == "error" and not whole.all():
        _refuse_gaps(features, matrix)
    keep = whole if policy == "drop" else np.ones(len(matrix), dtype=np.bool_)
    if not keep.any():
        raise DataError("no people are left after leaving out those with a missing feature.")
    # Engines return rows in any order; people who are equal in all of this are exchangeable.
    by = [*matrix[keep].T, *([] if positive is None else [positive[keep]]), *rows.groups.where(keep).codes.values()]
    sorting = np.lexsort(by)
    order = np.flatnonzero(keep)[sorting]
    return People(
        tuple(features),
        np.ascontiguousarray(matrix[order]),
        rows.groups.where(order),
        None if positive is None else positive[order],
        int((~keep).sum()),
        0 if table.roles.id is not None else _copies([column[sorting] for column in by]),
    )


def _copies(columns: Sequence[npt.NDArray[Any]]) -> int:
    """Return how many of sorted rows equal the row before."""
    same = np.ones(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        same &= (column[1:] == column[:-1]) | ((column[1:] != column[1:]) & (column[:-1] != column[:-1]))  # nan
    return int(same.sum())


def copy_notes(people: People) -> Iterator[str]:
    """Warn where rows are repeated: people who were entered twice make intervals too narrow."""
    if people.copies > MOST_COPIES * len(people.matrix):
        yield (
            f"{count(people.copies, 'row')} of {len(people.matrix):,} "
            f"{'is an exact copy' if people.copies == 1 else 'are exact copies'} of another one in all columns used. "
            "Different people may well be alike in a few columns. But where people were entered more than once, "
            "intervals are too narrow and tests too sure: leave the copies out, or name the column that tells people "
            "apart as `id`."
        )


def _require_roles(table: Table, spec: ReliabilitySpec) -> None:
    if not table.groupings:
        raise ConfigError("the table names no groups; give groups=['column', ...].")
    for column, what in ((table.roles.outcome, "the outcome"), (table.roles.id, "the id")):
        if column is not None and column in spec.features:
            raise ConfigError(f"`features` names {column!r}, which is {what}; leave it out.")


def _feature(name: str, coded: Coded) -> tuple[Feature, FloatArray]:
    if not coded.values:
        raise DataError(f"feature {name!r} holds no values; leave it out.")
    if isinstance(coded.values[0], str):
        if len(coded.values) > MOST_LABELS:
            raise DataError(
                f"feature {name!r} holds {len(coded.values):,} different texts, more than {MOST_LABELS}; put them into "
                "fewer kinds, or leave it out."
            )
        numbers = np.arange(len(coded.values), dtype=np.float64)
        feature = Feature(name, tuple(str(value) for value in coded.values), False, numbers)
    else:
        numbers = np.array([float(value) for value in coded.values])
        truth = isinstance(coded.values[0], bool | np.bool_)
        integer = not truth and isinstance(coded.values[0], int | np.integer)
        feature = Feature(name, None, truth, numbers, integer)
    return feature, np.append(numbers, np.nan)[coded.codes]  # -1, which is missing, is the last


def _positive(coded: Coded, yes: Scalar | None) -> BoolArray:
    """Return whether each row's outcome is positive, by the same rules as the table."""
    positive = np.array([is_positive(value, yes) for value in coded.values] + [False], dtype=np.bool_)
    return np.asarray(positive[coded.codes])


def is_positive(value: Any, yes: Scalar | None) -> bool:
    """Tell whether a value is the positive one: the one named, as text or as a number, or else a word for yes.

    Examples
    --------
    >>> is_positive(1.0, 1), is_positive(True, 1), is_positive("yes", None), is_positive("again", 1)
    (True, True, True, False)
    """
    if yes is not None:
        return label_of(value) == label_of(yes) or (not isinstance(value, str) and _same_number(value, yes))
    return _word(value) in TRUE_WORDS


def is_negative(value: Any, yes: Scalar | None) -> bool:
    """Tell whether a value is not the positive one; where none is named it must be a word for no, or -1.

    Examples
    --------
    >>> is_negative(0.0, 1), is_negative("no", None), is_negative("never", None)
    (True, True, False)
    """
    return not is_positive(value, yes) if yes is not None else _word(value) in (*FALSE_WORDS, "-1")


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else label_of(value)


def _same_number(value: Any, yes: Scalar) -> bool:
    try:
        return float(value) == float(yes)
    except (TypeError, ValueError):
        return False


def _refuse_infinite(features: Sequence[Feature], matrix: FloatArray) -> None:
    infinite = np.isinf(matrix).any(axis=0)
    if infinite.any():
        raise DataError(f"feature {features[int(np.argmax(infinite))].name!r} holds infinite values; replace them.")


def _refuse_gaps(features: Sequence[Feature], matrix: FloatArray) -> None:
    gaps = np.isnan(matrix).sum(axis=0)
    raise DataError(
        [
            f"feature {feature.name!r} is missing in {count(int(n), 'row')} of {len(matrix):,}; fill them, leave these "
            "people out with missing='drop', or give them to the model as they are with missing='keep'."
            for feature, n in zip(features, gaps, strict=True)
            if n
        ]
    )


def deal_folds(people: People, folds: int, seed: int) -> IntArray:
    """Return the fold of each person: shuffled, sorted by group and outcome, and dealt out like cards.

    So the folds hold people of every group and outcome in equal numbers, but for one.
    """
    shuffled = np.random.default_rng(seed).permutation(len(people.matrix))
    by = [codes[shuffled] for codes in people.groups.codes.values()]
    order = shuffled[np.lexsort([*by, people.outcome[shuffled]] if people.outcome is not None else by)]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % folds
    return fold
