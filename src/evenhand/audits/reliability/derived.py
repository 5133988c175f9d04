"""Features made of others: they follow their sources, and those that do not are found and told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.reliability.mistakes import NoiseSetting
from evenhand.audits.reliability.people import Feature, People
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError, count
from evenhand.stats.noise import FixedFunction, NoiseItem, RowFunction, fixed_functions, fixed_products
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING

_SAME = 1e-9
_MOST_ROWS = 500
_MOST_GROUPS = 20


@dataclass(frozen=True)
class Derivation:
    """The features that follow others, and the function that makes them do so; None where there are none."""

    following: tuple[str, ...]
    derive: RowFunction | None


def make_derivation(people: People, group_columns: Sequence[str], spec: ReliabilitySpec) -> Derivation:
    """Return how derived features follow; they must be what the data says they are.

    Parameters
    ----------
    people : the people, unperturbed.
    group_columns : columns that define groups, which may not change.
    spec : the settings of the audit.
    """
    hook = None if spec.derive is None else _Hook(spec.derive, people)
    made = () if hook is None else hook.names
    for name in (*spec.linked, *made):
        if name in group_columns:
            raise ConfigError(f"{name!r} defines groups and must stay as it is; it cannot follow other features.")
        if name in spec.linked and name in made:
            raise ConfigError(f"`linked` and `derive` both make {name!r}; leave it to one of them.")
    early, late = _in_order(spec.linked, made)
    if hook is not None:
        hook.require_rows_alone()
        hook.require_sources((*made, *late))
    hooks: list[RowFunction] = [] if hook is None else [hook]
    rules = [_linked(name, spec.linked[name], people) for name in early]
    rules += hooks + [_linked(name, spec.linked[name], people) for name in late]
    if not rules:
        return Derivation((), None)

    def derive(rows: FloatArray) -> FloatArray:
        for rule in rules:
            rows = rule(rows)
        return rows

    following = (*spec.linked, *made)
    _require_same(people, following, derive)
    return Derivation(following, derive)


def _in_order(linked: Mapping[str, str | tuple[str, ...]], made: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return linked features, each after its sources: those ahead of `derive`, and those that need what it makes."""
    sources = {name: {of} if isinstance(of, str) else set(of) for name, of in linked.items()}
    order = [name for name in TopologicalSorter(sources).static_order() if name in linked]
    waiting = set(made)
    for name in order:
        if sources[name] & waiting:
            waiting.add(name)
    return [name for name in order if name not in waiting], [name for name in order if name in waiting]


def _require_same(people: People, following: Sequence[str], derive: RowFunction) -> None:
    made = derive(people.matrix.copy())
    for name in following:
        place = people.places([name])[0]
        had, has = people.matrix[:, place], made[:, place]
        differ = ~_equal(had, has)
        if differ.any():
            raise DataError(
                f"{name!r} is not what `linked` or `derive` makes of the other features in "
                f"{count(int(differ.sum()), 'row')} of {len(had):,}; mend the rule or the data."
            )


def _linked(name: str, sources: str | tuple[str, ...], people: People) -> RowFunction:
    target = people.places([name])[0]
    if isinstance(sources, str):
        return _function_of(name, sources, people)
    factors = people.places(sources)
    for feature in (people.features[place] for place in (target, *factors)):
        if feature.labels is not None:
            raise ConfigError(f"`linked` makes a product of {feature.name!r}, which holds text; use `derive`.")

    def product(rows: FloatArray) -> FloatArray:
        rows[:, target] = np.prod(rows[:, factors], axis=1)
        return rows

    return product


def _function_of(name: str, source: str, people: People) -> RowFunction:
    """Return the rule that gives a feature the value it has in the data for the nearest value of its source."""
    target, place = people.places([name, source])
    known = people.features[place].distinct
    at = np.searchsorted(known, people.matrix[:, place])
    has = ~np.isnan(people.matrix[:, place])
    value = np.full(len(known), np.nan)
    value[at[has]] = people.matrix[has, target]
    wrong = has & ~(value[np.minimum(at, len(known) - 1)] == people.matrix[:, target])
    if wrong.any():
        raise DataError(
            f"`linked` makes {name!r} a function of {source!r}, but people with the same {source!r} differ in it; "
            "leave it out, or use `derive`."
        )
    middle = (known[:-1] + known[1:]) / 2

    def follow(rows: FloatArray) -> FloatArray:
        found = value[np.searchsorted(middle, rows[:, place])]
        rows[:, target] = np.where(np.isnan(rows[:, place]), np.nan, found)
        return rows

    return follow


