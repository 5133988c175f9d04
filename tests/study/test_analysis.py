"""The analysis of a study: other libraries, brute force, laws, tables, and bad input."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from evenhand.charts import to_svg
from evenhand.core.display import Figure
from evenhand.core.records import Gap, Value
from evenhand.errors import ConfigError, DataError
from evenhand.run.schema import record_schema, results_schema
from evenhand.stats.correlation import meng_z, williams_t
from evenhand.stats.truth_serum import scores
from evenhand.study import AnalysisSpec, Responses, StudyResult, analyze, read_responses, simulate_responses
from evenhand.study.analysis.result import StudyGap

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


def comparison(result: StudyResult, method: str, **place: str) -> StudyGap:
    """Return trajectory's correlation less that of the aggregate."""
    gap: StudyGap = result.get("gaps", metric="rank_correlation", method=method, **place)
    assert (gap.group, gap.reference, gap.kind, gap.against) == ("trajectory", "aggregate", "difference", "reference")
    return gap


@pytest.mark.parametrize("condition", list(CONDITIONS))
@pytest.mark.parametrize("target", ["overall", "output"])
def test_correlations_equal_scipy(result: StudyResult, frame: pd.DataFrame, condition: str, target: str) -> None:
    own = frame[frame.condition == condition]
    for term in ("aggregate", "trajectory"):
        place = {"metric": "rank_correlation", "factor": term, "condition": condition, "target": target}
        ours = result.get("values", **place, method="published")
        theirs = spearmanr(own[term], own[target])
        assert ours.value == pytest.approx(theirs.statistic, abs=1e-12)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-6)
        assert (ours.answers, ours.n) == (len(own), own.participant.nunique())
        people = result.get("values", **place, method="participant_bootstrap")
        assert people.value == ours.value
        assert (people.low or 1) < (ours.value or 0) < (people.high or -1)
    r = [
        spearmanr(own[a], own[b]).statistic
        for a, b in (("trajectory", target), ("aggregate", target), ("aggregate", "trajectory"))
    ]
    for method, test in (("meng", meng_z), ("williams", williams_t)):
        compared = comparison(result, method, condition=condition, target=target)
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
            ours = result.get("regressions", term=term, method=method, condition=condition, target=target)
            assert ours.value == pytest.approx(theirs.params[term], rel=1e-8)
            assert ours.stderr == pytest.approx(theirs.bse[term], rel=1e-8)
            assert ours.p_value == pytest.approx(theirs.pvalues[term], rel=1e-5, abs=1e-300)
        for null, restriction in (
            ("aggregate = trajectory", "aggregate = trajectory"),
            ("aggregate = trajectory = 0", "aggregate = 0, trajectory = 0"),
        ):
            ours = result.get("regressions", term=null, method=method, condition=condition, target=target)
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
        ours = result.get("regressions", term=term, method=method, target=target, regression="moderation")
        assert ours.value == pytest.approx(theirs.params[name], rel=1e-7)
        assert ours.stderr == pytest.approx(theirs.bse[name], rel=1e-7)
    r2 = result.get("regressions", metric="r_squared", target=target, regression="moderation")
    assert r2.value == pytest.approx(theirs.rsquared, rel=1e-9)


def test_the_weights_for_effort_are_shares_of_the_coefficients(result: StudyResult) -> None:
    assert list(result.weights) == ["CLUE", "SHED"]
    for condition, weight in result.weights.items():
        a, t = (
            result.get("regressions", term=term, method="published", condition=condition, target="overall").value
            for term in ("aggregate", "trajectory")
        )
        assert a is not None
        assert t is not None
        assert weight == pytest.approx(t / (a + t))
        assert weight == pytest.approx(CONDITIONS[condition]["weight"], abs=0.12)
        lengths = {}
        for method in ("published", "clustered", "participant_bootstrap"):
            record = result.get("values", metric="effort_weight", method=method, condition=condition)
            assert record.value == pytest.approx(weight)
            lengths[method] = (record.high or 0) - (record.low or 0)
        assert lengths["published"] < lengths["participant_bootstrap"]
        assert lengths["clustered"] == pytest.approx(lengths["participant_bootstrap"], rel=0.25)


