"""Verdicts and findings of the effort audit: over many bins, for every threshold, and where nothing can be judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortSpec
from evenhand.audits.effort.bins import EffortBins, bin_records
from evenhand.audits.effort.findings import make_claims
from evenhand.audits.effort.group_means import GroupedMeans, group_means
from evenhand.audits.effort.messages import say
from evenhand.core.estimates import Estimate
from evenhand.core.findings import FindingMaker
from evenhand.core.records import OK
from evenhand.errors import ConfigError, DataError
from evenhand.stats.pairs import individual_fairness

STEPS = ["x", "y", "z"]


def people(score: Any, group: Any, effort_bin: Any = None, **more: Any) -> dict[str, Any]:
    """Return people of given scores and groups, whose effort lies in the bin of a given number."""
    score = np.asarray(score, dtype=float)
    effort = 0.5 if effort_bin is None else (np.asarray(effort_bin) + 0.5) / 10
    rise = np.broadcast_to(np.log(effort / (1 - effort)), score.shape)
    return {"m": score, "g": group, "x": np.zeros(score.size), "y": np.zeros(score.size), "z": rise, **more}


def audited(data: Any, **options: Any) -> Any:
    table = eh.Table(data, groups="g", predictions={"m": {"column": "m", "kind": "score"}})
    return eh.effort(table, **{"trajectory": STEPS, **options})


def parity_finding(result: Any) -> Any:
    return next(finding for finding in result.findings if finding.metric == "eagf")


LIMIT = [{"audit": "effort", "metric": "eagf", "min": 0.8}]


def verdict_of(bins: Any, group: Any, score: Any) -> str:
    """Return the verdict on the lowest parity of people in bins, without comparing their pairs."""
    spec = EffortSpec(trajectory=tuple(STEPS), thresholds=LIMIT)
    by_bin = group_means(bins, group, score, None, (int(bins.max()) + 1, 2))
    whole = group_means(np.zeros_like(bins), group, score, None, (1, 2))
    means = GroupedMeans(by_bin, whole, ("a", "b"))
    values, gaps = bin_records(EffortBins.of(means, "m", "g", spec.min_count), spec)
    claims = make_claims(list(map(Estimate, values)), list(map(Estimate, gaps)), (), spec)
    return FindingMaker(spec, say).findings(list(claims))[0].verdict


def test_the_lowest_of_many_bins_is_judged_by_limits_for_all_of_them() -> None:
    samples, bins, each = 60, 10, 30
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(bins), 2 * each)
    group = np.tile(np.repeat([0, 1], each), bins)
    mean = np.where(group == 0, 0.5, 0.4)  # true parity 0.8 in every bin
    verdicts = [verdict_of(number, group, rng.beta(4 * mean, 4 * (1 - mean))) for _ in range(samples)]
    assert verdicts.count("does_not_meet") <= 6  # 5% of 60 and two standard errors; judged one by one it was 18%


def test_a_limit_is_met_only_when_every_bin_is_shown_to_meet_it() -> None:
    rng = np.random.default_rng(1)
    large = rng.beta(40 * 0.5, 40 * 0.5, 800) * np.tile([1, 0.88], 400)
    small = rng.beta(2, 2, 24) * np.tile([1, 0.92], 12)
    group = np.tile(["a", "b"], 412)
    result = audited(people([*large, *small], group, [3] * 800 + [6] * 24), thresholds=LIMIT)
    assert {record.bin_low: record.low > 0.8 for record in result.gaps if record.bin_low} == {0.3: True, 0.6: False}
    assert parity_finding(result).verdict == "insufficient_evidence"


def test_a_limit_that_nothing_can_be_compared_with_is_not_passed() -> None:
    result = audited(people(np.linspace(0, 1, 30), ["a"] * 22 + ["b"] * 8), thresholds=LIMIT)
    finding = parity_finding(result)
    assert (finding.verdict, finding.value) == ("insufficient_evidence", None)
    assert finding.headline.id == "effort.no_bin"
    assert finding.reason.text == "Fewer than two groups have 10 people here."
    with pytest.raises(ConfigError, match="limits a gap between groups, but the table names no groups"):
        eh.effort(
            eh.Table(people([0.1, 0.5, 0.9], ["a", "b", "b"]), predictions="m"), trajectory=STEPS, thresholds=LIMIT
        )


def test_every_threshold_gets_its_verdict() -> None:
    limits = [{"metric": "eaif", "min": 0.1}, {"metric": "eaif", "min": 0.999, "model": "m"}]
    data = people(np.random.default_rng(0).random(60), ["a", "b"] * 30)
    verdicts = [f.verdict for f in audited(data, thresholds=limits).findings if f.threshold]
    assert verdicts == ["meets", "does_not_meet"]


@pytest.mark.parametrize("each", [30, 33, 47])
@pytest.mark.parametrize("constants", [(0.3, 0.6), (0.7, 0.8)])
def test_constant_scores_have_no_interval(each: int, constants: tuple[float, float]) -> None:
    data = people(np.repeat(constants, each), np.repeat(["a", "b"], each))
    result = audited(data, thresholds=LIMIT)
    assert {record.status.text for record in result.rows("gaps", metric="eagf")} == {
        "no interval: the scores of a group do not vary"
    }
    assert parity_finding(result).verdict == "insufficient_evidence"


def test_a_group_of_zeros_breaks_the_limit() -> None:
    rng = np.random.default_rng(0)
    data = people([*rng.uniform(0.3, 0.7, 500), *np.zeros(500)], np.repeat(["a", "b"], 500))
    record = audited(data).rows("gaps", metric="eagf")[0]
    assert (record.value, record.low, record.status) == (0, 0, OK)
    assert record.high == pytest.approx((1 - 0.025 ** (1 / 500)) / 0.5, rel=0.1)
    assert parity_finding(audited(data, thresholds=LIMIT)).verdict == "does_not_meet"


def test_people_who_are_all_treated_alike_on_average_have_an_interval_from_their_pairs() -> None:
    data = people(np.repeat([0.0, 1.0], 50), ["a", "b"] * 50, c=np.full(100, 0.5))
    table = eh.Table(data, predictions={name: {"column": name, "kind": "score"} for name in "mc"})
    result = eh.effort(table, trajectory=STEPS)
    value = result.values[0]
    assert value.status.id == "core.ok"
    assert value.stderr == pytest.approx(0, abs=1e-9)
    assert (value.low or 0) < 0.5 < (value.high or 0)
    gap = result.get("gaps", against="model")
    assert gap.value == 0  # at the spread of a constant score everybody is scored alike
    assert gap.p_value == 1


def test_differences_hold_for_all_pairs_of_models() -> None:
    rng = np.random.default_rng(0)
    data = people(rng.random(80), ["a", "b"] * 40) | {f"m{k}": rng.random(80) for k in range(3)}
    two = eh.effort(eh.Table(data, predictions=["m0", "m1"]), trajectory=STEPS).gaps[0]
    three = eh.effort(eh.Table(data, predictions=["m0", "m1", "m2"]), trajectory=STEPS).gaps[0]
    assert (three.low, three.high) == pytest.approx((two.low, two.high), rel=1e-12)
    assert (two.joint_low, two.joint_high) == pytest.approx((two.low, two.high), rel=1e-12)
    assert three.joint_high - three.joint_low > 1.1 * (two.joint_high - two.joint_low)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": np.linspace(-900, 900, 40)}, "use a larger `unit`"),
        ({"x": np.linspace(50, 900, 40)}, "use a larger `scale`"),
        ({"i": np.linspace(13, 39, 40)}, "Inertia reaches 39"),
    ],
)
def test_units_that_leave_no_difference_are_remarked_on(change: dict[str, Any], words: str) -> None:
    data = people(np.linspace(0.1, 0.9, 40), ["a", "b"] * 20, i=np.ones(40)) | change
    assert any(words in note.text for note in audited(data, inertia="i").notes)


def test_what_cannot_be_is_told_in_a_sentence() -> None:
    data = people(np.linspace(0.1, 0.9, 40), ["a", "b"] * 20, i=np.full(40, 1e7))
    with pytest.raises(ConfigError, match="`inertia` has no rates"):
        audited(data, inertia={})
    with pytest.raises(ConfigError, match=r"make more than 10,000 bins"):
        audited(data, inertia="i")
    with pytest.raises(DataError, match="give it in a larger unit"):
        audited(data | {"z": np.full(40, 1e300)})
    with pytest.raises(ConfigError, match="rising time stamps"):
        audited(data, times=[1, 2, float("inf")])
    with pytest.raises(ConfigError, match="nothing to draw in the chart 'parity'"):
        eh.effort(eh.Table(data, predictions={"m": {"column": "m", "kind": "score"}}), trajectory=STEPS).plot()


def test_rows_in_any_order_with_ties_give_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    data = people(rng.integers(0, 3, 200) / 2, rng.choice(["a", "b"], 200), rng.integers(2, 5, 200))
    order = rng.permutation(200)
    one = audited(data)
    other = audited({name: np.asarray(values)[order] for name, values in data.items()})
    assert one.to_dict() == other.to_dict()


def test_groups_of_equal_means_are_two_groups() -> None:
    data = people(np.tile([0.2, 0.2, 0.8, 0.8], 10), ["a", "b"] * 20)
    record = audited(data).rows("gaps", metric="eagf")[0]
    assert (record.value, {record.reference, record.group}) == (pytest.approx(1), {"a", "b"})


def test_a_threshold_that_cannot_be_is_told() -> None:
    table = eh.Table(people(np.linspace(0.1, 0.9, 40), ["a", "b"] * 20), groups="g", predictions="m")
    for limit, message in (
        ({"max": 0.1}, "must give min= above 0 and at most 1"),
        ({"min": 1.5}, "must give min="),
        ({"min": 0.9, "model": "k"}, "'k'"),
        ({"min": 0.9, "grouping": "g"}, "leave out its `grouping`"),
        ({"min": 0.9, "weight": 0.6}, "not among `weights`"),
        ({"min": 0.9, "group": "a"}, "has no `group`"),
        ({"min": 0.9, "metric": "eagf", "weight": 0.5}, "leave out its `weight`"),
        ({"min": 0.9, "metric": "mean_score"}, "limits nothing"),
    ):
        with pytest.raises(ConfigError, match=message):
            eh.effort(table, trajectory=STEPS, thresholds=[{"metric": "eaif", **limit}])


def test_pairs_are_compared_once_whatever_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts ask for limits at other confidences, of which the pairs know nothing."""
    asked: list[float] = []

    def counted(*columns: Any, **options: Any) -> Any:
        asked.append(options["confidence"])
        return individual_fairness(*columns, **options)

    monkeypatch.setattr("evenhand.audits.effort.estimate.individual_fairness", counted)
    rng = np.random.default_rng(0)
    data = people(rng.random(60), rng.choice(["a", "b"], 60), rng.integers(0, 10, 60))
    limits = [{"metric": "eaif", "min": 0.5}, {"metric": "eagf", "min": 0.9}]
    verdicts = [finding.verdict for finding in audited(data, thresholds=limits).findings if finding.metric == "eaif"]
    assert verdicts == ["meets"]
    assert asked == [0.95]
