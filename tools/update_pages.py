"""Run the code on pages of the documentation, and write its output into the pages.

`python tools/update_pages.py PAGE ...`, or without a page for all of them.

Read the diff before you commit it: a change on a page is a change for users.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = runpy.run_path(str(ROOT / "tests/docs/test_pages.py"))


def main(names: list[str]) -> None:
    """Update the pages named, or all of them."""
    for page in [Path(name).resolve() for name in names] or PAGES["PAGES"]:
        text = page.read_text(encoding="utf-8")
        changed = updated(page, text)
        print(f"{'changed' if changed != text else 'as it was'}: {page.name}")
        page.write_text(changed, encoding="utf-8")


def updated(page: Path, text: str) -> str:
    """Return a page with the current output of its code; differences only in line breaks are ignored."""
    words, namespace = PAGES["words"], {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        if page.parent.name == "examples":
            Path("audit.toml").write_bytes((page.parent / "audit.toml").read_bytes())
        for block in PAGES["blocks"](page):
            if block.file is not None:
                Path(block.file).write_text(block.body, encoding="utf-8")
            elif block.language == "python":
                out = PAGES["run_python"](block, page, namespace)
                if block.printed is not None and words(out) != words(block.printed):
                    text = text.replace(f"```text\n{block.printed}```", f"```text\n{out}```", 1)
            elif block.language == "console":
                text = text.replace(block.body, _console(block), 1)
        os.chdir(ROOT)
        sys.path.remove(folder)
    return text


def _console(block: Any) -> str:
    lines = []
    for command, printed in PAGES["commands"](block):
        out = PAGES["run_command"](command)
        as_it_was = not printed or PAGES["words"](out) == PAGES["words"](printed)
        lines.append(f"$ {command}\n{printed if as_it_was else out}")
    return "".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
