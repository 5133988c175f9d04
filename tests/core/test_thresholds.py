"""Verdicts, thresholds and the words of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from evenhand.core.metrics import Limit, Metric, gap_limits, ratio_limits
from evenhand.core.records import Gap, Value
from evenhand.core.thresholds import (
    Threshold,
    judge,
    judge_all,
    judged_size,
    limit_in_unit,
    limits_record,
    require_known,
    resolve,
    size_of_gap,
)
from evenhand.errors import ConfigError
from evenhand.messages.formats import finite, show, show_interval


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.8, 0.9, "meets"),  # on the limit is within it
        (0.7, 0.79, "does_not_meet"),
        (0.7, 0.8, "insufficient_evidence"),
        (0.85, None, "meets"),  # unbounded above
        (0.7, None, "insufficient_evidence"),
        (None, None, "insufficient_evidence"),
    ],
)
def test_a_lower_limit(low: float | None, high: float | None, verdict: str) -> None:
    assert judge(Threshold(metric="tpr", min=0.8), 0.8, low, high) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.0, 0.1, "meets"),
        (0.11, 0.2, "does_not_meet"),
        (0.1, 0.2, "insufficient_evidence"),
        (0.2, None, "does_not_meet"),
    ],
)
def test_an_upper_limit(low: float, high: float | None, verdict: str) -> None:
    assert judge(Threshold(metric="tpr", max=0.1), 0.1, low, high) == verdict


def test_an_upper_limit_of_zero_is_a_limit() -> None:
    assert judge(Threshold(metric="tpr", max=0.0), 0.1, 0.05, 0.2) == "does_not_meet"


def test_an_undefined_gap_is_never_a_pass() -> None:
    assert judge(Threshold(metric="tpr", max=0.1), None, None, None) == "insufficient_evidence"


TPR = Metric(name="tpr", title="True positive rate", unit="share", limits=(*gap_limits(), *ratio_limits()))
EAIF = Metric(name="eaif", title="EaIF", unit="index", limits=(Limit("value", "min"),))


def resolved(**fields: object) -> Threshold:
    aliases = {"parity": ("tpr", "ratio", "worst_pair")}
    threshold = Threshold.model_validate({"metric": "tpr", **fields})
    return resolve(threshold, "audit", {"tpr": TPR, "eaif": EAIF}, aliases, ("grouping", "group"))  # type: ignore[arg-type]


def test_what_a_threshold_limits_follows_from_its_metric() -> None:
    assert (resolved(min=0.8).of, resolved(min=0.8).kind, resolved(min=0.8).against) == ("gap", "ratio", "worst_pair")
    assert resolved(max=0.1).kind == "difference"
    value = resolved(metric="eaif", min=0.9)
    assert (value.of, value.kind, value.against, value.audit) == ("value", None, None, "audit")
    assert resolved(metric="parity", min=0.8).kind == "ratio"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max": 1.25, "kind": "ratio"}, "must give max= of 0 or more and below 1 .a difference., or min= above 0"),
        ({"metric": "parity", "max": 0.2}, "must give min= above 0 and at most 1 .a ratio.; got at most 0.2"),
        ({"metric": "eaif", "max": 0.2}, "must give min= above 0 and at most 1; got at most 0.2"),
        ({"metric": "eaif", "min": 0.2, "of": "gap"}, "got at least 0.2 and of 'gap'"),
        ({"max": 0.1, "group": "F"}, "names a `group`, but limits the worst pair"),
        ({"max": 0.1, "model": "m"}, "has no `model`"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolved(**fields)


def gap(value: float, low: float, high: float, together: tuple[float, float] | None = None) -> Gap:
    joint_low, joint_high = together or (low, high)
    numbers: dict[str, Any] = {
        "value": value,
        "low": low,
        "high": high,
        "joint_low": joint_low,
        "joint_high": joint_high,
    }
    return Gap(metric="tpr", kind="difference", against="worst_pair", n=10, **numbers)


def test_one_point_is_singular() -> None:
    assert [limit_in_unit("at_most", limit, "points").id for limit in (0.01, 0.02)] == [
        "core.at_most_point",
        "core.at_most_points",
    ]


def test_several_records_are_met_together_and_broken_by_one() -> None:
    limit = resolved(max=0.1)
    within, broken, unsure = gap(0.05, 0.02, 0.08), gap(0.3, 0.2, 0.4), gap(0.1, 0.05, 0.15)
    worse = gap(0.5, 0.4, 0.6)
    assert judge_all(limit, [within, within]) == (within, "meets")
    assert judge_all(limit, [within, unsure]) == (within, "insufficient_evidence")
    assert judge_all(limit, [within, broken, worse]) == (worse, "does_not_meet")
    assert judge_all(None, [unsure])[1] == "no_threshold"


def test_a_limit_is_met_by_own_limits_and_broken_by_joint_ones() -> None:
    limit = resolved(max=0.1)
    met, beyond = gap(0.05, 0.02, 0.08, (0.0, 0.12)), gap(0.2, 0.12, 0.3, (0.08, 0.35))
    assert judge_all(limit, [met])[1] == "meets"
    assert judge_all(limit, [beyond])[1] == "insufficient_evidence"
    assert judge_all(limit, [gap(0.2, 0.13, 0.3, (0.11, 0.35))])[1] == "does_not_meet"


def test_a_gap_is_judged_by_its_size() -> None:
    assert size_of_gap("difference", -0.3, -0.4, None) == (0.3, 0.0, None)
    assert size_of_gap("ratio", 1.25, 1.0, 2.0) == (0.8, 0.5, 1.0)
    assert size_of_gap(None, -0.3, -0.4, -0.2) == (-0.3, -0.4, -0.2)


@pytest.mark.parametrize("limits", [{}, {"min": 0.1, "max": 0.2}])
def test_a_threshold_has_exactly_one_limit(limits: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="exactly one of `min` and `max`"):
        Threshold(metric="tpr", **limits)


def test_an_intersection_may_be_named_by_its_columns() -> None:
    threshold = Threshold.parse({"metric": "tpr", "max": 0.1, "grouping": ["race", "sex"]}, "here")
    assert threshold.grouping == "race × sex"


def test_numbers_in_words() -> None:
    assert show(0.00012) == "0.00012"
    assert show(1e-15) == "0"
    assert show(0.25, "signed_points") == "+25.0"
    assert (show(123.45), show(1234.7)) == ("123.5", "1,235")
    assert show(1234, "count") == "1,234"
    assert show_interval(None, None) == "–"
    assert show_interval(None, 0.5) == "at most 0.500"
    assert finite(float("inf")) is None
    assert finite(float("nan")) is None


WORST = Gap(
    metric="tpr", kind="difference", against="worst_pair", n=10, value=0.2, model="m", grouping="sex", group="F"
)


@pytest.mark.parametrize(
    ("fields", "record", "about"),
    [
        ({}, WORST, True),
        ({}, replace(WORST, metric="fpr"), False),
        ({}, replace(WORST, kind="ratio"), False),
        ({}, replace(WORST, against="reference"), False),
        ({}, Value(metric="tpr", n=10, value=0.5, group="F"), False),
        ({"model": "m", "grouping": "sex"}, WORST, True),
        ({"model": "other"}, WORST, False),
        ({"grouping": "race"}, WORST, False),
        ({"group": "F"}, WORST, True),
        ({"group": "M"}, WORST, False),
        ({}, replace(WORST, stratum="north"), False),  # none named: all people together
        ({"stratum": "north"}, replace(WORST, stratum="north"), True),
        ({"stratum": "north"}, WORST, False),
    ],
)
def test_a_threshold_is_about_the_records_at_the_place_that_it_names(
    fields: dict[str, Any], record: Gap | Value, about: bool
) -> None:
    limit = Threshold(metric="tpr", max=0.1, of="gap", kind="difference", against="worst_pair", **fields)
    assert limits_record(limit, record, {}) is about


def test_a_threshold_by_a_name_of_its_own_is_about_the_metric_behind_it() -> None:
    limit = Threshold(metric="parity", max=0.1, of="gap", kind="difference", against="worst_pair")
    assert limits_record(limit, WORST, {"parity": ("tpr", "difference", "worst_pair")})
    assert not limits_record(limit, WORST, {"parity": ("fpr", "difference", "worst_pair")})
    value = Threshold(metric="tpr", max=0.1, of="value")
    assert limits_record(value, Value(metric="tpr", n=10, value=0.5, group="F"), {})
    assert not limits_record(value, WORST, {})


def test_a_gap_between_groups_needs_groups() -> None:
    for against in ("worst_pair", "reference"):
        gaps = Threshold(metric="tpr", max=0.1, of="gap", against=against)
        with pytest.raises(ConfigError, match="limits a gap between groups, but the table names no groups"):
            require_known([gaps])
        require_known([gaps], groupings=["sex"])
    require_known([Threshold(metric="tpr", max=0.1, of="gap", against="model")])
    require_known([Threshold(metric="eaif", min=0.1, of="value")])
    with pytest.raises(ConfigError, match="`model` 'xg' of a threshold is not known"):
        require_known([Threshold(metric="tpr", max=0.1, model="xg")], groupings=["sex"], models=["xgb"])


@pytest.mark.parametrize(
    ("kind", "given", "size"),
    [
        ("difference", (0.2, None, 0.3), (0.2, 0.0, None)),
        ("difference", (0.2, 0.1, None), (0.2, 0.1, None)),
        ("difference", (-0.2, -0.3, 0.1), (0.2, 0.0, 0.3)),
        ("ratio", (0.5, 0.4, 0.8), (0.5, 0.4, 0.8)),
        ("ratio", (2.0, None, 4.0), (0.5, 0.0, 1.0)),
        ("ratio", (0.9, 0.5, 1.25), (0.9, 0.5, 1.0)),
        ("ratio", (0.0, 0.0, 0.5), (0.0, 0.0, 0.5)),
        ("ratio", (0.5, None, None), (0.5, None, None)),
        ("ratio", (2.0, None, None), (0.5, None, None)),
        ("difference", (-0.2, None, None), (0.2, None, None)),
        (None, (-0.5, -0.6, -0.4), (-0.5, -0.6, -0.4)),
    ],
)
def test_the_size_of_a_gap_is_its_distance_from_equality(
    kind: str | None, given: tuple[float | None, ...], size: tuple[float | None, ...]
) -> None:
    assert size_of_gap(kind, *given) == pytest.approx(size)


def test_a_gap_that_has_a_sign_is_held_against_the_limit_as_it_is() -> None:
    class Signed(Gap):
        signed = True

    fields = {"metric": "tpr", "kind": "difference", "against": "reference", "n": 10}
    numbers = {"value": -0.2, "low": -0.3, "high": -0.1}
    assert judged_size(Signed(**fields, **numbers)) == (-0.2, -0.3, -0.1)  # type: ignore[arg-type]
    assert judged_size(Gap(**fields, **numbers)) == (0.2, 0.1, 0.3)  # type: ignore[arg-type]


def test_what_breaks_a_limit_most_clearly_is_told_also_where_an_end_is_open() -> None:
    least = Threshold(metric="tpr", min=0.8, of="value")
    low, lower = (Value(metric="tpr", n=10, group="F", value=v, low=v - 0.1, high=v + 0.1) for v in (0.6, 0.3))
    assert judge_all(least, [low, lower]) == (lower, "does_not_meet")
    most = Threshold(metric="tpr", max=0.1, of="value")
    open_above = Value(metric="tpr", n=10, group="F", value=0.9, low=0.5, high=None)
    assert judge_all(most, [low, open_above, lower]) == (low, "does_not_meet")  # 0.5 beyond by the same, and first
    assert judge_all(most, [lower, open_above]) == (open_above, "does_not_meet")


def test_a_limit_in_percentage_points() -> None:
    assert Threshold(metric="tpr", max=0.125).message("points").text == "at most 12.5 points"
    assert Threshold(metric="tpr", max=0).limit == 0.0
