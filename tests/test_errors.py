"""The errors and the sentences they share."""

from __future__ import annotations

import pytest

from evenhand.errors import (
    ConfigError,
    DataError,
    EvenhandError,
    MissingExtraError,
    count,
    did_you_mean,
    problem,
    require_choice,
    require_extra,
)


@pytest.mark.parametrize("kind", [DataError, ConfigError, MissingExtraError])
def test_one_base_that_is_a_value_error(kind: type[EvenhandError]) -> None:
    assert issubclass(kind, EvenhandError)
    assert issubclass(kind, ValueError)


def test_one_problem_is_the_message() -> None:
    assert str(DataError("it is broken.")) == "it is broken."
    assert DataError("it is broken.").problems == ("it is broken.",)


def test_several_problems_are_a_list() -> None:
    error = DataError([problem("one."), problem("two.")])
    assert str(error) == "2 problems with the data:\n  - one.\n  - two."
    assert error.problems == ("one.", "two.")


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("rcae", ["race", "sex"], "did you mean 'race'?"),
        ("RACE", ["race", "sex"], "did you mean 'race'?"),
        ("risk", ["risks", "risk_b", "x"], "did you mean 'risks' or 'risk_b'?"),
        ("zip", ["race", "sex"], "known names: 'race', 'sex'"),
        (5, ["race"], "known names: 'race'"),
        ("zip", [], "there are none"),
        (
            "zzz",
            [f"c{n}" for n in range(14)],
            "known names: " + ", ".join(f"'c{n}'" for n in range(12)) + " and 2 more",
        ),
    ],
)
def test_hints(name: object, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known).text == hint


def test_choices() -> None:
    require_choice("kind", "ratio", ["difference", "ratio"])
    with pytest.raises(ConfigError, match=r"^`kind` got 'ratoi'; did you mean 'ratio'\?$"):
        require_choice("kind", "ratoi", ["difference", "ratio"])


def test_extras() -> None:
    require_extra("numpy", "models", "counting")
    with pytest.raises(MissingExtraError) as caught:
        require_extra("no_such_module", "models", "Fitting models")
    assert str(caught.value) == (
        "Fitting models needs the package 'no_such_module', which is not installed; "
        "install it with: pip install 'evenhand[models]'"
    )
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (1200, "1,200 rows")])
def test_counts(number: int, text: str) -> None:
    assert count(number, "row") == text


def test_an_irregular_plural() -> None:
    assert [count(number, "person", "people") for number in (1, 2)] == ["1 person", "2 people"]
