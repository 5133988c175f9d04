"""Sensitivity of a gap within strata to the removal of single strata, such as one department."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED, Value
from evenhand.report.frequencies import GroupValues

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_SAME = 1e-9


@dataclass(frozen=True)
class Stratum:
    """The name, number of people and group values of a stratum."""

    name: str
    people: int
    values: Mapping[str, float]


def strata_of(audit: Audit, finding: Finding, adjusted: GroupValues) -> list[Stratum]:
    """Return the strata behind standardised values; empty if their shares are unknown, for example with weights.

    Standardised values are means over strata, weighted by the strata's shares of all people.
    """
    known = {value.group: value.value or 0.0 for value in adjusted.values}
    least = audit.results[finding.audit].spec.min_count
    found = (_stratum(values, known, least) for values in _by_stratum(audit, finding).values())
    strata = [stratum for stratum in found if stratum is not None]
    again = standardised(strata)
    return strata if all(abs(again.get(group, -1.0) - known[group]) < _SAME for group in known) else []


def _by_stratum(audit: Audit, finding: Finding) -> dict[str, list[Value]]:
    """Return the values of all groups by stratum."""
    found: dict[str, list[Value]] = {}
    place = attrgetter("model", "grouping", "metric")
    for value in audit.results[finding.audit].tables.get("values", ()):
        if isinstance(value, Value) and value.stratum not in (None, STANDARDISED) and place(value) == place(finding):
            found.setdefault(str(value.stratum), []).append(value)
    return found


def _stratum(values: Sequence[Value], groups: Collection[str], least: int) -> Stratum | None:
    """Return a stratum if every group in it is large enough, else None."""
    large = {v.group: v.value for v in values if v.group in groups and v.n >= least and v.value is not None}
    return Stratum(str(values[0].stratum), sum(v.n for v in values), large) if large.keys() == set(groups) else None


def standardised(strata: Sequence[Stratum]) -> dict[str, float]:
    """Return the groups' values standardised over strata."""
    people = sum(stratum.people for stratum in strata)
    groups = strata[0].values if people else ()
    return {group: sum(s.people * s.values[group] for s in strata) / people for group in groups}


def without_each(strata: Sequence[Stratum], adjusted: GroupValues) -> Iterator[tuple[str, GroupValues]]:
    """Yield each stratum with the groups' standardised values without it."""
    for stratum in strata if len(strata) > 1 else ():
        values = standardised([other for other in strata if other is not stratum])
        yield stratum.name, replace(adjusted, values=tuple(replace(v, value=values[v.group]) for v in adjusted.values))
