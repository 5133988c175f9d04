"""The parity audit on data whose truth is known, and its options."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.parity.gather import Totals
from evenhand.core.display import Figure
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.stats.types import FloatArray

MODELS = ("xgboost", "logistic", "random_forest")


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(60_000, seed=8, backend="pandas")
    return frame


@pytest.fixture(scope="module")
def table(households: pd.DataFrame) -> eh.Table:
    return eh.Table(
        households,
        id="household",
        outcome="missed_payment",
        groups=["race", "sex"],
        predictions={name: f"risk_{name}" for name in MODELS},
        favourable="not_selected",
    )


@pytest.fixture(scope="module")
def result(table: eh.Table) -> eh.ParityResult:
    return eh.parity(table, resamples=1_000)


def test_wide_intervals_cover_the_known_truth(table: eh.Table) -> None:
    """At 99.99 % a miss would be a fault; benchmarks/coverage/parity_coverage.py measures the coverage itself."""
    truth = eh.datasets.households_truth()
    result = eh.parity(table, metrics=["selection_rate", "mean_score", "tpr", "fpr"], confidence=0.9999, resamples=100)
    assert len(result.values) == 3 * 4 * 8
    for record in result.values:
        expected = truth[str(record.model)][str(record.grouping)][record.group][record.metric]
        assert _between(record.low, expected, record.high), record
    worst = [gap for gap in result.gaps if gap.against == "worst_pair"]
    assert len(worst) == 3 * 4 * 2 * 2
    for gap in worst:
        values = [group[gap.metric] for group in truth[str(gap.model)][str(gap.grouping)].values()]
        expected = max(values) - min(values) if gap.kind == "difference" else min(values) / max(values)
        assert _between(gap.low, expected, gap.high), gap


def _between(low: float | None, value: float | None, high: float | None) -> bool:
    return low is not None and value is not None and high is not None and low <= value <= high


def test_the_calibrated_model_is_calibrated(result: eh.ParityResult) -> None:
    bins = [r for r in result.calibration if r.model == "logistic" and r.grouping == "sex" and r.n >= 200]
    assert np.mean([_between(r.low, r.mean_score, r.high) for r in bins]) > 0.85


@pytest.mark.replication
def test_traditional_parity_is_smallest_over_largest_group_mean_of_at_least_ten(households: pd.DataFrame) -> None:
    few = pd.concat([households.head(2_000), households.head(9).assign(race="Nine", risk_xgboost=0.999)])
    table = eh.Table(few, groups="race", predictions={"xgboost": "risk_xgboost"})
    means = few.groupby("race").risk_xgboost.agg(["mean", "size"]).query("size >= 10")["mean"]
    gap = eh.parity(table, resamples=100).get("gaps", name="traditional_parity")
    assert gap.value == pytest.approx(means.min() / means.max(), abs=1e-12)
    assert gap.name == "traditional_parity"


def test_verdicts_have_three_outcomes(table: eh.Table, result: eh.ParityResult) -> None:
    undecided = result.get("gaps", metric="fpr", grouping="sex", model="xgboost").value
    thresholds: list[dict[str, Any]] = [
        {"metric": "traditional_parity", "min": 0.8, "grouping": "race", "model": "xgboost"},
        {"metric": "tpr", "max": 0.5, "grouping": "sex", "model": "xgboost"},
        {"metric": "fpr", "max": undecided, "grouping": "sex", "model": "xgboost"},
    ]
    findings = eh.parity(table, thresholds=thresholds, resamples=100).findings
    assert [f.verdict for f in findings[:3]] == ["does_not_meet", "meets", "insufficient_evidence"]
    assert all(f.verdict == "no_threshold" for f in findings[3:])
    assert str(findings[1].threshold) == "at most 50 points"


def test_a_threshold_that_limits_nothing_is_an_error(table: eh.Table) -> None:
    with pytest.raises(ConfigError, match="`grouping` 'rcae' of a threshold is not known; did you mean 'race'"):
        eh.parity(table, thresholds=[{"metric": "tpr", "max": 0.1, "grouping": "rcae"}], resamples=100)
    with pytest.raises(ConfigError, match="a threshold limits 'fpr', which is not among `metrics`"):
        eh.parity(table, metrics="tpr", thresholds=[{"metric": "fpr", "max": 0.1}], resamples=100)
    without_outcome = eh.Table({"sex": ["F", "M"] * 20, "hired": [1, 0, 0, 1] * 10}, groups="sex", predictions="hired")
    with pytest.raises(ConfigError, match="limits nothing: no model has what the metric needs, outcome"):
        eh.parity(without_outcome, thresholds=[{"metric": "tpr", "max": 0.1}])


def test_the_reference_is_the_largest_group_or_the_one_named(table: eh.Table, result: eh.ParityResult) -> None:
    gap = result.get("gaps", metric="tpr", model="logistic", grouping="race", against="reference", group="Asian")
    assert {gap.group, gap.reference} == {"Asian", "White"}
    named = eh.parity(table, metrics="tpr", reference={"race": "Black"}, resamples=100)
    gap = named.get("gaps", metric="tpr", model="logistic", grouping="race", against="reference", group="Asian")
    assert {gap.group, gap.reference} == {"Asian", "Black"}
    with pytest.raises(ConfigError, match="did you mean 'Black'"):
        eh.parity(table, reference={"race": "Blakc"}, resamples=100)


def test_within_strata_takes_away_a_gap_that_the_factor_explains() -> None:
    """Two groups with equal rates in each stratum but different mixes of strata."""
    rng = np.random.default_rng(2)
    n = 40_000
    group = rng.integers(0, 2, n)
    job = (rng.random(n) < np.where(group == 1, 0.7, 0.3)).astype(int)
    hired = (rng.random(n) < np.where(job == 1, 0.6, 0.2)).astype(int)
    data = {"group": np.where(group == 1, "b", "a"), "job": np.where(job == 1, "x", "y"), "hired": hired}
    result = eh.parity(eh.Table(data, groups="group", predictions="hired"), within="job", resamples=2_000)
    crude, adjusted = (
        result.get("gaps", metric="selection_rate"),
        result.get("gaps", metric="selection_rate", stratum="(standardised)"),
    )
    assert crude.low is not None
    assert crude.low > 0.1
    assert adjusted.low == pytest.approx(0.0, abs=1e-3)
    assert adjusted.high is not None
    assert adjusted.high < 0.03
    frame = pd.DataFrame(data)
    by_cell = frame.groupby(["job", "group"]).hired.mean().unstack()
    share = frame.job.value_counts(normalize=True)
    expected = by_cell.mul(share, axis=0).sum()
    for record in result.values:
        if record.stratum == "(standardised)":
            assert record.value == pytest.approx(expected[record.group], abs=1e-12)
        elif record.stratum is not None:
            assert record.value == pytest.approx(by_cell.loc[record.stratum, record.group], abs=1e-12)


def test_a_metric_of_ones_own_is_a_function_of_the_cells(households: pd.DataFrame) -> None:
    from sklearn.metrics import f1_score

    def f1(cells: Totals) -> FloatArray:
        return 2 * cells.tp / (2 * cells.tp + cells.fp + cells.fn)

    table = eh.Table(households, outcome="missed_payment", groups="sex", predictions={"m": "risk_xgboost"})
    result = eh.parity(table, metrics="tpr", custom={"f1": f1}, resamples=2_000)
    for record in result.values:
        if record.metric == "f1":
            part = households[households.sex == record.group]
            expected = f1_score(part.missed_payment, part.risk_xgboost > 0.5)
            assert record.value == pytest.approx(expected, abs=1e-12)
            assert record.low is not None
            assert record.high is not None
            assert record.low < expected < record.high
    assert result.get("gaps", metric="f1").status == OK


def test_a_failing_metric_of_ones_own_is_told(table: eh.Table) -> None:
    def wrong(cells: Totals) -> float:
        return float(cells.tp.sum())

    with pytest.raises(ConfigError, match=r"the metric 'wrong' (failed|must return one value a group)"):
        eh.parity(table, custom={"wrong": wrong}, resamples=100)


def test_decisions_have_no_score_metrics_and_say_so(households: pd.DataFrame) -> None:
    data = households.assign(flag=np.where(households.risk_xgboost > 0.5, "Yes", "No"))
    result = eh.parity(eh.Table(data, outcome="missed_payment", groups="sex", predictions={"m": "flag"}), resamples=100)
    assert {r.metric for r in result.values} >= {"selection_rate", "tpr", "accuracy"}
    assert "m: not computed without scores: mean_score, brier, auc." in [note.text for note in result.notes]
    with pytest.raises(ConfigError, match="'auc' needs scores, which model 'm' does not have"):
        eh.parity(eh.Table(data, outcome="missed_payment", groups="sex", predictions={"m": "flag"}), metrics="auc")


def test_a_metric_that_is_not_computed_is_said_to_lack_what_it_lacks_only() -> None:
    deciles = {"column": "s", "range": (1, 10), "threshold": 5.5}
    table = eh.Table({"g": ["a", "b"] * 20, "s": list(range(1, 11)) * 4}, groups="g", predictions={"m": deciles})
    (note,) = (note.text for note in eh.parity(table, resamples=100).notes if note.id == "parity.not_computed")
    plain, _, rest = note.partition("; ")
    assert plain.startswith("m: not computed without outcome: tpr, fpr")
    assert plain.endswith("auc")
    assert rest == "without outcome and scores between 0 and 1: brier."


def test_unknown_metrics_are_named(table: eh.Table) -> None:
    with pytest.raises(ConfigError, match="there is no metric 'trp'; did you mean 'tpr'"):
        eh.parity(table, metrics="trp")


def test_many_rows_use_binned_ranks_within_the_stated_error(
    households: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    import evenhand.table.table as module

    def run() -> eh.ParityResult:
        table = eh.Table(households, outcome="missed_payment", groups="sex", predictions={"m": "risk_xgboost"})
        return eh.parity(table, metrics="auc", resamples=100)

    exact = run()
    monkeypatch.setattr(module, "EXACT_ROWS", 1_000)
    binned = run()
    assert "16,384 score bins" in binned.notes[0].text
    for a, b in zip(exact.values, binned.values, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-4)
        assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-4)
    for g, h in zip(exact.gaps, binned.gaps, strict=True):
        assert (g.low, g.high) == pytest.approx((h.low, h.high), abs=1e-3)


def test_results_are_frozen_and_come_in_the_callers_library(result: eh.ParityResult) -> None:
    with pytest.raises(AttributeError):
        result.values = ()  # type: ignore[misc]
    frame = result.to_frame("values")
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns)[:5] == ["model", "grouping", "group", "stratum", "metric"]
    assert len(frame) == len(result.values)
    with pytest.raises(ConfigError, match="did you mean 'gaps'"):
        result.to_frame("gap")  # type: ignore[call-overload]


def test_the_summary_and_html_tell_the_findings(result: eh.ParityResult) -> None:
    assert "By race, of those with the positive outcome, xgboost selects" in result.summary()
    assert "percentage points; 95% interval" in str(result)
    assert result._repr_html_().startswith("<h3>Parity</h3>")


def test_who_is_worse_off_depends_on_what_selection_means(households: pd.DataFrame) -> None:
    def gaps(favourable: Any) -> eh.ParityResult:
        table = eh.Table(
            households,
            outcome="missed_payment",
            groups="race",
            predictions={"m": "risk_xgboost"},
            favourable=favourable,
        )
        return eh.parity(table, metrics=["selection_rate", "fpr", "ppv", "accuracy"], resamples=100)

    flagged, chosen = gaps("not_selected"), gaps("selected")
    assert (
        flagged.get("gaps", metric="selection_rate").worse_off
        == flagged.get("gaps", metric="selection_rate").group
        == "Black"
    )
    assert (
        chosen.get("gaps", metric="selection_rate").worse_off
        == chosen.get("gaps", metric="selection_rate").reference
        == "Asian"
    )
    assert flagged.get("gaps", metric="fpr").worse_off == "Black"
    assert chosen.get("gaps", metric="fpr").worse_off is None
    assert flagged.get("gaps", metric="ppv").worse_off is None
    assert (
        chosen.get("gaps", metric="accuracy").worse_off
        == flagged.get("gaps", metric="accuracy").worse_off
        == flagged.get("gaps", metric="accuracy").reference
    )
    assert "; worse off: Black." in flagged.findings[0].text


def test_a_mistyped_reference_is_an_error(table: eh.Table) -> None:
    with pytest.raises(ConfigError, match="`reference` 'Whte' is not a group; did you mean 'White'"):
        eh.parity(table, reference="Whte", resamples=100)
    with pytest.raises(ConfigError, match="names the grouping 'rcae'; did you mean 'race'"):
        eh.parity(table, reference={"rcae": "White"}, resamples=100)


def test_strata_without_support_are_told() -> None:
    data = {"group": ["a", "b"] * 30, "job": ["x", "y"] * 30, "hired": [1, 0, 0, 1, 1, 1] * 10}
    result = eh.parity(eh.Table(data, groups="group", predictions="hired"), within="job", resamples=100)
    assert any("selection_rate cannot be standardised, since no stratum of job" in note.text for note in result.notes)


def test_polarity_is_never_guessed(households: pd.DataFrame) -> None:
    table = eh.Table(households, outcome="missed_payment", groups="race", predictions={"m": "risk_xgboost"})
    result = eh.parity(table, metrics=["selection_rate", "accuracy"], resamples=100)
    assert result.get("gaps", metric="selection_rate").worse_off is None
    assert result.get("gaps", metric="accuracy").worse_off == result.get("gaps", metric="accuracy").reference


def test_a_gap_without_an_interval_says_why() -> None:
    people = {"group": ["a"] * 20 + ["b"] * 20, "score": [0.5] * 20 + [0.3, 0.8] * 10, "y": [0, 1] * 20}
    result = eh.parity(eh.Table(people, groups="group", outcome="y", predictions="score"), metrics="auc")
    assert "no interval: one of the groups has no limits of its own" in result.findings[0].text


def test_headlines_use_the_readers_verb_and_noun() -> None:
    data = {"sex": ["F", "M"] * 100, "risk": [0.9, 0.1, 0.8, 0.2] * 50, "late": [1, 0, 0, 1] * 50}
    table = eh.Table(data, groups="sex", outcome="late", predictions="risk", selected_word="flags", people="households")
    headlines = [finding.headline.text for finding in eh.parity(table, resamples=100).findings]
    assert headlines[0].startswith("By sex, risk flags 100.0% of F and 0.0% of M households")
    assert any(text.startswith("By sex, of those with the negative outcome, risk flags") for text in headlines)
    plain = eh.Table(data, groups="sex", predictions="risk")
    assert (
        eh.parity(plain, resamples=100)
        .findings[0]
        .headline.text.startswith("By sex, risk selects: 100.0% (F), 0.0% (M);")
    )


def test_a_name_that_does_not_read_well_stands_after_a_colon() -> None:
    data = {"black": [0, 1] * 100, "approve": [1, 0, 1, 1] * 50}
    table = eh.Table(data, groups="black", predictions="approve", selected_word="approves", people="applicants")
    said = eh.parity(table, resamples=100).findings[0].headline.text
    assert said.startswith("By black, the system approves: 100.0% (black = 0), 50.0% (black = 1)")


@pytest.mark.parametrize("word", ["", " ", "x" * 41, "flags\x1b[31m"])
def test_a_verb_must_be_a_short_word(word: str) -> None:
    with pytest.raises(eh.EvenhandError, match="a word or two of at most 40 characters"):
        eh.Table({"sex": ["F", "M"], "hired": [1, 0]}, groups="sex", predictions="hired", selected_word=word)


def test_every_metric_that_is_asked_for_by_name_is_answered_by_a_finding() -> None:
    """AUC and the Brier score are told where somebody asks for them, and not where nobody does."""
    rng = np.random.default_rng(5)
    people = {"group": ["a", "b"] * 150, "score": rng.uniform(size=300), "outcome": rng.integers(0, 2, 300)}
    table = eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"})
    asked = ("auc", "brier", "weighted_f1", "fnr")
    assert [finding.metric for finding in eh.parity(table, metrics=asked).findings] == list(asked)
    assert not {finding.metric for finding in eh.parity(table).findings} & set(asked)
    alone = eh.parity(table, metrics="auc", min_count=10_000).findings[0]
    assert (alone.sentence_id, str(alone.reason)) == (
        "not_comparable",
        "No group is large enough to compare (minimum 10000).",
    )


def test_a_rate_has_one_axis_from_0_in_all_groupings_and_a_gap_names_its_groups() -> None:
    rng = np.random.default_rng(2)
    groups = {"sex": rng.choice(["F", "M"], 600).tolist(), "race": rng.choice(["A", "B", "C"], 600).tolist()}
    hired = rng.random(600) < np.where(np.array(groups["race"]) == "A", 0.6, 0.2)
    result = eh.parity(
        eh.Table({**groups, "hired": hired.astype(int).tolist()}, groups=["sex", "race"], predictions="hired")
    )
    by_rate: list[Any] = [panel for name in groups for panel in result.plot("values", grouping=name).panels]
    axes = {panel.ends() for panel in by_rate}
    assert len(axes) == 1
    assert min(axes)[0] == 0
    people = Counter(groups["race"])
    gaps: Any = result.plot("gaps", grouping="race").panels[0]
    (row,) = gaps.rows
    gap = next(g for g in result.gaps if (g.grouping, g.kind, g.against) == ("race", "difference", "worst_pair"))
    assert row["pair"] == f"{gap.group} ({people[gap.group]}) − {gap.reference} ({people[gap.reference]})"


def test_icons_count_the_errors_among_100_people_of_each_group() -> None:
    rng = np.random.default_rng(8)
    group, y = rng.choice(["A", "B"], 900, p=[0.7, 0.3]), rng.integers(0, 2, 900)
    chosen = np.where(rng.random(900) < np.where(group == "A", 0.1, 0.3), 1 - y, y)
    data = {"group": group, "y": y, "chosen": chosen, "weight": rng.uniform(0.5, 2, 900)}

    def figure(**roles: Any) -> Figure | None:
        result = eh.parity(eh.Table(data, groups="group", outcome="y", predictions="chosen", **roles), resamples=100)
        figures = (part for part in result.section().parts if isinstance(part, Figure))
        return next((part for part in figures if part.title.startswith("Errors")), None)

    drawn = figure()
    assert drawn is not None
    (panel,) = drawn.charts
    assert [group.group for group in panel.groups] == ["B", "A"], "the most errors first"
    for of_group in panel.groups:
        here = group == of_group.group
        assert of_group.n == here.sum()
        assert of_group.solid == round(100 * (here & (chosen > y)).sum() / here.sum())
        assert of_group.hollow == round(100 * (here & (chosen < y)).sum() / here.sum())
        assert f"of 100 {of_group.group}: {of_group.solid} wrongly selected" in drawn.description
    assert figure(weight="weight") is None, "weighted rates count no people"


def test_a_metric_that_one_model_cannot_have_is_a_note() -> None:
    data = {"g": ["a", "b"] * 50, "s": [0.2, 0.7, 0.4, 0.9] * 25, "d": [0, 1, 1, 0] * 25, "y": [0, 1, 0, 1, 1] * 20}
    table = eh.Table(data, groups="g", outcome="y", predictions={"scored": "s", "decided": "d"})
    found = eh.parity(table, metrics=["auc", "selection_rate"])
    assert {row.model for row in found.rows("values", metric="auc")} == {"scored"}
    assert {row.model for row in found.rows("values", metric="selection_rate")} == {"scored", "decided"}
    assert [note.text for note in found.notes] == ["decided: not computed without scores: auc."]


def test_decisions_that_are_the_outcome_are_doubted() -> None:
    data: dict[str, list[Any]] = {
        "g": ["a", "b"] * 50,
        "y": [0, 1, 0, 1, 1] * 20,
        "same": ["no", "yes", "no", "yes", "yes"] * 20,
    }
    doubted = eh.Table(data, groups="g", outcome="y", predictions={"m": "same"})
    assert "table.is_outcome" in [note.id for note in eh.parity(doubted).notes]
    data["same"][0] = "yes"
    sound = eh.Table(data, groups="g", outcome="y", predictions={"m": "same"})
    assert "table.is_outcome" not in [note.id for note in eh.parity(sound).notes]
