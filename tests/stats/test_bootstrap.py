"""The bootstrap of cells: its moments, its intervals against others, its laws, its behaviour at the edges."""

from __future__ import annotations

import math
import time
import tracemalloc
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats import bootstrap
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.draws import Draws
from evenhand.stats.types import FloatArray, IntArray


def moments(cell: IntArray, values: FloatArray) -> CellMoments:
    """Reduce rows to cells by plain loops."""
    cells = int(cell.max()) + 1
    groups = [values[cell == c] for c in range(cells)]
    return CellMoments(
        np.bincount(cell, minlength=cells).astype(np.int64),
        np.array([rows.sum(axis=0) for rows in groups]),
        np.array([rows.T @ rows for rows in groups]),
    )


def mean(counts: FloatArray, sums: FloatArray) -> FloatArray:
    return np.asarray(sums.sum(axis=-2) / counts.sum(axis=-1, keepdims=True))


def first_share(counts: FloatArray, sums: FloatArray) -> FloatArray:
    return np.asarray(counts[..., :1] / counts.sum(axis=-1, keepdims=True))


def rate_ratio(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Cells: group 0 yes, no; group 1 yes, no."""
    rates = counts[..., [0, 2]] / (counts[..., [0, 2]] + counts[..., [1, 3]])
    return rates[..., :1] / rates[..., 1:]


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Moments of the draws


def test_counts_have_multinomial_moments() -> None:
    n = np.array([10, 30, 0, 60])
    draws = resample(CellMoments.from_counts(n), lambda counts, _: counts, resamples=40_000, rng=generator())
    share = n / 100
    expected = 100 * (np.diag(share) - np.outer(share, share))
    np.testing.assert_array_equal(draws.estimate, n)
    np.testing.assert_array_equal(draws.values.sum(axis=1), 100)
    np.testing.assert_array_equal(draws.values[:, 2], 0)
    np.testing.assert_allclose(draws.values.mean(axis=0), n, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.values.T), expected, atol=0.6)


def test_sums_have_the_moments_of_resampled_rows() -> None:
    rng = generator(1)
    cell = rng.integers(0, 3, 200)
    score = rng.beta(2, 5, 200) + 0.1 * cell
    rows = np.column_stack([score, score**2, np.ones(200), rng.normal(size=200)])
    draws = resample(moments(cell, rows), lambda _, sums: sums.sum(axis=-2), resamples=40_000, rng=generator())
    expected = 200 * np.cov(rows.T, ddof=0)
    np.testing.assert_allclose(draws.values.mean(axis=0), rows.sum(axis=0), atol=0.3)
    np.testing.assert_allclose(np.cov(draws.values.T), expected, atol=0.03 * expected.max())
    np.testing.assert_allclose(draws.values[:, 2], 200, rtol=1e-12)


def test_stderr_of_a_mean_is_the_textbook_one_however_the_rows_are_celled() -> None:
    rng = generator(2)
    score = rng.beta(2, 2, 500)
    expected = score.std() / math.sqrt(500)
    for cell in (np.zeros(500, dtype=int), rng.integers(0, 7, 500), np.argsort(np.argsort(score)) // 100):
        draws = resample(moments(cell, score[:, None]), mean, rng=generator())
        assert draws.stderr()[0] == pytest.approx(expected, rel=0.03)


def test_a_value_that_is_constant_within_cells_takes_no_normal_draws() -> None:
    cell = np.repeat([0, 1, 2], [5, 9, 14])
    constant = moments(cell, np.array([0.1, 0.7, 1 / 3])[cell][:, None])
    counts_only = CellMoments.from_counts(constant.n)
    means = np.array([0.1, 0.7, 1 / 3])
    draws = resample(constant, lambda _, sums: sums[..., 0], rng=generator(), resamples=500)
    plain = resample(counts_only, lambda counts, _: counts * means, rng=generator(), resamples=500)
    np.testing.assert_allclose(draws.values, plain.values, rtol=1e-12)


def test_collinear_values_stay_collinear() -> None:
    rng = generator(3)
    x = rng.random(60)
    rows = np.column_stack([x, 2 * x + 1, np.zeros(60)])
    draws = resample(moments(rng.integers(0, 2, 60), rows), lambda _, sums: sums.sum(axis=-2), rng=generator())
    np.testing.assert_allclose(draws.values[:, 1], 2 * draws.values[:, 0] + 60, rtol=1e-6)
    np.testing.assert_array_equal(draws.values[:, 2], 0)


# Intervals


def seeded() -> dict[str, Any]:
    """Return the seed of SciPy's bootstrap, which calls it by another name before 1.15."""
    return {"rng" if version("scipy") >= "1.15" else "random_state": generator()}


def test_bca_matches_scipy_for_a_rate() -> None:
    from scipy.stats import bootstrap

    rows = np.repeat([1.0, 0.0], [6, 34])
    expected = bootstrap((rows,), np.mean, n_resamples=20_000, **seeded()).confidence_interval
    draws = resample(CellMoments.from_counts([6, 34]), first_share, resamples=20_000, rng=generator(1))
    # Both are multiples of 1/40; the quantiles may fall on either side of a step.
    np.testing.assert_allclose(np.ravel(draws.bca()), (expected.low, expected.high), atol=1 / 40 + 1e-9)


def test_bca_matches_scipy_for_a_ratio_of_means() -> None:
    from scipy.stats import bootstrap

    rng = generator(7)
    x, y = rng.beta(2, 5, 400), rng.beta(3, 4, 300)
    rows, cell = np.concatenate([x, y])[:, None], np.repeat([0, 1], [400, 300])

    def ratio(counts: FloatArray, sums: FloatArray) -> FloatArray:
        means = sums[..., 0] / counts
        return means[..., :1] / means[..., 1:]

    expected = bootstrap(
        (x, y), lambda a, b, axis=-1: a.mean(axis=axis) / b.mean(axis=axis), n_resamples=5000, **seeded()
    ).confidence_interval
    limits = resample(moments(cell, rows), ratio, resamples=20_000, rng=generator()).bca()
    width = expected.high - expected.low
    np.testing.assert_allclose(np.ravel(limits), (expected.low, expected.high), atol=0.06 * width)


def test_acceleration_of_a_rate_is_exact() -> None:
    # Influences of the rows of a rate p are 1-p and -p: a = (1-2p) / (6 sqrt(n p (1-p))).
    p, n = 0.15, 40
    draws = resample(CellMoments.from_counts([6, 34]), first_share, resamples=2, rng=generator())
    assert draws.acceleration[0] == pytest.approx((1 - 2 * p) / (6 * math.sqrt(n * p * (1 - p))), rel=1e-9)


def test_acceleration_sees_the_spread_within_cells() -> None:
    rng = generator(8)
    score = rng.beta(1, 6, 300)
    cell = np.minimum((score * 20).astype(int), 9)
    by_rows = score.mean() - score
    exact = -(by_rows**3).sum() / (6 * (by_rows**2).sum() ** 1.5)
    fine = resample(moments(cell, score[:, None]), mean, resamples=2, rng=generator())
    assert fine.acceleration[0] == pytest.approx(exact, rel=0.02)
    one = resample(moments(np.zeros(300, dtype=int), score[:, None]), mean, resamples=2, rng=generator())
    assert one.acceleration[0] == pytest.approx(0.0, abs=1e-9)  # one cell knows no third moment


def jackknifed_acceleration(cells: CellMoments) -> FloatArray:
    """Acceleration of two means and their ratio from rows left out one by one; rows are alike within cells."""
    rows = np.repeat(cells.first / np.maximum(cells.n, 1)[:, None], cells.n, axis=0)
    without = np.array([np.delete(rows, i, axis=0).mean(axis=0) for i in range(len(rows))])
    left_out = np.column_stack([without, without[:, 0] / without[:, 1]])
    influence = left_out.mean(axis=0) - left_out
    return np.asarray((influence**3).sum(axis=0) / (6 * (influence**2).sum(axis=0) ** 1.5))


@pytest.mark.parametrize("chunk", [1, 60, 1_000_000])
def test_acceleration_does_not_depend_on_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        means = mean(counts, sums)
        return np.concatenate([means, means[..., :1] / means[..., 1:]], axis=-1)

    monkeypatch.setattr("evenhand.stats.bootstrap._CHUNK_NUMBERS", chunk)
    n, value = np.array([9, 0, 4, 17, 1, 30]), generator(14).gamma(1.0, size=(6, 2))
    cells = CellMoments(n, n[:, None] * value, n[:, None, None] * value[:, :, None] * value[:, None, :])
    draws = resample(cells, statistic, resamples=3, rng=generator())
    np.testing.assert_allclose(draws.acceleration, jackknifed_acceleration(cells), rtol=1e-9)


def test_acceleration_is_computed_for_bca_only_and_once() -> None:
    calls = []

    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        calls.append(counts.shape)
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))

    draws = resample(CellMoments.from_counts([6, 14, 30]), statistic, resamples=400, rng=generator())
    assert calls == [(3,), (400, 3)]
    parts = [draws.part(np.array(columns)) for columns in ([0], [2, 1])]
    for part in parts:
        part.percentile()
        part.basic()
        part.stderr()
    assert len(calls) == 2
    limits = [part.bca() for part in parts]
    assert calls[2:] == [(3, 3)]
    whole = draws.bca()
    assert len(calls) == 3
    for limit, columns in zip(limits, ([0], [2, 1]), strict=True):
        np.testing.assert_array_equal(limit, [whole.low[columns], whole.high[columns]])
    np.testing.assert_array_equal(parts[1].acceleration, draws.acceleration[[2, 1]])
    np.testing.assert_array_equal(draws.part(slice(1, 3)).values, draws.values[:, 1:])
    np.testing.assert_array_equal(Draws(draws.estimate, draws.values).acceleration, 0.0)


