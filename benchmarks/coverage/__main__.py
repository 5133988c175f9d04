"""Measure level, coverage and power by simulation, and record them for docs/promises.md.

A line that is recorded for the code as it is now is not measured again, so a run that is stopped resumes.

    python -m benchmarks.coverage                              every claim, at most an hour each
    python -m benchmarks.coverage bounds moved                 two of them
    python -m benchmarks.coverage bounds --only calibration    the lines with this word, whether recorded or not
    python -m benchmarks.coverage --small                      few samples with fixed seeds, as in the tests; unrecorded
    python -m benchmarks.coverage bounds --same-as OLD/src     after a change of the code that should move no number

The last one repeats a twentieth of the samples of every line with the code in OLD/src, for which the line was measured,
and with the code of today. A line with the same share in both is recorded for today's code, with a note; others stay
stale.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, ROOT, listing, require_claim
from benchmarks.coverage import NAMES
from benchmarks.coverage._lines import Book, Line, hash_of, key_of, read, write


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the named claims, or all; with --small, return 1 if a promise does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims to measure; all without one")
    parser.add_argument("--list", action="store_true", help="show the claims")
    parser.add_argument("--anew", action="store_true", help="measure every line, also those that are recorded")
    parser.add_argument("--only", default="", metavar="WORDS", help="measure only the lines that contain these words")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no further line of a claim after so long")
    parser.add_argument(
        "--small", action="store_true", help="few samples, fixed seeds; exit with 1 if a promise breaks"
    )
    parser.add_argument("--same-as", type=Path, metavar="SOURCE", help="the code that was measured: a folder `src`")
    parser.add_argument("--repeat", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.list:
        print(listing(NAMES))
        return 0
    names = [require_claim(name, NAMES) for name in options.names] or list(NAMES)
    if options.small:
        return 1 if broken_in_small(names) else 0
    for name in names:
        if options.repeat:
            repeat(name)
        elif options.same_as is not None:
            keep_unmoved(name, options.same_as)
        else:
            measure(name, only=options.only, anew=options.anew, minutes=options.minutes)
    return 0


def measure(name: str, **how: Any) -> None:
    """Measure and record the lines of a claim that are not recorded for the current code."""
    claim, path = import_module(f"benchmarks.coverage.{name}"), RESULTS / f"{name}.json"
    book = Book(path, " ".join(claim.MEASURED), **how)
    claim.promises(book)
    declared = {key_of(line) for line in book.lines}
    if not (book.only or book.left):  # what a claim no longer declares is no promise any more
        write([line for line in read(path) if key_of(line) in declared], path)
    if book.left:
        print(f"{book.left} lines are left for the next run: python -m benchmarks.coverage {name}")


def broken_in_small(names: Sequence[str]) -> list[Line]:
    """Return the lines that do not hold in the small version of the claims."""
    book = Book()
    for name in names:
        import_module(f"benchmarks.coverage.{name}").promises(book)
    return [line for line in book.lines if not line.holds]


# A change that should move no number ---------------------------------------------------------------------------------

_SHARE = 0.05


def repeat(name: str) -> None:
    """Print the lines of a claim from a twentieth of the samples as JSON; runs in its own process."""
    book = Book(share=_SHARE)
    with redirect_stdout(sys.stderr):
        import_module(f"benchmarks.coverage.{name}").promises(book)
    print(json.dumps([asdict(line) for line in book.lines]))


def outcomes(name: str, source: Path) -> dict[str, list[Line]]:
    """Return the lines of a claim from a twentieth of the samples with the code in a folder, by simulation."""
    command = [sys.executable, "-m", "benchmarks.coverage", "--repeat", name]
    environment = os.environ | {"PYTHONPATH": str(source.resolve())}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with {source} failed:\n{done.stderr}")
    found: dict[str, list[Line]] = {}
    for values in json.loads(done.stdout):
        found.setdefault(_simulation(Line(**values)), []).append(Line(**values))
    return found


def _simulation(line: Line) -> str:
    """Return the key of a line's simulation; the populations of a batch may be named by their results."""
    return line.batch or " | ".join(key_of(line))


def keep_unmoved(name: str, old_source: Path) -> None:
    """Record the lines of a claim for the current code where old and current code have the same outcomes."""
    path = RESULTS / f"{name}.json"
    lines = read(path)
    if all(line.code == hash_of(line.rooms) for line in lines):
        print(f"{name}: nothing has changed")
        return
    then, now = outcomes(name, old_source), outcomes(name, ROOT / "src")
    kept, moved = [], []
    for line in lines:
        measured = line.code in (hash_of(line.rooms, old_source), hash_of(line.rooms))
        seen = now.get(_simulation(line), [])
        same = measured and bool(seen) and then.get(_simulation(line)) == seen
        code, repeated = (hash_of(line.rooms), seen[0].asked) if same else (line.code, line.repeated)
        kept.append(replace(line, code=code, repeated=repeated))
        moved += [] if same else [line]
    write(kept, path)
    print(f"{name}: {len(lines) - len(moved)} of {len(lines)} lines have the same outcomes", *moved, sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
