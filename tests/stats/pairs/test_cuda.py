"""Pairs on a graphics card: the plan, the sums and the sentences; NumPy takes the place of a card."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import (
    DEVICES,
    NORMS,
    Distance,
    Norm,
    card_worst_pairs,
    cuda,
    fairness_by_weight,
    individual_fairness,
    individual_fairness_of_models,
    worst_pairs,
)
from evenhand.stats.types import FloatArray

CARD = cuda.why_not()
on_a_card = pytest.mark.skipif(CARD is not None, reason=f"needs an NVIDIA graphics card: {CARD}")


def emulated(plan: cuda.CardPlan, mode: cuda.Mode, progress: Any = None) -> tuple[Any, Any]:
    """Return what the kernel returns: the same strips, blocks, skipped blocks and whole numbers, by NumPy."""
    sums, totals = np.zeros(len(plan.people), dtype=np.int64), np.zeros(len(plan.scales), dtype=np.int64)
    strip = plan.per_strip
    for lot, (origin, end) in enumerate(zip(plan.start[:-1], plan.start[1:], strict=True)):
        for a in range(origin, end, strip):
            rows = slice(a * cuda.BLOCK, (a + strip) * cuda.BLOCK)
            for b in range(a, end):
                columns, twice = slice(b * cuda.BLOCK, (b + 1) * cuda.BLOCK), b < a + strip
                x = excesses(plan, rows, columns)
                if not any(can_count(plan, s, b) for s in range(a, a + strip)):
                    assert x.max() <= 1e-7
                    continue
                if mode == "largest":
                    for side, axis in ((rows, 1), (columns, 0)):
                        most = np.maximum(x.max(axis=axis), 0).astype(np.float64).view(np.int64)
                        sums[side] = np.maximum(sums[side], most)
                    continue
                add(plan, lot, np.clip(x, 0, 1), (rows, columns), twice, sums if mode == "rows" else None, totals)
    return sums, totals


def add(plan: cuda.CardPlan, lot: int, x: Any, places: Any, twice: bool, sums: Any, totals: Any) -> None:
    """Add the excess of a tile to the sums of both sides, and the weight of its pairs to the totals."""
    (rows, columns), (each, all_) = places, plan.scales[lot]
    first, second = plan.people[rows, 3], plan.people[columns, 3]
    counted = x if sums is None else (x > 1e-12).astype(x.dtype)
    total = float(first @ counted @ second) * (0.5 if twice else 1.0)
    totals[lot] += np.int64(np.rint(total * all_))
    if sums is not None:
        sums[rows] += np.rint((x @ second).astype(np.float64) * each).astype(np.int64)
        if not twice:
            sums[columns] += np.rint((first @ x).astype(np.float64) * each).astype(np.int64)


def excesses(plan: cuda.CardPlan, rows: slice, columns: slice) -> Any:
    du, dv, dm, _ = np.abs(plan.people[rows, None] - plan.people[None, columns]).transpose(2, 0, 1)
    return np.nan_to_num(dm - (du + dv if plan.diamond else np.sqrt(du**2 + dv**2)))  # padding has no score


def can_count(plan: cuda.CardPlan, a: int, b: int) -> bool:
    one, two = plan.boxes[a], plan.boxes[b]
    du, dv = np.maximum(0, np.maximum(one[:2] - two[3:5], two[:2] - one[3:5]))
    most = max(one[5] - two[2], two[5] - one[2])
    return bool(most + (1e-11 if plan.precise else 1e-6) > (du + dv if plan.diamond else np.hypot(du, dv)))


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put NumPy in the place of the card."""
    monkeypatch.setattr(cuda, "_xp", lambda: np)
    monkeypatch.setattr(cuda, "_launch", emulated)
    monkeypatch.setattr(cuda, "why_not", lambda: None)


def lot(n: int, seed: int = 0, weighted: bool = True) -> cuda.Lot:
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, n).astype(np.float64) if weighted else np.ones(n)
    return cuda.Lot(0.7 * rng.beta(2, 3, n), 0.7 * rng.random(n), rng.random(n), weight)


def brute(people: cuda.Lot, diamond: bool) -> tuple[FloatArray, FloatArray]:
    """Return D - d of all pairs, and the weights of others."""
    du, dv, dm = (np.abs(np.subtract.outer(x, x)) for x in people[:3])
    return dm - (du + dv if diamond else np.hypot(du, dv)), people.weight


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("diamond", [False, True])
def test_sums_of_several_lots_in_one_launch_are_those_of_all_pairs(no_card: None, diamond: bool, precise: bool) -> None:
    lots = [lot(700), lot(130, seed=1), lot(2, seed=2, weighted=False)]
    kind: Any = {"diamond": diamond, "precise": precise}
    close: Any = {"rtol": 1e-13 if precise else 2e-6, "atol": 1e-12 if precise else 1e-6}
    found, totals, most = cuda.row_sums(lots, **kind), cuda.totals(lots, **kind), cuda.largest(lots, **kind)
    for people, (sums, violated), total, largest in zip(lots, found, totals, most, strict=True):
        x, w = brute(people, diamond)
        np.testing.assert_allclose(sums, np.maximum(x, 0) @ w, **close)
        np.testing.assert_allclose(total, w @ np.maximum(x, 0) @ w / 2, **close)
        np.testing.assert_allclose(largest, np.maximum(x.max(axis=1), 0), **close)
        assert violated == w @ (x > 1e-12) @ w / 2


