"""Rows as arrays, for the statistics that cells cannot give: ranks, pairs of people, who answered what."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded


@dataclass(frozen=True)
class ScoreRows:
    """One model's scores for statistics of ranks: every row, or every fine bin of a table too long for that.

    Parameters
    ----------
    score, positive : the score and whether the outcome is positive, in one canonical order.
    weight, squares : sums of the survey weights (1 without them) and of their squares.
    groups : the group codes of the rows, with the number of rows that each entry stands for.
    binned : whether scores were put into bins, so that scores of one bin count as tied.
    """

    score: FloatArray
    positive: BoolArray
    weight: FloatArray
    squares: FloatArray
    groups: Cells
    binned: bool


@dataclass(frozen=True)
class PersonRows:
    """Every person's numbers, for statistics of whole people; one entry a row, in one canonical order.

    Parameters
    ----------
    numbers : the columns asked for; nan where missing.
    scores : every model's scores.
    weight : survey weights, or None.
    groups : the group codes of the rows.
    ids : what identifies the people as text, or None where the table has no id.
    """

    numbers: dict[str, FloatArray]
    scores: dict[str, FloatArray]
    weight: FloatArray | None
    groups: Cells
    ids: tuple[str, ...] | None


@dataclass(frozen=True)
class CodedRows:
    """Columns as codes into their distinct values, one entry a row, in the engine's order.

    Parameters
    ----------
    columns : the columns asked for.
    groups : the group codes of the rows.
    weight : survey weights, or None.
    """

    columns: dict[str, Coded]
    groups: Cells
    weight: FloatArray | None
