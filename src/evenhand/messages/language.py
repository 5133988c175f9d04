"""`Language`: renders messages, and formats numbers and dates, in one language."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from evenhand.messages.catalogue import PlaceholderKind, Sentence, catalogue_of, catalogues
from evenhand.messages.formats import show, show_confidence
from evenhand.messages.message import Argument, Message, Setting, Written
from evenhand.messages.settings import PYTHON, SettingStyle, value_in_sentence
from evenhand.messages.shared import OWN_LABELS, say

LANGUAGES = ("en", "de")
_STYLES = frozenset(("number", "signed", "percent", "points", "signed_points", "ratio", "tenths", "p"))
_MONTHS = "January February March April May June July August September October November December"
_USUAL_VERB = "selects"
_CASES = ("upper", "sentence", "stop")
_SETTING = re.compile("`([^`]+)`")
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_SYMBOL = re.compile(r"\w [=<>]")  # as in "p = 0.20", which keeps its case
_ONLY_ONE = re.compile(r"\{(\w+)(?:!r)?\}")


@cache
def language(code: str = "en") -> Language:
    """Return the language with a code.

    Examples
    --------
    >>> language("de").date("2026-11-16T12:00:00"), language("de").count(12345)
    ('16. November 2026', '12.345')
    """
    if code not in LANGUAGES:
        raise KeyError(code)
    return Language(code)


class Language:
    """One language: its sentences, and its formats of numbers and dates."""

    def __init__(self, code: str) -> None:
        self.code = code
        self._signs = {name: self.word("sign", sign) for name, sign in {",": ",", ".": ".", "%": "%"}.items()}

    # Sentences

    def render(self, message: Message, settings: SettingStyle = PYTHON) -> str:
        """Return a message as text, entirely in English if any part of it lacks a translation.

        `settings` is the style for names of settings: Python arguments, settings of a file, or flags.
        """
        if message.written and catalogue_of(message.id) is None:
            return message.written
        sentence = self._sentence(message)
        if sentence is None:
            return language().render(message, settings)
        if not isinstance(sentence, str):
            sentence = sentence[0 if message.args["n"] == 1 else 1]
        return _Filled(self, message, settings).fill(sentence)

    def _sentence(self, message: Message) -> Sentence | None:
        """Return the template of a message's sentence; None if this language lacks it."""
        location = catalogue_of(message.id)
        if location is None:
            return message.id if self.code == "en" else None
        catalogue, key = location
        return catalogue.sentences[key] if self.code == "en" else catalogue.translated(self.code, key)

    def translates(self, message: Message) -> bool:
        """Return whether a message, including nested messages, is available in this language."""
        is_translated = self.code == "en" or self._sentence(message) is not None
        return is_translated and all(map(self.translates, _messages_in(message.args.values())))

    def word(self, kind: str, text: str) -> str:
        """Return a single word in this language, or unchanged if no catalogue has it."""
        if self.code == "en":
            return text
        for catalogue in catalogues():
            translations = catalogue.translations(self.code)
            if translations is not None and (translation := translations.pgettext(kind, text)):
                return translation
        return text

    # Numbers and dates

    def number(self, text: str) -> str:
        """Return a formatted number with this language's separators and percent sign."""
        return text if self.code == "en" else "".join(self._signs.get(sign, sign) for sign in text)

    def count(self, value: float) -> str:
        """Return a whole number with thousands separators."""
        return self.number(f"{value:,.0f}")

    def date(self, moment: str) -> str:
        """Return the date of an ISO time as text."""
        year, month, day = moment[:10].split("-")
        name = self.word("month", _MONTHS.split()[int(month) - 1])
        return self.render(say("date", day=int(day), month=name, year=year))

    def month(self, name: str) -> str:
        """Return a month such as 2026-09 as text; any other text unchanged."""
        parts = _MONTH.fullmatch(name)
        return name if parts is None else f"{self.word('month', _MONTHS.split()[int(parts[2]) - 1])} {parts[1]}"

    def label(self, group: str) -> str:
        """Return the label of a group; only evenhand's own labels are translated."""
        return self.word("group", group) if group in OWN_LABELS else group

    def join(self, words: Sequence[str], joint: str = "and") -> str:
        """Join several words or sentences.

        Examples
        --------
        >>> language().join(["a", "b", "c"]), language().join(["a", "b"], "semicolons")
        ('a, b and c', 'a; b')
        """
        if joint in ("and", "or"):
            *first, last = words or [""]
            return f"{', '.join(first)} {self.word('joint', joint)} {last}" if first else last
        return {"commas": ", ", "semicolons": "; ", "sentences": " ", "lines": "\n"}[joint].join(words)


