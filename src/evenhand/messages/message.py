"""`Message`: a sentence as data, an id with arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Self

Plain: TypeAlias = "str | int | float | bool | None"
Argument: TypeAlias = "Plain | Message | Setting | Sequence[Argument]"
"""What a sentence may be filled with: a name, a number, another message, or several of these."""

Json: TypeAlias = "Plain | Mapping[str, Json] | Sequence[Json]"


class Written(str):
    """A value as Python writes it, a list or a number of another library; it has no quotation marks of its own."""

    __slots__ = ()
    __repr__ = str.__str__


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting that a message speaks of: Python calls it an argument, a file a setting, the command line a flag.

    Parameters
    ----------
    name : its name, or its path as in 'predictions.risk.threshold'.
    value : a value that it is to have, where `shown` is not empty.
    shown : that value as Python writes it; empty where the setting alone is meant.
    where : where it was given, as in '[parity]' or 'the arguments of parity()'; empty where that is plain.
    repeated : whether what follows names the setting again.
    """

    name: str
    value: object = None
    shown: str = ""
    where: str = ""
    repeated: bool = False


@dataclass(frozen=True, eq=False)
class Message:
    """A sentence as data: which one, and what it is filled with.

    Parameters
    ----------
    id : the name of its catalogue and its key there, as in 'core.no_interval'. An id that no catalogue has is its own
        English text, as in gettext.
    args : names, numbers and other messages by placeholder; what kind each is stands in the sentence.
    written : the English text that `results.json` held, for where the catalogue is not installed; empty for others.

    Examples
    --------
    >>> message = Message("core.undefined", {"why": Message("core.nobody")})
    >>> message.id, message.text
    ('core.undefined', 'undefined: nobody is in this group')
    """

    id: str
    args: Mapping[str, Argument] = field(default_factory=dict)
    written: str = ""

    @property
    def text(self) -> str:
        """The sentence in English."""
        from evenhand.messages.language import language  # renders messages, so it imports this module

        return language().render(self)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.id, dict(self.args)) == (other.id, dict(other.args))

    def __hash__(self) -> int:
        return hash((self.id, self.text))

    def to_dict(self) -> dict[str, Json]:
        """Return what `results.json` holds: id, args and the English text."""
        return {"id": self.id, "args": {name: _written(value) for name, value in self.args.items()}, "text": self.text}

    @classmethod
    def from_dict(cls, written: Mapping[str, Json]) -> Self:
        """Return the message that `to_dict` wrote."""
        args = written["args"]
        if not isinstance(args, Mapping):
            raise ValueError("the arguments of a message are not a table")
        return cls(str(written["id"]), {name: _read(value) for name, value in args.items()}, str(written["text"]))


def _written(value: Argument) -> Json:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, Setting):
        return value.name
    if isinstance(value, str | int | float) or value is None:
        return value
    return [_written(item) for item in value]


def _read(value: Json) -> Argument:
    if isinstance(value, Mapping):
        return Message.from_dict(value)
    if isinstance(value, str | int | float) or value is None:
        return value
    return tuple(_read(item) for item in value)
