"""The bootstrap of critics and cases: exact variances of sums, and what a resample keeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from evenhand.datasets import load_dressel_farid
from evenhand.errors import ConfigError, DataError, EvenhandError
from evenhand.stats.draws import Draws
from evenhand.stats.feedback import (
    RIGHT,
    TOO_HIGH,
    TOO_LOW,
    Answers,
    Feedback,
    Resampled,
    crossed_bootstrap,
    crossed_draws,
    gap,
    rates,
)
from evenhand.stats.feedback import crossed as crossed_module
from evenhand.stats.feedback.crossed import Masses, _chunks, _counts, _root, _summed_products
from evenhand.stats.types import FloatArray

Sampler = Callable[..., Answers]


def everything(masses: FloatArray) -> FloatArray:
    return masses.reshape(*masses.shape[:-4], -1)


def exact_covariance(answers: Answers, resampled: Resampled) -> FloatArray:
    """Var of the masses: E[uu'] = 1 + [same critic] - 1/critics for drawn critics, and likewise for cases."""
    cell = np.eye(int(np.prod(answers.shape)))[answers.cell]
    same_critic, same_case = (np.equal.outer(codes, codes) for codes in (answers.critic, answers.case))
    critics = 1.0 + (same_critic - 1.0 / answers.critics if resampled != "cases" else 0.0)
    cases = 1.0 + (same_case - 1.0 / answers.cases if resampled != "critics" else 0.0)
    return np.asarray(cell.T @ (critics * cases - 1.0) @ cell)


@pytest.mark.parametrize("resampled", ["both", "critics", "cases"])
def test_masses_have_the_mean_and_the_covariance_of_their_law(resampled: Resampled, crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(0), cases=12, critics=9, each=7)
    drawn = crossed_bootstrap(answers, everything, rng=np.random.default_rng(1), draws=40_000, resampled=resampled)
    covariance = exact_covariance(answers, resampled)
    spread = np.sqrt(np.diagonal(covariance))
    np.testing.assert_array_equal(drawn.estimate, answers.masses().ravel())
    assert (np.abs(drawn.values.mean(axis=0) - drawn.estimate) <= 5 * spread / 200).all()
    np.testing.assert_allclose(np.cov(drawn.values.T), covariance, atol=0.04 * covariance.max())


@pytest.mark.parametrize("resampled", ["both", "critics", "cases"])
def test_the_covariance_of_masses_is_that_of_every_two_answers(resampled: Resampled, crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(14), cases=25, critics=12, each=9, labels=3)
    np.testing.assert_allclose(
        Masses.from_answers(answers).covariance(resampled), exact_covariance(answers, resampled), atol=1e-9
    )


@pytest.mark.parametrize("resampled", ["both", "critics", "cases"])
def test_the_covariance_of_masses_with_kinds_of_critics_is_the_bootstraps(
    resampled: Resampled, crossed: Sampler
) -> None:
    answers = crossed(np.random.default_rng(16), cases=20, critics=12, each=8)
    answers = replace(answers, weight=np.random.default_rng(17).uniform(0.2, 3, answers.answer.size))
    masses = Masses.from_answers(answers, np.arange(12) // 8)
    drawn = np.concatenate(list(masses.resamples(40_000, resampled, np.random.default_rng(18)))).reshape(40_000, -1)
    covariance = masses.covariance(resampled)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.04 * covariance.max())


@pytest.mark.parametrize("resampled", ["both", "critics", "cases"])
def test_many_answers_are_drawn_as_the_bootstrap_draws_them(
    resampled: Resampled, crossed: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard errors of rates and of gaps, as the normal law has them, against the bootstrap of every answer."""
    answers = crossed(np.random.default_rng(20), bias=(0.0, 0.4, 0.4), cases=300, critics=100, each=24)
    rare = np.flatnonzero(answers.cell == 1)[3:]  # leave three answers of one kind: too few for a normal law
    answers = answers.where(~np.isin(np.arange(answers.answer.size), rare))

    def statistic(masses: FloatArray) -> FloatArray:
        found = rates(masses[..., 0, :, :, :], answers.feedback, "equal_opportunity", closed=True)
        apart = gap(masses[..., 0, :, :, :], answers.feedback, "calibration").estimate
        return np.concatenate([found.lower.reshape(*found.lower.shape[:-2], -1), apart[..., np.newaxis]], axis=-1)

    few: list[Draws] = []
    many: list[Draws] = []
    for limit, kept in ((10**9, few), (0, many)):
        monkeypatch.setattr("evenhand.stats.feedback.crossed.FEW_ANSWERS", limit)
        for each in (statistic, everything):
            kept.append(
                crossed_bootstrap(answers, each, rng=np.random.default_rng(21), draws=2_000, resampled=resampled)
            )
    np.testing.assert_allclose(many[0].stderr(), few[0].stderr(), rtol=0.1)
    covariance = exact_covariance(answers, resampled)
    np.testing.assert_allclose(np.asarray(np.cov(many[1].values.T)), covariance, atol=0.08 * covariance.max())
    never = [(draws.values[:, 1] == 0).mean() for draws in (few[1], many[1])]
    assert never[0] == pytest.approx(never[1], abs=0.04)
    assert never[0] > 0.01 or resampled != "both"


def test_components_are_the_two_way_variance(crossed: Sampler) -> None:
    """For a mean: sum over critics + sum over cases - sum over answers of the squared influences."""
    answers = crossed(np.random.default_rng(2), cases=300, critics=150, each=40)

    def share(masses: FloatArray) -> FloatArray:
        agree = masses[..., 0, :, :, 0].sum(axis=(-2, -1))
        return np.asarray((agree / masses[..., 0, :, :, :].sum(axis=(-3, -2, -1)))[..., np.newaxis])

    influence = ((answers.answer == 0) - (answers.answer == 0).mean()) / answers.answer.size
    by_critic, by_case = (np.bincount(code, weights=influence) for code in (answers.critic, answers.case))
    two_way = (by_critic**2).sum() + (by_case**2).sum() - (influence**2).sum()
    drawn = crossed_draws(answers, share, rng=np.random.default_rng(3), draws=8_000)
    assert drawn.stderr()[0] == pytest.approx(np.sqrt(two_way), rel=0.05)
    assert drawn.both.stderr()[0] ** 2 == pytest.approx(two_way + 2 * (influence**2).sum(), rel=0.06)
    assert drawn.components()[2, 0] == pytest.approx((influence**2).sum(), rel=0.3)


def test_shared_counts_know_the_part_of_single_answers_better(crossed: Sampler) -> None:
    """The error of the variance is a third of that of three independent bootstraps, so that a ninth as many suffice."""
    answers = crossed(np.random.default_rng(2), cases=100, critics=50, each=20)

    def share(masses: FloatArray) -> FloatArray:
        agree = masses[..., 0, :, :, 0].sum(axis=(-2, -1))
        return np.asarray((agree / masses[..., 0, :, :, :].sum(axis=(-3, -2, -1)))[..., np.newaxis])

    found = np.empty((100, 2))
    for seed in range(100):
        drawn = crossed_draws(answers, share, rng=np.random.default_rng(seed), draws=200)
        alone = (
            crossed_bootstrap(answers, share, rng=np.random.default_rng([seed, at]), draws=200, resampled=what)
            for at, what in enumerate(crossed_module.RESAMPLED)
        )
        both, critics, cases = (draws.stderr()[0] ** 2 for draws in alone)
        found[seed] = drawn.stderr()[0] ** 2, 2.0 * (critics + cases) - both
    assert found[:, 0].mean() == pytest.approx(found[:, 1].mean(), rel=0.1)
    assert found[:, 0].std() < 0.5 * found[:, 1].std()


def test_kinds_of_critics_are_drawn_apart(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(4), critics=30, each=10)
    kind = np.arange(30) % 3

    def size(masses: FloatArray) -> FloatArray:
        return np.asarray(masses.sum(axis=(-3, -2, -1)))

    drawn = crossed_bootstrap(answers, size, rng=np.random.default_rng(5), draws=50, resampled="critics", kind=kind)
    np.testing.assert_array_equal(drawn.values, 100.0)  # ten critics of each kind, ten answers each
    assert crossed_bootstrap(answers, size, rng=np.random.default_rng(5), draws=50, kind=kind).stderr().min() > 0


def test_the_order_of_rows_and_chunks(crossed: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = crossed(np.random.default_rng(6))
    mixed = np.random.default_rng(7).permutation(answers.answer.size)
    turned = replace(answers, critic=answers.critic[mixed], case=answers.case[mixed], answer=answers.answer[mixed])
    one, two = (
        crossed_bootstrap(each, everything, rng=np.random.default_rng(8), draws=20).values for each in (answers, turned)
    )
    np.testing.assert_array_equal(one, two)
    monkeypatch.setattr("evenhand.stats.feedback.crossed._CHUNK_NUMBERS", 1)
    chunked = crossed_bootstrap(answers, everything, rng=np.random.default_rng(8), draws=3_000)
    covariance = exact_covariance(answers, "both")
    np.testing.assert_allclose(np.cov(chunked.values.T), covariance, atol=0.12 * covariance.max())


def test_weights_are_repetitions(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(9), cases=20, critics=10, each=8)
    twice = np.random.default_rng(10).integers(1, 4, answers.answer.size)
    weighted = replace(answers, weight=twice.astype(np.float64))
    repeated = replace(
        answers,
        critic=np.repeat(answers.critic, twice),
        case=np.repeat(answers.case, twice),
        answer=np.repeat(answers.answer, twice),
    )
    np.testing.assert_array_equal(weighted.masses(), repeated.masses())
    np.testing.assert_array_equal(weighted.by_critic(), repeated.by_critic())
    one, two = (
        crossed_bootstrap(each, everything, rng=np.random.default_rng(11), draws=20).values
        for each in (weighted, repeated)
    )
    np.testing.assert_allclose(one, two)


def test_reduction_to_masses(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(12), labels=3, bias=(0.0, 0.2, 0.4), kind="direction")
    by_hand = np.zeros(answers.shape)
    for case, answer in zip(answers.case, answers.answer, strict=True):
        by_hand[answers.group[case], answers.label[case], answer] += 1
    np.testing.assert_array_equal(answers.masses(), by_hand)
    np.testing.assert_array_equal(answers.by_critic().sum(axis=0), by_hand)
    kind = np.arange(answers.critics) % 2
    odd = answers.where(kind[answers.critic] == 1)
    np.testing.assert_array_equal(answers.by(kind, 2)[1], odd.masses())
    assert odd.critics == answers.critics // 2
    assert odd.cases <= answers.cases


def test_one_critic_and_one_case() -> None:
    one = np.zeros(1, dtype=np.int64)
    answers = Answers(critic=one, case=one, answer=one, group=one, label=one, groups=1, critics=1, feedback=Feedback(2))
    drawn = crossed_bootstrap(answers, everything, rng=np.random.default_rng(0), draws=5)
    np.testing.assert_array_equal(drawn.values, np.tile(drawn.estimate, (5, 1)))


def test_what_is_refused(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(0))
    with pytest.raises(DataError, match="`critic` must be codes from 0 to 2; got 3"):
        replace(answers, critics=3, critic=np.full(answers.critic.size, 3))
    with pytest.raises(DataError, match="one entry for each answer"):
        replace(answers, critic=answers.critic[:-1])
    with pytest.raises(DataError, match="one entry for each case"):
        replace(answers, group=answers.group[:-1])
    with pytest.raises(DataError, match="`weight`"):
        replace(answers, weight=np.full(answers.critic.size, -1.0))
    with pytest.raises(EvenhandError, match="`draws` must be at least 2"):
        crossed_bootstrap(answers, everything, rng=np.random.default_rng(0), draws=1)
    with pytest.raises(ConfigError, match="did you mean 'critics'"):
        crossed_bootstrap(answers, everything, rng=np.random.default_rng(0), resampled="critic")  # type: ignore[arg-type]


@pytest.mark.replication
@pytest.mark.skipif(not os.environ.get("EVENHAND_DATA"), reason="EVENHAND_DATA names no folder of data")
def test_shared_cases_are_what_makes_the_real_gap_uncertain() -> None:
    """Equal opportunity of the label 'low' differs by race with a standard error of 0.036, critics alone say 0.010."""
    table = load_dressel_farid(backend="pandas")
    table = table[(table["condition"] == "no_race") & table["race"].isin(["White", "Black"])]
    cases = table.drop_duplicates("case").sort_values("case")
    answers = Answers(
        critic=np.unique(table["critic"], return_inverse=True)[1],
        case=np.searchsorted(cases["case"].to_numpy(), table["case"].to_numpy()),
        answer=table["disagrees"].to_numpy(),
        group=(cases["race"] == "Black").to_numpy().astype(np.int64),
        label=cases["compas_decision"].to_numpy(),
        groups=2,
        critics=400,
        feedback=Feedback(2),
    )

    def difference(masses: FloatArray) -> FloatArray:
        rate = rates(masses[..., 0, :, :, :], Feedback(2), "equal_opportunity").lower[..., 0]
        return np.asarray(rate[..., :1] - rate[..., 1:])

    drawn = crossed_draws(answers, difference, rng=np.random.default_rng(0))
    assert drawn.both.stderr()[0] == pytest.approx(0.038, abs=0.002)
    assert drawn.critics.stderr()[0] == pytest.approx(0.010, abs=0.001)
    assert drawn.stderr()[0] == pytest.approx(0.036, abs=0.001)


def test_directions_leave_open_what_lies_on_their_side() -> None:
    meant = Feedback(3, "direction").admissible[1]
    assert meant[RIGHT].tolist() == [False, True, False]
    assert meant[TOO_HIGH].tolist() == [True, False, False]
    assert meant[TOO_LOW].tolist() == [False, False, True]


def test_two_resamples_are_enough_and_one_is_not(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(0), cases=20, critics=6, each=8)

    def total(masses: FloatArray) -> FloatArray:
        return np.asarray(masses.sum(axis=(-3, -2, -1))[..., np.newaxis])

    assert crossed_draws(answers, total, rng=np.random.default_rng(0), draws=2).both.values.shape[0] == 2
    with pytest.raises(ConfigError, match="`draws` must be at least 2; got 1"):
        crossed_draws(answers, total, rng=np.random.default_rng(0), draws=1)


def test_a_tolerance_below_0_or_of_all_labels_is_refused() -> None:
    for tolerance in (-1, 2):
        with pytest.raises(ConfigError, match="`tolerance` must be from 0 to 1 steps with 3 labels"):
            Feedback(3, tolerance=tolerance)
    assert Feedback(3, tolerance=1).tolerance == 1


def test_resamples_are_made_in_parts_that_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossed_module, "_CHUNK_NUMBERS", 100)
    assert list(_chunks(10, 30)) == [3, 3, 3, 1]
    assert list(_chunks(9, 30)) == [3, 3, 3]
    assert list(_chunks(3, 200)) == [1, 1, 1]
    assert list(_chunks(5, 1)) == [5]
    assert list(_chunks(5, 0)) == [5]


def test_a_draw_of_some_among_many_has_the_moments_of_a_binomial() -> None:
    all_of_them = _counts(5, 5, 4_000, np.random.default_rng(0))
    assert all_of_them.shape == (4_000, 5)
    assert (all_of_them.sum(axis=1) == 5).all()
    assert all_of_them.mean(axis=0) == pytest.approx(1.0, abs=0.06)
    some = _counts(5, 20, 4_000, np.random.default_rng(0))
    assert some.sum(axis=1).mean() == pytest.approx(5.0, abs=0.15)
    assert some.sum(axis=1).var() == pytest.approx(20 * 0.25 * 0.75, rel=0.1)
    assert some.mean(axis=0) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("rows", [3, 400])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_sums_over_rows_by_hand(rows: int, weighted: bool) -> None:
    """Few rows are added up in a table, many in a sparse one."""
    rng = np.random.default_rng(0)
    row, code = rng.integers(0, rows, 60), rng.integers(0, 5, 60)
    weight = rng.gamma(2.0, 1.0, 60) if weighted else None
    sums = np.zeros((rows, 5))
    np.add.at(sums, (row, code), 1.0 if weight is None else weight)
    np.testing.assert_allclose(_summed_products(row, rows, code, 5, weight), sums.T @ sums)


def test_the_root_of_a_covariance_leaves_out_rounding() -> None:
    covariance = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1e-15]])
    root = _root(covariance)
    np.testing.assert_allclose(root @ root, covariance, atol=1e-12)
    assert root[2, 2] == 0.0
