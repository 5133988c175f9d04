"""Laws that every agreement metric obeys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand.stats import agreement as ag
from evenhand.stats.types import FloatArray

Function = Callable[..., FloatArray]

LABELS: dict[str, Function] = {
    "cohen_kappa": ag.cohen_kappa,
    "weighted_kappa": ag.weighted_kappa,
    "pabak": ag.pabak,
    "prevalence_index": ag.prevalence_index,
    "bias_index": ag.bias_index,
    "positive_agreement": lambda *raters, **rest: ag.binary_counts(*raters, **rest).positive_agreement()[()],
    "negative_agreement": lambda *raters, **rest: ag.binary_counts(*raters, **rest).negative_agreement()[()],
    "fleiss_kappa": ag.fleiss_kappa,
    "conger_kappa": ag.conger_kappa,
    "bennett_s": ag.bennett_s,
    "ac1": ag.ac1,
    "alpha": ag.alpha,
}
SCORES: dict[str, Function] = {
    **{f"icc {form}": lambda *raters, form=form, **rest: ag.icc(*raters, form=form, **rest) for form in ag.ICC_FORMS},
    **{
        f"icc_interval {form}": lambda *raters, form=form, **rest: np.stack(
            ag.icc_interval(*raters, form=form, **rest), axis=-1
        )
        for form in ag.ICC_FORMS
    },
    "concordance": ag.concordance,
    "spread_adjusted_icc": lambda first, second, **rest: ag.score_moments(first, second, **rest).spread_adjusted(0.4)[
        ()
    ],
    "alpha interval": lambda *raters, **rest: ag.alpha(*raters, scale="interval", **rest),
    "alpha ordinal": lambda *raters, **rest: ag.alpha(*raters, scale="ordinal", **rest),
}
ALL = LABELS | SCORES
ONE_SIDED = {"bias_index"}
SHIFTABLE = [name for name in SCORES if name != "spread_adjusted_icc"]


def raters(name: str, seed: int = 0, people: int = 25) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(0.5, 0.4, people)
    y = x + rng.normal(0.05, 0.2, people)
    return np.array([x > 0.5, y > 0.5]).astype(int) if name in LABELS else np.array([x, y])


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_people_does_not_matter(name: str) -> None:
    found = raters(name)
    order = np.random.default_rng(1).permutation(found.shape[1])
    np.testing.assert_allclose(ALL[name](*found[:, order]), ALL[name](*found), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in ALL if name not in ONE_SIDED])
def test_the_order_of_raters_does_not_matter(name: str) -> None:
    first, second = raters(name)
    np.testing.assert_allclose(ALL[name](second, first), ALL[name](first, second), rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_weights_equal_repetition(name: str) -> None:
    found = raters(name)
    times = np.random.default_rng(2).integers(0, 4, found.shape[1])
    repeated = np.repeat(found, times, axis=1)
    np.testing.assert_allclose(ALL[name](*found, weight=times), ALL[name](*repeated), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_weights_may_be_simulations(name: str) -> None:
    found = raters(name)
    weight = np.random.default_rng(3).integers(0, 3, (4, found.shape[1]))
    each = [ALL[name](*found, weight=one) for one in weight]
    np.testing.assert_allclose(ALL[name](*found, weight=weight), each, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_everything_agrees_with_itself(name: str) -> None:
    if name in {"prevalence_index", "bias_index"}:
        return
    first, _ = raters(name)
    np.testing.assert_allclose(ALL[name](first, first), 1.0, atol=1e-15)


@pytest.mark.parametrize("name", LABELS)
def test_booleans_are_zeros_and_ones(name: str) -> None:
    found = raters(name)
    assert ALL[name](*found.astype(bool)) == pytest.approx(float(ALL[name](*found)), abs=1e-15)


@pytest.mark.parametrize("name", SHIFTABLE)
def test_the_unit_of_scores_does_not_matter(name: str) -> None:
    found = raters(name)
    np.testing.assert_allclose(ALL[name](*(1e4 + 50 * found)), ALL[name](*found), rtol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_one_number_comes_back_as_one_number(name: str) -> None:
    value = ALL[name](*raters(name))
    assert value.shape == ((2,) if "interval " in name and name.startswith("icc") else ())
    if value.shape == ():
        assert round(value, 3) == pytest.approx(float(value), abs=5e-4)  # type: ignore[call-overload]


def test_four_thousand_kappas_at_once() -> None:
    """1,000 noisy ratings of 6,172 people, four groups: all at once, equal to one at a time."""
    rng = np.random.default_rng(0)
    base, noisy = rng.random(6_172) < 0.4, rng.random((1_000, 6_172)) < 0.4
    group = rng.integers(0, 4, 6_172)
    for g in range(4):
        kappas = ag.cohen_kappa(base[group == g], noisy[:, group == g])
        assert kappas.shape == (1_000,)
        assert kappas[17] == ag.cohen_kappa(base[group == g].astype(int), noisy[17, group == g].astype(int))
