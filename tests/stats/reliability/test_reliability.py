"""Curves and gaps against people repeated by hand; what is undefined; levels of the bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from evenhand.errors import EvenhandError
from evenhand.stats import agreement as ag
from evenhand.stats.draws import Draws
from evenhand.stats.noise import (
    Experiment,
    Flip,
    Linear,
    NoiseItem,
    Normal,
    paths,
    replicate_seeds,
    simulate,
    thresholded,
)
from evenhand.stats.reliability import (
    METRICS,
    PeopleDraws,
    bootstrap_people,
    curves,
    fold_spread,
    gap_of,
    joint_band,
    metric_values,
    run_band,
    share_lower,
    why_undefined,
)
from evenhand.stats.reliability.gaps import PilotVariance, pilot_variance
from evenhand.stats.reliability.resampling import _times_drawn
from evenhand.stats.types import FloatArray

SEEDS = replicate_seeds(4, np.random.default_rng(1))
NAMES = ["kappa", "pabak", "icc_a1", "icc_spread", "alpha", "prevalence_part"]


def trial(people: int = 120, seed: int = 0, **settings: Any) -> Experiment:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, 2, people), rng.poisson(3, people), rng.integers(0, 2, people)])
    chosen: dict[str, Any] = {"levels": np.array([0.0, 0.1, 0.3])} | settings
    return Experiment(
        features=features.astype(float),
        predictors=(Linear(np.array([1.0, 0.31, 0.4]), -1.51), Linear(np.array([0.9, 0.37, 0.5]), -1.63)),
        items=(NoiseItem((0,), Flip()), NoiseItem((1,), Normal(2.0))),
        groups=rng.integers(0, 2, people),
        folds=rng.permutation(np.arange(people) % 2),
        **chosen,
    )


def by_hand(experiment: Experiment, replicate: int, level: int, cell: int, rows: Any) -> dict[str, float]:
    """The metrics of some people of a cell, with repetitions, from the raw predictions."""
    found = paths(experiment, SEEDS)
    own = slice(experiment.base.starts[cell], experiment.base.starts[cell + 1])
    at = (replicate, level)
    r, s = found.first_label[at][own][rows], found.second_label[at][own][rows]
    x, y = found.first_score[at][own][rows], found.second_score[at][own][rows]
    fold = cell // 2
    in_fold = experiment.base.fold == fold
    spread = ag.pooled_spread(experiment.base.score[in_fold])
    kappa = ag.cohen_kappa(r, s)
    return {
        "kappa": float(kappa),
        "pabak": float(ag.pabak(r, s)),
        "alpha": float(ag.alpha(r, s)),
        "icc_a1": float(ag.icc_a1(x, y)),
        "icc_spread": float(ag.score_moments(x, y).spread_adjusted(spread)),
        "prevalence_part": float((1 - kappa) * ag.prevalence_index(r, s) ** 2),
    }


@pytest.mark.parametrize("raters", [1, 2])
def test_curves_are_means_over_folds_of_each_groups_statistic(raters: int) -> None:
    experiment = trial(raters=raters)
    done = simulate(experiment, SEEDS)
    for name in NAMES:
        found = curves(experiment, done, name)
        for replicate in range(4):
            for level in range(3):
                for group in range(2):
                    folds = [
                        by_hand(experiment, replicate, level, 2 * fold + group, slice(None))[name] for fold in (0, 1)
                    ]
                    assert found.values[replicate, level, group] == pytest.approx(np.mean(folds), abs=1e-12)
        np.testing.assert_allclose(found.mean, found.values.mean(axis=0))
        np.testing.assert_allclose(found.replicate_sd, found.values.std(axis=0, ddof=1))
        assert (found.undefined == 0).all()
        assert (found.reasons == "").all()


@pytest.mark.parametrize("raters", [1, 2])
@pytest.mark.parametrize("common", [True, False])
def test_a_resample_is_people_repeated(raters: int, common: bool) -> None:
    experiment = trial(raters=raters, common=common, memory=200_000)  # several blocks of levels
    drawn = bootstrap_people(experiment, SEEDS, NAMES, resamples=7, rng=np.random.default_rng(3))
    times = _times_drawn(experiment, 7, np.random.default_rng(3).spawn(1)[0]).astype(int)
    for cell in range(4):
        own = slice(experiment.base.starts[cell], experiment.base.starts[cell + 1])
        assert (times[own].sum(axis=0) == own.stop - own.start).all()
    for resample in (0, 6):
        for level in range(3):
            for group in range(2):
                away: dict[str, list[float]] = {name: [] for name in NAMES}
                for replicate in range(4):
                    for cell in (group, 2 + group):
                        own = slice(experiment.base.starts[cell], experiment.base.starts[cell + 1])
                        size = own.stop - own.start
                        rows = np.repeat(np.arange(size), times[own, resample])
                        again = by_hand(experiment, replicate, level, cell, rows)
                        everybody = by_hand(experiment, replicate, level, cell, slice(None))
                        for name in NAMES:
                            away[name].append(np.sqrt(size / (size - 1)) * (again[name] - everybody[name]))
                for name in NAMES:
                    expected = drawn.estimate[name][level, group] + np.mean(away[name])
                    assert drawn.values[name][resample, level, group] == pytest.approx(expected, abs=1e-11)


def test_the_sample_itself_is_the_estimate() -> None:
    experiment = trial()
    done = simulate(experiment, SEEDS)
    drawn = bootstrap_people(experiment, SEEDS, NAMES, resamples=3, rng=np.random.default_rng(3))
    for name in NAMES:
        np.testing.assert_allclose(drawn.estimate[name], curves(experiment, done, name).mean, atol=1e-12)
        gap = drawn.gap(name, 1, 0)
        np.testing.assert_allclose(gap.estimate[:2], np.diff(drawn.estimate[name][1:], axis=1).ravel(), atol=1e-13)
        assert gap.estimate[2] == pytest.approx(gap.estimate[:2].mean())
        np.testing.assert_allclose(drawn.gap(name, 0, 1).values, -gap.values)
        assert drawn.group(name, 1).values.shape == (3, 3)


def small_cells(people: int = 12) -> Experiment:
    """Two groups in three folds of two people each."""
    experiment = trial(people=people, seed=5, levels=np.array([0.2, 0.5]))
    models = (*experiment.predictors, experiment.predictors[0])
    place = np.arange(people)
    return Experiment(
        features=experiment.features,
        predictors=models,
        items=experiment.items,
        groups=place % 2,
        folds=(place // 2) % 3,
        levels=experiment.levels,
    )


def test_in_small_folds_the_variance_is_that_of_a_mean_of_few_people() -> None:
    """PABAK is a mean over people: its variance is sum_f s_f² / m / folds², s_f² with m - 1, whatever m is."""
    experiment = small_cells()
    found = paths(experiment, SEEDS)
    kept = np.where(found.first_label == found.second_label, 1.0, -1.0).mean(axis=(0, 1))  # over runs and levels
    drawn = bootstrap_people(experiment, SEEDS, ["pabak"], resamples=40_000, rng=np.random.default_rng(3))
    parts = [
        kept[experiment.base.starts[cell] : experiment.base.starts[cell + 1]].var(ddof=1) / 2 / 9 for cell in range(6)
    ]
    np.testing.assert_array_equal(drawn.sizes, np.full((3, 2), 2))
    np.testing.assert_allclose(drawn.variances["pabak"].ravel(), parts, rtol=0.05)
    for group in (0, 1):
        assert drawn.values["pabak"].mean(axis=1)[:, group].var() == pytest.approx(sum(parts[group::2]), rel=0.05)
    gap = gap_of(drawn.gap("pabak", 1, 0), freedom=drawn.freedom("pabak", 1, 0))
    assert gap.average_stderr == pytest.approx(np.sqrt(sum(parts)), rel=0.05)
    freedom = sum(parts) ** 2 / sum(part**2 for part in parts)  # of one degree each
    assert drawn.freedom("pabak", 1, 0) == pytest.approx(freedom, rel=0.1)
    assert gap.p_value == pytest.approx(2 * student.sf(abs(gap.z), drawn.freedom("pabak", 1, 0)), rel=1e-9)


def test_freedom_of_what_does_not_vary_and_of_what_is_unknown() -> None:
    levels, sizes = np.array([0.1]), np.array([[5, 9]])
    parts = {"still": np.zeros((1, 2)), "lost": np.array([[1.0, np.nan]]), "even": np.array([[1.0, 1.0]])}
    draws = PeopleDraws(levels=levels, estimate={}, values={}, sizes=sizes, variances=parts)
    assert draws.freedom("still", 0, 1) == np.inf
    assert np.isnan(draws.freedom("lost", 0, 1))
    assert draws.freedom("lost", 0) == pytest.approx(4)
    assert draws.freedom("even", 0, 1) == pytest.approx(4 / (1 / 4 + 1 / 8))


def test_at_low_levels_the_band_is_not_narrower_than_rare_mistakes_allow() -> None:
    """By luck nearly nothing changed at the two lowest levels; the variance at 0.4 says what to expect there."""
    levels = np.array([0.1, 0.2, 0.4])
    drawn = np.random.default_rng(0).normal(0, [0.001, 0.5, 1.0], (4_000, 3))
    plain, held = (joint_band(Draws(np.zeros(3), drawn), levels=given) for given in (None, levels))
    np.testing.assert_allclose(held.high / held.high[2], np.sqrt(levels / 0.4), rtol=0.03)
    np.testing.assert_allclose(plain.high / plain.high[2], [0.001, 0.5, 1.0], rtol=0.05)
    still = joint_band(Draws(np.ones(3), 1.0 + drawn * [0, 1, 1]), levels=levels)
    assert np.isnan(still.low).tolist() == [True, False, False]


def test_threads_do_not_change_draws_nor_memory_the_resamples() -> None:
    one = bootstrap_people(trial(), SEEDS, ["kappa"], resamples=600, rng=np.random.default_rng(3), threads=1)
    two = bootstrap_people(trial(), SEEDS, ["kappa"], resamples=600, rng=np.random.default_rng(3), threads=2)
    np.testing.assert_array_equal(one.values["kappa"], two.values["kappa"])


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    bootstrap_people(
        trial(),
        SEEDS,
        ["pabak"],
        resamples=600,
        rng=np.random.default_rng(3),
        progress=lambda *call: calls.append(call),
    )
    assert calls[-1] == (12, 12)


def test_the_parts_add_up_to_pabak_minus_kappa_on_average() -> None:
    experiment = trial()
    done = simulate(experiment, SEEDS)
    mean = {name: curves(experiment, done, name).mean for name in ("pabak", "kappa", "prevalence_part", "bias_part")}
    np.testing.assert_allclose(mean["prevalence_part"] + mean["bias_part"], mean["pabak"] - mean["kappa"], atol=1e-13)


def test_every_statistic_has_a_value_or_a_reason() -> None:
    experiment = trial()
    nobody = trial()
    nobody = Experiment(
        features=nobody.features,
        predictors=(thresholded(lambda rows: np.full(len(rows), 0.2)),) * 2,
        items=nobody.items,
        groups=nobody.groups,
        folds=nobody.folds,
        levels=nobody.levels,
    )
    for case in (experiment, nobody):
        done = simulate(case, SEEDS)
        for name in METRICS:
            value = metric_values(name, done.sums, fold_spread(case))
            reason = np.broadcast_to(why_undefined(name, done.sums, fold_spread(case)), value.shape)
            np.testing.assert_array_equal(np.isnan(value), reason != "")
            assert curves(case, done, name).values.shape == (4, 3, 2)
    found = curves(nobody, done, "kappa")
    assert np.isnan(found.mean).all()
    assert (found.undefined == 8).all()
    assert set(found.reasons.ravel()) == {ag.Undefined.ONE_CLASS}
    assert set(curves(nobody, done, "icc_spread").reasons.ravel()) == {ag.Undefined.NO_SPREAD}


def test_undefined_cells_are_not_skipped() -> None:
    """A group that is alone in one fold has no kappa there: its curve is undefined, the other group's is not."""
    experiment = trial()
    groups = experiment.groups.copy()
    groups[np.asarray(experiment.folds) == 0] = 0
    other = Experiment(
        features=experiment.features,
        predictors=experiment.predictors,
        items=experiment.items,
        groups=groups,
        folds=experiment.folds,
        levels=experiment.levels,
    )
    found = curves(other, simulate(other, SEEDS), "kappa")
    assert np.isnan(found.mean[:, 1]).all()
    assert np.isfinite(found.mean[:, 0]).all()
    assert (found.reasons[:, 1] == ag.Undefined.NOBODY).all()
    assert (found.undefined[:, 1] == 4).all()
    draws = bootstrap_people(other, SEEDS, ["kappa"], resamples=20, rng=np.random.default_rng(0)).gap("kappa", 1, 0)
    gap = gap_of(draws)
    assert np.isnan([gap.average, gap.z, gap.p_value, *gap.stderr, *gap.simultaneous.low]).all()


