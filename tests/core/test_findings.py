"""What a finding says of its size, interval, p-value and people, and why there is no verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from scipy.special import ndtr

from evenhand.core.estimates import Estimate
from evenhand.core.families import ClaimOutcome, Family
from evenhand.core.findings import Claim, Finding, FindingMaker, _p_values
from evenhand.core.metrics import Limit, Metric, gap_limits
from evenhand.core.records import Gap, Value, column
from evenhand.core.spec import Spec
from evenhand.core.thresholds import Threshold
from evenhand.messages import Message
from evenhand.messages.shared import say

TPR = Metric(name="tpr", title="True positive rate", unit="share", limits=(*gap_limits(), Limit("value", "min")))


class Known(Spec):
    """An audit of one metric."""

    audit: ClassVar[str] = "own"

    def known_metrics(self) -> dict[str, Metric]:
        """Return the one."""
        return {"tpr": TPR}


SETTLE = "give an 80% chance to settle it, if the true value is as measured."


def gap(**changes: Any) -> Gap:
    numbers: dict[str, Any] = {"value": 0.2, "low": 0.1, "high": 0.3, "group": "F", "reference": "M", "grouping": "sex"}
    return Gap(metric="tpr", kind="difference", against="worst_pair", **({"n": 1_200} | numbers | changes))


def claim(record: Value | Gap, **changes: Any) -> Claim:
    told: dict[str, Any] = {"arguments": {"where": Message("By sex"), "title": "it", "value": 0.5}, "headline": True}
    return Claim(estimates=(Estimate(record),), sentence_id="value", **(told | changes))


def undefined(why: str) -> Message:
    return say("undefined", why=Message(why))


def text(message: Message | None) -> str | None:
    return None if message is None else message.text


def findings(*claims: Claim, **settings: Any) -> tuple[Finding, ...]:
    return FindingMaker(Known(**settings)).findings(claims)


def test_the_detail_has_size_interval_p_value_and_people() -> None:
    (found,) = findings(claim(gap(p_value=0.01), aside=Message("And more.")))
    said = "A gap of 20.0 percentage points; 95% interval 10.0 to 30.0; p = 0.010; n = 1,200. And more."
    assert (text(found.detail), found.reason, found.verdict) == (said, None, "no_threshold")
    assert (found.headline.text, found.n, found.p_value, found.p_adjusted) == (
        "By sex: it is 50.0%.",
        1_200,
        0.01,
        0.01,
    )
    assert (found.value, found.low, found.high, found.group, found.reference) == (0.2, 0.1, 0.3, "F", "M")
    assert (found.amount(), found.interval()) == ("20.0 points", "10.0 to 30.0")
    (ratio,) = findings(claim(replace(gap(), kind="ratio")))
    assert text(ratio.detail) == "A ratio of 0.200; 95% interval 0.100 to 0.300; n = 1,200."
    assert ratio.amount() == "0.200"
    (value,) = findings(claim(Value(metric="tpr", n=7, value=0.5)), confidence=0.9)
    assert text(value.detail) == "No interval; n = 7."
    assert value.amount() == "50.0%"
    (joint,) = findings(claim(gap(joint_low=0.05, joint_high=0.35), family=Message("all pairs")), confidence=0.9)
    assert (
        text(joint.detail)
        == "A gap of 20.0 percentage points; 90% interval for all pairs together 5.0 to 35.0; n = 1,200."
    )


def test_what_is_undefined_has_a_reason_and_no_number() -> None:
    (found,) = findings(claim(gap(value=None, low=None, high=None, status=undefined("nobody is positive"))))
    assert (found.headline.text, found.detail) == ("By sex: it cannot be compared between groups.", None)
    assert (text(found.reason), found.amount()) == ("Nobody is positive.", "–")
    (value,) = findings(claim(Value(metric="tpr", n=0, value=None, status=undefined("nobody"))))
    assert (value.headline.text, text(value.reason)) == ("By sex: it cannot be computed.", "Nobody.")
    (withheld,) = findings(claim(gap(value=None, low=None, high=None), withheld=Message("it is hidden")))
    assert text(withheld.reason) == "It is hidden."
    (shown,) = findings(claim(gap(), withheld=Message("it is hidden")))
    assert shown.reason is None


LIMIT: dict[str, Any] = {"thresholds": [{"metric": "tpr", "max": 0.1}]}


@pytest.mark.parametrize(
    ("record", "verdict", "reason"),
    [
        (gap(low=0.0, high=0.05, value=0.02), "meets", None),
        (gap(low=0.12), "does_not_meet", None),
        (
            gap(low=0.06),  # se is 0.14 / 1.96, and (2.8016 se / 0.1)² is 4.005: 3,606 people more
            "insufficient_evidence",
            "The interval reaches both sides of the limit of 10 points. About 3,700 more people like the 1,200 "
            f"compared here {SETTLE}",
        ),
        (gap(low=None, high=None), "insufficient_evidence", "There is no interval."),
        (gap(low=None, high=None, status=Message("one model")), "insufficient_evidence", "There is one model."),
        (
            gap(value=0.1, low=0.0, high=0.2),
            "insufficient_evidence",
            "The interval reaches both sides of the limit of 10 points. The value lies too near to the limit for any "
            "realistic number of people to settle it.",
        ),
    ],
)
def test_a_verdict_and_what_it_would_take(record: Gap, verdict: str, reason: str | None) -> None:
    (found,) = findings(claim(record), **LIMIT)
    assert (found.verdict, text(found.reason)) == (verdict, reason)
    assert (text(found.threshold), found.limit) == ("at most 10 points", 0.1)


def test_a_verdict_may_be_withheld() -> None:
    (found,) = findings(claim(gap(low=0.12), withheld=Message("the groups are no sample")), **LIMIT)
    assert (found.verdict, text(found.reason)) == ("insufficient_evidence", "The groups are no sample.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGap(Gap):
    """A gap of which a part stays open."""

    lower: float | None = column("least", None)
    upper: float | None = column("most", None)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0.08, 0.25), "so does what is left open, 8.0 to 25.0 points: more people of this kind would not settle it."),
        (
            (0.16, 0.25),
            f"About 7,100 more people like the 1,200 compared here {SETTLE}",
        ),
        (
            (0.02, 0.06),
            f"About 88,000 more people like the 1,200 compared here {SETTLE}",
        ),
    ],
)
def test_what_stays_open_is_told_apart_from_what_more_people_decide(bounds: tuple[float, float], said: str) -> None:
    """The end of what is open that is nearer to the limit decides: (2.8016 / 1.96 · 0.11 / 0.06)² is 6.866."""
    numbers: dict[str, Any] = {"value": 0.2, "low": 0.05, "high": 0.3, "lower": bounds[0], "upper": bounds[1]}
    record = OpenGap(metric="tpr", kind="difference", against="worst_pair", n=1_200, **numbers)
    (found,) = findings(claim(record), **LIMIT)
    assert str(found.reason).endswith(said)


@pytest.mark.parametrize(
    ("n", "low", "high", "said"),
    [
        (
            100,
            0.0,
            0.3,
            f" About 720 more people like the 100 compared here {SETTLE}",
        ),  # 717
        (
            98,
            0.0,
            0.3,
            f" About 710 more people like the 98 compared here {SETTLE}",
        ),  # 703
        (
            2,
            0.0,
            0.3,
            f" About 15 more people like the 2 compared here {SETTLE}",
        ),
        (
            100,
            0.05,
            0.3,
            f" About 360 more people like the 100 compared here {SETTLE}",
        ),
        (100, None, 0.3, " More people might settle it."),
        (0, 0.0, 0.3, " More people might settle it."),
    ],
)
def test_intervals_shrink_with_the_root_of_the_number_of_people(
    n: int, low: float | None, high: float, said: str
) -> None:
    record = Value(metric="tpr", n=n, value=0.2, low=low, high=high)
    (found,) = findings(claim(record), thresholds=[{"metric": "tpr", "min": 0.1}])
    assert text(found.reason) == f"The interval reaches both sides of the limit of 10%.{said}"


def test_beyond_a_thousand_times_the_people_more_of_them_is_no_advice() -> None:
    """With an arm of 2.21 times the distance from the limit, z of 1.96 and 2.8016: 998 times the people."""
    decidable, hopeless = (
        findings(claim(gap(n=100, value=0.0, low=0.0, high=high)), **LIMIT)[0].reason for high in (2.211, 2.22)
    )
    assert "About 100,000 more people" in str(decidable)
    assert "too near" in str(hopeless)


def test_a_simulation_of_the_test_corrects_how_many_people_are_needed() -> None:
    def chance(threshold: Threshold, family: int, times: float, *, broken: bool) -> float:
        assert (threshold.limit, family, broken) == (0.1, 1, True)
        return float(ndtr(times**0.5 - 2.0))

    (found,) = findings(claim(gap(low=0.06), chance=chance), **LIMIT)  # (2 + z_0.8)² is 8.074, at 80 %; this is 80.6 %
    assert "About 8,700 more people" in str(found.reason)


def test_a_family_of_verdicts_needs_more_people_beyond_the_limit_only() -> None:
    beyond, within = gap(low=0.06), gap(value=0.05, low=0.0, high=0.12, group="N", grouping="age")
    both = [str(found.reason) for found in findings(claim(beyond), claim(within), **LIMIT)]
    alone = [str(findings(claim(record), **LIMIT)[0].reason) for record in (beyond, within)]
    assert "About 4,700 more" in both[0]  # z of 2.2414 in place of 1.96
    assert both[1] == alone[1]


def test_the_near_end_of_a_worst_pair_is_read_at_the_level_of_all_pairs() -> None:
    """With z = 2.3940 of three pairs, se is 0.14 / 2.3940, and ((2.3940 + 0.8416) se / 0.1)² is 3.580."""
    (found,) = findings(claim(gap(low=0.06), pairs=3, tested_people=2_000), **LIMIT)
    assert "About 5,200 more people" in str(found.reason)
    (clipped,) = findings(claim(gap(value=0.12, low=0.0, high=0.3), pairs=3), **LIMIT)
    assert "About 270,000 more people" in str(clipped.reason)  # se is 0.18 / 1.96


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (None, "p = 0.040"),
        (Family(1, "tested_findings", ("parity",)), "p = 0.040"),
        (Family(2, "tested_findings", ("parity",)), "p = 0.040 adjusted (p = 0.020 by itself)"),
    ],
)
def test_an_adjusted_p_value_says_what_for(family: Family | None, said: str) -> None:
    assert _p_values(ClaimOutcome(gap(), p_adjusted=0.04, family=family), 0.02, 0.05).text == said


@pytest.mark.parametrize(
    ("threshold", "headline", "reason"),
    [
        (
            {"grouping": "sexx"},
            "No grouping 'sexx' in these data: the threshold for true positive rate cannot be judged.",
            "Did you mean 'sex'?",
        ),
        (
            {"grouping": "sex", "group": "X", "against": "reference"},
            "No group 'X' in these data: the threshold for true positive rate cannot be judged.",
            "Known names: 'F'.",
        ),
        (
            {"against": "reference"},
            "All groups: true positive rate cannot be compared between groups.",
            "Too few people to compare any two groups: each needs at least 10.",
        ),
    ],
)
def test_a_threshold_that_fits_nothing_says_what_is_lacking(
    threshold: dict[str, Any], headline: str, reason: str
) -> None:
    limits = [{"metric": "tpr", "max": 0.1, **threshold}]
    found, other = findings(claim(gap()), claim(gap(), key="x"), thresholds=limits)[:2]
    assert (found.headline.text, text(found.reason)) == (headline, reason)
    assert (found.verdict, found.value, found.n, text(found.threshold)) == (
        "insufficient_evidence",
        None,
        0,
        "at most 10 points",
    )
    assert other.verdict == "no_threshold"


def test_the_same_thing_is_told_once_and_thresholds_come_first() -> None:
    told = findings(claim(gap(), key="a"), claim(gap(group="X"), key="a"), claim(gap(), headline=False))
    assert [one.group for one in told] == ["F"]
    limits: list[Any] = [Threshold(metric="tpr", max=0.1, grouping="age"), Threshold(metric="tpr", max=0.3)]
    first, second, third, last = findings(
        claim(gap()),
        claim(gap(grouping="age"), headline=False),
        claim(Value(metric="tpr", n=3, value=0.5)),
        thresholds=limits,
    )
    assert [one.grouping for one in (first, second, third, last)] == ["age", "sex", "age", None]
    assert [one.limit for one in (first, second, third, last)] == [0.1, 0.3, 0.3, None]


class Strict(Known):
    """An audit whose findings have a level of their own."""

    @property
    def finding_alpha(self) -> float:
        """The level of a claim without a threshold."""
        return 0.01


def test_verdicts_have_the_level_of_the_intervals_and_findings_their_own() -> None:
    claims = [claim(gap()), claim(Value(metric="tpr", n=3, value=0.5))]
    limited, free = FindingMaker(Strict(confidence=0.9, **LIMIT)).checks(claims)
    assert limited.threshold is not None
    assert (limited.alpha, free.alpha) == pytest.approx((0.1, 0.01))


def test_of_several_records_the_first_is_told_and_a_limit_names_the_one_that_breaks_it() -> None:
    records = gap(low=0.0, high=0.05, value=0.02), gap(group="X", low=0.12)
    several = replace(claim(records[0]), estimates=tuple(map(Estimate, records)))
    (found,) = findings(several)
    assert found.group == "F"
    (judged,) = findings(several, **LIMIT)
    assert (judged.group, judged.verdict, judged.value) == ("X", "does_not_meet", 0.2)
