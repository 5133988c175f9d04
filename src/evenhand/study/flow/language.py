"""The language of the pages: interface texts (buttons, labels, errors) and the format of numbers.

Studies may add languages and change single texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from evenhand.errors import SettingError, did_you_mean

LANGUAGES = ("en", "de", "es", "fr")
"""The built-in languages of the pages, each with a file in `languages/`."""
_MARKS = {"": (",", "."), "de": (".", ","), "es": (".", ","), "fr": ("\u202f", ",")}
"""The thousands and decimal separators by language; other languages use the first."""
_CURRENCIES = ("$", "€", "£", "¥", "₹")


@cache
def built_in(language: str) -> Mapping[str, str]:
    """Return the built-in interface texts of a language, or of its main language (de for de-AT).

    Examples
    --------
    >>> built_in("de-AT")["next"]
    'Weiter'
    >>> dict(built_in("it"))
    {}
    """
    for name in (language, language.split("-")[0]):
        if name in LANGUAGES:
            text = files("evenhand.study.flow").joinpath("languages", f"{name}.toml").read_text(encoding="utf-8")
            return {key: str(words) for key, words in tomllib.loads(text).items()}
    return {}


@cache
def built_in_questions(language: str) -> Mapping[str, str]:
    """Return the built-in scale and questions in a language, by the name of their setting.

    The English texts are the defaults of the settings.

    Examples
    --------
    >>> built_in_questions("de-AT")["scale.1"], dict(built_in_questions("it"))
    ('Sehr ähnlich', {})
    """
    name = language.split("-")[0]
    if name not in LANGUAGES[1:]:
        return {}
    held = tomllib.loads(files("evenhand.study.flow").joinpath("questions", f"{name}.toml").read_text(encoding="utf-8"))
    scale = {f"scale.{point}": str(words) for point, words in enumerate(held.pop("scale"), 1)}
    return scale | {f"questions.{key}": str(words) for key, words in held.items()}


def check_words(language: str, given: Mapping[str, str]) -> None:
    """Raise for unknown interface texts, and for a language without some of the texts."""
    used = built_in("en")
    for key in given:
        if key not in used:
            raise SettingError(
                "[interface.{language}] has {key!r}, which no page uses; {hint}",
                language=language,
                key=key,
                hint=did_you_mean(key, used),
            )
    missing = [key for key in used if key not in given and key not in built_in(language)]
    if missing:
        raise SettingError(
            "the pages have no words in {language!r} (only in {known}); give them in [interface.{language}]: {names}",
            language=language,
            known=tuple(LANGUAGES),
            names=tuple(missing),
        )


def words_in(language: str, given: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return all interface texts in a language; the study's texts override the built-in texts."""
    return {**built_in(language), **given.get(language, {})}


def preferred_language(accepted: str, languages: tuple[str, ...]) -> str:
    """Return the study language that the browser prefers most, else the study's first.

    Examples
    --------
    >>> preferred_language("pt, de-CH;q=0.9, en;q=0.8", ("en", "de")), preferred_language("pt", ("en", "de"))
    ('de', 'en')
    """
    wishes = []
    for order, part in enumerate(accepted[:500].split(",")):
        name, _, weight = part.partition(";q=")
        try:
            wishes.append((-float(weight or 1), order, name.strip().lower()))
        except ValueError:
            continue
    for _, _, name in sorted(wishes):
        for exact in (name, name.split("-")[0]):
            for language in languages:
                if language.lower() == exact:
                    return language
    return languages[0]


def show_number(value: float, unit: str = "", language: str = "en") -> str:
    r"""Return a value with its unit in the number format of a language.

    Examples
    --------
    >>> show_number(32400, "$"), show_number(0.5), show_number(-1200, "€", "de"), show_number(3, "km")
    ('$32,400', '0.5', '−1.200\xa0€', '3\xa0km')
    """
    digits = _marked(f"{abs(value):,.{2 if abs(value) >= 1 else 4}f}".rstrip("0").rstrip("."), language)
    sign = "−" if value < 0 and digits.strip("0.,") else ""
    if not unit:
        return f"{sign}{digits}"
    if language.split("-")[0] not in _MARKS:
        if unit in _CURRENCIES:
            return f"{sign}{unit}{digits}"
        if unit == "%":
            return f"{sign}{digits}%"
    return f"{sign}{digits}\u00a0{unit}"


def show_amount(value: float, language: str = "en") -> str:
    """Return an amount of money without currency, with two decimals unless it is whole.

    Examples
    --------
    >>> show_amount(8.5), show_amount(1200), show_amount(8.45, "de")
    ('8.50', '1,200', '8,45')
    """
    return _marked(f"{value:,.2f}".removesuffix(".00"), language)


def _marked(digits: str, language: str) -> str:
    thousands, decimal = _MARKS.get(language.split("-")[0], _MARKS[""])
    return digits.translate({ord(","): thousands, ord("."): decimal})