def test_acceleration_of_many_cells_and_statistics_streams() -> None:
    n = generator(15).integers(1, 30, 1500)

    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        share = counts / counts.sum(axis=-1, keepdims=True)
        return np.concatenate([share, 2 * share], axis=-1)

    draws = resample(CellMoments.from_counts(n), statistic, resamples=2, rng=generator())
    tracemalloc.start()
    acceleration = draws.acceleration
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    p = np.tile(n / n.sum(), 2)
    np.testing.assert_allclose(acceleration, (1 - 2 * p) / (6 * np.sqrt(n.sum() * p * (1 - p))), rtol=1e-6)
    assert peak < 8 * acceleration.size * n.size  # less than one array of cells by statistics


def test_acceleration_that_is_undefined_is_zero() -> None:
    draws = resample(CellMoments.from_counts([1, 0, 5, 5]), rate_ratio, resamples=50, rng=generator())
    np.testing.assert_array_equal(draws.acceleration, 0.0)


def test_a_rate_of_zero_is_resampled_as_zero() -> None:
    # The bootstrap cannot see beyond an empty cell: its interval has no width. Rates use Wilson and MOVER.
    draws = resample(CellMoments.from_counts([0, 20, 9, 11]), rate_ratio, resamples=400, rng=generator())
    assert draws.estimate[0] == 0.0
    for limits in (draws.percentile(), draws.bca()):
        np.testing.assert_array_equal(np.ravel(limits), 0.0)
    draws = resample(CellMoments.from_counts([9, 11, 0, 20]), rate_ratio, resamples=400, rng=generator())
    for limits in (draws.percentile(), draws.bca()):
        np.testing.assert_array_equal(np.ravel(limits), np.inf)


