"""Mistakes learned from a pilot and published ones by name, and a truth that the learned ones must find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evenhand.errors import ConfigError, EvenhandError
from evenhand.stats.noise import (
    Confusion,
    ErrorVectors,
    Experiment,
    FixedFunction,
    FixedProduct,
    Flip,
    HotDeck,
    Linear,
    NoiseItem,
    Normal,
    Pilot,
    fixed_functions,
    fixed_products,
    largest_level,
    learned_confusion,
    published_names,
    published_noise,
    replicate_seeds,
    simulate,
)
from evenhand.stats.noise.predictors import _predicted_by
from evenhand.stats.types import FloatArray, IntArray


def test_half_a_person_is_added() -> None:
    """Q_uv = (n_uv + 1/2) / (n_u + 1) for two categories."""
    model = learned_confusion([0, 0, 0, 1, 1], [0, 1, 0, 1, 1], (0, 1))
    np.testing.assert_allclose(model.chances, [[2.5 / 4, 1.5 / 4], [0.5 / 3, 2.5 / 3]])
    three = learned_confusion([0, 0], [0, 2], (0, 1, 2))
    np.testing.assert_allclose(three.chances[0], [1.5 / 3.5, 0.5 / 3.5, 1.5 / 3.5])


def test_the_level_mixes_the_profile_with_the_identity() -> None:
    """At level L the chance of v given u is (1 - L) I + L Q, also above 1."""
    model = Confusion((0.0, 1.0), ((0.9, 0.1), (0.4, 0.6)))
    features = np.repeat([0.0, 1.0], 30_000)[:, np.newaxis]
    items = (NoiseItem((0,), model),)
    assert largest_level(items, features) == pytest.approx(1 / 0.4)
    levels = np.array([0.5, 1.0, 2.5])
    trial = Experiment(
        features=features,
        predictors=(Linear(np.ones(1), -0.5),),
        items=items,
        groups=np.repeat([0, 1], 30_000),
        levels=levels,
    )
    changed = 1.0 - simulate(trial, replicate_seeds(3, np.random.default_rng(0))).sums.counts().agreement()
    np.testing.assert_allclose(changed.mean(axis=0)[:, 0], np.outer(levels, [0.1, 0.4]), atol=0.006)
    with pytest.raises(EvenhandError, match="more than every entry"):
        Experiment(
            features=features,
            predictors=(Linear(np.ones(1), -0.5),),
            items=items,
            groups=np.repeat([0, 1], 30_000),
            levels=np.array([2.6]),
        )


def test_exact_shares_of_a_profile_touch_and_then_change(experiment: object) -> None:
    model = Confusion((0.0, 1.0), ((0.75, 0.25), (0.5, 0.5)))
    features = np.repeat([0.0, 1.0], 20_000)[:, np.newaxis]
    trial = Experiment(
        features=features,
        predictors=(Linear(np.ones(1), -0.5),),
        items=(NoiseItem((0,), model),),
        groups=np.repeat([0, 1], 20_000),
        levels=np.array([0.4]),
        shares="exact",
    )
    changed = 1.0 - simulate(trial, replicate_seeds(3, np.random.default_rng(0))).sums.counts().agreement()
    np.testing.assert_allclose(changed.mean(axis=0)[0, 0], [0.1, 0.2], atol=0.006)


def test_a_hot_deck_draws_the_errors_of_the_pilot() -> None:
    first, error = np.arange(10.0), np.array([0, 0, 1, 0, -2, 0, 0, 3, 0, 1.0])
    deck = HotDeck(first, error)
    rate = deck.rate(np.zeros((1, 1)))
    assert rate is not None
    assert rate[0] == 0.4
    drawn = deck.draw(np.zeros((40_000, 1)), np.random.default_rng(0)).ravel()
    for value, share in ((1.0, 0.5), (-2.0, 0.25), (3.0, 0.25)):
        assert (drawn == value).mean() == pytest.approx(share, abs=0.01)
    assert set(drawn) == {1.0, -2.0, 3.0}


@pytest.mark.parametrize("near", [1, 3, 7])
def test_a_near_hot_deck_draws_from_the_nearest(near: int) -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=40)  # no ties
    error = np.where(rng.random(40) < 0.6, rng.normal(size=40), 0.0)
    deck = HotDeck(first, error, near=near)
    values = np.concatenate([rng.normal(size=20), [-9.0, 9.0]])[:, np.newaxis]
    rate = deck.rate(values)
    assert rate is not None
    seen = np.array([deck.draw(values, rng).ravel() - values.ravel() for _ in range(200)])
    for at, value in enumerate(values.ravel()):
        own = error[np.argsort(np.abs(first - value))[:near]]
        wrong = own[own != 0]
        assert rate[at] == pytest.approx(len(wrong) / near)
        expected = set(np.round(wrong, 9)) if len(wrong) else {0.0}
        assert set(np.round(seen[:, at], 9)) == expected


def test_a_pilot_without_errors_changes_nothing() -> None:
    features = np.arange(30.0)[:, np.newaxis]
    for pilot in (
        Pilot(first=features, second=features, columns=(0,)),
        Pilot(first=features, second=features, columns=(0,), together=True),
    ):
        assert largest_level(pilot.items(), features) == float("inf")
        trial = Experiment(
            features=features,
            predictors=(Linear(np.ones(1), -9.0),),
            items=pilot.items(),
            groups=np.zeros(30, int),
            levels=np.array([1.0]),
        )
        done = simulate(trial, replicate_seeds(2, np.random.default_rng(0)))
        np.testing.assert_array_equal(done.sums.moments().mean_squared_error(), 0.0)


def test_error_vectors_keep_errors_together() -> None:
    errors = np.array([[0.0, 0.0], [3.0, 1.0], [-2.0, 0.0], [0.0, -1.0]])
    model = ErrorVectors(errors, np.array([False, True]), minima=np.array([0.0, -np.inf]))
    rate = model.rate(np.zeros((2, 2)))
    assert rate is not None
    assert rate.tolist() == [0.75, 0.75]
    drawn = model.draw(np.array([[1.0, 0.0]] * 300 + [[1.0, 1.0]] * 300), np.random.default_rng(0))
    assert {tuple(row) for row in drawn[:300].tolist()} == {(4.0, 1.0), (0.0, 0.0), (1.0, 1.0)}
    assert {tuple(row) for row in drawn[300:].tolist()} == {(4.0, 0.0), (0.0, 1.0), (1.0, 0.0)}
    with pytest.raises(EvenhandError, match="must be 0 or 1; got 7"):
        model.check(np.array([[1.0, 7.0]]))


def people(n: int, rng: np.random.Generator) -> FloatArray:
    group = rng.integers(0, 2, n)
    return np.column_stack([rng.poisson(3 + group, n), rng.integers(0, 2, n), group]).astype(float)


def second_rating(features: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The truth: 20 % of counts off by a rounded normal, 10 % of the binary entries flipped."""
    count = np.where(rng.random(len(features)) < 0.2, np.rint(rng.normal(0, 2, len(features))), 0.0)
    flip = rng.random(len(features)) < 0.1
    return np.column_stack([features[:, 0] + count, np.where(flip, 1 - features[:, 1], features[:, 1])])


