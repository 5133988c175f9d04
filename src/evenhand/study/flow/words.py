"""The words of the pages themselves: buttons, labels, errors. Studies may add languages and change single words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from evenhand.errors import did_you_mean

LANGUAGES = ("en", "de", "es", "fr")
"""Languages that the pages speak by themselves: one file each in `languages/`."""


@cache
def built_in(language: str) -> Mapping[str, str]:
    """Return the words that evenhand has in a language, or in the language it is a variant of (de for de-AT).

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
    """Return the scale and the questions that evenhand asks in a language, by the name of their setting.

    The English ones are the defaults of the settings themselves.

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
    """Refuse words that no page uses, and a language that lacks some."""
    used = built_in("en")
    for key in given:
        if key not in used:
            raise ValueError(f"[interface.{language}] has {key!r}, which no page uses; {did_you_mean(key, used)}")
    missing = [key for key in used if key not in given and key not in built_in(language)]
    if missing:
        known = ", ".join(LANGUAGES)
        raise ValueError(
            f"the pages have no words in {language!r} (only in {known}); give them in [interface.{language}]: "
            f"{', '.join(missing)}"
        )


def words_in(language: str, given: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return all words of the pages in a language, the study's own first."""
    return {**built_in(language), **given.get(language, {})}
