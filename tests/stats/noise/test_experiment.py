"""Mistakes that differ by profile: how often, and in which way; against counts, laws and the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.noise import (
    Confusion,
    Experiment,
    Flip,
    HotDeck,
    Linear,
    NoiseItem,
    Normal,
    OneHot,
    Paths,
    Pilot,
    Predictor,
    Right,
    attribute,
    largest_level,
    learned_confusion,
    neighbours,
    paths,
    replicate_seeds,
    simulate,
)
from evenhand.stats.noise.engine import block_mistakes, trials_of
from evenhand.stats.types import FloatArray, IntArray

Make = Callable[..., Experiment]
Models = Callable[[int], tuple[Predictor, ...]]
SEEDS = replicate_seeds(6, np.random.default_rng(4))
PROFILES = np.random.default_rng(1).integers(0, 3, 90)
PACES = np.array([1.0, 0.4, 1.1])
WORSE = Confusion((1.0, 2.0, 3.0), ((0.0, 0.0, 1.0), (0.9, 0.1, 0.0), (0.3, 0.3, 0.4)))
ITEMS = (
    NoiseItem((0,), Flip()),
    NoiseItem((1,), Normal(1.5), (Normal(4.0, minimum=0.0), Right())),
    NoiseItem((2,), Right(), (Right(), Normal(0.5, whole=False))),
    NoiseItem((3,), WORSE, (neighbours((1.0, 2.0, 3.0)), WORSE)),
    NoiseItem((5, 6, 7), OneHot(), (Right(), OneHot())),
)


@pytest.mark.parametrize("kind", ["linear", "curved"])
@pytest.mark.parametrize("shares", ["bernoulli", "exact"])
@pytest.mark.parametrize(("common", "raters"), [(True, 1), (True, 2), (False, 1)])
def test_the_engine_is_the_definition(
    experiment: Make,
    by_definition: Callable[..., Paths],
    request: pytest.FixtureRequest,
    kind: str,
    shares: str,
    common: bool,
    raters: int,
) -> None:
    models: Models = request.getfixturevalue(kind)
    trial = experiment(models, shares=shares, common=common, raters=raters, items=ITEMS, profiles=PROFILES, paces=PACES)
    found, wanted = paths(trial, SEEDS), by_definition(trial, SEEDS)
    np.testing.assert_array_equal(found.first_label, wanted.first_label)
    np.testing.assert_array_equal(found.second_label, wanted.second_label)
    np.testing.assert_allclose(found.first_score, wanted.first_score, atol=1e-12)
    np.testing.assert_allclose(found.second_score, wanted.second_score, atol=1e-12)
    apart = (wanted.second_score - wanted.first_score) ** 2
    by_cell = np.stack([apart[:, :, trial.base.cell == cell].sum(axis=2) for cell in range(4)], axis=2)
    np.testing.assert_allclose(simulate(trial, SEEDS).sums.error_squares.reshape(6, 5, 4), by_cell, atol=1e-11)


def level_of_change(trial: Experiment, seed: np.random.SeedSequence) -> IntArray:
    """Return (people, items) from which level on entries have changed, people in the order they were given."""
    (mistakes,) = block_mistakes(trial, trials_of(trial, [seed]))
    found = np.empty_like(mistakes.level[0], dtype=np.int64)
    found[trial.base.order] = mistakes.level[0]
    return found


def people(n: int, shares: Literal["bernoulli", "exact"], **settings: Any) -> Experiment:
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (n, 2)).astype(float)
    items = (NoiseItem((0,), Flip()), NoiseItem((1,), Flip(), (Right(), Flip())))
    chosen: dict[str, Any] = {
        "profiles": rng.integers(0, 3, n),
        "paces": np.array([1.0, 0.5, 2.0]),
        "levels": np.array([0.1, 0.25, 0.5]),
        "items": items,
    } | settings
    model = Linear(np.array([1.0, 0.7]), -0.9)
    return Experiment(
        features=features,
        predictors=(model, model),
        groups=rng.integers(0, 2, n),
        folds=np.arange(n) % 2,
        shares=shares,
        **chosen,
    )


def test_exact_shares_hold_in_every_fold_group_and_profile() -> None:
    trial = people(700, "exact")
    assert trial.folds is not None
    assert trial.profiles is not None
    assert trial.paces is not None
    level = level_of_change(trial, SEEDS[0])
    for fold in range(2):
        for group in range(2):
            for profile, pace in enumerate(trial.paces):
                own = (trial.folds == fold) & (trial.groups == group) & (trial.profiles == profile)
                for at, share in enumerate(trial.levels):
                    wanted = share * pace * own.sum()
                    assert abs((level[own, 0] <= at).sum() - wanted) < 1
                    assert abs((level[own, 1] <= at).sum() - (0 if profile == 1 else wanted)) < 1


def test_bernoulli_shares_are_the_level_times_the_pace() -> None:
    trial = people(60_000, "bernoulli")
    assert trial.profiles is not None
    assert trial.paces is not None
    level = level_of_change(trial, SEEDS[0])
    for profile, pace in enumerate(trial.paces):
        own = trial.profiles == profile
        for at, share in enumerate(trial.levels):
            chance = share * pace
            tolerance = 4.5 * np.sqrt(chance * (1 - chance) / own.sum()) + 1e-12
            assert (level[own, 0] <= at).mean() == pytest.approx(chance, abs=tolerance)
            expected = 0.0 if profile == 1 else chance
            assert (level[own, 1] <= at).mean() == pytest.approx(expected, abs=tolerance)


def sums(trial: Experiment) -> FloatArray:
    found = simulate(trial, SEEDS).sums
    return np.stack([found.both_ones, found.second_ones, found.error_squares, found.second])


@pytest.mark.parametrize("shares", ["bernoulli", "exact"])
def test_one_pace_for_all_is_another_level(shares: Literal["bernoulli", "exact"]) -> None:
    everybody = np.zeros(500, dtype=np.int64)
    items = (NoiseItem((0,), Flip()), NoiseItem((1,), Flip()))
    fast = people(500, shares, items=items, profiles=everybody, paces=np.array([2.0]))
    high = people(500, shares, items=items, profiles=None, paces=None, levels=np.array([0.2, 0.5, 1.0]))
    np.testing.assert_array_equal(sums(fast), sums(high))


def test_profiles_that_are_alike_change_nothing(experiment: Make) -> None:
    """Those who compare the groups see the same people in the same order, and the same random numbers."""
    plain = experiment()
    same = experiment(profiles=plain.groups, paces=np.ones(2))
    np.testing.assert_array_equal(sums(plain), sums(same))


def test_a_profile_that_never_errs_leaves_the_others_alone() -> None:
    items = (NoiseItem((0,), Flip()), NoiseItem((1,), Flip()))
    groups = people(500, "bernoulli").groups
    plain = people(500, "bernoulli", items=items, profiles=None, paces=None)
    never = people(500, "bernoulli", items=items, profiles=groups, paces=np.array([0.0, 1.0]))
    assert (simulate(never, SEEDS).sums.counts().pabak()[..., 0] == 1).all()
    np.testing.assert_array_equal(
        simulate(never, SEEDS).sums.counts().pabak()[..., 1], simulate(plain, SEEDS).sums.counts().pabak()[..., 1]
    )
    assert simulate(never, SEEDS).changed[0] == pytest.approx(0.5 * (groups == 1).mean(), abs=0.05)


def test_attribution_adds_up_with_profiles(experiment: Make) -> None:
    trial = experiment(items=ITEMS, profiles=PROFILES, paces=PACES, levels=np.array([0.5]))
    found = attribute(trial, SEEDS, {"pabak": lambda sums: sums.counts().pabak()})["pabak"]
    whole = simulate(trial, SEEDS).sums.counts().pabak().mean(axis=2)[:, 0] - 1.0
    np.testing.assert_allclose(found.values.sum(axis=1), whole, atol=1e-12)


def test_the_share_of_changed_entries() -> None:
    trial = people(
        2_000, "exact", profiles=None, paces=None, items=(NoiseItem((0,), Flip()), NoiseItem((1,), Normal(0.0)))
    )
    for common in (True, False):
        done = simulate(people(2_000, "exact", profiles=None, paces=None, items=trial.items, common=common), SEEDS)
        np.testing.assert_allclose(done.changed, [0.5, 0.0], atol=0.002)


def test_the_largest_level_knows_paces() -> None:
    features, profiles = np.array([[0.0], [1.0], [0.0]]), np.array([0, 1, 1])
    assert largest_level([NoiseItem((0,), Flip())], features, profiles, np.array([1.0, 4.0])) == 0.25
    assert largest_level([NoiseItem((0,), Flip(), (Right(),))], features, profiles, np.array([0.5, 4.0])) == 2.0
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"paces": np.array([1.0, 1.0, 9.0])}, "would change more than every entry"),
        ({"paces": np.array([1.0, 1.0])}, "one number per profile"),
        ({"paces": np.array([1.0, 1.0, -1.0])}, "not negative"),
        ({"profiles": None}, "one number per profile"),
        ({"profiles": None, "paces": None}, "one model per profile"),
        ({"profiles": np.arange(3)}, "`profiles` must be 50 whole numbers"),
    ]
    for settings, message in wrong:
        with pytest.raises(EvenhandError, match=message):
            people(50, "bernoulli", **settings)
    with pytest.raises(EvenhandError, match=r"Exact shares must be at most 1; got 1\.5"):
        people(50, "exact", paces=np.array([1.0, 1.0, 3.0]), items=(NoiseItem((0,), Right()),))


def test_a_pilot_learns_each_profile_from_its_own_people() -> None:
    rng = np.random.default_rng(3)
    first = np.column_stack([rng.integers(0, 2, 90), rng.integers(0, 50, 90)]).astype(float)
    second = first.copy()
    second[:40, 0] = 1 - second[:40, 0]  # a group that is always taken for the other
    second[40:, 1] += rng.integers(0, 3, 50)
    rows = (np.arange(0, 40), np.arange(40, 70))
    pilot = Pilot(first=first, second=second, columns=(0, 1), categories={0: (0.0, 1.0)}, apart=rows)
    binary, number = pilot.items()
    assert binary.model == learned_confusion(first[:, 0], second[:, 0], (0.0, 1.0))
    assert binary.others == tuple(learned_confusion(first[own, 0], second[own, 0], (0.0, 1.0)) for own in rows)
    assert isinstance(number.others[0], HotDeck)
    assert not number.others[0].error.any()
    for _ in range(5):
        again = pilot.resampled()(rng)
        assert [(item.columns, len(item.others)) for item in again] == [((0,), 2), ((1,), 2)]
        deck, whole = again[1].others[0], again[1].model
        assert isinstance(deck, HotDeck)
        assert isinstance(whole, HotDeck)
        assert deck.first.size == 40  # each profile is resampled among its own people
        assert not deck.error.any()
        assert whole.first.size == 90
    with pytest.raises(EvenhandError, match="each person belongs to one profile at most"):
        Pilot(
            first=first,
            second=second,
            columns=(0, 1),
            categories={0: (0.0, 1.0)},
            apart=(np.arange(3), np.arange(2, 5)),
        )
