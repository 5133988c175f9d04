"""Least squares: statsmodels, brute force, and laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import ConfigError, EvenhandError
from evenhand.stats.draws import Draws
from evenhand.stats.random_intercept import _inverse_root, random_intercept, robust_by_people
from evenhand.stats.regression import (
    LinearFit,
    WeightStatus,
    bootstrap_weight,
    coefficient_bootstrap,
    delta_weight,
    f_test,
    moderated,
    ols,
    wald,
    wald_equal,
    wald_zero,
)

NAMES = ("aggregate", "trajectory")


def clustered(people: int = 40, rows: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers of people who differ in level and in what they look at."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rows)
    x = rng.integers(1, 7, (people * rows, 2)).astype(float)
    own = rng.normal([0.36, 0.54], 0.15, (people, 2))[who]
    y = 0.4 + (x * own).sum(axis=1) + rng.normal(0, 0.5, people)[who] + rng.normal(0, 0.8, len(who))
    return x, y, who


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return clustered()


@pytest.fixture(scope="module")
def fit(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> LinearFit:
    x, y, who = data
    return ols(x, y, NAMES, who)


@pytest.fixture(scope="module")
def peer(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Any:
    api = pytest.importorskip("statsmodels.api")
    x, y, _ = data
    return api.OLS(y, api.add_constant(x))


def test_classical_fit_equals_statsmodels(fit: LinearFit, peer: Any) -> None:
    theirs = peer.fit()
    ours = fit.coefficients("classical", 0.9)
    np.testing.assert_allclose(ours.value, theirs.params, rtol=1e-10)
    np.testing.assert_allclose(ours.stderr, theirs.bse, rtol=1e-10)
    np.testing.assert_allclose(ours.statistic, theirs.tvalues, rtol=1e-10)
    np.testing.assert_allclose(ours.p_value, theirs.pvalues, rtol=1e-7)
    np.testing.assert_allclose(np.column_stack([ours.low, ours.high]), theirs.conf_int(0.1), rtol=1e-9)
    assert fit.r2 == pytest.approx(theirs.rsquared, rel=1e-12)
    assert fit.adjusted_r2 == pytest.approx(theirs.rsquared_adj, rel=1e-12)
    assert f_test(fit).f == pytest.approx(theirs.fvalue, rel=1e-10)
    assert f_test(fit).p_value == pytest.approx(theirs.f_pvalue, rel=1e-6, abs=1e-300)


def test_clustered_fit_equals_statsmodels(data: Any, fit: LinearFit, peer: Any) -> None:
    theirs = peer.fit(cov_type="cluster", cov_kwds={"groups": data[2]}, use_t=True)
    ours = fit.coefficients("cluster")
    np.testing.assert_allclose(ours.stderr, theirs.bse, rtol=1e-10)
    np.testing.assert_allclose(ours.p_value, theirs.pvalues, rtol=1e-7)
    np.testing.assert_allclose(np.column_stack([ours.low, ours.high]), theirs.conf_int(), rtol=1e-9)
    assert f_test(fit, "cluster").f == pytest.approx(theirs.fvalue, rel=1e-8)


@pytest.mark.parametrize("inference", ["classical", "cluster"])
def test_wald_tests_equal_statsmodels(data: Any, fit: LinearFit, peer: Any, inference: Any) -> None:
    options = {} if inference == "classical" else {"cov_type": "cluster", "cov_kwds": {"groups": data[2]}}
    theirs = peer.fit(use_t=True, **options)
    for ours, rows in (
        (wald_zero(fit, NAMES, inference), [[0, 1, 0], [0, 0, 1]]),
        (wald_equal(fit, "trajectory", "aggregate", inference), [[0, -1, 1]]),
    ):
        expected = theirs.wald_test(np.array(rows), scalar=True, use_f=True)
        assert ours.f == pytest.approx(expected.statistic, rel=1e-9)
        assert ours.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
        assert ours.statistic == pytest.approx(len(rows) * expected.statistic, rel=1e-9)
    assert wald_equal(fit, "trajectory", "aggregate").null == "trajectory = aggregate"
    assert wald_zero(fit, NAMES).null == "aggregate = trajectory = 0"


def test_the_two_nulls_of_the_paper_are_not_the_same(fit: LinearFit) -> None:
    """a1 = a2 = 0 gives 2 F; a1 = a2 is the square of the t of the difference."""
    assert wald_zero(fit, NAMES).statistic == pytest.approx(2 * f_test(fit).f, rel=1e-12)
    v = fit.covariance()
    t = (fit.coef[2] - fit.coef[1]) / np.sqrt(v[1, 1] + v[2, 2] - 2 * v[1, 2])
    assert wald_equal(fit, *NAMES).statistic == pytest.approx(t**2, rel=1e-12)


def test_moderation_is_two_regressions_side_by_side() -> None:
    x, y, who = clustered(seed=1)
    second = who >= 25
    both = ols(moderated(x, second[:, None]), y, ["a", "t", "c", "a c", "t c"], who)
    one, two = ols(x[~second], y[~second], NAMES), ols(x[second], y[second], NAMES)
    np.testing.assert_allclose(both.coef[:3], one.coef, atol=1e-10)
    np.testing.assert_allclose(both.coef[3:], two.coef - one.coef, atol=1e-10)


def test_people_of_one_row_give_the_heteroskedastic_errors(data: Any, peer: Any) -> None:
    x, y, _ = data
    fit = ols(x, y, NAMES, np.arange(len(y)))
    n = len(y)
    expected = peer.fit(cov_type="HC1").cov_params() * (n - 3) / n * n / (n - 1) * (n - 1) / (n - 3)
    np.testing.assert_allclose(fit.covariance("cluster"), expected, rtol=1e-9)


def test_random_intercept_equals_the_closed_form_of_balanced_data() -> None:
    """Without regressors that vary within people: level and variances follow from the analysis of variance."""
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(30), 8)
    between = np.repeat(rng.normal(size=30), 8)
    y = between + rng.normal(0, 0.7, 240) + rng.normal(0, 0.6, 30)[who]
    fit = random_intercept(between[:, None], y, ["x"], who)
    means = y.reshape(30, 8).mean(axis=1)
    plain = ols(between[::8, None], means, ["x"])
    within = ((y.reshape(30, 8) - means[:, None]) ** 2).sum() / (30 * 7)
    np.testing.assert_allclose(fit.coef, plain.coef, rtol=1e-7)
    assert fit.within == pytest.approx(within, rel=1e-6)
    assert fit.between == pytest.approx(plain.residual_variance - within / 8, rel=1e-6)
    assert np.sqrt(np.diagonal(fit.covariance)) == pytest.approx(plain.coefficients().stderr, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_random_intercept_equals_statsmodels_where_that_converges(seed: int) -> None:
    """Unbalanced data; Powell's method, because the default one of statsmodels often stops short of the optimum."""
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    x, y, who = clustered(people=25, seed=seed)
    keep = np.random.default_rng(seed).random(len(y)) < 0.7
    ours = random_intercept(x[keep], y[keep], NAMES, who[keep])
    model = mixed.MixedLM(y[keep], np.column_stack([np.ones(keep.sum()), x[keep]]), groups=who[keep])
    theirs = model.fit(reml=True, method=["powell"])
    np.testing.assert_allclose(ours.coef, theirs.fe_params, rtol=1e-4)
    errors = np.sqrt(np.diagonal(ours.covariance))
    np.testing.assert_allclose(errors, theirs.bse_fe, rtol=0.02)  # theirs: observed information
    design = np.column_stack([np.ones(keep.sum()), x[keep]])
    whole = ours.within * np.eye(keep.sum()) + ours.between * (who[keep][:, None] == who[keep])
    by_hand = np.linalg.inv(design.T @ np.linalg.solve(whole, design))
    np.testing.assert_allclose(ours.covariance, by_hand, rtol=1e-8)
    assert ours.between == pytest.approx(theirs.cov_re[0, 0], rel=2e-3)
    assert ours.within == pytest.approx(theirs.scale, rel=1e-3)


