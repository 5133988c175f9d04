"""What the reliability audit may say, and what it must not: thresholds, many tests, small groups, words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability.findings import make_claims
from evenhand.audits.reliability.gaps import with_worse_off
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import COMPARED
from evenhand.audits.reliability.notes import outcome_notes
from evenhand.audits.reliability.result import ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import adjust_tables
from evenhand.core.findings import Finding, FindingMaker
from evenhand.errors import ConfigError, DataError
from evenhand.messages import Message
from evenhand.messages.formats import show_interval

from .conftest import curve, mean_gap, reliability

FAST: dict[str, Any] = {"replicates": 20, "resamples": 100, "noise_levels": [0.5], "attribution": False}


def touchy(rows: Any) -> Any:
    """Return a score that hangs on `bit` for those with `touchy` 1, and on nothing for the others."""
    return 0.2 + 0.6 * rows[:, 0] * rows[:, 1]


def three_groups(sizes: dict[str, int], shares: dict[str, float], seed: int = 0) -> pd.DataFrame:
    """Return groups in which a share of people has a result that mistakes in `bit` change."""
    rng = np.random.default_rng(seed)
    group = np.repeat(list(sizes), list(sizes.values()))
    touched = np.concatenate([np.arange(n) < round(shares[name] * n) for name, n in sizes.items()])
    return pd.DataFrame({"bit": rng.integers(0, 2, len(group)), "touchy": touched.astype(int), "group": group})


@pytest.fixture
def middle() -> eh.Table:
    """A is hurt most, C hardly, and B, the largest group and so the reference, is between them."""
    frame = three_groups({"A": 150, "B": 300, "C": 150}, {"A": 1.0, "B": 0.5, "C": 0.06})
    return eh.Table(frame, groups="group")


def audited(table: eh.Table, **settings: Any) -> Any:
    asked = {"features": ["bit", "touchy"], "noise": {"bit": "flip"}, "fixed": "touchy", "metrics": "pabak"}
    return reliability(touchy, table, **asked | FAST | settings)


# Thresholds -----------------------------------------------------------------------------------------------


def test_a_threshold_is_held_against_the_worst_pair(middle: eh.Table) -> None:
    """PABAK is 0, 0.5 and nearly 1: nobody is farther than 0.7 from the reference, but A and C are from each other."""
    found = audited(middle, thresholds=[{"metric": "pabak", "max": 0.7}])
    worst = found.findings[0]
    assert (worst.against, worst.verdict, str(worst.threshold)) == ("worst_pair", "does_not_meet", "at most 0.7")
    assert worst.value == pytest.approx(1.0, abs=0.1)
    assert "of all pairs of groups, PABAK differs most between A and C, by " in worst.headline.text
    assert (worst.arguments["lower"], worst.arguments["higher"]) == ("A", "C")
    assert "interval for all pairs together 0." in str(worst.detail)
    record = mean_gap(found, "pabak", against="worst_pair")
    assert (record.group, record.reference, record.n) == ("C", "A", 600)
    assert 0.7 < record.low < record.value < record.high
    assert (record.low, record.high) == (record.joint_low, record.joint_high)
    assert [(f.against, f.verdict) for f in found.findings[1:]] == [("reference", "no_threshold")] * 2


def test_a_threshold_can_be_held_against_the_reference(middle: eh.Table) -> None:
    found = audited(middle, thresholds=[{"metric": "pabak", "max": 0.7, "against": "reference"}])
    assert [(f.against, f.verdict) for f in found.findings] == [("reference", "meets")] * 2
    together = found.findings[0]
    alone = mean_gap(found, "pabak", together.group)
    assert f"95% interval {show_interval(alone.low, alone.high)};" in together.text  # what "meets" rests on
    assert together.joint_low < alone.low < alone.high < together.joint_high
    assert (together.low, together.high) == (alone.low, alone.high)


def test_every_threshold_is_judged(middle: eh.Table) -> None:
    limits = [{"metric": "pabak", "max": 1.5}, {"metric": "pabak", "max": 0.1}, {"metric": "pabak", "max": 0.97}]
    verdicts = [finding.verdict for finding in audited(middle, thresholds=limits).findings[:3]]
    assert verdicts == ["meets", "does_not_meet", "insufficient_evidence"]


def test_of_two_groups_the_only_pair_is_the_worst(middle: eh.Table) -> None:
    frame = three_groups({"A": 150, "B": 300}, {"A": 1.0, "B": 0.5})
    found = audited(eh.Table(frame, groups="group"), thresholds=[{"metric": "pabak", "max": 0.3}])
    (finding,) = found.findings
    assert (finding.against, finding.verdict) == ("worst_pair", "does_not_meet")
    pair, gap = mean_gap(found, "pabak", against="worst_pair"), mean_gap(found, "pabak")
    assert (gap.group, gap.reference, pair.group, pair.reference) == ("A", "B", "B", "A")
    assert (pair.value, pair.low, pair.high) == (-gap.value, -gap.high, -gap.low)
    assert (pair.p_value, pair.p_adjusted, pair.worse_off) == (gap.p_value, gap.p_adjusted, "A")
    told = audited(eh.Table(frame, groups="group")).findings
    assert [finding.against for finding in told] == ["reference"]


def test_a_threshold_that_nothing_can_be_held_against_is_told() -> None:
    frame = three_groups({"A": 60, "B": 60, "C": 5}, {"A": 1.0, "B": 0.5, "C": 1.0})
    frame["only"] = np.where(frame.group == "C", "other", "one")
    limits = [{"metric": "pabak", "max": 0.3, "grouping": "only"}]
    found = audited(eh.Table(frame, groups=["group", "only"]), thresholds=limits)
    first = found.findings[0]
    assert (first.grouping, first.verdict, first.value, first.n) == ("only", "insufficient_evidence", None, 120)
    assert "PABAK cannot be compared between groups" in first.headline.text
    assert str(first.reason) == "Fewer than two groups have 10 people or more."
    assert all(finding.verdict == "no_threshold" for finding in found.findings[1:])
    assert found.section().parts


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"against": "overall"}, "must give max= of 0 or more and below 2 .* got at most 0.1 and against 'overall'"),
        ({"kind": "ratio"}, "must give max= of 0 or more and below 2 .* got at most 0.1 and kind 'ratio'"),
        ({"stratum": "young"}, "a threshold of the reliability audit has no `stratum`"),
        ({"setting": "pilot"}, "`setting` 'pilot' of a threshold is not known"),
        ({"metric": "kappa"}, "a threshold limits 'kappa', which is not among `metrics`"),
        ({"audit": "parity"}, "a threshold of the reliability audit has `audit` 'parity'; leave it out"),
        ({"max": float("nan")}, "the limit of a threshold must be a finite number; got nan"),
        ({"max": float("inf")}, "the limit of a threshold must be a finite number; got inf"),
        ({"max": 2.0}, "must give max= of 0 or more and below 2 .* got at most 2"),
        ({"model": "other"}, "`model` 'other' of a threshold is not known"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused(middle: eh.Table, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        audited(middle, thresholds=[{"metric": "pabak", "max": 0.1} | wrong])


def test_a_threshold_without_mistakes_is_refused(middle: eh.Table) -> None:
    with pytest.raises(ConfigError, match="without `noise_levels` above 0 there is none"):
        audited(middle, noise_levels=[0.0], thresholds=[{"metric": "pabak", "max": 0.1}])


def test_an_untestable_pair_leaves_the_worst_pair_open(middle: eh.Table) -> None:
    """D has too few people for a test: the others can break a limit, but nothing can show that D meets it."""
    frame = three_groups({"A": 150, "B": 300, "D": 20}, {"A": 1.0, "B": 0.5, "D": 1.0})
    limits = [{"metric": "ac1", "max": 0.2}, {"metric": "ac1", "max": 1.9}]
    table = eh.Table(frame, groups="group")
    broken, unknown = audited(table, metrics="ac1", thresholds=limits).findings[:2]
    assert (broken.verdict, unknown.verdict) == ("does_not_meet", "insufficient_evidence")
    assert broken.high is None
    assert "at least 0." in str(broken.detail)
    assert "2 of 3 pairs have no interval; D has 20 people, and a test needs 50." in str(broken.detail)


# Words ----------------------------------------------------------------------------------------------------


def gap_record(**given: Any) -> ReliabilityGap:
    """Return a gap that is clearly below 0, but for what is given."""
    values: dict[str, Any] = {
        "model": "m",
        "setting": "given",
        "grouping": "group",
        "group": "A",
        "reference": "B",
        "against": "reference",
        "kind": "difference",
        "metric": "pabak",
        "n": 400,
        "stderr": 0.01,
        "df": 100.0,
        "p_value": 0.0001,
        "share_lower": 1.0,
        "replicate_sd": 0.01,
        "value": -0.05,
        "low": -0.07,
        "high": -0.03,
    }
    return ReliabilityGap(**values | given)


def adjusted(gaps: Sequence[ReliabilityGap]) -> list[ReliabilityGap]:
    """Return gaps as a run of these alone has them."""
    return list(adjust_tables([[with_worse_off(gap) for gap in gaps]], [0.05])[0])


def told(*gaps: ReliabilityGap) -> tuple[list[Finding], list[Message]]:
    """Return the findings and notes of gaps as the audit makes them."""
    metrics = tuple(dict.fromkeys(gap.metric for gap in gaps))
    spec = ReliabilitySpec(model={"m": "logistic"}, features=("x",), noise={"x": 1}, metrics=metrics)
    levels = [replace(gap, noise_level=level, p_value=None) for gap in gaps for level in (0.1, 0.2)]
    every = adjusted([*gaps, *levels])
    findings = FindingMaker(spec, say).findings(list(make_claims(list(map(Estimate, every)), [], spec)))
    return list(findings), list(outcome_notes([], every, spec))


@pytest.mark.parametrize("metric", COMPARED)
def test_only_metrics_that_measure_harm_speak_of_it(metric: str) -> None:
    (finding,), _ = told(gap_record(metric=metric))
    assert "A minus B, on average over 2 noise levels from 0.1 to 0.2; mistakes drawn with seed 0." in str(
        finding.detail
    )
    harm = metric in ("pabak", "icc_spread")
    assert f" is 0.050 lower {'than for B' if harm else 'for A than for B'}." in finding.headline.text
    assert len(finding.headline.text.split()) <= 25
    assert ("mistakes hurt A more; " in finding.text) == harm
    assert ("so it does not show which group mistakes hurt more" in finding.text) == (not harm)
    moved = {
        "kappa": "It also falls where one rating is rare",
        "alpha": "It also falls where one rating is rare",
        "ac1": "It also rises where one rating is rare",
        "icc_a1": "It also falls where a group's ratings are close together",
        "concordance": "It also falls where a group's ratings are close together",
    }
    assert harm or moved[metric] in str(finding.detail)


def test_metrics_that_point_different_ways_are_named() -> None:
    _, notes = told(
        gap_record(metric="kappa"),
        gap_record(metric="pabak", value=0.004, low=-0.01, high=0.018, p_value=0.6),
        gap_record(metric="icc_a1", value=0.06, low=0.04, high=0.08),
    )
    note, why = map(str, notes)
    assert why.startswith("Metrics that disagree measure different things: PABAK and the spread-adjusted ICC")
    assert "the metrics disagree. For A, compared with B, " in note
    assert "Cohen's kappa (clearly) is lower and PABAK and ICC(A,1) (clearly) are higher" in note
    assert "hurt" not in note
    assert not told(gap_record(metric="kappa"), gap_record(metric="pabak"))[1]
    unsure = {"p_value": 0.5, "low": -0.2, "high": 0.2}
    assert not told(gap_record(metric="kappa", **unsure), gap_record(value=0.05, **unsure))[1]


def test_findings_count_all_tests_of_a_run() -> None:
    """Of metrics that measure nearly the same, one is told; groups, groupings, models and settings all count."""
    groups = [gap_record(group=group, p_value=p) for group, p in zip("ACDE", (0.02, 0.3, 0.3, 0.3), strict=True)]
    elsewhere = gap_record(grouping="other", p_value=0.0002)
    findings, _ = told(*groups, elsewhere, gap_record(metric="kappa", p_value=1e-5))
    assert {finding.metric for finding in findings} == {"pabak"}
    first = findings[0]
    assert "no clear difference in PABAK between A and B" in first.headline.text
    assert "p = 0.080 adjusted (p = 0.020 by itself);" in str(first.detail)
    assert "mistakes hurt A more" in findings[-1].headline.text
    assert "p = 0.001 adjusted" in str(findings[-1].detail)
    assert "(p < 0.001 by itself)" in str(findings[-1].detail)


def test_adjusted_p_is_holms_over_the_run() -> None:
    rng = np.random.default_rng(0)
    records = [
        gap_record(model=model, grouping=grouping, setting=setting, group=group, p_value=float(rng.random() ** 3))
        for model in "mn"
        for grouping in ("race", "sex")
        for setting in ("given", "pilot")
        for group in "ACD"
    ]
    records.append(replace(records[0], noise_level=0.1, p_value=None))
    spec = ReliabilitySpec(model={"m": "logistic"}, features=("x",), noise={"x": 1})
    found = FindingMaker(spec, say).findings(list(make_claims(list(map(Estimate, records)), [], spec)))
    assert len(found) == len(records) - 1
    tested = sorted(found, key=lambda finding: finding.p_value or 0.0)
    steps = [(len(tested) - place) * (r.p_value or 0.0) for place, r in enumerate(tested)]
    for place, finding in enumerate(tested):
        assert finding.p_adjusted == pytest.approx(min(1.0, max(steps[: place + 1])))


@pytest.mark.slow
def test_many_groups_are_not_many_false_findings() -> None:
    """Six groups at random, four statistics, 20 data sets: before, nearly half of them had something to tell."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "x": rng.normal(size=480),
                "y": rng.integers(0, 2, 480),
                "group": np.array(list("ABCDEF"))[rng.integers(0, 6, 480)],
            }
        )
        found = reliability(
            lambda rows: 1 / (1 + np.exp(-rows[:, 0] - rows[:, 1])),
            eh.Table(frame, groups="group"),
            features=["x", "y"],
            noise={"x": 1, "y": "flip"},
            replicates=4,
            resamples=100,
            noise_levels=[0.3],
            attribution=False,
            seed=seed,
        )
        wrong += any("no clear difference" not in finding.text for finding in found.findings)
    assert wrong <= 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "PABAK is the same for A and B."),
        (0.00002, "A gap of 0.00002;"),
        (-0.0004, "A gap of −0.0004;"),
    ],
)
def test_equal_is_not_lower(value: float, words: str) -> None:
    (finding,), _ = told(gap_record(value=value, low=-0.01, high=0.01, p_value=1.0))
    assert words in finding.text
    assert "0.0000;" not in finding.text
    assert "lower" not in finding.headline.text


