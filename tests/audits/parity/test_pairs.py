"""One test and one interval for every two groups, whatever they are called."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.parity.pairs import MeanPairs, worst_p
from evenhand.core.families import MOST_FINDINGS
from evenhand.core.records import STANDARDISED, Kind, limits_to_judge
from evenhand.stats.permutation import GroupedValues, compare_means
from evenhand.stats.two_rates import compare_rates

KINDS: tuple[Kind, ...] = ("difference", "ratio")


def decided(counts: dict[str, tuple[int, int]], column: str = "group", **settings: Any) -> eh.ParityResult:
    """Return the audit of groups in which x of n are selected."""
    groups = [name for name, (_, n) in counts.items() for _ in range(n)]
    chosen = [int(i < x) for x, n in counts.values() for i in range(n)]
    return eh.parity(eh.Table({column: groups, "d": chosen}, groups=column, predictions={"m": "d"}), **settings)


def numbers(result: eh.ParityResult) -> list[tuple[Any, ...]]:
    return [(gap.kind, gap.against, gap.value, gap.low, gap.high, gap.p_value) for gap in result.gaps]


def test_neither_names_nor_the_seed_nor_the_order_of_rows_change_a_number() -> None:
    found = numbers(decided({"a": (30, 100), "b": (44, 100)}))
    for seed, column in enumerate(("sex", "race", "x")):
        assert numbers(decided({"a": (30, 100), "b": (44, 100)}, column, seed=seed)) == found
    turned = numbers(decided({"z": (30, 100), "b": (44, 100)}, reference="z"))
    straight = numbers(decided({"a": (30, 100), "b": (44, 100)}, reference="a"))
    assert turned[0] == straight[0]


def test_two_groups_have_the_score_test_and_its_interval() -> None:
    result = decided({"a": (3, 80), "b": (12, 90)}, reference="a")
    expected = compare_rates(12, 90, 3, 80)
    for against in ("worst_pair", "reference", "overall"):
        gap = result.rows("gaps", kind="difference", against=against)[-1]
        assert gap.p_value == pytest.approx(float(expected.p_value))
    worst, alone = (result.get("gaps", kind="difference", against=base) for base in ("worst_pair", "reference"))
    assert (alone.low, alone.high) == pytest.approx(tuple(map(float, expected.limits())))
    assert (worst.low, worst.high) == (max(0.0, alone.low or 0.0), alone.high)


@pytest.mark.parametrize("seed", range(6))
def test_a_gap_excludes_equality_exactly_if_its_p_value_is_below_alpha(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(12, 90, 4)
    counts = {f"g{i}": (int(rng.binomial(n, rng.choice([0.1, 0.35]))), int(n)) for i, n in enumerate(people)}
    for gap in decided(counts).gaps:
        if gap.low is None or gap.p_value is None:
            continue
        equal = 0.0 if gap.kind == "difference" else 1.0
        excluded = gap.low > equal or (gap.high is not None and gap.high < equal)
        assert excluded == (gap.p_value < 0.05), gap


def test_the_worst_pair_has_the_smallest_p_value_of_all_pairs_times_their_number() -> None:
    counts = {"a": (5, 60), "b": (20, 70), "c": (9, 40)}
    result = decided(counts)
    pairs = [(counts[i], counts[j]) for i, j in (("a", "b"), ("a", "c"), ("b", "c"))]
    each = [float(compare_rates(*one, *other).p_value) for one, other in pairs]
    assert result.get("gaps", kind="difference", against="worst_pair").p_value == pytest.approx(3 * min(each))


def scored(scores: dict[str, list[float]], column: str = "group", **settings: Any) -> eh.ParityResult:
    groups = [name for name, values in scores.items() for _ in values]
    everybody = [score for values in scores.values() for score in values]
    table = eh.Table({column: groups, "s": everybody}, groups=column, predictions={"m": "s"})
    return eh.parity(table, metrics="mean_score", **settings)


def fraud(seed: int, people: int) -> list[float]:
    rng = np.random.default_rng(seed)
    extreme = rng.random(people) < 0.05
    return [float(score) for score in np.where(extreme, rng.uniform(0.97, 1, people), rng.beta(1, 20, people))]


def test_means_have_the_permutation_of_their_people_and_its_interval() -> None:
    scores = {"a": fraud(1, 60), "b": fraud(2, 300)}
    values = np.array(scores["a"] + scores["b"])
    is_a = np.arange(360) < 60
    expected = compare_means(values, is_a, ~is_a, bounds=(0.0, 1.0), level=0.05 / 20)
    result = scored(scores, reference="b")
    for against in ("worst_pair", "reference", "overall"):
        gap = result.rows("gaps", kind="difference", against=against)[0]
        assert gap.p_value == pytest.approx(expected.p_value)
        assert gap.rests_on == expected.rests_on
    alone = result.get("gaps", kind="difference", against="reference")
    assert (alone.low, alone.high) == pytest.approx(expected.limits())
    assert numbers(scored(scores, "race", seed=7, reference="b")) == numbers(result)


@pytest.mark.parametrize("seed", range(4))
def test_a_gap_of_means_excludes_equality_exactly_if_its_p_value_is_below_alpha(seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(12, 400, 4)
    result = scored({f"g{i}": fraud(10 * seed + i, int(n)) for i, n in enumerate(sizes)})
    for gap in result.gaps:
        assert gap.low is not None
        assert gap.p_value is not None
        equal = 0.0 if gap.kind == "difference" else 1.0
        excluded = gap.low > equal or (gap.high is not None and gap.high < equal)
        assert excluded == (gap.p_value < 0.05), gap


def test_many_groups_give_the_worst_pair_of_all_comparisons() -> None:
    """Of 66 pairs only those that can decide are drawn; the answer is that of drawing all."""
    people = np.repeat(np.arange(12), np.arange(20, 80, 5))
    values = np.array(fraud(3, people.size)) + 0.1 * (people == 4)
    grouped = GroupedValues(values, np.ones(people.size, dtype=np.int64), people, None, 12)
    order = np.argsort(-np.bincount(people, weights=values) / np.bincount(people))
    first, second = (np.eye(12, dtype=np.bool_)[order[side]] for side in np.triu_indices(12, 1))
    few, every = (MeanPairs(grouped, first, second, (0.0, 2.0), of_worst) for of_worst in (True, False))
    assert sum(found.draws > 0 for found in few.compared) < sum(found.draws > 0 for found in every.compared)
    assert worst_p(few) == worst_p(every)
    for kind in KINDS:
        assert few.widest(kind, 0.95) == every.widest(kind, 0.95)


def test_meets_rests_on_the_one_sided_limit_and_the_finding_states_it() -> None:
    counts, limit = {"a": (600, 2000), "b": (84, 300)}, {"metric": "selection_rate", "max": 0.069}
    finding = decided(counts, thresholds=[limit]).findings[0]
    expected = float(compare_rates(600, 2000, 84, 300).bound("upper", 0.95))
    assert finding.verdict == "meets"
    assert finding.high is not None
    assert finding.high > 0.069 > (finding.bound_high or 1.0)
    assert finding.bound_low is None
    assert finding.bound_high == pytest.approx(expected)
    assert limits_to_judge(finding) == (None, finding.bound_high)
    assert "one-sided 95% limit at most 6.4" in finding.text
    to_reference = decided(counts, thresholds=[limit | {"against": "reference"}]).findings[0]
    assert to_reference.bound_low == pytest.approx(-expected)
    assert to_reference.bound_high is not None


def test_two_groups_are_one_test() -> None:
    limit = {"metric": "selection_rate", "max": 0.5}
    findings = decided({"a": (30, 100), "b": (44, 100)}, thresholds=[limit, limit | {"against": "reference"}]).findings
    assert {finding.p_adjusted for finding in findings} == {findings[0].p_value}


def weighted(weights: Any, seed: int = 0) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    people = {"g": np.repeat(["a", "b", "c"], [30, 80, 60]), "d": (rng.random(170) < 0.3).astype(int), "w": weights}
    return numbers(eh.parity(eh.Table(people, groups="g", predictions={"m": "d"}, weight="w")))


def test_equal_weights_are_no_weights() -> None:
    rng = np.random.default_rng(0)
    people = {"g": np.repeat(["a", "b", "c"], [30, 80, 60]), "d": (rng.random(170) < 0.3).astype(int)}
    plain = numbers(eh.parity(eh.Table(people, groups="g", predictions={"m": "d"})))
    for found, expected in zip(weighted(np.full(170, 7.0)), plain, strict=True):
        assert found[:2] == expected[:2]
        assert found[2:] == pytest.approx(expected[2:])


@pytest.mark.parametrize("seed", range(3))
def test_weighted_rates_are_means_of_people(seed: int) -> None:
    weights = np.random.default_rng(9).gamma(2.0, size=170)
    for kind, _, _, low, high, p in weighted(weights, seed):
        equal = 0.0 if kind == "difference" else 1.0
        assert (low > equal or (high is not None and high < equal)) == (p < 0.05)
    twice = weighted(3.0 * weights, seed)
    assert [row[-1] for row in twice] == [row[-1] for row in weighted(weights, seed)]


def test_many_weighted_people_are_merged_with_hardly_any_change() -> None:
    rng = np.random.default_rng(1)
    size, weight = 120_000, rng.gamma(2.0, size=120_000)
    codes = (rng.random(size) < 0.999).astype(np.int64)
    values = rng.beta(1, 20, size)
    people = GroupedValues(values, np.ones(size, dtype=np.int64), codes, weight, 2)
    merged = people.merged()
    assert merged.values.size < size
    whole, part = (each.compare([0], [1], (0.0, 1.0)) for each in (people, merged))
    assert part.estimate == pytest.approx(whole.estimate, abs=0.02 * whole.stderr)
    assert part.stderr == pytest.approx(whole.stderr, rel=0.02)


def standardised_table(groups: str = "abc", seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    group, stratum = rng.choice(list(groups), 600), rng.choice(["x", "y", "z"], 600)
    chosen = rng.random(600) < 0.2 + 0.15 * (group == groups[0]) + 0.2 * (stratum == "x")
    return {"group": group.tolist(), "stratum": stratum.tolist(), "d": chosen.astype(int).tolist()}


def standardised(rows: dict[str, list[Any]], weight: str | None = None) -> dict[Any, Any]:
    """Return the gaps of rates standardised over strata, by kind and what they are against."""
    table = eh.Table(rows, groups="group", predictions={"m": "d"}, weight=weight)
    found = eh.parity(table, within="stratum", reference="c", metrics="selection_rate")
    gaps = [gap for gap in found.gaps if gap.stratum == STANDARDISED]
    return {(gap.kind, gap.against, gap.group): gap for gap in gaps}


def test_standardised_rates_have_the_test_of_people_who_change_groups_within_strata() -> None:
    rows = standardised_table()
    gaps = standardised(rows)
    group, stratum = np.array(rows["group"]), np.unique(rows["stratum"], return_inverse=True)[1]
    two = np.isin(group, ["a", "c"])
    for kind in KINDS:
        found = compare_means(
            np.array(rows["d"])[two],
            group[two] == "a",
            group[two] == "c",
            strata=stratum[two],
            shares=np.bincount(stratum).astype(float),
            contrast=kind,
            bounds=(0.0, 1.0),
            level=0.05 / MOST_FINDINGS / 2,
        )
        gap = gaps[kind, "reference", "a"]
        assert (gap.value, gap.p_value) == pytest.approx((found.estimate, found.p_value), rel=1e-6)
        assert (gap.low, gap.high) == pytest.approx(found.limits(0.05), rel=1e-6)
        assert gap.rests_on == found.rests_on


def test_standardised_rates_do_not_depend_on_names_or_order() -> None:
    rows = standardised_table()
    order = np.random.default_rng(1).permutation(600)
    turned = {name: [column[i] for i in order] for name, column in rows.items()}
    for key, gap in standardised(rows).items():
        other = standardised(turned)[key]
        assert (gap.low, gap.high, gap.p_value) == (other.low, other.high, other.p_value)


def test_many_standardised_pairs_have_the_worst_pair_of_all() -> None:
    groups = "abcdefghijkl"
    rows = standardised_table(groups)
    gap = next(
        gap for (kind, against, _), gap in standardised(rows).items() if (kind, against) == ("difference", "worst_pair")
    )
    chosen, group = np.array(rows["d"]), np.array(rows["group"])
    stratum = np.unique(rows["stratum"], return_inverse=True)[1]
    p_values = []
    for first, second in combinations(groups, 2):
        two = np.isin(group, [first, second])
        sides = group[two] == first, group[two] == second
        shares = np.bincount(stratum).astype(float)
        level = 0.05 / 20 / 66
        p_values.append(compare_means(chosen[two], *sides, strata=stratum[two], shares=shares, level=level).p_value)
    assert gap.p_value == pytest.approx(min(1.0, 66 * min(p_values)), rel=1e-6)


def test_weighted_standardised_rates_come_from_the_bootstrap() -> None:
    rows = standardised_table() | {"w": np.linspace(0.5, 2.0, 600).tolist()}
    assert {gap.rests_on for gap in standardised(rows, weight="w").values()} == {"bootstrap"}
