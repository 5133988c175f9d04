"""`Estimate`: a value or gap with limits at any confidence, computed without a second run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Generic, TypeVar

from evenhand.core.records import Gap, Value

R = TypeVar("R", bound=Value | Gap)
R_co = TypeVar("R_co", bound=Value | Gap, covariant=True)


@dataclass(frozen=True, eq=False)
class Estimate(Generic[R_co]):
    """A value or gap, with its limits at any confidence.

    Parameters
    ----------
    record : the value or gap, with limits at the confidence of the audit.
    limits : the function that returns the same record with limits at another confidence; None if only limits at the
        audit's confidence are known. Limits are nested: a higher confidence never has narrower limits.
    """

    record: R_co
    limits: Callable[[float], R_co] | None = None

    def at(self, confidence: float) -> R_co | None:
        """Return the record with limits at a confidence; None if only the audit's confidence is available."""
        return None if self.limits is None else self.limits(confidence)

    def map(self, change: Callable[[R_co], R_co]) -> Estimate[R_co]:
        """Return the estimate with a change applied to its record at every confidence."""
        limits = self.limits
        return Estimate(change(self.record), None if limits is None else lambda level: change(limits(level)))


def estimates_at(
    records_at: Callable[[float], Iterable[R]],
    confidence: float,
    key: Callable[[R], Hashable],
    *,
    cached: int | None = None,
) -> list[Estimate[R]]:
    """Return the records at a confidence, each with its limits at any other confidence.

    Parameters
    ----------
    records_at : the function that returns all records at a confidence; it is called once for each confidence.
    confidence : the confidence of the audit.
    key : the function that returns a record's key, the same at every confidence.
    cached : the number of confidences to keep records of in memory; None for all.
    """

    @lru_cache(maxsize=cached)
    def by_key(level: float) -> dict[Hashable, R]:
        return {key(record): record for record in records_at(level)}

    def limits(name: Hashable, level: float) -> R:
        return by_key(level)[name]

    return [Estimate(record, partial(limits, name)) for name, record in by_key(confidence).items()]


def estimates_of_type(estimates: Iterable[Estimate[Value | Gap]], kind: type[R]) -> list[Estimate[R]]:
    """Return the estimates with records of a type."""
    return [estimate for estimate in estimates if isinstance(estimate.record, kind)]  # type: ignore[misc]
