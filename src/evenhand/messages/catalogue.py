"""`Catalogue`: the English sentences of one part of the package by key, and their translations.

A sentence is a format string whose placeholders declare the kind of their argument:

=================  ====================================================================================
``{model:name}``   a name from the data or the settings
``{group:group}``  the label of a group; evenhand's own labels are translated
``{title:metric}`` the title of a metric, translated
``{who:noun}``     a noun for the counted units, such as people or answers, translated
``{least:set}``    a number set by the user
``{n:count}``      a count of people, rows or answers: withheld if it is small
``{x:percent}``    a number with a format; ``{x:percent safe}`` if no count can be derived from it
``{c:confidence}`` a confidence or level set by the user
``{p:figure}``     an already formatted number, such as a p-value with the digits it needs
``{x:unit}``       a number in the format of the metric, which is the argument `unit`
``{why}``          another message; ``{why:sentence}`` with a capital letter and a full stop
``{x:name and}``   several names, joined; also ``or``, ``commas``, ``semicolons``, ``sentences``, ``lines``
``{verb:verb}``    the verb for selecting a person
=================  ====================================================================================

A sentence that depends on a number is a pair, singular and plural; the number is its argument `n`. The English
sentences of a part are in its file ``locale/en.toml``, in tables whose names only help readers. Translations are
gettext catalogues beside it, ``locale/de.po``, with the key as context; `make messages` updates and compiles them.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, NamedTuple

from evenhand.messages.message import Argument, Message

Sentence = str | tuple[str, str]
"""An English sentence, or a pair of singular and plural."""

_CATALOGUES: dict[str, Catalogue] = {}


JOINTS = ("and", "or", "commas", "semicolons", "sentences", "lines")


class PlaceholderKind(NamedTuple):
    """The kind of a placeholder, how a list of arguments is joined, and whether it is safe to publish."""

    name: str = ""
    joint: str = "commas"
    safe: bool = False

    @classmethod
    @cache
    def parse(cls, text: str) -> PlaceholderKind:
        """Parse the part of a placeholder after the colon.

        Examples
        --------
        >>> PlaceholderKind.parse("percent safe")
        PlaceholderKind(name='percent', joint='commas', safe=True)
        """
        words = text.split(" ")
        joint = next((word for word in words if word in JOINTS), "commas")
        name = " ".join(word for word in words if word not in (*JOINTS, "safe"))
        return cls(name, joint, "safe" in words)


class Field(NamedTuple):
    """A placeholder of a sentence: the argument's name and its kind."""

    name: str
    kind: PlaceholderKind


class Catalogue:
    """The sentences of one part of the package, such as an audit. Calling it returns a message.

    Parameters
    ----------
    name : its name, the prefix of its message ids.
    package : the package with the folder `locale` of translations.
    sentences : the English sentences by key; by default from `locale/en.toml`.
    words : single words to translate wherever they occur, by kind: `group`, `metric`, `noun`.

    Examples
    --------
    >>> say = Catalogue("waiting", "my_package", {"long": "{group:group} waits {days:number} days."})
    >>> say("long", group="(overall)", days=2.5).text
    '(overall) waits 2.500 days.'
    """

    def __init__(
        self,
        name: str,
        package: str,
        sentences: Mapping[str, Sentence] | None = None,
        words: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name = name
        self.package = package
        if name in _CATALOGUES and (other := _CATALOGUES[name].package) != package:
            raise ValueError(f"the package {package!r} names its catalogue {name!r}, as {other!r} does; rename it")
        self.sentences = _read_sentences(package) if sentences is None else dict(sentences)
        self.words = dict(words or {})
        self._translations: dict[str, GNUTranslations | None] = {}
        _CATALOGUES[name] = self

    def __call__(self, key: str, /, **args: Argument) -> Message:
        """Return the message of a key; raise if the key is unknown or an argument is missing."""
        missing = [field.name for field in fields(self.sentences[key]) if field.name not in args]
        if missing:
            raise TypeError(f"the sentence {self.name}.{key} needs {', '.join(missing)}")
        return Message(f"{self.name}.{key}", args)

    def __contains__(self, key: object) -> bool:
        return key in self.sentences

    def translations(self, code: str) -> GNUTranslations | None:
        """Return the translations into a language; None if there are none."""
        if code not in self._translations:
            self._translations[code] = None
            path = files(self.package) / "locale" / f"{code}.mo" if find_spec(self.package) else None
            if path is not None and path.is_file():
                with path.open("rb") as file:
                    translations = GNUTranslations(file)
                translations.add_fallback(_Missing())
                self._translations[code] = translations
        return self._translations[code]

    def translated(self, code: str, key: str) -> Sentence | None:
        """Return a sentence in a language; None if it is not translated."""
        translations, sentence = self.translations(code), self.sentences[key]
        if translations is None:
            return None
        if isinstance(sentence, str):
            return translations.pgettext(key, sentence) or None
        pair = tuple(translations.npgettext(key, *sentence, number) for number in (1, 2))
        return (pair[0], pair[1]) if all(pair) else None


def _read_sentences(package: str) -> dict[str, Sentence]:
    """Return the English sentences of a package by key."""
    read: dict[str, Any] = tomllib.loads((files(package) / "locale" / "en.toml").read_text("utf-8"))
    tables = [table if isinstance(table, dict) else {key: table} for key, table in read.items()]
    every = {key: sentence for table in tables for key, sentence in table.items()}
    return {key: sentence if isinstance(sentence, str) else tuple(sentence) for key, sentence in every.items()}


class _Missing(NullTranslations):
    """Returns empty strings for missing translations, to distinguish them from the English text."""

    def pgettext(self, context: str, message: str) -> str:  # noqa: ARG002
        return ""

    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:  # noqa: ARG002
        return ""


def catalogue_of(message_id: str) -> tuple[Catalogue, str] | None:
    """Return the catalogue of a message and its key there; None if the id is itself an English text."""
    name, _, key = message_id.partition(".")
    catalogue = _CATALOGUES.get(name)
    return (catalogue, key) if catalogue is not None and key in catalogue else None


def catalogues() -> tuple[Catalogue, ...]:
    """Return all loaded catalogues."""
    return tuple(_CATALOGUES.values())


@cache
def fields(sentence: Sentence) -> tuple[Field, ...]:
    """Return the placeholders of a sentence, one per name.

    Examples
    --------
    >>> [(field.name, field.kind.name) for field in fields("{n:count} of {group:group}")]
    [('n', 'count'), ('group', 'group')]
    """
    texts = (sentence,) if isinstance(sentence, str) else ("{n}", *sentence)
    fields_by_order = dict.fromkeys(field for text in texts for field in _fields_of(text))
    fields_by_name = {field.name: field for field in sorted(fields_by_order, key=lambda field: bool(field.kind.name))}
    return tuple(fields_by_name.values())


def placeholders(sentence: Sentence) -> tuple[Field, ...]:
    """Return all placeholders of a sentence; a name with several kinds occurs several times.

    Examples
    --------
    >>> [field.kind.name for field in placeholders("{n:count}, or {n:percent}")]
    ['count', 'percent']
    """
    texts = (sentence,) if isinstance(sentence, str) else sentence
    return tuple(dict.fromkeys(field for text in texts for field in _fields_of(text)))


def _fields_of(text: str) -> Iterator[Field]:
    for _, name, kind, _ in string.Formatter().parse(text):
        if name is not None:
            yield Field(name, PlaceholderKind.parse(kind or ""))
