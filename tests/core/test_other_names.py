"""Metrics and thresholds by the names of other packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from evenhand.core.metrics import OtherName, gap_limits, ratio_limits, translate
from evenhand.core.records import Gap, Value, column, coordinates_of, limits_to_judge, open_range
from evenhand.core.thresholds import Threshold
from evenhand.errors import ConfigError

NAMES = {
    "recall_score": OtherName("scikit-learn", ("tpr",)),
    "equalized_odds_ratio": OtherName("Fairlearn", ("tpr", "fpr"), "ratio", "worst_pair"),
    "average_odds": OtherName("AIF360", ("tpr",), "difference", "reference"),
    "theil_index": OtherName("AIF360", refused="it mixes two things"),
}


def test_metrics_are_read_once_each_and_said() -> None:
    settings, said = translate({"metrics": ["tpr", "recall_score", "x", "equalized_odds_ratio"], "seed": 1}, NAMES)
    assert settings == {"metrics": ["tpr", "x", "fpr"], "ratios": ["tpr", "fpr"], "seed": 1}
    assert tuple(one.text for one in said) == (
        "recall_score (scikit-learn) is `tpr` here.",
        "equalized_odds_ratio (Fairlearn) is the worst-pair ratio of `tpr` and `fpr` here, each metric taken "
        "separately.",
    )
    settings, said = translate({"metrics": "average_odds"}, NAMES)
    assert settings == {"metrics": ["tpr"]}
    assert [one.text for one in said] == [
        "average_odds (AIF360) is the difference in `tpr` to the reference group here."
    ]
    assert translate({"metrics": 3, "thresholds": "text"}, NAMES) == ({"metrics": 3, "thresholds": "text"}, ())


def test_a_threshold_is_one_for_each_metric_behind_its_name() -> None:
    own: list[Any] = [{"metric": "tpr", "max": 0.1}, Threshold(metric="average_odds", max=0.2)]
    settings, said = translate({"thresholds": [*own, {"metric": "equalized_odds_ratio", "min": 0.8}]}, NAMES)
    pair = {"min": 0.8, "kind": "ratio", "against": "worst_pair"}
    assert settings["thresholds"] == [
        own[0],
        {"metric": "tpr", "max": 0.2, "kind": "difference", "against": "reference"},
        {"metric": "tpr", **pair},
        {"metric": "fpr", **pair},
    ]
    assert len(said) == 2
    kept, _ = translate({"thresholds": own}, NAMES, known=["average_odds"])
    assert kept["thresholds"] == own
    plain, _ = translate({"thresholds": [{"metric": "recall_score", "min": 0.5}]}, NAMES)
    assert plain["thresholds"] == [{"metric": "tpr", "min": 0.5}]


def test_a_name_without_counterpart_is_refused() -> None:
    with pytest.raises(ValueError, match="'theil_index' of AIF360 has no counterpart here: it mixes two things"):
        translate({"metrics": ["theil_index"]}, NAMES)
    with pytest.raises(ConfigError, match="it mixes two things"):
        NAMES["theil_index"].where("theil_index")
    assert NAMES["recall_score"].where("recall_score") == {}
    assert NAMES["average_odds"].where("average_odds") == {"kind": "difference", "against": "reference"}


def test_limits_of_gaps_lie_between_equality_and_the_largest_gap() -> None:
    (gap,), (ratio,), (far,) = gap_limits(), ratio_limits(), gap_limits(most=2.0)
    assert (gap.of, gap.side, gap.kind, gap.range) == ("gap", "max", "difference", (0.0, 1.0))
    assert (ratio.of, ratio.side, ratio.kind, ratio.range) == ("gap", "min", "ratio", (0.0, 1.0))
    assert far.range == (0.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGap(Gap):
    """A gap with a coordinate and bounds of its own."""

    lower: float | None = column("least", None)
    upper: float | None = column("most", None)
    level: float | None = column("of noise", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelValue(Value):
    """A value with a coordinate of its own."""

    level: float | None = column("of noise", None)


def made(**numbers: Any) -> OpenGap:
    return OpenGap(metric="tpr", kind="difference", against="worst_pair", n=1, value=0.1, low=0.0, high=0.2, **numbers)


def test_what_an_audit_adds_to_a_record_are_its_own_coordinates() -> None:
    assert coordinates_of(made(level=0.5)) == {"level": 0.5}
    assert coordinates_of(LevelValue(metric="tpr", n=1, value=0.1, level=0.5)) == {"level": 0.5}
    assert coordinates_of(made()) == {}


def test_what_is_open_is_wider_than_rounding() -> None:
    assert open_range(made(lower=0.1, upper=0.3)) == (0.1, 0.3)
    assert open_range(made(lower=0.1, upper=0.1 + 1e-10)) is None
    assert open_range(made(lower=0.1)) is None
    assert open_range(made(upper=0.1)) is None


def test_joint_limits_are_judged_where_there_is_one() -> None:
    assert limits_to_judge(made()) == (0.0, 0.2)
    assert limits_to_judge(made(joint_low=-0.1, joint_high=0.3)) == (-0.1, 0.3)
    assert limits_to_judge(made(joint_low=-0.1)) == (-0.1, None)
    assert limits_to_judge(made(joint_high=0.3)) == (None, 0.3)
