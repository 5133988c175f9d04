"""Writer and reader of the lines (promises and their measured shares) that all coverage benchmarks use.

A benchmark is a file of this folder with a constant `MEASURED`, the measured code (files or folders of `src/evenhand`),
and a function `promises(book)` that declares the lines. A line is written as soon as it is measured, and is not
measured again while that code stays the same. Comments, docstrings, and files of a folder that only show results or
propose settings (`SHOWING`) are ignored, because they change no number.

    MEASURED = ("stats/intervals.py",)

    def promises(book):
        for n in (20, 200):
            book.measure(
                "95 % interval of a rate", f"rate 0.02, {n} people", lambda samples, rng, n=n: covers(samples, rng, n),
                kind="interval", nominal=0.95, samples=10_000, guard=500,
            )

Where one simulation gives several lines, `book.several(name, simulate, ...)` takes a function that returns them all.
The command that measures them is `python -m benchmarks.coverage`; `--help` explains it.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from benchmarks import ROOT
from evenhand.stats.bootstrap import named_rng

Kind = Literal["interval", "test", "verdict", "power"]
Simulate = Callable[[int, Generator], ArrayLike | tuple[ArrayLike, ArrayLike]]
"""So many samples, by this generator -> a true or false a sample: the interval covers, the test rejects, the verdict is
wrong, the gap is found. Samples without an interval or a test are left out of it. A single number is an exact share.
A pair holds ours and the oracle's."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One promise for one population, with its measured share.

    Parameters
    ----------
    what : the interval, test or verdict, as the product calls it.
    population : the simulated population.
    kind : an interval covers at least `nominal`; a test or a verdict is wrong at most so often; power is only reported.
    nominal : the confidence or the level; None for power.
    allowed : the promised share if it is weaker than nominal, with the reason `why`.
    observed : the observed share; None if no sample had an interval or a test.
    asked, samples : the number of drawn samples, and the number with an interval or a test; 0 if the share is exact.
    oracle, beside : a method with more information, or a peer, and its share in the same samples.
    rooms, code : the files and folders of the package that were measured, and the hash of their code.
    batch : the simulation that produced this line together with others; empty for a simulation of its own.
    repeated : the number of samples in which current and measured code had the same share; 0 if current code was
        measured.
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
        """Return the line with the share of true outcomes; a pair contains our outcomes and the oracle's."""
        ours, oracle = found if isinstance(found, tuple) else (found, None)
        each = np.asarray(ours, dtype=np.float64)
        beside = self.beside if oracle is None else float(np.mean(np.asarray(oracle, dtype=np.float64)))
        share = float(each.mean()) if each.size else None
        return replace(self, observed=share, samples=each.size if each.ndim else 0, beside=beside)

    def held_against(self, others: Mapping[str, ArrayLike]) -> Line:
        """Return the line with the shares of other methods in the same samples; the last method is the oracle."""
        shares = {name: float(np.mean(np.asarray(found, dtype=np.float64))) for name, found in others.items()}
        *first, last = shares
        named = "".join(f"{name}: {shares[name]:.3f}; " for name in first) + last
        return replace(self, oracle=named, beside=shares[last])

    @property
    def error(self) -> float:
        """The Monte Carlo standard error of the observed share; at 0 and 1, with two more samples of each kind."""
        share, n = self.observed or 0.0, self.samples
        if n and share in (0.0, 1.0):
            share, n = (n * share + 2) / (n + 4), n + 4
        return float(np.sqrt(share * (1 - share) / n)) if n else 0.0

    @property
    def holds(self) -> bool:
        """Whether the observed share is within three Monte Carlo errors of the promised share."""
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
    """The lines of one benchmark, recorded or newly measured.

    Parameters
    ----------
    path : the file of the recorded lines; None for the small version, which records nothing.
    rooms : the measured files and folders of the package, separated by blanks.
    only : measure only lines that contain these words, whether recorded or not.
    anew : measure every line, recorded or not.
    minutes : the time after which no further line is started; the next run measures the remaining lines.
    share : without a path, the share of the samples to draw; None for the small version.
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
        """Measure one line, or use its recorded result; `guard` is the number of samples of the small version."""
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
        """Measure the lines produced by one simulation, or use their recorded results."""
        asked = self._asked(samples, guard)
        about: dict[str, Any] = {"rooms": self.rooms, "code": hash_of(self.rooms), "batch": batch, "asked": asked}
        known = [old for old in read(self.path) if replace(old, **about) == old]
        if self._is_due(asked, " ".join([batch, *(f"{old.what} {old.population}" for old in known)]), bool(known)):
            self._keep([replace(line, **about) for line in simulate(asked, named_rng(0, batch))])
        else:
            self.lines += known

    def _asked(self, samples: int, guard: int) -> int:
        """Return the number of samples to draw."""
        if self.share is not None:
            return max(guard, 10, round(self.share * samples))
        return guard if self.path is None else samples

    def _is_due(self, asked: int, words: str, known: bool) -> bool:
        """Return whether to measure a line now; count it as left if time is over."""
        if not asked or not (self.only in words if self.only else self.anew or not known):
            return False
        late = perf_counter() - self.began > 60 * self.minutes
        self.left += late
        return not late

    def _keep(self, lines: Sequence[Line]) -> None:
        print(*lines, sep="\n", flush=True)
        self.lines += lines
        if self.path is not None:
            new = {key_of(line) for line in lines}
            write([*(old for old in read(self.path) if key_of(old) not in new), *lines], self.path)


_UNKNOWN: dict[str, Any] = {"observed": None, "samples": 0, "beside": None, "repeated": 0}


def key_of(line: Line) -> tuple[str, str, str]:
    """Return the key of a line in its file."""
    return line.what, line.population, line.kind


def read(path: Path | None) -> list[Line]:
    """Return the lines of a file; empty if the file does not exist."""
    return [Line(**values) for values in json.loads(path.read_text())] if path is not None and path.exists() else []


def write(lines: Sequence[Line], path: Path) -> None:
    """Write the sorted lines of a benchmark; an interrupted run leaves either the old or the new file intact."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps([asdict(one) for one in sorted(lines, key=key_of)], indent=1, ensure_ascii=False) + "\n")
    new.replace(path)


SHOWING = ("*chart*.py", "section.py", "messages.py", "display.py", "propos*.py", "csv_text.py", "progress.py")
"""Files of a folder that move no number: they show results, or propose settings."""


@cache
def hash_of(rooms: str, source: Path = ROOT / "src") -> str:
    """Return the hash of the code of files and folders of the package.

    Comments, docstrings and files that only show results are ignored.
    """
    digest = hashlib.sha256()
    for room in rooms.split():
        place = source / "evenhand" / room
        files = [file for file in sorted(place.rglob("*.py")) if not any(map(file.match, SHOWING))]
        files += [place] if place.is_file() else []
        if not files:
            raise FileNotFoundError(f"{room} is no file or folder of the package; name what is measured in `MEASURED`.")
        for file in files:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                body = getattr(node, "body", None)
                if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                    body[:1] = [] if isinstance(body[0].value, ast.Constant) else body[:1]
            digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]
