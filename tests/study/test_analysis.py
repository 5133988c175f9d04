"""The analysis of a study: other libraries, brute force, laws, tables, and bad input."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from evenhand.charts import to_svg
from evenhand.core.sections import Figure
from evenhand.errors import ConfigError, DataError
from evenhand.stats.correlation import meng_z, williams_t
from evenhand.stats.truth_serum import scores
from evenhand.study import Responses, StudyResult, analyze, read_responses, simulate_responses

CONDITIONS = {"CLUE": {"weight": 0.6037}, "SHED": {"weight": 0.6577}}
QUICK: dict[str, Any] = {"resamples": 300}


@pytest.fixture(scope="module")
def responses() -> Responses:
    return simulate_responses(60, conditions=CONDITIONS, seed=3)


@pytest.fixture(scope="module")
def result(responses: Responses) -> StudyResult:
    return analyze(responses, **QUICK)


@pytest.fixture(scope="module")
def frame(responses: Responses) -> pd.DataFrame:
    rows = responses.to_frame("pandas")
    kept = rows[rows.checks_total - rows.checks_passed < 2]
    return kept.assign(output=(kept.risk - kept.risk_reference).abs())


@pytest.mark.parametrize("condition", list(CONDITIONS))
@pytest.mark.parametrize("target", ["overall", "output"])
def test_correlations_equal_scipy(result: StudyResult, frame: pd.DataFrame, condition: str, target: str) -> None:
    own = frame[frame.condition == condition]
    for term in ("aggregate", "trajectory"):
        found = result.estimate("correlations", term, method="published", condition=condition, target=target)
        theirs = spearmanr(own[term], own[target])
        assert found.value == pytest.approx(theirs.statistic, abs=1e-12)
        assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-6)
        assert (found.n, found.people) == (len(own), own.participant.nunique())
        people = result.estimate(
            "correlations", term, method="participant_bootstrap", condition=condition, target=target
        )
        assert people.value == found.value
        assert (people.low or 1) < (found.value or 0) < (people.high or -1)
    r = [
        spearmanr(own[a], own[b]).statistic
        for a, b in (("trajectory", target), ("aggregate", target), ("aggregate", "trajectory"))
    ]
    for method, test in (("meng", meng_z), ("williams", williams_t)):
        compared = result.estimate(
            "comparisons", "trajectory - aggregate", method=method, condition=condition, target=target
        )
        assert compared.statistic == pytest.approx(float(test(r[0], r[1], r[2], len(own))), rel=1e-9)
        assert compared.value == pytest.approx(r[0] - r[1])


@pytest.mark.parametrize(("method", "options"), [("published", {}), ("clustered", {"cov_type": "cluster"})])
@pytest.mark.parametrize("target", ["overall", "output"])
def test_regressions_equal_statsmodels(
    result: StudyResult, frame: pd.DataFrame, target: str, method: str, options: dict[str, Any]
) -> None:
    formula = pytest.importorskip("statsmodels.formula.api")

    def fitted(model: str, rows: pd.DataFrame) -> Any:
        more = {**options, "cov_kwds": {"groups": pd.factorize(rows.participant)[0]}} if options else {}
        return formula.ols(model, rows).fit(use_t=True, **more)

    for condition in CONDITIONS:
        own = frame[frame.condition == condition]
        theirs = fitted(f"{target} ~ aggregate + trajectory", own)
        for term in ("aggregate", "trajectory"):
            ours = result.estimate("regressions", term, method=method, condition=condition, target=target)
            assert ours.value == pytest.approx(theirs.params[term], rel=1e-8)
            assert ours.stderr == pytest.approx(theirs.bse[term], rel=1e-8)
            assert ours.p_value == pytest.approx(theirs.pvalues[term], rel=1e-5, abs=1e-300)
        for null, restriction in (
            ("aggregate = trajectory", "aggregate = trajectory"),
            ("aggregate = trajectory = 0", "aggregate = 0, trajectory = 0"),
        ):
            ours = result.estimate("regressions", null, method=method, condition=condition, target=target)
            wald = theirs.wald_test(restriction, scalar=True, use_f=False)
            assert ours.statistic == pytest.approx(wald.statistic, rel=1e-7)
    whole = frame.assign(clue=(frame.condition == "CLUE").astype(float))
    theirs = fitted(f"{target} ~ (aggregate + trajectory) * clue", whole)
    for term, name in (
        ("condition CLUE", "clue"),
        ("aggregate × CLUE", "aggregate:clue"),
        ("trajectory × CLUE", "trajectory:clue"),
        ("aggregate", "aggregate"),
    ):
        ours = result.estimate("regressions", term, method=method, target=target, model="moderation")
        assert ours.value == pytest.approx(theirs.params[name], rel=1e-7)
        assert ours.stderr == pytest.approx(theirs.bse[name], rel=1e-7)
    r2 = result.estimate("regressions", "r_squared", method="published", target=target, model="moderation")
    assert r2.value == pytest.approx(theirs.rsquared, rel=1e-9)


def test_the_weights_for_effort_are_shares_of_the_coefficients(result: StudyResult) -> None:
    assert list(result.weights) == ["CLUE", "SHED"]
    for condition, weight in result.weights.items():
        a, t = (
            result.estimate("regressions", term, method="published", condition=condition, target="overall").value
            for term in ("aggregate", "trajectory")
        )
        assert a is not None
        assert t is not None
        assert weight == pytest.approx(t / (a + t))
        assert weight == pytest.approx(CONDITIONS[condition]["weight"], abs=0.12)
        lengths = {}
        for method in ("published", "clustered", "participant_bootstrap"):
            one = result.estimate("regressions", "weight", method=method, condition=condition)
            assert one.value == pytest.approx(weight)
            lengths[method] = (one.high or 0) - (one.low or 0)
        assert lengths["published"] < lengths["participant_bootstrap"]
        assert lengths["clustered"] == pytest.approx(lengths["participant_bootstrap"], rel=0.25)


def test_families_are_adjusted_over_conditions_and_targets(result: StudyResult) -> None:
    own = [one for one in result.comparisons if one.method == "williams"]
    assert len(own) == 4
    for one in own:
        assert one.p_value is not None
        assert one.p_adjusted == pytest.approx(min(1, 4 * one.p_value))
        assert one.p_holm is not None
        assert one.p_value <= one.p_holm <= (one.p_adjusted or 0)
    correlations = [one for one in result.correlations if one.method == "published"]
    assert len(correlations) == 10
    assert all(one.p_adjusted == pytest.approx(min(1, 10 * (one.p_value or 0))) for one in correlations)
    assert all(one.p_adjusted is None for one in result.regressions if one.term in {"intercept", "r_squared", "weight"})


def test_factors_are_shares_of_answered_questions(
    responses: Responses, frame: pd.DataFrame, result: StudyResult
) -> None:
    ticks = frame[["factor_trajectory", "factor_aggregate", "factor_other"]]
    answered = frame[ticks.max(axis=1) > 0]
    for condition in CONDITIONS:
        own = answered[answered.condition == condition]
        for factor in ("trajectory", "aggregate", "other"):
            found = [one for one in result.factors if (one.condition, one.term) == (condition, factor)]
            assert [one.method for one in found] == ["published", "clustered"]
            assert all(one.value == pytest.approx(own[f"factor_{factor}"].mean()) for one in found)
            assert all(one.n == len(own) for one in found)
        means = own.assign(gap=own.factor_trajectory - own.factor_aggregate)
        gap = next(one for one in result.factors if (one.condition, one.term) == (condition, "trajectory - aggregate"))
        assert gap.value == pytest.approx(means.gap.mean())
        assert gap.p_value is not None
        assert gap.p_adjusted == pytest.approx(min(1, 2 * gap.p_value))


def test_the_bonus_list(result: StudyResult, frame: pd.DataFrame) -> None:
    pairs = frame.pivot_table(index="participant", columns=["condition", "item", "subject"], values="overall")
    predicted = frame.pivot_table(index="participant", columns=["condition", "item", "subject"], values="predicted")
    answers = np.where(pairs.isna(), np.nan, pairs <= 3)
    expected = pd.Series(np.nanmean(scores(answers, predicted.to_numpy()), axis=1), index=pairs.index)
    found = {one.participant: one for one in result.bonus}
    assert len(found) == len(expected)
    for participant, score in expected.items():
        assert found[str(participant)].value == pytest.approx(score)
    best = expected.sort_values(ascending=False)
    paid = [one.participant for one in result.bonus if one.bonus]
    assert paid == [str(name) for name in best.index[: len(paid)]]
    assert len(paid) == round(0.1 * len(expected))
    assert [one.rank for one in result.bonus][:3] == [1, 2, 3]


def test_exclusions_are_applied_counted_and_shown(responses: Responses, result: StudyResult) -> None:
    rows = responses.people
    failed = (rows["checks_total"].astype(float) - rows["checks_passed"].astype(float)) >= 2
    assert failed.any()
    assert result.people == len(failed) - failed.sum()
    assert result.left_out[0]["n"] == failed.sum()
    assert result.left_out[0]["reason"].startswith("failed_checks: people who failed 2 or more attention checks")
    everybody = analyze(responses, exclusions={"failed_checks": None}, **QUICK)
    assert everybody.people == 60
    assert everybody.left_out == ()


def test_our_own_export_gives_the_same_result_to_the_last_digit(
    responses: Responses, result: StudyResult, tmp_path: Path
) -> None:
    columns = read_responses(responses.save(tmp_path / "r.csv")).to_columns()
    order = np.random.default_rng(0).permutation(len(columns["item"]))
    shuffled = read_responses({name: values[order] for name, values in columns.items()})
    again = analyze(shuffled, **QUICK)
    assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())


def test_other_seeds_change_only_what_is_resampled(responses: Responses, result: StudyResult) -> None:
    other = analyze(responses, seed=1, **QUICK)
    for one, two in zip(result.regressions, other.regressions, strict=True):
        if one.method != "participant_bootstrap":
            assert one == two
    drawn = [one for one in result.comparisons if one.method == "participant_bootstrap"]
    assert [one.low for one in drawn] != [one.low for one in other.comparisons if one.method == "participant_bootstrap"]


def test_where_a_conclusion_changes_it_is_said() -> None:
    """People who differ a lot and weigh both alike on average: rows taken for people find a difference."""
    changed = []
    for seed in range(6):
        conditions = {"all": {"weight": 0.5, "heterogeneity": 0.35, "careless": 0.0}}
        one = analyze(simulate_responses(40, conditions=conditions, seed=seed), **QUICK)
        people = one.estimate("comparisons", "trajectory - aggregate", method="participant_bootstrap", target="overall")
        williams = one.estimate("comparisons", "trajectory - aggregate", method="williams", target="overall")
        assert people.p_value is not None
        assert williams.p_value is not None
        parted = (people.p_value < 0.05) != (williams.p_value < 0.05)
        changed.append(parted)
        told = any(note.startswith("all, overall distance:") and "Williams" in note for note in one.notes)
        assert told == parted
    assert any(changed)


def test_agreement_of_both_forms_is_said_too() -> None:
    alike = {"a": {"weight": 0.8, "heterogeneity": 0.0, "level": 0.0, "output_weight": 0.7}}
    one = analyze(simulate_responses(80, conditions=alike, seed=2), **QUICK)
    assert "At 0.05 the published tests and those by people come to the same conclusions." in one.notes


def test_findings_and_thresholds(responses: Responses, result: StudyResult) -> None:
    assert [finding.metric for finding in result.findings] == ["correlation_difference"] * 4 + ["effort_weight"] * 2
    first = result.findings[0]
    assert first.sentence.startswith(
        "CLUE: the overall distance goes with trajectory more than with aggregate distance"
    )
    judged = analyze(responses, thresholds=[{"audit": "study", "metric": "effort_weight", "min": 0.4}], **QUICK)
    assert {f.verdict for f in judged.findings if f.metric == "effort_weight"} == {"meets"}
    with pytest.raises(ConfigError, match="did you mean 'effort_weight'"):
        analyze(responses, thresholds=[{"audit": "study", "metric": "efort_weight", "min": 0.4}])


def test_tables_in_the_papers_layout(result: StudyResult) -> None:
    two = result.paper_table(2)
    assert two.columns == (
        "Rank correlation",
        "CLUE, r",
        "CLUE, interval",
        "SHED, r",
        "SHED, interval",
    )
    assert [row[0] for row in two.rows][2] == "Aggregate and trajectory distance"
    assert two.rows[1][1].endswith("***")
    three = result.paper_table(3)
    assert [row[0] for row in three.rows][:4] == ["Hotelling's t (published)"] * 2 + [
        "Meng's z (published as Steiger's Z)"
    ] * 2
    hotelling = result.estimate(
        "comparisons", "trajectory - aggregate", method="hotelling", condition="CLUE", target="overall"
    )
    assert three.rows[0][2].rstrip("*") == f"{hotelling.statistic:.4f}"
    four = result.paper_table(4)
    published = result.estimate(
        "comparisons", "trajectory - aggregate", method="row_bootstrap", condition="SHED", target="output"
    )
    assert four.rows[1][3] == f"[{published.low:.4f}, {published.high:.4f}]"
    five = result.paper_table(5)
    assert five.columns[1:] == (
        "CLUE, overall",
        "CLUE, output",
        "SHED, overall",
        "SHED, output",
        "moderation, overall",
        "moderation, output",
    )
    assert "moderation: CLUE against SHED" in five.caption
    assert [row[0] for row in five.rows if not row[0].startswith("std. error")] == [
        "Intercept",
        "Aggregate",
        "Trajectory",
        "Condition CLUE",
        "Aggregate × CLUE",
        "Trajectory × CLUE",
        "R-squared",
        "Adj. R-squared",
        "F",
        "Answers",
        "People",
    ]
    for place, method in ((4, "published"), (5, "clustered")):
        one = result.estimate("regressions", "aggregate", method=method, condition="CLUE", target="overall")
        assert five.rows[3][1].startswith(f"{one.value:.4f}***")
        assert five.rows[place][1] == f"({one.stderr:.4f})"
    for table in (two, three, four, five):
        assert all(len(row) == len(table.columns) == len(table.numeric) for row in table.rows)
    with pytest.raises(ConfigError, match="one of 2, 3, 4 and 5; got 6"):
        result.paper_table(6)


def test_the_section_of_a_report(result: StudyResult) -> None:
    section = result.section()
    figures = [part for part in section.parts if isinstance(part, Figure)]
    assert [figure.title for figure in figures] == [
        "What goes with people's judgement",
        "The weight of effort",
        "The factors people named",
    ]
    for figure in figures:
        for chart in figure.charts:
            assert to_svg(chart, figure.title, figure.description, name="f").startswith("<svg")
    names = {one.participant for one in result.bonus}
    shown = {cell for part in section.parts if not isinstance(part, Figure) for row in part.rows for cell in row}
    assert not names & shown  # nobody is named in a report
    assert result.plot().to_dict()["concat"]
    assert "<table>" in result._repr_html_()


def test_results_are_json_and_frames(result: StudyResult) -> None:
    whole = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(whole) >= {"correlations", "comparisons", "regressions", "factors", "bonus", "spec", "left_out", "notes"}
    for table in ("correlations", "comparisons", "regressions", "factors", "bonus"):
        assert {"condition", "target", "term", "method", "value", "low", "high", "status"} <= set(whole[table][0])
    for table in ("correlations", "comparisons", "regressions", "factors", "bonus"):
        assert {"statistic", "p_value", "p_adjusted"} <= set(whole[table][0])
    assert len(result.to_frame("bonus")) == len(result.bonus)
    assert asdict(result.comparisons[0])["model"] == "condition"


def test_missing_answers_are_left_out_and_counted(responses: Responses) -> None:
    columns = {name: values.copy() for name, values in responses.to_columns().items()}
    columns["risk"][:5] = np.nan
    columns["overall"][7] = np.nan
    one = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    gaps = [(record["group"], record["n"]) for record in one.left_out]
    assert sum(n for _, n in gaps) == 6
    whole = analyze(responses, exclusions={"failed_checks": None}, **QUICK)
    assert sum(r.n for r in one.correlations if r.method == "published") < sum(
        r.n for r in whole.correlations if r.method == "published"
    )


def test_a_study_without_output_predictions_or_factors() -> None:
    columns = simulate_responses(24, conditions=["one"], seed=9).to_columns()
    kept = {name: columns[name] for name in ("participant", "item", "subject", "trajectory", "aggregate", "overall")}
    one = analyze(read_responses(kept), **QUICK)
    assert one.conditions == ("",)
    assert {record.target for record in one.comparisons} == {"overall"}
    assert one.factors == ()
    assert one.bonus == ()
    assert not any(record.model == "moderation" for record in one.regressions)
    assert one.findings[0].sentence.startswith("The overall distance")
    assert one.section().parts


def test_one_person_and_answers_that_do_not_vary() -> None:
    columns = simulate_responses(1, conditions=["one"], seed=1).to_columns()
    alone = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    people = alone.estimate("comparisons", "trajectory - aggregate", method="participant_bootstrap", target="overall")
    assert people.low is None
    assert people.status == "no interval: too few people"
    columns = simulate_responses(12, conditions=["one"], seed=1).to_columns()
    columns["aggregate"][:] = 3.0
    flat = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    assert flat.weights == {}
    assert all(one.value is None for one in flat.correlations if one.term == "aggregate")
    assert flat.section().parts


def test_three_conditions_and_a_baseline() -> None:
    responses = simulate_responses(60, conditions=["a", "b", "c"], seed=4)
    one = analyze(responses, baseline="b", **QUICK)
    terms = {r.term for r in one.regressions if r.model == "moderation"}
    assert {"condition a", "condition c", "trajectory × a", "trajectory × c"} <= terms
    assert "condition b" not in terms
    with pytest.raises(ConfigError, match="`baseline` got 'd'"):
        analyze(responses, baseline="d", **QUICK)


def test_wrong_input_is_told(responses: Responses) -> None:
    feedback = {"participant": ["c"], "item": ["1"], "decision": ["x"], "answer": ["agree"]}
    with pytest.raises(ConfigError, match=r"use eh\.disagreement"):
        analyze(read_responses(feedback))
    with pytest.raises(DataError, match="all 60 people are left out by the exclusion rules"):
        analyze(responses, exclusions={"too_fast": 1e9})
    empty = {**responses.to_columns(), "overall": [None] * 720, "risk": [None] * 720}
    with pytest.raises(DataError, match="there is nothing to analyse"):
        analyze(read_responses(empty))
    with pytest.raises(ConfigError, match="`alpha`"):
        analyze(responses, alpha=2.0)
