"""A critic answers a case once: what to do when the data has more."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from evenhand.errors import DataError, count
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.keys import shown
from evenhand.table.rows import Coded

_SHOWN = 3


def one_answer_each(
    critic: Coded,
    case: IntArray,
    answer: IntArray,
    truth: IntArray | None,
    time: IntArray | None,
    weight: FloatArray | None,
    cases: tuple[str, ...],
    *,
    latest: bool,
) -> tuple[IntArray, int, int]:
    """Return the rows to keep, sorted by critic and case, one for each pair; refuse contradictions.

    Parameters
    ----------
    critic, case, answer, truth, time
        Codes of the rows; `time` only to know the latest.
    weight
        The weights of the rows, or None.
    cases
        The names of the cases.
    latest
        Whether the latest of several answers counts; else they must be the same.

    Returns
    -------
    The rows to keep, how many rows repeat an answer, and how many a later answer replaced.
    """
    pair = critic.codes * len(cases) + case
    order = np.argsort(pair, kind="stable")
    sorted_pair = pair[order]
    again = np.flatnonzero(sorted_pair[1:] == sorted_pair[:-1])
    if not again.size:
        return order, 0, 0
    said = answer if truth is None else answer * (int(truth.max()) + 1) + truth
    when = np.zeros_like(said) if time is None or not latest else time
    order = np.lexsort((said, when, pair))
    pair, said, when = pair[order], said[order], when[order]
    first = np.concatenate([[True], pair[1:] != pair[:-1]])
    start = np.flatnonzero(first)
    ends = np.concatenate([start[1:], [pair.size]]) - 1
    group = np.cumsum(first) - 1
    final = (when == when[ends][group]) if latest else np.ones(pair.size, dtype=np.bool_)
    torn = np.unique(group[final & (said != said[ends][group])])
    if torn.size:
        rows = order[start[torn[:_SHOWN]]]
        _refuse(torn.size, [(critic.labels[critic.codes[row]], cases[case[row]]) for row in rows], latest)
    if weight is not None:
        heavy = weight[order]
        uneven = np.unique(group[final & (heavy != heavy[ends][group])])
        if uneven.size:
            raise DataError(
                f"{count(uneven.size, 'pair')} of critic and case stand there several times with different weights; "
                "give an answer once, with one weight."
            )
    superseded: BoolArray = said != said[ends][group]
    replaced = int(superseded.sum())
    return order[ends], pair.size - ends.size - replaced, replaced


def moments(column: Coded, name: str) -> IntArray:
    """Return the times of the rows as codes in their order: numbers, dates, or text such as 2024-05-31 16:20:05.25."""
    if not any(isinstance(value, str) for value in column.values):
        return column.codes
    try:
        times = [datetime.fromisoformat(str(value).strip()) for value in column.values]
        ranks = {time: rank for rank, time in enumerate(sorted(set(times)))}
    except (TypeError, ValueError):  # no such text, or some with and some without a time zone
        raise DataError(
            f"`answered` column {name!r} must hold numbers, dates, or times such as 2024-05-31 16:20:05, all with or "
            f"all without a time zone; got {shown(list(column.values), _SHOWN)}."
        ) from None
    return np.array([ranks[time] for time in times], dtype=np.int64)[column.codes]


def _refuse(many: int, examples: list[tuple[str, str]], latest: bool) -> None:
    named = "; ".join(f"critic {shown([who], 1)} on case {shown([what], 1)}" for who, what in examples)
    advice = (
        "the latest answers have the same time (of a column of dates and times whole seconds count); correct them, or "
        "give the times as numbers."
        if latest
        else "correct them, or keep the latest with contradictions='latest' and the column `answered`."
    )
    raise DataError(f"{count(many, 'pair')} of critic and case have contradictory answers ({named}); {advice}")