def test_the_order_of_people_does_not_move_a_bit(no_card: None) -> None:
    people, order = lot(600), np.random.default_rng(5).permutation(600)
    one = cuda.row_sums([people], diamond=False, precise=False)[0]
    two = cuda.row_sums([cuda.Lot(*(column[order] for column in people))], diamond=False, precise=False)[0]
    assert np.array_equal(one[0][order], two[0])
    assert one[1] == two[1]


def test_blocks_far_apart_are_left_out(no_card: None) -> None:
    x = np.linspace(0, 1, 4_096)
    plan = cuda.plan_lots([cuda.Lot(x, x, x / 10, np.ones(x.size))], diamond=False, precise=False)
    needed = [can_count(plan, a, b) for a in range(32) for b in range(a + 2, 32)]
    assert not any(needed)


@on_a_card
def test_the_card_agrees_with_numpy() -> None:
    people = lot(5_000)
    x, w = brute(people, False)
    first, second = (cuda.row_sums([people], diamond=False, precise=False)[0] for _ in range(2))
    np.testing.assert_allclose(first[0], np.maximum(x, 0) @ w, rtol=1e-5)
    assert np.array_equal(first[0], second[0])


# What the package makes of it ----------------------------------------------------------------------------------------


def crowd(n: int = 900) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    return rng.random(n), rng.beta(2, 3, n), rng.choice([0.0, 0.2, 0.7], n)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_fairness_on_a_card_is_that_of_the_processor(no_card: None, norm: Norm, weighted: bool) -> None:
    people, distance = crowd(), Distance(norm)
    survey = np.random.default_rng(4).integers(0, 3, 900).astype(np.float64) if weighted else None
    options: Any = {"survey_weight": survey, "distance": distance, "method": "strips"}
    for weight in (0.0, 0.6577, 1.0):
        here, there = (individual_fairness(*people, weight, device=at, **options) for at in ("cpu", "cuda"))
        assert (there.value, there.low, there.high) == pytest.approx((here.value, here.low, here.high), abs=1e-12)
        assert there.violated == pytest.approx(here.violated, abs=1e-12)
        assert here.row_means is not None
        assert there.row_means is not None
        assert np.abs(there.row_means - here.row_means).max() < 1e-12
    curves = [fairness_by_weight(*people, [0.0, 0.5, 1.0], survey, distance=distance, device=at)[0] for at in DEVICES]
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_the_worst_pairs_of_a_card_are_those_of_the_processor(no_card: None, norm: Norm) -> None:
    score, effort, aggregate = (np.repeat(column[:150], 2) for column in crowd())  # everybody twice: ties
    here = worst_pairs(score, effort, aggregate, 0.3, count=7, distance=Distance(norm))
    there = card_worst_pairs(score, effort, aggregate, 0.3, count=7, distance=Distance(norm))
    assert np.array_equal(here.people, there.people)
    assert np.array_equal(here.excess, there.excess)


def test_models_and_weights_go_in_one_launch(no_card: None, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[int] = []

    def counted(plan: cuda.CardPlan, mode: cuda.Mode, progress: Any) -> tuple[Any, Any]:
        launches.append(len(plan.scales))
        return emulated(plan, mode, progress)

    monkeypatch.setattr(cuda, "_launch", counted)
    score, effort, _ = crowd()
    aggregate = np.random.default_rng(9).random(900)
    found = individual_fairness_of_models({"a": score, "b": 1 - score**2}, effort, aggregate, [0.5, 0.7])
    assert launches == [4]
    assert list(found) == [("a", 0.5), ("a", 0.7), ("b", 0.5), ("b", 0.7)]
    alone = individual_fairness(1 - score**2, effort, aggregate, 0.7)
    assert found["b", 0.7].value == pytest.approx(alone.value, abs=1e-12)


@pytest.mark.skipif(CARD is None, reason="this machine has a card")
def test_without_a_card_it_is_one_sentence() -> None:
    with pytest.raises(EvenhandError, match=r"^`device` is 'cuda', but .*; install evenhand\[gpu\] .*, or take 'cpu'"):
        individual_fairness(*crowd(10), device="cuda")
    assert individual_fairness(*crowd(10), device="auto").value == individual_fairness(*crowd(10)).value


def test_the_module_of_the_kernel_needs_nothing_else_of_evenhand() -> None:
    tree = ast.parse(Path(cuda.__file__).read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    others = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    assert others == {"numpy", "cupy"}
