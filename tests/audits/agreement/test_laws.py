"""Laws of every metric of agreement that the audit has: in its range, in its interval, the limits in order."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.audits.agreement.draws import draw_group, pooled
from evenhand.audits.agreement.estimate import value_records
from evenhand.audits.agreement.gather import RatedPeople
from evenhand.audits.agreement.metrics import SCALES, Scale, metrics_for
from evenhand.audits.agreement.result import AgreementValue
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.stats.types import FloatArray
from evenhand.table.cells import Cells

SHARES = {"agreement", "positive_agreement", "negative_agreement"}
AMOUNTS = {"mean_squared_error", "variance_first", "variance_second"}
MEANS = {"icc_ak", "icc_ck", "icc_k", "icc_spread"}


def value_range(metric: str, raters: int, people: float) -> tuple[float, float]:
    """What a metric can be, from its formula: the lowest is reached by raters who contradict each other."""
    if metric in {"icc_c1", "icc_1"}:
        return -1 / (raters - 1), 1
    if metric == "icc_a1":
        least = raters - 1 - raters / people
        return -1 / least if least > 0 else -inf, 1
    if metric in MEANS:
        return -inf, 1
    if metric in AMOUNTS or metric == "mean_error":
        return -inf if metric == "mean_error" else 0, inf
    return 0 if metric in SHARES else -1, 1


def records(scale: Scale, ratings: FloatArray, weight: FloatArray | None, confidence: float) -> list[AgreementValue]:
    categories = () if scale == "interval" else tuple("abcd"[: 2 if scale == "binary" else 4])
    rated = RatedPeople(
        scale=scale,
        labels=categories,
        ratings=ratings,
        weight=weight,
        groups=Cells({}, {}, np.ones(len(ratings))),  # type: ignore[arg-type]
        dropped=0,
        raters=("a", "b"),
    )
    metrics = metrics_for(scale, ratings.shape[1])
    spec = AgreementSpec(raters=("a", "b"), resamples=100, confidence=confidence)
    everybody = np.ones(len(ratings), dtype=np.bool_)
    drawn = draw_group(rated, everybody, list(metrics.values()), pooled(rated), spec)
    return list(value_records(drawn, None, "(overall)", metrics, confidence))


@st.composite
def panels(draw: st.DrawFn) -> tuple[Scale, FloatArray, FloatArray | None]:
    """Small whole numbers: raters at random, raters who contradict the first one, and raters who never vary."""
    scale: Scale = draw(st.sampled_from(SCALES))
    people, raters = draw(st.sampled_from([1, 2, 2, 3, 6, 24])), draw(st.sampled_from([2, 2, 3, 5]))
    top = 1 if scale == "binary" else 3
    row = st.lists(st.integers(0, top), min_size=people, max_size=people)
    columns = [np.array(draw(row))]
    for _ in range(raters - 1):
        kind = draw(st.sampled_from(["any", "opposed", "constant", "same"]))
        other = {"opposed": top - columns[0], "constant": np.full(people, top), "same": columns[0]}
        columns.append(other[kind] if kind in other else np.array(draw(row)))
    weight = draw(
        st.none() | st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=people, max_size=people).map(np.array)
    )
    return scale, np.column_stack(columns).astype(float), weight


OPPOSED: Any = np.column_stack([np.arange(24.0) % 7, 6.2 - np.arange(24.0) % 7])


@settings(deadline=None, max_examples=20)
@example(("interval", OPPOSED, None), 0.95)
@example(("interval", np.array([[0.0, 3.0], [1.0, 2.5]]), None), 0.95)
@example(("interval", np.array([[0.0, 1.0], [2.0, 1.0]]), None), 0.01)
@given(panels(), st.sampled_from([0.01, 0.5, 0.8, 0.95, 0.999]))
def test_every_value_is_in_its_range_and_in_its_interval(
    panel: tuple[Scale, FloatArray, FloatArray | None], confidence: float
) -> None:
    scale, ratings, weight = panel
    for record in records(scale, ratings, weight, confidence):
        low, high = (-inf if record.low is None else record.low), (inf if record.high is None else record.high)
        if record.value is None:
            assert record.status.text.startswith("undefined: ")
            assert (record.low, record.high) == (None, None)
            continue
        least, most = value_range(record.metric, ratings.shape[1], len(ratings))
        assert least - 1e-9 <= record.value <= most + 1e-9, record
        assert low - 1e-12 <= record.value <= high + 1e-12, record
        of_fewer = len(ratings) / 2  # resamples contain fewer different people
        least, most = value_range(record.metric, ratings.shape[1], of_fewer)
        assert all(limit is None or least - 1e-9 <= limit <= most + 1e-9 for limit in (record.low, record.high)), record
        assert (record.status.id == "core.ok") == (record.low is not None and record.high is not None), record


def test_the_mean_of_raters_who_contradict_each_other_has_no_icc() -> None:
    found = {record.metric: record for record in records("interval", OPPOSED, None, 0.95)}
    assert found["icc_ak"].value is None
    assert found["icc_ak"].status.text == "undefined: the formula divides by a variance that is estimated below 0"
    assert found["icc_a1"].value == pytest.approx(-1.0, abs=0.1)


def test_a_limit_that_does_not_exist_is_said_to_be_none() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(size=24)
    ratings = np.column_stack([base, -0.8 * base + rng.normal(size=24) * 0.5])
    icc = {record.metric: record for record in records("interval", ratings, None, 0.95)}["icc_ak"]
    assert icc.value is not None
    assert icc.high is not None
    assert icc.value < icc.high
    assert icc.low is None
    assert icc.status.text.startswith("unbounded below: ")
