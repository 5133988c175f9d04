"""The tables of `docs/promises.md` from the recorded results: at most `MOST_LINES` lines, worst first."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from benchmarks import RESULTS
from benchmarks.coverage import NAMES
from benchmarks.coverage._lines import Line, hash_of, read

MOST_LINES = 370
"""The lines of this part; the page has about 25 more."""

_TITLES = {
    "interval": "Intervals: the share that covers",
    "test": "Tests: the share of false rejections",
    "verdict": "Verdicts and findings: the share that is wrong",
    "power": "Power: the share found",
}
_WORST = ("What is promised", "Population", "Nominal", "Observed", "Samples", "Beside", "Measured by")
_METHODS = ("Method", "Populations", "Nominal", "Worst", "Median", "Worst in", "Measured by")
_FEWEST_WORST = 15

Named = tuple[str, Line]


def page_part() -> str:
    """Return the tables of `docs/promises.md`: a summary, the worst lines, independent checks, and all methods."""
    lines = [(name, line) for name in NAMES for line in read(RESULTS / f"{name}.json")]
    summary = _summary(lines)
    rest = [_then_and_now(lines)]
    rest += [_methods(title, [pair for pair in lines if pair[1].kind == kind]) for kind, title in _TITLES.items()]
    taken = sum(part.count("\n") + 1 for part in (summary, *rest))
    return "\n".join([summary, _worst(lines, max(_FEWEST_WORST, MOST_LINES - taken - 8)), *rest])


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    told = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in told)


def _summary(lines: Sequence[Named]) -> str:
    """Return a summary of how many promises hold, with a list of the broken ones."""
    promised = [(name, line) for name, line in lines if line.nominal is not None]
    broken = [f"- {line.what}: {line.population} (`{name}`)" for name, line in promised if not line.holds]
    less = sum(line.allowed is not None and line.allowed != line.nominal for _, line in promised)
    below = sum(_shortfall(line) > 0 and line.holds for _, line in promised)
    stale = sum(line.code != hash_of(line.rooms) for _, line in lines)
    kept = sum(bool(line.repeated) and line.code == hash_of(line.rooms) for _, line in lines)
    said = (
        f"{len(lines):,} lines, {len(promised):,} of them a promise. {len(promised) - len(broken):,} hold, within "
        f"three Monte Carlo errors. That is less than it sounds: {below:,} of these were observed beyond the nominal "
        f"share, and in {less:,} less is promised than the nominal share, with the reason. {stale:,} lines were "
        "measured before the code that they are about last changed, be it only in layout: those marked †. "
        f"{kept:,} were measured before a change that should move no number, and a twentieth of their samples, drawn "
        "again with both codes, had the same shares: those marked ‡. All lines are in `benchmarks/results`."
    )
    return "\n".join([said, *(["", "These do not hold:", "", *broken] if broken else []), ""])


def _shortfall(line: Line) -> float:
    """Return the distance of an observed share beyond its nominal share; 0 without a promise."""
    if line.nominal is None or line.observed is None:
        return 0.0
    return line.nominal - line.observed if line.kind == "interval" else line.observed - line.nominal


def _worst(lines: Sequence[Named], most: int) -> str:
    """Return a table of the lines farthest beyond their nominal share, worst first."""
    ranked = sorted(lines, key=lambda pair: -_shortfall(pair[1]))
    worst = [pair for pair in ranked if not pair[1].holds or _shortfall(pair[1]) > 0]
    rest = len(worst) - most
    more = f"\n\n{rest:,} more are beyond it by at most {_shortfall(worst[most][1]):.3f}." if rest > 0 else ""
    return (
        "## The worst\n\nThe promises that were observed farthest beyond their nominal share, whether they hold or "
        f"not.\n\n{_table(_WORST, (_cells(*pair) for pair in worst[:most]))}{more}\n"
    )


def _methods(title: str, lines: Sequence[Named]) -> str:
    """Return a table with a row per method: number of populations, worst share and median share."""
    by_method: dict[tuple[str, str], list[Line]] = {}
    for name, line in lines:
        by_method.setdefault((line.what, name), []).append(line)
    rows = [_method_cells(name, method, same) for (method, name), same in by_method.items()]
    return f"## {title}\n\n{_table(_METHODS, rows)}\n"


def _method_cells(name: str, method: str, lines: Sequence[Line]) -> Iterator[str]:
    observed = [line.observed for line in lines if line.observed is not None]
    nominal = sorted({line.nominal for line in lines if line.nominal is not None})
    lowest_is_worst = lines[0].kind in ("interval", "power")
    worst = (min if lowest_is_worst else max)(lines, key=lambda line: line.observed or 0.0)
    yield method
    yield f"{len(lines)}"
    yield ", ".join(f"{share:g}" for share in nominal)
    yield _observed(worst) if worst.holds else f"**{_observed(worst)}**"
    yield f"{median(observed):.3f}" if observed else ""
    yield worst.population
    yield f"`{name}`" + _mark(lines)


def _mark(lines: Iterable[Line]) -> str:
    """Return the most serious mark that lines need because other code was measured; "" for none."""
    if any(line.code != hash_of(line.rooms) for line in lines):
        return " †"
    return " ‡" if any(line.repeated for line in lines) else ""


def _then_and_now(lines: Sequence[Named]) -> str:
    """Return a table of independent checks (`independent_check.csv`) beside the current results."""
    heads = ("Point", "What", "Before (independent check)", "Now", "Samples", "Another rule, same samples", "By")
    found: dict[tuple[str, str, str, str], list[Line]] = {}
    with (RESULTS / "independent_check.csv").open(encoding="utf-8") as file:
        checked = [tuple(row) for row in csv.reader(file)][1:]
    for point, what, before, name, words, population in checked:
        here = [line for own, line in lines if own == name and words in line.what and population in line.population]
        found.setdefault((point, what, before, name), []).extend([x for x in here if x.what == words] or here)
    rows = [
        (point, what, before, "; ".join(map(_observed, here)), _each(line.samples for line in here), _beside(here), by)
        for (point, what, before, name), here in found.items()
        if here and (by := f"`{name}`{_mark(here)}")
    ]
    return (
        "## Then and now\n\nThe figures of the checks were found on populations of their own, through the public API; "
        "those of now are lines of these benchmarks, whose populations are the same or near them.\n\n"
        f"{_table(heads, rows)}\n"
    )


def _each(samples: Iterable[int]) -> str:
    """Return the number of samples of each line; equal numbers are listed once."""
    return "; ".join(f"{number:,}" for number in dict.fromkeys(samples))


def _beside(lines: Sequence[Line]) -> str:
    """Return the results of other rules in the same samples."""
    told: dict[str, list[str]] = {}
    for line in lines:
        if line.beside is not None:
            told.setdefault(line.oracle, []).append(f"{line.beside:.3f}")
    return "; ".join(f"{oracle}: {', '.join(shares)}" for oracle, shares in told.items())


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
    yield f"`{name}`" + _mark([line])
