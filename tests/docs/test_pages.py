"""The code on the pages runs, and prints what the pages say it prints.

- `python` blocks run in a folder of their own, one page in one namespace; a `text` block right after one is its output.
- A code block with a caption is a file of that name.
- In a `console` block lines after `$` are run; lines without it are the output. `; echo $?` prints the exit code,
  without it the code must be 0. Commands that are not to be run stand in `sh` blocks.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").glob("[gh][uo]*/*.md"))]

NEEDS = {
    "real-trajectories": {"linearmodels": "the panel of wages is part of it", "sklearn": "a model is fitted"},
    "fit-models": {"sklearn": "models are fitted"},
}
"""Packages that evenhand does not need, for the pages that do."""

WITHOUT_PYTHON = (
    "reading-a-report",
    "for-lawyers-and-auditors",
    "peers",
    "from-r-and-stata",
    "init-on-real-tables",
    "plan-an-audit",
    "your-own-audit",
    "compare-two-audits",
    "formats",
    "languages",
)
"""Pages that show no Python."""

SLOW = ("disagreement", "effort", "reliability", "run-a-study")
"""Pages whose audits take ten seconds or more; `make test-all` runs them."""

FENCE = re.compile(
    r"^```(?:\{code-block\} )?(?P<language>\w+)\n(?::caption: (?P<file>\S+)\n\n)?(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `printed` is the output that the page shows for it."""

    language: str
    file: str | None
    body: str
    line: int
    printed: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    after = {match.start(): match for match in found}
    made = []
    for match in found:
        gap = re.match(r"\n+", text[match.end() :])
        following = after.get(match.end() + (gap.end() if gap else 0))
        printed = following["body"] if following is not None and following["language"] == "text" else None
        line = text.count("\n", 0, match.start("body")) + 1
        made.append(Block(match["language"], match["file"], match["body"], line, printed))
    return made


def words(text: str) -> list[str]:
    """Return text as it reads, whatever the width of the terminal or of the page."""
    return text.split()


def run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    # As many lines above as on the page, so that a traceback names the right one.
    code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)  # noqa: S102
    return out.getvalue()


def run_command(command: str) -> str:
    """Run one line of a console block in this process."""
    line, _, tail = command.partition(";")
    arguments = shlex.split(line)
    name = ["evenhand"] if arguments[0] == "evenhand" else ["python", "-m", "evenhand"]
    assert arguments[: len(name)] == name, f"only evenhand is run from a console block; put {command!r} into a sh block"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(arguments[len(name) :])
    if tail:
        assert tail.strip() == "echo $?"
        return f"{out.getvalue()}{left.value.code}\n"
    assert left.value.code == 0, f"{command} failed: {err.getvalue()}"
    return out.getvalue()


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output shown below it."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else []) for page in PAGES],
    ids=[page.relative_to(ROOT).as_posix() for page in PAGES],
)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, why in NEEDS.get(page.stem, {}).items():
        pytest.importorskip(package, reason=f"the page needs {package}: {why}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if page.parent.name == "examples":
        (tmp_path / "audit.toml").write_bytes((page.parent / "audit.toml").read_bytes())
    namespace: dict[str, Any] = {"__name__": "page"}
    files = []
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.body, encoding="utf-8")
            files.append(Path(block.file))
        elif block.language == "python":
            out = run_python(block, page, namespace)
            if block.printed is not None:
                assert words(out) == words(block.printed), f"the output after line {block.line} is:\n{out}"
        elif block.language == "console":
            for command, printed in commands(block):
                out = run_command(command)
                if printed:
                    assert words(out) == words(printed), f"{command} prints:\n{out}"
    for file in files:
        sys.modules.pop(file.stem, None)


def test_the_pages_have_code() -> None:
    """A slip in the pattern must not make the test above pass on nothing."""
    for page in PAGES:
        languages = [block.language for block in blocks(page)]
        text = page.read_text(encoding="utf-8")
        assert len(languages) == text.count("```") // 2 - text.count("```{image}") - text.count("```{literalinclude}")
        assert "python" in languages or page.stem in WITHOUT_PYTHON
