"""Which factors people ticked behind their overall answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenhand.core.numbers import finite
from evenhand.stats.correlation import adjusted_p
from evenhand.stats.intervals import wilson
from evenhand.stats.regression import ols
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.analysis.records import FactorRecord
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.responses import Responses
from evenhand.study.schema import FACTORS

DIFFERENCE = "trajectory - aggregate"


def factor_records(responses: Responses, spec: AnalysisSpec) -> tuple[FactorRecord, ...]:
    """Return the share of answers in which each factor was ticked, and trajectory's share less that of the aggregate.

    The question is optional: an answer counts when at least one factor was ticked. The published form is the share with
    Wilson's interval over rows; the clustered one lets the answers of a person depend on each other.
    """
    records = list(_records(responses, spec))
    tested = [at for at, one in enumerate(records) if one.p_value is not None]
    p = np.array([records[at].p_value for at in tested], dtype=np.float64)
    for at, adjusted in zip(tested, adjusted_p(p, "bonferroni"), strict=True):
        records[at] = replace(records[at], p_adjusted=float(adjusted))
    return tuple(records)


def _records(responses: Responses, spec: AnalysisSpec) -> Iterator[FactorRecord]:
    ticked = np.column_stack([responses.numbers(f"factor_{factor}") for factor in FACTORS])
    asked = (np.nan_to_num(ticked) > 0).any(axis=1)
    names = responses.condition_of_rows()
    for condition in responses.conditions:
        rows = asked & (names == condition)
        if not rows.any():
            continue
        values, who = np.nan_to_num(ticked[rows]), responses.person[rows]
        for at, factor in enumerate(FACTORS):
            for method, found in share_estimates(values[:, at], who, spec.confidence).items():
                yield _record(condition, factor, method, who, found._replace(statistic=np.nan, p_value=np.nan))
        gap = clustered_mean(values[:, 0] - values[:, 1], who, spec.confidence)
        yield _record(condition, DIFFERENCE, "clustered", who, gap)


class MeanEstimate(NamedTuple):
    """A mean with its limits, and the test that it is 0."""

    value: float
    low: float
    high: float
    statistic: float
    p_value: float


def share_estimates(y: FloatArray, who: IntArray, confidence: float) -> dict[str, MeanEstimate]:
    """Return a share of rows with Wilson's interval (published), and with one that lets a person's rows depend."""
    share = float(y.mean())
    low, high = wilson(share, len(y), confidence)
    published = MeanEstimate(share, float(low), float(high), np.nan, np.nan)
    return {"published": published, "clustered": clustered_mean(y, who, confidence)}


def clustered_mean(y: FloatArray, who: IntArray, confidence: float) -> MeanEstimate:
    """Return a mean over rows with clustered limits; nan where people do not differ."""
    fit = ols(np.zeros((len(y), 0)), y, (), who)
    found = fit.coefficients("cluster", confidence)
    if not found.stderr[0] > 0:
        return MeanEstimate(float(fit.coef[0]), np.nan, np.nan, np.nan, np.nan)
    return MeanEstimate(*(float(v[0]) for v in (fit.coef, found.low, found.high, found.statistic, found.p_value)))


def _record(condition: str, term: str, method: str, who: IntArray, found: MeanEstimate) -> FactorRecord:
    status = "ok" if finite(found.low) is not None else "no interval: too few people, or all answered alike"
    return FactorRecord(
        condition,
        "overall",
        term,
        method,
        len(who),
        len(np.unique(who)),
        finite(found.statistic),
        finite(found.p_value),
        None,
        finite(found.value),
        finite(found.low),
        finite(found.high),
        status,
    )
