"""Questions to rows that stay in the data's own engine, with columns worked out stage by stage beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np

from evenhand.table.cells import Cells, Measure, reduce
from evenhand.table.keys import Key
from evenhand.table.sources import engine_errors, fetch, fetch_arrays

if TYPE_CHECKING:
    from evenhand.table.table import Table

T = TypeVar("T")
Stages: TypeAlias = Sequence[Mapping[str, nw.Expr] | nw.Expr]


@dataclass(frozen=True)
class StagedRows:
    """The rows of a table after some stages.

    Parameters
    ----------
    table : the table.
    stages : each a set of columns worked out from those before, so that no expression is worked out twice; or a
        condition on the rows.

    Examples
    --------
    >>> from evenhand.table import Table
    >>> table = Table({"g": ["a", "a", "b"], "m": [0.1, 0.2, 0.2]}, groups="g", predictions="m")
    >>> doubled = StagedRows(table, [{"twice": 2.0 * nw.col("m")}, nw.col("twice") > 0.3])
    >>> doubled.extremes({"twice": nw.col("twice")})["twice"], doubled.different({"twice": nw.col("twice")})
    ((0.4, 0.4), 1)
    """

    table: Table
    stages: Stages = ()

    def cells(self, keys: Sequence[Key], measures: Sequence[Measure], *, groups: bool = True) -> Cells:
        """Return counts and sums by keys of one's own, and by the table's groups."""
        own = self.table.group_keys() if groups else []
        return self._asked(lambda frame: reduce(frame, [*own, *keys], measures))

    def values(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions of the rows as arrays, in the engine's order."""
        found = self._asked(lambda frame: fetch_arrays(frame.select(**columns)))
        return {name: np.asarray(values) for name, values in found.items()}

    def extremes(self, columns: Mapping[str, nw.Expr]) -> dict[str, tuple[float, float]]:
        """Return the lowest and the highest value of expressions of the rows."""
        ends = {f"low:{name}": column.min() for name, column in columns.items()}
        ends |= {f"high:{name}": column.max() for name, column in columns.items()}
        found = self.values(ends)
        return {name: (float(found[f"low:{name}"][0]), float(found[f"high:{name}"][0])) for name in columns}

    def different(self, columns: Mapping[str, nw.Expr]) -> int:
        """Return how many different rows the expressions make."""
        return int(self._asked(lambda frame: fetch(self._alike(frame, columns).select(n=nw.len())))["n"][0])

    def frequent(self, columns: Mapping[str, nw.Expr], least: int = 1) -> dict[str, Any]:
        """Return the different rows that occur at least so often, with their number `n` and weights `w`, `ww`."""
        found = self._asked(lambda frame: fetch_arrays(self._alike(frame, columns).filter(nw.col("n") >= least)))
        order = np.lexsort([np.asarray(found[name]) for name in columns])
        return {name: np.asarray(values)[order] for name, values in found.items()}

    def _alike(self, frame: Any, columns: Mapping[str, nw.Expr]) -> Any:
        weight = self.table.weight_and_exponent()[0]
        rows = frame.select(**columns, w=nw.lit(1.0) if weight is None else weight)
        rows = rows.with_columns(ww=nw.col("w") * nw.col("w"))
        return rows.group_by(*columns).agg(nw.len().alias("n"), nw.col("w").sum(), nw.col("ww").sum())

    def _asked(self, question: Callable[[Any], T]) -> T:
        def answer() -> T:
            frame = self.table.complete_rows()
            for stage in self.stages:
                frame = frame.with_columns(**stage) if isinstance(stage, Mapping) else frame.filter(stage)
            with engine_errors():
                return question(frame)

        return self.table.with_right_types(answer)
