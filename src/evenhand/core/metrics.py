"""`Metric`: one row a metric, the same in every audit. Options, tables, sentences, limits and docs follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import Literal

from evenhand.core.formats import Format
from evenhand.core.records import Against, Kind

Unit = Literal["share", "score", "index", "ratio", "amount"]
Better = Literal["higher", "lower", "neither"]
Of = Literal["value", "gap"]
Side = Literal["min", "max"]

BETWEEN_GROUPS: tuple[Against, ...] = ("worst_pair", "reference")


@dataclass(frozen=True)
class Limit:
    """A kind of threshold that makes sense for a metric.

    Parameters
    ----------
    of : whether it limits a value or a gap.
    side : whether the limit is a minimum or a maximum.
    kind : of a gap, difference or ratio.
    range : the smallest and largest sensible limit; a maximum must be below the largest, a minimum above the smallest.
    against : of a gap, which ones can be limited; the first is the default.
    """

    of: Of
    side: Side
    kind: Kind | None = None
    range: tuple[float, float] = (0.0, 1.0)
    against: tuple[Against, ...] = ()

    def allows(self, limit: float) -> bool:
        """Tell whether a limit is neither met by every system nor by none."""
        smallest, largest = self.range
        return smallest <= limit < largest if self.side == "max" else smallest < limit <= largest

    def in_words(self) -> str:
        """Return it as an instruction, as in 'max= of 0 or more and below 1 (a difference)'."""
        smallest, largest = self.range
        if self.side == "max":
            bounds = f"of {smallest:g} or more" + ("" if isinf(largest) else f" and below {largest:g}")
        else:
            bounds = f"above {smallest:g}" + ("" if isinf(largest) else f" and at most {largest:g}")
        return f"{self.side}= {bounds}" + (f" (a {self.kind})" if self.kind else "")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric.

    Parameters
    ----------
    name : the short name used in options and records.
    title : the name in words.
    unit : what kind of number it is.
    better : which value is better for the person it is about.
    formula : its definition.
    reference : where it comes from.
    caveat : what a number or a gap does not show.
    headline : whether it is told as a finding when no threshold names it.
    moves_with : what else than the thing measured can move it, as a clause.
    limits : the thresholds that make sense; a metric without any cannot be limited.
    """

    name: str
    title: str
    unit: Unit
    better: Better = "neither"
    formula: str = ""
    reference: str = ""
    caveat: str = ""
    headline: bool = False
    moves_with: str = ""
    limits: tuple[Limit, ...] = ()

    @property
    def title_in_sentence(self) -> str:
        """The title as it stands inside a sentence; abbreviations and names keep their capitals."""
        first = self.title.split()[0] if self.title else ""
        keeps = any(letter.isupper() for letter in first[1:]) or "'" in first or len(first) == 1
        return self.title if keeps else f"{self.title[:1].lower()}{self.title[1:]}"

    def style(self, kind: Kind | None = None, *, signed: bool = False) -> Format:
        """Return how its values (or gaps of this kind) are written."""
        if kind is None:
            return "percent" if self.unit == "share" else "number"
        if kind == "difference" and self.unit == "share":
            return "signed_points" if signed else "points"
        return "signed" if signed and kind == "difference" else "number"


def gap_limits(*, most: float = 1.0, against: tuple[Against, ...] = BETWEEN_GROUPS) -> tuple[Limit, ...]:
    """Return the limit of a difference between groups, from 0 to below the largest possible one."""
    return (Limit("gap", "max", "difference", (0.0, most), against),)


def ratio_limits(*, against: tuple[Against, ...] = BETWEEN_GROUPS) -> tuple[Limit, ...]:
    """Return the limit of a ratio between groups, the smaller value over the larger."""
    return (Limit("gap", "min", "ratio", (0.0, 1.0), against),)
