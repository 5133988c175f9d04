"""Read the answers of a table: a template, a group and an answer per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audits.paired.spec import PairedSpec
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.types import LARGEST, BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of
from evenhand.table.table import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """The answers, one per row.

    Parameters
    ----------
    template : (rows,) the code of the template.
    value : (rows,) the answer: 1 for a pass, 0 for a fail, or a number; nan for a refusal.
    groups : the group codes of the rows.
    placebos : the columns that should not change answers, by name.
    passes : the label of the passing answer; None for numeric answers.
    dropped : the number of rows left out for a missing answer.
    """

    template: IntArray
    value: FloatArray
    groups: Cells
    placebos: dict[str, Coded]
    passes: str | None
    dropped: int

    @property
    def refused(self) -> BoolArray:
        """(rows,) Whether the answer is a refusal."""
        return np.isnan(self.value)

    def of(self, metric: str) -> FloatArray:
        """Return each row's value of a metric; nan for rows that do not count."""
        return self.refused.astype(np.float64) if metric == "refusal_rate" else self.value

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that apply to the answers."""
        answered = () if self.refused.all() else ("mean_answer",) if self.passes is None else ("pass_rate",)
        return (*answered, *(("refusal_rate",) if self.refused.any() else ()))


def gather(table: Table, spec: PairedSpec) -> Answers:
    """Read the answers of a table."""
    if table.roles.weight is not None:
        raise ConfigError(
            "paired tests give every template the same weight; leave the survey weight {weight!r} out.",
            weight=table.roles.weight,
        )
    placebos = {f"placebo {name}": name for name in spec.placebo or ()}
    rows = table.coded_rows({"template": spec.template, "answer": spec.answer, **placebos})
    template, answer = rows.columns["template"], rows.columns["answer"]
    if template.absent:
        raise DataError(
            "`template` is missing in {rows}; fill it, or leave the rows out.", rows=count(template.absent, "row")
        )
    numbers, passes = _numbers(answer, spec)
    value = np.append(numbers, np.nan)[answer.codes]
    keep = _keep_answered(answer, spec.missing or table.roles.missing)
    order = np.flatnonzero(keep)[np.lexsort((value[keep], template.codes[keep]))]
    return Answers(
        template=np.unique(template.codes[order], return_inverse=True)[1],
        value=value[order],
        groups=rows.groups.where(order),
        placebos={
            name: Coded(rows.columns[key].codes[order], rows.columns[key].values) for key, name in placebos.items()
        },
        passes=passes,
        dropped=int((~keep).sum()),
    )


def _keep_answered(answer: Coded, policy: str) -> BoolArray:
    answered = answer.codes >= 0
    if policy == "error" and not answered.all():
        raise DataError(
            "the answer is missing in {rows}; leave them out with `missing='drop'`, or count them as refusals with "
            "`missing='refusal'`.",
            rows=count(answer.absent, "row"),
        )
    keep = np.ones(len(answered), dtype=np.bool_) if policy == "refusal" else answered
    if not keep.any():
        raise DataError("there is no answer in any row.")
    return keep


def _numbers(answer: Coded, spec: PairedSpec) -> tuple[FloatArray, str | None]:
    """Return the number of each distinct answer (nan for refusals), and the label of the passing answer."""
    labels = answer.labels
    refusals = {label_of(value) for value in spec.refused}
    if unknown := sorted(refusals - set(labels)):
        raise DataError("`refused` names {name!r}, which is no answer in these data.", name=unknown[0])
    kept = [position for position, label in enumerate(labels) if label not in refusals]
    passes = _pass_among([answer.values[position] for position in kept], spec)
    numbers = np.full(len(labels), np.nan)
    for position in kept:
        numbers[position] = float(labels[position] == passes) if passes is not None else float(answer.values[position])
    if (np.abs(numbers[kept]) > LARGEST).any():
        raise DataError("some answers are not finite, or too large for the arithmetic; mend them.")
    return numbers, passes


def _pass_among(values: Sequence[Any], spec: PairedSpec) -> str | None:
    """Return the label of the passing answer; None for numeric answers."""
    labels = [label_of(value) for value in values]
    if spec.positive is not None:
        if label_of(spec.positive) not in labels:
            raise DataError("`positive` is {positive!r}, which nobody answered.", positive=spec.positive)
        return label_of(spec.positive)
    words = [label.strip().lower() for label in labels]
    if set(words) <= {*TRUE_WORDS, *FALSE_WORDS}:
        return next((label for label, word in zip(labels, words, strict=True) if word in TRUE_WORDS), "true")
    if any(isinstance(value, str) for value in values):
        raise DataError(
            "the answers are words ({examples}); name the one that passes as `positive`, and refusals as `refused`.",
            examples=", ".join(repr(label) for label in labels[:3]),
        )
    return None
