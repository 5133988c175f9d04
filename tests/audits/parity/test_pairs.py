"""One test and one interval for every two groups, whatever they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.stats.two_rates import compare_rates


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