def test_random_intercept_without_people_who_differ_is_least_squares() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(120, 2))
    who = np.tile(np.arange(10), 12)
    x -= np.column_stack([np.bincount(who, weights=column)[who] / 12 for column in x.T])
    y = x @ [1.0, 2.0] + rng.normal(size=120)
    y -= np.bincount(who, weights=y)[who] / 12 - 5  # every person has the same mean
    fit = random_intercept(x, y, NAMES, who)
    assert fit.between == 0
    np.testing.assert_allclose(fit.coef, ols(x, y, NAMES).coef, rtol=1e-10)
    np.testing.assert_allclose(fit.covariance, ols(x, y, NAMES).covariance(), rtol=1e-8)


def test_random_intercept_is_undefined_where_nothing_can_be_fitted() -> None:
    x, y, who = clustered(people=6)
    assert np.isnan(random_intercept(np.column_stack([x[:, 0]] * 2), y, NAMES, who).coef).all()
    assert np.isnan(random_intercept(x, y, NAMES, np.zeros(len(y))).share)


def by_definition(x: np.ndarray, errors: np.ndarray, who: np.ndarray, ratio: float) -> tuple[Any, Any]:
    """CR2 and Satterthwaite's degrees of freedom from the matrices of the definition, all rows by all rows."""
    whole = np.eye(len(x)) + ratio * (who[:, None] == who)
    weight = np.linalg.inv(whole)
    bread = np.linalg.inv(x.T @ weight @ x)
    rest = np.eye(len(x)) - x @ bread @ x.T @ weight
    pulls = []
    for person in np.unique(who):
        at = np.flatnonzero(who == person)
        root = np.linalg.cholesky(whole[np.ix_(at, at)]).T
        values, vectors = np.linalg.eigh(root @ rest[at] @ whole @ rest[at].T @ root.T)
        kept = values > 1e-9
        inverse = vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T
        pulls.append(bread @ x[at].T @ np.linalg.inv(whole[np.ix_(at, at)]) @ (root.T @ inverse @ root) @ rest[at])
    scores = np.array([pull @ errors for pull in pulls])
    df = []
    for term in range(x.shape[1]):
        forms = np.array([pull[term] for pull in pulls])
        products = forms @ whole @ forms.T
        df.append(np.trace(products) ** 2 / (products**2).sum())
    return scores.T @ scores, df