# What is not known ----------------------------------------------------------------------------------------


def test_small_groups_have_no_verdict() -> None:
    frame = three_groups({"A": 20, "B": 300}, {"A": 1.0, "B": 0.0})
    limits = [{"metric": "ac1", "max": 0.1}]
    found = audited(eh.Table(frame, groups="group"), metrics="ac1", thresholds=limits)
    gap = mean_gap(found, "ac1")
    assert gap.status.text == "no interval: A has 20 people, and a test needs 50"
    assert (gap.low, gap.high, gap.p_value, gap.p_adjusted) == (None, None, None, None)
    (finding,) = found.findings
    assert finding.verdict == "insufficient_evidence"
    assert "hurt" not in finding.text
    assert "; no interval: A has 20 people, and a test needs 50; n = 320" in str(finding.detail)
    assert str(finding.reason) == "There is no interval: A has 20 people, and a test needs 50."
    assert any(
        note.text.startswith("Gaps at single noise levels") and "A has 20 people" in note.text for note in found.notes
    )


def test_the_clearest_gaps_are_seen_in_small_groups() -> None:
    """All of 20 people are hurt and nobody of 300; nobody of 300 is hurt and half of 1,000."""
    for sizes, shares, hurt in (
        ({"A": 20, "B": 300}, {"A": 1.0, "B": 0.0}, "A"),
        ({"A": 300, "B": 1_000}, {"A": 0.0, "B": 0.3}, "B"),
    ):
        found = audited(eh.Table(three_groups(sizes, shares), groups="group"))
        gap = mean_gap(found, "pabak")
        assert (gap.status.text, gap.worse_off, gap.df) == ("ok", hurt, None)
        assert gap.p_value < 0.001
        assert gap.low <= gap.value <= gap.high
        assert (gap.low > 0) or (gap.high < 0)
        assert f"mistakes hurt {hurt} more" in found.findings[0].headline.text


