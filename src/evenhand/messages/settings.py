"""Format settings in messages, as Python arguments or as settings of a file."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping

from evenhand.messages.message import Place, Setting

DATA_PLACES = ("the roles of the table", "the options of the file")
"""Where the settings of a table are given."""

ARGUMENTS = "the arguments of audit()"
"""Where the sections of an audit are given without a file."""


class Words(str):
    """Words that describe a value."""

    __slots__ = ()


def value_in_sentence(text: str) -> object:
    """Return the value that a sentence of ours has in backticks; its words if it is only a description."""
    try:
        value: object = ast.literal_eval(text.replace(", ...", ""))
    except (SyntaxError, ValueError):
        return [Words(word) for word in text.strip("()[]{}").split(", ")]
    return value


class SettingStyle:
    """Writes settings as arguments of Python; other styles inherit from it.

    Examples
    --------
    >>> PYTHON.mention(Setting(name="alpha")), PYTHON.mention(Setting(name="missing", shown="'drop'"))
    ('`alpha`', "missing='drop'")
    """

    def mention(self, setting: Setting) -> str:
        """Return a setting within a sentence."""
        where = f" in {self.place(setting.where)}" if setting.where else ""
        return (f"{setting.name}={setting.shown}" if setting.shown else f"`{setting.name}`") + where

    def prefix(self, setting: Setting) -> str:
        """Put the name of a setting before the description of its error."""
        return f"{self.mention(setting)}: " if setting.name else f"{self.place(setting.where)}: "

    def place(self, where: str | Place) -> str:
        """Return the name of the place where a setting was given."""
        return str(where)


class FileStyle(SettingStyle):
    """Writes settings as in a TOML file.

    Examples
    --------
    >>> FILE.mention(Setting(name="range", value=(0, 100), shown="(0, 100)"))
    '`range = [0, 100]`'
    """

    def mention(self, setting: Setting) -> str:
        """Return a setting within a sentence."""
        if not setting.shown:
            return super().mention(setting)
        section = " in [data]" if (setting.name, setting.value) == ("missing", "drop") else ""
        return f"`{setting.name} = {_toml(setting.value)}`{section}"

    def place(self, where: str | Place) -> str:
        """Return the name of the place where a setting was given: [data] for roles and options of a table."""
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
