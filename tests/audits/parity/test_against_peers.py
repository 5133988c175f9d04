"""Every value and gap against scikit-learn and fairlearn on the same data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.parity.metrics import METRICS
from evenhand.audits.parity.other_names import OTHER_NAMES
from evenhand.errors import ConfigError

TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 4_000
    group = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05])
    score = np.round(rng.beta(2, 3, n), 2)  # rounded, so that there are ties
    outcome = (rng.random(n) < score * 0.8 + (group == "b") * 0.1).astype(int)
    return pd.DataFrame({"group": group, "score": score, "outcome": outcome, "weight": rng.uniform(0.2, 9, n)})


def oracles(weighted: bool) -> dict[str, Any]:
    from sklearn import metrics as sk

    def rate(numerator: Any, denominator: Any) -> Any:
        def value(y: Any, s: Any, w: Any) -> float:
            d = s > 0.5
            return float(w[numerator(y, d)].sum() / w[denominator(y, d)].sum())

        return value

    return {
        "selection_rate": rate(lambda y, d: d, lambda y, d: d | ~d),
        "mean_score": lambda y, s, w: float(np.average(s, weights=w)),
        "tpr": lambda y, s, w: sk.recall_score(y, s > 0.5, sample_weight=w),
        "fpr": rate(lambda y, d: d & (y == 0), lambda y, d: y == 0),
        "fnr": rate(lambda y, d: ~d & (y == 1), lambda y, d: y == 1),
        "tnr": lambda y, s, w: sk.recall_score(y, s > 0.5, pos_label=0, sample_weight=w),
        "ppv": lambda y, s, w: sk.precision_score(y, s > 0.5, sample_weight=w),
        "npv": lambda y, s, w: sk.precision_score(y, s > 0.5, pos_label=0, sample_weight=w),
        "accuracy": lambda y, s, w: sk.accuracy_score(y, s > 0.5, sample_weight=w),
        "base_rate": lambda y, s, w: float(np.average(y, weights=w)),
        "brier": lambda y, s, w: sk.brier_score_loss(y, s, sample_weight=w),
        "auc": lambda y, s, w: sk.roc_auc_score(y, s, sample_weight=w),
        "f1": lambda y, s, w: sk.f1_score(y, s > 0.5, sample_weight=w),
        "balanced_accuracy": lambda y, s, w: sk.balanced_accuracy_score(y, s > 0.5, sample_weight=w),
    }


@pytest.mark.replication
@pytest.mark.parametrize("weighted", [False, True])
def test_values_equal_those_of_scikit_learn(people: pd.DataFrame, weighted: bool) -> None:
    functions = oracles(weighted)
    table = eh.Table(
        people, outcome="outcome", groups="group", predictions={"m": "score"}, weight="weight" if weighted else None
    )
    result = eh.parity(table, metrics=list(functions), resamples=100)
    assert {record.metric for record in result.values} == set(functions)
    for record in result.values:
        part = people[people.group == record.group]
        weight = part.weight.to_numpy() if weighted else np.ones(len(part))
        expected = functions[record.metric](part.outcome.to_numpy(), part.score.to_numpy(), weight)
        assert record.value == pytest.approx(expected, abs=TOLERANCE), record


@pytest.mark.replication
def test_gaps_equal_those_of_fairlearn(people: pd.DataFrame) -> None:
    from fairlearn.metrics import (
        MetricFrame,
        demographic_parity_difference,
        demographic_parity_ratio,
        equal_opportunity_difference,
        false_positive_rate,
        selection_rate,
        true_positive_rate,
    )

    selected = (people.score > 0.5).astype(int)
    frame = MetricFrame(
        metrics={"selection_rate": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate},
        y_true=people.outcome,
        y_pred=selected,
        sensitive_features=people.group,
    )
    result = eh.parity(eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"}), resamples=100)
    for metric in ("selection_rate", "tpr", "fpr"):
        assert result.get("gaps", metric=metric).value == pytest.approx(frame.difference()[metric], abs=TOLERANCE)
        assert result.get("gaps", metric=metric, kind="ratio").value == pytest.approx(
            frame.ratio()[metric], abs=TOLERANCE
        )
        to_overall = [g for g in result.gaps if (g.metric, g.against) == (metric, "overall") and g.value is not None]
        difference = max(abs(g.value or 0) for g in to_overall if g.kind == "difference")
        ratio = min(min(g.value or 0, 1 / (g.value or 1)) for g in to_overall if g.kind == "ratio")
        assert difference == pytest.approx(frame.difference(method="to_overall")[metric], abs=TOLERANCE)
        assert ratio == pytest.approx(frame.ratio(method="to_overall")[metric], abs=TOLERANCE)
    same = {"y_true": people.outcome, "y_pred": selected, "sensitive_features": people.group}
    for name, function in {
        "demographic_parity_difference": demographic_parity_difference,
        "demographic_parity_ratio": demographic_parity_ratio,
        "equal_opportunity_difference": equal_opportunity_difference,
    }.items():
        assert result.get("gaps", name=name).value == pytest.approx(function(**same), abs=TOLERANCE)


def test_calibration_bins_equal_a_plain_count(people: pd.DataFrame) -> None:
    table = eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"})
    result = eh.parity(table, metrics="brier", bins=5, resamples=100)
    bins = np.minimum((people.score.to_numpy() / 1.0 * 5).astype(int), 4)
    expected = people.groupby([people.group, pd.Series(bins, name="bin")]).agg(
        n=("outcome", "size"), share=("outcome", "mean"), score=("score", "mean")
    )
    assert len(result.calibration) == len(expected)
    for record in result.calibration:
        row = expected.loc[(record.group, round(record.bin_low * 5))]
        assert record.n == row.n
        assert record.value == pytest.approx(row.share, abs=TOLERANCE)
        assert record.mean_score == pytest.approx(row.score, abs=TOLERANCE)


def test_wilson_limits_of_a_group_equal_statsmodels(people: pd.DataFrame) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    result = eh.parity(
        eh.Table(people, groups="group", predictions={"m": "score"}), metrics="selection_rate", resamples=100
    )
    for record in result.values:
        selected = round((record.value or 0) * record.n)
        low, high = proportion.proportion_confint(selected, record.n, method="wilson")
        assert (record.low, record.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.replication
def test_names_of_fairlearn_are_understood_or_refused_with_a_reason(people: pd.DataFrame) -> None:
    """Every name of its list is read as the same number, or has a reason why it has no counterpart."""
    import fairlearn.metrics as peer

    table = eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"})
    names = [name for name in dir(peer) if name.endswith(("_difference", "_ratio", "_group_min", "_group_max"))]
    assert len(names) > 30
    result = eh.parity(table, metrics=[*METRICS], resamples=100)
    same = {"y_true": people.outcome, "y_pred": (people.score > 0.5).astype(int), "sensitive_features": people.group}
    for name in names:
        other = OTHER_NAMES[name]
        if other.refused:
            with pytest.raises(ConfigError, match="has no counterpart here: "):
                eh.parity(table, metrics=name)
            continue
        sizes = [float(str(gap.value)) for gap in result.rows("gaps", metric=name)]
        worst = max(sizes) if other.kind == "difference" else min(sizes)
        assert worst == pytest.approx(getattr(peer, name)(**same), abs=TOLERANCE), name


def test_a_name_of_another_package_is_named_in_the_answer(people: pd.DataFrame) -> None:
    table = eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"})
    limits = [{"metric": "equalized_odds_difference", "max": 0.5}, {"metric": "disparate_impact", "min": 0.1}]
    result = eh.parity(table, metrics=["recall", "fpr", "selection_rate"], thresholds=limits)
    assert [(limit.metric, limit.kind, limit.against) for limit in result.spec.thresholds] == [
        ("tpr", "difference", "worst_pair"),
        ("fpr", "difference", "worst_pair"),
        ("selection_rate", "ratio", "reference"),
    ]
    notes = " ".join(note.text for note in result.notes)
    for name in (
        "recall (fairlearn, scikit-learn)",
        "equalized_odds_difference (fairlearn)",
        "disparate_impact (AIF360)",
    ):
        assert name in notes
    assert result.get("gaps", metric="demographic_parity_ratio") == result.get(
        "gaps", metric="selection_rate", kind="ratio"
    )
    ratio, tpr = eh.parity(table, metrics=["disparate_impact", "recall"]).findings
    assert (ratio.metric, ratio.kind, tpr.kind) == ("selection_rate", "ratio", "difference")
    assert f"{ratio.value:.3f} times as often:" in ratio.headline.text
    own = eh.parity(table, metrics="tpr", custom={"f1_score": lambda cells: cells.tp / cells.n}, resamples=100)
    assert own.rows("values", metric="f1_score")
    assert not own.notes