def test_share_lower() -> None:
    assert share_lower(np.array([[-1.0, 1.0], [-2.0, np.nan]])).tolist()[0] == 1.0
    assert np.isnan(share_lower(np.array([[-1.0, 1.0], [-2.0, np.nan]]))[1])


def test_the_replicate_band_covers_the_mean_of_many_runs() -> None:
    values = np.random.default_rng(0).normal(size=(6, 4_000))
    low, high = run_band(values, 0.9)
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(0.9, abs=0.015)
    assert np.isnan(run_band(values[:1])).all()


def test_bands_from_normal_draws() -> None:
    """Pointwise limits use the normal quantile; the joint ones are Bonferroni's for independent levels, about."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(0, [1.0, 2.0, 0.5, 1.0], (40_000, 4))
    gap = gap_of(Draws(np.array([0.3, -0.2, 0.1, 0.0]), np.array([0.3, -0.2, 0.1, 0.0]) + drawn))
    np.testing.assert_allclose((gap.pointwise.high - gap.value) / gap.stderr, 1.96, atol=0.001)
    np.testing.assert_allclose((gap.simultaneous.high - gap.value) / gap.stderr, 2.388, atol=0.03)
    np.testing.assert_allclose(gap.stderr, [1.0, 2.0, 0.5], rtol=0.02)
    assert gap.p_value == pytest.approx(1.0)


@pytest.mark.slow
def test_the_test_and_the_band_keep_their_level() -> None:
    """Groups at random: of 200 data sets about 10 are called a gap, and about 10 leave the joint band."""
    rejected = outside = 0
    for seed in range(200):
        experiment = trial(people=300, seed=seed, levels=np.array([0.1, 0.2, 0.3]))
        seeds = replicate_seeds(4, np.random.default_rng([seed, 1]))
        draws = bootstrap_people(
            experiment, seeds, ["pabak"], resamples=200, rng=np.random.default_rng(seed), threads=1
        )
        gap = gap_of(draws.gap("pabak", 1, 0))
        rejected += gap.p_value < 0.05
        outside += bool(((gap.simultaneous.low > 0) | (gap.simultaneous.high < 0)).any())
    assert 2 <= rejected <= 21  # beyond four standard errors of 5 %
    assert 2 <= outside <= 21


def test_a_true_gap_is_found() -> None:
    """One group's score hangs on the feature that goes wrong, the other's does not."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 300)
    features = np.column_stack([rng.integers(0, 2, 600) * group, rng.normal(size=600)]).astype(float)
    features[group == 1, 1] *= 0.2
    experiment = Experiment(
        features=features,
        predictors=(Linear(np.array([2.0, 1.0]), -0.7),),
        items=(NoiseItem((0,), Flip()),),
        groups=group,
        levels=np.array([0.1, 0.3]),
    )
    draws = bootstrap_people(experiment, SEEDS, ["pabak"], resamples=300, rng=rng)
    gap = gap_of(draws.gap("pabak", 1, 0))
    assert gap.p_value < 0.01
    assert gap.average < 0
    assert gap.average_low < gap.average < gap.average_high < 0
    assert (gap.simultaneous.high < 0).all()


