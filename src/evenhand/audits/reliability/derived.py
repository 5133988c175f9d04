"""Features made of others: they follow their sources, and those that do not are found and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audits.reliability.people import Feature, People
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError, count
from evenhand.stats.noise import fixed_products
from evenhand.stats.noise.predictors import RowFunction
from evenhand.stats.types import FloatArray
from evenhand.table.roles import MISSING

_SAME = 1e-9
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
    rules: list[RowFunction] = [_linked(name, sources, people) for name, sources in spec.linked.items()]
    following = list(spec.linked)
    if spec.derive is not None:
        hook = _Hook(spec.derive, people)
        following += [name for name in hook.names if name not in following]
        rules.append(hook)
    for name in following:
        if name in group_columns:
            raise ConfigError(f"{name!r} defines groups and must stay as it is; it cannot follow other features.")
    if not rules:
        return Derivation((), None)

    def derive(rows: FloatArray) -> FloatArray:
        for rule in rules:
            rows = rule(rows)
        return rows

    _require_same(people, following, derive)
    return Derivation(tuple(following), derive)


def _require_same(people: People, following: Sequence[str], derive: RowFunction) -> None:
    made = derive(people.matrix.copy())
    for name in following:
        place = people.places([name])[0]
        had, has = people.matrix[:, place], made[:, place]
        differ = ~((np.abs(had - has) <= _SAME * (1 + np.abs(had))) | (np.isnan(had) & np.isnan(has)))
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
        for name, column in self._made(rows).items():
            place = self.people.places([name])[0]
            rows[:, place] = _as_numbers(self.people.features[place], column, len(rows))
        return rows

    def _made(self, rows: FloatArray) -> dict[str, Any]:
        columns = {f.name: f.as_column(rows[:, at].copy()) for at, f in enumerate(self.people.features)}
        try:
            made = self.derive(columns)
            found = {str(name): made[name] for name in made}
        except Exception as error:
            raise EvenhandError(f"`derive` failed: {type(error).__name__}: {error}") from error
        for name in found:
            if name not in self.people.names:
                raise ConfigError(f"`derive` returns {name!r}, which is not among `features`.")
        return found


def _as_numbers(feature: Feature, column: Any, rows: int) -> FloatArray:
    values = np.asarray(column)
    if values.shape != (rows,):
        raise EvenhandError(
            f"`derive` must return one value a row for {feature.name!r}; {rows} rows gave the shape {values.shape}."
        )
    if feature.labels is None:
        return values.astype(np.float64)
    known = {label: float(code) for code, label in enumerate(feature.labels)} | {None: np.nan}
    labels, codes = np.unique(values.astype(object), return_inverse=True)
    strange = [label for label in labels if label not in known]
    if strange:
        raise EvenhandError(f"`derive` returns {strange[0]!r} for {feature.name!r}, which the data does not have.")
    return np.array([known[label] for label in labels])[codes]


def contradiction_notes(people: People, perturbed: Sequence[int], following: Sequence[str]) -> Iterator[str]:
    """Warn of features that are products of a perturbed one and are held fixed: they can turn the sign of a gap."""
    names = list(people.names)
    extra, labels = [], []
    for column, codes in people.groups.codes.items():
        known = people.groups.labels[column]
        for code, label in enumerate(known if len(known) <= _MOST_GROUPS else ()):
            if label != MISSING:
                extra.append((codes == code).astype(np.float64))
                labels.append(f"{column} = {label}")
    matrix = np.column_stack([people.matrix, *extra])
    told: set[tuple[int, int]] = set()
    for found in fixed_products(matrix, {*perturbed, *people.places(following)}):
        if found.column >= len(names) or (found.column, found.perturbed) in told or found.perturbed not in perturbed:
            continue
        told.add((found.column, found.perturbed))
        column, source, factor = names[found.column], names[found.perturbed], [*names, *labels][found.factor]
        mend = (
            f"let it follow with linked={{{column!r}: [{source!r}, {factor!r}]}}."
            if found.factor < len(names)
            else "put that column among `features` as 0 and 1, and let the product follow with `linked`."
        )
        yield (
            f"Warning: {column!r} is {source!r} times {factor!r} in every row, and was held fixed while {source!r} "
            "went wrong. A rater who errs about the one errs about the other, and the sign of a gap can turn on it: "
            f"{mend}"
        )
