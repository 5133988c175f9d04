"""The bootstrap: cells and rows give the same p-values from the same weights, and both follow the right law."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.stats.compiled import draw_counts
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    Rows,
    SplitTest,
    ValueDraws,
    bootstrap_values,
    get_utility,
    make_rows,
    merge_rows,
)
from evenhand.stats.improvability.resampling import (
    Contrast,
    Method,
    _cell_counts,
    draws_of,
    p_values,
    studentised_p_values,
)
from evenhand.stats.improvability.rows import RowCells, with_everyone
from evenhand.stats.improvability.utilities import ratios
from evenhand.stats.types import FloatArray, IntArray

MakeRows = Callable[..., Rows]
DELTAS = np.linspace(0, 0.95, 20)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def curves(draws: ValueDraws) -> FloatArray:
    """Return the p-values of all goals over a grid of margins, signed and published."""
    utility = get_utility("calibration")
    found = []
    for kind in ("signed", "published"):
        test = SplitTest(draws=draws, criteria=Criteria(utility, (utility,)), worst=[Pair(1, 0)], fairness_test=kind)
        found += [test.curve(goal, DELTAS) for goal in ("fairness", "joint_accuracy", 0, 1)]
    return np.stack(found)


@pytest.mark.parametrize("continuous", [False, True])
def test_the_same_row_weights_give_the_same_p_values_with_and_without_cells(
    rows_of: MakeRows, continuous: bool
) -> None:
    rows = rows_of(n=500, continuous=continuous)
    weights = generator(1).multinomial(500, np.full(500, 1 / 500), size=999)
    cells = merge_rows(rows)
    assert len(cells) < 500
    merged = np.zeros((999, len(cells) + 1), dtype=np.int64)
    for row, cell in enumerate(cells.row_cell):
        merged[:, cell] += weights[:, row]
    by_rows = rows.sums(weights).reshape(999, 2, -1)
    found = [curves(draws_of(rows, [cells], sums, "cells")) for sums in (cells.sums(merged[:, :-1]), by_rows)]
    np.testing.assert_array_equal(found[0], found[1])
    assert 0.01 < found[0].min() + 0.02 < found[0].max()


def drawn_row_weights(rows: Rows, resamples: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the counts of cells that the compiled draws of rows make, replayed one by one."""
    cells = merge_rows(rows)
    rng = generator(seed)
    key = np.uint64(rng.integers(2**64, dtype=np.uint64))
    sizes = rng.binomial(len(rows), cells.support / len(rows), size=resamples)
    cell = np.repeat(np.arange(len(cells)), cells.count)
    counts = np.zeros((resamples, len(cells)))
    for number in range(resamples):
        draw_counts(key, number, sizes[number], cell, counts[number])
    return counts.astype(np.int64), sizes


@pytest.mark.parametrize("continuous", [False, True])
def test_compiled_rows_and_cells_give_the_same_p_values_from_the_same_weights(
    rows_of: MakeRows, continuous: bool
) -> None:
    rows = rows_of(n=700, continuous=continuous)
    cells = merge_rows(rows)
    counts, sizes = drawn_row_weights(rows, 600, seed=8)
    np.testing.assert_array_equal(counts.sum(axis=1), sizes)
    by_cells = draws_of(rows, [cells], cells.sums(counts), "cells")
    compiled = bootstrap_values(rows, resamples=600, rng=generator(8), method="rows")
    np.testing.assert_allclose(compiled.values, by_cells.values, rtol=1e-12)
    np.testing.assert_array_equal(curves(compiled), curves(by_cells))


@pytest.mark.parametrize("method", ["cells", "rows"])
@pytest.mark.parametrize("studentised", [False, True])
def test_results_do_not_depend_on_threads_or_the_order_of_rows(
    rows_of: MakeRows, method: Method, studentised: bool
) -> None:
    rows = rows_of(n=600, continuous=method == "rows")
    order = generator(3).permutation(600)
    shuffled = Rows(rows.group[order], rows.terms[order], rows.names, rows.utilities)
    first = bootstrap_values(rows, resamples=500, rng=generator(1), method=method, studentised=studentised, threads=1)
    for other, threads in ((rows, 2), (rows, 5), (shuffled, 2)):
        again = bootstrap_values(
            other, resamples=500, rng=generator(1), method=method, studentised=studentised, threads=threads
        )
        np.testing.assert_array_equal(again.values, first.values)
        np.testing.assert_array_equal(curves(again), curves(first))


