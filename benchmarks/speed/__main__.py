"""Measure seconds and bytes; every claim prints its table.

    python -m benchmarks.speed                           every claim, except those that need something special
    python -m benchmarks.speed audits                    the cost of every audit beside peers, into docs/benchmarks.md
    python -m benchmarks.speed pairs robustness --quick  a quick look at two claims
    python -m benchmarks.speed pairs --help              the options of one claim

What follows the names is passed on to the claims. A claim that needs a graphics card, or much time or memory,
runs only if it is named; `--list` says which.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from benchmarks import listing, require_claim
from benchmarks.speed import NAMES


def main(argv: Sequence[str]) -> int:
    """Run the named claims, or all claims without special needs; return the number of failures."""
    names = list(takewhile(lambda word: not word.startswith("-"), argv))
    options = argv[len(names) :]
    if not names and {"-h", "--help"} & {*options}:
        print(f"usage: python -m benchmarks.speed [NAME ...] [OPTION ...]\n\n{__doc__}\n{_listing()}")
        return 0
    if not names and "--list" in options:
        print(_listing())
        return 0
    if not names and {*options} - {"--quick"}:
        raise SystemExit(f"name the claim that {' '.join(options)} is for; --list shows the names.")
    chosen = [require_claim(name, NAMES) for name in names] or [name for name in NAMES if not needs(name)]
    commands = ([sys.executable, "-m", f"benchmarks.speed.{name}", *options] for name in chosen)
    return sum(subprocess.run(command, check=False).returncode != 0 for command in commands)


def needs(name: str) -> str:
    """Return the special needs of a claim, from its constant `NEEDS`; "" without one."""
    tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NEEDS":
            return str(ast.literal_eval(node.value))
    return ""


def _listing() -> str:
    titles = {name: f"{title} Needs {needs(name)}." if needs(name) else title for name, title in NAMES.items()}
    return listing(titles)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
