"""The records of a study's analysis: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EstimateRecord:
    """One number of the analysis with its test.

    Parameters
    ----------
    model : 'condition' for one condition by itself, 'moderation' for all in one model.
    condition, target : where; the target is 'overall', 'output' or, for the two distances themselves, 'trajectory'.
    term : what, such as 'aggregate', 'trajectory', 'trajectory - aggregate', 'weight' or a null hypothesis.
    method : how; the published form takes rows for people, the others do not.
    n, people : answers and people behind it.
    stderr, statistic, df, p_value : standard error and test; df is null for a normal or chi-square statistic.
    p_adjusted, p_holm : p-value for the whole family by Bonferroni and by Holm.
    """

    model: str
    condition: str
    target: str
    term: str
    method: str
    n: int
    people: int
    stderr: float | None
    statistic: float | None
    df: float | None
    p_value: float | None
    p_adjusted: float | None
    p_holm: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class FactorRecord:
    """How often people ticked a factor behind their overall answer; only the difference of two factors has a test."""

    condition: str
    target: str
    term: str
    method: str
    n: int
    people: int
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class BonusRecord:
    """A person's truth-serum score (`value`), rank and bonus; no test belongs to it."""

    participant: str
    condition: str
    target: str
    term: str
    method: str
    n: int
    rank: int | None
    bonus: bool
    statistic: None
    p_value: None
    p_adjusted: None
    value: float | None
    low: float | None
    high: float | None
    status: str
