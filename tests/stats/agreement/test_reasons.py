"""Where a metric has no value, and the reason that is given."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.messages import language, may_publish
from evenhand.stats.agreement import (
    ICC_FORMS,
    Undefined,
    ac1,
    alpha,
    binary_counts,
    cohen_kappa,
    concordance,
    conger_kappa,
    fleiss_kappa,
    icc,
    icc_a1,
    icc_interval,
    pabak,
    score_moments,
    weighted_kappa,
    why_undefined,
)
from evenhand.stats.types import FloatArray

NAN = float("nan")
Ratings = list[int]

# first, second, kappa, PABAK
BINARY: dict[str, tuple[Ratings, Ratings, float, float, Undefined | None]] = {
    "same class": ([1, 1, 1], [1, 1, 1], NAN, 1.0, Undefined.ONE_CLASS),
    "opposite classes": ([1, 1, 1], [0, 0, 0], 0.0, -1.0, None),
    "one constant": ([1, 1, 1, 1], [1, 0, 1, 1], 0.0, 0.5, None),
    "identical": ([1, 0, 1], [1, 0, 1], 1.0, 1.0, None),
    "nobody": ([], [], NAN, NAN, Undefined.NOBODY),
    "one person": ([1], [1], NAN, 1.0, Undefined.ONE_CLASS),
    "one person, rated differently": ([1], [0], 0.0, -1.0, None),
}


@pytest.mark.parametrize("case", BINARY)
def test_kappa_and_pabak_at_the_edges(case: str) -> None:
    first, second, kappa, adjusted, reason = BINARY[case]
    r, s = np.array(first, dtype=bool), np.array(second, dtype=bool)
    for value in (cohen_kappa(r, s), weighted_kappa(r, s), conger_kappa(r, s)):
        np.testing.assert_array_equal(value, kappa)
    np.testing.assert_array_equal(pabak(r, s), adjusted)
    for name in ("cohen_kappa", "weighted_kappa", "conger_kappa"):
        assert str(why_undefined(name, r, s)) == (reason or "")
    assert str(binary_counts(r, s).why_undefined("kappa")) == (reason or "")
    assert str(why_undefined("pabak", r, s)) == (Undefined.NOBODY if case == "nobody" else "")


SCORES: dict[str, tuple[list[float], list[float], float, tuple[float, float], Undefined | None]] = {
    "all one number": ([0.1] * 3, [0.1] * 3, NAN, (NAN, NAN), Undefined.NO_SPREAD),
    "two constants": ([0.1] * 3, [0.7] * 3, 0.0, (0.0, 0.0), None),
    "identical": ([0.1, 0.7, 0.35], [0.1, 0.7, 0.35], 1.0, (1.0, 1.0), None),
    "nobody": ([], [], NAN, (NAN, NAN), Undefined.NOBODY),
    "one person": ([0.2], [0.3], NAN, (NAN, NAN), Undefined.ONE_PERSON),
    "two in opposite order": ([0.1, 0.3], [0.3, 0.1], NAN, (NAN, NAN), Undefined.ZERO_DENOMINATOR),
}


@pytest.mark.parametrize("case", SCORES)
def test_icc_at_the_edges(case: str) -> None:
    x, y, value, limits, reason = SCORES[case]
    np.testing.assert_array_equal(icc_a1(x, y), value)
    np.testing.assert_array_equal(score_moments(x, y).icc_a1(), value)
    np.testing.assert_array_equal(icc_interval(x, y), limits)
    assert str(why_undefined("icc_a1", x, y)) == (reason or "")
    assert str(score_moments(x, y).why_undefined("icc_a1")) == (reason or "")


def test_icc_of_one_constant_rater_is_nothing() -> None:
    assert icc_a1([0.3] * 5, [0.1, 0.2, 0.4, 0.9, 0.3]) == pytest.approx(0.0, abs=1e-15)
    low, high = icc_interval([0.3] * 5, [0.1, 0.2, 0.4, 0.9, 0.3])
    assert low < 0 < high


@pytest.mark.parametrize("form", ICC_FORMS)
def test_every_form_says_why_it_is_undefined(form: str) -> None:
    for x, y, *_ in SCORES.values():
        value = icc(x, y, form=form)  # type: ignore[arg-type]
        assert np.isnan(value) == (str(why_undefined(f"icc {form}", x, y)) != "")


def test_the_constant_that_is_not_exact_in_binary_has_no_spread() -> None:
    x = np.full(1_000, 0.1)
    assert np.isnan(icc_a1(x, x))
    assert np.isnan(concordance(x, x))
    assert str(why_undefined("concordance", x, x)) == Undefined.NO_SPREAD
    weight = np.ones(1_000)
    weight[0], x[0] = 0.0, 0.7
    assert np.isnan(icc_a1(x, x, weight=weight))
    assert str(why_undefined("icc_a1", x, x, weight=weight)) == Undefined.NO_SPREAD


def test_agreement_on_a_class_that_never_occurs() -> None:
    assert np.isnan(binary_counts([0, 0], [0, 0]).positive_agreement())
    assert np.isnan(binary_counts([1, 1], [1, 1]).negative_agreement())
    assert str(why_undefined("positive_agreement", [0, 0], [0, 0])) == Undefined.NO_POSITIVE
    assert str(why_undefined("negative_agreement", [1, 1], [1, 1])) == Undefined.NO_NEGATIVE


def test_ac1_and_alpha_of_one_class() -> None:
    assert ac1([1, 1], [1, 1]) == 1.0
    assert str(why_undefined("ac1", [1, 1], [1, 1])) == ""
    assert np.isnan(alpha([1, 1], [1, 1]))
    assert str(why_undefined("alpha", [1, 1], [1, 1])) == Undefined.ONE_CLASS
    assert np.isnan(fleiss_kappa(["a", "a"], ["a", "a"]))


def test_nobody_with_two_ratings() -> None:
    r, s = [1.0, NAN], [NAN, 0.0]
    for name, function in (("alpha", alpha), ("ac1", ac1), ("fleiss_kappa", fleiss_kappa)):
        assert np.isnan(function(r, s))
        assert str(why_undefined(name, r, s)) == Undefined.NO_PAIR


def test_no_spread_at_all_is_undefined_for_the_adjusted_icc() -> None:
    assert np.isnan(score_moments([0.5, 0.5], [0.5, 0.5]).spread_adjusted(0.0))


def test_reasons_come_one_for_each_simulation() -> None:
    second: FloatArray = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert why_undefined("cohen_kappa", [1, 1, 1], second).tolist() == [Undefined.ONE_CLASS, ""]
    assert why_undefined("alpha", [1, 1, 1], second).tolist() == [Undefined.ONE_CLASS, ""]


def test_an_unknown_statistic_is_named() -> None:
    with pytest.raises(EvenhandError, match="did you mean 'cohen_kappa'"):
        why_undefined("cohens_kappa", [0, 1], [1, 0])
    with pytest.raises(EvenhandError, match="'pabak' compares two raters; got 3"):
        why_undefined("pabak", [0, 1], [1, 0], [1, 1])


def test_alpha_looks_only_at_people_with_two_ratings() -> None:
    first, second = [1, 1, 1, 0], [1, 1, 1, np.nan]  # the only 0 has no partner
    assert str(why_undefined("alpha", first, second)) == str(why_undefined("alpha", first[:3], second[:3])) != ""
    assert str(why_undefined("alpha", [*first, 0], [*second, 0])) == ""


def test_every_reason_has_a_sentence_in_every_language() -> None:
    assert [reason.message.id for reason in Undefined] == [f"agreement_stats.{reason}" for reason in Undefined]
    assert all(language("de").translates(reason.message) for reason in Undefined)
    assert Undefined.ONE_PERSON.message.id == "agreement_stats.one_person"
    assert not may_publish(Undefined.ONE_PERSON.message, 10)  # it is a count of one
    assert may_publish(Undefined.NOBODY.message, 10)
