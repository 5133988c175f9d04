"""Settings: frozen, and every mistake named at once."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError, field_validator

from evenhand.errors import ConfigError
from evenhand.settings import Settings


class Inner(Settings):
    column: str
    share: float = Field(0.5, ge=0, le=1)


class Options(Settings):
    confidence: float = 0.95
    kind: Literal["ratio", "difference"] = "ratio"
    names: tuple[str, ...] = ()
    inner: dict[str, Inner] = Field({})
    either: int | str | None = None

    @field_validator("names")
    @classmethod
    def _no_blank(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "" in value:
            raise ValueError("a name is blank")
        return value


def refusal(**values: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        Options.parse(values, "[options]")
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"confidnce": 1}, "`confidnce` in [options]: there is no such setting; did you mean 'confidence'?"),
        (
            {"confidence": "high"},
            "`confidence` in [options]: must be a number; got 'high'.",
        ),
        ({"kind": "sum"}, "`kind` in [options]: must be 'ratio' or 'difference'; got 'sum'."),
        ({"names": ["a", ""]}, "`names` in [options]: a name is blank."),
        ({"inner": {"x": {}}}, "`inner.x.column` in [options]: it is required and was not given."),
        (
            {"inner": {"x": {"column": "c", "shar": 1}}},
            "`inner.x.shar` in [options]: there is no such setting; did you mean 'share'?",
        ),
        (
            {"inner": {"x": {"column": "c", "share": 2}}},
            "`inner.x.share` in [options]: must be less than or equal to 1; got 2.",
        ),
    ],
)
def test_one_mistake(values: dict[str, Any], sentence: str) -> None:
    assert refusal(**values) == sentence


def test_several_mistakes_at_once() -> None:
    assert refusal(confidence="x", kinds=1).splitlines() == [
        "`confidence` in [options]: must be a number; got 'x'",
        "`kinds` in [options]: there is no such setting; did you mean 'kind'?",
    ]


def test_a_union_is_told_without_its_types() -> None:
    assert "`either` in [options]: " in refusal(either=[1])
    assert "either.int" not in refusal(either=[1])


def test_settings_are_frozen() -> None:
    options = Options.parse({"confidence": 0.9}, "[options]")
    assert options.confidence == 0.9
    with pytest.raises(ValidationError, match="frozen"):
        options.confidence = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("values", [None, 3, ["confidence"]])
def test_settings_that_are_no_dictionary_are_refused(values: Any) -> None:
    with pytest.raises(ConfigError, match=r"\[options\] must be settings by name, in a dictionary; got "):
        Options.parse(values, "[options]")
