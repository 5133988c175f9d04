"""Two raters' categories against scikit-learn, statsmodels, the published paradoxes, and Byrt's identity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import (
    BinaryCounts,
    ac1,
    alpha,
    bias_index,
    binary_counts,
    category_table,
    cohen_kappa,
    kappa_from_pabak,
    pabak,
    pabak_from_kappa,
    pabak_minus_kappa,
    prevalence_index,
    weighted_kappa,
)

counts = st.tuples(*[st.integers(0, 60)] * 4)


def people(a: int, b: int, c: int, d: int) -> tuple[list[int], list[int]]:
    """Ratings with these counts of (1, 1), (0, 1), (1, 0) and (0, 0)."""
    return [1] * a + [0] * b + [1] * c + [0] * d, [1] * a + [1] * b + [0] * c + [0] * d


# Feinstein and Cicchetti (1990): yes/yes, first only, second only, no/no; kappa and PABAK
PARADOXES = [
    ((40, 6, 9, 45), 0.6995192308, 0.70, -0.05, -0.03),
    ((80, 5, 10, 5), 0.3181818182, 0.70, 0.75, -0.05),
    ((45, 25, 15, 15), 0.1304347826, 0.20, 0.30, 0.10),
    ((25, 5, 35, 35), 0.2592592593, 0.20, -0.10, -0.30),
]


@pytest.mark.replication
@pytest.mark.parametrize(("cells", "kappa", "adjusted", "prevalence", "bias"), PARADOXES)
def test_the_paradoxes_of_feinstein_and_cicchetti(
    cells: tuple[int, int, int, int], kappa: float, adjusted: float, prevalence: float, bias: float
) -> None:
    r, s = people(*cells)
    assert cohen_kappa(r, s) == pytest.approx(kappa, abs=1e-10)
    assert pabak(r, s) == pytest.approx(adjusted, abs=1e-12)
    assert prevalence_index(r, s) == pytest.approx(prevalence, abs=1e-12)
    assert bias_index(r, s) == pytest.approx(bias, abs=1e-12)


@given(counts)
def test_kappa_of_two_classes_is_that_of_scikit_learn(cells: tuple[int, int, int, int]) -> None:
    r, s = people(*cells)
    ours = [cohen_kappa(r, s), cohen_kappa(np.array(r, bool), np.array(s, bool)), binary_counts(r, s).kappa()]
    if len(set(r) | set(s)) < 2:
        assert np.isnan(ours).all()
    else:
        np.testing.assert_allclose(ours, cohen_kappa_score(r, s), atol=1e-14)


@pytest.mark.parametrize(("distance", "name"), [("linear", "linear"), ("quadratic", "quadratic")])
def test_weighted_kappa_is_that_of_scikit_learn_and_statsmodels(distance: str, name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        q = int(rng.integers(2, 7))
        r = np.concatenate([np.arange(q), rng.integers(0, q, 40)])
        s = np.clip(r + rng.integers(-1, 2, r.size), 0, q - 1)
        ours = weighted_kappa(r, s, distance=distance)
        assert ours == pytest.approx(cohen_kappa_score(r, s, weights=name), abs=1e-14)
        table = category_table(r, s)
        assert ours == pytest.approx(cohens_kappa(table, wt=name, return_results=False), abs=1e-14)
        assert cohen_kappa(r, s) == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-14)
        matrix = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) ** (1 if distance == "linear" else 2)
        assert weighted_kappa(r, s, distance=matrix) == pytest.approx(float(ours), abs=1e-14)


def test_weighted_kappa_with_the_wrong_kind_of_distance() -> None:
    with pytest.raises(EvenhandError, match="did you mean 'linear'"):
        weighted_kappa([0, 1], [1, 0], distance="liner")
    with pytest.raises(EvenhandError, match="2 by 2 matrix"):
        weighted_kappa([0, 1], [1, 0], distance=np.ones((2, 2)))


def test_an_unused_category_is_a_step_only_when_it_is_named() -> None:
    r, s = [1, 1, 1, 3, 4], [1, 3, 1, 4, 4]
    named = weighted_kappa(r, s, categories=[1, 2, 3, 4])
    assert named == pytest.approx(cohen_kappa_score(r, s, labels=[1, 2, 3, 4], weights="linear"), abs=1e-14)
    assert named != pytest.approx(float(weighted_kappa(r, s)))
    assert cohen_kappa(r, s, categories=[4, 3, 2, 1]) == pytest.approx(float(cohen_kappa(r, s)))


def test_categories_may_be_text_and_follow_the_order_given() -> None:
    r, s = ["low", "high", "medium", "low"], ["low", "medium", "medium", "high"]
    order = ["low", "medium", "high"]
    expected = cohen_kappa_score(r, s, labels=order, weights="quadratic")
    assert weighted_kappa(r, s, distance="quadratic", categories=order) == pytest.approx(expected, abs=1e-14)
    with pytest.raises(EvenhandError, match="'high' is not one of `categories`"):
        cohen_kappa(r, s, categories=["low", "medium"])


@given(counts)
def test_byrts_relation_holds_in_both_directions(cells: tuple[int, int, int, int]) -> None:
    table = BinaryCounts(*(np.array(float(cell)) for cell in cells))
    kappa, adjusted = table.kappa(), table.pabak()
    prevalence, bias = table.prevalence_index(), table.bias_index()
    if np.isnan(kappa):
        return
    np.testing.assert_allclose(kappa_from_pabak(adjusted, prevalence, bias), kappa, atol=1e-13)
    np.testing.assert_allclose(pabak_from_kappa(kappa, prevalence, bias), adjusted, atol=1e-13)
    parts = pabak_minus_kappa(kappa, prevalence, bias)
    np.testing.assert_allclose(parts.prevalence + parts.bias, adjusted - kappa, atol=1e-13)
    assert parts.prevalence >= 0 >= parts.bias


def test_the_two_directions_of_byrts_relation_are_mirrored() -> None:
    """Setting PI to 0 gives kappa on the way to PABAK, and PABAK on the way to kappa."""
    table = binary_counts(*people(80, 5, 10, 5))
    kappa, adjusted, pi, bi = table.kappa(), table.pabak(), table.prevalence_index(), table.bias_index()
    assert pabak_from_kappa(kappa, 0.0, bi) == pytest.approx(float(kappa), abs=0.01)
    assert pabak_from_kappa(kappa, pi, 0.0) == pytest.approx(float(adjusted), abs=0.01)
    assert kappa_from_pabak(adjusted, 0.0, bi) == pytest.approx(float(adjusted), abs=0.01)
    assert kappa_from_pabak(adjusted, pi, 0.0) == pytest.approx(float(kappa), abs=0.01)
    assert np.isnan(kappa_from_pabak(1.0, 1.0, 0.0))


@given(counts)
def test_each_statistic_follows_its_definition(cells: tuple[int, int, int, int]) -> None:
    a, b, c, d = cells
    r, s = people(*cells)
    n = a + b + c + d
    if n == 0:
        assert np.isnan(pabak(np.array([], bool), np.array([], bool)))
        return
    assert pabak(r, s) == pytest.approx(2 * (a + d) / n - 1, abs=1e-14)
    if 2 * a + b + c:
        assert binary_counts(r, s).positive_agreement() == pytest.approx(2 * a / (2 * a + b + c))
    if 2 * d + b + c:
        assert binary_counts(r, s).negative_agreement() == pytest.approx(2 * d / (2 * d + b + c))
    q = (2 * a + b + c) / (2 * n)
    chance = 2 * q * (1 - q)
    expected = ((a + d) / n - chance) / (1 - chance)
    assert binary_counts(r, s).ac1() == pytest.approx(expected, abs=1e-13)
    assert ac1(r, s) == pytest.approx(expected, abs=1e-13)
    np.testing.assert_allclose(binary_counts(r, s).alpha(), alpha(r, s), atol=1e-13)


def test_positive_and_negative_agreement_swap_with_the_labels() -> None:
    r, s = people(7, 2, 3, 11)
    flipped_r, flipped_s = 1 - np.array(r), 1 - np.array(s)
    flipped = binary_counts(flipped_r, flipped_s)
    assert binary_counts(r, s).positive_agreement() == flipped.negative_agreement()
    assert prevalence_index(r, s) == -prevalence_index(flipped_r, flipped_s)
    assert bias_index(r, s) == -bias_index(s, r)


@given(arrays(np.int64, (3, 4, 15), elements=st.integers(0, 2)), arrays(np.int64, 15, elements=st.integers(0, 2)))
def test_leading_axes_are_simulations(simulated: npt.NDArray[np.int64], base: npt.NDArray[np.int64]) -> None:
    one_by_one = [[weighted_kappa(base, second, categories=[0, 1, 2]) for second in row] for row in simulated]
    np.testing.assert_array_equal(weighted_kappa(base, simulated, categories=[0, 1, 2]), one_by_one)
    binary = simulated > 0
    each = [[cohen_kappa(base > 0, second) for second in row] for row in binary]
    np.testing.assert_array_equal(cohen_kappa(base > 0, binary), each)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 1, 2], [0, 1, 1], "must be 0 or 1; got .*2"),
        ([0, 1], [0, 1, 1], "same people; got 2, 3 ratings"),
        ([0.0, np.nan], [0, 1], "must be 0 or 1; got .*nan"),
        (1, 1, "people on the last axis"),
        (["a", "b"], ["a", "b"], "must be 0 or 1"),
    ],
)
def test_wrong_ratings_are_named(first: npt.ArrayLike, second: npt.ArrayLike, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        pabak(first, second)


def test_a_missing_category_is_an_error_for_two_raters() -> None:
    with pytest.raises(EvenhandError, match="A rating is missing"):
        cohen_kappa(np.array(["a", None]), ["a", "b"])


@pytest.mark.parametrize("weight", [[1.0, -1.0], [1.0, np.nan], [1.0]])
def test_wrong_weights_are_named(weight: list[float]) -> None:
    with pytest.raises(EvenhandError, match="`weight` must"):
        cohen_kappa([0, 1], [1, 0], weight=weight)


def test_without_indices_kappa_and_pabak_are_the_same() -> None:
    assert float(kappa_from_pabak(0.7)) == pytest.approx(0.7)
    assert float(pabak_from_kappa(0.7)) == pytest.approx(0.7)


def test_nobody_has_a_table_of_one_empty_cell() -> None:
    nothing = np.array([], dtype=np.str_)  # no categories either; of numbers there are always 0 and 1
    assert category_table(nothing, nothing).tolist() == [[0.0]]
    assert category_table([], []).tolist() == [[0.0, 0.0], [0.0, 0.0]]
