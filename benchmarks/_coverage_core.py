"""What the simulations of coverage share: effort, rows of the table, and the count of hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.stats.types import FloatArray, Interval

INSIDE = (0.93, 0.97)
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Effort:
    """How many samples and resamples a simulation may spend."""

    samples: int = 10_000
    boots: int = 3_000
    resamples: int = 2_000
    numbers: int = 40_000_000

    def samples_of(self, size: int) -> int:
        """Return how many samples of a size to draw."""
        return min(self.samples, self.numbers // size)


@dataclass(frozen=True)
class Row:
    """One line of the table; `below` and `above` say why its coverage may lie outside 93 to 97 %.

    `samples` is 0 when the coverage is exact.
    """

    what: str
    size: int
    at: str
    interval: str
    coverage: float
    none: float
    samples: int
    beside: tuple[tuple[str, float], ...] = ()
    below: str = UNEXPLAINED
    above: str = UNEXPLAINED

    @property
    def reason(self) -> str | None:
        """Why the row is outside; None when it is not."""
        beyond = max(INSIDE[0] - self.coverage, self.coverage - INSIDE[1])
        if beyond <= 0:
            return None
        why = self.below if self.coverage < INSIDE[0] else self.above
        noise = 3 * np.sqrt(0.95 * 0.05 / self.samples) if self.samples else 0.0
        return "within 3 standard errors of the simulation" if why == UNEXPLAINED and beyond < noise else why

    def __str__(self) -> str:
        beside = "   ".join(f"{name} {coverage:.3f}" for name, coverage in self.beside)
        basis = f"{self.samples}" if self.samples else "exact"
        return (
            f"{self.what:33}{self.size:>7,}  {self.at:15}{self.interval:16}{self.coverage:>7.3f}{self.none:>7.3f}"
            f"  {basis:7} {beside}"
        )


HEADER = f"{'quantity':33}{'n':>7}  {'at':15}{'interval':16}{'covers':>7}{'none':>7}  {'basis':7} beside"


def outside(rows: Sequence[Row]) -> str:
    """Return the rows outside the goal in one line, by reason."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.reason is not None:
            by_reason.setdefault(row.reason, []).append(f"{row.what} n={row.size:,} {row.at} {row.coverage:.3f}")
    named = "; ".join(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items())
    return f"Outside 93-97 %: {named or 'none'}."


def covered(limits: Interval, truth: float, probability: FloatArray | None = None) -> tuple[float, float]:
    """Return the coverage among samples with an interval, and the share without one."""
    low, high = np.asarray(limits.low), np.asarray(limits.high)
    share = np.full(low.shape, 1.0 / low.size) if probability is None else probability
    slack = 1e-12 * max(1.0, abs(truth))
    known = ~np.isnan(low) & ~np.isnan(high)
    inside = known & (low <= truth + slack) & (truth - slack <= high)
    return float(share[inside].sum() / share[known].sum()), float(share[~known].sum() / share.sum())


def stack(limits: Sequence[Interval], column: int = 0) -> Interval:
    """Return one Interval of arrays from one column of many."""
    return Interval(
        np.array([float(limit.low[column]) for limit in limits]),
        np.array([float(limit.high[column]) for limit in limits]),
    )