def test_an_untested_gap_does_not_read_stronger_than_a_tested_one() -> None:
    frame = three_groups({"A": 20, "B": 300}, {"A": 1.0, "B": 0.0})
    (finding,) = audited(eh.Table(frame, groups="group"), metrics="ac1").findings
    assert finding.headline.text == "touchy, by group: whether Gwet's AC1 differs between A and B was not tested."


def test_small_folds_have_no_verdict(people: pd.DataFrame) -> None:
    """Kappa and ICC, which are biased in small folds, need more people there than PABAK does."""
    table = eh.Table(people, groups="group", outcome="again")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3, "priors": 1}}
    five, ten = (
        reliability("logistic", table, **asked, **FAST, metrics=["pabak", "icc_a1"], folds=folds) for folds in (5, 10)
    )
    assert mean_gap(five, "pabak").status.id == "core.ok"
    assert mean_gap(five, "icc_a1").status.text == "no interval: A has 15 people in a fold, and a test needs 20"
    (at_a_level,) = (gap for gap in ten.gaps if gap.metric == "pabak" and gap.noise_level is not None)
    assert at_a_level.status.text == "no interval: A has 7 people in a fold, and a test needs 10"
    assert mean_gap(ten, "pabak").status.id == "core.ok"


def test_folds_that_are_dealt_a_person_apart_are_enough(people: pd.DataFrame) -> None:
    """100 people in five folds have 19 in one and 21 in another: on average 20, as many as ratios need."""
    frame = pd.concat([people, people], ignore_index=True).iloc[: 3 * 100]
    table = eh.Table(frame, groups="group", outcome="again")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3, "priors": 1}}
    found = reliability("logistic", table, **asked, **FAST, metrics=["icc_a1"], folds=5)
    assert found.get("values", metric="icc_a1", group="A").n == 100
    assert mean_gap(found, "icc_a1").status.id == "core.ok"


