"""The steps that one person goes through: one step is one page, one form and one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StepKind = Literal["instructions", "practice", "pair", "case", "check"]


@dataclass(frozen=True, slots=True)
class Step:
    """One page.

    Parameters
    ----------
    key : what the answer is stored under; unique within a person, and the same after a restart.
    kind : what is asked.
    item : the set (effort) or the case (feedback).
    subject : who of the set is compared with K: A, B, C or D.
    position : place of the item in the person's own order, from 1.
    check : number of the attention check, from 1.
    """

    key: str
    kind: StepKind
    item: str | None = None
    subject: str | None = None
    position: int | None = None
    check: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one person sees, in order: a function of the study, the condition and the place, never stored."""

    condition: str
    place: int
    steps: tuple[Step, ...]
