"""The table of the papers' items: every setting, function, metric and command that it names exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from evenhand.audits import REGISTRY
from evenhand.cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs/methods/papers.md").read_text()
LINES = [line.split("|")[1:4] for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| Item")]
NAMES = sorted({name for _, does, _ in LINES for name in re.findall(r"`([^`]+)`", does)})
STATES = (
    "done",
    "corrected",
    "not done",
    "waits",
    "wait",
    "from the printed",
    "no computation",
    "invented data",
    "not said",
    "not provable",
)
COMMANDS = typer.main.get_command(app)


def test_the_page_has_a_line_for_each_item() -> None:
    assert len(LINES) >= 150
    assert [item for item, _, _ in LINES if not item.strip()] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_exists(name: str) -> None:
    assert _found(name), f"docs/methods/papers.md names `{name}`, which does not exist"


def test_every_state_is_one_of_a_few() -> None:
    odd = [(item, state) for item, _, state in LINES if not state.strip().startswith(STATES)]
    assert odd == []


def _found(name: str) -> bool:
    first, _, rest = name.partition(" ")
    if first == "evenhand":
        return _command(rest.split())
    if first == "metric":
        return any(rest in _module(audit, "metrics").METRICS for audit in REGISTRY)
    audit, *path = name.split(".")
    if audit in REGISTRY:
        return _setting(_spec(audit), path) or path[0] in REGISTRY[audit].result.record_types()
    where = ["evenhand", *(path if audit == "eh" else [audit, *path])]
    return _python(where)


def _command(words: list[str]) -> bool:
    found: Any = COMMANDS
    for word in words:
        found = getattr(found, "commands", {}).get(word)
    return found is not None


def _module(audit: str, room: str) -> Any:
    return import_module(f"evenhand.audits.{audit}.{room}")


def _spec(audit: str) -> Any:
    return REGISTRY[audit].spec


def _setting(model: Any, path: list[str]) -> bool:
    if not path:
        return True
    fields = getattr(model, "model_fields", {})
    if path[0] not in fields:
        return False
    return len(path) == 1 or any(_setting(part, path[1:]) for part in _models(fields[path[0]].annotation))


def _models(annotation: Any) -> list[Any]:
    parts = [annotation, *getattr(annotation, "__args__", ())]
    found = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
    return found + [inner for part in parts[1:] if not isinstance(part, type) for inner in _models(part)]


def _python(where: list[str]) -> bool:
    for end in range(len(where), 0, -1):
        try:
            found: Any = import_module(".".join(where[:end]))
        except ModuleNotFoundError:
            continue
        for name in where[end:]:
            if name in getattr(found, "model_fields", {}):
                return True
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False
