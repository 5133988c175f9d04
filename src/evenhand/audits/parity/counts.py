"""People counted by group, outcome and decision: over time, and for the tables of legal profiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.audits.parity.metrics import METRICS, ParityMetric
from evenhand.core.counting import Counted, Counting, Periods, Series, counted_groups
from evenhand.core.groups import reference_of
from evenhand.core.records import OVERALL
from evenhand.core.result import Result
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.keys import YES
from evenhand.table.roles import UNNAMED
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.audits.parity.spec import ParitySpec
    from evenhand.table.table import Table


class ParityCounts:
    """Counts of the parity audit; its selection rates are selected / n exactly where there are no survey weights."""

    metric = "selection_rate"

    def series(self, table: Table, spec: ParitySpec, periods: Periods) -> Iterator[Series]:
        """Yield every headline rate of every group beside the reference group's."""
        cells, number = periods.cells, periods.number
        states = [_is_yes(cells, "outcome"), _is_yes(cells, state_key(periods.model))]
        for grouping, columns in table.groupings.items():
            groups, labels = cells.joint(columns)
            counts = np.zeros((len(labels), number + 1, 2, 2), dtype=np.int64)
            np.add.at(counts, (groups, np.minimum(periods.codes, number), *states), cells.n)
            counts = counts[:, :number]
            sizes = {x: int(counts[at].sum()) for at, x in enumerate(labels) if x not in UNNAMED}
            large = [label for label, size in sizes.items() if size >= spec.min_count]
            if len(large) < 2:
                continue
            wanted = reference_of(spec.reference, grouping, labels)
            reference = wanted if wanted in large else max(large, key=sizes.__getitem__)
            for metric in _rates(table, spec):
                above, below = metric.coefficients()
                hits, n = (np.einsum("gpyd,yd->gp", counts, side) for side in (above[..., 0], below))
                for group in large:
                    if group != reference:
                        one, other = labels.index(group), labels.index(reference)
                        place = periods.model, grouping, metric, group, reference
                        yield Series(*place, n[one], hits[one], n[other], hits[other])

    def selections(self, result: Result, groupings: Collection[str]) -> Iterator[Counted]:
        """Yield who got the favourable decision, for every model and each of these groupings."""
        found: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        reverse = {model for model, side in self.favourable(result).items() if side == "not_selected"}
        for value in result.rows("values", metric=self.metric, stratum=None):
            if value.group == OVERALL or value.grouping not in groupings:
                continue
            chosen = 0 if value.value is None else round(value.n * value.value)
            good = value.n - chosen if value.model in reverse else chosen
            found.setdefault((str(value.model), str(value.grouping)), {})[value.group] = (value.n, good)
        for (model, grouping), groups in found.items():
            nobody = "everybody was selected" if model in reverse else "nobody was selected"
            yield replace(counted_groups(model, grouping, groups), nobody=nobody)

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return by model which side of the decision is good for the person."""
        sides: Mapping[str, str | None] = vars(result)["favourable"]
        return dict(sides)


COUNTS: Counting = ParityCounts()
"""How the parity audit counts people."""


def _rates(table: Table, spec: ParitySpec) -> list[ParityMetric]:
    """Return the rates that are told in any case, of those that the audit computes."""
    known = [METRICS[name] for name in spec.metrics or METRICS if name in METRICS and name not in spec.custom]
    usable = [row for row in known if row.method == "rate" and (row.headline or spec.metrics)]
    return [row for row in usable if table.roles.outcome is not None or "outcome" not in row.needs]


def _is_yes(cells: Cells, key: str) -> IntArray:
    """Return 1 for the cells of people with the outcome, or whom a model selects, and 0 for the others."""
    if key not in cells.codes:
        return np.zeros(len(cells.n), dtype=np.int64)
    return np.array([label == str(YES) for label in cells.labels[key]], dtype=np.int64)[cells.codes[key]]