@pytest.mark.parametrize("together", [False, True])
def test_a_pilot_finds_the_truth(together: bool) -> None:
    """The kappa of a large simulation from 400 doubly rated people is that of the true mistakes."""
    rng = np.random.default_rng(4)
    features = people(4_000, rng)
    groups, model = features[:, 2].astype(int), Linear(np.array([0.5, 1.0, 0.2]), -2.4)
    truth = (NoiseItem((0,), Normal(2.0)), NoiseItem((1,), Flip()))
    seeds = replicate_seeds(60, rng)
    expected = []
    for item, level in zip(truth, (0.2, 0.1), strict=True):
        trial = Experiment(
            features=features, predictors=(model,), items=(item,), groups=groups, levels=np.array([level])
        )
        expected.append(1 - simulate(trial, seeds).sums.counts().agreement().mean(axis=0).ravel())
    found = []
    for _ in range(12):
        doubly = people(400, rng)[:, :2]
        rated = second_rating(np.column_stack([doubly, np.zeros(400)]), rng)
        pilot = Pilot(first=doubly, second=rated, columns=(0, 1), categories={1: (0.0, 1.0)}, together=together)
        trial = Experiment(
            features=features, predictors=(model,), items=pilot.items(), groups=groups, levels=np.array([1.0])
        )
        found.append(1 - simulate(trial, seeds[:10]).sums.counts().agreement().mean(axis=0).ravel())
    wrong = np.mean(found, axis=0)
    alone = np.sum(expected, axis=0)  # nearly additive: errors are rare
    assert (wrong < alone + 0.01).all()
    assert (wrong > 0.85 * alone - 0.01).all()


