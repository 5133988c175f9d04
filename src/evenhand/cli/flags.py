"""Name settings in error messages as command-line flags."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from evenhand.messages import Setting
from evenhand.messages.message import Place
from evenhand.messages.settings import ARGUMENTS, DATA_PLACES, SettingStyle

FLAGS = frozenset(
    (
        *("outcome", "positive", "groups", "cuts", "weight", "id", "scores", "decisions", "threshold", "range"),
        *("selected", "favourable", "within", "metrics", "seed", "decimal", "encoding", "delimiter", "missing_values"),
        *("labels", "one_hot", "people", "count", "cluster", "memory_limit", "tolerance"),
    )
)
"""The settings with a flag of `evenhand audit DATA`."""

_OWN_FLAGS = {
    "tables": "--old-settings OLD.toml --new-settings NEW.toml",
    "predictions": "--scores COLUMN, --decisions COLUMN or --numbers COLUMN",
}


class FlagStyle(SettingStyle):
    """Formats settings as command-line flags if such flags exist.

    Examples
    --------
    >>> COMMAND.mention(Setting(name="range", value=(0, 100), shown="(0, 100)"))
    '--range 0,100'
    >>> COMMAND.mention(Setting(name="missing", value="drop", shown="'drop'"))
    '--drop-missing'
    """

    def mention(self, setting: Setting) -> str:
        """Return the text of a setting within a sentence."""
        if setting.shown:
            return _with_value(setting) or super().mention(setting)
        if not setting.where:
            return _flag(setting.name) or super().mention(setting)
        return (_flag_of_path(setting) if _is_given_by_flags(setting.where) else None) or super().mention(setting)

    def prefix(self, setting: Setting) -> str:
        """Return the text of a setting before its error; empty if the error itself names the setting."""
        if not _is_given_by_flags(setting.where):
            return super().prefix(setting)
        flag = _flag_of_path(setting)
        if setting.repeated and flag is not None:
            return ""
        if flag is None and setting.name.startswith("predictions"):
            return ""
        return super().prefix(setting)


def _is_given_by_flags(where: str | Place) -> bool:
    return where in DATA_PLACES or (isinstance(where, Place) and where.source == ARGUMENTS)


def _flag_of_path(setting: Setting) -> str | None:
    """Return the flag of a setting such as `predictions.risk.threshold`."""
    parts = [part for part in setting.name.split(".") if not part.isdigit()]
    return "--require" if parts[0] == "thresholds" else _flag(parts[-1])


def _flag(name: str) -> str | None:
    return f"--{name.replace('_', '-')}" if name in FLAGS or name == "key" else None  # `key` is one of `compare`


def _with_value(setting: Setting) -> str | None:
    name, value = setting.name, setting.value
    if name == "missing":
        return "--drop-missing" if value == "drop" else None
    if name in ("kind", "outcome_kind"):
        return f"--{value}s"
    if name in _OWN_FLAGS:
        return _OWN_FLAGS[name]
    flag = _flag(name)
    if flag is None:
        return None
    repeated = value if name == "missing_values" and isinstance(value, list | tuple) else [value]
    return " ".join(f"{flag} {_word(item)}" for item in repeated)


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{shlex.quote(str(name))}={_word(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(_word, value))
    text = str(value)
    return shlex.quote(text) if any(letter.isalnum() for letter in text) else f"'{text}'"


COMMAND = FlagStyle()