def _messages_in(values: Iterable[Argument]) -> Iterable[Message]:
    for value in values:
        if isinstance(value, Message):
            yield value
        elif isinstance(value, tuple | list):
            yield from _messages_in(value)


class _Verb(NamedTuple):
    """A verb in a main clause, its separable particle there, and its form in a subordinate clause."""

    verb: str
    verb_end: str = ""
    verb_last: str = ""


def _verb(verb: str, language: Language) -> _Verb:
    """Split a user's verb, such as "lehnt ab", into its forms for main and subordinate clauses."""
    if verb == _USUAL_VERB:
        parts = (language.word("verb", name) for name in ("selects", "selects (end of the clause)", "selects (last)"))
        return _Verb(verb, "", verb) if language.code == "en" else _Verb(*parts)
    plain, _, particle = verb.rpartition(" ")
    parted = plain and particle in language.word("verb", "particles").split()
    return _Verb(plain, f" {particle}", f"{particle}{plain}") if parted else _Verb(verb, "", verb)


class _Filled:
    """Renders the sentence of one message with its arguments."""

    def __init__(self, language: Language, message: Message, settings: SettingStyle) -> None:
        self.language, self.args, self.settings = language, message.args, settings
        self.is_error = catalogue_of(message.id) is None

    def fill(self, sentence: str) -> str:
        """Return the sentence with its arguments filled in; text in backticks is a setting."""
        pieces = _SETTING.split(sentence)
        return "".join(self._setting(piece) if index % 2 else self._plain(piece) for index, piece in enumerate(pieces))

    def _setting(self, piece: str) -> str:
        """Return the text for a setting in backticks: its name, and its value after an equals sign."""
        name, equals, text = piece.partition("=")
        if not equals:
            return self.settings.mention(Setting(name=self._plain(name)))
        text, _, where = text.partition(" in ")
        placeholder = _ONLY_ONE.fullmatch(text)
        value: object = self.args[placeholder[1]] if placeholder else value_in_sentence(text)
        value = value.value if isinstance(value, Written) else value
        return self.settings.mention(Setting(name=name, value=value, shown=self._plain(text), where=where))

    def _plain(self, piece: str) -> str:
        if not self.args:
            return piece
        parts = string.Formatter().parse(piece)
        return "".join(
            text if name is None else text + self._field(self.args[name], kind or "", conversion)
            for text, name, kind, conversion in parts
        )

    def _field(self, value: Argument, declared: str, conversion: str | None) -> str:
        kind = PlaceholderKind.parse(declared)
        if conversion == "r":
            return repr(value)
        if isinstance(value, tuple | list):
            item_kind = "" if kind.name in _CASES else kind.name
            texts = [self._field(item, item_kind, conversion) for item in value]
            return _in_place(self.language.join(texts, kind.joint), kind.name)
        if isinstance(value, Message):
            return _in_place(self.language.render(value, self.settings), kind.name)
        if isinstance(value, Setting):
            return self.settings.prefix(value) if kind.name == "prefix" else self.settings.mention(value)
        if isinstance(value, int | float | None):
            return self._number(value, kind.name)
        return self._word(str(value), kind.name)

    def _word(self, text: str, kind: str) -> str:
        if kind in ("metric", "noun"):
            return self.language.word(kind, text)
        if kind == "group":
            return self.language.label(text)
        if kind == "figure":
            return self.language.number(text)
        if kind in _Verb._fields:
            return str(getattr(_verb(text, self.language), kind))
        return _in_place(text, kind)

    def _number(self, value: float | bool | None, kind: str) -> str:
        style = str(self.args.get("unit", "number")) if kind == "unit" else kind
        if style in _STYLES:
            return self.language.number(show(value, style))  # type: ignore[arg-type]
        if value is None or isinstance(value, bool):
            return "" if value is None else str(value)
        if kind == "count":
            return self.language.count(value)
        if kind == "confidence":
            return self.language.number(show_confidence(value))
        if kind == "" and self.is_error:
            return str(value)  # unformatted, as in the user's input
        if kind in ("", "set", "name"):
            return self.language.number(str(value) if isinstance(value, int) else f"{value:g}")
        return self.language.number(format(value, kind))


def _in_place(text: str, kind: str) -> str:
    """Return a text unchanged, or with a capital letter, a full stop, or both, depending on `kind`."""
    if kind in ("upper", "sentence") and not _SYMBOL.match(text):
        text = f"{text[:1].upper()}{text[1:]}"
    unstopped = kind in ("sentence", "stop") and not text.endswith((".", "?", "!"))
    return f"{text}." if unstopped else text
