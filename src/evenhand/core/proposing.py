"""The sections of an `audit.toml` that `evenhand init` writes: what an audit must be able to propose for a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class SeenFile:
    """What was seen in a file.

    Parameters
    ----------
    source : its name.
    long : the columns of the person and of the time, where a person has a row for each time.
    panel : columns of one feature over time, with the time of each.
    numbers : columns of numbers with many values, those without a role first.
    """

    source: str
    long: tuple[str, str] | None = None
    panel: Mapping[str, int] = field(default_factory=dict)
    numbers: Sequence[str] = ()


class Proposing:
    """What an audit proposes; as it is here, nothing."""

    leaves_blanks: ClassVar[bool] = False
    """Whether it proposes settings that the user must fill in; `evenhand audit` then refuses them by name."""

    def section(self, _seen: SeenFile) -> Iterable[str]:
        """Return the lines of its section."""
        return ()

    def offer(self, _seen: SeenFile) -> Iterable[str]:
        """Return lines at the end of the file, commented out, of a section that the user may want."""
        return ()

    def remarks(self, _seen: SeenFile) -> Iterable[str]:
        """Return what somebody should know of it before they settle the roles."""
        return ()


def quoted(value: object) -> str:
    """Return a TOML string; JSON's quoting is TOML's for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_list(values: Iterable[object]) -> str:
    """Return a TOML list of strings."""
    return f"[{', '.join(map(quoted, values))}]"
