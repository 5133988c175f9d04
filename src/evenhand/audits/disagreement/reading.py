"""Convert words in columns to codes: answers, labels, and repeated answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.errors import ConfigError, DataError, count, problem
from evenhand.messages import Message
from evenhand.stats.feedback import AGREE, DISAGREE, RIGHT, TOO_HIGH, TOO_LOW, FeedbackKind
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of, shown, sort_key, yes_or_no

MOST_LABELS = 100
_SHOWN_LABELS, _SHOWN = 5, 3
_UNKNOWN, _NONE = -2, -1
_AGREE = dict.fromkeys(("agree", "agrees", "right", "correct", "about right"), AGREE)
_DISAGREE = dict.fromkeys(("disagree", "disagrees", "wrong"), DISAGREE)
_DIRECTION = {"too high": TOO_HIGH, "too low": TOO_LOW}
_YES_NO = dict.fromkeys(FALSE_WORDS, AGREE) | dict.fromkeys(TRUE_WORDS, DISAGREE)


def read_answers(columns: Mapping[str, Coded], names: Mapping[str, str]) -> tuple[FeedbackKind, IntArray]:
    """Return the kind of feedback and the answers' codes, from `answer`, or from `disagree` and `direction`."""
    if "answer" in columns:
        return _answers_in_words(columns["answer"], names["answer"])
    disagree = _codes(columns["disagree"], _YES_NO, "disagree", names["disagree"], "0 or 1, or yes or no")
    if "direction" not in columns:
        return "agreement", disagree
    return "direction", _with_direction(disagree, columns["direction"], names)


def _answers_in_words(column: Coded, name: str) -> tuple[FeedbackKind, IntArray]:
    if {_normalised(value) for value in column.values} & set(_DIRECTION):
        wanted = "right, too high or too low (a plain 'disagree' has no direction)"
        return "direction", _codes(column, _AGREE | _DIRECTION, "answer", name, wanted)
    wanted = "agree or disagree, or right, too high or too low"
    return "agreement", _codes(column, _AGREE | _DISAGREE, "answer", name, wanted)


def _with_direction(disagree: IntArray, column: Coded, names: Mapping[str, str]) -> IntArray:
    name = names["direction"]
    codes = _codes(column, _AGREE | _DIRECTION, "direction", name, "too high or too low (right or empty if neither)")
    agrees = disagree == AGREE
    contradictory = int((agrees & (codes > RIGHT)).sum())
    if contradictory:
        raise DataError(
            "in {rows} the critic agrees in {disagree!r} and says too high or too low in {direction!r}; correct them.",
            rows=count(contradictory, "row"),
            disagree=names["disagree"],
            direction=name,
        )
    disagrees = disagree == DISAGREE
    silent = int((disagrees & (codes <= RIGHT)).sum())
    if silent:
        raise DataError(
            "in {rows} the critic disagrees in {disagree!r} without saying in {direction!r} whether the label is too "
            "high or too low; fill them, or leave `direction` out.",
            rows=count(silent, "row"),
            disagree=names["disagree"],
            direction=name,
        )
    return np.where(agrees, RIGHT, np.where(disagrees, codes, _NONE))


def _codes(column: Coded, words: Mapping[str, int], role: str, name: str, wanted: str) -> IntArray:
    """Return the code of each row's word, -1 for missing words; refuse unknown words."""
    meanings = np.array([*(words.get(_normalised(value), _UNKNOWN) for value in column.values), _NONE], dtype=np.int64)
    codes = meanings[column.codes]
    unknown = [value for value, code in zip(column.values, meanings, strict=False) if code == _UNKNOWN]
    if unknown:
        rows = int((codes == _UNKNOWN).sum())
        advice = None
        if role == "answer" and all(yes_or_no(value) is not None for value in column.values):
            advice = problem(
                "; if yes means that the critic disagrees, name the column as `disagree={column!r}` instead",
                column=name,
            )
        raise DataError(
            "`{role}` column {column!r} holds {values} in {rows}; an answer must be {wanted}{advice}.",
            role=role,
            column=name,
            values=shown(unknown, 3),
            rows=count(rows, "row"),
            wanted=wanted,
            advice=advice,
        )
    return codes


def _normalised(value: object) -> str:
    """Return a word in lower case, with blanks for underscores and hyphens.

    Examples
    --------
    >>> _normalised(" Too_High "), _normalised(True), _normalised(1.0)
    ('too high', 'true', '1')
    """
    return " ".join(label_of(value).replace("_", " ").replace("-", " ").split()).casefold()


