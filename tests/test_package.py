"""The package as a whole: light to import, honest about its names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.errors import EvenhandError, MissingExtraError, require_extra


def test_import_is_light() -> None:
    heavy = "'scipy', 'vl_convert', 'duckdb', 'pandas', 'polars', 'pydantic', 'typer', 'rich', 'sklearn'"
    code = f"import sys, evenhand; print([m for m in ({heavy}) if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_naming_the_audits_imports_their_descriptors_only() -> None:
    code = (
        "import sys, evenhand; evenhand.parity; from evenhand.audits import REGISTRY; list(REGISTRY);"
        "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('evenhand.audits.')"
        " and name.count('.') > 2}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "parity"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_audit_is_registered_with_its_parts(name: str) -> None:
    entry = REGISTRY[name]
    assert entry.result is getattr(eh, f"{name.capitalize()}Result")
    assert entry.spec.__module__ == f"evenhand.audits.{name}.spec"
    assert entry.run.__module__ == f"evenhand.audits.{name}.audit"
    assert name in REGISTRY


def test_an_unknown_audit_is_not_registered() -> None:
    assert "partiy" not in REGISTRY
    with pytest.raises(KeyError):
        REGISTRY["partiy"]


def test_the_map_for_contributors_shows_every_room() -> None:
    root = Path(__file__).parent.parent
    source = root / "src" / "evenhand"
    rooms = [
        path.parent.name
        for folder in (source, source / "study", source / "audits")
        for path in folder.glob("*/__init__.py")
    ]
    shown = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The house")[2].partition("```\n")[0]
    assert [room for room in rooms if f"  {room}/" not in shown] == []


def test_every_public_name_can_be_had() -> None:
    for name in eh.__all__:
        assert getattr(eh, name) is not None
        assert name in dir(eh)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'partiy'"):
        eh.partiy  # type: ignore[attr-defined]  # noqa: B018


def test_a_missing_extra_says_how_to_install_it() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[models\]'") as caught:
        require_extra("no_such_module", "models", "Fitting models")
    assert isinstance(caught.value, EvenhandError)
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("name", ["models", "datasets", "study", "testing"])
def test_tab_completion_shows_only_public_names(name: str) -> None:
    module = getattr(eh, name)
    assert sorted(dir(module)) == sorted(module.__all__)


def test_tab_completion_of_a_result_shows_what_a_user_asks_of_it() -> None:
    table = eh.Table({"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0] * 20}, groups="sex", predictions="hired")
    names = dir(eh.parity(table))
    assert {"gaps", "values", "findings", "get", "to_frame", "plot", "summary"} <= set(names)
    assert not {name for name in names if name.startswith("_") or name in ("record_types", "reveals", "descriptor")}
