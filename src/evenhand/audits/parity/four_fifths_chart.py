"""The chart of a ratio of selection rates: bars, the rate that the ratio requires, and the people short of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.charts import Forest, forest
from evenhand.messages.formats import show_tick

if TYPE_CHECKING:
    from evenhand.audits.parity.result import ParityResult
    from evenhand.core.records import Value

FOUR_FIFTHS = 0.8
"""The ratio drawn if no limit is set (29 CFR 1607.4 D)."""
_FAVOURABLE = {"selection_rate": ("selected", None), "not_selected_rate": ("not_selected",)}
"""The rates of the favourable decision, by the side that is good for a person."""


class AskedFor(NamedTuple):
    """The requirement of a ratio on a model's rates: a share of the rate of the reference group."""

    ratio: float
    reference: Value

    @property
    def rate(self) -> float:
        """The required rate."""
        return self.ratio * (self.reference.value or 0.0)

    def missing(self, value: Value) -> int | None:
        """Return the number of additional selected people that a group needs to reach the rate, or None without counts.

        If x of n people and, in the reference group, y of m people are selected, a ratio c requires ceil(c n y / m) -
        x more people.
        """
        here, there = people_of(value), people_of(self.reference)
        if here is None or there is None:
            return None
        needed = Fraction(repr(self.ratio)) * value.n * there / self.reference.n
        return max(0, ceil(needed) - here)


def people_of(value: Value) -> int | None:
    """Return the number of people that a rate counts; None if it is not a ratio of counts (with survey weights)."""
    selected = (value.value or 0.0) * value.n
    is_counted = value.value is not None and abs(selected - round(selected)) < 1e-6 * max(1, value.n)
    return round(selected) if is_counted else None


def asked_for(result: ParityResult, metric: str, grouping: str | None) -> dict[str, AskedFor]:
    """Return the requirement on favourable rates by model: the strictest limit, or else four fifths."""
    asked: dict[str, AskedFor] = {}
    values = {(r.model, r.group): r for r in result.rows("values", metric=metric, grouping=grouping, stratum=None)}
    for finding in result.findings:
        model, where = finding.model or "", (finding.metric, finding.grouping, finding.stratum, finding.kind)
        reference = values.get((finding.model, finding.reference))
        if where != (metric, grouping, None, "ratio") or reference is None or not reference.value:
            continue
        if result.favourable.get(model) in _FAVOURABLE.get(metric, ()):
            line = AskedFor(FOUR_FIFTHS if finding.limit is None else finding.limit, reference)
            asked[model] = max(asked.get(model, line), line, key=lambda each: each.rate)
    return asked


def bars_panel(
    rows: Sequence[Mapping[str, Any]], values: Sequence[Value], asked: Mapping[str, AskedFor], **options: Any
) -> Forest:
    """Return rates as bars from 0, with the required rate as a line and the number of people short of it."""
    shown = [{**row, **_line(value, asked.get(value.model or ""))} for row, value in zip(rows, values, strict=True)]
    ratios = ", ".join(sorted({show_tick(line.ratio, "percent") for line in asked.values()}))
    references = ", ".join(dict.fromkeys(line.reference.group or "" for line in asked.values()))
    black = f"{ratios} of the rate of {references}; pale: what is missing to it"
    return forest(shown, percent=True, bars=True, black=black, **options)


def _line(value: Value, asked: AskedFor | None) -> dict[str, Any]:
    """Return the required rate of a row and the number of people short of it."""
    if asked is None:
        return {}
    missing = None if value.group == asked.reference.group else asked.missing(value)
    return {"limits": (asked.rate,), "short": missing}