@pytest.mark.parametrize("ratio", [0.0, 0.7, 5.0])
def test_robust_by_people_equals_its_definition(ratio: float) -> None:
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(9), [3, 5, 2, 4, 6, 1, 3, 4, 5])
    x = np.column_stack([np.ones(33), rng.normal(size=(33, 2)) + rng.normal(size=9)[who][:, None], who % 2])
    y = rng.normal(size=33) + rng.normal(size=9)[who]
    weight = np.linalg.inv(np.eye(33) + ratio * (who[:, None] == who))
    errors = y - x @ np.linalg.solve(x.T @ weight @ x, x.T @ weight @ y)
    covariance, df = robust_by_people(x, errors, who, ratio)
    expected, expected_df = by_definition(x, errors, who, ratio)
    np.testing.assert_allclose(covariance, expected, atol=1e-12)
    np.testing.assert_allclose(df, expected_df, rtol=1e-9)
    order = rng.permutation(33)
    again, again_df = robust_by_people(x[order], errors[order], 100 - who[order], ratio)
    np.testing.assert_allclose(again, covariance, atol=1e-12)
    np.testing.assert_allclose(again_df, df, rtol=1e-9)


def test_robust_by_people_of_one_row_each_is_hc2() -> None:
    """Against statsmodels, and the degrees of freedom against Imbens and Kolesár (2016), page 704."""
    linear_model = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(6)
    for few in (3, 10):
        x = np.column_stack([np.ones(30), np.arange(30) < few])
        theirs = linear_model.OLS(rng.normal(size=30), x).fit()
        covariance, df = robust_by_people(x, theirs.resid, np.arange(30))
        np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), theirs.HC2_se, rtol=1e-10)
        many = 30 - few
        expected = 30**2 * (many - 1) * (few - 1) / (few**2 * (few - 1) + many**2 * (many - 1))
        assert df[1] == pytest.approx(expected)


@pytest.mark.parametrize("ratio", [0.0, 1.3])
def test_two_conditions_of_equally_many_alike_people_have_people_less_two_degrees_of_freedom(ratio: float) -> None:
    x = np.column_stack([np.ones(60), np.arange(60) < 30])
    _, df = robust_by_people(x, np.random.default_rng(0).normal(size=60), np.repeat(np.arange(12), 5), ratio)
    assert df[1] == pytest.approx(10.0)


def test_slopes_of_few_people_have_no_interval() -> None:
    x, y, who = clustered(people=11)
    few = random_intercept(x, y, NAMES, who).coefficients()
    assert np.isfinite(few.value).all()
    assert np.isnan([few.low, few.high, few.p_value]).all()
    x, y, who = clustered(people=12)
    fit = random_intercept(x, y, NAMES, who)
    enough = fit.coefficients()
    assert np.isfinite([enough.low, enough.high, enough.p_value]).all()
    design, ratio = np.column_stack([np.ones(len(x)), x]), fit.between / fit.within
    covariance, df = robust_by_people(design, y - design @ fit.coef, who, ratio)
    np.testing.assert_allclose(fit.robust, covariance, rtol=1e-6)
    np.testing.assert_allclose(enough.df, df, rtol=1e-6)


