"""F1 and balanced accuracy: functions of rates, whose limits follow from those of the rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.parity.estimate import ratio_values
from evenhand.audits.parity.gather import GroupCells, Totals
from evenhand.audits.parity.influence import metric_influence
from evenhand.audits.parity.metrics import DEFAULTS, METRICS
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.stats.intervals import wilson
from evenhand.stats.types import FloatArray

BOTH = ("f1", "balanced_accuracy")


def make_people(n: int = 900, seed: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    outcome = rng.random(n) < 0.35
    hit = np.where(outcome, np.where(group == "a", 0.8, 0.55), 0.2)
    decision = (rng.random(n) < hit).astype(int)
    weight = rng.gamma(3.0, size=n)
    return pd.DataFrame({"group": group, "outcome": outcome.astype(int), "decision": decision, "weight": weight})


def make_table(people: pd.DataFrame, **roles: Any) -> eh.Table:
    return eh.Table(people, outcome="outcome", groups="group", predictions={"m": "decision"}, **roles)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_equal_those_of_scikit_learn(weighted: bool) -> None:
    from sklearn.metrics import balanced_accuracy_score, f1_score

    people = make_people()
    table = make_table(people, weight="weight" if weighted else None)
    for interval in ("auto", "bca"):
        result = eh.parity(table, metrics=BOTH, interval=interval, resamples=100)
        for record in result.values:
            part = people[people.group == record.group]
            score = {"f1": f1_score, "balanced_accuracy": balanced_accuracy_score}[record.metric]
            expected = score(part.outcome, part.decision, sample_weight=part.weight if weighted else None)
            assert record.value == pytest.approx(expected, abs=1e-12)


def test_limits_of_f1_are_those_of_the_jaccard_index() -> None:
    people = make_people()
    for record in eh.parity(make_table(people), metrics="f1").values:
        part = people[people.group == record.group]
        hits, either = (part.outcome & part.decision).sum(), (part.outcome | part.decision).sum()
        limits = [2 * float(end) / (1 + float(end)) for end in wilson(hits / either, either)]
        assert (record.low, record.high) == pytest.approx(limits, abs=1e-12)
        assert record.n == either


def test_limits_of_balanced_accuracy_are_movers_and_near_the_delta_methods() -> None:
    people = make_people(40_000)
    values = {record.group: record for record in eh.parity(make_table(people), metrics="balanced_accuracy").values}
    for group, record in values.items():
        part = people[people.group == group]
        rates = [
            (part.decision[part.outcome == 1].mean(), (part.outcome == 1).sum()),
            (1 - part.decision[part.outcome == 0].mean(), (part.outcome == 0).sum()),
        ]
        limits = [wilson(rate, n) for rate, n in rates]
        below = np.hypot(*(rate - float(own.low) for (rate, _), own in zip(rates, limits, strict=True))) / 2
        above = np.hypot(*(float(own.high) - rate for (rate, _), own in zip(rates, limits, strict=True))) / 2
        assert (record.low, record.high) == pytest.approx((record.value - below, record.value + above), abs=1e-12)
        stderr = np.sqrt(sum(rate * (1 - rate) / n for rate, n in rates)) / 2
        assert record.low is not None
        assert record.high is not None
        assert (record.high - record.low) / (2 * 1.959964) == pytest.approx(stderr, rel=0.01)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_delta_methods_error_is_the_sum_of_squared_influences(name: str, weight: str | None) -> None:
    people = make_people()
    table = make_table(people, weight=weight)
    cells = GroupCells.build(table.counts("m"), "m", ["group"], ())
    values = ratio_values(cells, METRICS[name], (0.0, 1.0))
    columns = {"outcome": people.outcome.to_numpy(float), "decision": people.decision.to_numpy(float)}
    columns["people"] = np.ones(len(people))
    for position, label in enumerate(cells.labels):
        own = people.weight if weight else np.ones(len(people))
        influence = metric_influence(METRICS[name], columns, np.where(people.group == label, own, 0.0))
        assert influence is not None
        assert values.value[position] == pytest.approx(influence[0], abs=1e-12)
        assert values.stderr[position] == pytest.approx(np.sqrt((influence[1] ** 2).sum()), rel=1e-9)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_gaps_come_near_those_of_the_bootstrap(name: str, weight: str | None) -> None:
    table = make_table(make_people(12_000), weight=weight)
    formula, drawn = (
        eh.parity(table, metrics=name, interval=interval, resamples=2_000).gaps for interval in ("auto", "bca")
    )
    for gap, other in zip(formula, drawn, strict=True):
        assert gap.value == pytest.approx(other.value, abs=1e-12)
        if gap.against != "worst_pair":
            assert (gap.low, gap.high) == pytest.approx((other.low, other.high), abs=0.012)
            assert gap.p_value == pytest.approx(other.p_value, abs=0.06)
        assert gap.status == OK


@pytest.mark.parametrize("name", BOTH)
def test_p_values_agree_with_the_limits(name: str) -> None:
    for gap in eh.parity(make_table(make_people()), metrics=name).gaps:
        if gap.against == "worst_pair" and gap.kind == "difference":
            assert gap.p_value is not None
            assert gap.low is not None
            assert (gap.low > 0) == (gap.p_value < 0.05)


@pytest.mark.parametrize("name", BOTH)
def test_a_threshold_is_judged_though_the_metric_is_not_computed_by_default(name: str) -> None:
    assert name not in DEFAULTS
    table = make_table(make_people(4_000))
    limits = [{"metric": name, "max": 0.01}, {"metric": name, "min": 0.2, "kind": "ratio"}]
    result = eh.parity(table, thresholds=limits)
    assert [finding.verdict for finding in result.findings[:2]] == ["does_not_meet", "meets"]
    assert name not in {record.metric for record in eh.parity(table).values}


def test_balanced_accuracy_counts_people_with_the_rarer_outcome() -> None:
    data = {"group": ["a"] * 50 + ["b"] * 50, "outcome": ([1] * 25 + [0] * 25) + [1] * 4 + [0] * 46, "d": [1, 0] * 50}
    table = eh.Table(data, outcome="outcome", groups="group", predictions={"m": "d"})
    result = eh.parity(table, metrics="balanced_accuracy")
    small = result.get("values", metric="balanced_accuracy", group="b")
    assert small.status.text == "only 4 of the rarer outcome (minimum 10); shown, not compared"
    assert small.n == 50


def test_names_of_other_packages_are_read() -> None:
    result = eh.parity(make_table(make_people()), metrics=["f1_score", "balanced_accuracy_score"])
    assert {record.metric for record in result.values} == set(BOTH)


@pytest.mark.parametrize("name", ["f1", "balanced_accuracy", "weighted_f1"])
@pytest.mark.parametrize("metrics", [None, ("tpr",), ("tpr", "f1", "balanced_accuracy", "weighted_f1")])
def test_a_metric_of_ones_own_replaces_a_built_in_one_of_its_name(name: str, metrics: tuple[str, ...] | None) -> None:
    def own(cells: Totals) -> FloatArray:
        return cells.tp / cells.n

    table = make_table(make_people())
    limit = {"metric": name, "max": 0.5}
    result = eh.parity(table, metrics=metrics, custom={name: own}, thresholds=[limit], resamples=200)
    records = result.rows("values", metric=name)
    assert [record.group for record in records] == ["a", "b", "c"]
    people = make_people()
    for record in records:
        part = people[people.group == record.group]
        assert record.value == pytest.approx((part.outcome & part.decision).mean())
    assert result.spec.known_metrics()[name].method == "custom"
    assert f"{name} is your own function, not the built-in metric of that name." in [note.text for note in result.notes]


def test_a_metric_that_is_computed_by_default_cannot_be_replaced() -> None:
    with pytest.raises(ConfigError, match="'tpr' is a built-in metric; give your own another name"):
        eh.parity(make_table(make_people()), custom={"tpr": lambda cells: cells.tp / cells.n})


def test_two_models_of_the_same_people_are_compared_person_by_person() -> None:
    people = make_people()
    flipped = np.random.default_rng(3).random(len(people)) < 0.05
    tables = make_table(people), make_table(people.assign(decision=people.decision ^ flipped))
    old, new = (eh.audit(table, parity={"metrics": list(BOTH)}) for table in tables)
    paired = eh.compare(old, new, tables=tables)
    changes = [change for change in paired.changes if change.against == "worst_pair"]
    assert {change.metric for change in changes} == set(BOTH)
    assert all(change.low is not None and change.high is not None for change in changes)


def test_a_metric_of_ones_own_is_not_compared_as_the_built_in_one() -> None:
    table = make_table(make_people())
    own = {"f1": lambda cells: cells.tp / cells.n}
    old, new = (
        eh.audit(table, parity={"metrics": ["tpr"], "custom": own, "seed": seed, "resamples": 100}) for seed in (1, 2)
    )
    changes = [change for change in eh.compare(old, new, tables=(table, table)).changes if change.metric == "f1"]
    assert changes
    assert all(change.low is None for change in changes)