def test_resampling_the_pilot_carries_its_uncertainty() -> None:
    rng = np.random.default_rng(5)
    features = people(2_000, rng)
    doubly = people(40, rng)[:, :2]
    pilot = Pilot(
        first=doubly,
        second=second_rating(np.column_stack([doubly, np.zeros(40)]), rng),
        columns=(0, 1),
        categories={1: (0.0, 1.0)},
    )
    spread = []
    for renew in (None, pilot.resampled()):
        trial = Experiment(
            features=features,
            predictors=(Linear(np.array([0.5, 1.0, 0.2]), -2.4),),
            items=pilot.items(),
            groups=features[:, 2].astype(int),
            levels=np.array([1.0]),
            renew=renew,
        )
        spread.append(simulate(trial, replicate_seeds(80, rng)).sums.counts().pabak().std(axis=0).mean())
    assert spread[1] > 1.5 * spread[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": np.zeros((3, 1))}, "2 columns; got"),
        ({"second": np.array([[0.0, np.nan]] * 4)}, "rating of the pilot is missing"),
        ({"together": True, "categories": {1: (0.0, 1.0, 2.0)}}, "only be drawn together"),
    ],
)
def test_wrong_pilots_are_named(change: dict[str, object], message: str) -> None:
    settings: dict[str, object] = {
        "first": np.zeros((4, 2)),
        "second": np.zeros((4, 2)),
        "columns": (0, 1),
        "categories": {1: (0.0, 1.0)},
    } | change
    with pytest.raises(EvenhandError, match=message):
        Pilot(**settings)  # type: ignore[arg-type]


def test_wrong_decks_are_named() -> None:
    with pytest.raises(EvenhandError, match="from 1 to the 3 people"):
        HotDeck(np.zeros(3), np.zeros(3), near=4)
    with pytest.raises(EvenhandError, match="not one of the categories"):
        learned_confusion([0, 2], [0, 1], (0, 1))


def test_every_name_is_known() -> None:
    assert len(published_names()) == len(set(published_names())) == 20
    for name in published_names():
        published_noise(name)


@pytest.mark.parametrize(
    ("name", "sd", "flips", "minima", "shares"),
    [
        ("raez-2024/all/5", 5.0, True, False, "bernoulli"),
        ("raez-2024-text/all/10", 10**0.5, True, False, "exact"),
        ("raez-2024/numeric/1", 1.0, False, False, "bernoulli"),
        ("raez-2024/categorical", None, True, False, "bernoulli"),
        ("raez-2024-text/minima/5", 5**0.5, True, True, "exact"),
    ],
)
def test_settings_say_what_the_study_did(name: str, sd: float | None, flips: bool, minima: bool, shares: str) -> None:
    found = published_noise(name)
    assert found.sd == (None if sd is None else pytest.approx(sd))
    assert (found.flips, found.minima, found.shares) == (flips, minima, shares)


def test_items_follow_the_setting() -> None:
    items = published_noise("raez-2024/minima/5").items([1, 2], [0], {1: 18.0})
    assert [item.model for item in items] == [Normal(5.0, minimum=18.0), Normal(5.0), Flip()]
    assert [item.model for item in published_noise("raez-2024/all/5").items([1], [0], {1: 18.0})] == [
        Normal(5.0),
        Flip(),
    ]
    assert [item.columns for item in published_noise("raez-2024/categorical").items([1], [0])] == [(0,)]
    assert [item.columns for item in published_noise("raez-2024/numeric/1").items([1], [0])] == [(1,)]


@pytest.mark.parametrize("name", ["raez-2024/all", "raez-2024/all/2", "raez-2024/categorical/5", "nothing", ""])
def test_unknown_names_are_answered(name: str) -> None:
    with pytest.raises(ConfigError, match="There is no noise setting"):
        published_noise(name)


def made_of(found: Sequence[FixedProduct | FixedFunction]) -> list[tuple[int, ...]]:
    return [(one.column, one.perturbed, *([one.factor] if isinstance(one, FixedProduct) else [])) for one in found]


def test_products_of_perturbed_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (3, 300)).astype(float)
    features = np.column_stack([a, b, c, a * b, b * c, np.ones(300), np.zeros(300)])
    assert made_of(fixed_products(features, [0])) == [(3, 0, 1)]
    assert made_of(fixed_products(features, [2])) == [(4, 2, 1)]
    assert made_of(fixed_products(features, [0, 3])) == []
    assert made_of(fixed_products(features, [1])) == [(3, 1, 0), (4, 1, 2)]


def test_a_product_that_fails_in_a_few_rows_is_one() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 5_000)).astype(float)
    features = np.column_stack([a, b, a * b])
    features[1:26, 2] = 9.0
    (found,) = fixed_products(features, [0])
    assert (found.column, found.perturbed, found.factor, found.share) == (2, 0, 1, 0.995)
    features[26:60, 2] = 9.0
    assert fixed_products(features, [0]) == []


def test_a_rare_column_is_no_product_because_both_are_nearly_always_0() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((3, 2_000)) < 0.05).astype(float)
    assert np.mean(a * b == c * (rng.random(2_000) < 0.1)) > 0.99
    assert fixed_products(np.column_stack([a, b, c * (rng.random(2_000) < 0.1)]), [0]) == []
    rare = np.column_stack([a, (b > 0) | (c > 0), a * ((b > 0) | (c > 0))])
    assert made_of(fixed_products(rare, [0])) == [(2, 0, 1)]


