"""Laws of the cells that hold for any data: order, repetition, exact sums."""

from __future__ import annotations

import math
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.table import Cells, Table
from evenhand.table.cells import ColumnSum, _combinations, reduce
from evenhand.table.keys import Key

Row = tuple[str | None, bool, float, int]

TWO_GROUPS: list[Row] = [("A", True, 0.25, 1), ("B", False, 0.75, 1)]
RANGES = [(0.0, 1.0), (1.0, 10.0), (-3.0, 3.0)]
quick = settings(max_examples=15, deadline=None, database=None)


def rows(low: float = 0.0, high: float = 1.0) -> st.SearchStrategy[list[Row]]:
    """Rows of group, outcome, score and weight, with at least two groups."""
    group = st.sampled_from(["A", "B", "C", None, " ", "D d"])
    score = st.floats(low, high, allow_nan=False, width=64)
    row = st.tuples(group, st.booleans(), score, st.integers(1, 4))
    shift = [(g, y, low + s * (high - low), w) for g, y, s, w in TWO_GROUPS]
    return st.lists(row, max_size=30).map(lambda drawn: [*shift, *drawn])


def table_of(data: list[Row], *, weighted: bool = False, low: float = 0.0, high: float = 1.0) -> Table:
    groups, outcomes, scores, weights = (list(column) for column in zip(*data, strict=True))
    frame = pl.DataFrame(
        {"g": groups, "y": outcomes, "s": scores, "w": weights},
        schema={"g": pl.String, "y": pl.Boolean, "s": pl.Float64, "w": pl.Int64},
    )
    prediction = {"column": "s", "range": [low, high], "threshold": (low + high) / 2}
    return Table(frame, groups="g", outcome="y", predictions={"m": prediction}, weight="w" if weighted else None)


def by_cell(cells: Cells, sums: str) -> dict[tuple[str, ...], float]:
    keys = [[cells.labels[name][code] for code in codes] for name, codes in cells.codes.items()]
    return dict(zip(zip(*keys, strict=True), cells.sums[sums].tolist(), strict=True))


@quick
@given(data=rows(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(data: list[Row], order: Any) -> None:
    shuffled = list(data)
    order.shuffle(shuffled)
    first, second = table_of(data, weighted=True), table_of(shuffled, weighted=True)
    assert first.score_cells("m").digest() == second.score_cells("m").digest()
    assert first.digest() == second.digest()


@quick
@given(data=rows())
def test_integer_weights_equal_repetition(data: list[Row]) -> None:
    weighted = table_of(data, weighted=True).score_cells("m")
    repeated = table_of([row for row in data for _ in range(row[3])]).score_cells("m")
    assert weighted.labels == repeated.labels
    assert weighted.sums["w"].tolist() == repeated.n.tolist()
    for name in ("s", "l"):
        assert by_cell(weighted, name) == pytest.approx(by_cell(repeated, name), rel=1e-15, abs=1e-18)


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_sums_agree_with_fsum(low: float, high: float) -> None:
    @quick
    @given(data=rows(low, high))
    def check(data: list[Row]) -> None:
        cells = table_of(data, low=low, high=high).score_cells("m", bins=4)
        assert cells.rows == len(data)
        scores = [score for _, _, score, _ in data]
        losses = [(score - positive) ** 2 for _, positive, score, _ in data]
        exact = {"s": scores, "ss": [s * s for s in scores], "l": losses, "ll": [v * v for v in losses]}
        for name, values in exact.items():
            # Of each row, what lies below 2**-64 of the largest possible value is cut off.
            cut = len(data) * max(abs(low), abs(high), 1.0) ** 4 * 2.0**-55
            assert math.fsum(cells.sums[name]) == pytest.approx(math.fsum(values), rel=1e-15, abs=cut)

    check()


@quick
@given(st.lists(st.floats(2.0**-10, 1.0, allow_nan=False), min_size=1, max_size=200))
def test_sums_are_exact_to_1e_15(values: list[float]) -> None:
    frame = nw.from_native(pl.DataFrame({"g": ["a"] * len(values), "v": values}))
    cells = reduce(frame, [Key("g", nw.col("g"))], [ColumnSum("v", nw.col("v"))])
    assert cells.sums["v"][0] == pytest.approx(math.fsum(values), rel=1e-15, abs=0)


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_bins_cover_the_range(low: float, high: float) -> None:
    middles = low + (np.arange(100) + 0.5) / 100 * (high - low)
    scores = [low, *middles, high]
    data: list[Row] = [("AB"[i % 2], bool(i % 3), float(score), 1) for i, score in enumerate(scores)]
    cells = table_of(data, low=low, high=high).score_cells("m", bins=10)
    assert cells.labels["bin"] == tuple(str(number) for number in range(10))
    sizes = np.bincount(cells.codes["bin"], weights=cells.n)
    assert sizes.tolist() == [11.0] + [10.0] * 8 + [11.0]


def test_no_keys_make_one_cell() -> None:
    frame = nw.from_native(pl.DataFrame({"v": [0.5, 0.25]}))
    cells = reduce(frame, [], [ColumnSum("v", nw.col("v"))])
    assert (cells.n.tolist(), cells.sums["v"].tolist(), cells.labels) == ([2], [0.75], {})


def test_a_table_without_roles_counts_its_rows() -> None:
    assert Table({"a": [1, 2, 3]}).rows == 3


def test_sums_of_huge_and_tiny_weights() -> None:
    for scale in (1e-25, 1e25):
        data = {"g": ["a", "b", "a"], "d": [1, 0, 1], "w": [scale, 2 * scale, 3 * scale]}
        cells = Table(data, groups="g", predictions="d", weight="w").cells
        assert cells.sums["w"].tolist() == pytest.approx([4 * scale, 2 * scale], rel=1e-15)
        assert cells.sums["ww"].tolist() == pytest.approx([10 * scale**2, 4 * scale**2], rel=1e-15)


def test_above_the_limit_of_rows_scores_are_binned(
    monkeypatch: pytest.MonkeyPatch, people: dict[str, list[Any]]
) -> None:
    monkeypatch.setattr("evenhand.table.table.EXACT_ROWS", 100)
    table = Table(people, groups="race", outcome="missed", predictions={"m": "risk"}, weight="weight")
    binned = table.score_rows("m")
    monkeypatch.undo()
    exact = table.score_rows("m")
    assert binned.binned
    assert not exact.binned
    assert binned.groups.rows == len(exact.score) == 400
    assert math.fsum(binned.weight) == pytest.approx(math.fsum(exact.weight), rel=1e-14)
    assert math.fsum(binned.squares) == pytest.approx(math.fsum(exact.squares), rel=1e-14)
    assert sorted(np.repeat(binned.score, binned.groups.n)) == np.floor(exact.score * 2**14).tolist()
    assert binned.groups.joint(["race"])[1] == exact.groups.joint(["race"])[1]


@pytest.mark.parametrize(("n", "sizes"), [(0, [3, 4]), (1, [3, 4]), (2, [30, 40]), (500, [3, 4]), (500, [7]), (50, [])])
def test_combinations_are_those_of_a_sort(n: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(n)
    parts = np.column_stack([rng.integers(0, size, n) for size in sizes] or [np.zeros((n, 0), int)])
    observed, which = _combinations(parts, sizes)
    expected = sorted(set(map(tuple, parts.tolist())))
    assert [tuple(row) for row in observed.tolist()] == expected
    assert [expected.index(tuple(row)) for row in parts.tolist()] == which.tolist()