@dataclass(frozen=True)
class Labels:
    """The labels, in rising order if they are ordered.

    Parameters
    ----------
    names : the texts of the labels.
    ordered : whether the labels are ordered.
    declared : whether the user declared the labels; otherwise they come from the data.
    """

    names: tuple[str, ...]
    ordered: bool
    declared: bool

    def codes_of(self, column: Coded, role: str, name: str) -> IntArray:
        """Return the code of each row's label; refuse an undeclared label."""
        codes, unknown = positions_in(self.names, column)
        if unknown:
            rows = int((codes < 0).sum())
            raise DataError(
                "`{role}` column {column!r} holds {values} in {rows}, which {which} not among the declared `labels` "
                "({labels}); correct the rows or declare the label.",
                role=role,
                column=name,
                values=shown(unknown, _SHOWN_LABELS),
                rows=count(rows, "row"),
                which="is" if len(unknown) == 1 else "are",
                labels=shown(list(self.names), _SHOWN_LABELS),
            )
        return codes

    def require_order(self, what: Message) -> None:
        """Refuse a feature that needs ordered labels if the labels are not ordered."""
        if not self.ordered:
            raise ConfigError(
                "{what} needs labels with an order, and these have none ({labels}); declare `labels`, lowest first, "
                "and set `ordered` to true.",
                what=what,
                labels=shown(list(self.names), _SHOWN_LABELS),
            )


def positions_in(names: Sequence[str], column: Coded) -> tuple[IntArray, list[Any]]:
    """Return the position of each row's value among names (-1 for unknown values), and the unknown values."""
    position = {name: code for code, name in enumerate(names)}
    positions = np.array([position.get(label_of(value), -1) for value in column.values] or [-1], dtype=np.int64)
    return positions[column.codes], [value for value, code in zip(column.values, positions, strict=False) if code < 0]


def find_labels(columns: Mapping[str, Coded], spec: DisagreementSpec) -> Labels:
    """Return the declared labels, or the sorted labels of the columns."""
    declared, ordered = spec.answers.labels, spec.answers.ordered
    numeric = not any(isinstance(value, str | bool) for value in columns["decision"].values)
    if declared is not None:
        return Labels(tuple(map(label_of, declared)), numeric if ordered is None else ordered, declared=True)
    names = _seen_labels(columns.values(), spec.decision)
    if ordered and not numeric:
        raise ConfigError(
            "`ordered` is true, but the labels are words ({labels}) whose order nobody knows; declare them with "
            "`labels`, lowest first.",
            labels=shown(list(names), _SHOWN_LABELS),
        )
    return Labels(names, numeric if ordered is None else ordered, declared=False)


def _seen_labels(columns: Iterable[Coded], decision: str) -> tuple[str, ...]:
    """Return the labels in columns, sorted; refuse incomplete or mixed labels."""
    values = {value for column in columns for value in column.values}
    _refuse_mixed([label_of(value) for value in values])
    names = tuple(dict.fromkeys(label_of(value) for value in sorted(values, key=sort_key)))
    if len(names) < 2:
        raise DataError(
            "`decision` column {column!r} holds one label only{label}, so there is nothing to disagree about; if the "
            "system can give others, declare them all with `labels`.",
            column=decision,
            label=problem(" ({label!r})", label=names[0]) if names else None,
        )
    if len(names) > MOST_LABELS:
        raise DataError(
            "`decision` column {column!r} holds {number:,} different values, more than {most}; is it a score? Give a "
            "column of labels.",
            column=decision,
            number=len(names),
            most=MOST_LABELS,
        )
    return names


