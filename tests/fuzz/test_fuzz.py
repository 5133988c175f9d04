"""A thousand cases of everything public: a lawful result, or one sentence that refuses.

Half of the cases of every target are marked slow; `make fuzz` runs many more.
"""

from __future__ import annotations

import inspect

import pytest
import typer

import evenhand as eh
from evenhand.cli.main import app

from .commands import COMMANDS, STUDY_WORDS
from .runner import CASES, ROUND, TARGETS, run_block, target_of

BLOCKS = [
    pytest.param(block, marks=pytest.mark.slow if ROUND[:block].count(name) >= TARGETS[name].turns else ())
    for block, name in enumerate(ROUND)
]
"""The blocks of a round; of each target the second half is slow."""


@pytest.mark.parametrize("block", BLOCKS)
def test_a_result_obeys_its_laws_or_the_input_is_refused_in_a_sentence(block: int) -> None:
    found = run_block(block)
    assert "failure" not in found, f"block {block}, {target_of(block)}: {found['failure']}"


def test_a_round_has_a_thousand_cases() -> None:
    assert len(ROUND) * CASES == 1_000


def test_every_public_function_and_command_is_fuzzed() -> None:
    functions = {name for name in eh.__all__ if inspect.isroutine(getattr(eh, name))}
    assert functions <= {name.split(".")[1] for name in TARGETS if name.startswith("eh.")}
    told = repr([str(words) for words in COMMANDS.values()]) + " ".join(COMMANDS)
    commands = typer.main.get_command(app)
    assert isinstance(commands, typer.core.TyperGroup)
    assert all(name in told for name in commands.commands)
    study = commands.commands["study"]
    assert isinstance(study, typer.core.TyperGroup)
    asked = {*STUDY_WORDS, "new", "serve", "simulate", "password", "recruits"}
    assert set(study.commands) == asked
