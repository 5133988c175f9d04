"""What records reveal of few people follows from what their columns declare; what is not declared is withheld."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.disclosure import RecordFilter, revealed_counts, whole_parts, without_values
from evenhand.core.records import Gap, LeftOut, Record, Reveals, Value, column, declarations
from evenhand.messages import Message
from evenhand.messages.disclosure import DisclosureRule
from evenhand.messages.shared import say

LEAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(Record):
    """A record with a column of every kind."""

    ward: str = column("the ward", reveals="name")
    n: int = column("the people", reveals="count")
    came_late: int | None = column("those of them who came late", None, reveals="count")
    doctors: int | None = column("doctors who saw them", None, reveals="count", of="")
    late: float | None = column("the share of them that came late", None, reveals="share")
    days: float | None = column("their mean wait", None, reveals="number")
    level: float = column("a setting", 0.5, reveals="safe")
    longest: float | None = column("the longest wait", None)
    status: Message = column("what to know", say("ok"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted(Record):
    """Numbers of nobody knows how many."""

    ward: str = column("the ward", reveals="name")
    days: float | None = column("the mean wait", None, reveals="number")
    remark: str = column("what else", "")


def filtered(counts: frozenset[float] | None = None) -> RecordFilter:
    return RecordFilter(DisclosureRule(LEAST, counts=counts))


@pytest.mark.parametrize("kind", [Value, Gap, LeftOut])
def test_every_shared_column_is_declared(kind: type[Record]) -> None:
    assert {each.reveals for each in declarations(kind).values()} <= set(get_args(Reveals)) - {"undeclared"}


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        (Visit(ward="a", n=100), [100]),
        (Visit(ward="a", n=100, came_late=97), [100, 97, 3]),
        (Visit(ward="a", n=100, doctors=97), [100, 97]),
        (Visit(ward="a", n=100, late=0.97), [100, 97, 3]),
        (Visit(ward="a", n=100, late=0.123456), [100]),
        (Value(metric="m", n=40, value=0.9), [40, 36, 4]),
        (Gap(metric="m", kind="difference", against="worst_pair", n=40, value=0.9), [40]),
        (Uncounted(ward="a", days=3.0), []),
    ],
)
def test_counts_are_those_declared_their_rest_and_those_of_shares(record: Record, counts: list[int]) -> None:
    assert list(revealed_counts(record)) == counts


def test_the_balance_of_two_shares_reveals_both() -> None:
    value = Value(metric="bias_index", n=100, value=0.9)
    assert list(revealed_counts(value, ("bias_index",))) == [100, 95, 5]
    assert list(whole_parts(100, 0.95)) == [95, 5]


def test_a_count_that_is_no_number_is_not_known_to_be_large() -> None:
    odd: Any = "many"
    assert 1 in list(revealed_counts(Visit(ward="a", n=odd)))
    assert filtered().publishable(Visit(ward="a", n=odd)) is None


def test_what_is_not_declared_is_null_and_named() -> None:
    filters = filtered()
    kept = filters.publishable(Visit(ward="a", n=100, days=4.5, late=0.5, longest=30.0))
    assert kept == Visit(ward="a", n=100, days=4.5, late=0.5)
    assert filters.undeclared == {"longest"}


def test_numbers_without_a_count_are_withheld() -> None:
    record = Uncounted(ward="a", days=4.5)
    assert filtered().publishable(record) is None  # an undeclared column cannot be null
    assert filtered().publishable(record, whole=True) is None


def test_a_status_that_tells_a_small_count_says_that_it_is_withheld() -> None:
    small = say("small", n=3, least=30)
    kept = filtered().publishable(Visit(ward="a", n=100, status=small))
    assert kept is not None
    assert kept.status.id == "core.withheld"
    within = filtered().publishable(Visit(ward="a", n=100, status=say("no_interval", why=small)))
    assert within is not None
    assert str(within.status) == ("no interval: withheld, since it would reveal information about fewer than 10 people")
    reason = filtered().publishable(LeftOut(n=30, reason=Message("3 of them were ill")))
    assert reason is not None
    assert reason.reason.id == "core.why_withheld"


def test_an_emptied_record_tells_where_it_stands_and_nothing_else() -> None:
    record = Visit(ward="a", n=100, came_late=3, late=0.03, days=4.5, longest=30.0)
    gone = without_values(record, say("hidden", least=LEAST))
    assert gone == Visit(ward="a", n=0, status=say("hidden", least=LEAST))


@given(
    n=st.integers(0, 60),
    came_late=st.one_of(st.none(), st.integers(0, 60)),
    doctors=st.one_of(st.none(), st.integers(0, 60)),
    longest=st.one_of(st.none(), st.floats(allow_nan=False)),
    told=st.integers(0, 60),
)
def test_no_small_count_of_any_record_is_published(
    n: int, came_late: int | None, doctors: int | None, longest: float | None, told: int
) -> None:
    status = say("small", n=told, least=30)
    kept = filtered(frozenset({30, 40})).publishable(
        Visit(ward="a", n=n, came_late=came_late, doctors=doctors, longest=longest, status=status)
    )
    if kept is None:
        assert 0 < n < LEAST
        return
    for item in fields(kept):
        value = getattr(kept, item.name)
        if declarations(Visit)[item.name].reveals == "count":
            assert value is None or not 0 < value < LEAST
    assert kept.longest is None
    assert kept.status == status or told not in (30, 40)
