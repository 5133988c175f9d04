"""Laws that every metric obeys, whatever the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.messages.shared import say as shared

ALL_METRICS = list(METRICS)


def make_people(n: int = 600, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(2, 2, n), 2)
    return pd.DataFrame(
        {
            "group": rng.choice(["a", "b", "c"], n),
            "score": score,
            "outcome": (rng.random(n) < score).astype(int),
            "weight": rng.integers(1, 5, n),
        }
    )


def run(data: Any, **roles: Any) -> Any:
    table = eh.Table(data, outcome="outcome", groups="group", predictions={"m": "score"}, **roles)
    return eh.parity(table, metrics=ALL_METRICS, resamples=200)


def test_the_order_of_rows_does_not_matter() -> None:
    people = make_people()
    shuffled = people.sample(frac=1, random_state=1)
    assert run(people).to_dict() == run(shuffled).to_dict()


def test_the_data_frame_library_does_not_matter() -> None:
    import polars as pl
    import pyarrow as pa

    people = make_people()
    expected = run(people).to_dict()
    for other in (pl.from_pandas(people), pa.Table.from_pandas(people), people.to_dict("list")):
        assert run(other).to_dict() == expected


def test_renamed_groups_have_the_same_values() -> None:
    people = make_people()
    names = {"a": "z", "b": "y", "c": "x"}
    renamed = {(r.group, r.metric): r for r in run(people.assign(group=people.group.map(names))).values}
    for record in run(people).values:
        other = renamed[names[record.group], record.metric]
        assert replace(other, group=record.group) == record


def test_whole_weights_equal_repeated_rows() -> None:
    people = make_people()
    repeated = people.loc[people.index.repeat(people.weight)]
    by_weight = {(r.group, r.metric): r.value for r in run(people, weight="weight").values}
    for record in run(repeated).values:
        assert by_weight[record.group, record.metric] == pytest.approx(record.value, abs=1e-12)


def test_equal_weights_change_nothing() -> None:
    people = make_people()
    plain = {(r.group, r.metric): r for r in run(people).values}
    for record in run(people.assign(weight=7.0), weight="weight").values:
        other = plain[record.group, record.metric]
        assert (record.value, record.low, record.high) == pytest.approx((other.value, other.low, other.high), abs=1e-9)


def test_every_record_is_complete_or_says_why() -> None:
    data = {
        "group": ["a"] * 30 + ["b"] * 30 + ["c"] * 3 + [None] * 5 + ["one"],
        "score": [0.9] * 30 + [0.1] * 30 + [0.2, 0.8, 0.6] + [0.5] * 5 + [0.7],
        "outcome": [1] * 30 + [0] * 30 + [0, 1, 1] + [1] * 5 + [0],
    }
    result = run(data)
    for record in [*result.values, *result.gaps]:
        whole = None not in (record.value, record.low, record.high)
        assert whole == (record.status == OK) or record.status.id in (
            "core.small",
            "parity.small_rarer",
            "core.missing_group",
        ), record


def test_a_missing_group_is_a_row_of_its_own_and_in_no_gap() -> None:
    people = make_people()
    people.loc[people.index[:40], "group"] = None
    result = run(people)
    assert next(r.n for r in result.values if (r.group, r.metric) == ("(missing)", "accuracy")) == 40
    assert all("(missing)" not in (gap.group, gap.reference) for gap in result.gaps)
    assert {
        "model": "m",
        "grouping": "group",
        "group": "(missing)",
        "n": 40,
        "reason": shared("group_missing_in_gaps").to_dict(),
    } in [record.to_dict() for record in result.left_out]


def test_small_groups_are_listed_and_left_out_of_gaps() -> None:
    people = pd.concat([make_people(), pd.DataFrame({"group": ["tiny"] * 4, "score": 0.99, "outcome": 0, "weight": 1})])
    result = run(people)
    assert any(record.group == "tiny" and record.n == 4 for record in result.left_out)
    assert all("tiny" not in (gap.group, gap.reference) for gap in result.gaps)
    assert next(r for r in result.values if (r.group, r.metric) == ("tiny", "fpr")).value == 1.0


def test_one_comparable_group_gives_no_gap_but_a_reason() -> None:
    people = pd.concat(
        [
            make_people().query("group == 'a'"),
            pd.DataFrame({"group": ["tiny"] * 4, "score": 0.9, "outcome": 0, "weight": 1}),
        ]
    )
    gap = run(people).get("gaps", metric="selection_rate")
    assert gap.value is None
    assert gap.status.text == "undefined: only one group is large enough to compare (minimum 10)"


def test_the_worst_pair_contains_every_other_pair() -> None:
    result = run(make_people())
    for metric in ALL_METRICS:
        values = [r.value for r in result.values if r.metric == metric]
        assert result.get("gaps", metric=metric).value == pytest.approx(max(values) - min(values))
        assert result.get("gaps", metric=metric, kind="ratio").value == pytest.approx(min(values) / max(values))


def test_intervals_hold_their_value_and_shrink_with_more_people() -> None:
    wide, narrow = run(make_people(600)), run(make_people(60_000))
    for result in (wide, narrow):
        for record in [*result.values, *result.gaps]:
            assert record.low <= record.value + 1e-12, record
            assert record.value <= record.high + 1e-12, record
    for metric in ALL_METRICS:
        gaps = [r.get("gaps", metric=metric) for r in (wide, narrow)]
        assert gaps[0].high - gaps[0].low > gaps[1].high - gaps[1].low


@pytest.mark.parametrize("interval", ["percentile", "basic", "bca"])
def test_bootstrap_intervals_come_near_the_default(interval: Literal["percentile", "basic", "bca"]) -> None:
    people = make_people(5_000)
    table = eh.Table(people, outcome="outcome", groups="group", predictions={"m": "score"})
    metrics = ["selection_rate", "mean_score", "tpr", "brier"]
    plain = {(r.metric, r.group): r for r in eh.parity(table, metrics=metrics).values}
    for record in eh.parity(table, metrics=metrics, interval=interval).values:
        other = plain[record.metric, record.group]
        assert (record.low, record.high) == pytest.approx((other.low, other.high), abs=3e-3)


@pytest.mark.parametrize("interval", ["auto", "bca"])
def test_no_seed_changes_a_number(interval: Literal["auto", "bca"]) -> None:
    table = eh.Table(make_people(), outcome="outcome", groups="group", predictions={"m": "score"})
    one, two = (eh.parity(table, seed=seed, resamples=300, interval=interval).gaps for seed in (1, 2))
    assert one == two


@pytest.mark.parametrize("weight", [None, "weight"])
def test_no_name_of_a_group_or_stratum_changes_a_resampled_number(weight: str | None) -> None:
    """Groups and strata of equal size, and of equal values."""
    people = make_people().assign(group=np.arange(600) % 3, part=np.arange(600) // 3 % 2)
    people["score"] = np.where(people.group == 2, people.score.to_numpy()[(np.arange(600) // 3) * 3], people.score)
    names = ({0: "a", 1: "b", 2: "c"}, {0: "u", 1: "v"}), ({0: "z", 1: "x", 2: "y"}, {0: "v", 1: "u"})

    def ends(gap: Any) -> list[float | None]:
        return [None if end is None else round(end, 10) for end in (gap.value, gap.low, gap.high)]

    def gaps(groups: dict[int, str], parts: dict[int, str]) -> set[tuple[Any, ...]]:
        named = people.assign(group=people.group.map(groups), part=people.part.map(parts))
        first = {**{name: str(code) for code, name in groups.items()}, "(overall)": ""}
        strata = {name: str(code) for code, name in parts.items()}
        table = eh.Table(named, outcome="outcome", groups="group", predictions={"m": "score"}, weight=weight)
        custom = {"share": lambda cells: cells.tp / cells.n}
        result = eh.parity(table, within="part", custom=custom, resamples=200)
        sides = [(first.get(str(gap.group)), first.get(str(gap.reference)), gap) for gap in result.gaps]
        return {
            (
                a,
                b,
                strata.get(str(gap.stratum), gap.stratum),
                gap.metric,
                gap.kind,
                gap.against,
                gap.p_value,
                *ends(gap),
            )
            for a, b, gap in sides
        }

    assert gaps(*names[0]) == gaps(*names[1])


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("factor", ["part", "race"])
def test_a_stratum_is_compared_as_its_people_alone(weight: str | None, factor: str) -> None:
    """Means and, with weights, rates are compared by permutation there, too; `factor` may be a group column itself."""
    rng = np.random.default_rng(6)
    parts = np.array(["u", "v", None], dtype=object)[rng.integers(0, 3, 900)]
    people = make_people(900).assign(part=parts, race=rng.choice(["x", "y"], 900))

    def gaps(data: pd.DataFrame, groups: list[str], **settings: Any) -> list[Any]:
        table = eh.Table(data, outcome="outcome", groups=groups, predictions={"m": "score"}, weight=weight)
        found = eh.parity(table, metrics=["mean_score", "brier", "selection_rate"], **settings)
        return [gap for gap in found.gaps if gap.grouping == "group"]

    within = gaps(people, ["group", "race"], within=factor, resamples=100)
    reference = next(gap.reference for gap in within if gap.against == "reference")
    for stratum in ("u", "v") if factor == "part" else ("x", "y"):
        alone = gaps(people[people[factor] == stratum], ["group"], reference=reference)
        inside = [gap for gap in within if gap.stratum == stratum]
        assert inside
        by_key = {(gap.metric, gap.kind, gap.against, gap.group, gap.reference): gap for gap in alone}
        for gap in inside:
            other = by_key[gap.metric, gap.kind, gap.against, gap.group, gap.reference]
            assert gap.rests_on == other.rests_on != "group limits"
            assert (gap.p_value, gap.low, gap.high) == pytest.approx((other.p_value, other.low, other.high), rel=1e-9)


def test_a_resampled_number_does_not_depend_on_what_else_is_computed() -> None:
    people = make_people().assign(other=lambda frame: frame.group + "2")

    def gaps(groups: list[str]) -> list[Any]:
        table = eh.Table(people, outcome="outcome", groups=groups, predictions={"m": "score"})
        result = eh.parity(table, metrics="tpr", interval="bca", resamples=300)
        return [replace(gap, p_adjusted=None) for gap in result.gaps if gap.grouping == "group"]

    assert gaps(["group"]) == gaps(["other", "group"])


def test_scores_of_another_range_are_an_affine_copy() -> None:
    people = make_people()
    deciles = people.assign(score=1 + 9 * people.score)
    plain = run(people)
    table = eh.Table(
        deciles,
        outcome="outcome",
        groups="group",
        predictions={"m": {"column": "score", "range": (1, 10), "threshold": 5.5}},
    )
    metrics = [name for name in ALL_METRICS if name != "brier"]
    moved = {(r.group, r.metric): r for r in eh.parity(table, metrics=metrics, resamples=200).values}
    with pytest.raises(ConfigError, match="'brier' needs scores between 0 and 1"):
        eh.parity(table, metrics="brier")
    for record in plain.values:
        if record.metric == "brier":
            continue
        other = moved[record.group, record.metric]
        if record.metric == "mean_score":
            assert other.value == pytest.approx(1 + 9 * record.value)
            assert (other.low, other.high) == pytest.approx((1 + 9 * record.low, 1 + 9 * record.high))
        else:
            assert other.value == pytest.approx(record.value)


def test_a_clear_gap_between_rates_has_a_p_value_below_that_of_all_shuffles() -> None:
    """9,999 shuffles end at 0.0001, which is 0.002 when adjusted for 20 findings."""
    rows = {"g": ["a"] * 200 + ["b"] * 200, "d": [1] * 150 + [0] * 50 + [1] * 60 + [0] * 140}
    table = eh.Table(rows, groups="g", predictions={"m": "d"}, favourable="selected")
    gap = eh.parity(table, metrics=["selection_rate"]).get("gaps", against="worst_pair", kind="difference")
    assert gap.p_value is not None
    assert gap.p_value < 1e-9
