"""Disclosure control: counts that records reveal by the declarations of their columns, and publishable records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from evenhand.core.metrics import Metric
from evenhand.core.records import Declaration, Record, declarations
from evenhand.messages import Message
from evenhand.messages.disclosure import DisclosureRule
from evenhand.messages.shared import say

R = TypeVar("R", bound=Record)

_EMPTY: dict[type, object] = {bool: False, int: 0, float: 0.0, str: "", tuple: (), list: [], dict: {}}


def revealed_counts(record: Record, balances: Collection[str] = ()) -> Iterator[float]:
    """Yield the counts that a record reveals: its counts, their complements, and counts implied by shares.

    `balances` are metrics with the difference of two complementary shares as their value.

    Examples
    --------
    >>> from evenhand.core.records import Value
    >>> list(revealed_counts(Value(metric="agreement", n=40, value=0.9)))
    [40, 36, 4]
    """
    declared = declarations(type(record))
    for name, declaration in declared.items():
        if declaration.reveals == "count":
            yield from _count_and_rest(record, name, declaration)
    for name, declaration in declared.items():
        if declaration.reveals == "share":
            yield from _share_counts(record, name, declaration, getattr(record, "metric", "") in balances)


def _count_and_rest(record: Record, name: str, declaration: Declaration) -> Iterator[float]:
    number, whole = getattr(record, name), getattr(record, declaration.of, None)
    if number is None:
        return
    yield number if _is_number(number) else 1  # not a number, so treated as small
    if declaration.of != name and _is_number(number) and _is_number(whole) and number <= whole:
        yield whole - number


def _share_counts(record: Record, name: str, declaration: Declaration, is_balance: bool) -> Iterator[int]:
    share, whole = getattr(record, name), getattr(record, declaration.of, None)
    if _is_number(share) and isinstance(whole, int) and whole:
        yield from whole_parts(whole, share, is_balance=is_balance)


def whole_parts(people: int, share: float, *, is_balance: bool = False) -> Iterator[int]:
    """Yield the two parts of `people` that a share implies, if they are whole numbers.

    Examples
    --------
    >>> list(whole_parts(40, 0.9)), list(whole_parts(40, 0.123)), list(whole_parts(40, 0.9, is_balance=True))
    ([36, 4], [], [38, 2])
    """
    part = people * (1 + share) / 2 if is_balance else people * share
    if -1e-6 <= part <= people + 1e-6 and abs(part - round(part)) < 1e-6:
        yield round(part)
        yield people - round(part)


def _has_count(record: Record, declared: Mapping[str, Declaration]) -> bool:
    return any(
        declaration.reveals == "count" and getattr(record, name) is not None for name, declaration in declared.items()
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class RecordFilter:
    """Filter that makes an audit's records publishable, column by column.

    Parameters
    ----------
    rule : the rule that decides which messages and counts may be published.
    metrics : the metrics of the records; numbers of a metric without a declaration are withheld.
    undeclared : the columns withheld so far because they are undeclared.
    """

    rule: DisclosureRule
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    undeclared: set[str] = field(default_factory=set)

    def publishable(self, record: R, *, whole: bool = False) -> R | None:
        """Return a record without undeclared values; None if a required value or a small count would remain.

        `whole` is for tables about all people, or about no people, which may have numbers without a count.
        """
        declared = self._declared(record)
        has_count = whole or _has_count(record, declared)
        changed: dict[str, Any] = {}
        for name, declaration in declared.items():
            value = getattr(record, name)
            if isinstance(value, Message):
                changed[name] = self.reason(value, "withheld" if name == "status" else "why_withheld")
            elif value is not None and not self._is_publishable(value, declaration, has_count):
                changed[name] = None
                self.undeclared.update([name] if declaration.reveals == "undeclared" else ())
        if any(value is None and not declared[name].nullable for name, value in changed.items()):
            return None
        return replace(record, **changed)

    def _declared(self, record: Record) -> Mapping[str, Declaration]:
        """Return a record's declarations; its numbers are undeclared if its metric is undeclared."""
        declared = declarations(type(record))
        metric = self.metrics.get(getattr(record, "metric", ""))
        is_ratio = getattr(record, "kind", None) == "ratio"  # a ratio of two shares may exceed 1
        value = None if is_ratio else getattr(record, "value", None)
        if metric is None or metric.declared(value) != "undeclared":
            return declared
        return {
            name: each._replace(reveals="undeclared") if each.reveals in ("share", "number") else each
            for name, each in declared.items()
        }

    def _is_publishable(self, value: object, declaration: Declaration, has_count: bool) -> bool:
        if declaration.reveals == "count":
            return _is_number(value) and not self.rule.is_small(value)  # type: ignore[arg-type]
        return declaration.reveals in ("name", "safe") or (declaration.reveals in ("share", "number") and has_count)

    def all_publishable(self, records: Iterable[R], *, whole: bool = False) -> tuple[R, ...]:
        """Return the publishable records, without undeclared values."""
        filtered = (self.publishable(record, whole=whole) for record in records)
        return tuple(record for record in filtered if record is not None)

    def reason(self, message: Message, instead: str = "why_withheld") -> Message:
        """Return a status or reason, or a publishable replacement for it.

        `instead` is the id of the shared sentence that replaces an unpublishable message.
        """
        published = self.rule.publishable(message)
        if published is not None:
            return published
        outer = Message(message.id, {"why": say("why_withheld", least=self.rule.least)})
        keeps_id = "why" in message.args and self.rule.may_publish(outer)
        return outer if keeps_id else say(instead, least=self.rule.least)

    def sentence(self, message: Message | None) -> Message | None:
        """Return a sentence, or None if it may not be published."""
        return None if message is None else self.rule.publishable(message)


def without_values(record: R, status: Message) -> R:
    """Return a record with only its coordinates and a status."""
    changed: dict[str, Any] = {}
    for name, declaration in declarations(type(record)).items():
        value = getattr(record, name)
        if isinstance(value, Message):
            changed[name] = status
        elif declaration.reveals not in ("name", "safe"):
            changed[name] = None if declaration.nullable else _empty_like(value)
    return replace(record, **changed)


def _empty_like(value: object) -> object:
    """Return the empty value of the same type, for a withheld value that must not be null."""
    return next((empty for kind, empty in _EMPTY.items() if isinstance(value, kind)), None)
