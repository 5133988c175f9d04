"""The sections of the `audit.toml` that `evenhand init` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class SeenFile:
    """The features of a data file that proposals depend on.

    Parameters
    ----------
    source : its name.
    long : the columns of the person and of the time, if a person has one row for each time.
    panel : columns of one feature over time, with the time of each.
    numbers : numeric columns with many values, those without a role first.
    """

    source: str
    long: tuple[str, str] | None = None
    panel: Mapping[str, int] = field(default_factory=dict)
    numbers: Sequence[str] = ()


class Proposing:
    """An audit's proposal for `audit.toml`; the default is empty."""

    leaves_blanks: ClassVar[bool] = False
    """Whether it proposes settings that the user must fill in; `evenhand audit` then refuses them by name."""

    def section(self, _seen: SeenFile) -> Iterable[str]:
        """Return the lines of its section."""
        return ()

    def offer(self, _seen: SeenFile) -> Iterable[str]:
        """Return lines for the end of the file: a commented-out section that the user may want."""
        return ()

    def remarks(self, _seen: SeenFile) -> Iterable[str]:
        """Return remarks for the user before the roles are fixed."""
        return ()


def quoted(value: object) -> str:
    """Return a TOML string; JSON's quoting is valid TOML for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_list(values: Iterable[object]) -> str:
    """Return a TOML list of strings."""
    return f"[{', '.join(map(quoted, values))}]"