class _Hook:
    """The user's function: columns by name in, the derived columns by name out."""

    def __init__(self, derive: Callable[..., Any], people: People) -> None:
        self.derive, self.people = derive, people
        self.names = tuple(self._made(people.matrix))

    def __call__(self, rows: FloatArray) -> FloatArray:
        made = self._made(rows)
        if tuple(made) != self.names:
            raise EvenhandError(f"`derive` must return the same columns each time: {', '.join(self.names)}.")
        for name, column in made.items():
            place = self.people.places([name])[0]
            rows[:, place] = _as_numbers(self.people.features[place], column, len(rows))
        return rows

    def require_rows_alone(self) -> None:
        """Refuse a function that draws at random, or makes a row's value of other rows."""
        rows = _some_rows(self.people)
        first = self(rows.copy())
        if not _equal(first, self(rows.copy())).all():
            raise EvenhandError("`derive` gives other values when it is asked again; it must not draw at random.")
        half = len(rows) // 2
        parts = [self(part.copy()) for part in (rows[half:], rows[:half]) if len(part)]
        differ = ~_equal(first, np.concatenate(parts[::-1])).all(axis=0)
        if differ.any():
            name = self.people.names[int(np.argmax(differ))]
            raise EvenhandError(
                f"`derive` gives {name!r} other values when it is asked about fewer people; it must make each person's "
                "value of that person's own columns."
            )

    def require_sources(self, unfinished: Sequence[str]) -> None:
        """Refuse a function that looks at columns which are not made yet when it is called."""
        rows, own = _some_rows(self.people), self.people.places(self.names)
        first = self(rows.copy())[:, own]
        for name in unfinished:
            place = self.people.places([name])[0]
            other = rows.copy()
            other[:, place] = np.roll(rows[:, place], 1 + len(rows) // 3)
            try:
                same = bool(_equal(first, self(other)[:, own]).all())
            except EvenhandError:
                same = False
            if not same:
                raise ConfigError(f"`derive` looks at {name!r}, {self._unfinished(name)}")

    def _unfinished(self, name: str) -> str:
        if name in self.names:
            return "which it makes itself: those are the values from before; use the ones that it works out."
        return f"which `linked` makes of what `derive` returns; let `derive` make {name!r} too, and use that."

    def _made(self, rows: FloatArray) -> dict[str, Any]:
        columns = {f.name: f.as_column(rows[:, at].copy()) for at, f in enumerate(self.people.features)}
        try:
            made = self.derive(columns)
        except Exception as error:
            raise EvenhandError(f"`derive` failed: {type(error).__name__}: {error}") from error
        if not hasattr(made, "keys") and not hasattr(made, "columns"):
            raise EvenhandError(f"`derive` must return columns by name; it returned {type(made).__name__}.")
        names = list(made.columns if hasattr(made, "columns") else made.keys())
        for name in names:
            if str(name) not in self.people.names:
                raise ConfigError(f"`derive` returns {name!r}, which is not among `features`.")
        return {str(name): made[name] for name in names}


def _some_rows(people: People) -> FloatArray:
    return people.matrix[np.linspace(0, len(people.matrix) - 1, min(_MOST_ROWS, len(people.matrix))).astype(np.int64)]


def _equal(one: FloatArray, other: FloatArray) -> BoolArray:
    return np.asarray((np.abs(one - other) <= _SAME * (1 + np.abs(one))) | (np.isnan(one) & np.isnan(other)))


def _as_numbers(feature: Feature, column: Any, rows: int) -> FloatArray:
    try:
        values = np.asarray(column)
    except ValueError:  # lists of different lengths
        values = np.empty(0, dtype=object)
    if values.shape != (rows,):
        shape = " by ".join(str(size) for size in values.shape) or "one value"
        raise EvenhandError(
            f"`derive` must return one value a row for {feature.name!r}; {count(rows, 'row')} gave {shape}."
        )
    absent = np.equal(values, np.array(None, dtype=object)).astype(np.bool_) if values.dtype == object else None
    if feature.labels is None:
        return _plain_numbers(feature, values, absent)
    text = values.astype(str)
    known, codes = np.unique(text if absent is None else np.where(absent, feature.labels[0], text), return_inverse=True)
    strange = [label for label in known.tolist() if label not in feature.labels]
    if strange:
        raise EvenhandError(f"`derive` returns {strange[0]!r} for {feature.name!r}, which the data does not have.")
    numbers = np.array([float(feature.labels.index(label)) for label in known.tolist()])[codes]
    return numbers if absent is None else np.where(absent, np.nan, numbers)


def _plain_numbers(feature: Feature, values: npt.NDArray[Any], absent: BoolArray | None) -> FloatArray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    there = values if absent is None else values[~absent]
    if absent is not None and not any(isinstance(value, str) for value in there[:1]):
        try:
            return np.where(absent, np.nan, values).astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise EvenhandError(
        f"`derive` must return numbers for {feature.name!r}, which holds numbers; got {there.tolist()[0]!r}."
    )


def contradiction_notes(people: People, perturbed: Sequence[int], following: Sequence[str]) -> Iterator[str]:
    """Warn of features that are made of a perturbed one and are held fixed: they can turn the sign of a gap."""
    names = list(people.names)
    moving = {*perturbed, *people.places(following)}
    told: dict[int, set[int]] = {}
    alike: dict[tuple[int, bool, bool], list[FixedFunction]] = {}
    for function in fixed_functions(people.matrix, moving):
        if function.column not in told:
            alike.setdefault((function.perturbed, function.repeated, function.share == 1), []).append(function)
        told.setdefault(function.column, set()).add(function.perturbed)
    for functions in alike.values():
        yield _function_note(people, functions)
    extra, labels = _group_columns(people)
    for found in fixed_products(np.column_stack([people.matrix, *extra]), moving):
        if found.column >= len(names) or found.perturbed in told.setdefault(found.column, set()):
            continue
        told[found.column].add(found.perturbed)
        column, source, factor = names[found.column], names[found.perturbed], [*names, *labels][found.factor]
        mend = (
            f"let it follow with linked={{{column!r}: [{source!r}, {factor!r}]}}."
            if found.factor < len(names)
            else "put that column among `features` as 0 and 1, and let the product follow with `linked`."
        )
        if found.share < 1:
            mend = f"mend the other rows, and {mend}"
        yield _contradiction(people, [column], source, f"{source!r} times {factor!r} in {_rows_of(found.share)}", mend)


def group_features(people: People) -> dict[str, str]:
    """Return the features that are a function of a column that defines groups in every row, and that column."""
    return {people.names[one.column]: column for one, column in _functions_of_groups(people) if one.share == 1}


def group_notes(setting: NoiseSetting, items: Sequence[NoiseItem], people: People) -> Iterator[str]:
    """Say which features tell the group and were held fixed for it, and warn of those that go wrong all the same."""
    if setting.published is not None:
        for name, column in group_features(people).items():
            yield (
                f"{name!r} is a function of {column!r}, which defines groups. It was not perturbed by "
                f"{setting.published!r}, as that column would not be."
            )
    moving = {column for item in items for column in item.columns}
    told: set[int] = set()
    for one, column in _functions_of_groups(people):
        if one.column in moving - told:
            told.add(one.column)
            name = people.names[one.column]
            yield (
                f"Warning: {name!r} is a function of {column!r} in {_rows_of(one.share)}, and went wrong while people "
                f"stayed in the groups that {column!r} defines. A gap may then be the work of mistakes about the group "
                f"itself: hold it fixed with fixed={[name]!r}, or leave it out of `noise`."
            )


def _functions_of_groups(people: People) -> list[tuple[FixedFunction, str]]:
    """Return the features that are all but a function of a column that defines groups, and the column."""
    codes = people.groups.codes
    own = len(people.names)
    both = np.column_stack([people.matrix, *codes.values()])
    columns = list(codes)
    return [
        (found, columns[found.perturbed - own].removeprefix("column:"))
        for found in fixed_functions(both, range(own, own + len(columns)))
        if found.repeated and column_key(people.names[found.column]) not in codes
    ]


def _function_note(people: People, found: Sequence[FixedFunction]) -> str:
    columns, source = [people.names[one.column] for one in found], people.names[found[0].perturbed]
    links = ", ".join(f"{column!r}: {source!r}" for column in columns)
    follow = f"let {'it' if len(columns) == 1 else 'them'} follow with "
    if not found[0].repeated:
        return _contradiction(people, columns, source, f"all but a function of {source!r}", f"{follow}`derive`.")
    share = min(one.share for one in found)
    mend = f"{follow}linked={{{links}}}, or with `derive`."
    mend = mend if share == 1 else f"mend the other rows, and {mend}"
    return _contradiction(people, columns, source, f"a function of {source!r} in {_rows_of(share)}", mend)


def _contradiction(people: People, columns: Sequence[str], source: str, what: str, mend: str) -> str:
    named, one = " and ".join(map(repr, columns)), len(columns) == 1
    if any(column_key(column) in people.groups.codes for column in columns):
        mend = f"columns that define groups stay as they are, so hold {source!r} fixed too."
    return (
        f"Warning: {named} {'is' if one else 'are each'} {what}, and {'was' if one else 'were'} held fixed while "
        f"{source!r} went wrong. A rater who errs about the one errs about the other, and the sign of a gap can turn "
        f"on it: {mend}"
    )


def _rows_of(share: float) -> str:
    return "every row" if share == 1 else f"{math.floor(1000 * share) / 10:g}% of rows"


def _group_columns(people: People) -> tuple[list[FloatArray], list[str]]:
    """Return the groups as columns of 0 and 1, and what they are called."""
    extra, labels = [], []
    for column, codes in people.groups.codes.items():
        known = people.groups.labels[column]
        for code, label in enumerate(known if len(known) <= _MOST_GROUPS else ()):
            if label != MISSING:
                extra.append((codes == code).astype(np.float64))
                labels.append(f"{column} = {label}")
    return extra, labels