@pytest.mark.parametrize("method", ["cells", "rows"])
def test_draws_have_the_moments_of_resampled_rows(rows_of: MakeRows, method: Method) -> None:
    rows = rows_of(n=800, seed=4)
    draws = bootstrap_values(rows, resamples=20_000, rng=generator(2), method=method)
    rng = generator(9)
    weights = rng.multinomial(800, np.full(800, 1 / 800), size=4_000)
    plain = ratios(with_everyone(rows.sums(weights)))
    np.testing.assert_allclose(draws.estimate, rows.values())
    spread = plain.std(axis=0)
    np.testing.assert_allclose(draws.values.mean(axis=0), plain.mean(axis=0), atol=5 * spread.max() / np.sqrt(4_000))
    np.testing.assert_allclose(draws.values.std(axis=0), spread, rtol=0.06)
    correlation = [np.corrcoef(x[:, 0, 0, 0], x[:, 0, 0, 1])[0, 1] for x in (draws.values, plain)]
    assert correlation[0] == pytest.approx(correlation[1], abs=0.06)


@pytest.mark.parametrize("count", [[3, 400, 1, 60, 10], [1, 2, 3], [50, 60], []], ids=str)
def test_counts_of_small_and_large_cells_are_multinomial(count: list[int]) -> None:
    """Means n p and covariances n (diag p - p p'), whichever way a cell is drawn."""
    sizes, rest, resamples = np.array(count, dtype=np.int64), 100, 40_000
    empty = np.empty((sizes.size, 0))
    cells = RowCells(empty, sizes, np.array([0, sizes.size]), rest, np.empty(0, dtype=np.int64))
    drawn = np.concatenate(list(_cell_counts(cells, resamples, np.random.default_rng(0))))
    total = sizes.sum() + rest
    assert drawn.shape == (resamples, sizes.size)
    assert (drawn == np.round(drawn)).all()
    assert drawn.sum(axis=1).max(initial=0) <= total
    share = sizes / total
    np.testing.assert_allclose(drawn.mean(axis=0), sizes, atol=5 * np.sqrt(sizes.max(initial=1) / resamples))
    expected = total * (np.diag(share) - np.outer(share, share))
    scale = np.sqrt(np.outer(sizes, sizes))
    np.testing.assert_allclose(
        drawn.T @ drawn / resamples - np.outer(sizes, sizes), expected, atol=0.05 * scale.max(initial=1)
    )
    if sizes.size and sizes.min() == 1:  # the distribution too: a cell of one row is drawn k times by a binomial law
        one = drawn[:, int(np.argmin(sizes))]
        law = [comb(total, k) * (1 / total) ** k * (1 - 1 / total) ** (total - k) for k in range(3)]
        np.testing.assert_allclose([(one == k).mean() for k in range(3)], law, atol=0.012)


def test_compiled_draws_pick_every_row_evenly(rows_of: MakeRows) -> None:
    rows = rows_of(n=300, continuous=True)
    counts, _ = drawn_row_weights(rows, 20_000, seed=0)
    expected = counts.sum() / counts.shape[1]
    chi_square = float(((counts.sum(axis=0) - expected) ** 2 / expected).sum())
    freedom = counts.shape[1] - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
    single = counts[:, 0]
    assert single.var() == pytest.approx(single.mean(), rel=0.05)  # binomial with a small share: about Poisson
    assert abs(np.corrcoef(counts[:-1, 0], counts[1:, 0])[0, 1]) < 0.03


def test_rows_that_count_for_nothing_are_one_cell_whatever_their_group(rows_of: MakeRows) -> None:
    rows = rows_of(n=500, continuous=True)
    cells = merge_rows(rows)
    selected = (rows.terms[:, 0, :, 1] != 0).any(axis=1)
    assert cells.rest == 500 - selected.sum()
    assert cells.support == selected.sum() == len(cells)
    assert (cells.row_cell[~selected] == len(cells)).all()


def test_whole_number_outcomes_need_few_cells(rows_of: MakeRows) -> None:
    rows = rows_of(n=5_000)
    draws = bootstrap_values(rows, resamples=10, rng=generator())
    assert draws.method == "cells"
    assert draws.cells < 120
    assert bootstrap_values(rows_of(n=5_000, continuous=True), resamples=10, rng=generator()).method == "rows"