def _refuse_mixed(texts: list[str]) -> None:
    """Refuse labels that mix numbers and words, because files and frames convert such columns to text."""
    numbers = sorted(text for text in texts if _is_number(text))
    words = sorted(text for text in texts if not _is_number(text))
    if numbers and words:
        raise DataError(
            "the labels are of mixed type: {numbers} are numbers and {words} text; write them alike, or declare them "
            "all with `labels`.",
            numbers=shown(numbers, 3),
            words=shown(words, 3),
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerRows:
    """Answers in the order of the data, unsorted and unchecked.

    Parameters
    ----------
    critic, case, columns : (rows,) the codes, and the columns of the answers by role.
    label, groups, cases : (cases,) the system's label, the group codes, and the names of the cases.
    weight : (rows,) survey weights, or None.
    labels : the labels.
    traits : (cases, traits) the traits that define like cases, or None.
    answer, truth : (rows,) the codes, after they are read.
    time : (rows,) the codes in temporal order if the latest answer counts, else None.
    dropped : the numbers of incomplete rows left out, by the missing item.
    """

    critic: Coded
    case: IntArray
    columns: Mapping[str, Coded]
    label: IntArray
    groups: Cells
    cases: tuple[str, ...]
    weight: FloatArray | None
    labels: Labels
    traits: FloatArray | None = None
    answer: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    truth: IntArray | None = None
    time: IntArray | None = None
    dropped: tuple[tuple[int, Message], ...] = ()


def one_answer_each(rows: AnswerRows) -> tuple[IntArray, int, int]:
    """Return one row for each pair of critic and case; refuse contradictions.

    Returns
    -------
    The rows to keep, sorted by critic and case; the number of repeated answers; and the number of answers replaced by
        a later one.
    """
    latest = rows.time is not None
    pair = rows.critic.codes * len(rows.cases) + rows.case
    order = np.argsort(pair, kind="stable")
    sorted_pair = pair[order]
    if not (sorted_pair[1:] == sorted_pair[:-1]).any():
        return order, 0, 0
    content = rows.answer if rows.truth is None else rows.answer * (int(rows.truth.max()) + 1) + rows.truth
    time = np.zeros_like(content) if rows.time is None else rows.time
    order = np.lexsort((content, time, pair))
    pair, content, time = pair[order], content[order], time[order]
    first = np.concatenate([[True], pair[1:] != pair[:-1]])
    start = np.flatnonzero(first)
    ends = np.concatenate([start[1:], [pair.size]]) - 1
    of_pair = ends[np.cumsum(first) - 1]
    final = (time == time[of_pair]) if latest else np.ones(pair.size, dtype=np.bool_)
    replaced: BoolArray = content != content[of_pair]
    contradictory = np.unique(of_pair[final & replaced])
    if contradictory.size:
        examples = order[start[np.searchsorted(ends, contradictory[:_SHOWN])]]
        pairs = [(rows.critic.labels[rows.critic.codes[row]], rows.cases[rows.case[row]]) for row in examples]
        _refuse_contradictions(contradictory.size, pairs, latest)
    if rows.weight is not None:
        weight = rows.weight[order]
        uneven = np.unique(of_pair[final & (weight != weight[of_pair])])
        if uneven.size:
            raise DataError(
                "{pairs} of critic and case appear several times with different weights; give an answer once, "
                "with one weight.",
                pairs=count(uneven.size, "pair"),
            )
    superseded = int(replaced.sum())
    return order[ends], pair.size - ends.size - superseded, superseded


def read_times(column: Coded, name: str) -> IntArray:
    """Return the times of the rows as ordered codes, from numbers, dates, or text such as 2024-05-31 16:20:05.25."""
    if not any(isinstance(value, str) for value in column.values):
        return column.codes
    try:
        times = [datetime.fromisoformat(str(value).strip()) for value in column.values]
        ranks = {time: rank for rank, time in enumerate(sorted(set(times)))}
    except (TypeError, ValueError):  # no such text, or some with and some without a time zone
        raise DataError(
            "`answered` column {column!r} must hold numbers, dates, or times such as 2024-05-31 16:20:05, all with or "
            "all without a time zone; got {values}.",
            column=name,
            values=shown(list(column.values), _SHOWN),
        ) from None
    return np.array([ranks[time] for time in times], dtype=np.int64)[column.codes]


def _refuse_contradictions(pairs: int, examples: list[tuple[str, str]], latest: bool) -> None:
    advice = (
        problem(
            "the latest answers have the same time (of a column of dates and times whole seconds count); correct "
            "them, or give the times as numbers."
        )
        if latest
        else problem("correct them, or keep the latest with `contradictions='latest'` and the column `answered`.")
    )
    raise DataError(
        "{pairs} of critic and case have contradictory answers ({examples:semicolons}); {advice}",
        pairs=count(pairs, "pair"),
        examples=tuple(
            problem("critic {critic} on case {case}", critic=shown([who], 1), case=shown([what], 1))
            for who, what in examples
        ),
        advice=advice,
    )