# Laws, determinism, speed, errors


def test_same_generator_same_bits_and_chunks_do_not_show() -> None:
    rng = generator(11)
    cells = moments(rng.integers(0, 400, 5000), rng.random((5000, 2)))
    first, second = (resample(cells, mean, resamples=3000, rng=generator(5)) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)
    shorter = resample(cells, mean, resamples=700, rng=generator(5))
    assert len(cells.n) * 4 * 625 == 1_000_000  # chunks of 625 resamples
    np.testing.assert_array_equal(first.values[:625], shorter.values[:625])


def test_scaling_the_values_scales_the_draws() -> None:
    rng = generator(12)
    cell, rows = rng.integers(0, 4, 300), rng.random((300, 1))
    one = resample(moments(cell, rows), mean, resamples=300, rng=generator())
    four = resample(moments(cell, 4 * rows), mean, resamples=300, rng=generator())
    np.testing.assert_allclose(four.values, 4 * one.values, rtol=1e-12)
    np.testing.assert_allclose(four.acceleration, one.acceleration, rtol=1e-6)


def test_one_row_and_no_rows() -> None:
    one = resample(moments(np.array([0]), np.array([[0.3]])), mean, resamples=20, rng=generator())
    np.testing.assert_array_equal(one.values, 0.3)
    np.testing.assert_array_equal(one.bca(), 0.3)
    none = resample(CellMoments.from_counts([0, 0]), first_share, resamples=20, rng=generator())
    np.testing.assert_array_equal(none.undefined, [20])
    assert np.isnan(none.bca().low).all()


