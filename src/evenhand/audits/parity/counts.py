"""Counts of people by group, outcome and decision, for gaps over time and legal profiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.gather import state_codes
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.capabilities import Counting, GroupCounts, GroupSeries, Periods, counted_groups
from evenhand.core.groups import reference_of
from evenhand.core.records import OVERALL, STANDARDISED
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.table.roles import UNNAMED
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.audits.parity.spec import ParitySpec
    from evenhand.table.table import Table


class ParityCounts:
    """Counting for the parity audit; without survey weights, a selection rate is exactly selected / n."""

    metric = "selection_rate"

    def series(self, table: Table, spec: ParitySpec, periods: Periods) -> Iterator[GroupSeries]:
        """Yield the series of every headline rate in every group, with the reference group's series."""
        _require_rates(table, periods.model)
        cells, number = periods.cells, periods.number
        states = [state_codes(cells, "outcome"), state_codes(cells, state_key(periods.model))]
        for grouping, columns in table.groupings.items():
            groups, labels = cells.joint(columns)
            counts = np.zeros((len(labels), number + 1, 2, 2), dtype=np.int64)
            np.add.at(counts, (groups, np.minimum(periods.codes, number), *states), cells.n)
            counts = counts[:, :number]
            sizes = {x: int(counts[position].sum()) for position, x in enumerate(labels) if x not in UNNAMED}
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
                        group_position, other = labels.index(group), labels.index(reference)
                        coordinates = periods.model, grouping, metric, group, reference
                        yield GroupSeries(*coordinates, n[group_position], hits[group_position], n[other], hits[other])

    def selections(
        self, result: Result, groupings: Collection[str], *, by_stratum: bool = False
    ) -> Iterator[GroupCounts]:
        """Yield counts of people with the favourable decision, by model and grouping, and by stratum if requested."""
        counts: dict[tuple[str, str, str | None], dict[str, tuple[int, int]]] = {}
        reverse = {model for model, side in self.favourable(result).items() if side == "not_selected"}
        for value in result.rows("values", metric=self.metric):
            is_wanted = value.stratum != STANDARDISED and (value.stratum is not None) is by_stratum
            if not is_wanted or value.group == OVERALL or value.grouping not in groupings:
                continue
            chosen = 0 if value.value is None else round(value.n * value.value)
            good = value.n - chosen if value.model in reverse else chosen
            place = (str(value.model), str(value.grouping), value.stratum)
            counts.setdefault(place, {})[value.group] = (value.n, good)
        for (model, grouping, stratum), groups in counts.items():
            nobody = "everybody was selected" if model in reverse else "nobody was selected"
            yield replace(counted_groups(model, grouping, groups), nobody=nobody, stratum=stratum)

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return the favourable side of each model's decision."""
        sides: Mapping[str, str | None] = vars(result)["favourable"]
        return dict(sides)


COUNTS: Counting = ParityCounts()
"""The parity audit's counts."""


def _require_rates(table: Table, model: str) -> None:
    if table.has_numbers(model):
        raise ConfigError(
            "`period` follows rates over time; model {model!r} holds numbers: leave out `period`, or the model.",
            model=model,
        )


def _rates(table: Table, spec: ParitySpec) -> list[ParityMetric]:
    """Return the headline rates that this audit computes."""
    rows = [METRICS[name] for name in spec.metrics or METRICS if name in METRICS and name not in spec.custom]
    usable = [row for row in rows if row.method == "rate" and (row.headline or spec.metrics)]
    return [row for row in usable if table.roles.outcome is not None or "outcome" not in row.needs]
