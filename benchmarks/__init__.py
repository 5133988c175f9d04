"""Benchmarks of evenhand's claims on speed and coverage: one file per claim, in two rooms (folders)."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
"""The recorded results of both rooms, and of `make mutants`."""


def claims(room: Path) -> dict[str, str]:
    """Return the name and title of every claim of a room, from its files without a leading underscore."""
    return {file.stem: _title(file) for file in sorted(room.glob("[!_]*.py"))}


def _title(file: Path) -> str:
    """Return the first line of a module's docstring, without importing the module."""
    documentation = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return documentation.partition("\n")[0]


def listing(known: dict[str, str]) -> str:
    """Return the names and titles of claims as text, one line each."""
    width = max(map(len, known))
    return "\n".join(f"  {name:{width}}  {title}" for name, title in known.items())


def require_claim(name: str, known: dict[str, str]) -> str:
    """Return the name if it is a claim of the room; otherwise exit with the nearest name."""
    if name in known:
        return name
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "--list shows the names."
    raise SystemExit(f"{name!r} is no benchmark of this room; {hint}")
