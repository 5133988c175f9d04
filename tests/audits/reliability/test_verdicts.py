"""What the reliability audit may say, and what it must not: thresholds, many tests, small groups, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability.audit import reliability
from evenhand.audits.reliability.findings import make_findings
from evenhand.audits.reliability.gaps import adjusted
from evenhand.audits.reliability.notes import outcome_notes
from evenhand.audits.reliability.records import GapRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.findings import Finding
from evenhand.errors import ConfigError
from evenhand.stats.reliability import RELIABILITY

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
    asked = {"features": ["bit", "touchy"], "noise": {"bit": "flip"}, "fixed": "touchy", "statistics": "pabak"}
    return reliability(touchy, table, **asked | FAST | settings)


# Thresholds -----------------------------------------------------------------------------------------------


def test_a_threshold_is_held_against_the_worst_pair(middle: eh.Table) -> None:
    """PABAK is 0, 0.5 and nearly 1: nobody is farther than 0.7 from the reference, but A and C are from each other."""
    found = audited(middle, thresholds=[{"metric": "pabak", "max": 0.7}])
    worst = found.findings[0]
    assert (worst.against, worst.verdict, worst.threshold) == ("worst_pair", "does_not_meet", "at most 0.7")
    assert worst.value == pytest.approx(-1.0, abs=0.1)
    assert "of all pairs of groups the largest gap is " in worst.sentence
    assert "in PABAK, between A and C, A being lower" in worst.sentence
    assert "for all pairs together: 0." in worst.sentence
    record = found.gap("pabak", against="worst_pair")
    assert (record.group, record.reference, record.n) == ("A", "C", 600)
    assert record.low < record.value < record.high < -0.7
    assert [(f.against, f.verdict) for f in found.findings[1:]] == [("reference", "no_threshold")] * 2


def test_a_threshold_can_be_held_against_the_reference(middle: eh.Table) -> None:
    found = audited(middle, thresholds=[{"metric": "pabak", "max": 0.7, "against": "reference"}])
    assert [(f.against, f.verdict) for f in found.findings] == [("reference", "meets")] * 2
    alone = found.gap("pabak", "A")
    together = found.findings[0]
    assert "interval for all 2 groups together" in together.sentence
    assert together.low < alone.low < alone.high < together.high


def test_every_threshold_is_judged(middle: eh.Table) -> None:
    limits = [{"metric": "pabak", "max": 1.5}, {"metric": "pabak", "max": 0.1}, {"metric": "pabak", "max": 0.99}]
    verdicts = [finding.verdict for finding in audited(middle, thresholds=limits).findings[:3]]
    assert verdicts == ["meets", "does_not_meet", "insufficient_evidence"]


def test_of_two_groups_the_only_pair_is_the_worst(middle: eh.Table) -> None:
    frame = three_groups({"A": 150, "B": 300}, {"A": 1.0, "B": 0.5})
    found = audited(eh.Table(frame, groups="group"), thresholds=[{"metric": "pabak", "max": 0.3}])
    (finding,) = found.findings
    assert (finding.against, finding.verdict) == ("worst_pair", "does_not_meet")
    assert {gap.against for gap in found.gaps} == {"reference"}


def test_a_threshold_that_nothing_can_be_held_against_is_told() -> None:
    frame = three_groups({"A": 60, "B": 60, "C": 5}, {"A": 1.0, "B": 0.5, "C": 1.0})
    frame["only"] = np.where(frame.group == "C", "other", "one")
    limits = [{"metric": "pabak", "max": 0.3, "grouping": "only"}]
    found = audited(eh.Table(frame, groups=["group", "only"]), thresholds=limits)
    first = found.findings[0]
    assert (first.grouping, first.verdict, first.value, first.n) == ("only", "insufficient_evidence", None, 120)
    assert "PABAK cannot be compared, since fewer than two groups have min_count 10 people" in first.sentence
    assert all(finding.verdict == "no_threshold" for finding in found.findings[1:])
    assert found.section().parts


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"against": "overall"}, "`against` 'overall', but groups are compared with each other"),
        ({"kind": "ratio"}, "has no `stratum` and no `kind` 'ratio'"),
        ({"stratum": "young"}, "has no `stratum` and no `kind` 'ratio'"),
        ({"audit": "parity"}, "a threshold of the reliability audit has `audit` 'parity'; leave it out"),
        ({"max": float("nan")}, "the limit of a threshold must be a finite number; got nan"),
        ({"max": float("inf")}, "the limit of a threshold must be a finite number; got inf"),
        ({"max": 2.0}, "give max= of 0 or more and below 2; got at most 2"),
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
    limits = [{"metric": "pabak", "max": 0.2}, {"metric": "pabak", "max": 1.9}]
    broken, unknown = audited(eh.Table(frame, groups="group"), thresholds=limits).findings[:2]
    assert (broken.verdict, unknown.verdict) == ("does_not_meet", "insufficient_evidence")
    assert broken.low is None
    assert "; 2 of 3 pairs have no interval; D has 20 people, and a test needs 50 (at least 0." in broken.sentence
    assert "2 of 3 pairs have no interval; D has 20 people" in broken.claim


# Words ----------------------------------------------------------------------------------------------------


def gap_record(**given: Any) -> GapRecord:
    values: dict[str, Any] = {
        "model": "m",
        "setting": "given",
        "grouping": "group",
        "group": "A",
        "reference": "B",
        "against": "reference",
        "statistic": "pabak",
        "noise_level": None,
        "n": 400,
        "stderr": 0.01,
        "df": 100.0,
        "p_value": 0.0001,
        "p_adjusted": None,
        "share_lower": 1.0,
        "replicate_sd": 0.01,
        "value": -0.05,
        "low": -0.07,
        "high": -0.03,
        "status": "ok",
    }
    return GapRecord(**values | given)


def told(*gaps: GapRecord) -> tuple[list[Finding], list[str]]:
    """Return the findings and notes of gaps as the audit makes them."""
    spec = ReliabilitySpec(model={"m": "logistic"}, features=("x",), noise={"x": 1}, statistics=RELIABILITY)
    levels = [replace(gap, noise_level=level, p_value=None) for gap in gaps for level in (0.1, 0.2)]
    every = adjusted([*gaps, *levels])
    return list(make_findings(every, [], spec)), list(outcome_notes([], every, spec))


@pytest.mark.parametrize("statistic", RELIABILITY)
def test_only_statistics_that_measure_harm_speak_of_it(statistic: str) -> None:
    (finding,), _ = told(gap_record(statistic=statistic))
    assert " is 0.050 lower for A than for B on average over 2 noise levels from 0.1 to 0.2" in finding.sentence
    harm = statistic in ("pabak", "icc_spread")
    assert ("mistakes hurt A more; " in finding.sentence) == harm
    assert ("so it does not say whom mistakes hurt more" in finding.sentence) == (not harm)
    moved = {
        "kappa": "selection is rare",
        "alpha": "selection is rare",
        "ac1": "selection is rare",
        "icc_a1": "scores are close together",
        "concordance": "scores are close together",
    }
    assert harm or moved[statistic] in finding.sentence


def test_statistics_that_point_different_ways_are_named() -> None:
    _, notes = told(
        gap_record(statistic="kappa"),
        gap_record(statistic="pabak", value=0.004, low=-0.01, high=0.018, p_value=0.6),
        gap_record(statistic="icc_a1", value=0.06, low=0.04, high=0.08),
    )
    note, why = notes
    assert why.startswith("Statistics that disagree measure different things: PABAK and the spread-adjusted ICC")
    assert "the statistics disagree. For A, held against B, " in note
    assert "Cohen's kappa (clearly) is lower and PABAK and ICC(A,1) (clearly) are higher" in note
    assert "hurt" not in note
    assert not told(gap_record(statistic="kappa"), gap_record(statistic="pabak"))[1]
    unsure = {"p_value": 0.5, "low": -0.2, "high": 0.2}
    assert not told(gap_record(statistic="kappa", **unsure), gap_record(value=0.05, **unsure))[1]


def test_findings_count_all_tests_of_a_run() -> None:
    six = [gap_record(statistic=name, p_value=p) for name, p in zip(RELIABILITY, (0.02, *[0.3] * 5), strict=False)]
    six[1] = replace(six[1], value=-0.01)
    elsewhere = gap_record(grouping="other", p_value=0.0002)
    findings, _ = told(*six, elsewhere)
    first = findings[0]
    assert "no clear difference, counting all 7 tests; Cohen's kappa is 0.050 lower" in first.sentence
    assert "p = 0.020, 0.120 adjusted for 7 tests)" in first.sentence
    assert "mistakes hurt A more" in findings[-1].sentence
    assert "p < 0.001, 0.001 adjusted for 7 tests); n" in findings[-1].sentence


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
    found = adjusted(records)
    assert found[-1].p_adjusted is None
    tested = sorted((r for r in found if r.p_value is not None), key=lambda r: r.p_value or 0.0)
    steps = [(len(tested) - place) * (r.p_value or 0.0) for place, r in enumerate(tested)]
    for place, record in enumerate(tested):
        assert record.p_adjusted == pytest.approx(min(1.0, max(steps[: place + 1])))


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
        wrong += any("no clear difference" not in finding.sentence for finding in found.findings)
    assert wrong <= 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "PABAK is the same for A and B on average over 2 noise levels"),
        (0.00002, "PABAK differs by less than 0.0001 between A and B"),
        (-0.0004, "PABAK is 0.0004 lower for A than for B"),
    ],
)
def test_equal_is_not_lower(value: float, words: str) -> None:
    (finding,), _ = told(gap_record(value=value, low=-0.01, high=0.01, p_value=1.0))
    assert words in finding.sentence
    assert "0.0000" not in finding.sentence


# What is not known ----------------------------------------------------------------------------------------


def test_small_groups_have_no_verdict() -> None:
    frame = three_groups({"A": 20, "B": 300}, {"A": 1.0, "B": 0.0})
    found = audited(eh.Table(frame, groups="group"), thresholds=[{"metric": "pabak", "max": 0.1}])
    gap = found.gap("pabak")
    assert gap.status == "no interval: A has 20 people, and a test needs 50"
    assert (gap.low, gap.high, gap.p_value, gap.p_adjusted) == (None, None, None, None)
    assert gap.value == pytest.approx(-1.0, abs=0.3)
    (finding,) = found.findings
    assert finding.verdict == "insufficient_evidence"
    assert "hurt" not in finding.sentence
    assert "; no interval: A has 20 people, and a test needs 50; n = 320" in finding.sentence
    assert any(
        "No interval, test or verdict is given for gaps" in note and "A has 20 people" in note for note in found.notes
    )


def test_small_folds_have_no_verdict(people: pd.DataFrame) -> None:
    """Kappa and ICC, which are biased in small folds, need more people there than PABAK does."""
    table = eh.Table(people, groups="group", outcome="again")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3, "priors": 1}}
    five, ten = (
        reliability("logistic", table, **asked, **FAST, statistics=["pabak", "icc_a1"], folds=folds)
        for folds in (5, 10)
    )
    assert five.gap("pabak").status == "ok"
    assert five.gap("icc_a1").status == "no interval: A has 15 people in a fold, and a test needs 20"
    assert ten.gap("pabak").status == "no interval: A has 7 people in a fold, and a test needs 10"


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
        statistics="kappa",
        **FAST,
    )
    gap = found.gap("kappa")
    assert gap.value == 0.0
    assert gap.status.startswith("no interval: it is undefined in ")
    assert gap.status.endswith(" of 100 resamples of people")
    assert "no resample" not in found.findings[0].sentence
    assert "Cohen's kappa is the same for A and B" in found.findings[0].sentence
    assert {record.status for record in found.curve("kappa", "B")} == {"no interval: no resample of people differs"}


def test_mistakes_that_do_nothing_are_not_laid_to_the_model(people: pd.DataFrame) -> None:
    """A normal error with sd 0 changes nothing; a model that does not look at `sex` gives the same scores."""
    found = reliability(
        lambda rows: rows[:, 1] / 20,
        eh.Table(people, groups="group"),
        features=["age", "priors", "sex"],
        noise={"age": {"sd": 0}, "priors": {"sd": 0.01}, "sex": "flip"},
        **FAST,
    )
    assert any("the mistakes in 'age', 'priors' never changed an entry" in note for note in found.notes)
    assert any("the mistakes in 'sex' changed entries and no score" in note for note in found.notes)
    assert not any("does not use" in note for note in found.notes)


def test_constant_scores_are_not_helped_by_larger_groups(table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}}
    found = reliability(lambda rows: np.full(len(rows), 0.3), table, **asked, **quick)
    assert any("in no fold or replicate does the statistic have a value" in note for note in found.notes)
    assert not any("Fewer folds" in note for note in found.notes)


def test_a_group_may_be_called_overall(middle: eh.Table) -> None:
    frame = three_groups({"(overall)": 150, "B": 300}, {"(overall)": 1.0, "B": 0.5})
    found = audited(eh.Table(frame, groups="group"))
    assert found.gap("pabak").group == "(overall)"
    assert len(found.curve("pabak", "(overall)")) == 1


# What gaps rest on ----------------------------------------------------------------------------------------


def test_the_report_says_that_all_groups_are_taken_alike(middle: eh.Table) -> None:
    alike = "Everybody's entries are taken to go wrong alike"
    assert any(note.startswith(alike) for note in audited(middle).notes)
    found = audited(middle, group_noise={"group": {"A": 1.5, "B": 1}})
    assert not any(note.startswith(alike) for note in found.notes)
    assert any("by group, about A 1.5 times as often. Gaps rest on these settings" in note for note in found.notes)


def test_a_small_pilot_is_noted(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    table = eh.Table(people, groups="group")
    for size in (20, 60):
        pilot = {f"age_{rater}": people.age.to_numpy()[:size] + shift for rater, shift in (("a", 0), ("b", 1))}
        noise = {"pilot": {"data": pilot, "suffixes": ["_a", "_b"]}}
        found = reliability(
            lambda rows: rows[:, 0] / 80, table, features=["age"], noise=noise, **quick | {"noise_levels": [0.5]}
        )
        few = any("20 people rated twice are few to learn mistakes from" in note for note in found.notes)
        assert few == (size == 20)