def test_the_weight_and_its_delta_interval(fit: LinearFit) -> None:
    """Against a numerical derivative."""
    found = delta_weight(fit, inference="cluster")
    a_a, a_t = fit.coef[1:]
    assert found.value == pytest.approx(a_t / (a_t + a_a))

    def weight(coef: np.ndarray) -> float:
        return float(coef[2] / (coef[1] + coef[2]))

    step = 1e-6
    gradient = np.array([(weight(fit.coef + h) - weight(fit.coef - h)) / (2 * step) for h in step * np.eye(3)])
    assert found.stderr == pytest.approx(np.sqrt(gradient @ fit.covariance("cluster") @ gradient), rel=1e-6)
    assert found.df == 39
    assert (found.high - found.low) / 2 == pytest.approx(2.0227 * found.stderr, rel=1e-4)


def test_a_weight_that_is_no_share_is_undefined(data: Any) -> None:
    x, y, who = data
    negative = ols(x * [-1, 1], y, NAMES, who)
    assert np.isnan(delta_weight(negative).value)
    assert delta_weight(negative).status is WeightStatus.OTHER_SIGNS
    draws = coefficient_bootstrap(x * [-1, 1], y, who, resamples=50, rng=np.random.default_rng(0))
    assert bootstrap_weight(draws, 40, 2, 1).status is WeightStatus.OTHER_SIGNS


def test_bootstrap_coefficients_equal_refitting_repeated_people() -> None:
    x, y, who = clustered(people=5, rows=6, seed=5)
    x[:, 0] += 2020  # a large mean must not cost accuracy
    draws = coefficient_bootstrap(x, y, who, resamples=4, rng=np.random.default_rng(6))
    counts = np.random.default_rng(6).multinomial(5, np.full(5, 0.2), size=4)
    for values, times in zip(draws.values, counts, strict=True):
        rows = np.repeat(np.arange(len(y)), times[who])
        np.testing.assert_allclose(values, ols(x[rows], y[rows], NAMES).coef, rtol=1e-6)
    np.testing.assert_allclose(draws.estimate, ols(x, y, NAMES).coef, rtol=1e-9)


def test_bootstrap_and_clustered_errors_agree_with_many_people() -> None:
    x, y, who = clustered(people=300, seed=7)
    fit = ols(x, y, NAMES, who)
    draws = coefficient_bootstrap(x, y, who, resamples=3_000, rng=np.random.default_rng(8))
    np.testing.assert_allclose(draws.stderr(), fit.coefficients("cluster").stderr, rtol=0.06)
    ours = bootstrap_weight(draws, 300, trajectory=2, aggregate=1)
    delta = delta_weight(fit, inference="cluster")
    assert ours.value == pytest.approx(delta.value)
    assert ours.stderr == pytest.approx(delta.stderr, rel=0.06)
    assert delta_weight(fit).stderr < 0.8 * delta.stderr  # rows taken for people look surer than they are


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_the_names_of_people_do_not_matter(seed: int) -> None:
    x, y, who = clustered(people=8, seed=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    names = np.array(list("abcdefgh"))
    one, two = ols(x, y, NAMES, who), ols(x[order], y[order], NAMES, names[who[order]])
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-10)
    np.testing.assert_allclose(one.covariance("cluster"), two.covariance("cluster"), rtol=1e-9)
    draws = [
        coefficient_bootstrap(x[at], y[at], names[who[at]], resamples=20, rng=np.random.default_rng(1)).values
        for at in (np.arange(len(y)), order)
    ]
    np.testing.assert_allclose(draws[0], draws[1], rtol=1e-9)


def test_columns_that_depend_on_each_other_are_undefined() -> None:
    x, y, who = clustered(people=6)
    twice = ols(np.column_stack([x[:, 0], 2 * x[:, 0]]), y, NAMES, who)
    assert np.isnan(twice.coef).all()
    assert np.isnan(f_test(twice).p_value)
    assert delta_weight(twice).status is WeightStatus.NO_FIT
    few = ols(x[:2], y[:2], NAMES, who[:2])
    assert np.isnan(few.coef).all()
    one_person = ols(x, y, NAMES, np.zeros(len(y)))
    assert np.isnan(one_person.coefficients("cluster").stderr).all()
    assert np.isfinite(one_person.coefficients("classical").stderr).all()


def test_a_resample_without_variation_is_nan_and_not_an_error() -> None:
    x = np.array([[0.0], [0.0], [1.0], [1.0]])
    draws = coefficient_bootstrap(x, [0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1], resamples=200, rng=np.random.default_rng(0))
    assert 0.3 < np.isnan(draws.values[:, 1]).mean() < 0.7
    assert np.isnan(draws.stderr()).all()


