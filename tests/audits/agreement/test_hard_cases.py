"""Hard cases: each once gave a false statement, and must not again."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.agreement import AgreementResult, agreement
from evenhand.audits.agreement.draws import LEAST_PEOPLE
from evenhand.audits.agreement.result import AgreementGap
from evenhand.core.findings import Finding
from evenhand.errors import ConfigError, DataError
from evenhand.stats.intervals import bonferroni, clopper_pearson
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.two_rates import compare_rates
from evenhand.stats.types import IntArray, Interval
from evenhand.stats.worst_pair import widest_difference

QUICK: dict[str, Any] = {"resamples": 200}
Rows = dict[str, Any]


def rated(**groups: tuple[int, int, int, int]) -> Rows:
    """Return ratings of groups with so many (yes, yes), (no, yes), (yes, no) and (no, no)."""
    x = np.concatenate([np.repeat([1, 0, 1, 0], counts) for counts in groups.values()])
    y = np.concatenate([np.repeat([1, 1, 0, 0], counts) for counts in groups.values()])
    return {"x": x, "y": y, "group": np.repeat(list(groups), [sum(counts) for counts in groups.values()])}


def audit(data: Rows, **settings: Any) -> AgreementResult:
    return agreement(eh.Table(data, groups="group"), **{"raters": ["x", "y"], **QUICK, **settings})


def gap_of(
    found: AgreementResult, statistic: str, against: str = "reference", group: str | None = None
) -> AgreementGap:
    return next(
        gap for gap in found.gaps if (gap.metric, gap.against) == (statistic, against) and group in (None, gap.group)
    )


def gaps_told(found: AgreementResult) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == "difference"]


LADDER = {"a": (60, 5, 5, 30), "middle": (100, 20, 20, 60), "z": (30, 35, 35, 20)}
"""Agreement 0.90, 0.80 and 0.42; the middle group is the largest, and so the reference."""


# Thresholds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"kind": "ratio"}, "kind 'ratio'"),
        ({"against": "overall"}, "against 'overall'"),
        ({"stratum": "u"}, "has no `stratum`"),
        ({"audit": "parity"}, "has `audit` 'parity'"),
        ({"metric": "bias_index"}, "limits nothing: more or less of it"),
        ({"metric": "mean_squared_error"}, "limits nothing: more or less of it"),
        ({"max": float("nan")}, "finite"),
        ({"max": float("inf")}, "finite"),
        ({"max": 2.0}, "below 2"),
        ({"metric": "agreement", "max": 1.0}, "below 1"),
    ],
)
def test_a_threshold_is_not_taken_for_something_else(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        audit(rated(**LADDER), thresholds=[{"metric": "pabak", "max": 0.1, **extra}])


def test_the_worst_pair_is_tested_and_not_only_the_gaps_to_the_reference_group() -> None:
    limit = {"metric": "pabak", "max": 0.9}
    found = audit(rated(**LADDER), thresholds=[limit, {**limit, "against": "reference"}])
    worst, *others = [finding for finding in found.findings if finding.threshold]
    assert worst.against == "worst_pair"
    assert worst.value == pytest.approx(2 * (0.90 - 5 / 12))
    assert (worst.group, worst.reference) == ("a", "z")
    assert {finding.against for finding in others} == {"reference"}
    assert len(others) == 2


def given(kind: str, people: int, categories: int, raters: int, rng: np.random.Generator) -> IntArray:
    """Return (raters, people) ratings of a group: of one mind, of one category, of opposite minds, or mixed."""
    truth = rng.integers(0, categories, people)
    if kind == "unanimous":
        return np.tile(truth, (raters, 1))
    if kind == "constant":
        return np.zeros((raters, people), dtype=np.int64)
    if kind == "opposite":
        return np.stack([truth, *[categories - 1 - truth] * (raters - 1)])
    return np.where(rng.random((raters, people)) < 0.6, truth, rng.integers(0, categories, (raters, people)))


@pytest.mark.parametrize(
    ("categories", "raters", "weighted", "confidence"),
    [(2, 2, True, 0.95), (2, 2, False, 0.9999), (3, 2, True, 0.9999), (2, 3, False, 0.95)],
)
@pytest.mark.parametrize("kinds", [("mixed", "mixed"), ("unanimous", "opposite"), ("constant", "mixed")])
@pytest.mark.parametrize("sizes", [(60, 40), (200, 1), (30, 2, 12), (25,) * 6])
def test_every_number_is_finite_in_json(
    sizes: tuple[int, ...], kinds: tuple[str, str], categories: int, raters: int, weighted: bool, confidence: float
) -> None:
    rng = np.random.default_rng(1)
    parts = [given((*kinds, *["mixed"] * len(sizes))[at], n, categories, raters, rng) for at, n in enumerate(sizes)]
    columns = {f"r{rater}": [f"c{code}" for code in codes] for rater, codes in enumerate(np.concatenate(parts, axis=1))}
    data = {**columns, "g": np.repeat([f"g{at}" for at in range(len(sizes))], sizes)}
    data |= {"w": rng.integers(1, 5, sum(sizes))} if weighted else {}
    found = eh.agreement(
        eh.Table(data, groups="g", weight="w" if weighted else None),
        raters=list(columns),
        categories=[f"c{code}" for code in range(categories)],
        min_count=1,
        confidence=confidence,
        resamples=100,
        thresholds=[{"metric": "ac1", "max": 0.1}],
    )
    json.dumps(found.to_dict(), allow_nan=False)
    for gap in found.gaps:
        ends = [end for end in (gap.low, gap.high, gap.joint_low, gap.joint_high) if end is not None]
        assert gap.p_value is None or ends, gap
        assert all(abs(end) <= 2.0 for end in ends), gap
        if gap.against == "reference" and gap.p_value is not None and gap.low is not None and gap.high is not None:
            assert (gap.p_value < 1.0 - confidence) == (gap.low > 0 or gap.high < 0), gap


def test_the_interval_of_the_worst_pair_holds_for_all_pairs() -> None:
    gap = gap_of(audit(rated(**LADDER)), "agreement", "worst_pair")
    shares = {"a": (0.9, 100), "middle": (0.8, 200), "z": (50 / 120, 120)}
    counts = {name: (round(share * n), n) for name, (share, n) in shares.items()}
    compared = [compare_rates(*counts[a], *counts[b]) for a, b in combinations(shares, 2)]
    pairs = [Interval(*np.array(one.limits(bonferroni(0.95, 3)))) for one in compared]
    together = Interval(*(np.array(ends) for ends in zip(*pairs, strict=True)))
    assert (gap.low, gap.high) == pytest.approx(widest_difference(together), abs=1e-9)
    assert (gap.joint_low, gap.joint_high) == (gap.low, gap.high)


def test_every_threshold_is_judged() -> None:
    limits = [{"metric": "pabak", "max": limit} for limit in (0.01, 1.9)]
    judged = [finding for finding in audit(rated(**LADDER), thresholds=limits).findings if finding.threshold]
    assert [(str(finding.threshold), finding.verdict) for finding in judged] == [
        ("at most 0.01", "does_not_meet"),
        ("at most 1.9", "meets"),
    ]


def test_thresholds_are_judged_in_every_grouping() -> None:
    data = rated(**LADDER)
    data["sex"] = np.resize(["F", "M"], len(data["x"]))
    data["rare"] = ["yes", *["no"] * (len(data["x"]) - 1)]
    table = eh.Table(data, groups=["group", "sex", "rare"])
    found = agreement(table, raters=["x", "y"], thresholds=[{"metric": "kappa", "max": 0.3}], **QUICK)
    judged = {finding.grouping: finding for finding in found.findings if finding.threshold}
    assert set(judged) == {"group", "sex", "rare"}
    assert judged["rare"].verdict == "insufficient_evidence"
    assert "Fewer than two groups have 10 people or more" in str(judged["rare"].reason)


def test_a_threshold_without_groups_is_refused() -> None:
    data = rated(**LADDER)
    with pytest.raises(ConfigError, match="limits a gap between groups, but the table names no groups"):
        agreement(eh.Table(data), raters=["x", "y"], thresholds=[{"metric": "pabak", "max": 0.1}], **QUICK)


def test_one_group_that_cannot_be_tested_leaves_the_upper_end_open() -> None:
    data = rated(**LADDER, same=(40, 0, 0, 40))
    found = audit(data, thresholds=[{"metric": "kappa", "max": 0.05}, {"metric": "kappa", "max": 1.9}])
    gap = gap_of(found, "kappa", "worst_pair")
    assert gap.high is None
    assert gap.low is not None
    assert gap.low > 0.05
    assert gap.status.text == "unbounded above: the raters disagree about nobody in same"
    assert [f.verdict for f in found.findings if f.threshold] == ["does_not_meet", "insufficient_evidence"]


def test_nothing_is_said_of_a_pair_that_was_not_tested() -> None:
    """Two groups surely differ; a third is lower still, by few people."""
    data = rated(high=(190, 10, 10, 190), low=(150, 60, 60, 130), few=(1, 3, 1, 7))
    found = audit(data)
    gap = gap_of(found, "kappa", "worst_pair")
    assert (gap.group, gap.reference) == ("high", "low")
    assert (found.get("values", metric="kappa", group="few").value or 0.0) < (
        found.get("values", metric="kappa", group="low").value or 0.0
    )
    told = next(f for f in gaps_told(found) if (f.metric, f.against) == ("kappa", "worst_pair"))
    assert "It is the largest gap of the groups that can be tested" in str(told.detail)
    assert "lower for low" in told.headline.text


def test_the_test_of_the_worst_pair_is_its_own() -> None:
    """The groups farthest apart are small; that two others surely differ says nothing of them."""
    found = audit(rated(small=(4, 4, 4, 4), low=(300, 150, 150, 300), high=(400, 50, 50, 400)))
    gap = gap_of(found, "pabak", "worst_pair")
    assert (gap.group, gap.reference) == ("high", "small")
    alone = audit(rated(small=(4, 4, 4, 4), high=(400, 50, 50, 400)))
    assert gap.p_value == pytest.approx(3 * (gap_of(alone, "pabak").p_value or 0.0))
    assert gap.low is not None
    assert gap.low > 0.3  # the largest gap is at least that of the two large groups


# Groups without disagreement ------------------------------------------------------------------------------


def test_a_group_without_disagreement_is_not_certain() -> None:
    found = audit(rated(all=(12, 0, 0, 8), some=(90, 5, 5, 100)))
    gap, alone = gap_of(found, "pabak"), found.get("values", metric="pabak", group="all")
    assert alone.low == pytest.approx(2 * 0.025 ** (1 / 20) - 1)
    assert (alone.high, alone.method, alone.status.text) == (1.0, "exact", "ok")
    assert gap.p_value is not None
    assert gap.p_value > 0.2
    kappa = gap_of(found, "kappa")
    assert kappa.value == pytest.approx(0.1, abs=0.01)
    assert (kappa.p_value, kappa.low, kappa.high) == (None, None, None)
    assert kappa.status.text == "no interval: the raters disagree about nobody in all"
    assert found.get("values", metric="kappa", group="all").status.text == kappa.status.text
    told = next(f for f in gaps_told(found) if f.metric == "kappa")
    assert told.headline.text.endswith("not tested.")
    assert "no interval: the raters disagree about nobody in all" in str(told.detail)


@pytest.mark.parametrize(("differ", "tested"), [(LEAST_PEOPLE - 1, False), (LEAST_PEOPLE, True)])
def test_too_little_disagreement_is_not_tested(differ: int, tested: bool) -> None:
    found = audit(rated(few=(60, differ, 0, 60), some=(90, 10, 10, 90)))
    for name in ("kappa", "alpha", "ac1", "positive_agreement"):
        gap = gap_of(found, name)
        assert (gap.p_value is not None) == tested
        if not tested:
            assert gap.status.text.endswith(f"are rated differently to test ({differ}, minimum {LEAST_PEOPLE})")


def test_a_rating_that_hardly_occurs_is_not_tested() -> None:
    gap = gap_of(audit(rated(few=(1, 4, 2, 60), some=(90, 10, 10, 90))), "kappa")
    assert gap.status.text == (
        "no interval: too few people in few have a rating other than the commonest to test (4, minimum 5)"
    )


def test_few_people_carry_the_differences_of_scores() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    y = x + 0.1 * rng.normal(size=120)
    y[:3] += 8
    found = audit({"x": x, "y": y, "group": np.repeat(["a", "b"], 60)})
    for name in ("icc_a1", "icc_spread", "concordance"):
        assert "too few people in a are rated differently to test (3," in gap_of(found, name).status.text or (
            "rated differently to test (2.9," in gap_of(found, name).status.text
        )
    assert found.get("values", metric="icc_a1", group="a").method == "generalised pivot"


def test_scores_that_never_differ_are_not_certain() -> None:
    x = np.linspace(0, 1, 40)
    found = audit({"x": x, "y": x, "group": ["a", "b"] * 20})
    icc = found.get("values", metric="icc_a1", grouping=None)
    assert (icc.value, icc.low, icc.status.text) == (1.0, None, "no interval: the raters disagree about nobody")
    assert gap_of(found, "icc_spread").p_value is None


# Words ----------------------------------------------------------------------------------------------------


def test_only_agreement_itself_may_be_called_less_agreement() -> None:
    found = audit(rated(a=(150, 50, 50, 150), b=(190, 10, 10, 190)), metrics=["kappa", "pabak", "agreement", "ac1"])
    sentences = {finding.metric: finding.text for finding in gaps_told(found)}
    for name in ("pabak", "agreement"):
        assert "raters agree less about a." in sentences[name]
    for name, why in (("kappa", "falls where one rating is rare"), ("ac1", "rises where one rating is rare")):
        assert "agree less" not in sentences[name]
        assert "it is lower for a." in sentences[name]
        assert f"it also {why}, so a lower value need not mean less agreement" in sentences[name]


def test_scores_say_less_agreement_by_the_spread_adjusted_icc_alone() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    y = x + np.repeat([0.9, 0.1], 200) * rng.normal(size=400)
    sentences = {f.metric: f.text for f in gaps_told(audit({"x": x, "y": y, "group": np.repeat(["a", "b"], 200)}))}
    assert "raters agree less about a." in sentences["icc_spread"]
    assert "it is lower for a." in sentences["icc_a1"]
    assert "it also falls where a group's ratings are close together" in sentences["icc_a1"]


def test_no_other_metric_says_so() -> None:
    rng = np.random.default_rng(2)
    grade = rng.integers(0, 4, 600)
    noise = np.where(rng.random(600) < np.repeat([0.6, 0.05], 300), rng.integers(0, 4, 600), grade)
    data = {"x": grade, "y": noise, "z": grade, "group": np.repeat(["a", "b"], 300)}
    for settings in ({"scale": "ordinal"}, {"scale": "nominal"}, {"scale": "nominal", "raters": ["x", "y", "z"]}):
        less = {f.metric for f in gaps_told(audit(data, **settings)) if "agree less" in f.text}
        assert less == {"bennett_s"}


def test_metrics_that_point_different_ways_are_told() -> None:
    found = audit(rated(rare=(4, 8, 8, 180), usual=(90, 15, 15, 80)), reference="usual")
    assert (gap_of(found, "kappa").value or 0.0) < 0 < (gap_of(found, "pabak").value or 0.0)
    note = next(note for note in found.notes if "point different ways" in note.text)
    assert "for rare Cohen's kappa is lower than for usual, but PABAK is higher" in note.text


def test_a_gap_in_kappa_alone_is_not_less_agreement() -> None:
    found = audit(rated(rare=(12, 18, 18, 452), usual=(230, 17, 17, 236)), reference="usual")
    assert any("PABAK is not: it is not shown that raters agree less about rare" in note.text for note in found.notes)


def test_equal_values_are_called_the_same() -> None:
    found = audit(rated(a=(40, 10, 10, 40), b=(40, 10, 10, 40)))
    for finding in gaps_told(found):
        assert "is the same for b and a" in finding.headline.text or "is the same for a and b" in finding.headline.text
        assert "lower" not in finding.text
        assert "A gap of 0;" in str(finding.detail)
    tiny = gaps_told(audit(rated(a=(400, 100, 100, 400), b=(401, 100, 100, 400))))
    assert all("e-0" not in str(finding.detail).partition("gap")[2].partition(";")[0] for finding in tiny)
    assert not any(
        "gap of 0.000;" in str(finding.detail) or "gap of −0.000;" in str(finding.detail) for finding in tiny
    )


# Many tests -----------------------------------------------------------------------------------------------


def test_p_values_are_adjusted_for_all_that_is_told() -> None:
    found = audit(rated(a=(30, 8, 8, 30), b=(40, 5, 5, 40), c=(45, 20, 20, 45), d=(90, 10, 10, 90)))
    told = gaps_told(found)
    assert len(told) == 2 * (3 + 1)  # to the reference group, and the worst pair
    raw = [np.nan if finding.p_value is None else finding.p_value for finding in told]
    assert [finding.p_adjusted for finding in told] == pytest.approx(list(adjusted_p(raw)))
    of_findings = {(f.metric, f.group, f.reference, f.against): f.p_adjusted for f in told}
    rows = [(gap, (gap.metric, gap.group, gap.reference, gap.against)) for gap in found.gaps]
    assert all(gap.p_adjusted == of_findings[place] for gap, place in rows if place in of_findings)
    others = [gap for gap, place in rows if place not in of_findings]
    p_values = [np.nan if gap.p_value is None else gap.p_value for gap in others]
    adjusted = adjusted_p(p_values, "benjamini_hochberg")
    assert [np.nan if gap.p_adjusted is None else gap.p_adjusted for gap in others] == pytest.approx(
        list(adjusted), nan_ok=True
    )


def test_between_two_groups_a_gap_is_tested_once() -> None:
    found = audit(rated(a=(30, 9, 9, 30), b=(60, 5, 5, 60)))
    assert [finding.against for finding in gaps_told(found)] == ["reference", "reference"]
    for name in ("kappa", "pabak"):
        one, other = gap_of(found, name), gap_of(found, name, "worst_pair")
        assert one.p_adjusted == other.p_adjusted
        assert one.p_value == pytest.approx(other.p_value)
    assert {str(finding.family) for finding in gaps_told(found)} == {"2 tested findings of agreement alone"}


def test_a_sentence_rests_on_the_adjusted_p() -> None:
    found = audit(rated(**{f"g{i}": (40, 5, 5, 40) for i in range(5)}, low=(36, 8, 8, 36), all=(200, 20, 20, 200)))
    gap = gap_of(found, "pabak", group="low")
    assert gap.p_value is not None
    assert gap.p_value < 0.05
    told = next(
        f for f in gaps_told(found) if f.metric == "pabak" and "for low" in f.headline.text and f.against == "reference"
    )
    assert "no clear difference" in told.headline.text
    assert told.p_adjusted is not None
    assert told.p_adjusted > 0.05
    assert "adjusted (" in str(told.detail)


def test_p_and_interval_say_the_same() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        counts = {name: tuple(rng.multinomial(60, [0.35, 0.1, 0.1, 0.45]).tolist()) for name in "abc"}
        for gap in audit(rated(**counts)).gaps:
            if gap.p_value is not None and gap.low is not None and gap.high is not None:
                without = gap.low > 0 or gap.high < 0
                assert (
                    (gap.p_value < 0.05) == without if gap.against == "reference" else without >= (gap.p_value < 0.05)
                )


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "people"), [(6, 20), (2, 15)])
def test_equal_groups_are_seldom_found_to_differ(groups: int, people: int) -> None:
    rng = np.random.default_rng(groups + people)
    false, samples = 0, 30
    for _ in range(samples):
        counts = {f"g{i}": tuple(rng.multinomial(people, [0.45, 0.05, 0.05, 0.45]).tolist()) for i in range(groups)}
        false += any(
            "agree less" in f.headline.text or "is lower" in f.headline.text for f in gaps_told(audit(rated(**counts)))
        )
    assert false <= 4  # at 5 % the chance of more is 1.6 %


# Names and bad input --------------------------------------------------------------------------------------


def test_a_group_with_our_name_for_everybody_is_refused() -> None:
    with pytest.raises(DataError, match="a group called '\\(overall\\)', our name for everybody"):
        audit(rated(**{"(overall)": (20, 5, 5, 20), "b": (20, 2, 2, 20)}))


def test_raters_who_share_no_rating_are_told() -> None:
    never = audit({"x": ["a", "b"] * 30, "y": ["c", "d"] * 30, "group": np.repeat(["p", "q"], 30)})
    assert never.get("values", metric="kappa", grouping=None).status.text == (
        "no interval: the raters agree on a rating other than the commonest about too few people to test (0, minimum 3)"
    )
    assert any("'x' and 'y' have no rating in common" in note.text for note in never.notes)


def test_no_value_and_no_variation_are_told_apart() -> None:
    found = audit(rated(a=(0, 0, 1, 60), b=(30, 9, 9, 30)))
    assert (
        found.get("values", metric="prevalence_part", group="a").status.text
        == "no interval: too many resamples of a have no value"
    )
    same = audit(rated(a=(30, 0, 0, 31), b=(30, 9, 9, 30)))
    assert (
        same.get("values", metric="bias_index", group="a").status.text
        == "no interval: the resamples of a do not differ"
    )


def test_raters_who_hardly_agree_on_the_rarer_rating_are_not_tested() -> None:
    """Kappa near 0: where nobody happens to have two yes, the resamples vary too little."""
    found = audit(rated(few=(2, 6, 7, 35), many=(100, 150, 150, 600)))
    assert gap_of(found, "kappa").status.text == (
        "no interval: the raters agree on a rating other than the commonest about too few people in few to test (2, "
        "minimum 3)"
    )
    assert gap_of(audit(rated(few=(3, 6, 7, 34), many=(100, 150, 150, 600))), "kappa").status.id == "core.ok"


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"raters": []}, "`raters` needs two or more columns; got none"),
    ({}, {"raters": ["x"]}, "`raters` needs two or more columns; got 1"),
    ({}, {"raters": ["x", "x"]}, "`raters` names the column 'x' twice"),
    ({"x": [True, False] * 20}, {}, "some of the raters' ratings are numbers and others true and false"),
    ({"x": ["1", "0"] * 20}, {}, "some of the raters' ratings are numbers and others text"),
    ({"x": np.array([1, "a"] * 20, dtype=object)}, {}, "some of the raters' ratings are numbers and others text"),
    ({"x": [None] * 40, "y": [None] * 40}, {}, "hold no ratings"),
    ({"x": [None] * 40}, {}, "ratings are missing in 40 rows of 40"),
    ({"x": [None] * 40}, {"missing": "drop"}, "nobody has the ratings of two raters"),
]


@pytest.mark.parametrize(("columns", "settings", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_what_cannot_be_is_said_in_a_sentence(columns: Rows, settings: dict[str, Any], message: str) -> None:
    data = {"x": [0, 1] * 20, "y": [0, 1, 1, 1] * 10, "group": ["a", "b"] * 20, **columns}
    with pytest.raises((ConfigError, DataError), match=message):
        audit(data, **settings)


def test_a_group_of_one_person_is_judged_with_care() -> None:
    data = rated(one=(0, 1, 0, 0), all=(200, 2, 2, 200))
    found = audit(data, min_count=1, thresholds=[{"metric": "pabak", "max": 0.1}, {"metric": "kappa", "max": 0.1}])
    assert {f.metric: f.verdict for f in found.findings if f.threshold} == {
        "pabak": "insufficient_evidence",
        "kappa": "insufficient_evidence",
    }


@pytest.mark.parametrize("scale", ["nominal", "interval"])
def test_many_raters_with_missing_ratings(scale: str) -> None:
    rng = np.random.default_rng(7)
    data: Rows = {f"r{i}": np.where(rng.random(200) < 0.6, np.nan, rng.integers(0, 3, 200)) for i in range(8)}
    data["group"] = ["a", "b"] * 100
    found = audit(data, raters=[f"r{i}" for i in range(8)], missing="keep", scale=scale)
    assert all(
        gap.status.id == "core.ok" or gap.status.text.startswith(("undefined: ", "no interval: ")) for gap in found.gaps
    )
    assert gap_of(found, "alpha").p_adjusted is not None if scale == "interval" else gap_of(found, "bennett_s").p_value
    if scale == "nominal":
        record = found.get("values", metric="bennett_s", grouping=None)
        assert record.low is not None
        assert record.high is not None
        assert record.value is not None
        assert record.low < record.value < record.high
        rows = np.stack([data[f"r{i}"] for i in range(8)], axis=1)
        own = [
            np.mean([a == b for a, b in combinations(row[~np.isnan(row)], 2)])
            for row in rows
            if (~np.isnan(row)).sum() > 1
        ]
        limits = clopper_pearson(np.mean(own), len(own))
        assert (record.low, record.high) == pytest.approx((1.5 * limits.low - 0.5, 1.5 * limits.high - 0.5))


def test_survey_weights_widen_the_exact_interval() -> None:
    data = rated(a=(60, 10, 10, 60), b=(60, 10, 10, 60))
    data["weight"] = np.resize([1.0, 9.0], len(data["x"]))
    plain = audit(data).get("values", metric="pabak", grouping=None)
    weighted = agreement(eh.Table(data, groups="group", weight="weight"), raters=["x", "y"], **QUICK).get(
        "values", metric="pabak", grouping=None
    )
    assert None not in (plain.low, plain.high, weighted.low, weighted.high)
    assert (weighted.high or 0.0) - (weighted.low or 0.0) > 1.2 * ((plain.high or 0.0) - (plain.low or 0.0))


@pytest.mark.parametrize("size", [1e100, 1e200, 1e308, 1e-200, 1e-308])
@pytest.mark.parametrize("raters", [2, 3])
def test_scores_out_of_reach_of_the_arithmetic_are_refused_in_a_sentence(size: float, raters: int) -> None:
    names = ["a", "b", "c"][:raters]
    scores = {name: size * np.sin(np.arange(20.0) + number) for number, name in enumerate(names)}
    with pytest.raises(DataError, match=r"the scores of the rater 'a' reach .*; give them in other units\."):
        eh.agreement(eh.Table(scores), raters=names, scale="interval", resamples=100)


@pytest.mark.parametrize("size", [1e70, 1e-70])
def test_the_unit_of_scores_does_not_matter(size: float) -> None:
    base = {name: np.sin(np.arange(40.0) * number) for number, name in ((1, "a"), (1.02, "b"))}
    ours, theirs = (
        eh.agreement(eh.Table({n: factor * v for n, v in base.items()}), raters=["a", "b"], resamples=100)
        for factor in (1.0, size)
    )
    for metric in ("icc_a1", "icc_spread", "concordance", "alpha"):
        one, other = (result.get("values", metric=metric) for result in (ours, theirs))
        assert other.value == pytest.approx(one.value)
        assert (other.low, other.high) == pytest.approx((one.low, one.high))