def test_wrong_settings_are_named() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(EvenhandError, match="did you mean 'kappa'"):
        bootstrap_people(trial(), SEEDS, ["kapa"], rng=rng)
    with pytest.raises(EvenhandError, match="`resamples` must be at least 2"):
        bootstrap_people(trial(), SEEDS, ["kappa"], resamples=1, rng=rng)
    with pytest.raises(EvenhandError, match="at least one replicate"):
        bootstrap_people(trial(), [], ["kappa"], rng=rng)


def test_the_spread_is_that_of_everybody_in_the_fold() -> None:
    experiment = trial()
    spread: FloatArray = fold_spread(experiment)
    for fold in (0, 1):
        scores = experiment.base.score[experiment.base.fold == fold]
        assert spread[fold, 0] == pytest.approx(2 * scores.var())


def test_the_variance_of_another_pilot_and_its_degrees_of_freedom_by_hand() -> None:
    rng = np.random.default_rng(0)
    renewed, fixed = rng.normal(0, 3, (8, 2)), rng.normal(0, 1, (8, 2))
    a, b = renewed.var(axis=0, ddof=1), fixed.var(axis=0, ddof=1)
    found = pilot_variance(renewed, fixed, people=21.0)
    np.testing.assert_allclose(found.value, (a - b) * 9 / 8)
    np.testing.assert_allclose(found.spread, 2 * ((a**2 + b**2) / 7 + (a - b) ** 2 / 20))
    both = (4.0 + found.value[1]) ** 2
    assert found.freedom(1, 4.0, 30.0) == pytest.approx(both / (found.spread[1] / 2 + 16 / 30))
    assert found.freedom(1, 4.0, float("inf")) == pytest.approx(both / (found.spread[1] / 2))
    nothing = pilot_variance(np.ones((8, 2)), people=21.0)
    assert nothing.freedom(0, 4.0, float("inf")) == float("inf")
    assert np.isnan(pilot_variance(renewed[:1]).value).all()


