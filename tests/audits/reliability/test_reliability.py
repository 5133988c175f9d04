"""The reliability audit: what can be known beforehand, laws, thresholds, and the report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.reliability import ReliabilityResult
from evenhand.audits.reliability.audit import run
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.charts import to_svg
from evenhand.core.display import DisplayTable, Figure
from evenhand.core.result import finalize
from evenhand.errors import ConfigError
from evenhand.stats.agreement import cohen_kappa, icc_a1

from .conftest import curve, mean_gap, nested, reliability


def risk(rows: Any) -> Any:
    """A model of age, priors and sex."""
    return 1 / (1 + np.exp(1.0 - 0.5 * rows[:, 1] + 0.06 * (rows[:, 0] - 35) - 0.4 * rows[:, 2]))


RISK: dict[str, Any] = {"features": ["age", "priors", "sex"], "noise": {"age": 4, "priors": 1, "sex": "flip"}}


# What is known beforehand ---------------------------------------------------------------------------------


def test_exact_flips_of_the_only_feature_give_pabak_in_closed_form(table: eh.Table, people: pd.DataFrame) -> None:
    """Exactly floor(p n + 1/2) of n decisions of each group turn, so PABAK = 1 - 2 floor(p n + 1/2) / n."""
    levels = [0.05, 0.1, 0.25]
    found = reliability(
        lambda rows: rows[:, 0],
        table,
        features=["sex"],
        noise={"sex": "flip"},
        shares="exact",
        replicates=3,
        resamples=100,
        noise_levels=levels,
    )
    for group, n in people.group.value_counts().items():
        for record, level in zip(curve(found, "pabak", str(group)), levels, strict=True):
            assert record.value == pytest.approx(1 - 2 * np.floor(level * n + 0.5) / n, abs=1e-12)
            assert record.n == n
            assert record.replicate_sd == pytest.approx(0.0, abs=1e-12)


def test_squared_errors_of_a_score_are_those_of_the_noise(table: eh.Table) -> None:
    """A score that is the feature itself has E(e²) = p sd²."""
    found = reliability(
        lambda rows: rows[:, 0],
        table,
        features=["income"],
        noise={"income": {"sd": 3.0, "whole": False}},
        threshold=30,
        replicates=200,
        resamples=100,
        noise_levels=[0.2],
    )
    for group in ("A", "B"):
        (record,) = curve(found, "mean_squared_error", group)
        assert record.replicate_sd is not None
        assert record.value == pytest.approx(0.2 * 9.0, abs=4 * record.replicate_sd / np.sqrt(200))


def test_curves_are_those_of_two_raters(people: pd.DataFrame) -> None:
    """With an error that is the same for everybody the second rating is known: kappa and ICC follow by other code."""
    table = eh.Table(people, groups="group")
    noise = {"sex": {"values": [0, 1], "chances": [[0.0, 1.0], [0.0, 1.0]]}}  # at level 1 everybody is entered as 1
    found = reliability(
        risk, table, features=["age", "priors", "sex"], noise=noise, replicates=2, resamples=100, noise_levels=[1.0]
    )
    first = people[["age", "priors", "sex"]].to_numpy(float)
    second = first.copy()
    second[:, 2] = 1
    for group in ("A", "B"):
        own = (people.group == group).to_numpy()
        x, y = risk(first[own]), risk(second[own])
        assert curve(found, "kappa", group)[0].value == pytest.approx(float(cohen_kappa(x > 0.5, y > 0.5)), abs=1e-12)
        assert curve(found, "icc_a1", group)[0].value == pytest.approx(float(icc_a1(x, y)), abs=1e-9)
        gap = np.mean((y - x) ** 2)
        assert curve(found, "mean_squared_error", group)[0].value == pytest.approx(gap, abs=1e-12)


def test_the_parts_add_up_and_gaps_are_differences(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(risk, table, **RISK, **quick)
    values: dict[Any, Any] = {(r.metric, r.group, r.noise_level): r.value for r in found.values}
    for group in ("A", "B"):
        for level in (0.0, 0.1, 0.3):
            parts = values["prevalence_part", group, level] + values["bias_part", group, level]
            difference = values["pabak", group, level] - values["kappa", group, level]
            assert parts == pytest.approx(difference, abs=1e-12)
    for gap in found.rows("gaps", against="reference"):
        assert (gap.group, gap.reference) == ("A", "B")  # B is larger
        levels = [0.1, 0.3] if gap.noise_level is None else [gap.noise_level]
        wanted = np.mean([values[gap.metric, "A", p] - values[gap.metric, "B", p] for p in levels])
        assert gap.value == pytest.approx(wanted, abs=1e-11)


def test_attribution_adds_up_to_the_gap_of_its_replicates(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(risk, table, **RISK, **quick | {"attribution": 0.3, "noise_levels": [0.3]})
    for name in found.spec.metrics:
        parts = [r for r in found.attribution if r.metric == name]
        assert [r.feature for r in parts] == ["age", "priors", "sex"]
        assert {r.method for r in parts} == {"exact"}
        assert sum(r.share or 0.0 for r in parts) == pytest.approx(float(parts[0].share is not None))
        # Both use the same four replicates, and one level is drawn the same way.
        assert sum(r.value or 0.0 for r in parts) == pytest.approx(mean_gap(found, name).value, abs=1e-9)


# Laws -----------------------------------------------------------------------------------------------------


def as_engine(frame: pd.DataFrame, engine: str) -> Any:
    if engine == "polars":
        return pl.from_pandas(frame)
    if engine == "pyarrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    return duckdb.from_df(frame) if engine == "duckdb" else frame


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["polars", "pyarrow", "duckdb", "shuffled"])
def test_any_engine_and_order_of_rows_gives_the_same_bytes(
    people: pd.DataFrame, engine: str, quick: dict[str, Any]
) -> None:
    models = {"logistic": "logistic", "tree": {"estimator": "decision_tree", "features": ["age", "job"]}}
    settings = {
        "model": models,
        "features": ["age", "priors", "sex", "job"],
        "noise": {"age": 3, "priors": 1, "job": "flip"},
        **quick,
        "attribution": 0.3,
    }

    def written(frame: Any) -> str:
        table = eh.Table(frame, groups=["group", "sex"], outcome="again")
        return json.dumps(finalize(run(table, ReliabilitySpec.parse(nested(settings), "here"))).to_dict())

    other = people.sample(frac=1, random_state=1) if engine == "shuffled" else as_engine(people, engine)
    assert written(other) == written(people)


def test_a_seed_gives_the_same_numbers_and_another_one_others(table: eh.Table, quick: dict[str, Any]) -> None:
    first, again, other = (reliability(risk, table, **RISK, **quick, seed=seed).gaps for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_models_beside_each_other_change_nothing(table: eh.Table, quick: dict[str, Any]) -> None:
    alone = reliability({"risk": risk}, table, **RISK, **quick)
    beside = reliability({"other": lambda rows: rows[:, 1] / 20, "risk": risk}, table, **RISK, **quick)
    assert [r for r in beside.values if r.model == "risk"] == list(alone.values)
    own = [gap for gap in beside.gaps if gap.model == "risk"]
    counted: dict[str, Any] = dict.fromkeys(
        ("p_value", "p_adjusted", "worse_off", "low", "high", "joint_low", "joint_high")
    )  # by all tests, and their draws
    assert [replace(gap, **counted) for gap in own] == [replace(gap, **counted) for gap in alone.gaps]
    for mine, theirs in zip(own, alone.gaps, strict=True):
        if theirs.p_value is not None and theirs.low is not None:
            assert mine.p_value == pytest.approx(theirs.p_value, rel=0.2)
            assert mine.low == pytest.approx(theirs.low, abs=0.01)


def test_equal_groups_have_no_gap(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    twice = pd.concat([people.assign(twin="x"), people.assign(twin="y")])
    found = reliability(risk, eh.Table(twice, groups="twin"), **RISK, **quick | {"replicates": 200})
    for name in found.spec.metrics:
        gap = mean_gap(found, name)
        assert gap.low is not None
        assert gap.high is not None
        assert gap.low < 0 < gap.high


def test_more_noise_is_less_agreement(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(risk, table, **RISK, **quick | {"replicates": 30})
    for name in found.spec.metrics:
        for group in ("A", "B"):
            values = [record.value for record in curve(found, name, group)]
            assert values[0] == 1.0
            assert values == sorted(values, reverse=True)


def test_two_noisy_raters_agree_less(table: eh.Table, quick: dict[str, Any]) -> None:
    one, two = (
        reliability(risk, table, **RISK, **quick | {"replicates": 30}, noisy_raters=raters) for raters in (1, 2)
    )
    for group in ("A", "B"):
        assert curve(two, "icc_a1", group)[2].value < curve(one, "icc_a1", group)[2].value


def test_fresh_noise_has_the_same_mean(table: eh.Table, quick: dict[str, Any]) -> None:
    common, fresh = (
        reliability(risk, table, **RISK, **quick | {"replicates": 200, "fresh": fresh}) for fresh in (False, True)
    )
    for group in ("A", "B"):
        for one, other in zip(curve(common, "pabak", group), curve(fresh, "pabak", group), strict=True):
            spread = np.hypot(one.replicate_sd or 0.0, other.replicate_sd or 0.0) / np.sqrt(200)
            assert one.value == pytest.approx(other.value, abs=4 * spread + 1e-12)


# Groups and references ------------------------------------------------------------------------------------


def test_every_grouping_is_compared_with_its_reference(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    table = eh.Table(people, groups=["group", "job"])
    found = reliability(risk, table, **RISK, **quick, reference={"job": "nurse"})
    pairs = {(gap.grouping, gap.group, gap.reference) for gap in found.gaps if gap.against == "reference"}
    assert pairs == {("group", "A", "B"), ("job", "clerk", "nurse"), ("job", "driver", "nurse")}
    with pytest.raises(ConfigError, match="`reference` 'nurs' is not a group of 'job'; did you mean 'nurse'"):
        reliability(risk, table, **RISK, **quick, reference={"job": "nurs"})


def test_columns_that_define_groups_stay_as_they_are(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    table = eh.Table(people, groups=["sex"], outcome="again")
    asked = {"features": ["age", "priors", "sex"], **quick}
    with pytest.raises(ConfigError, match="`noise` names 'sex', which defines groups and stays as it is"):
        reliability(risk, table, noise={"sex": "flip"}, **asked)
    found = reliability(risk, table, noise="raez-2024/all/1", **asked)
    assert "Columns that define groups were not perturbed: sex." in map(str, found.notes)
    with pytest.raises(ConfigError, match="'raez-2024/categorical' has no effect"):
        reliability(risk, table, noise="raez-2024/categorical", **asked)


# Verdicts and the report ----------------------------------------------------------------------------------


def test_thresholds_become_verdicts(table: eh.Table, quick: dict[str, Any]) -> None:
    limits = [{"metric": "kappa", "max": 1.9}, {"metric": "icc_a1", "max": 0.0}]
    found = reliability(risk, table, **RISK, **quick, thresholds=limits)
    verdicts = {finding.metric: (finding.verdict, str(finding.threshold)) for finding in found.findings}
    assert verdicts["kappa"] == ("meets", "at most 1.9")
    assert verdicts["icc_a1"][0] in ("does_not_meet", "insufficient_evidence")
    assert verdicts["pabak"] == ("no_threshold", "None")
    assert "icc_spread" not in verdicts
    with pytest.raises(ConfigError, match="`grouping` 'grop' of a threshold is not known; did you mean 'group'"):
        reliability(risk, table, **RISK, **quick, thresholds=[{"metric": "pabak", "max": 0.1, "grouping": "grop"}])
    with pytest.raises(ConfigError, match="`model` 'other' of a threshold is not known"):
        reliability(risk, table, **RISK, **quick, thresholds=[{"metric": "pabak", "max": 0.1, "model": "other"}])
    with pytest.raises(ConfigError, match="limits 'ac1', which is not among `metrics`"):
        reliability(risk, table, **RISK, **quick, thresholds=[{"metric": "ac1", "max": 0.1}])


def test_findings_say_who_is_hurt(people: pd.DataFrame) -> None:
    """The score of group A rests on a feature that goes wrong, that of group B does so for some."""

    def asked(frame: pd.DataFrame, *metrics: str) -> ReliabilityResult:
        return reliability(
            lambda rows: 0.2 + 0.6 * rows[:, 0] * rows[:, 1],
            eh.Table(frame, groups="group"),
            features=["sex", "member"],
            noise={"sex": "flip"},
            fixed="member",
            resamples=200,
            noise_levels=[0.0, 0.2],
            metrics=metrics,
        )

    found = asked(people.assign(member=people.member | (people.index < 45)), "pabak", "icc_spread")
    (pabak,) = (finding for finding in found.findings if finding.metric == "pabak")
    assert pabak.headline.text.startswith("model, by group: mistakes hurt A more; PABAK is 0.")
    assert pabak.headline.text.endswith(" lower than for B.")
    assert "95% interval −0." in str(pabak.detail)
    assert "; p < 0.001; n = 240. " in str(pabak.detail)
    assert str(pabak.detail).endswith("A minus B, on average over the noise level 0.2; mistakes drawn with seed 0.")
    gap = found.get("gaps", metric="pabak", against="reference", noise_level=None)
    assert (gap.group, gap.worse_off) == ("A", "A")
    (kappa,) = asked(people, "kappa").findings
    assert kappa.headline.text == "model, by group: the gap in Cohen's kappa between A and B is undefined."
    assert str(kappa.reason) == "At 1 of 1 noise levels, since all ratings are in one class."


@pytest.fixture
def drawn(table: eh.Table, quick: dict[str, Any]) -> ReliabilityResult:
    models = {"full": risk, "sparse": {"estimator": "logistic", "features": ["age", "priors"]}}
    return reliability(models, table, **RISK, **quick | {"attribution": True})


def test_the_report_shows_curves_gaps_parts_features_and_models(drawn: ReliabilityResult) -> None:
    section = drawn.section()
    figures = [part.title.partition(":")[0] for part in section.parts if isinstance(part, Figure)]
    one = [
        "Reliability by noise level",
        "Gaps",
        "Why kappa and PABAK differ",
        "What ICC is made of",
        "What the measured gap is made of",
    ]
    assert figures == ["Models compared", "Gaps of the models", *one, *one]
    for part in section.parts:
        if isinstance(part, Figure):
            assert part.description
            assert part.charts
            assert all(to_svg(chart, "t", "d", name="x") for chart in part.charts)
        else:
            assert isinstance(part, DisplayTable)
            assert all(len(row) == len(part.columns) == len(part.numeric) for row in part.rows)
    assert len(section.methods) == 13
    terms = [method.term for method in section.methods]
    assert terms[1:5] == [
        "Cohen's kappa (kappa)",
        "PABAK (pabak)",
        "ICC(A,1) (icc_a1)",
        "Spread-adjusted ICC (icc_spread)",
    ]
    for chart in drawn.charts():
        assert drawn.plot(chart).to_svg(name="x")
    with pytest.raises(ConfigError, match="`chart` got 'nope'; known names: 'values', 'gaps'"):
        drawn.plot("nope")
    with pytest.raises(ConfigError, match="`grouping` got 'nope'"):
        drawn.plot(grouping="nope")


@pytest.mark.slow
def test_many_combinations_are_not_all_drawn(table: eh.Table, quick: dict[str, Any]) -> None:
    models = {name: (lambda rows, place=place: rows[:, place] / 60) for place, name in enumerate(("a", "b", "c"))}
    noise = ["raez-2024/numeric/1", "raez-2024/numeric/5"]
    found = reliability(models, table, features=["age", "priors", "sex"], noise=noise, **quick)
    figures = [part for part in found.section().parts if isinstance(part, Figure)]
    titles = [figure.title.partition(":")[0] for figure in figures]
    assert titles.count("Reliability by noise level") == titles.count("Gaps") == 4
    assert titles.count("Why kappa and PABAK differ") == 2
    said = [
        figure.caption for figure in figures if "Of the 6 combinations of model, noise and grouping" in figure.caption
    ]
    assert len(said) == 1


def test_tables_summary_and_repr(drawn: ReliabilityResult) -> None:
    assert drawn.to_frame("models").model.tolist() == ["full", "sparse"]
    assert drawn.to_frame().noise_level.isna().sum() == 2 * 2 * len(drawn.spec.metrics)  # reference and worst pair
    assert "values (" in repr(drawn)
    assert str(drawn).startswith("Reliability: ")
    assert json.dumps(drawn.to_dict())
    with pytest.raises(ConfigError, match="`metric` got 'ac1'"):
        drawn.get("gaps", metric="ac1")


def test_models_are_described(drawn: ReliabilityResult) -> None:
    full, sparse = drawn.models
    assert (full.kind, full.source.endswith(":risk"), full.folds, full.method) == ("function", True, 1, "rows")
    assert (sparse.kind, sparse.source, sparse.folds, sparse.method) == ("fitted here", "logistic", 5, "linear")
    assert sparse.features == "age, priors"
    assert drawn.to_dict()["spec"]["model"]["full"]["model"].endswith(":risk")
    assert sparse.accuracy is not None
    assert 0.5 < sparse.accuracy < 1
    assert sparse.auc is not None
    assert 0.6 < sparse.auc < 1
