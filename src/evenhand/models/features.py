"""Rows to fit models to: numbers and codes of text in one matrix, checked, in an order that can be repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.keys import ABSENT, NUMBERS, YES, Kind, binary_state, is_absent, kind_of, plain_value
from evenhand.table.roles import Roles
from evenhand.table.sources import FileOptions, MisreadTypeError, Source, engine_errors, fetch_arrays, open_source

MOST_LABELS = 200  # different texts of a feature; more would be names, not kinds


@dataclass(frozen=True)
class Training:
    """The rows of the data as models see them, in the order of the data.

    Parameters
    ----------
    source : the opened data.
    features : names of the columns of `matrix`.
    labels : for each feature of text or truth values, what its codes mean.
    matrix : numbers, and codes of text; nan where missing.
    outcome : whether the outcome is positive.
    usable : rows in which nothing is missing and the survey weight is not 0; only they are used.
    by_id : positions of all rows in the order of their ids, or of the data where there is no id.
    ids : the ids as the data has them, or None.
    """

    source: Source
    features: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]
    matrix: FloatArray
    outcome: BoolArray
    usable: BoolArray
    by_id: IntArray
    ids: Any

    @property
    def text(self) -> list[int]:
        """Positions of the features of text."""
        return [position for position, name in enumerate(self.features) if name in self.labels]

    @property
    def numbers(self) -> list[int]:
        """Positions of the features that are numbers."""
        return [position for position, name in enumerate(self.features) if name not in self.labels]

    def digest(self) -> str:
        """Return one SHA-256 over the features and the outcome of the rows used, the same for any order of rows."""
        rows = np.column_stack([self.matrix, self.outcome])[self.usable] + 0.0  # -0.0 becomes 0.0
        rows = rows[np.lexsort(rows.T)]
        head = repr((self.features, sorted(self.labels.items()), rows.shape))
        return hashlib.sha256(head.encode() + rows.astype("<f8").tobytes()).hexdigest()


def read_training(data: Any, options: FileOptions, roles: Roles, features: Sequence[str]) -> Training:
    """Read features and outcome into memory; a missing value is an error, or makes its row unusable when asked."""
    _require_roles(roles, features)
    try:
        return _read(open_source(data, options), roles, tuple(features))
    except MisreadTypeError:  # a later row of a file has another type than the first ones
        every = options.model_copy(update={"types_from_all_rows": True})
        return _read(open_source(data, every), roles, tuple(features))


def _require_roles(roles: Roles, features: Sequence[str]) -> None:
    if roles.outcome is None:
        raise ConfigError("models need an outcome to predict; name its column as `outcome`.")
    for column, what in ((roles.outcome, "the outcome"), (roles.id, "the id")):
        if column in features:
            raise ConfigError(f"`features` names {column!r}, which is {what}; leave it out.")


def _read(source: Source, roles: Roles, features: tuple[str, ...]) -> Training:
    with engine_errors():
        kinds = {name: kind_of(dtype) for name, dtype in source.frame.collect_schema().items()}
    _require_columns(features, kinds)
    if source.connection is not None:
        # Without an id the folds go by the order of the rows, and the scores are put back by it in any case.
        source.connection.execute("set preserve_insertion_order = true")
    with engine_errors():
        frame: Any = source.frame
        arrays = fetch_arrays(frame.select(**_expressions(roles, features, kinds)))
    labels, columns = {}, []
    for position, name in enumerate(features):
        values = np.asarray(arrays[f"feature{position}"])
        if kinds[name] not in NUMBERS:
            labels[name], values = _coded(name, values)
        columns.append(np.asarray(values, dtype=np.float64))
    matrix, state = np.column_stack(columns), np.asarray(arrays["outcome"], dtype=np.int64)
    somebody = np.asarray(arrays["weight"], dtype=np.float64) > 0 if "weight" in arrays else np.ones(len(state), bool)
    _refuse(features, matrix, somebody, roles)
    usable = ~np.isnan(matrix).any(axis=1) & (state != ABSENT) & somebody
    by_id = (
        np.argsort(np.asarray(arrays["name"]).astype(str), kind="stable") if "id" in arrays else np.arange(len(state))
    )
    return Training(source, features, labels, matrix, state == YES, usable, by_id, arrays.get("id"))


def _require_columns(features: Sequence[str], kinds: Mapping[str, Kind]) -> None:
    for name in features:
        if name not in kinds:
            raise ConfigError(f"feature {name!r} is not in the data; {did_you_mean(name, kinds)}")
        if kinds[name] not in (*NUMBERS, "boolean", "text"):
            raise ConfigError(f"feature {name!r} must hold numbers, true or false, or text; turn it into one of them.")


def _expressions(roles: Roles, features: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, nw.Expr]:
    assert roles.outcome is not None  # noqa: S101
    asked = {"outcome": binary_state(roles.outcome, kinds[roles.outcome], roles.positive)}
    for position, name in enumerate(features):
        if kinds[name] == "text":
            blank = nw.when(is_absent(name, "text")).then(nw.lit(""))
            asked[f"feature{position}"] = blank.otherwise(plain_value(name, "text"))
        elif kinds[name] == "boolean":
            word = nw.when(nw.col(name).is_null()).then(nw.lit(""))
            asked[f"feature{position}"] = word.when(nw.col(name)).then(nw.lit("true")).otherwise(nw.lit("false"))
        else:
            asked[f"feature{position}"] = nw.col(name).cast(nw.Float64).fill_null(float("nan"))
    if roles.id is not None:
        asked |= {"id": nw.col(roles.id), "name": plain_value(roles.id, kinds[roles.id]).cast(nw.String)}
    if roles.weight is not None:
        asked["weight"] = nw.col(roles.weight).cast(nw.Float64)
    return asked


def _coded(name: str, values: Any) -> tuple[tuple[str, ...], FloatArray]:
    """Return the labels of a text feature, and for each row the position of its label; nan where it is blank."""
    found, codes = np.unique(values.astype(str), return_inverse=True)
    if {label.lower() for label in found} <= {"", "true", "false"}:  # a truth value, however the file writes it
        found, codes = np.unique(np.char.lower(found)[codes], return_inverse=True)
    labels = tuple(str(label) for label in found)
    blank = int(labels[:1] == ("",))
    if len(labels) - blank > MOST_LABELS:
        raise DataError(
            f"feature {name!r} holds {len(labels) - blank:,} different texts, more than {MOST_LABELS}; "
            "put them into fewer kinds, or leave it out."
        )
    numbers = codes.reshape(-1).astype(np.float64) - blank
    return labels[blank:], np.where(numbers < 0, np.nan, numbers)


def _refuse(features: Sequence[str], matrix: FloatArray, somebody: BoolArray, roles: Roles) -> None:
    problems = list(_infinite(features, matrix))
    if roles.missing == "error":
        gaps = (np.isnan(matrix) & somebody[:, None]).sum(axis=0)
        problems += [
            f"feature {name!r} is missing in {count(int(n), 'row')} of {len(matrix):,}; fill them, or drop them with "
            "missing='drop'."
            for name, n in zip(features, gaps, strict=True)
            if n
        ]
    if problems:
        raise DataError(problems)


def _infinite(features: Sequence[str], matrix: FloatArray) -> Iterator[str]:
    for position, name in enumerate(features):
        if np.isinf(matrix[:, position]).any():
            yield f"feature {name!r} holds infinite values; replace them."
