"""Guessing roles: which column is the outcome, which are groups, which are scores. The user has the last word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from evenhand.table.profile import ColumnProfile

_WORDS = {
    "id": "id uuid key household person applicant customer patient defendant case",
    "group": "race ethnicity ethnic sex gender age religion disability disabled nationality country marital language "
    "veteran orientation region citizenship agegroup agecat",
    "outcome": "outcome label target truth actual y recid reoffended default defaulted missed repaid churned "
    "readmitted employed performed died event result observed",
    "score": "score risk prob probability proba pred prediction predicted model logit rating decile yhat",
    "decision": "decision approved approve selected select flag flagged accepted accept denied offer granted "
    "shortlisted admitted invited yhat pred predicted prediction hired",
    "weight": "weight weights wt pweight sampleweight",
}
_RISK_WORDS = {"risk", "recid", "default", "fraud", "flag", "flagged", "denied", "decile"}
_MOST_GROUPS = 20


@dataclass
class Proposal:
    """Roles that a table seems to have, with a reason for each."""

    id: str | None = None
    outcome: ColumnProfile | None = None
    groups: list[ColumnProfile] = field(default_factory=list)
    scores: list[ColumnProfile] = field(default_factory=list)
    decisions: list[ColumnProfile] = field(default_factory=list)
    weight: str | None = None

    @property
    def drops_rows(self) -> bool:
        """Whether some row lacks its outcome or prediction."""
        return any(c.missing for c in (self.outcome, *self.scores, *self.decisions) if c is not None)


def propose(columns: Sequence[ColumnProfile]) -> Proposal:
    """Guess the roles of columns from their names and values."""
    found = Proposal()
    free = list(columns)
    found.id = _take(free, (c for c in free if c.unique and c.kind in ("whole", "text") and _sounds(c, "id")))
    found.weight = _take(free, (c for c in free if _sounds(c, "weight") and _is_number(c) and (c.low or 0) >= 0))
    found.groups = _without_banded([c for c in free if _sounds(c, "group") and _can_group(c)])
    free = [c for c in free if c not in found.groups]
    binary = [c for c in free if c.two_valued]
    found.scores = [c for c in free if _is_score(c)]
    found.decisions = [c for c in binary if _sounds(c, "decision") and not _sounds(c, "outcome")]
    outcomes = [c for c in binary if c not in found.decisions]
    found.outcome = next((c for c in outcomes if _sounds(c, "outcome")), outcomes[0] if outcomes else None)
    if not found.scores and not found.decisions and found.outcome is not None:
        found.decisions, found.outcome = [found.outcome], None
    if not found.groups:
        used = [*found.scores, *found.decisions, found.outcome]
        found.groups = [c for c in free if c not in used and c.kind in ("text", "boolean") and _can_group(c)][:3]
    return found


def cut_points(column: ColumnProfile) -> list[int] | None:
    """Return cut points for a numeric group column with many values; the usual ones for an age."""
    if not _is_number(column) or column.distinct <= _MOST_GROUPS or column.low is None or column.high is None:
        return None
    if "age" in words(column.name):
        return [cut for cut in (25, 45, 65) if column.low < cut <= column.high] or None
    step = (column.high - column.low) / 4
    cuts = sorted({round(column.low + step * part) for part in (1, 2, 3)})
    return cuts if len(cuts) == 3 else None


def is_risk(names: Iterable[str]) -> bool:
    """Tell whether being selected sounds bad for the person, as with a risk score."""
    return any(_RISK_WORDS & set(words(name)) for name in names)


def words(name: str) -> list[str]:
    """Split a column name into lower-case words.

    Examples
    --------
    >>> words("riskScore_XGB"), words("age_group")
    (['risk', 'score', 'xgb'], ['age', 'group'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def _sounds(column: ColumnProfile, role: str) -> bool:
    return bool(set(words(column.name)) & set(_WORDS[role].split()))


def _take(free: list[ColumnProfile], fitting: Iterator[ColumnProfile]) -> Any:
    column = next(fitting, None)
    if column is not None:
        free.remove(column)
    return column.name if column else None


def _without_banded(groups: list[ColumnProfile]) -> list[ColumnProfile]:
    """Leave out a number such as `age` when the table also has it in bands, as `age_group`."""
    return [
        c
        for c in groups
        if not (cut_points(c) and any(o is not c and set(words(c.name)) < set(words(o.name)) for o in groups))
    ]


def _is_number(column: ColumnProfile) -> bool:
    return column.kind in ("whole", "real")


def _can_group(column: ColumnProfile) -> bool:
    if column.distinct < 2 or column.kind in ("other", "date", "datetime"):
        return False
    return (
        column.distinct <= _MOST_GROUPS * 5
        if not _is_number(column)
        else (column.distinct <= _MOST_GROUPS or cut_points(column) is not None)
    )


def _is_score(column: ColumnProfile) -> bool:
    if not _is_number(column) or column.distinct <= 2 or column.low is None or column.high is None:
        return False
    if not (isfinite(column.low) and isfinite(column.high)):
        return False
    unit = column.kind == "real" and column.low >= 0 and column.high <= 1
    return _sounds(column, "score") and (unit or column.kind == "real" or column.distinct <= 100)
