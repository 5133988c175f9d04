"""A message that would reveal a small count is withheld, whatever its sentence does not declare."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.messages import Catalogue, Message, may_publish
from evenhand.messages.catalogue import JOINTS
from evenhand.messages.disclosure import SAFE, DisclosureRule
from evenhand.messages.formats import Format

LEAST = 10
KINDS = (*SAFE, "count", "", "figure", "unit", *Format.__args__)  # type: ignore[attr-defined]
say = Catalogue(
    "disclosure_test",
    "tests.messages",
    {
        "waited": ("{n:count} patient of {ward:name} waited.", "{n:count} patients of {ward:name} waited."),
        "some": ("A patient waited.", "Patients waited."),
        "of": "{n:count} of {all:count} patients waited.",
        "mean": "{group:group} waited {days:number} days, at level {level:set}.",
        "shown": "{group:group} waited {days:unit} days.",
        "level": "Noise {level:percent safe}.",
        "bare": "{what}",
        "several": "{parts:name and}",
        "two_kinds": "{n:count} of {n:count safe}",
        "why": "undefined: {why}",
    },
)


@pytest.mark.parametrize("n", [1, 3, 9, 9.5, -3, True, "3", "three"])
def test_a_small_count_is_withheld_in_any_form(n: Any) -> None:
    for message in (say("waited", n=n, ward="north"), say("some", n=n), say("two_kinds", n=n)):
        assert not may_publish(message, LEAST)
        assert not may_publish(say("why", why=message), LEAST)
        assert not may_publish(say("several", parts=("a", message)), LEAST)


@pytest.mark.parametrize("n", [0, 10, 1000])
def test_no_people_and_many_people_are_published(n: int) -> None:
    assert may_publish(say("waited", n=n, ward="north"), LEAST)


def test_a_count_that_follows_by_subtraction_is_withheld() -> None:
    assert not may_publish(say("of", n=97, all=100), LEAST)
    assert may_publish(say("of", n=50, all=100), LEAST)
    parts = say("several", parts=(say("waited", n=97, ward="a"), say("waited", n=100, ward="b")))
    assert not may_publish(parts, LEAST)
    rule = DisclosureRule(LEAST, counts=frozenset({3, 97, 100}))
    assert [rule.may_publish(say("waited", n=n, ward="a")) for n in (0, 3, 98, 100)] == [False, False, False, True]
    assert rule.may_publish(say("of", n=97, all=100))  # the tables hold both


def test_what_is_not_declared_is_withheld() -> None:
    for what in (3, 300, 0.5, "three people", "3"):
        assert not may_publish(say("bare", what=what), LEAST)
    assert not may_publish(say("mean", group="A", days=12.5, level=3), LEAST)
    assert not may_publish(Message("3 people waited."), LEAST)
    assert not may_publish(Message("no_such_catalogue.key", {"n": 300}), LEAST)
    assert not may_publish(Message("disclosure_test.waited", {"n": 300}), LEAST)  # it lacks an argument


def test_names_settings_and_safe_numbers_are_published() -> None:
    assert may_publish(say("level", level=0.2), LEAST)
    assert may_publish(say("several", parts=("north", "south")), LEAST)


def test_a_number_that_the_published_tables_hold_is_published() -> None:
    rule = DisclosureRule(LEAST, numbers=frozenset({12.5, 3.0, 1.0}))
    assert rule.may_publish(say("mean", group="A", days=12.5, level=3))
    assert rule.may_publish(say("mean", group="A", days=-12.5, level=3))
    assert not rule.may_publish(say("mean", group="A", days=12.6, level=3))
    assert not rule.may_publish(say("mean", group="A", days=3.0, level=3))  # it reads as a count
    assert rule.may_publish(say("shown", group="A", days=1.0, unit="percent"))
    assert not rule.may_publish(say("shown", group="A", days=1.0, unit="number"))


def test_arguments_that_no_sentence_shows_are_not_written() -> None:
    rule = DisclosureRule(LEAST, names=frozenset({"A"}))
    inner = say("waited", n=30, ward="north", secret=3)
    message = say("why", why=inner, n=30, worse_off="A", hidden="3 people", few=3)
    published = rule.publishable(message)
    assert published is not None
    assert published.text == message.text
    assert set(published.args) == {"why", "n", "worse_off"}
    assert "3 people" not in str(published.to_dict())
    assert "secret" not in str(published.to_dict())


@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["", *JOINTS])), min_size=1, max_size=4),
    place=st.integers(0, 3),
    small=st.integers(1, LEAST - 1),
    others=st.lists(st.one_of(st.integers(0, 5000), st.floats(allow_nan=False), st.text(max_size=8)), min_size=4),
    depth=st.integers(0, 3),
    form=st.sampled_from([lambda n: n, float, str, lambda n: (n,), lambda n: [40, n], lambda n: f"{n} people"]),
)
def test_no_sentence_with_a_small_count_is_ever_published(
    kinds: list[tuple[str, str]], place: int, small: int, others: list[Any], depth: int, form: Any
) -> None:
    """Whatever else stands in a sentence, and however deep: a small number that is not of a safe kind withholds it."""
    place %= len(kinds)
    declared = [(f"{of} {joint}".strip(), of) for of, joint in kinds]
    if declared[place][1] in SAFE:
        declared[place] = ("count", "count")
    sentence = " ".join(f"{{x{at}:{kind}}}" for at, (kind, _) in enumerate(declared))
    room = Catalogue("disclosure_drawn", "tests.messages", {"it": sentence})
    args = {f"x{at}": others[at] for at in range(len(declared))} | {f"x{place}": form(small), "unit": "number"}
    message = room("it", **args)
    for _ in range(depth):
        message = say("why", why=message)
    assert not may_publish(message, LEAST)
    if declared[place][1] not in ("percent", "points", "signed_points"):  # 100% is no count
        assert not DisclosureRule(LEAST, numbers=frozenset({float(small)})).may_publish(message)
