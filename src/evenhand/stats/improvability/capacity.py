"""Selection to a capacity: the rows with the highest scores, ties at the cut drawn at random from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError
from evenhand.stats.types import BoolArray


@dataclass(frozen=True, eq=False)
class Selection:
    """Who is selected, and how much of it was chance.

    Attributes
    ----------
    selected
        (n,) whether each row is selected.
    cut
        The lowest score that is selected.
    tied
        How many rows share that score.
    tied_selected
        How many of them are selected, drawn at random; below `tied` the cut runs through them.
    """

    selected: BoolArray
    cut: float
    tied: int
    tied_selected: int


def select_top(score: npt.ArrayLike, capacity: float, rng: np.random.Generator) -> Selection:
    """Select the round(capacity * n) rows with the highest scores.

    Rows that share the score at the cut are drawn at random from `rng`, each with the same chance, whatever their group
    or place in the table. The draw is made only when there are more of them than places.

    Parameters
    ----------
    score
        (n,) scores; a high score is selected.
    capacity
        The share of rows to select, above 0 and below 1.
    rng
        Source of randomness for ties.

    Examples
    --------
    >>> chosen = select_top([3, 1, 2, 2, 0], 0.4, np.random.default_rng(0))
    >>> int(chosen.selected.sum()), chosen.cut, chosen.tied, chosen.tied_selected
    (2, 2.0, 2, 1)
    """
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise DataError("scores must be one number a row, none missing; leave rows without a score out.")
    places = capacity_count(capacity, values.size)
    cut = np.partition(values, values.size - places)[values.size - places]
    selected = values > cut
    tied = np.flatnonzero(values == cut)
    room = places - int(selected.sum())
    selected[tied if room == tied.size else rng.choice(tied, size=room, replace=False)] = True
    return Selection(selected, float(cut), tied.size, room)


def capacity_count(capacity: float, rows: int) -> int:
    """Return round(capacity * rows), halves to even, or raise where that selects nobody or everybody.

    Examples
    --------
    >>> capacity_count(0.03, 16_099)
    483
    >>> capacity_count(0.001, 100)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: a capacity of 0.001 selects nobody of 100 rows; raise it or use more rows.
    """
    if not 0.0 < capacity < 1.0:
        raise ConfigError(f"`capacity` must be a share above 0 and below 1; got {capacity!r}.")
    places = round(capacity * rows)
    if not 0 < places < rows:
        extreme = "nobody" if places == 0 else "everybody"
        change = "raise" if places == 0 else "lower"
        raise ConfigError(f"a capacity of {capacity:g} selects {extreme} of {rows} rows; {change} it or use more rows.")
    return places
