"""What the product promises, measured: the writer of lines that the benchmarks share, and the tables made of them.

A benchmark of level or coverage declares its lines in a function `promises(book)` and ends with
`run(promises, __file__, "audits/parity", ...)`, which names the code that the lines are about (files or folders of
`src/evenhand`). A line is written as soon as it is known, and is not computed again while that code is the same;
comments and docstrings do not count.

    def promises(book):
        for n in (20, 200):
            book.measure(
                "95 % interval of a rate", f"rate 0.02, {n} people", lambda samples, rng, n=n: covers(samples, rng, n),
                kind="interval", nominal=0.95, samples=10_000, guard=500,
            )

Where one simulation tells several lines, `book.several(name, simulate, ...)` takes a function that returns them all.

    python benchmarks/NAME.py [--anew] [--only WORDS] [--minutes 20]   measure the lines of one benchmark
    python benchmarks/promises.py                                      the small version of all: fixed seeds, unwritten
    python benchmarks/promises.py --same-as OLD/src NAME ...           after a change that should move no number

The last repeats a twentieth of the samples of every line with the code in OLD/src, which was measured, and with that of
today. Lines with the same share of the same number of samples are kept for today's code, and say so; others stay stale.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.stats.bootstrap import named_rng

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

Kind = Literal["interval", "test", "verdict", "power"]
Simulate = Callable[[int, Generator], ArrayLike | tuple[ArrayLike, ArrayLike]]
"""So many samples, by this generator -> a true or false a sample: the interval covers, the test rejects, the verdict is
wrong, the gap is found. Samples without an interval or a test are left out of it. A single number is an exact share.
A pair holds ours and the oracle's."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One promise in one population.

    Parameters
    ----------
    what : the interval, test or verdict, as the product calls it.
    population : who was simulated.
    kind : an interval covers at least `nominal`; a test or a verdict is wrong at most so often; power is only reported.
    nominal : the confidence or the level; None for power.
    allowed : what is promised where that is less than nominal; `why` says why.
    observed : the share; None where no sample had an interval or a test.
    asked, samples : how many samples were drawn, and how many of them had an interval or a test; 0: the share is exact.
    oracle, beside : a method that knows more, or a peer, and its share of the same samples.
    rooms, code : the files and folders of the package that were measured, and the hash of their code.
    batch : the simulation that told this line together with others; empty where it has its own.
    repeated : in how many samples today's code and the code measured had the same share; 0: today's was measured.
    """

    what: str
    population: str
    kind: Kind
    nominal: float | None = None
    allowed: float | None = None
    why: str = ""
    oracle: str = ""
    observed: float | None = None
    beside: float | None = None
    asked: int = 0
    samples: int = 0
    rooms: str = ""
    code: str = ""
    batch: str = ""
    repeated: int = 0

    def seen(self, found: ArrayLike | tuple[ArrayLike, ArrayLike]) -> Line:
        """Return the line with what a simulation found: one truth a sample, or a pair of ours and the oracle's."""
        ours, oracle = found if isinstance(found, tuple) else (found, None)
        each = np.asarray(ours, dtype=np.float64)
        beside = self.beside if oracle is None else float(np.mean(np.asarray(oracle, dtype=np.float64)))
        share = float(each.mean()) if each.size else None
        return replace(self, observed=share, samples=each.size if each.ndim else 0, beside=beside)

    def held_against(self, others: Mapping[str, ArrayLike]) -> Line:
        """Return the line with what other methods found in the same samples; the last of them is the oracle."""
        shares = {name: float(np.mean(np.asarray(found, dtype=np.float64))) for name, found in others.items()}
        *first, last = shares
        named = "".join(f"{name}: {shares[name]:.3f}; " for name in first) + last
        return replace(self, oracle=named, beside=shares[last])

    @property
    def error(self) -> float:
        """The Monte-Carlo standard error of what was observed; at 0 and 1 with two more samples of each."""
        share, n = self.observed or 0.0, self.samples
        if n and share in (0.0, 1.0):
            share, n = (n * share + 2) / (n + 4), n + 4
        return float(np.sqrt(share * (1 - share) / n)) if n else 0.0

    @property
    def holds(self) -> bool:
        """Whether what was observed is within three Monte-Carlo errors of what is promised."""
        promised = self.nominal if self.allowed is None else self.allowed
        if promised is None or self.observed is None:
            return promised is None
        slack = 3 * float(np.sqrt(promised * (1 - promised) / self.samples)) if self.samples else 1e-9
        return self.observed >= promised - slack if self.kind == "interval" else self.observed <= promised + slack

    def __str__(self) -> str:
        promised = "" if self.nominal is None else f"{self.nominal:.3f}"
        observed = "none" if self.observed is None else f"{self.observed:.3f}"
        beside = "" if self.beside is None else f"  {self.oracle} {self.beside:.3f}"
        broken = "" if self.holds else "  DOES NOT HOLD"
        return (
            f"{self.kind:9}{self.what:44.44} {self.population:52.52} {promised:>6} "
            f"{observed:>6} ± {self.error:.3f}{beside}{broken}"
        )


