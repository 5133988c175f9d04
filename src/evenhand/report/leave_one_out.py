"""Whether a gap within strata stands without any one of them: a single department can make it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED, Value
from evenhand.report.frequencies import GroupValues

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_SAME = 1e-9


@dataclass(frozen=True)
class Stratum:
    """A stratum: its name, its people, and the values of its groups."""

    name: str
    people: int
    values: Mapping[str, float]


def strata_of(audit: Audit, finding: Finding, adjusted: GroupValues) -> list[Stratum]:
    """Return the strata that standardised values rest on; none where their shares are not known, as with weights.

    Standardised values are the means over strata, each with everybody's share of people.
    """
    result = audit.results[finding.audit]
    of_stratum: dict[str, list[Value]] = {}
    for value in result.tables.get("values", ()):
        place = (value.model, value.grouping, value.metric)
        if place == (finding.model, finding.grouping, finding.metric) and value.stratum not in (None, STANDARDISED):
            of_stratum.setdefault(str(value.stratum), []).append(value)
    groups = {value.group for value in adjusted.values}
    strata = [_stratum(name, values, groups) for name, values in of_stratum.items()]
    shared = [stratum for stratum in strata if groups <= stratum.values.keys()]
    least = result.spec.min_count
    shared = [s for s in shared if all(v.n >= least for v in of_stratum[s.name] if v.group in groups)]
    known = {value.group: value.value or 0.0 for value in adjusted.values}
    again = standardised(shared)
    return shared if all(abs(again.get(group, -1.0) - known[group]) < _SAME for group in groups) else []


def _stratum(name: str, values: Sequence[Value], groups: set[str]) -> Stratum:
    of_groups = {value.group: value.value for value in values if value.group in groups and value.value is not None}
    return Stratum(name, sum(value.n for value in values), of_groups)


def standardised(strata: Sequence[Stratum]) -> dict[str, float]:
    """Return the values of groups, standardised over strata."""
    people = sum(stratum.people for stratum in strata)
    groups = strata[0].values if people else ()
    return {group: sum(s.people * s.values[group] for s in strata) / people for group in groups}


def without_each(strata: Sequence[Stratum], adjusted: GroupValues) -> Iterator[tuple[str, GroupValues]]:
    """Yield each stratum with the standardised values of the groups without it."""
    for stratum in strata if len(strata) > 1 else ():
        values = standardised([other for other in strata if other is not stratum])
        yield stratum.name, replace(adjusted, values=tuple(replace(v, value=values[v.group]) for v in adjusted.values))
