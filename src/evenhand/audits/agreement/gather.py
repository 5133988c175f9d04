"""Read ratings from a table as positions of categories or as scores, in canonical order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from evenhand.audits.agreement.metrics import Scale
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.types import LARGEST, BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of, sort_key
from evenhand.table.roles import Scalar
from evenhand.table.rows import CodedRows
from evenhand.table.table import Table

MOST_CATEGORIES = 200
MOST_CELLS = 50_000_000
"""The maximum number of cells (items times raters) of a table with one rating per row."""

TRANSFER = TransferLimit("the ratings, once", MOST_ROWS, REFUSED)
"""The most data that an engine sends to this process for an agreement audit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RatedPeople:
    """People and their ratings.

    Parameters
    ----------
    scale : the kind of ratings.
    labels : the categories in rising order; empty for scores.
    ratings : (people, raters) the positions of categories, or the scores; nan where missing.
    weight : the survey weights, or None.
    groups : the group codes of each person.
    dropped : the number of people left out for a missing rating.
    raters : the names of the raters.
    cluster : the cluster of each person; None if people are independent.
    """

    scale: Scale
    labels: tuple[str, ...]
    ratings: FloatArray
    weight: FloatArray | None
    groups: Cells
    dropped: int
    raters: tuple[str, ...]
    cluster: IntArray | None = None

    @property
    def contents(self) -> list[FloatArray]:
        """The columns of ratings, and the weights if there are any."""
        return [*self.ratings.T, *([] if self.weight is None else [self.weight])]


def gather(table: Table, spec: AgreementSpec) -> RatedPeople:
    """Read the ratings of a table; refuse, drop or keep people with a missing rating."""
    coded, names, groups, weights, cluster = (
        _read_long_table(table, spec) if spec.is_long else _read_wide_table(table, spec)
    )
    values = _values(coded)
    scale = spec.scale or _scale(values, spec)
    labels = () if scale == "interval" else _categories(values, scale, spec)
    ratings = np.column_stack(
        [_numbers(column, scale, labels, name) for column, name in zip(coded, names, strict=True)]
    )
    keep = _keep_complete(ratings, spec.missing or ("keep" if spec.is_long else table.roles.missing), names)
    groups = groups.where(keep)
    weight = None if weights is None else weights[keep]
    by = [*ratings[keep].T, *groups.codes.values(), *([] if weight is None else [weight])]
    order = np.lexsort(by)
    return RatedPeople(
        scale=scale,
        labels=tuple(label_of(value) for value in labels),
        ratings=ratings[keep][order],
        weight=None if weight is None else weight[order],
        groups=groups.where(order),
        dropped=int((~keep).sum()),
        raters=names,
        cluster=None if cluster is None else cluster[keep][order],
    )


_Read: TypeAlias = tuple[list[Coded], tuple[str, ...], Cells, FloatArray | None, IntArray | None]


def _read_wide_table(table: Table, spec: AgreementSpec) -> _Read:
    """Return each rater's ratings, the raters' names, and the people's groups, weights and clusters."""
    names = spec.raters or ()
    rows = table.coded_rows({f"rater {name}": name for name in names} | _cluster_column(table))
    return [rows.columns[f"rater {name}"] for name in names], names, rows.groups, rows.weight, _clusters(rows)


def _cluster_column(table: Table) -> dict[str, str]:
    return {} if table.roles.cluster is None else {"cluster": table.roles.cluster}


def _clusters(rows: CodedRows) -> IntArray | None:
    return rows.columns["cluster"].codes if "cluster" in rows.columns else None


def _read_long_table(table: Table, spec: AgreementSpec) -> _Read:
    """Read a table with one rating per row as items by raters, with gaps."""
    columns = {"item": str(spec.item), "rater": str(spec.rater), "rating": str(spec.rating)}
    rows = table.coded_rows(columns | _cluster_column(table))
    item, rater, rating = (rows.columns[role] for role in ("item", "rater", "rating"))
    for role, column in (("item", item), ("rater", rater)):
        if column.absent:
            raise DataError(
                "`{role}` is missing in {rows}; fill it, or leave the rows out.",
                role=role,
                rows=count(column.absent, "row"),
            )
    items, raters = len(item.values), len(rater.values)
    if raters < 2:
        raise DataError("`rater` has {values}; agreement needs two raters or more.", values=count(raters, "value"))
    if items * raters > MOST_CELLS:
        raise DataError(
            "{items:,} items by {raters:,} raters are too many for one table; audit fewer raters at once.",
            items=items,
            raters=raters,
        )
    _, first, where = np.unique(item.codes * raters + rater.codes, return_index=True, return_inverse=True)
    if len(first) < len(where):
        twice = int(np.flatnonzero(np.bincount(where) > 1)[0])
        of, by = item.labels[item.codes[first[twice]]], rater.labels[rater.codes[first[twice]]]
        raise DataError("the item {item!r} has more than one rating by {rater!r}; keep one of them.", item=of, rater=by)
    _, start = np.unique(item.codes, return_index=True)
    cluster = _clusters(rows)
    of_items = {**rows.groups.codes, **({} if cluster is None else {"cluster": cluster})}
    _require_constant_within_items(item, start, of_items, rows.weight)
    codes = np.full((items, raters), -1, dtype=np.int64)
    codes[item.codes, rater.codes] = rating.codes
    weight = None if rows.weight is None else rows.weight[start]
    coded = [Coded(column, rating.values) for column in codes.T]
    return coded, rater.labels, rows.groups.where(start), weight, None if cluster is None else cluster[start]


