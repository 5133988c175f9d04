"""`Estimate`: a number with what its limits are computed from, so that limits at any confidence need no second run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evenhand.core.records import Gap, Value

R_co = TypeVar("R_co", bound=Value | Gap, covariant=True)


@dataclass(frozen=True, eq=False)
class Estimate(Generic[R_co]):
    """A value or a gap, and its limits at any confidence.

    Parameters
    ----------
    record : the value or gap, with limits at the confidence of the audit.
    limits : returns the same record with limits at another confidence; None where they are known at one only. Limits
        are nested: a higher confidence never has narrower ones.
    """

    record: R_co
    limits: Callable[[float], R_co] | None = None

    def at(self, confidence: float) -> R_co | None:
        """Return the record with limits at this confidence; None where they are known at one confidence only."""
        return None if self.limits is None else self.limits(confidence)

    def map(self, change: Callable[[R_co], R_co]) -> Estimate[R_co]:
        """Return the estimate of a record changed in the same way at every confidence, such as one turned round."""
        limits = self.limits
        return Estimate(change(self.record), None if limits is None else lambda level: change(limits(level)))
