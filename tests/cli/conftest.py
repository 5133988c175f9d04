"""Fixtures of the tests of the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from evenhand.cli.main import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `evenhand` in this process; return its exit code and what it printed."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        words = [str(argument) for argument in arguments]
        with pytest.raises(SystemExit) as left:
            main(words)
        printed = capsys.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(words, code, printed.out, printed.err)

    return run
