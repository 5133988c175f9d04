"""Read and check people from a table: trajectories, inertia, effort and aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.audits.effort.choices import PUBLISHED_RATES, published_rates, scaled_rates
from evenhand.audits.effort.spec import EffortSpec, History, InertiaSource, InertiaSources, SimilarPairs
from evenhand.errors import ConfigError, DataError, count, problem, require_name
from evenhand.messages import Message
from evenhand.stats.effort import aggregate_scores, effort_scores
from evenhand.stats.imputation import drawn_rates
from evenhand.stats.pairs import EUCLIDEAN, Distance, learn_metric
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.coding import Coded
from evenhand.table.engines import MOST_ROWS, TransferLimit, require_few_rows
from evenhand.table.keys import NUMBERS, id_text, kinds_of, plain_value
from evenhand.table.labels import known_label
from evenhand.table.roles import MISSING, grouping_name
from evenhand.table.rows import PersonRows
from evenhand.table.sources import engine_errors, fetch_arrays, open_source
from evenhand.table.table import Table
from evenhand.table.validation import column_fault

LARGEST = 1e15

TRANSFER = TransferLimit(
    "people with their trajectory, once",
    MOST_ROWS,
    "everything in the engine: bins, a grid of 65³ cells and a sample of about 200,000 people, with the error",
)
"""The most data that an engine sends to this process for an effort audit."""


@dataclass(frozen=True)
class Trajectories:
    """Trajectories: one feature's values of people over time.

    Parameters
    ----------
    steps : the names of the time steps.
    times : the time stamps of the steps; None if they are one unit apart.
    values : the values (people, time steps), nan where missing.
    not_in_table : the number of people in the history who are not in the table.
    """

    steps: tuple[str, ...]
    times: tuple[float, ...] | None
    values: FloatArray
    not_in_table: int = 0


@dataclass(frozen=True, kw_only=True)
class EffortPeople:
    """The people of an effort audit, in memory.

    Parameters
    ----------
    rows : the people's numbers, scores, groups, weights and ids.
    trajectories : one feature of the people over time.
    inertia : each person's disadvantage outside their control, above 0.
    effort, aggregate : each person's effort and aggregate, as defined in the paper.
    distance : the distance between two people.
    thresholds : each model's cut-off for selection, if decisions are compared instead of scores.
    dropped : the number of people left out for a missing value.
    judged : the number of judged pairs behind a learned distance.
    """

    rows: PersonRows
    trajectories: Trajectories
    inertia: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    dropped: int
    distance: Distance = EUCLIDEAN
    judged: int = 0
    thresholds: Mapping[str, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of people."""
        return len(self.effort)

    @property
    def highest(self) -> float:
        """The largest effort."""
        return float(self.effort.max())

    def compared(self, model: str) -> FloatArray:
        """Return the numbers by which groups are compared: a model's scores, or its decisions as 0 and 1."""
        score = self.rows.scores[model]
        return score if model not in self.thresholds else (score > self.thresholds[model]).astype(np.float64)

    def numbers(self, model: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the numbers by which pairs are compared: a model's scores, effort and aggregate."""
        return self.rows.scores[model], self.effort, self.aggregate


def gather(table: Table, spec: EffortSpec) -> EffortPeople:
    """Read the people of a table, refuse or drop incomplete ones, and compute effort and aggregate."""
    column = inertia_column(spec)
    others = spec.robustness.columns if spec.robustness is not None else ()
    sources = spec.inertia.columns if isinstance(spec.inertia, InertiaSources) else ()
    columns = [*spec.trajectory, *([column] if column is not None else []), *sources, *others]
    rows = table.person_rows(list(dict.fromkeys(columns)))
    paths = _trajectories(table, rows, spec)
    inertia = rows.numbers[column] if column is not None else group_inertia(table, rows, spec)
    _refuse_infinite(paths)
    refuse_huge(dict(zip(paths.steps, np.abs(np.nan_to_num(paths.values)).max(axis=0, initial=0.0), strict=True)))
    whole = np.isfinite(paths.values).all(axis=1) & ~np.isnan(inertia)
    dropped = int((~whole).sum())
    if dropped and table.roles.missing != "drop":
        gaps = np.isnan(paths.values).sum(axis=0).tolist()
        refuse_gaps(dict(zip(paths.steps, gaps, strict=True)), dropped, len(whole))
    rows, values, inertia = rows.where(whole), paths.values[whole], inertia[whole]
    require_pairs(len(values))
    if (wrong := ~(np.isfinite(inertia) & (inertia > 0))).any():
        refuse_inertia(column, float(inertia[wrong][0]))
    effort = effort_scores(values, inertia, spec.desirable, spec.unit, paths.times, measure=spec.measure)
    aggregate = aggregate_scores(values, spec.scale)
    distance, judged = _distance(spec, table.roles.id, rows.ids, effort, aggregate)
    cuts = {model: table.prediction(model).threshold for model in table.models if spec.parity_of == "decisions"}
    paths = replace(paths, values=values)
    return EffortPeople(
        rows=rows,
        trajectories=paths,
        inertia=inertia,
        effort=effort,
        aggregate=aggregate,
        dropped=dropped,
        distance=distance,
        judged=judged,
        thresholds=cuts,
    )


def inertia_column(spec: EffortSpec) -> str | None:
    """Return the column of each person's inertia, or None."""
    return spec.inertia if isinstance(spec.inertia, str) and spec.inertia not in PUBLISHED_RATES else None


def group_rates(table: Table, spec: EffortSpec) -> tuple[str, dict[str, float]]:
    """Return the group column of the rates of inertia, and the rate of each group in the table."""
    assert isinstance(spec.inertia, str | dict)  # noqa: S101
    rates = published_rates(spec.inertia) if isinstance(spec.inertia, str) else scaled_rates(spec.inertia)
    by = spec.inertia_by or "race"
    return by, _checked_rates(table, (by,), rates, problem("`inertia_by`"))


def _checked_rates(
    table: Table, columns: tuple[str, ...], rates: dict[str, float], setting: Message
) -> dict[str, float]:
    """Return the rates by the groups' labels; refuse unknown group columns and missing rates."""
    for by in columns:
        _require_group_column(by, table, setting)
    codes, labels = table.cells.joint(columns)
    name, rates = grouping_name(columns), _relabel(columns, rates, labels)
    present = [labels[code] for code in np.unique(codes)]
    unknown = [label for label in present if label not in rates and MISSING not in label]
    if unknown:
        raise DataError(
            "`inertia` has no rate for {groups} of column {column!r}; give one for every group (known: {known}).",
            groups=tuple(map(repr, unknown[:5])),
            column=name,
            known=tuple(map(repr, rates)),
        )
    return rates


def _relabel(columns: tuple[str, ...], numbers: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """Return numbers by the groups' labels; numbers of an intersection already have its labels."""
    if len(columns) > 1:
        return dict(numbers)
    return {known_label(columns[0], group, labels): number for group, number in numbers.items()}


def _require_group_column(by: str, table: Table, setting: Message) -> None:
    require_name(
        by,
        table.roles.group_columns,
        "rates of inertia by group need their group column among the table's groups; {setting} is {name!r}; {hint}",
        setting=setting,
    )


def group_inertia(table: Table, rows: PersonRows, spec: EffortSpec) -> FloatArray:
    """Return each person's inertia from rates by group; without rates, 1 for all people."""
    if spec.inertia is None:
        return np.ones(len(rows.groups.n))
    if isinstance(spec.inertia, InertiaSources):
        return next(source_inertia(table, rows, spec.inertia))
    by, rates = group_rates(table, spec)
    codes, labels = rows.groups.joint([by])
    return np.array([rates.get(label, np.nan) for label in labels])[codes]


def source_inertia(
    table: Table, rows: PersonRows, sources: InertiaSources, draws: int = 1, rng: np.random.Generator | None = None
) -> Iterator[FloatArray]:
    """Yield all people's inertia from several sources, as given or redrawn with the standard errors."""
    parts = [
        _drawn_source(table, rows, name=name, source=source, draws=draws, rng=rng)
        for name, source in sources.sources.items()
    ]
    for number in range(draws):
        of_each = np.stack([part[number] for part in parts])
        yield of_each.prod(axis=0) if sources.combine == "product" else of_each.mean(axis=0)


def _drawn_source(
    table: Table, rows: PersonRows, *, name: str, source: InertiaSource, draws: int, rng: np.random.Generator | None
) -> FloatArray:
    """Return the numbers of one source (draws, people)."""

    def drawn_from(means: FloatArray, errors: FloatArray) -> FloatArray:
        return np.tile(means, (draws, 1)) if rng is None else drawn_rates(means, errors, draws, rng)

    if source.column is not None:
        return drawn_from(*_own_rates(rows, source.column, source.error_column))
    by = source.by or ()
    rates = _checked_rates(table, by, source.rates, problem("`by` of the source {name!r}", name=name))
    codes, labels = rows.groups.joint(by)
    errors = _relabel(by, source.errors, labels)
    labels_with_rate = [label for label in labels if label in rates]
    means, spread = (np.array([numbers.get(label, 0.0) for label in labels_with_rate]) for numbers in (rates, errors))
    drawn = drawn_from(means, spread)
    by_label = np.full((draws, len(labels)), np.nan)
    by_label[:, [labels.index(label) for label in labels_with_rate]] = drawn / drawn.max(axis=1, keepdims=True)
    return by_label[:, codes]


def _own_rates(rows: PersonRows, column: str, error_column: str | None) -> tuple[FloatArray, FloatArray]:
    """Return each person's own number and its standard error."""
    values = rows.numbers[column]
    if (wrong := ~(values > 0) & ~np.isnan(values)).any():
        refuse_inertia(column, float(values[wrong][0]))
    errors = np.zeros(len(values)) if error_column is None else rows.numbers[error_column]
    missing = np.isnan(errors)
    if missing.any():
        raise DataError(
            "error column {error_column!r} is missing in {rows}.",
            error_column=error_column,
            rows=count(int(missing.sum()), "row"),
        )
    return values, errors


def refuse_gaps(gaps: Mapping[str, int], dropped: int, rows: int) -> None:
    """Refuse missing trajectories or inertia, with the numbers of rows by column."""
    columns = tuple(problem("{column!r} in {number:,}", column=name, number=n) for name, n in gaps.items() if n)
    raise DataError(
        "trajectories are missing in {missing} of {rows:,} ({columns}); fill them, or drop these people with "
        "`missing='drop'`.",
        missing=count(dropped, "row"),
        rows=rows,
        columns=columns or "the inertia",
    )


def refuse_inertia(column: str | None, value: float) -> None:
    """Refuse inertia that is not above 0."""
    raise DataError(
        "inertia column {column!r} must be above 0 and finite; it holds {value:g}.", column=column, value=value
    )


def refuse_huge(sizes: Mapping[str, float]) -> None:
    """Refuse values too large for meaningful sums and squares."""
    for name, size in sizes.items():
        if size > LARGEST:
            raise DataError(
                "trajectory column {name!r} holds values up to {size:g}; give it in a larger unit.",
                name=name,
                size=size,
            )


def require_pairs(people: int) -> None:
    """Refuse fewer than two people."""
    if people < 2:
        raise DataError(
            "the effort audit compares pairs of people; only {people} left.", people=count(people, "person", "people")
        )


def _trajectories(table: Table, rows: PersonRows, spec: EffortSpec) -> Trajectories:
    if spec.history is not None:
        return _read_history(table, spec, spec.history, rows.ids)
    values = np.column_stack([rows.numbers[name] for name in spec.trajectory])
    return Trajectories(spec.trajectory, spec.times, values)


def _refuse_infinite(paths: Trajectories) -> None:
    infinite = np.isinf(paths.values).any(axis=0)
    if infinite.any():
        raise DataError(
            "trajectory column {column!r} holds infinite values.", column=paths.steps[int(np.argmax(infinite))]
        )


def _distance(
    spec: EffortSpec, id_column: str | None, ids: tuple[str, ...] | None, effort: FloatArray, aggregate: FloatArray
) -> tuple[Distance, int]:
    """Return the requested distance, and the number of pairs it was learned from."""
    settings = spec.distance
    scales = settings.effort_scale, settings.aggregate_scale
    if settings.norm == "own":
        return Distance(scales=scales, lipschitz=settings.lipschitz, function=settings.function), 0
    if settings.norm != "learned":
        return Distance(settings.norm, scales, settings.lipschitz), 0
    pairs = settings.similar
    assert pairs is not None  # noqa: S101
    if ids is None or id_column is None:
        raise ConfigError("`similar` names people of the table; name the table's `id` column.")
    frame = open_source(spec.folder / pairs.source if pairs.source is not None else pairs.data).frame
    first, second, judged = _judged_pairs(frame, pairs)
    row_of = {name: row for row, name in enumerate(ids)}
    present = [
        (row_of[a], row_of[b], y) for a, b, y in zip(first, second, judged, strict=True) if {a, b} <= row_of.keys()
    ]
    if not present:
        raise DataError("no pair of `similar` is of two people in the table; it has for example {id!r}.", id=first[0])
    i, j, similar = (np.array(column) for column in zip(*present, strict=True))
    matrix = learn_metric((effort[i] - effort[j]) / scales[0], (aggregate[i] - aggregate[j]) / scales[1], similar)
    return Distance(scales=scales, lipschitz=settings.lipschitz, matrix=matrix), len(present)


def _judged_pairs(frame: Any, pairs: SimilarPairs) -> tuple[list[str], list[str], list[float]]:
    """Return the ids and judgement of every pair; refuse judgements other than 0 and 1."""
    with engine_errors():
        kinds = kinds_of(frame.collect_schema())
    names = {"first": pairs.first, "second": pairs.second, "similar": pairs.similar}
    for role, name in names.items():
        if fault := column_fault(name, kinds):
            raise ConfigError("`{role}` of `similar` is {name!r}, which {fault}", role=role, name=name, fault=fault)
    ids = {
        role: id_text(plain_value(names[role], kinds[names[role]]), kinds[names[role]]).fill_null("")
        for role in ("first", "second")
    }
    judged = nw.col(pairs.similar).cast(nw.Float64).fill_null(float("nan"))
    with engine_errors():
        require_few_rows(frame)
        arrays = fetch_arrays(frame.select(**ids, similar=judged))
    values = np.asarray(arrays["similar"], dtype=np.float64)
    if not np.isin(values, (0.0, 1.0)).all():
        wrong = values[~np.isin(values, (0.0, 1.0))][0]
        raise DataError(
            "`similar` must be 1 or 0 in every pair; column {column!r} holds {value:g}.",
            column=pairs.similar,
            value=wrong,
        )
    return [str(x) for x in arrays["first"]], [str(x) for x in arrays["second"]], values.tolist()


# A long table: one row for each person and time.


def _read_history(table: Table, spec: EffortSpec, history: History, ids: tuple[str, ...] | None) -> Trajectories:
    """Return the trajectories of people, matched by id.

    Values are nan for people and times missing in the history.
    """
    id_column = table.roles.id
    if ids is None or id_column is None:
        raise ConfigError("a `history` is joined to the table by its people; name the table's `id` column.")
    frame = open_source(spec.folder / history.source if history.source is not None else history.data).frame
    owner, stamp, value = _history_columns(frame, history, id_column)
    row_of = {name: row for row, name in enumerate(ids)}
    people, codes = np.unique(owner, return_inverse=True)
    persons = Coded(codes, tuple(people.tolist()))
    table.record_rows({"id": persons, "time": stamp, "value": value}, source="history")
    known_rows = np.array([row_of.get(name, -1) for name in people.tolist()], dtype=np.int64)
    rows = known_rows[codes]
    ours = rows >= 0
    if not ours.any():
        raise DataError(
            "no id of `history` is in the table; its column {column!r} has for example {example!r}, the table "
            "{known!r}.",
            column=history.id or id_column,
            example=str(people[0]),
            known=ids[0],
        )
    times = np.unique(stamp[ours])  # entries of people in the table
    if len(times) < 3:
        raise DataError(
            "trajectories need at least 3 time steps; `history` has {number} in {column!r}.",
            number=len(times),
            column=history.time,
        )
    rows, steps = rows[ours], np.searchsorted(times, stamp[ours])
    _refuse_repeats(rows * len(times) + steps, ids, times, history)
    values = np.full((len(ids), len(times)), np.nan)
    values[rows, steps] = value[ours]
    return Trajectories(
        tuple(f"{history.value} at {time:g}" for time in times),
        None if np.allclose(np.diff(times), 1.0) else tuple(float(time) for time in times),
        values,
        int((known_rows < 0).sum()),
    )


def _history_columns(frame: Any, history: History, id_column: str) -> tuple[Any, FloatArray, FloatArray]:
    """Return id, time and value of every row; refuse a row without an id or time."""
    with engine_errors():
        kinds = kinds_of(frame.collect_schema())
    names = {"id": history.id or id_column, "time": history.time, "value": history.value}
    for role, name in names.items():
        fault = column_fault(name, kinds)
        if fault:
            raise ConfigError("`{role}` of `history` is {name!r}, which {fault}", role=role, name=name, fault=fault)
        if role != "id" and kinds[name] not in NUMBERS:
            raise ConfigError(
                "`{role}` of `history` must be a column of numbers; {name!r} is not.", role=role, name=name
            )
    owner = plain_value(names["id"], kinds[names["id"]])
    numbers = {role: nw.col(names[role]).cast(nw.Float64).fill_null(float("nan")) for role in ("time", "value")}
    with engine_errors():
        require_few_rows(frame)
        arrays = fetch_arrays(frame.select(id=id_text(owner, kinds[names["id"]]).fill_null(""), **numbers))
    stamp = np.asarray(arrays["time"], dtype=np.float64)
    lost = int((~np.isfinite(stamp)).sum() + (np.asarray(arrays["id"]) == "").sum())
    if lost:
        raise DataError("`history` lacks an id or a time in {rows}; fill or remove them.", rows=count(lost, "row"))
    return np.asarray(arrays["id"], dtype=object), stamp, np.asarray(arrays["value"], dtype=np.float64)


def _refuse_repeats(entries: IntArray, ids: tuple[str, ...], times: FloatArray, history: History) -> None:
    numbers, repeats = np.unique(entries, return_counts=True)
    if len(numbers) and repeats.max() > 1:
        person, step = divmod(int(numbers[np.argmax(repeats)]), len(times))
        raise DataError(
            "`history` has {number} rows for {person!r} at {column} {time:g}; it must have one for each person and "
            "time.",
            number=int(repeats.max()),
            person=ids[person],
            column=history.time,
            time=float(times[step]),
        )