def test_sixteen_cells_take_a_moment() -> None:
    rng = generator(13)
    cells = moments(rng.integers(0, 16, 4000), rng.random((4000, 3)))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        resample(cells, mean, rng=generator())
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.3  # 0.03 s on a quiet machine


def test_bad_cells_are_named() -> None:
    empty = np.zeros((2, 0)), np.zeros((2, 0, 0))
    with pytest.raises(EvenhandError, match=r"`n` must be one whole number per cell"):
        CellMoments(np.array([1.5, 2.0]), *empty)
    with pytest.raises(EvenhandError, match=r"`n` must be one whole number per cell"):
        CellMoments.from_counts([])
    with pytest.raises(EvenhandError, match=r"`n` must not be negative; got -1\."):
        CellMoments(np.array([-1, 2]), *empty)
    with pytest.raises(EvenhandError, match=r"`first` must have the shape \(2, values\); got \(3, 0\)\."):
        CellMoments(np.array([1, 2]), np.zeros((3, 0)), np.zeros((3, 0, 0)))
    with pytest.raises(EvenhandError, match=r"`second` must have the shape \(2, 1, 1\); got \(2, 1\)\."):
        CellMoments(np.array([1, 2]), np.zeros((2, 1)), np.zeros((2, 1)))
    with pytest.raises(EvenhandError, match=r"`resamples` must be at least 2; got 1\."):
        resample(CellMoments.from_counts([1]), first_share, resamples=1, rng=generator())


def test_random_numbers_of_compiled_draws_are_those_of_splitmix64() -> None:
    from evenhand.stats.compiled import STEP, mixed

    state, found = np.uint64(1234567), []
    with np.errstate(over="ignore"):
        for _ in range(3):
            state = state + STEP
            found.append(int(mixed(state)))
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]  # of Vigna's splitmix64.c


def drawn_in_parts(monkeypatch: pytest.MonkeyPatch, rows: int, threads: int) -> FloatArray:
    """Return 500 draws of five cells in parts of some rows, by some threads."""
    monkeypatch.setattr(bootstrap, "_CACHED_NUMBERS", 5 * rows)
    monkeypatch.setattr(bootstrap, "thread_count", lambda _: threads)
    cells = CellMoments.from_counts([3, 0, 50, 7, 940])
    return resample(cells, lambda n, _: n, resamples=500, rng=np.random.default_rng(5)).values


def test_the_draws_are_the_same_by_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = drawn_in_parts(monkeypatch, 30, 1)
    for threads in (2, 3, 64):
        np.testing.assert_array_equal(drawn_in_parts(monkeypatch, 30, threads), alone)


def test_the_first_part_is_drawn_from_the_generator_and_every_other_from_a_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = np.array([3, 0, 50, 7, 940]) / 1000
    rng = np.random.default_rng(5)
    streams = [rng, *rng.spawn(1)]
    expected = np.concatenate([stream.multinomial(1000, shares, size=250) for stream in streams])
    np.testing.assert_array_equal(drawn_in_parts(monkeypatch, 250, 2), expected)
    whole = np.random.default_rng(5).multinomial(1000, shares, size=500)
    np.testing.assert_array_equal(drawn_in_parts(monkeypatch, 500, 2), whole)


def test_an_error_of_the_statistic_is_raised_at_once() -> None:
    def broken(counts: FloatArray, _: FloatArray) -> FloatArray:
        if counts.ndim == 2:
            raise ValueError("broken")
        return counts

    with pytest.raises(ValueError, match="broken"):
        resample(CellMoments.from_counts([1, 2]), broken, rng=np.random.default_rng(0))