def test_functions_of_perturbed_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    age, sex, income = rng.integers(18, 70, 500), rng.integers(0, 2, 500), rng.gamma(2.0, 15.0, 500)
    few = 1.0 - sex
    few[:4] = sex[:4]
    made = [age**2, 12 * age, age >= 40, 1 - sex, few, 2 * income, np.log(income), (income - 30) ** 2, income > 40]
    found = fixed_functions(np.column_stack([age, sex, income, *made]).astype(float), [0, 1, 2])
    assert made_of(found) == [(3, 0), (4, 0), (5, 0), (6, 1), (7, 1), (8, 2), (9, 2), (10, 2), (11, 2)]
    assert [one.repeated for one in found] == [True] * 5 + [False] * 4
    assert found[4].share == 0.992


@pytest.mark.parametrize("people", [5, 12, 20, 40, 300])
def test_columns_that_have_nothing_to_do_with_each_other_are_not_reported(people: int) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        binary = rng.random((people, 12)) < rng.choice([0.02, 0.1, 0.5, 0.9, 0.98], 12)
        correlated = rng.normal(size=people)
        near = 0.95 * correlated + np.sqrt(1 - 0.95**2) * rng.normal(size=people)
        features = np.column_stack(
            [
                binary,
                rng.integers(0, 5, (people, 3)),
                correlated,
                near,
                rng.permutation(people),
                correlated > rng.normal(0, 0.5, people),
            ]
        ).astype(float)
        perturbed = [0, 2, 4, 6, 8, 10, 12, 15]
        assert not fixed_functions(features, perturbed)
        assert not fixed_products(features, perturbed)


@pytest.mark.parametrize("apart", [(), (np.array([3, 4]),)])
def test_everybody_of_a_pilot_can_be_resampled(apart: tuple[IntArray, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[IntArray] = []

    def learn(_: Pilot, everybody: IntArray, __: object) -> tuple[()]:
        drawn.append(everybody)
        return ()

    monkeypatch.setattr(Pilot, "_profiles", learn)
    rated = np.arange(6.0)[:, np.newaxis]
    renew, rng = Pilot(first=rated, second=rated, columns=(0,), apart=apart).resampled(), np.random.default_rng(0)
    for _ in range(300):
        renew(rng)
    times = np.bincount(np.concatenate(drawn), minlength=6)
    assert times == pytest.approx([300] * 6, abs=80)


def test_people_with_the_same_source_foretell_a_column_where_few_are_wrong() -> None:
    """400 people, 20 of each source. A column of 1 in 40 may be wrong for 4: a hundredth of all, a tenth of the 40."""
    source, column = np.repeat(np.arange(20), 20), np.zeros(400, dtype=np.int64)
    column[source < 2] = 1
    for wrong, told in ((0, True), (4, True), (5, False)):
        changed = column.copy()
        changed[[0, 30, 60, 90, 120][:wrong]] ^= 1
        assert _predicted_by(source, changed) is told
    rare = np.zeros(400, dtype=np.int64)  # 16 are 1, a source of 12 and 4 elsewhere: a quarter of 16 is wrong
    rare[:12] = rare[[100, 200, 300, 350]] = 1
    uneven = np.where(np.arange(400) < 12, 0, 1 + np.arange(400) // 40)
    assert _predicted_by(uneven, rare)
    rare[11] = 0
    assert not _predicted_by(uneven, rare)


def test_who_is_alone_with_a_source_is_foretold_the_commonest_value() -> None:
    """40 of 400 are alone: rightly foretold where they have the value of most, wrongly where they have the other."""
    source = np.append(np.arange(360) // 180, 2 + np.arange(40))
    column = np.repeat([1, 0, 0], [180, 180, 40])
    assert _predicted_by(source, column)
    assert not _predicted_by(source, np.repeat([1, 0, 1, 0], [160, 200, 20, 20]))
    assert not _predicted_by(source, np.repeat([1, 0, 1], [180, 180 + 30, 10]))
    pairs = np.arange(400) // 2  # nobody is alone, and half of each pair is wrong
    assert not _predicted_by(pairs, np.arange(400) % 2)


def test_everybody_of_the_pilot_with_an_error_is_drawn_as_often() -> None:
    vectors = ErrorVectors(np.array([[1.0], [0.0], [2.0], [3.0]]), np.array([False]))
    moved = vectors.draw(np.zeros((30_000, 1)), np.random.default_rng(0)).ravel()
    assert np.bincount(moved.astype(int), minlength=4)[1:] / 30_000 == pytest.approx(1 / 3, abs=0.012)
    assert vectors.rate(np.zeros((2, 1))) == pytest.approx(0.75)