def test_families_are_adjusted_over_conditions_and_targets(result: StudyResult) -> None:
    gaps = result.rows("gaps", metric="rank_correlation", method="williams")
    assert len(gaps) == 4
    for gap in gaps:
        assert gap.p_value is not None
        assert gap.p_adjusted == pytest.approx(min(1, 4 * gap.p_value))
        assert gap.p_holm is not None
        assert gap.p_value <= gap.p_holm <= (gap.p_adjusted or 0)
    correlations = result.rows("values", metric="rank_correlation", method="published")
    assert len(correlations) == 10
    assert all(r.p_adjusted == pytest.approx(min(1, 10 * (r.p_value or 0))) for r in correlations)
    untested = [r for r in result.regressions if r.term == "intercept" or r.metric == "r_squared"]
    untested += result.rows("values", metric="effort_weight")
    assert untested
    assert all(r.p_adjusted is None for r in untested)
    slopes = result.rows("regressions", metric="coefficient", regression="moderation", method="clustered")
    adjusted = {r.term: r.p_adjusted == pytest.approx(min(1, 8 * (r.p_value or 0))) for r in slopes if r.p_adjusted}
    assert adjusted == dict.fromkeys(("aggregate", "trajectory", "aggregate × CLUE", "trajectory × CLUE"), True)


def test_factors_are_shares_of_answered_questions(
    responses: Responses, frame: pd.DataFrame, result: StudyResult
) -> None:
    ticks = frame[["factor_trajectory", "factor_aggregate", "factor_other"]]
    answered = frame[ticks.max(axis=1) > 0]
    for condition in CONDITIONS:
        own = answered[answered.condition == condition]
        for factor in ("trajectory", "aggregate", "other"):
            shares = result.rows("values", metric="factor_share", condition=condition, factor=factor)
            assert [share.method for share in shares] == ["published", "clustered"]
            assert all(share.value == pytest.approx(own[f"factor_{factor}"].mean()) for share in shares)
            assert all(share.answers == len(own) for share in shares)
        means = own.assign(gap=own.factor_trajectory - own.factor_aggregate)
        gap = result.get("gaps", metric="factor_share", condition=condition, method="clustered")
        assert gap.value == pytest.approx(means.gap.mean())
        assert gap.p_value is not None
        assert gap.p_adjusted == pytest.approx(min(1, 2 * gap.p_value))


def test_the_bonus_list(result: StudyResult, frame: pd.DataFrame) -> None:
    pairs = frame.pivot_table(index="participant", columns=["condition", "item", "subject"], values="overall")
    predicted = frame.pivot_table(index="participant", columns=["condition", "item", "subject"], values="predicted")
    answers = np.where(pairs.isna(), np.nan, pairs <= 3)
    expected = pd.Series(np.nanmean(scores(answers, predicted.to_numpy()), axis=1), index=pairs.index)
    assert len(result.bonus) == len(expected)
    for participant, score in expected.items():
        assert result.get("bonus", participant=str(participant)).value == pytest.approx(score)
    best = expected.sort_values(ascending=False)
    paid = [record.participant for record in result.bonus if record.bonus]
    assert paid == [str(name) for name in best.index[: len(paid)]]
    assert len(paid) == round(0.1 * len(expected))
    assert [record.rank for record in result.bonus][:3] == [1, 2, 3]
    for summary in result.truth_serum:
        people = result.rows("bonus", condition=summary.condition)
        assert (summary.n, summary.paid) == (len(people), sum(record.bonus for record in people))
        assert summary.highest == max(record.value for record in people)
        assert summary.lowest_paid == min(record.value for record in people if record.bonus)


def test_exclusions_are_applied_counted_and_shown(responses: Responses, result: StudyResult) -> None:
    rows = responses.people
    failed = (rows["checks_total"].astype(float) - rows["checks_passed"].astype(float)) >= 2
    assert failed.any()
    assert result.people == len(failed) - failed.sum()
    assert result.left_out[0].n == failed.sum()
    assert result.left_out[0].reason.text.startswith("failed_checks: people who failed 2 or more attention checks")
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
    assert (again.bonus, again.findings) == (result.bonus, result.findings)


def test_other_seeds_change_only_what_is_resampled(responses: Responses, result: StudyResult) -> None:
    other = analyze(responses, seed=1, **QUICK)
    assert result.regressions == other.regressions
    drawn = ("participant_bootstrap", "row_bootstrap")
    for before, after in zip(
        (*result.rows("values"), *result.rows("gaps")), (*other.rows("values"), *other.rows("gaps")), strict=True
    ):
        if before.method not in drawn:
            assert before == after
        else:
            assert (before.value, before.n) == (after.value, after.n)
            assert before.low != after.low