def test_everybody_is_drawn_as_often() -> None:
    times = _times_drawn(trial(people=12), 2_000, np.random.default_rng(0)).astype(int)
    np.testing.assert_allclose(times.mean(axis=1), 1.0, atol=0.12)


def test_degrees_of_freedom_of_two_variances_together() -> None:
    """(V + S)² / (q / 2 + S² / v): with V 0.04 and q 0.0002, S 0.01 and v 10."""
    pilot = PilotVariance(np.array([0.04]), np.array([0.0002]))
    assert pilot.freedom(0, 0.01, 10.0) == pytest.approx(0.05**2 / (0.0001 + 0.00001))
    assert pilot.freedom(0, 0.01, np.inf) == pytest.approx(0.05**2 / 0.0001)
    assert np.isinf(PilotVariance(np.array([0.0]), np.array([0.0])).freedom(0, 0.01, np.inf))


def test_bands_are_as_far_as_better_limits_of_the_average() -> None:
    draws = Draws(np.array([0.1, 0.3, 0.2]), np.random.default_rng(0).normal(0, 0.1, (300, 3)))
    plain, usual = gap_of(draws), 1.959964 * float(draws.stderr()[-1])
    found = gap_of(draws, mean_limits=(0.2 - 2.0 * usual, 0.2 + 0.5 * usual))
    assert (found.average_low, found.average_high) == (0.2 - 2.0 * usual, 0.2 + 0.5 * usual)
    np.testing.assert_allclose(found.value - found.simultaneous.low, 2.0 * (plain.value - plain.simultaneous.low))
    np.testing.assert_allclose(found.simultaneous.high, plain.simultaneous.high)


def test_a_gap_that_never_varies_has_no_test() -> None:
    draws = Draws(np.array([0.25, 0.5, 0.375]), np.tile([0.25, 0.5, 0.375], (50, 1)))
    found = gap_of(draws, mean_limits=(0.2, 0.5))
    assert found.stderr.tolist() == [0.0, 0.0]
    assert np.isnan(found.z)