def _require_constant_within_items(
    item: Coded, start: IntArray, groups: Mapping[str, IntArray], weight: FloatArray | None
) -> None:
    """Refuse an item whose rows differ in group or weight."""
    for name, values in {**groups, **({} if weight is None else {"weight": weight})}.items():
        differs = np.flatnonzero(values != values[start][item.codes])
        if differs.size:
            label = item.labels[item.codes[differs[0]]]
            raise DataError(
                "the item {item!r} has rows of more than one {name!r}; give all its rows the same.",
                item=label,
                name=name,
            )


def _values(coded: list[Coded]) -> list[Any]:
    """Return the distinct values in order; refuse mixed text, numbers and truth values."""
    kinds = {_kind(value) for column in coded for value in column.values}
    if not kinds:
        raise DataError("the raters' columns hold no ratings.")
    if len(kinds) > 1:
        first, second = sorted(kinds)[:2]
        raise DataError(
            "some of the raters' ratings are {first} and others {second}; give all the same kind.",
            first=first,
            second=second,
        )
    return sorted({value for column in coded for value in column.values}, key=sort_key)


def _kind(value: object) -> str:
    return "text" if isinstance(value, str) else "true and false" if isinstance(value, bool | np.bool_) else "numbers"


def _scale(values: list[Any], spec: AgreementSpec) -> Scale:
    """Return the scale inferred from the ratings and settings."""
    if spec.categories is not None:
        return "binary" if len(spec.categories) == 2 else "nominal"
    if len(values) <= 2 or spec.positive is not None:
        return "binary"
    return "nominal" if isinstance(values[0], str) else "interval"


def _categories(values: list[Any], scale: Scale, spec: AgreementSpec) -> tuple[Any, ...]:
    """Return the categories in rising order; of two categories, the positive one is second."""
    categories: list[Any] = values
    if spec.categories is not None:
        listed = {label_of(value): value for value in spec.categories}
        strange = [label_of(value) for value in values if label_of(value) not in listed]
        if strange:
            raise DataError("the rating {rating!r} is not one of `categories`; list all values.", rating=strange[0])
        categories = list(spec.categories)
    if scale == "ordinal" and spec.categories is None and isinstance(values[0], str):
        raise ConfigError("ratings of text have no order; list their values as `categories`, lowest first.")
    if len(categories) > MOST_CATEGORIES:
        raise DataError(
            "the ratings take {number:,} different values; use `scale='interval'` for numbers.", number=len(categories)
        )
    return _binary(categories, spec.positive) if scale == "binary" else tuple(categories)


def _binary(categories: list[Any], positive: Scalar | None) -> tuple[Any, ...]:
    if len(categories) > 2:
        raise DataError(
            "binary ratings have two values; these have {number}, such as {rating!r}.",
            number=len(categories),
            rating=label_of(categories[2]),
        )
    labels = [label_of(value).strip().lower() for value in categories]
    if positive is not None:
        if label_of(positive) not in [label_of(value) for value in categories]:
            raise DataError("`positive` is {positive!r}, which no rater gave.", positive=positive)
        yes = [label_of(value) for value in categories].index(label_of(positive))
    else:
        yes = next((position for position, label in enumerate(labels) if label in TRUE_WORDS), len(categories) - 1)
    if len(categories) == 1:
        says_no = positive is None and labels[0] in FALSE_WORDS
        return (categories[0], "(other)") if says_no else ("(other)", categories[0])
    return categories[1 - yes], categories[yes]


def _numbers(coded: Coded, scale: Scale, categories: tuple[Any, ...], name: str) -> FloatArray:
    if scale == "interval":
        try:
            numbers = [float(value) for value in coded.values]
        except ValueError:
            raise DataError("the rater {name!r} gave text, which the interval scale cannot hold.", name=name) from None
        if not np.isfinite(numbers).all():
            raise DataError("the rater {name!r} gave infinite scores; replace them.", name=name)
        largest = max(map(abs, numbers), default=0.0)
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise DataError(
                "the scores of the rater {name!r} reach {largest:g}, out of reach of the arithmetic; give them "
                "in other units.",
                name=name,
                largest=largest,
            )
    else:
        position = {label_of(value): index for index, value in enumerate(categories)}
        numbers = [float(position[label_of(value)]) for value in coded.values]
    return np.array([*numbers, np.nan])[coded.codes]


def _keep_complete(ratings: FloatArray, policy: str, names: Sequence[str]) -> BoolArray:
    ratings_per_item = (~np.isnan(ratings)).sum(axis=1)
    if policy == "error" and (ratings_per_item < ratings.shape[1]).any():
        where = ", ".join(
            f"{name!r} in {n:,}" for name, n in zip(names, np.isnan(ratings).sum(axis=0), strict=True) if n
        )
        raise DataError(
            "ratings are missing in {rows} of {number:,} ({where}); leave these people out with "
            "`missing='drop'`, or use what there is with `missing='keep'`.",
            rows=count(int((ratings_per_item < ratings.shape[1]).sum()), "row"),
            number=len(ratings),
            where=where,
        )
    keep = np.asarray(ratings_per_item >= (2 if policy == "keep" else ratings.shape[1]), dtype=np.bool_)
    if not keep.any():
        raise DataError("nobody has the ratings of two raters.")
    return keep
