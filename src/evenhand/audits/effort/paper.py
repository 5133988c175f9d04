"""A result's numbers in the form of the effort paper's tables: 1 and 7 (individuals), 6 and 8 (groups)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.numbers import DASH
from evenhand.core.sections import DisplayTable

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortResult

_HUMAN_WEIGHTS = (0.6577, 0.6037)  # of effort, from the paper's study on income and on arrests


def individual_table(result: EffortResult, data: str = "", places: int = 3) -> DisplayTable:
    """Return individual fairness by model and weight, as in tables 1 (two places) and 7 (three) of the paper.

    Parameters
    ----------
    result : the result of an effort audit.
    data : what the data is called in the caption.
    places : decimal places.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.audits.effort import effort
    >>> table = eh.Table(eh.datasets.make_households(200, seed=1), predictions={"logistic": "risk_logistic"})
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> result = effort(table, trajectory=years, unit=10_000, scale=200_000, weights=[0.5, 0.6577])
    >>> individual_table(result).columns
    ('Model', 'Equal weights', 'Human study weights (0.6577 on effort)')
    """
    values = {(record.model, record.weight): record.value for record in result.individual}
    weights = list(dict.fromkeys(record.weight for record in result.individual))
    columns = ("Model", *(_weight_title(weight) for weight in weights))
    rows = [
        (model, *(_shown(values[model, weight], places) for weight in weights))
        for model in dict.fromkeys(record.model for record in result.individual)
    ]
    return _table("Effort-aware individual fairness", data, columns, rows)


def parity_table(result: EffortResult, data: str = "", places: int = 2) -> DisplayTable:
    """Return traditional parity by model and grouping, as in tables 6 and 8 of the paper: effort plays no part in it.

    It is the smallest mean score of a group over the largest, of groups with at least `min_count` people; a dash
    where fewer than two groups have so many.
    """
    whole = [record for record in result.bins if record.bin_low is None]
    values = {(record.model, record.grouping): record.value for record in whole}
    groupings = list(dict.fromkeys(record.grouping for record in whole))
    columns = ("Model", *(f"{grouping[:1].upper()}{grouping[1:]} parity" for grouping in groupings))
    rows = [
        (model, *(_shown(values[model, grouping], places) for grouping in groupings))
        for model in dict.fromkeys(record.model for record in whole)
    ]
    return _table("Traditional parity of mean scores, without regard to effort", data, columns, rows)


def in_text(table: DisplayTable) -> str:
    """Return a table as plain text: the caption, then columns of equal width.

    Examples
    --------
    >>> print(in_text(DisplayTable("Parity", ("Model", "Race parity"), (("XGBoost", "0.48"),), (False, True))))
    Parity
    <BLANKLINE>
    Model    Race parity
    XGBoost         0.48
    """
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, table.numeric, strict=True)
        ).rstrip()
        for row in (table.columns, *table.rows)
    )
    return "\n".join([table.caption, "", *lines])


def _table(caption: str, data: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> DisplayTable:
    numeric = (False, *(True for _ in columns[1:]))
    return DisplayTable(f"{caption}: {data}" if data else caption, columns, tuple(rows), numeric)


def _weight_title(weight: float) -> str:
    if weight == 0.5:
        return "Equal weights"
    return f"Human study weights ({weight:g} on effort)" if weight in _HUMAN_WEIGHTS else f"Weight {weight:g} on effort"


def _shown(value: float | None, places: int) -> str:
    return DASH if value is None else f"{value:.{places}f}"