def test_where_a_conclusion_changes_it_is_said() -> None:
    """People who differ a lot and weigh both alike on average: rows taken for people find a difference."""
    changed = []
    for seed in range(6):
        conditions = {"all": {"weight": 0.5, "heterogeneity": 0.35, "careless": 0.0}}
        one = analyze(simulate_responses(40, conditions=conditions, seed=seed), **QUICK)
        people = comparison(one, "participant_bootstrap", target="overall")
        williams = comparison(one, "williams", target="overall")
        assert people.p_value is not None
        assert williams.p_value is not None
        parted = (people.p_value < 0.05) != (williams.p_value < 0.05)
        changed.append(parted)
        notes = list(map(str, one.notes))
        told = any(note.startswith("all, overall distance:") and "Williams" in note for note in notes)
        assert told == parted
    assert any(changed)


def test_agreement_of_both_forms_is_said_too() -> None:
    alike = {"a": {"weight": 0.8, "heterogeneity": 0.0, "level": 0.0, "output_weight": 0.7}}
    one = analyze(simulate_responses(80, conditions=alike, seed=2), **QUICK)
    assert "At 0.05 the published tests and those by people come to the same conclusions." in list(map(str, one.notes))


def test_findings_and_thresholds(responses: Responses, result: StudyResult) -> None:
    assert [finding.metric for finding in result.findings] == ["rank_correlation"] * 4 + ["effort_weight"] * 2
    first, gap = result.findings[0], comparison(result, "participant_bootstrap", condition="CLUE", target="overall")
    assert first.headline.text.startswith(
        "CLUE: the overall distance goes with trajectory more than with aggregate distance"
    )
    assert (first.value, first.low, first.high, first.p_adjusted) == (gap.value, gap.low, gap.high, gap.p_holm)
    assert "adjusted" in str(first.detail)
    assert f"n = {gap.n}. {gap.n} people gave {gap.answers} answers" in str(first.detail)
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
    assert two.texts()[1][1].endswith("***")
    three = result.paper_table(3)
    assert [row[0] for row in three.rows][:4] == ["Hotelling's t (published)"] * 2 + [
        "Meng's z (published as Steiger's Z)"
    ] * 2
    hotelling = comparison(result, "hotelling", condition="CLUE", target="overall")
    assert three.texts()[0][2].rstrip("*") == f"{hotelling.statistic:.4f}"
    four = result.paper_table(4)
    published = comparison(result, "row_bootstrap", condition="SHED", target="output")
    assert four.texts()[1][3] == f"[{published.low:.4f}, {published.high:.4f}]"
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
    assert [row[0] for row in five.texts() if not row[0].startswith("std. error")] == [
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
        one = result.get("regressions", term="aggregate", method=method, condition="CLUE", target="overall")
        assert five.texts()[3][1].startswith(f"{one.value:.4f}***")
        assert five.texts()[place][1] == f"({one.stderr:.4f})"
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
    names = {record.participant for record in result.bonus}
    shown = {cell for part in section.parts if not isinstance(part, Figure) for row in part.texts() for cell in row}
    assert shown
    assert not names & shown  # nobody is named in a report
    assert result.plot().to_svg(name="x")
    assert "<table>" in result._repr_html_()


def test_results_are_json_and_frames(result: StudyResult) -> None:
    whole = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(whole) >= {"values", "gaps", "regressions", "truth_serum", "bonus", "spec", "left_out", "notes"}
    estimated = {"condition", "target", "metric", "method", "n", "answers", "value", "low", "high", "status"}
    for table in ("values", "gaps", "regressions"):
        assert estimated | {"stderr", "statistic", "df", "p_value", "p_adjusted", "p_holm"} <= set(whole[table][0])
    assert len(result.to_frame("bonus")) == len(result.bonus)
    assert result.people
    assert (whole["people"], whole["answers"]) == (result.people, 12 * result.people)


def test_missing_answers_are_left_out_and_counted(responses: Responses) -> None:
    columns = {name: values.copy() for name, values in responses.to_columns().items()}
    columns["risk"][:5] = np.nan
    columns["overall"][7] = np.nan
    one = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    assert {record.grouping for record in one.left_out} == {"condition"}
    assert sum(record.n for record in one.left_out) == 6
    whole = analyze(responses, exclusions={"failed_checks": None}, **QUICK)
    rows = {"metric": "rank_correlation", "method": "published"}
    assert sum(r.answers for r in one.rows("values", **rows)) < sum(r.answers for r in whole.rows("values", **rows))


def test_a_study_without_output_predictions_or_factors() -> None:
    columns = simulate_responses(24, conditions=["one"], seed=9).to_columns()
    kept = {name: columns[name] for name in ("participant", "item", "subject", "trajectory", "aggregate", "overall")}
    one = analyze(read_responses(kept), **QUICK)
    assert one.conditions == ("",)
    assert {record.target for record in one.gaps} == {"overall"}
    assert one.rows("values", metric="factor_share") == ()
    assert one.truth_serum == ()
    assert one.bonus == ()
    assert not any(record.regression == "moderation" for record in one.regressions)
    assert one.findings[0].headline.text.startswith("All people: the overall distance")
    assert one.section().parts


def test_one_person_and_answers_that_do_not_vary() -> None:
    columns = simulate_responses(1, conditions=["one"], seed=1).to_columns()
    alone = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    people = comparison(alone, "participant_bootstrap", target="overall")
    assert people.low is None
    assert people.status.text == "no interval: too few people"
    columns = simulate_responses(12, conditions=["one"], seed=1).to_columns()
    columns["aggregate"][:] = 3.0
    flat = analyze(read_responses(columns), exclusions={"failed_checks": None}, **QUICK)
    assert flat.weights == {}
    correlations = flat.rows("values", metric="rank_correlation", factor="aggregate")
    assert correlations
    assert all(record.value is None for record in correlations)
    assert flat.section().parts


def test_three_conditions_and_a_baseline() -> None:
    responses = simulate_responses(60, conditions=["a", "b", "c"], seed=4)
    one = analyze(responses, baseline="b", **QUICK)
    terms = {r.term for r in one.rows("regressions", regression="moderation")}
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


# Laws that every audit obeys, as in tests/audits/test_common.py -------------------------------------------------------


def plain(result: StudyResult) -> Any:
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def judged(responses: Responses, **options: Any) -> StudyResult:
    limits = [
        {"metric": "effort_weight", "min": 0.5},
        {"metric": "correlation_difference", "min": 0, "target": "output"},
    ]
    return analyze(responses, thresholds=limits, **QUICK, **options)


def test_values_and_gaps_begin_with_the_common_columns() -> None:
    types = StudyResult.record_types()
    for table, common in (("values", Value), ("gaps", Gap)):
        assert issubclass(types[table], common)
        assert list(types[table].columns())[: len(common.columns())] == list(common.columns())
    assert all(meaning for kind in types.values() for meaning in kind.columns().values())


def test_records_are_consistent(result: StudyResult) -> None:
    for record in (*result.rows("values"), *result.rows("gaps")):
        assert record.metric in result.metrics
        assert (record.status == "ok") <= (record.value is not None)
        assert record.low is None or record.high is None or record.low <= record.high
    for gap in result.rows("gaps", metric="rank_correlation"):
        place = {"metric": gap.metric, "condition": gap.condition, "target": gap.target, "method": "published"}
        group, reference = (result.get("values", **place, factor=side).value for side in (gap.group, gap.reference))
        assert gap.value == group - reference


def test_a_result_can_be_pickled(responses: Responses) -> None:
    result = judged(responses)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert plain(again) == plain(result)
    assert (again.findings, again.bonus) == (result.findings, result.bonus)
    assert again.summary() == result.summary()


def test_a_result_is_rebuilt_from_json(responses: Responses) -> None:
    result = judged(responses, exclusions={"failed_checks": 3, "too_fast": 10}, baseline="CLUE")
    findings = json.loads(json.dumps([finding.to_dict() for finding in result.findings]))
    again = StudyResult.from_dict(plain(result), findings)
    assert plain(again) == plain(result)
    assert (again.findings, again.spec) == (result.findings, result.spec)
    assert AnalysisSpec.from_json(result.spec.model_dump(mode="json")) == result.spec
    assert again.weights == result.weights
    # Nobody's bonus was written, and the section does not rest on it.
    assert again.bonus == ()
    tables = [[part for part in r.section().parts if not isinstance(part, Figure)] for r in (result, again)]
    assert tables[0] == tables[1]


def test_records_about_one_person_are_published_only_on_request(responses: Responses, result: StudyResult) -> None:
    assert [name for name, kind in result.record_types().items() if kind.individual] == ["bonus"]
    assert plain(result)["bonus"] == []
    asked = plain(analyze(responses, individuals=True, **QUICK))["bonus"]
    assert [record["participant"] for record in asked] == [record.participant for record in result.bonus]


def test_written_records_fit_their_schema(result: StudyResult, responses: Responses) -> None:
    written = plain(analyze(responses, individuals=True, **QUICK))
    for table, kind in result.record_types().items():
        assert written[table]
        shared = {"$defs": results_schema()["$defs"]}
        jsonschema.validate(written[table], {"type": "array", "items": record_schema(kind), **shared})


def test_an_empty_table_keeps_its_columns(result: StudyResult) -> None:
    nothing: dict[str, Any] = dict.fromkeys(result.tables, ())
    empty = replace(result, **nothing)
    for name, kind in result.record_types().items():
        assert list(empty.to_frame(name).keys()) == list(kind.columns())


def test_unknown_names_are_refused_alike(result: StudyResult) -> None:
    with pytest.raises(ConfigError, match="`table` got 'valeus'; did you mean 'values'"):
        result.get("valeus")
    with pytest.raises(ConfigError, match="`table` got 'nope'"):
        result.to_frame("nope")
    with pytest.raises(ConfigError, match="has no column 'metrc'; did you mean 'metric'"):
        result.rows("gaps", metrc="x")
    with pytest.raises(ConfigError, match="`metric` got 'nope'"):
        result.get("gaps", metric="nope")
    with pytest.raises(ConfigError, match="fit no columns named; name more of its columns"):
        result.get("values")
    with pytest.raises(ConfigError, match="`chart` got 'nope'"):
        result.plot("nope")
    with pytest.raises(ConfigError, match="`grouping` got 'rase'"):
        result.plot(grouping="rase")
    with pytest.raises(ConfigError, match=r"`resampels` in .*did you mean 'resamples'"):
        analyze({}, resampels=100)


def test_every_chart_can_be_drawn_or_says_why_not(result: StudyResult) -> None:
    assert result.charts() == ["correlations", "weights", "factors"]
    for chart in result.charts():
        assert result.plot(chart).to_svg(name="x")
    empty = replace(result, values=())
    for chart in result.charts():
        with pytest.raises(ConfigError, match="nothing to draw"):
            empty.plot(chart)


def test_a_threshold_is_judged_and_recorded_for_the_study(responses: Responses) -> None:
    result = judged(responses)
    assert {threshold.audit for threshold in result.spec.thresholds} == {"study"}
    limited = [finding for finding in result.findings if finding.threshold is not None]
    assert [finding.coordinates["target"] for finding in limited] == ["overall", "overall", "output", "output"]
    for finding in limited:
        assert (finding.verdict == "insufficient_evidence") == bool(finding.reason)


def test_a_headline_is_short(responses: Responses) -> None:
    columns = responses.to_columns()
    flat = read_responses({**columns, "overall": [3] * len(columns["overall"])})
    for result in (judged(responses), judged(flat), judged(responses, min_count=200)):
        for finding in result.findings:
            headline = finding.headline.text
            assert len(headline.split()) <= 25, headline
            assert len(re.findall(r"(?<!\w)\d[\d.,]*", headline)) <= 2, headline
            assert headline.endswith(".")
            assert "None" not in finding.text
            assert "nan" not in finding.text.split()


def test_a_caveat_stands_once_a_section(result: StudyResult) -> None:
    assert [title for title, _ in result.section().caveats] == ["Rank correlation", "Weight of effort"]


def test_conditions_that_are_too_small_get_no_verdict(responses: Responses) -> None:
    result = judged(responses, min_count=200)
    limited = [finding for finding in result.findings if finding.threshold is not None]
    assert limited
    assert {finding.verdict for finding in limited} == {"insufficient_evidence"}
    assert all("(minimum 200)" in str(finding.reason) for finding in limited)


def test_the_signature_and_the_docstring_follow_the_settings() -> None:
    parameters = inspect.signature(analyze).parameters
    assert set(parameters) == {"responses", *AnalysisSpec.model_fields}
    documented = inspect.getdoc(analyze) or ""
    for name, item in AnalysisSpec.model_fields.items():
        assert f"\n{name}\n    " in documented
        assert parameters[name].default == item.get_default()
