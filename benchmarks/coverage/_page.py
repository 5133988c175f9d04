"""The tables of `docs/promises.md`, made of the recorded results."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from benchmarks import RESULTS
from benchmarks.coverage import NAMES
from benchmarks.coverage._lines import Line, hash_of, read

_TITLES = {
    "interval": "Intervals: the share that covers",
    "test": "Tests: the share of false rejections",
    "verdict": "Verdicts and findings: the share that is wrong",
    "power": "Power: the share found",
}
_COLUMNS = ("What is promised", "Population", "Nominal", "Observed", "Samples", "Beside", "Measured by")


def page_part() -> str:
    """Return the tables of `docs/promises.md`: what holds, then and now, and all lines that are kept."""
    lines = [(name, line) for name in NAMES for line in read(RESULTS / f"{name}.json")]
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
    """Return the table of `independent_check.csv`, what an independent check found, beside what these lines say now."""
    heads = ("Point", "What", "Before (independent check)", "Now", "Samples", "A former or other rule, same samples")
    rows = [heads, tuple("---" for _ in heads)]
    with (RESULTS / "independent_check.csv").open(encoding="utf-8") as file:
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
    yield f"`{name}`" + (mark if line.code == hash_of(line.rooms) else " †")
