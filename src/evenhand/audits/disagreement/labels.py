"""The labels of the system: declared or seen, with their order where they have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.types import IntArray
from evenhand.table.keys import label_of, sort_key
from evenhand.table.keys import shown as shown_values
from evenhand.table.rows import Coded

MOST_LABELS = 100
_SHOWN = 5


@dataclass(frozen=True)
class Labels:
    """The labels, lowest first where they have an order.

    Parameters
    ----------
    names : their texts.
    ordered : whether they have an order.
    declared : whether they were declared, or are only those seen.
    """

    names: tuple[str, ...]
    ordered: bool
    declared: bool

    def codes_of(self, column: Coded, role: str, name: str) -> IntArray:
        """Return the code of each row's label; refuse a label that was not declared."""
        place = {label: code for code, label in enumerate(self.names)}
        known = np.array([place.get(label, -1) for label in column.labels] or [-1], dtype=np.int64)
        codes = known[column.codes]
        strange = [value for value, code in zip(column.values, known, strict=False) if code < 0]
        if strange:
            rows = int((codes < 0).sum())
            raise DataError(
                f"`{role}` column {name!r} holds {shown_values(strange, _SHOWN)} in {count(rows, 'row')}, which "
                f"{'is' if len(strange) == 1 else 'are'} not among the declared `labels` "
                f"({shown_values(list(self.names), _SHOWN)}); correct the rows or declare the label."
            )
        return codes


def find_labels(columns: dict[str, Coded], spec: DisagreementSpec) -> Labels:
    """Return the labels that were declared, or those seen in the columns of labels, sorted."""
    values = {value for column in columns.values() for value in column.values}
    numeric = not any(isinstance(value, str | bool) for value in columns["decision"].values)
    if spec.labels is not None:
        names = tuple(label_of(label) for label in spec.labels)
        return Labels(names, numeric if spec.ordered is None else spec.ordered, declared=True)
    _refuse_mixed([label_of(value) for value in values])
    names = tuple(dict.fromkeys(label_of(value) for value in sorted(values, key=sort_key)))
    if len(names) < 2:
        only = f" ({names[0]!r})" if names else ""
        raise DataError(
            f"`decision` column {spec.decision!r} holds one label only{only}, so there is nothing to disagree about; "
            "if the system can give others, declare them all with `labels`."
        )
    if len(names) > MOST_LABELS:
        raise DataError(
            f"`decision` column {spec.decision!r} holds {len(names):,} different values, more than {MOST_LABELS}; is "
            "it a score? Give a column of labels."
        )
    if spec.ordered and not numeric:
        raise ConfigError(
            f"`ordered` is true, but the labels are words ({shown_values(list(names), _SHOWN)}) whose order nobody "
            "knows; declare them with `labels`, lowest first."
        )
    return Labels(names, numeric if spec.ordered is None else spec.ordered, declared=False)


def _refuse_mixed(texts: list[str]) -> None:
    """Refuse labels of which some are numbers and some are words; files and frames turn such columns into text."""
    numbers = sorted(text for text in texts if _is_number(text))
    words = sorted(text for text in texts if not _is_number(text))
    if numbers and words:
        raise DataError(
            f"the labels are of mixed type: {shown_values(numbers, 3)} are numbers and {shown_values(words, 3)} "
            "text; write them alike, or declare them all with `labels`."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def require_order(labels: Labels, what: str) -> None:
    """Refuse what needs an order of the labels when there is none."""
    if not labels.ordered:
        raise ConfigError(
            f"{what} needs labels with an order, and these have none ({shown_values(list(labels.names), _SHOWN)}); "
            "declare `labels`, lowest first, and set `ordered` to true."
        )
