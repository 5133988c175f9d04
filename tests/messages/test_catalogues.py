"""Every catalogue is complete and current in every language, and says the same things with the same arguments."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.messages.catalogue import Catalogue, catalogue_of, fields

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import messages as tool  # noqa: E402

CATALOGUES = {catalogue.name: catalogue for catalogue in tool.load()}
ERRORS = {"ConfigError", "DataError", "EvenhandError", "MissingExtraError", "SettingError", "problem"}


def test_no_sentence_is_missing_in_any_language() -> None:
    done = subprocess.run([sys.executable, "tools/messages.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_translation_has_no_argument_that_the_english_sentence_lacks(name: str) -> None:
    catalogue: Catalogue = CATALOGUES[name]
    for key, sentence in catalogue.sentences.items():
        translated = catalogue.translated("de", key)
        assert translated is not None
        known = {field.name for field in fields(sentence)}
        assert {field.name for field in fields(translated)} <= known | _OTHER_WORDS.get(f"{name}.{key}", set()), key


_OTHER_WORDS: dict[str, set[str]] = {}
"""What a German sentence says beside the arguments of the English one; every message of it has them."""


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: str(path.name))
def test_no_error_is_given_finished_english(path: Path) -> None:
    """An f-string in an error would put a value of the data where a sentence is parsed."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ERRORS and call.args:
            assert not isinstance(call.args[0], ast.JoinedStr | ast.BinOp), f"{path}:{call.lineno}"


def test_a_message_finds_its_catalogue() -> None:
    found = catalogue_of("core.undefined")
    assert found is not None
    assert found[0].name == "core"
    assert catalogue_of("nowhere.undefined") is None


@pytest.mark.parametrize("name", CATALOGUES)
def test_what_a_safe_number_counts_is_part_of_the_sentence(name: str) -> None:
    """A noun in its place could be people, in an audit that somebody else wrote."""
    for sentence in CATALOGUES[name].sentences.values():
        for text in (sentence,) if isinstance(sentence, str) else sentence:
            assert ":count safe} {" not in text, text