@pytest.mark.parametrize(
    ("x", "y", "people", "message"),
    [
        ([[1.0], [2.0]], [1.0], None, "one value for each of 2 rows"),
        ([1.0, 2.0], [1.0, 2.0], None, "one column for each of 1 names"),
        ([[np.nan], [2.0]], [1.0, 2.0], None, "leave out rows with gaps"),
        ([[1.0], [2.0]], [1.0, 2.0], [1], "one person a row, 2 in all"),
        (np.zeros((0, 1)), [], None, "there are no rows"),
    ],
)
def test_wrong_input_is_told(x: Any, y: Any, people: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        ols(x, y, ["x"], people)


def test_wrong_questions_are_told(fit: LinearFit) -> None:
    with pytest.raises(EvenhandError, match="did you mean 'trajectory'"):
        wald_zero(fit, ["trajectry"])
    with pytest.raises(EvenhandError, match="give `people`"):
        ols([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0], ["x"]).coefficients("cluster")
    with pytest.raises(ConfigError, match="did you mean 'cluster'"):
        wald(fit, [[0, 1, 0]], "a = 0", "clustr")  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [3.0, 0.1, 1e9])
def test_a_target_that_does_not_vary_has_no_weight(level: float) -> None:
    """Rounding errors of two coefficients that are 0 are no weight."""
    x, _, who = clustered(people=10)
    y = np.full(len(x), level)
    fit = ols(x, y, NAMES, who)
    np.testing.assert_array_equal(fit.coef, [level, 0.0, 0.0])
    assert np.isnan(fit.covariance()).all()
    assert np.isnan(fit.covariance("cluster")).all()
    assert delta_weight(fit).status is WeightStatus.NO_FIT
    draws = coefficient_bootstrap(x, y, who, resamples=50, rng=np.random.default_rng(0))
    assert np.isnan(bootstrap_weight(draws, 10, trajectory=2, aggregate=1).value)
    assert np.isnan(random_intercept(x, y, NAMES, who).covariance).all()


def test_a_perfect_fit_has_no_standard_error() -> None:
    x, _, who = clustered(people=10)
    fit = ols(x, x[:, 1] / 3, NAMES, who)
    np.testing.assert_allclose(fit.coef, [0, 0, 1 / 3], atol=1e-12)
    assert fit.r2 == pytest.approx(1.0)
    assert np.isnan(fit.coefficients("cluster").p_value).all()
    draws = coefficient_bootstrap(x, x[:, 1] / 3, who, resamples=50, rng=np.random.default_rng(0))
    for found in (delta_weight(fit), bootstrap_weight(draws, 10, trajectory=2, aggregate=1)):
        assert found.value == pytest.approx(1.0)
        assert found.value <= 1
        assert np.isnan(found.low)
        assert found.status is WeightStatus.NO_SPREAD
    mixed = random_intercept(x, x[:, 1] / 3, NAMES, who)
    np.testing.assert_allclose(mixed.coef, [0, 0, 1 / 3], atol=1e-12)
    assert np.isnan(mixed.share)


def test_people_of_one_row_have_no_variance_of_their_own() -> None:
    x, y, _ = clustered(people=10)
    mixed, plain = random_intercept(x, y, NAMES, np.arange(len(y))), ols(x, y, NAMES)
    np.testing.assert_allclose(mixed.coef, plain.coef)
    np.testing.assert_allclose(mixed.covariance, plain.classical)
    assert np.isnan(mixed.share)


def test_limits_of_a_weight_stay_between_0_and_1() -> None:
    values = np.random.default_rng(0).normal([0.0, 0.3, 0.6], 0.2, (500, 3))
    found = bootstrap_weight(Draws(np.array([0.0, 0.3, 0.6]), values), people=4, trajectory=2, aggregate=1)
    assert found.value == pytest.approx(2 / 3)
    assert found.stderr > 0.2
    assert (found.low, found.high, found.status) == (0.0, 1.0, WeightStatus.OK)


def test_the_generalised_inverse_root_leaves_out_what_has_no_variance() -> None:
    assert _inverse_root(np.diag([4.0, 0.0])).tolist() == [[0.5, 0.0], [0.0, 0.0]]
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    matrix = (vectors * [4.0, 1.0, 0.25, 0.0]) @ vectors.T
    root = _inverse_root(matrix)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(matrix, rcond=1e-10), atol=1e-8)


def test_a_mean_of_one_person_has_no_random_intercept() -> None:
    found = random_intercept(np.empty((5, 0)), np.arange(5.0), [], np.zeros(5))
    assert np.isnan(found.coef).all()
    assert found.coef.shape == (1,)
