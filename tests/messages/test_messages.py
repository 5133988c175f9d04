"""A message is data: it renders in every language and travels through JSON, and no value is taken for a part of it."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from evenhand.errors import DataError, EvenhandError, SettingError, problem
from evenhand.messages import Catalogue, Message, language
from evenhand.messages.shared import say

WAIT = Catalogue(
    "waiting_test",
    "not_installed",
    {
        "long": "{group:group} wait {days:number} days.",
        "left": ("{n:count} person left.", "{n:count} people left."),
        "both": "{first} {second:sentence}",
        "names": "{names:name and}; {parts:semicolons}",
        "settings": "min_count {least:set}, {c:confidence}, {p:figure}",
    },
)


def test_a_message_is_its_id_and_arguments() -> None:
    message = WAIT("long", group="F", days=2.5)
    assert (message.id, message.args) == ("waiting_test.long", {"group": "F", "days": 2.5})
    assert str(message) == message.text == "F wait 2.500 days."


def test_a_message_travels_through_json_and_pickle() -> None:
    message = WAIT("both", first=WAIT("left", n=1), second=WAIT("names", names=("a", "b"), parts=(WAIT("left", n=2),)))
    written = json.loads(json.dumps(message.to_dict()))
    assert Message.from_dict(written) == message == pickle.loads(pickle.dumps(message))  # noqa: S301
    assert written["text"] == "1 person left. A and b; 2 people left."


def test_a_message_whose_catalogue_is_not_installed_keeps_its_text() -> None:
    written: dict[str, Any] = {"id": "not_installed.long", "args": {"n": 3}, "text": "3 people waited {long}."}
    assert Message.from_dict(written).text == "3 people waited {long}."


def test_equal_messages_are_one_in_a_set() -> None:
    assert len({WAIT("left", n=2), WAIT("left", n=2), WAIT("left", n=3)}) == 2


@pytest.mark.parametrize(("n", "text"), [(0, "0 people left."), (1, "1 person left."), (1200, "1,200 people left.")])
def test_a_sentence_agrees_with_its_number(n: int, text: str) -> None:
    assert WAIT("left", n=n).text == text


@pytest.mark.parametrize("value", ["{n}", "{n:count}", "`alpha`", "missing='drop'", "%s", "{", "}", "core.ok"])
def test_a_value_is_never_taken_for_a_part_of_the_sentence(value: str) -> None:
    assert WAIT("long", group=value, days=1.0).text == f"{value} wait 1.000 days."
    assert str(EvenhandError("column {column!r} is odd.", column=value)) == f"column {value!r} is odd."


def test_a_sentence_that_is_not_in_the_catalogue_or_lacks_an_argument_is_refused() -> None:
    with pytest.raises(KeyError):
        WAIT("lnog", group="F", days=1.0)
    with pytest.raises(TypeError, match="needs days"):
        WAIT("long", group="F")


def test_an_id_that_no_catalogue_has_is_its_own_text() -> None:
    assert Message("it is {why}.", {"why": "so"}).text == "it is so."


def test_german_writes_numbers_words_and_labels_its_own_way() -> None:
    german = language("de")
    message = say("value", where="x", title="AUC", value=0.1234, unit="percent")
    assert german.render(message) == "x: AUC 12,3\u00a0%."
    assert german.render(say("small", n=1200, least=10)).startswith("nur 1.200 ")
    assert german.label("(overall)") == "(alle)"
    assert german.label("overall") == "overall"
    assert german.join(["a", "b", "c"]) == "a, b und c"


def test_a_missing_translation_falls_back_to_english_and_is_marked() -> None:
    german = language("de")
    english = WAIT("long", group="(overall)", days=0.5)
    assert german.render(english) == "(overall) wait 0.500 days."
    assert not german.translates(english)
    assert not german.translates(say("undefined", why=english))
    assert german.translates(say("undefined", why=say("nobody")))


def test_errors_survive_a_pickle_with_their_arguments() -> None:
    error = DataError([problem("a {x!r}", x="'"), problem("b {n:,}", n=1200)])
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert str(copy) == str(error) == '2 problems with the data:\n  - a "\'"\n  - b 1,200'
    assert isinstance(SettingError("no {x}", x=1), ValueError)
