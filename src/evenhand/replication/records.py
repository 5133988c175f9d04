"""The records of a replication: printed and replicated numbers, claims and missing data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from math import nan
from pathlib import Path
from typing import Any, Literal

from evenhand.core.display import DisplayTable, Figure, Number, Range
from evenhand.datasets.registry import DATA_VARIABLE
from evenhand.messages.formats import Format

Verdict = Literal["holds", "holds in part", "does not hold"]


@cache
def published() -> dict[str, Any]:
    """Return the numbers printed in the papers, and the errata.

    Examples
    --------
    >>> published()["improvability_paper"]["table2_largest_delta"]["fairness"]
    0.725
    """
    read: dict[str, Any] = json.loads((files("evenhand.replication") / "published.json").read_text("utf-8"))
    return read


def data_folder(*parts: str) -> Path | None:
    """Return a path below EVENHAND_DATA; None if it does not exist."""
    root = os.environ.get(DATA_VARIABLE)
    path = Path(root).expanduser().joinpath(*parts) if root else None
    return path if path is not None and path.exists() else None


@dataclass(frozen=True)
class PrintedLine:
    """A printed number, or range of numbers, and the replicated number.

    Attributes
    ----------
    item, what
        The table or figure, and a description of the number in it.
    printed
        The printed number, or the lower end of the printed range.
    ours
        The replicated number.
    tolerance
        The tolerated difference, from rounding of the printed number or variation between runs.
    why
        The basis of the replicated number, and the reason for any difference.
    printed_high
        The upper end of the printed range, if the paper prints several such numbers.

    Examples
    --------
    >>> line = PrintedLine("Table 2", "largest margin", printed=0.725, ours=0.41, tolerance=0.05, why="signed test")
    >>> round(line.difference, 3), line.agrees
    (-0.315, False)
    """

    item: str
    what: str
    printed: float
    ours: float
    tolerance: float
    why: str = ""
    printed_high: float | None = None

    @property
    def difference(self) -> float:
        """The replicated minus the printed number, or minus the nearer end of the range; 0 within it."""
        high = self.printed if self.printed_high is None else self.printed_high
        return self.ours - min(max(self.ours, self.printed), high)

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance."""
        return abs(self.difference) <= self.tolerance * (1 + 1e-9)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, its verdict, and the evidence."""

    item: str
    claim: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Missing:
    """A table or figure missing for lack of data, with the reason and the loader of the data."""

    item: str
    reason: str
    loader: str


@dataclass(frozen=True, eq=False)
class Chapter:
    """The results for one paper.

    Parameters
    ----------
    name : the paper.
    lines, claims : the comparison of printed and replicated numbers, and the verdicts on its claims.
    absent : the keys of the results that the available data do not allow.
    figures : its replicated figures.
    """

    name: str
    lines: Sequence[PrintedLine] = ()
    claims: Sequence[Claim] = ()
    absent: Sequence[str] = ()
    figures: Sequence[Figure] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """The subject of the paper."""
        return str(published()["chapters"][self.name]["title"])

    @property
    def citation(self) -> str:
        """The paper's authors, title and year."""
        return str(published()["chapters"][self.name]["citation"])

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The tables and figures that the available data do not allow."""
        return tuple(Missing(*published()["chapters"][self.name]["missing"][name]) for name in self.absent)

    @property
    def errata(self) -> tuple[tuple[str, str, str], ...]:
        """The errors in the paper: location, printed text and correction."""
        return tuple((where, printed, instead) for where, printed, instead in published()["errata"][self.name])

    def to_dict(self) -> dict[str, Any]:
        """Return the contents as plain values, without the figures."""
        lines = [{**asdict(line), "difference": line.difference, "agrees": line.agrees} for line in self.lines]
        return {
            "paper": self.name,
            "citation": self.citation,
            "lines": lines,
            "claims": [asdict(claim) for claim in self.claims],
            "missing": [asdict(missing) for missing in self.missing],
            "errata": [dict(zip(("place", "printed", "instead"), erratum, strict=True)) for erratum in self.errata],
        }

    def parts(self) -> Iterator[Figure | DisplayTable]:
        """Yield the tables and figures of the report."""
        if self.lines:
            columns = ("Where", "What", "Printed", "Ours", "Difference", "Agrees", "Why")
            yield DisplayTable(f"Printed and found: {self.agreeing()}", columns, tuple(map(_cells, self.lines)))
        if self.claims:
            rows = tuple((_short(c.item), c.claim, c.verdict, c.evidence) for c in self.claims)
            yield DisplayTable("Claims", ("Where", "The paper says", "Verdict", "Evidence"), rows)
        yield from self.figures
        if self.missing:
            absent = tuple((m.item, m.reason, m.loader.replace("`", "")) for m in self.missing)
            yield DisplayTable("What cannot be had here", ("Where", "Why", "What waits for it"), absent)

    def agreeing(self) -> str:
        """Return the number of agreeing lines as text."""
        agreeing = sum(line.agrees for line in self.lines)
        return f"{agreeing} of {len(self.lines)} agree" if self.lines else "no number could be computed"


def _short(item: str) -> str:
    """Return a place with non-breaking spaces if it is short."""
    return item.replace(" ", "\u00a0") if len(item) < 18 else item


def _cells(line: PrintedLine) -> tuple[Any, ...]:
    style: Format = "count" if isinstance(line.printed, int) else "number"
    printed = Number(line.printed, style) if line.printed_high is None else Range(line.printed, line.printed_high)
    return (
        _short(line.item),
        line.what,
        printed,
        Number(line.ours, style),
        Number(line.difference, "signed"),
        "yes" if line.agrees else "no",
        line.why,
    )


def number_or_nan(value: float | None) -> float:
    """Return a number for comparison with a printed number; nan for None, so that it never agrees."""
    return nan if value is None else value