@dataclass
class Book:
    """The lines of one benchmark: those that are known already, and those that are measured now.

    Parameters
    ----------
    path : where the lines are kept; None for the small version, which keeps nothing.
    rooms : the files and folders of the package that are measured, by a blank apart.
    only : measure only lines that contain these words, whether they are known or not.
    anew : measure every line, known or not.
    minutes : begin no further line after so long; what is left is measured by the next run.
    share : without a path, the share of the samples that is drawn instead of the small version; None for that.
    """

    path: Path | None = None
    rooms: str = ""
    only: str = ""
    anew: bool = False
    minutes: float = 20.0
    share: float | None = None
    lines: list[Line] = field(default_factory=list)
    left: int = 0
    began: float = field(default_factory=perf_counter)

    def measure(
        self, what: str, population: str, simulate: Simulate, *, kind: Kind, samples: int, guard: int = 0, **about: Any
    ) -> None:
        """Measure one line, or take it as known; `guard` is the number of samples in the small version, 0 for none."""
        asked = self._asked(samples, guard)
        about |= {"rooms": self.rooms, "code": hash_of(self.rooms)}
        line = Line(what=what, population=population, kind=kind, asked=asked, **about)
        known = next((old for old in read(self.path) if replace(old, **_UNKNOWN) == line), None)
        if self._is_due(asked, f"{what} {population}", known is not None):
            self._keep([line.seen(simulate(asked, named_rng(0, what, population)))])
        elif known is not None:
            self.lines.append(known)

    def several(
        self, batch: str, simulate: Callable[[int, Generator], Sequence[Line]], *, samples: int, guard: int = 0
    ) -> None:
        """Measure the lines that one simulation tells together, or take them as known."""
        asked = self._asked(samples, guard)
        about: dict[str, Any] = {"rooms": self.rooms, "code": hash_of(self.rooms), "batch": batch, "asked": asked}
        known = [old for old in read(self.path) if replace(old, **about) == old]
        if self._is_due(asked, " ".join([batch, *(f"{old.what} {old.population}" for old in known)]), bool(known)):
            self._keep([replace(line, **about) for line in simulate(asked, named_rng(0, batch))])
        else:
            self.lines += known

    def _asked(self, samples: int, guard: int) -> int:
        """Return how many samples to draw."""
        if self.share is not None:
            return max(guard, 10, round(self.share * samples))
        return guard if self.path is None else samples

    def _is_due(self, asked: int, words: str, known: bool) -> bool:
        """Tell whether something is to be measured now; what there is no time for is counted as left."""
        if not asked or not (self.only in words if self.only else self.anew or not known):
            return False
        late = perf_counter() - self.began > 60 * self.minutes
        self.left += late
        return not late

    def _keep(self, lines: Sequence[Line]) -> None:
        print(*lines, sep="\n", flush=True)
        self.lines += lines
        if self.path is not None:
            new = {_key(line) for line in lines}
            write([*(old for old in read(self.path) if _key(old) not in new), *lines], self.path)


_UNKNOWN: dict[str, Any] = {"observed": None, "samples": 0, "beside": None, "repeated": 0}


def _key(line: Line) -> tuple[str, str, str]:
    return line.what, line.population, line.kind


def read(path: Path | None) -> list[Line]:
    """Return the lines of a file; none where there is no file yet."""
    return [Line(**values) for values in json.loads(path.read_text())] if path is not None and path.exists() else []


