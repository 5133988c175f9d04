"""What critics answer, in the words that a column may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import DataError, count
from evenhand.stats.feedback import AGREE, DISAGREE, RIGHT, TOO_HIGH, TOO_LOW, FeedbackKind
from evenhand.stats.types import IntArray
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of, shown
from evenhand.table.rows import Coded

_UNKNOWN, _NONE = -2, -1
_AGREE = dict.fromkeys(("agree", "agrees", "right", "correct", "about right"), AGREE)
_DISAGREE = dict.fromkeys(("disagree", "disagrees", "wrong"), DISAGREE)
_DIRECTION = {"too high": TOO_HIGH, "too low": TOO_LOW}
_YES_NO = dict.fromkeys(FALSE_WORDS, AGREE) | dict.fromkeys(TRUE_WORDS, DISAGREE)


class Said(NamedTuple):
    """The answers as codes of a kind of feedback."""

    kind: FeedbackKind
    codes: IntArray


def read_answers(columns: Mapping[str, Coded], names: Mapping[str, str]) -> Said:
    """Return the answers from the columns `disagree`, `disagree` and `direction`, or `answer`."""
    if "answer" in columns:
        return _in_words(columns["answer"], names["answer"])
    disagree = _codes(columns["disagree"], _YES_NO, "disagree", names["disagree"], "0 or 1, or yes or no")
    if "direction" not in columns:
        return Said("agreement", disagree)
    return Said("direction", _with_direction(disagree, columns["direction"], names))


def _in_words(column: Coded, name: str) -> Said:
    used = {_plain(value) for value in column.values}
    if used & set(_DIRECTION):
        wanted = "right, too high or too low (a plain 'disagree' has no direction)"
        codes = _codes(column, _AGREE | _DIRECTION, "answer", name, wanted)
        return Said("direction", codes)
    wanted = "agree or disagree, or right, too high or too low"
    return Said("agreement", _codes(column, _AGREE | _DISAGREE, "answer", name, wanted))


def _with_direction(disagree: IntArray, column: Coded, names: Mapping[str, str]) -> IntArray:
    name = names["direction"]
    codes = _codes(column, _AGREE | _DIRECTION, "direction", name, "too high or too low (right or empty if neither)")
    agrees = disagree == AGREE
    torn = int((agrees & (codes > RIGHT)).sum())
    if torn:
        raise DataError(
            f"in {count(torn, 'row')} the critic agrees in {names['disagree']!r} and says too high or too low in "
            f"{name!r}; correct them."
        )
    disagrees = disagree == DISAGREE
    silent = int((disagrees & (codes <= RIGHT)).sum())
    if silent:
        raise DataError(
            f"in {count(silent, 'row')} the critic disagrees in {names['disagree']!r} without saying in {name!r} "
            "whether the label is too high or too low; fill them, or leave `direction` out."
        )
    return np.where(agrees, RIGHT, np.where(disagrees, codes, _NONE))


def _codes(column: Coded, words: Mapping[str, int], role: str, name: str, wanted: str) -> IntArray:
    """Return the code of each row's word, -1 where there is none; refuse words that mean nothing."""
    meant = np.array([*(words.get(_plain(value), _UNKNOWN) for value in column.values), _NONE], dtype=np.int64)
    codes = meant[column.codes]
    strange = [value for value, code in zip(column.values, meant, strict=False) if code == _UNKNOWN]
    if strange:
        rows = int((codes == _UNKNOWN).sum())
        raise DataError(
            f"`{role}` column {name!r} holds {shown(strange, 3)} in {count(rows, 'row')}; an answer must be {wanted}."
        )
    return codes


def _plain(value: Any) -> str:
    """Return a word in small letters, with blanks for underscores and hyphens.

    Examples
    --------
    >>> _plain(" Too_High "), _plain(True), _plain(1.0)
    ('too high', 'true', '1')
    """
    return " ".join(label_of(value).replace("_", " ").replace("-", " ").split()).casefold()


def answer_words(kind: FeedbackKind) -> Sequence[str]:
    """Return the words of the codes of a kind of feedback."""
    return ("agree", "disagree") if kind == "agreement" else ("right", "too high", "too low")
