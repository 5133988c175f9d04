"""The report in every format, from the same `Audit`, without new computations or the data.

Each format is a module of this folder with the format's name and a function `make`, which returns the files of an
audit by name. Modules with a leading underscore are shared by several formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeAlias

from evenhand.errors import require_name
from evenhand.report.display_names import displayed

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

Files: TypeAlias = dict[str, str | bytes]

FORMATS: tuple[str, ...] = tuple(sorted(module.name for module in iter_modules(__path__) if module.name[0] != "_"))
"""The names of the formats."""

_DATA = ("csv", "junit")
"""Formats for programs, which keep the names of the data."""


def make_files(audit: Audit, formats: Iterable[str]) -> Files:
    """Return the files of several formats, by file name.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    >>> audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"))
    >>> list(make_files(audit, ["md", "junit"]))
    ['report.md', 'junit.xml']
    """
    files: Files = {}
    shown = displayed(audit)
    for name in formats:
        require_name(name, FORMATS, "there is no format {name!r}; {hint}")
        files |= import_module(f"{__name__}.{name}").make(audit if name in _DATA else shown)
    return files
