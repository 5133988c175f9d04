"""`Message`: a sentence as data, consisting of an id and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Self

Plain: TypeAlias = "str | int | float | bool | None"
Argument: TypeAlias = "Plain | Message | Setting | Sequence[Argument]"
"""An argument for a placeholder: a name, a number, another message, or a sequence of these."""

Json: TypeAlias = "Plain | Mapping[str, Json] | Sequence[Json]"


class Written(str):
    """Text of a value in Python syntax, such as a list or a NumPy number; its repr has no quotation marks.

    `value` is the original value of a list, a dictionary or a number, so that other styles can format it differently.
    """

    value: object
    __repr__ = str.__str__

    def __new__(cls, value: object) -> Self:
        """Store the value, as text unless it is a list, tuple, dictionary or number, so that it can be pickled."""
        written = super().__new__(cls, value)
        written.value = value if isinstance(value, list | tuple | dict | Number) else str(value)
        return written


@dataclass(frozen=True)
class Place:
    """A section of a file or of a function's arguments."""

    section: str
    source: str

    def __str__(self) -> str:
        return f"[{self.section}] of {self.source}"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting named in a message: a Python argument, a setting in a file, or a command-line flag.

    Parameters
    ----------
    name : its name, or its path as in 'predictions.risk.threshold'.
    value : its value, if `shown` is not empty.
    shown : the value in Python syntax; empty if only the setting is named.
    where : the place where it was set, as in '[parity]' or 'the arguments of parity()'; empty if that is clear.
    repeated : whether the following text names the setting again.
    """

    name: str
    value: object = None
    shown: str = ""
    where: str | Place = ""
    repeated: bool = False


@dataclass(frozen=True, eq=False)
class Message:
    """A sentence as data: its id and its arguments.

    Parameters
    ----------
    id : the name of its catalogue and its key there, as in 'core.no_interval'. An id that is in no catalogue is the
        English text, as in gettext.
    args : names, numbers and other messages by placeholder, whose kinds the sentence declares.
    written : the English text from `results.json`, used if the catalogue is not installed; otherwise empty.

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
        """The message in English."""
        from evenhand.messages.language import language  # renders messages, so it imports this module

        return language().render(self)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.id, dict(self.args)) == (other.id, dict(other.args))

    def __hash__(self) -> int:
        return hash((self.id, self.text))

    def to_dict(self) -> dict[str, Json]:
        """Return the message as stored in `results.json`: id, args and the English text."""
        return {"id": self.id, "args": {name: _to_json(value) for name, value in self.args.items()}, "text": self.text}

    @classmethod
    def from_dict(cls, written: Mapping[str, Json]) -> Self:
        """Return the message from the output of `to_dict`."""
        args = written["args"]
        if not isinstance(args, Mapping):
            raise ValueError("the arguments of a message are not a table")
        return cls(str(written["id"]), {name: _from_json(value) for name, value in args.items()}, str(written["text"]))


def _to_json(value: Argument) -> Json:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, Setting):
        return value.name
    if isinstance(value, str | int | float) or value is None:
        return value
    return [_to_json(item) for item in value]


def _from_json(written: Json) -> Argument:
    if isinstance(written, Mapping):
        return Message.from_dict(written)
    if isinstance(written, str | int | float) or written is None:
        return written
    return tuple(_from_json(item) for item in written)
