"""numba is imported when a kernel is first called, and its cache never gets in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand

CALL = """
import warnings; warnings.simplefilter("error")
import sys
import evenhand.stats.pairs as pairs
assert "numba" not in sys.modules and "scipy" not in sys.modules
print(round(pairs.individual_fairness([0.2, 0.9, 0.4], [0.1, 0.5, 0.4], [0.0, 0.0, 0.0], 1.0).value, 6))
print(sys.modules["evenhand"].__file__)
"""


def call(source: Path, **environment: str) -> list[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        env={**inherited, "PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_importing_the_package_imports_no_numba() -> None:
    assert call(Path(evenhand.__file__).parents[1])[0] == "0.766667"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the permissions of POSIX")
def test_a_read_only_package_without_a_home_still_computes(tmp_path: Path) -> None:
    """Nowhere to cache: compiled again, without an error or a warning."""
    package = tmp_path / "site" / "evenhand"
    shutil.copytree(Path(evenhand.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    blocked = tmp_path / "no-folder"
    blocked.write_text("")  # a file where a cache folder would be made: closed even to root
    for folder in (package / "stats" / "pairs", package):
        (folder / "__pycache__").write_text("")
    out = call(tmp_path / "site", HOME=str(blocked), XDG_CACHE_HOME=str(blocked), PYTHONDONTWRITEBYTECODE="1")
    assert out == ["0.766667", str(package / "__init__.py")]