def write(lines: Sequence[Line], path: Path) -> None:
    """Write the lines of a benchmark, in order; a run that is stopped leaves the old file or the new one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps([asdict(one) for one in sorted(lines, key=_key)], indent=1, ensure_ascii=False) + "\n")
    new.replace(path)


@cache
def hash_of(rooms: str, source: Path = ROOT / "src") -> str:
    """Return the hash of the code of files and folders of the package; comments and docstrings do not count."""
    digest = hashlib.sha256()
    for room in rooms.split():
        place = source / "evenhand" / room
        files = [*sorted(place.rglob("*.py")), *([place] if place.is_file() else [])]
        if not files:
            raise FileNotFoundError(f"{room} is no file or folder of the package; name what is measured in `run`.")
        for file in files:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                body = getattr(node, "body", None)
                if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                    body[:1] = [] if isinstance(body[0].value, ast.Constant) else body[:1]
            digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


def run(promises: Callable[[Book], None], file: str, *rooms: str) -> None:
    """Measure the lines of a benchmark that are not known for the code as it is, and write them."""
    parser = argparse.ArgumentParser(description=f"Measure the lines of {Path(file).name}.")
    parser.add_argument("--anew", action="store_true", help="measure every line, also those that are known")
    parser.add_argument("--only", default="", help="measure only the lines that contain these words")
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no further line after so long")
    given = parser.parse_args()
    path = HERE / "results" / f"{Path(file).stem}.json"
    path.parent.mkdir(exist_ok=True)
    book = Book(path, " ".join(rooms), given.only, given.anew, given.minutes)
    promises(book)
    declared = {_key(line) for line in book.lines}
    if not (given.only or book.left):  # what a benchmark no longer declares is no promise any more
        write([line for line in read(path) if _key(line) in declared], path)
    if book.left:
        print(f"{book.left} lines are left for the next run: python benchmarks/{Path(file).name}")


# The page -------------------------------------------------------------------------------------------------------------

_TITLES = {
    "interval": "Intervals: the share that covers",
    "test": "Tests: the share of false rejections",
    "verdict": "Verdicts and findings: the share that is wrong",
    "power": "Power: the share found",
}
_COLUMNS = ("What is promised", "Population", "Nominal", "Observed", "Samples", "Beside", "Measured by")


def page_part() -> str:
    """Return the tables of `docs/promises.md`: what holds, then and now, and all lines that are kept."""
    lines = [(path.stem, line) for path in sorted((HERE / "results").glob("*.json")) for line in read(path)]
    by_kind = [_table(f"## {_TITLES[kind]}", [pair for pair in lines if pair[1].kind == kind]) for kind in _TITLES]
    return "\n".join([_summary(lines), _then_and_now(lines), *by_kind])


def _table(title: str, lines: Sequence[tuple[str, Line]]) -> str:
    """Return the lines as a table; nothing where there are none."""
    rows = [" | ".join(_COLUMNS), " | ".join("---" for _ in _COLUMNS), *(" | ".join(_cells(*line)) for line in lines)]
    return f"{title}\n\n" + "\n".join(f"| {row} |" for row in rows) + "\n" if lines else ""


def _summary(lines: Sequence[tuple[str, Line]]) -> str:
    """Return how many promises hold, and name those that do not."""
    promised = [(name, line) for name, line in lines if line.nominal is not None]
    broken = [f"- {line.what}: {line.population} (`{name}`)" for name, line in promised if not line.holds]
    less = sum(line.allowed is not None and line.allowed != line.nominal for _, line in promised)
    stale = sum(line.code != hash_of(line.rooms) for _, line in lines)
    kept = sum(bool(line.repeated) and line.code == hash_of(line.rooms) for _, line in lines)
    said = (
        f"{len(lines):,} lines, {len(promised):,} of them a promise; in {less:,} less is promised than the nominal "
        f"share, with the reason. {len(promised) - len(broken):,} hold, within three Monte-Carlo errors. {stale:,} "
        "lines were measured before the files that they are about last changed, be it only in layout: those marked †. "
        f"{kept:,} were measured before a change that should move no number, and a twentieth of their samples, drawn "
        "again with both codes, had the same shares: those marked ‡."
    )
    return "\n".join([said, *(["", "These do not hold:", "", *broken] if broken else []), ""])


def _then_and_now(lines: Sequence[tuple[str, Line]]) -> str:
    """Return the table of what an independent check found (`before.csv`), and of what these lines say now."""
    heads = ("Point", "What", "Before (independent check)", "Now", "Samples", "A former or other rule, same samples")
    rows = [heads, tuple("---" for _ in heads)]
    with (HERE / "before.csv").open(encoding="utf-8") as file:
        checked = [tuple(row) for row in csv.reader(file)][1:]
    for point, what, before, name, words, population in checked:
        for own, line in lines:
            if own == name and words in line.what and population in line.population:
                beside = "" if line.beside is None else f"{line.oracle}: {line.beside:.3f}"
                rows.append((point, what, before, _observed(line), f"{line.samples:,}", beside))
    told = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return (
        "## Then and now\n\nThe figures of the check were found on populations of its own, through the public API; "
        f"those of now are lines of this page, whose populations are near them but not the same.\n\n{told}\n"
    )


def _observed(line: Line) -> str:
    exact = "none" if line.observed is None else f"{line.observed:.4f}, exact"
    return f"{line.observed:.3f}\u00a0±\u00a0{line.error:.3f}" if line.samples else exact


def _cells(name: str, line: Line) -> Iterator[str]:
    yield line.what
    yield line.population
    allowed = "" if line.allowed is None else f" ({line.allowed:.3f} allowed: {line.why})"
    yield "" if line.nominal is None else f"{line.nominal:g}{allowed}"
    yield _observed(line) if line.holds else f"**{_observed(line)}: does not hold**"
    yield f"{line.samples:,}" if line.samples else ""
    yield "" if line.beside is None else f"{line.oracle}: {line.beside:.3f}"
    mark = " ‡" if line.repeated else ""
    yield f"`benchmarks/{name}.py`" + (mark if line.code == hash_of(line.rooms) else " †")


def guard() -> list[Line]:
    """Measure the small version of every benchmark, and return the lines that do not hold."""
    book = Book()
    for file in sorted(HERE.glob("*.py")):
        if "\ndef promises(" in file.read_text(encoding="utf-8"):
            import_module(file.stem).promises(book)
    return [line for line in book.lines if not line.holds]


# A change that should move no number ---------------------------------------------------------------------------------

_SHARE = 0.05


def repeat(name: str) -> None:
    """Print, as JSON, the lines of a benchmark of a twentieth of the samples; for a process of its own."""
    book = Book(share=_SHARE)
    with redirect_stdout(sys.stderr):
        import_module(name).promises(book)
    print(json.dumps([asdict(line) for line in book.lines]))


def outcomes(name: str, source: Path) -> dict[str, list[Line]]:
    """Return the lines of a twentieth of the samples, with the code in this folder, by simulation."""
    command = [sys.executable, str(HERE / "promises.py"), "--repeat", name]
    environment = os.environ | {"PYTHONPATH": str(source.resolve())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with {source} failed:\n{done.stderr}")
    found: dict[str, list[Line]] = {}
    for values in json.loads(done.stdout):
        found.setdefault(_simulation(Line(**values)), []).append(Line(**values))
    return found


def _simulation(line: Line) -> str:
    """Return what names the simulation of a line: a line of several may name its population by what it found."""
    return line.batch or " | ".join(_key(line))


def keep_unmoved(name: str, old_source: Path) -> None:
    """Keep the lines of a benchmark for today's code where it and the code measured have the same outcomes."""
    path = HERE / "results" / f"{name}.json"
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


def main() -> int:
    """Run the small version of all benchmarks, or compare two codes."""
    parser = argparse.ArgumentParser(description="The small version of all benchmarks of level and coverage.")
    parser.add_argument("--same-as", type=Path, metavar="SOURCE", help="the code that was measured: a folder `src`")
    parser.add_argument("--repeat", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="benchmarks to compare the two codes on")
    given = parser.parse_args()
    if given.repeat:
        repeat(given.repeat)
        return 0
    if given.same_as is None:
        return 1 if guard() else 0
    for name in given.names:
        keep_unmoved(name, given.same_as)
    return 0


if __name__ == "__main__":
    sys.exit(main())
