"""Derived features, which are recomputed from their sources, and features that reveal the group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.reliability.gather import ModelFeature, ScoredPeople
from evenhand.audits.reliability.noise import as_names
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError, count, problem
from evenhand.messages import Message
from evenhand.stats.noise import FixedFunction, RowFunction, fixed_functions
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key

_SAME = 1e-9


@dataclass(frozen=True)
class Derivation:
    """The names of derived features, and the function that computes them (None if no feature is derived)."""

    following: tuple[str, ...]
    derive: RowFunction | None


def make_derivation(people: ScoredPeople, group_columns: Sequence[str], spec: ReliabilitySpec) -> Derivation:
    """Return the rules of derived features; refuse rules that do not reproduce the data.

    Parameters
    ----------
    people : the people, with unperturbed features.
    group_columns : columns that define groups, which may not change.
    spec : the settings of the audit.
    """
    linked = spec.noise.linked
    hook = None if spec.noise.derive is None else _DeriveFunction(spec.noise.derive, people)
    made = () if hook is None else hook.names
    for name in (*linked, *made):
        if name in group_columns:
            raise ConfigError(
                "{name!r} defines groups and must stay as it is; it cannot follow other features.", name=name
            )
        if name in linked and name in made:
            raise ConfigError("`linked` and `derive` both make {name!r}; leave it to one of them.", name=name)
    early, late = _in_order(linked, made)
    if hook is not None:
        hook.require_rows_alone()
        hook.require_sources((*made, *late))
    hooks: list[RowFunction] = [] if hook is None else [hook]
    rules = [_linked(name, linked[name], people) for name in early]
    rules += hooks + [_linked(name, linked[name], people) for name in late]
    if not rules:
        return Derivation((), None)

    def derive(rows: FloatArray) -> FloatArray:
        for rule in rules:
            rows = rule(rows)
        return rows

    following = (*linked, *made)
    _require_same(people, following, derive)
    return Derivation(following, derive)


def _in_order(linked: Mapping[str, str | tuple[str, ...]], made: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split linked features into those before `derive` and those that need its output, in dependency order."""
    sources = {name: set(as_names(of)) for name, of in linked.items()}
    order = [name for name in TopologicalSorter(sources).static_order() if name in linked]
    waiting = set(made)
    for name in order:
        if sources[name] & waiting:
            waiting.add(name)
    return [name for name in order if name not in waiting], [name for name in order if name in waiting]


def _require_same(people: ScoredPeople, following: Sequence[str], derive: RowFunction) -> None:
    made = derive(people.matrix.copy())
    for name in following:
        position = people.positions([name])[0]
        differ = ~_equal(people.matrix[:, position], made[:, position])
        if differ.any():
            raise DataError(
                "{name!r} is not what `linked` or `derive` makes of the other features in {rows} of {number:,}; "
                "mend the rule or the data.",
                name=name,
                rows=count(int(differ.sum()), "row"),
                number=len(differ),
            )


def _linked(name: str, sources: str | tuple[str, ...], people: ScoredPeople) -> RowFunction:
    if isinstance(sources, str):
        return _function_of(name, sources, people)
    target, *factors = people.positions([name, *sources])
    for feature in (people.features[position] for position in (target, *factors)):
        if feature.is_text:
            raise ConfigError(
                "`linked` makes a product of {name!r}, which holds text; use `derive`.", name=feature.name
            )

    def product(rows: FloatArray) -> FloatArray:
        rows[:, target] = np.prod(rows[:, factors], axis=1)
        return rows

    return product


def _function_of(name: str, source: str, people: ScoredPeople) -> RowFunction:
    """Return the rule that maps each source value to the feature's value in the data, by the nearest source value."""
    target, position = people.positions([name, source])
    known_values, column = people.features[position].distinct, people.matrix[:, position]
    nearest = np.searchsorted(known_values, column)
    present = ~np.isnan(column)
    value = np.full(len(known_values), np.nan)
    value[nearest[present]] = people.matrix[present, target]
    wrong = present & ~(value[np.minimum(nearest, len(known_values) - 1)] == people.matrix[:, target])
    if wrong.any():
        raise DataError(
            "`linked` makes {name!r} a function of {source!r}, but people with the same {source!r} differ "
            "in it; leave it out, or use `derive`.",
            name=name,
            source=source,
        )
    middle = (known_values[:-1] + known_values[1:]) / 2

    def follow(rows: FloatArray) -> FloatArray:
        values = value[np.searchsorted(middle, rows[:, position])]
        rows[:, target] = np.where(np.isnan(rows[:, position]), np.nan, values)
        return rows

    return follow


