"""Format settings in messages as Python arguments or as settings of a file."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping

from evenhand.messages.message import Place, Setting

DATA_PLACES = ("the roles of the table", "the options of the file")
"""The places of a table's settings."""

ARGUMENTS = "the arguments of audit()"
"""The place of an audit's sections if they are not in a file."""


class Words(str):
    """Words that describe a value instead of naming it."""

    __slots__ = ()


def value_in_sentence(text: str) -> object:
    """Return the value of the text in backticks in a sentence, or its words if it is only a description."""
    try:
        value: object = ast.literal_eval(text.replace(", ...", ""))
    except (SyntaxError, ValueError):
        return [Words(word) for word in text.strip("()[]{}").split(", ")]
    return value


class SettingStyle:
    """Formats settings as Python arguments; other styles inherit from it.

    Examples
    --------
    >>> PYTHON.mention(Setting(name="alpha")), PYTHON.mention(Setting(name="missing", shown="'drop'"))
    ('`alpha`', "missing='drop'")
    """

    def mention(self, setting: Setting) -> str:
        """Return the text of a setting within a sentence."""
        where = f" in {self.place(setting.where)}" if setting.where else ""
        return (f"{setting.name}={setting.shown}" if setting.shown else f"`{setting.name}`") + where

    def prefix(self, setting: Setting) -> str:
        """Return the text of a setting before the description of its error."""
        return f"{self.mention(setting)}: " if setting.name else f"{self.place(setting.where)}: "

    def place(self, where: str | Place) -> str:
        """Return the text of the place where a setting was given."""
        return str(where)


class FileStyle(SettingStyle):
    """Formats settings as in a TOML file.

    Examples
    --------
    >>> FILE.mention(Setting(name="range", value=(0, 100), shown="(0, 100)"))
    '`range = [0, 100]`'
    """

    def mention(self, setting: Setting) -> str:
        """Return the text of a setting within a sentence."""
        if not setting.shown:
            return super().mention(setting)
        section = " in [data]" if (setting.name, setting.value) == ("missing", "drop") else ""
        return f"`{setting.name} = {_toml(setting.value)}`{section}"

    def place(self, where: str | Place) -> str:
        """Return the text of the place where a setting was given: [data] for roles and options of a table."""
        return "[data]" if where in DATA_PLACES else str(where)


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(name))} = {_toml(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return value if isinstance(value, Words) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


PYTHON, FILE = SettingStyle(), FileStyle()