def test_undefined_resamples_are_not_called_equal() -> None:
    """Two of 60 are selected: in one resample of eight neither is drawn, and kappa has no value."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "far": 0, "group": np.repeat(["A", "B"], [60, 340])})
    frame.loc[[0, 1, *range(60, 200)], "far"] = 1
    found = reliability(
        lambda rows: 0.2 + 0.6 * rows[:, 1] + 0.01 * np.tanh(rows[:, 0]),
        eh.Table(frame, groups="group"),
        features=["x", "far"],
        noise={"x": 1},
        metrics="kappa",
        **FAST,
    )
    gap = mean_gap(found, "kappa")
    assert gap.value == 0.0
    assert gap.status.text.startswith("no interval: it is undefined in ")
    assert gap.status.text.endswith(" of 100 resamples of people")
    assert "no resample" not in found.findings[0].text
    assert "Cohen's kappa is the same for A and B" in found.findings[0].text
    assert {record.status.text for record in curve(found, "kappa", "B")} == {
        "no interval: no resample of people differs"
    }


def test_mistakes_that_do_nothing_are_not_laid_to_the_model(people: pd.DataFrame) -> None:
    """A normal error with sd 0 changes nothing; a model that does not look at `sex` gives the same scores."""
    found = reliability(
        lambda rows: rows[:, 1] / 20,
        eh.Table(people, groups="group"),
        features=["age", "priors", "sex"],
        noise={"age": {"sd": 0}, "priors": {"sd": 0.01}, "sex": "flip"},
        **FAST,
    )
    assert any("the mistakes in 'age', 'priors' never changed an entry" in note.text for note in found.notes)
    assert any("the mistakes in 'sex' changed entries and no score" in note.text for note in found.notes)
    assert not any("does not use" in note.text for note in found.notes)


def test_constant_scores_are_not_helped_by_larger_groups(table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}}
    found = reliability(lambda rows: np.full(len(rows), 0.3), table, **asked, **quick)
    assert "reliability.undefined_always" in {note.id for note in found.notes}
    assert "reliability.undefined_sometimes" not in {note.id for note in found.notes}


def test_a_group_called_like_our_name_for_everybody_is_refused() -> None:
    frame = three_groups({"(overall)": 150, "B": 300}, {"(overall)": 1.0, "B": 0.5})
    with pytest.raises(DataError, match="our name for everybody: rename it"):
        audited(eh.Table(frame, groups="group"))


# What gaps rest on ----------------------------------------------------------------------------------------


def test_the_report_says_that_all_groups_are_taken_alike(middle: eh.Table) -> None:
    alike = "Entries are assumed to go wrong equally often"
    assert any(note.text.startswith(alike) for note in audited(middle).notes)
    found = audited(middle, group_noise={"group": {"A": 1.5, "B": 1}})
    assert not any(note.text.startswith(alike) for note in found.notes)
    assert any("by group, about A 1.5 times as often. Gaps rest on these settings" in note.text for note in found.notes)


def test_a_small_pilot_is_noted(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    table = eh.Table(people, groups="group")
    for size in (20, 60):
        pilot = {f"age_{rater}": people.age.to_numpy()[:size] + shift for rater, shift in (("a", 0), ("b", 1))}
        noise = {"pilot": {"data": pilot, "suffixes": ["_a", "_b"]}}
        found = reliability(
            lambda rows: rows[:, 0] / 80, table, features=["age"], noise=noise, **quick | {"noise_levels": [0.5]}
        )
        few = any("20 people rated twice are few to learn mistakes from" in note.text for note in found.notes)
        assert few == (size == 20)