class _DeriveFunction:
    """The user's `derive` function, which maps columns by name to derived columns by name."""

    def __init__(self, derive: Callable[..., Any], people: ScoredPeople) -> None:
        self.derive, self.people = derive, people
        self.names = tuple(self._derived_columns(people.matrix))

    def __call__(self, rows: FloatArray) -> FloatArray:
        made = self._derived_columns(rows)
        if tuple(made) != self.names:
            raise EvenhandError(
                "`derive` must return the same columns each time: {names}.", names=", ".join(self.names)
            )
        for name, column in made.items():
            position = self.people.positions([name])[0]
            rows[:, position] = _as_numbers(self.people.features[position], column, len(rows))
        return rows

    def require_rows_alone(self) -> None:
        """Refuse a random function, and a function that computes a row's value from other rows."""
        rows = self.people.matrix[self.people.sample()]
        first = self(rows.copy())
        if not _equal(first, self(rows.copy())).all():
            raise EvenhandError("`derive` gives other values when it is asked again; it must not draw at random.")
        half = len(rows) // 2
        parts = [self(part.copy()) for part in (rows[half:], rows[:half]) if len(part)]
        differ = ~_equal(first, np.concatenate(parts[::-1])).all(axis=0)
        if differ.any():
            name = self.people.names[int(np.argmax(differ))]
            raise EvenhandError(
                "`derive` gives {name!r} other values when it is asked about fewer people; it must make each "
                "person's value of that person's own columns.",
                name=name,
            )

    def require_sources(self, unfinished: Sequence[str]) -> None:
        """Refuse a function that reads columns computed only after it."""
        rows, made = self.people.matrix[self.people.sample()], self.people.positions(self.names)
        first = self(rows.copy())[:, made]
        for name in unfinished:
            position = self.people.positions([name])[0]
            other = rows.copy()
            other[:, position] = np.roll(rows[:, position], 1 + len(rows) // 3)
            try:
                same = bool(_equal(first, self(other)[:, made]).all())
            except EvenhandError:
                same = False
            if not same:
                raise ConfigError("`derive` looks at {name!r}, {why}", name=name, why=self._unfinished(name))

    def _unfinished(self, name: str) -> Message:
        if name in self.names:
            return problem("which it makes itself: those are the values from before; use the ones that it works out.")
        return problem(
            "which `linked` makes of what `derive` returns; let `derive` make {name!r} too, and use that.", name=name
        )

    def _derived_columns(self, rows: FloatArray) -> dict[str, Any]:
        columns = {f.name: f.as_column(rows[:, i].copy()) for i, f in enumerate(self.people.features)}
        try:
            made = self.derive(columns)
        except Exception as error:
            raise EvenhandError("`derive` failed: {name}: {error}", name=type(error).__name__, error=error) from error
        if not hasattr(made, "keys") and not hasattr(made, "columns"):
            raise EvenhandError("`derive` must return columns by name; it returned {name}.", name=type(made).__name__)
        names = list(made.columns if hasattr(made, "columns") else made.keys())
        for name in names:
            if str(name) not in self.people.names:
                raise ConfigError("`derive` returns {name!r}, which is not among `features`.", name=name)
        return {str(name): made[name] for name in names}


def _equal(first: FloatArray, second: FloatArray) -> BoolArray:
    near = np.abs(first - second) <= _SAME * (1 + np.abs(first))
    return np.asarray(near | (np.isnan(first) & np.isnan(second)))


def _as_numbers(feature: ModelFeature, column: object, rows: int) -> FloatArray:
    try:
        values = np.asarray(column)
    except ValueError:  # lists of different lengths
        values = np.empty(0, dtype=object)
    if values.shape != (rows,):
        shape = " by ".join(str(size) for size in values.shape) or "one value"
        raise EvenhandError(
            "`derive` must return one value a row for {name!r}; {rows} gave {shape}.",
            name=feature.name,
            rows=count(rows, "row"),
            shape=shape,
        )
    absent = np.equal(values, np.array(None, dtype=object)).astype(np.bool_) if values.dtype == object else None
    return (_text_codes if feature.is_text else _plain_numbers)(feature, values, absent)


def _text_codes(feature: ModelFeature, values: npt.NDArray[Any], absent: BoolArray | None) -> FloatArray:
    text = values.astype(str)
    distinct, codes = np.unique(
        text if absent is None else np.where(absent, feature.labels[0], text), return_inverse=True
    )
    unknown = [label for label in distinct.tolist() if label not in feature.labels]
    if unknown:
        raise EvenhandError(
            "`derive` returns {unknown!r} for {name!r}, which the data does not have.",
            unknown=unknown[0],
            name=feature.name,
        )
    numbers = np.array([float(feature.labels.index(label)) for label in distinct.tolist()])[codes]
    return numbers if absent is None else np.where(absent, np.nan, numbers)


def _plain_numbers(feature: ModelFeature, values: npt.NDArray[Any], absent: BoolArray | None) -> FloatArray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    present = values if absent is None else values[~absent]
    if absent is not None and not any(isinstance(value, str) for value in present[:1]):
        try:
            return np.where(absent, np.nan, values).astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise EvenhandError(
        "`derive` must return numbers for {name!r}, which holds numbers; got {value!r}.",
        name=feature.name,
        value=present.tolist()[0],
    )


def features_of_groups(people: ScoredPeople) -> dict[str, str]:
    """Return the features that a group-defining column determines in every row, with that column."""
    return {
        people.names[function.column]: column for function, column in functions_of_groups(people) if function.share == 1
    }


def functions_of_groups(people: ScoredPeople) -> list[tuple[FixedFunction, str]]:
    """Return the features that a group-defining column determines in almost every row, with that column."""
    codes, features = people.groups.codes, len(people.names)
    matrix = np.column_stack([people.matrix, *codes.values()])
    columns = list(codes)
    return [
        (function, columns[function.perturbed - features].removeprefix("column:"))
        for function in fixed_functions(matrix, range(features, features + len(columns)))
        if function.repeated and column_key(people.names[function.column]) not in codes
    ]
