"""Imports of the optional packages of formats."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from evenhand.errors import ConfigError, require_extra
from evenhand.messages import showable


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Import a format's package, or raise an error that explains how to install it."""
    require_extra(module, extra, what)
    try:
        return import_module(module)
    except OSError as error:  # WeasyPrint loads Pango, a system library
        raise ConfigError(
            "{what} needs a library of the system that is missing ({splitlines}); on Debian install it "
            "with: apt-get install libpango-1.0-0 libpangoft2-1.0-0",
            what=what,
            splitlines=showable(str(error)).splitlines()[0],
        ) from None
