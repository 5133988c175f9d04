"""The numbers: by definition where the critics' labels are known, else between what all readings of answers give."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.stats.feedback import DEFINITE, INDEFINITE

from .conftest import Audit, Frame, everybody_sees_everything, make_answers, true_gap, true_rate

SIX = (*DEFINITE, *INDEFINITE)


def pooled(result: eh.DisagreementResult, grouping: str = "race") -> dict[str, Any]:
    return {g.metric: g for g in result.gaps if (g.grouping, g.stakeholder) == (grouping, None)}


def test_the_definite_metrics_are_those_of_the_critics_own_labels(answers: Frame, audit: Audit) -> None:
    result = audit(answers)
    for metric in DEFINITE:
        gap = pooled(result)[metric]
        assert gap.identified == "definite"
        assert gap.lower == gap.upper == gap.value == pytest.approx(true_gap(answers, metric, 3), abs=1e-12)
        assert gap.low <= gap.value <= gap.high
    for rate in result.values:
        rows = answers[answers["race"] == rate.group]
        label = None if rate.label is None else int(rate.label)
        if rate.metric in DEFINITE:
            assert rate.value == pytest.approx(true_rate(rows, rate.metric, label), abs=1e-12)
            assert rate.n == (len(rows) if rate.metric != "calibration" else (rows["label"] == label).sum())


@pytest.mark.slow
def test_the_truth_stands_beside_the_bounds_and_within_them(answers: Frame, audit: Audit) -> None:
    result = audit(answers, truth="own")
    for metric, gap in pooled(result).items():
        assert gap.truth == pytest.approx(true_gap(answers, metric, 3), abs=1e-12)
        assert gap.lower - 1e-9 <= gap.truth <= gap.upper + 1e-9
        assert gap.identified == ("definite" if metric in DEFINITE else "bounded")
    for rate in result.values:
        rows = answers[answers["race"] == rate.group]
        label = None if rate.label is None else int(rate.label)
        assert rate.truth == pytest.approx(true_rate(rows, rate.metric, label), abs=1e-12)
        assert rate.lower is not None
        assert rate.upper is not None
        assert rate.truth is not None
        assert rate.lower - 1e-12 <= rate.truth <= rate.upper + 1e-12
        assert rate.value == pytest.approx((rate.lower + rate.upper) / 2)
    assert all(record.inside == 1.0 for record in result.truth)


def test_bounds_are_the_ends_of_everything_the_answers_allow(audit: Audit) -> None:
    """Three labels, few disagreements: try every label that each critic may have had in mind."""
    data = make_answers(critics=2, cases=14, each=12, seed=3)
    open_rows = np.flatnonzero(data["disagrees"])[:6]
    data = data.drop(index=[row for row in np.flatnonzero(data["disagrees"]) if row not in open_rows]).reset_index(
        drop=True
    )
    open_rows = np.flatnonzero(data["disagrees"])
    choices = [[k for k in (1, 2, 3) if k != label] for label in data["label"].iloc[open_rows]]
    found: dict[str, list[float]] = {metric: [] for metric in INDEFINITE}
    ends: dict[tuple[str, str, int], list[float]] = {}
    for meant in product(*choices):
        own = data["own"].to_numpy().copy()
        own[open_rows] = meant
        reading = data.assign(own=own)
        for metric in INDEFINITE:
            rates = {
                (group, label): true_rate(rows, metric, label)
                for group, rows in reading.groupby("race")
                for label in (1, 2, 3)
            }
            for (group, label), rate in rates.items():
                ends.setdefault((metric, str(group), label), []).append(rate)
            defined = [abs(rates["Black", k] - rates["White", k]) for k in (1, 2, 3)]
            found[metric].append(float(np.nanmax(defined)))
    result = audit(data, labels=[1, 2, 3], min_count=1)
    for name, values in found.items():
        gap = pooled(result)[name]
        assert gap.upper == pytest.approx(max(values), abs=1e-9)
        assert gap.lower <= min(values) + 1e-9
    for record in result.values:
        if record.metric in INDEFINITE and record.lower is not None:
            readings = ends[record.metric, record.group, int(record.label or 0)]
            assert record.lower == pytest.approx(np.nanmin(readings), abs=1e-9)
            assert record.upper == pytest.approx(np.nanmax(readings), abs=1e-9)


def test_two_labels_leave_nothing_open(audit: Audit) -> None:
    data = make_answers(labels=2)
    result = audit(data, truth="own")
    for metric, gap in pooled(result).items():
        assert gap.identified == ("definite" if metric in DEFINITE else "exact")
        assert gap.value == pytest.approx(gap.truth, abs=1e-12) == pytest.approx(true_gap(data, metric, 2), abs=1e-12)
    assert pooled(result)["overall_misclassification"].same_as == "equal_opportunity"
    assert pooled(result)["predictive_equality"].same_as == "equal_opportunity"
    assert "disagreement.two_labels" in {note.id for note in result.notes}


def test_a_direction_narrows_and_three_labels_with_it_are_nearly_known(answers: Frame, audit: Audit) -> None:
    plain, directed = pooled(audit(answers)), pooled(audit(answers, direction="answer"))
    words = pooled(audit(answers, disagree=None, answer="answer"))
    for metric in INDEFINITE:
        assert directed[metric] == words[metric]
        assert plain[metric].lower - 1e-9 <= directed[metric].lower
        assert directed[metric].upper <= plain[metric].upper + 1e-9
        assert directed[metric].lower - 1e-9 <= true_gap(answers, metric, 3) <= directed[metric].upper + 1e-9
    assert any(directed[n].upper - directed[n].lower < plain[n].upper - plain[n].lower - 0.05 for n in INDEFINITE)


def test_a_tolerance_has_metrics_of_its_own(audit: Audit) -> None:
    data = make_answers(labels=5, seed=2)
    near = (data["own"] - data["label"]).abs() <= 1
    data = data.assign(disagrees=(~near).astype(int))
    result = audit(data, tolerance=1, truth="own")
    gaps = pooled(result)
    share = data.assign(near=near).groupby("race")["near"].mean()
    assert gaps["tolerant_accuracy"].value == pytest.approx(share.max() - share.min(), abs=1e-12)
    assert gaps["tolerant_accuracy"].identified == "definite"
    assert gaps["calibration"].identified == gaps["accuracy_equality"].identified == "bounded"
    for metric in (*DEFINITE, *INDEFINITE):
        assert gaps[metric].lower - 1e-9 <= true_gap(data, metric, 5) <= gaps[metric].upper + 1e-9


@pytest.mark.slow
def test_every_critic_alone(answers: Frame, audit: Audit) -> None:
    result = audit(answers, truth="own")
    singles: dict[Any, Any] = {(g.critic, g.metric): g for g in result.critics}
    assert len(singles) == 24 * 6
    for critic, rows in answers.groupby("critic"):
        for metric in SIX:
            gap = singles[critic, metric]
            assert gap.n == len(rows)
            assert gap.stakeholder is None
            assert gap.truth == pytest.approx(true_gap(rows, metric, 3), abs=1e-12)
            assert gap.lower - 1e-9 <= gap.truth <= gap.upper + 1e-9
            if metric in DEFINITE:
                assert gap.value == pytest.approx(gap.truth, abs=1e-12)
            if gap.low is not None:
                assert 0 <= gap.low <= gap.high <= 1
                assert gap.high >= gap.upper - 1e-9
    for record in result.critics:
        assert record.value is not None
        assert record.truth is not None
        assert record.error == pytest.approx(record.value - record.truth)
        assert record.critics == 1
    for row in result.truth:
        errors = [abs(r.error or 0.0) for r in result.critics if r.metric == row.metric]
        assert row.mean_error == pytest.approx(np.mean(errors))
        assert row.worst_error == pytest.approx(max(errors))


def test_a_critic_without_a_case_of_some_group_has_a_message_and_no_number(answers: Frame, audit: Audit) -> None:
    lost = (answers["critic"] == "c03") & (answers["race"] == "Black")
    result = audit(answers[~lost])
    own = result.rows("critics", critic="c03")
    assert len(own) == 6
    for gap in own:
        assert gap.status.text == "undefined: this critic answered no case of Black"
        assert gap.value is gap.lower is gap.upper is gap.low is gap.high is None
    assert {gap.error for gap in own} == {None}


@pytest.mark.slow
def test_kinds_of_critics(answers: Frame, audit: Audit) -> None:
    result = audit(answers, stakeholder="kind", truth="own")
    for kind, rows in answers.groupby("kind"):
        gaps = {g.metric: g for g in result.gaps if g.stakeholder == kind}
        for metric in SIX:
            assert gaps[metric].n == len(rows)
            assert gaps[metric].truth == pytest.approx(true_gap(rows, metric, 3), abs=1e-12)
        alone = audit(rows, truth="own")
        for metric in SIX:  # the same critics in a table of their own
            mine, theirs = gaps[metric], pooled(alone)[metric]
            assert (mine.lower, mine.upper, mine.label) == (theirs.lower, theirs.upper, theirs.label)
    assert {g.stakeholder for g in result.rows("critics", critic="c00")} == {"Patient"}


@pytest.mark.slow
def test_where_kinds_differ_on_shared_cases(audit: Audit) -> None:
    """Each case that both kinds saw counts the same for both: a mean of means, written out."""
    data = make_answers(critics=40, cases=60, each=30, seed=5)
    result = audit(data, stakeholder="kind", resamples=300)
    seen = data.groupby("case")["kind"].nunique()
    shared = data[data["case"].isin(seen.index[seen == 2])]
    means = shared.groupby(["race", "label", "case", "kind"])["disagrees"].mean().unstack()
    expected = means.groupby(["race", "label"]).mean()
    rates = [r for r in result.stakeholders if r.metric == "disagreement"]
    assert len(rates) == 6
    for record in rates:
        row = expected.loc[(record.group, int(record.label or 0))]
        assert (record.stakeholder, record.stakeholder_reference) == ("Patient", "Surgeon")
        assert record.value == pytest.approx(row["Patient"] - row["Surgeon"], abs=1e-12)
        assert record.p_adjusted is not None
        assert record.p_value is not None
        assert record.p_value <= record.p_adjusted <= 1
        # Patients disagree more about Black cases only, by 35 points.
        assert (record.p_adjusted < 0.05) == (record.group == "Black")
    assert {r.metric for r in result.stakeholders} == {"disagreement", "calibration", "accuracy_equality"}


@pytest.mark.slow
def test_intersections_small_groups_and_missing_ones(answers: Frame, audit: Audit) -> None:
    data = answers.copy()
    data.loc[data["case"] == "k000", "sex"] = None
    rare = sorted(data["case"].unique())[1:4]
    data.loc[data["case"].isin(rare), "race"] = "Asian"
    result = audit(data, groups=["race", ["race", "sex"]], min_count=10)
    names = {(r.grouping, r.group): r for r in result.left_out}
    assert names["race × sex", "(missing)"].n == (data["case"] == "k000").sum()
    assert names["race", "Asian"].n == data["case"].isin(rare).sum()
    assert names["race", "Asian"].reason.text == "small group, 3 cases: not compared (fewer than 10)"
    assert "Asian" not in {g.group for g in result.gaps} | {g.reference for g in result.gaps}
    assert {r.group for r in result.values if r.grouping == "race"} == {"Asian", "Black", "White"}
    groups = {r.group for r in result.values if r.grouping == "race × sex"}
    assert {"Black × F", "Black × M", "White × F", "White × M"} <= groups
    crossed = data[data["sex"].notna() & (data["race"] != "Asian")]
    crossed = crossed.assign(both=crossed["race"] + " " + crossed["sex"])
    for metric in DEFINITE:
        expected = true_gap(crossed, metric, 3, "both")
        assert pooled(result, "race × sex")[metric].value == pytest.approx(expected, abs=1e-12)


def test_declared_labels_count_though_nobody_got_them(answers: Frame, audit: Audit) -> None:
    """Whoever disagrees may have had the fourth label in mind, so less is known."""
    seen, declared = audit(answers), audit(answers, labels=[1, 2, 3, 4])
    assert declared.labels == ("1", "2", "3", "4")
    never = [r for r in declared.values if r.label == "4"]
    assert {r.status.text for r in never if r.metric == "calibration"} == {
        "undefined: the label was never given to the group"
    }
    assert all(r.lower == r.upper == 0.0 for r in never if r.metric == "predictive_equality")
    for metric in INDEFINITE:
        assert pooled(declared)[metric].upper >= pooled(seen)[metric].upper - 1e-9
    assert "disagreement.seen_labels" in {note.id for note in seen.notes}
    assert "disagreement.seen_labels" not in {note.id for note in declared.notes}


def test_published_bounds_are_the_papers(answers: Frame, audit: Audit) -> None:
    result = audit(answers, bounds="published")
    share = {g: rows["label"].value_counts(normalize=True) for g, rows in answers.groupby("race")}
    agree = {g: 1 - rows.groupby("label")["disagrees"].mean() for g, rows in answers.groupby("race")}
    phi = {g: agree[g] * share[g] for g in share}
    lower = {(g, k): phi[g][k] / (phi[g][k] + 1 - share[g][k]) for g in share for k in (1, 2, 3)}
    for rate in result.values:
        if rate.metric == "equal_opportunity":
            assert rate.lower == pytest.approx(lower[rate.group, int(rate.label or 0)])
            assert rate.upper == 1.0
    gap = pooled(result)["equal_opportunity"]
    assert gap.lower == pytest.approx(max(lower.values()) - 1)
    assert gap.upper == pytest.approx(1 - min(lower.values()))
    assert gap.value == pytest.approx((gap.lower + gap.upper) / 2)
    assert pooled(result)["overall_misclassification"].same_as is None
    assert "disagreement.published_bounds" in {note.id for note in result.notes}


@pytest.mark.slow
def test_intervals_cover_the_known_population(audit: Audit) -> None:
    """A loose check on the whole path; the coverage itself is measured with the kernels."""
    truth = eh.datasets.kidney_offers_truth()["all"]["patient_sex"]
    expected = abs(truth["Female"]["accuracy_equality"] - truth["Male"]["accuracy_equality"])
    covered = 0
    for seed in range(8):
        offers = eh.datasets.make_kidney_offers(200, 40, seed=seed, backend="pandas")
        result = audit(offers, groups="patient_sex", decision="quality", case="offer", labels=[1, 2, 3, 4], seed=seed)
        gap = pooled(result, "patient_sex")["accuracy_equality"]
        covered += gap.low <= expected <= gap.high
    assert covered >= 6


def test_weights_count(answers: Frame, audit: Audit) -> None:
    data = answers.assign(weight=np.where(answers["sex"] == "F", 3.0, 0.5))
    heavy = audit(data, table={"weight": "weight"})
    doubled = pd.concat([answers[answers["sex"] == "F"]] * 6 + [answers[answers["sex"] == "M"]])
    for metric in DEFINITE:
        assert pooled(heavy)[metric].value == pytest.approx(true_gap(doubled, metric, 3), abs=1e-12)
    assert {gap.low for gap in heavy.critics} == {None}


def test_planning(answers: Frame, audit: Audit) -> None:
    result = audit(answers, target_width=0.2)
    records = {(r.metric, r.design): r for r in result.plan}
    assert {metric for metric, _ in records} == {*DEFINITE, "equal_opportunity", "predictive_equality"}
    for (metric, design), record in records.items():
        gap = pooled(result)[metric]
        assert record.width == pytest.approx(gap.high - gap.low, abs=2e-3)
        if record.status.id == "core.ok":
            assert record.width is not None
            assert (record.answers == 0) == (record.width <= 0.2)
        if metric == "equal_opportunity":
            assert record.status.text == "not reachable: even answers from everybody would leave more than that open"
        if design == "same cases" and record.cases is not None:
            assert record.cases == 0
    assert audit(answers).plan == ()


def test_cases_that_are_all_there_are_narrow_the_intervals(answers: Frame, audit: Audit) -> None:
    sample, whole = (pooled(audit(answers, cases=cases, resamples=400)) for cases in ("sample", "all"))
    assert whole["accuracy_equality"].value == sample["accuracy_equality"].value
    width = {
        name: g["statistical_parity"].high - g["statistical_parity"].low for name, g in (("s", sample), ("w", whole))
    }
    assert width["w"] < width["s"]


def test_many_critics_are_not_listed_one_by_one(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.audits.disagreement.audit.MOST_CRITICS", 10)
    monkeypatch.setattr("evenhand.audits.disagreement.findings.MOST_CRITICS", 10)
    result = audit(make_answers())
    assert result.critics == ()
    assert "With more than 10 critics, the critics one by one are left out." in [note.text for note in result.notes]


def test_large_data_get_fewer_resamples_and_say_so(
    answers: Frame, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.audits.disagreement.groups.MOST_NUMBERS", 3 * 250)
    result = audit(answers, resamples=300)
    assert "Intervals by race use 250 resamples instead of 300, because the data are large." in [
        note.text for note in result.notes
    ]


def test_the_truth_of_tolerant_metrics_is_tolerant(audit: Audit) -> None:
    data = make_answers(labels=5, seed=3)
    data["disagrees"] = ((data.own - data.label).abs() > 1).astype(int)
    found = audit(data, tolerance=1, truth="own")
    tolerant = [rate for rate in found.values if rate.metric.startswith("tolerant")]
    assert len(tolerant) == 2 * (5 + 1)
    for rate in tolerant:
        rows = data[data.race == rate.group]
        if rate.label is not None:
            rows = rows[rows.label == int(rate.label)]
        assert rate.truth == pytest.approx(((rows.own - rows.label).abs() <= 1).mean(), abs=1e-12)
        assert rate.truth == pytest.approx(rate.value, abs=1e-12)
    every: tuple[Any, ...] = (*found.gaps, *found.critics)
    gaps = [gap for gap in every if gap.metric.startswith("tolerant") and gap.value is not None]
    assert len(gaps) > 2
    assert all(gap.truth == pytest.approx(gap.value, abs=1e-12) for gap in gaps)


def test_everybody_agrees_has_the_exact_limit_of_a_proportion(audit: Audit) -> None:
    found = audit(everybody_sees_everything().assign(disagrees=0))
    gap = found.get("gaps", metric="calibration")
    assert (gap.value, gap.low) == (0.0, 0.0)
    assert gap.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-9)  # 20 cases of each group and label
    alone = found.get("critics", metric="calibration", critic="3")
    assert alone.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-9)


def test_weights_are_said_to_be_weights(audit: Audit, answers: Frame) -> None:
    found = audit(answers.assign(w=1.0 + answers.label), table={"weight": "w"})
    assert not any("do not vary" in gap.status.text for gap in found.critics)
    assert any("weighted answers" in gap.status.text for gap in found.critics)
    assert not any("counts once" in note.text for note in found.notes)


def test_a_label_never_given_to_a_group_is_named(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    data.loc[data.race == "b", "label"] = 0
    assert any("“1” to b" in note.text for note in audit(data).notes)
    assert not any("never given" in note.text for note in audit(everybody_sees_everything().assign(disagrees=0)).notes)


# Pairs of like cases --------------------------------------------------------------------------------------------------


def test_pairs_of_like_cases_are_those_of_the_rows(answers: Frame, audit: Audit) -> None:
    """Written out row by row, with the critics' own labels: the truth lies between the bounds."""
    rows = answers.assign(age=answers["case"].str[1:].astype(int) % 10)
    found = audit(rows, like={"sex": 0, "age": 1}, stakeholder="kind", truth="own", individuals=True)
    told: dict[Any, Any] = {(r.metric, r.stakeholder): r for r in found.pairs}
    pairs = rows.merge(rows, on="critic")
    pairs = pairs[(pairs["case_x"] < pairs["case_y"]) & (pairs["sex_x"] == pairs["sex_y"])]
    pairs = pairs[(pairs["age_x"] - pairs["age_y"]).abs() <= 1]
    split = pairs["disagrees_x"] != pairs["disagrees_y"]
    held, treated = pairs["own_x"] == pairs["own_y"], pairs["label_x"] == pairs["label_y"]
    for kind in (None, "Patient"):
        own = (pairs["kind_x"] == kind) if kind else pairs["kind_x"].notna()
        record = told["split_answers", kind]
        assert (record.n, record.value) == (own.sum(), pytest.approx(split[own].mean()))
        for metric, truth in (
            ("held_alike_treated_apart", held & ~treated),
            ("held_apart_treated_alike", ~held & treated),
        ):
            bounds = told[metric, kind]
            assert bounds.truth == pytest.approx(truth[own].mean())
            assert bounds.lower <= bounds.truth <= bounds.upper
            assert bounds.low <= bounds.lower <= bounds.upper <= bounds.high
    assert {r.critic for r in found.critic_pairs} == set(pairs["critic"])
    assert found.plot("pairs").to_svg(name="x")
    assert "Pairs of like cases (the same sex, age at most 1 apart) that one critic judged" in found._repr_html_()


def test_pairs_come_from_the_table_of_cases_too(answers: Frame, audit: Audit) -> None:
    cases = answers[["case", "race", "sex", "label"]].drop_duplicates("case")
    said = answers[["case", "critic", "disagrees"]]
    settings: Any = {"decision": "label", "disagree": "disagrees", "critic": "critic", "resamples": 100}
    apart = eh.disagreement(
        eh.Table(cases, groups="race", id="case"), answers={"data": said}, like={"sex": 0}, **settings
    )
    assert [r.to_dict() for r in apart.pairs] == [r.to_dict() for r in audit(answers, like={"sex": 0}).pairs]
    assert audit(answers).pairs == ()


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ({"sex": 2}, "does not hold numbers"),
        ({"sex": -1}, "at least 0"),
        ({}, "names no column"),
        ({"sexx": 0}, "did you mean 'sex'"),
    ],
)
def test_what_cannot_make_cases_alike_is_refused(answers: Frame, audit: Audit, like: Any, words: str) -> None:
    with pytest.raises(eh.EvenhandError, match=words):
        audit(answers, like=like)
