"""Descriptions of a section's methods, from the texts of `methods.toml` in its folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from evenhand.core.display import Method


def method(package: str, key: str, **values: object) -> Method:
    """Return a method of a package's section, with values for the placeholders of its text."""
    return Method(**{name: text.format_map(values) for name, text in _read(package)[key].items()})


@cache
def _read(package: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((files(package) / "methods.toml").read_text("utf-8"))
