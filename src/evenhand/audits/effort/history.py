"""Long tables of trajectories: one row for each person and time, turned into one row a person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.audits.effort.spec import History
from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.stats.types import FloatArray
from evenhand.table.keys import NUMBERS, id_text, kind_of, plain_value
from evenhand.table.sources import engine_errors, fetch_arrays, open_source


@dataclass(frozen=True)
class Trajectories:
    """Values of people over time.

    Parameters
    ----------
    names : what the time steps are called.
    times : their stamps, or None when they are one unit apart.
    values : shape (people, time steps), nan where missing.
    strangers : people of the history who are not among those of the table.
    """

    names: tuple[str, ...]
    times: tuple[float, ...] | None
    values: FloatArray
    strangers: int = 0


def read_history(history: History, ids: tuple[str, ...] | None, id_column: str | None, folder: Path) -> Trajectories:
    """Return the trajectories of people by their ids; a person or time that the history lacks is nan."""
    if ids is None or id_column is None:
        raise ConfigError("a `history` is joined to the table by its people; name the table's `id` column.")
    frame = open_source(folder / history.source if history.source is not None else history.data).frame
    owner, stamp, value = _columns(frame, history, id_column)
    known = {name: row for row, name in enumerate(ids)}
    people, codes = np.unique(owner, return_inverse=True)
    rows = np.array([known.get(name, -1) for name in people.tolist()], dtype=np.int64)
    ours = rows[codes] >= 0
    if not ours.any():
        raise DataError(
            f"no id of `history` is in the table; its column {history.id or id_column!r} has for example "
            f"{str(people[0])!r}, the table {ids[0]!r}."
        )
    times = np.unique(stamp[ours])  # of our own people
    if len(times) < 3:
        raise DataError(f"trajectories need at least 3 time steps; `history` has {len(times)} in {history.time!r}.")
    place, steps = rows[codes][ours], np.searchsorted(times, stamp[ours])
    _refuse_repeats(place * len(times) + steps, ids, times, history)
    values = np.full((len(ids), len(times)), np.nan)
    values[place, steps] = value[ours]
    unit = np.allclose(np.diff(times), 1.0)
    return Trajectories(
        tuple(f"{history.value} at {time:g}" for time in times),
        None if unit else tuple(float(t) for t in times),
        values,
        int((rows < 0).sum()),
    )


def _columns(frame: Any, history: History, id_column: str) -> tuple[Any, FloatArray, FloatArray]:
    """Fetch id, time and value of every row; a row without one of the first two is an error."""
    with engine_errors():
        kinds = {name: kind_of(dtype) for name, dtype in frame.collect_schema().items()}
    names = {"id": history.id or id_column, "time": history.time, "value": history.value}
    for role, name in names.items():
        if name not in kinds:
            raise ConfigError(f"`{role}` of `history` is {name!r}, which is no column; {did_you_mean(name, kinds)}")
        if role != "id" and kinds[name] not in NUMBERS:
            raise ConfigError(f"`{role}` of `history` must be a column of numbers; {name!r} is not.")
    owner = plain_value(names["id"], kinds[names["id"]])
    numbers = {role: nw.col(names[role]).cast(nw.Float64).fill_null(float("nan")) for role in ("time", "value")}
    with engine_errors():
        arrays = fetch_arrays(frame.select(id=id_text(owner, kinds[names["id"]]).fill_null(""), **numbers))
    stamp = np.asarray(arrays["time"], dtype=np.float64)
    lost = int((~np.isfinite(stamp)).sum() + (np.asarray(arrays["id"]) == "").sum())
    if lost:
        raise DataError(f"`history` lacks an id or a time in {count(lost, 'row')}; fill or remove them.")
    return np.asarray(arrays["id"], dtype=object), stamp, np.asarray(arrays["value"], dtype=np.float64)


def _refuse_repeats(places: Any, ids: tuple[str, ...], times: FloatArray, history: History) -> None:
    found, times_found = np.unique(places, return_counts=True)
    if len(found) and times_found.max() > 1:
        person, step = divmod(int(found[np.argmax(times_found)]), len(times))
        raise DataError(
            f"`history` has {int(times_found.max())} rows for {ids[person]!r} at {history.time} {times[step]:g}; "
            "it must have one for each person and time."
        )
