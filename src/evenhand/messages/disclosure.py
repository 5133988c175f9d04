"""Rules for which messages may be published when small counts are suppressed; undeclared arguments are withheld."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from evenhand.messages.catalogue import PlaceholderKind, catalogue_of, placeholders
from evenhand.messages.message import Argument, Message, Setting

SAFE = frozenset({"name", "group", "metric", "noun", "set", "confidence", "verb", "verb_end", "verb_last"})
"""Kinds of arguments from which no count of people can be derived."""

_IN_HUNDREDS = frozenset({"percent", "points", "signed_points"})


@dataclass(frozen=True)
class DisclosureRule:
    """Decides whether a message could reveal a count of fewer people than `least`.

    Names, settings and numbers declared safe may be published. A count may be published if it is 0 or at least
    `least`, and is one of `counts`; if `counts` is None, its differences from other counts of the message must not be
    small either. Any other number must be one of `numbers`. Everything else is withheld: text that is not a message, a
    message in no catalogue, an argument whose kind the sentence does not declare.

    Parameters
    ----------
    least : counts from 1 to `least` - 1 are small.
    counts : counts in the published tables, the only ones that may appear in sentences; None if unknown.
    numbers : numbers in the published tables.
    names : names in the published tables, which are also allowed as arguments that the sentence does not show.

    Examples
    --------
    >>> from evenhand.messages import Catalogue
    >>> say = Catalogue("waiting", "my_package", {"lost": ("{n:count} person left.", "{n:count} people left.")})
    >>> rule = DisclosureRule(10, counts=frozenset({3, 100}))
    >>> [rule.may_publish(say("lost", n=n)) for n in (0, 3, 97, 100)]
    [False, False, False, True]
    """

    least: int
    counts: frozenset[float] | None = None
    numbers: frozenset[float] = frozenset()
    names: frozenset[str] = frozenset()

    def may_publish(self, message: Message) -> bool:
        """Return whether a message reveals no small count."""
        return self.publishable(message) is not None

    def publishable(self, message: Message) -> Message | None:
        """Return a message with only the arguments its sentence shows; None if it must be withheld."""
        if not self._is_safe(message):
            return None
        counts = [*dict.fromkeys(counts_in(message))]
        if self.counts is not None:
            reveals = any(count not in self.counts for count in counts)
        else:
            reveals = any(self.is_small(first - second) for first, second in combinations(counts, 2))
        return None if reveals else self._stripped(message)

    def is_small(self, number: float) -> bool:
        """Return whether a count, or a difference of counts, is small but not 0."""
        return 0 < abs(number) < self.least

    def _is_safe(self, message: Message) -> bool:
        kinds = _kinds(message)
        return kinds is not None and all(
            name in message.args and self._allows(message.args[name], kind, message)
            for name, kinds_of_argument in kinds.items()
            for kind in kinds_of_argument
        )

    def _allows(self, value: Argument, kind: PlaceholderKind, message: Message) -> bool:
        """Return whether an argument of a message may be published."""
        if isinstance(value, Message):
            return self._is_safe(value)
        if isinstance(value, tuple | list):
            return all(self._allows(item, kind, message) for item in value)
        if isinstance(value, Setting) or value is None or kind.safe or kind.name in SAFE:
            return True
        return isinstance(value, int | float) and self._allows_number(value, kind, message)

    def _allows_number(self, value: float, kind: PlaceholderKind, message: Message) -> bool:
        if kind.name == "count":
            return not self.is_small(value)
        style = message.args.get("unit") if kind.name == "unit" else kind.name
        reads_as_count = float(value).is_integer() and self.is_small(value) and style not in _IN_HUNDREDS
        return value == 0 or (abs(value) in self.numbers and not reads_as_count)

    def _stripped(self, message: Message) -> Message:
        """Return a message without undeclared arguments, except published names."""
        shown = {name for within in _within(message) for name in _kinds(within) or ()}
        args = {
            name: self._stripped_argument(value)
            for name, value in message.args.items()
            if name in shown or name == "unit" or (isinstance(value, str) and value in self.names)
        }
        return message if args == dict(message.args) else Message(message.id, args)

    def _stripped_argument(self, value: Argument) -> Argument:
        if isinstance(value, Message):
            return self._stripped(value)
        return tuple(map(self._stripped_argument, value)) if isinstance(value, tuple | list) else value


def may_publish(message: Message, least: int) -> bool:
    """Return whether a message reveals nothing about fewer people than `least`.

    Examples
    --------
    >>> may_publish(Message("core.small", {"n": 3, "least": 30}), 10), may_publish(Message("3 people left."), 10)
    (False, False)
    """
    return DisclosureRule(least).may_publish(message)


def _kinds(message: Message) -> Mapping[str, tuple[PlaceholderKind, ...]] | None:
    """Return the declared kinds of a message's arguments, by name; None if it is in no catalogue."""
    location = catalogue_of(message.id)
    if location is None:
        return None
    catalogue, key = location
    sentence = catalogue.sentences[key]
    kinds: dict[str, tuple[PlaceholderKind, ...]] = {}
    for field in placeholders(sentence):
        kinds[field.name] = (*kinds.get(field.name, ()), field.kind)
    if not isinstance(sentence, str):
        kinds.setdefault("n", (PlaceholderKind("count"),))  # singular or plural reveals whether the number is 1
    return kinds


def _within(message: Message) -> Iterator[Message]:
    """Yield a message and all messages nested in it."""
    yield message
    for value in _flat(message.args.values()):
        if isinstance(value, Message):
            yield from _within(value)


def _flat(values: Iterable[Argument]) -> Iterator[Argument]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(cast("Iterable[Argument]", value))
        else:
            yield value


def counts_in(message: Message) -> Iterator[float]:
    """Yield every count of people in a message."""
    for within in _within(message):
        for name, kinds in (_kinds(within) or {}).items():
            if any(kind.name == "count" and not kind.safe for kind in kinds):
                yield from (value for value in _flat([within.args[name]]) if isinstance(value, int | float))
