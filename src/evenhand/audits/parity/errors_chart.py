"""The chart of errors: the wrongly selected and wrongly not selected people among 100 of each group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.parity.four_fifths_chart import people_of
from evenhand.charts import Icons, OfHundred
from evenhand.core.display import DESCRIBES, Figure
from evenhand.core.records import OK, Value
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.parity.result import ParityResult

MOST_GROUPS = 6
"""The maximum number of groups with icons; the tables have all rates."""
_SOLID, _HOLLOW = "wrongly selected", "wrongly not selected"


def error_figure(result: ParityResult, grouping: str) -> Figure | None:
    """Return the icon chart of the largest groups for each model, or None if no errors were counted."""
    panels = tuple(panel for model in _models(result) if (panel := _panel(result, grouping, model)).groups)
    if not panels:
        return None
    described = (
        f"{panel.title}, of 100 {group.group}: {', '.join(group.told(_SOLID, _HOLLOW))}"
        for panel in panels
        for group in panel.groups
    )
    return Figure(
        f"Errors per 100 people, by {grouping}",
        f"Of 100 people of a group. Solid: {_SOLID}, without the positive outcome. Outlines: {_HOLLOW}, with it. Pale: "
        "rightly decided. In brackets: of how many without, or with, the positive outcome. Of many groups the largest "
        "are drawn.",
        f"{'; '.join(described)}.",
        panels,
        DESCRIBES,
    )


def _models(result: ParityResult) -> list[str]:
    return list(dict.fromkeys(record.model or "" for record in result.values))


def _panel(result: ParityResult, grouping: str, model: str) -> Icons:
    """Return the icons of a model's largest groups, in descending order of errors."""
    groups = sorted(_groups(result, grouping, model), key=lambda group: -group.n)[:MOST_GROUPS]
    ranked = sorted(groups, key=lambda group: -(group.solid + group.hollow))
    return Icons(model, tuple(ranked), _SOLID, _HOLLOW)


def _groups(result: ParityResult, grouping: str, model: str) -> Iterator[OfHundred]:
    rates = {
        metric: {r.group: r for r in result.rows("values", metric=metric, grouping=grouping, stratum=None, model=model)}
        for metric in ("tpr", "fpr")
    }
    for group, found in rates["tpr"].items():
        if group in rates["fpr"] and group != MISSING and (errors := of_hundred(found, rates["fpr"][group])):
            yield errors


def of_hundred(true: Value, false: Value) -> OfHundred | None:
    """Return the numbers of wrongly selected and wrongly not selected people among 100 of a group, from its two rates.

    If x of P people with the positive outcome and y of N other people are selected, 100 y / (P + N) people are wrongly
    selected and 100 (P - x) / (P + N) are wrongly not selected, both rounded. Return None if a rate has too few
    people, or is not a ratio of counts (with survey weights).
    """
    right, wrong = people_of(true), people_of(false)
    if right is None or wrong is None or {true.status, false.status} != {OK}:
        return None
    everybody = true.n + false.n
    selected, missed = round(100 * wrong / everybody), round(100 * (true.n - right) / everybody)
    people = (int(wrong), false.n), (int(true.n - right), true.n)
    return OfHundred(str(true.group), everybody, selected, min(missed, 100 - selected), *people)