def test_survey_weights_equal_repetition() -> None:
    rng = generator(6)
    group, y = rng.integers(2, size=60), rng.poisson(3.0, 60)
    old, new = rng.integers(2, size=(2, 60))
    times = rng.integers(1, 4, 60)
    utility = [get_utility("calibration")]
    weighted = make_rows(group, y, old, new, utilities=utility, names="ab", weights=times)
    group, y, old, new = (np.repeat(column, times) for column in (group, y, old, new))
    repeated = make_rows(group, y, old, new, utilities=utility, names="ab")
    np.testing.assert_allclose(weighted.values(), repeated.values(), rtol=1e-13)


def test_spreads_are_the_delta_method_of_each_resample(rows_of: MakeRows) -> None:
    """Against influences computed row by row, on replayed weights."""
    rows = rows_of(n=200, continuous=True)
    draws = bootstrap_values(rows, resamples=3, rng=generator(8), method="rows", studentised=True)
    cells = merge_rows(rows)
    counts, _ = drawn_row_weights(rows, 3, seed=8)
    weights = np.hstack([counts, np.zeros((3, 1), dtype=np.int64)])[:, cells.row_cell]
    assert draws.spreads is not None
    assert draws.spread is not None
    for spread, values, weight in (
        *zip(draws.spreads, draws.values, weights, strict=True),
        (draws.spread, draws.estimate, np.ones(200)),
    ):
        for g in (0, 1):
            u, w = np.moveaxis(rows.terms[rows.group == g][:, 0], -1, 0)
            own = weight[rows.group == g][:, np.newaxis]
            influence = (u - values[g, 0] * w) / (own * w).sum(axis=0)
            np.testing.assert_allclose(spread[g, 0], (influence * own).T @ influence, rtol=1e-9)


def test_spreads_are_near_the_spread_of_the_draws(rows_of: MakeRows) -> None:
    rows = rows_of(n=3_000)
    draws = bootstrap_values(rows, resamples=5_000, rng=generator(), studentised=True)
    assert draws.spread is not None
    for g in range(3):
        np.testing.assert_allclose(draws.spread[g, 0], np.cov(draws.values[:, g, 0].T), rtol=0.1, atol=1e-4)


def test_bad_options_are_refused(rows_of: MakeRows) -> None:
    with pytest.raises(ConfigError, match="`resamples` must be at least 1; got 0"):
        bootstrap_values(rows_of(), resamples=0, rng=generator())
    with pytest.raises(ConfigError, match="`method` got 'cell'; did you mean 'cells'"):
        bootstrap_values(rows_of(), rng=generator(), method="cell")  # type: ignore[arg-type]


@pytest.mark.parametrize(("drawn", "p"), [(1.1, 5 / 5), (1.1 - 1e-14, 5 / 5), (1.09, 1 / 5)])
def test_a_resample_at_twice_the_contrast_counts_as_reaching_it(drawn: float, p: float) -> None:
    """A_1 - A_0 / 2 is 0.3 in the sample, and 0.6 or a little less in all four resamples."""
    values = np.tile([1.0, drawn], (4, 1, 1, 1))
    draws = ValueDraws(
        estimate=np.array([[[1.0, 0.8]]]), values=values, spread=None, spreads=None, rows=9, cells=9, method="cells"
    )
    gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]]))
    assert p_values(draws, gain, np.array([0.5])) == pytest.approx([p])


def test_a_resample_that_is_not_defined_counts_against_a_studentised_rejection() -> None:
    """T is 1 with errors of 1: of the resamples 2.1 reaches 2, one is not defined, and 2 but for rounding ties."""
    drawn = np.array([1.0, 1.2, 2.0 - 1e-14, 2.1, np.nan])
    values, spread = drawn.reshape(5, 1, 1, 1) * np.array([0.0, 1.0]), np.ones((1, 1, 2, 2))
    gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]]))
    for used, p in ((slice(0, 5), 4 / 6), (slice(0, 4), 3 / 5)):
        spreads = np.stack([spread] * len(drawn[used]))
        draws = ValueDraws(
            estimate=np.array([[[0.0, 1.0]]]),
            values=values[used],
            spread=spread,
            spreads=spreads,
            rows=9,
            cells=9,
            method="cells",
        )
        assert studentised_p_values(draws, gain, np.array([1.0])) == pytest.approx([p])
