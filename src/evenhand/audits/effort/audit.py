"""The effort audit: compute a result from a table and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from evenhand.audits.effort import estimate, imputation, robustness
from evenhand.audits.effort.direction import DirectionTables, count_all, direction_tables, worst_of_all
from evenhand.audits.effort.direction import notes as direction_notes
from evenhand.audits.effort.findings import make_claims
from evenhand.audits.effort.gather import EffortPeople, gather
from evenhand.audits.effort.large_table import MOST_IN_MEMORY, LargeTable, gather_large
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.notes import large_notes, people_notes
from evenhand.audits.effort.numbers import Number, Numbers, number_key
from evenhand.audits.effort.result import EffortGap, EffortResult, EffortValue
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.estimates import Estimate, estimates_at, estimates_of_type
from evenhand.core.groups import require_reference
from evenhand.core.progress import step
from evenhand.core.records import LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.table.frames import build_frame
from evenhand.table.table import Table


@audit_function(EffortSpec)
def effort(table: Table, **settings: Any) -> EffortResult:
    """Compare the scores of people with equal effort, relative to their starting point.

    Effort is E = m sigmoid(A), with m a person's inertia and A the mean acceleration of the cumulative feature; the
    aggregate is S = 2 sigmoid(sum / scale) - 1. Individual fairness compares all pairs of people, group fairness
    the mean scores of groups within bins of effort.

    Parameters
    ----------
    table
        The data with its roles; the predictions must be scores in [0, 1].
    {settings}

    Returns
    -------
    EffortResult
        Tables `values` (individual fairness, mean scores by effort), `gaps` (between models, parity by effort), `curve`
        (by weight), `direction` (reversed pairs), `spread` (of effort), and with an id role `people`, `pairs`,
        `trajectories` and `reversals`; with `robustness`
        also `specifications`, `fairest` and `flips`.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table(eh.datasets.make_households(500, seed=1), groups="sex", predictions={"m": "risk_xgboost"})
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> result = eh.effort(table, trajectory=years, unit=10_000, scale=200_000)
    >>> fairness = result.get("values", metric="eaif")
    >>> fairness.pairs, fairness.status.text
    (124750, 'ok')
    """
    return finalize(run(table, EffortSpec.parse(settings, "the arguments of effort()")))


@audit_function(EffortSpec)
def person_scores(table: Table, **settings: Any) -> Any:
    """Return a frame with each person's id, effort and aggregate, to join to the data by id.

    These rows about people are not part of the audit's result.

    Parameters
    ----------
    table
        The data with its roles; it needs an id, and its predictions are not used.
    {settings}

    Returns
    -------
    data frame
        A frame of the data's own library; ids are text, and not in the order of the rows. If rates of inertia have
        standard errors, `effort_stderr` is the resulting standard error of each person's effort.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.audits.effort import person_scores
    >>> households = eh.datasets.make_households(50, seed=1, backend="pandas")
    >>> table = eh.Table(households, id="household", predictions="risk_xgboost")
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> list(person_scores(table, trajectory=years, unit=10_000, scale=200_000).columns)
    ['id', 'effort', 'aggregate']
    """
    spec = EffortSpec.parse(settings, "the arguments of person_scores()")
    if table.rows > MOST_IN_MEMORY:
        raise ConfigError(
            "{people:,} people are not read into memory; take at most {most:,}.", people=table.rows, most=MOST_IN_MEMORY
        )
    if table.roles.id is None:
        raise ConfigError("effort can only be given back by an id; name the table's `id` column.")
    people = gather(table, spec)
    ids = list(people.rows.ids or ())
    columns: dict[str, Any] = {"id": ids, "effort": people.effort, "aggregate": people.aggregate}
    if imputation.is_uncertain(spec):
        columns["effort_stderr"] = np.std(
            [imputed.effort for imputed in imputation.imputed_people(table, people, spec)], axis=0, ddof=1
        )
    return build_frame(columns, table.backend)


def run(table: Table, spec: EffortSpec) -> Draft[EffortResult]:
    """Audit a table under the settings of a spec."""
    _require_scores(table)
    require_known(spec.thresholds, groupings=table.groupings, models=table.models)
    step("Reading the trajectories")
    if table.rows > MOST_IN_MEMORY:
        large = gather_large(table, spec)
        fairness, curves = large.fairness()
        numbers = Numbers.of(table, large, fairness, spec)
        compared = _Compared(values_and_gaps=lambda level: numbers.records(spec.with_confidence(level)))
        notes = large_notes(large, spec)
        return _draft(table, spec, large, compared, curves=curves, notes=notes, steps=spec.trajectory)
    return _of_people(table, gather(table, spec), spec)


def _of_people(table: Table, people: EffortPeople, spec: EffortSpec) -> Draft[EffortResult]:
    """Audit a table whose people are in memory."""
    counts = count_all(table, people, spec)
    fairness, curves = estimate.individual_estimates(people, spec), estimate.fairness_curves(people, spec)
    numbers = Numbers.of(table, people, fairness, spec)
    imputed = tuple(imputation.impute(table, people, spec))

    def values_and_gaps(level: float) -> list[Number]:
        spec_at_level = spec.with_confidence(level)
        return imputation.pool(numbers.records(spec_at_level), imputed, people, spec_at_level)

    @cache
    def directions(level: float) -> DirectionTables:
        return direction_tables(table, people, counts, spec.with_confidence(level))

    pairs = tuple(estimate.least_fair_pairs(people, spec))
    return _draft(
        table,
        spec,
        people,
        _Compared(values_and_gaps=values_and_gaps, directions=directions),
        curves=curves,
        specifications=robustness.explore(table, people, spec, spec.robustness) if spec.robustness is not None else (),
        notes=chain(people_notes(people, spec), direction_notes(table, people)),
        steps=people.trajectories.steps,
        people=tuple(estimate.least_fair_people(people, fairness.own, spec)),
        pairs=pairs,
        trajectories=tuple(estimate.pair_trajectories(people, pairs)),
        reversals=tuple(worst_of_all(table, people, spec)),
    )


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """Functions that return values and gaps at any confidence, for people, models, groups and reversed pairs."""

    values_and_gaps: Callable[[float], list[Number]]
    directions: Callable[[float], DirectionTables] = lambda _: DirectionTables()

    def estimates(self, confidence: float) -> tuple[list[Estimate[EffortValue]], list[Estimate[EffortGap]]]:
        """Return values and gaps: of individuals, then of reversed pairs, then of groups."""
        compared = estimates_at(self.values_and_gaps, confidence, number_key)
        reversed_pairs: list[Estimate[Number]] = estimates_at(
            lambda level: chain(*self.directions(level)[:2]), confidence, number_key
        )
        alone = [estimate for estimate in compared if estimate.record.grouping is None]
        groups = [estimate for estimate in compared if estimate.record.grouping is not None]
        ordered = [*alone, *reversed_pairs, *groups]
        return estimates_of_type(ordered, EffortValue), estimates_of_type(ordered, EffortGap)


def _draft(
    table: Table,
    spec: EffortSpec,
    subjects: EffortPeople | LargeTable,
    compared: _Compared,
    *,
    curves: estimate.Curves,
    notes: Iterable[Message],
    steps: tuple[str, ...],
    specifications: tuple[robustness.SpecificationCurve, ...] = (),
    **individual_tables: Any,
) -> Draft[EffortResult]:
    """Return the result with its claims; tables about individual people are passed in."""
    values, gaps = compared.estimates(spec.confidence)
    direction = compared.directions(spec.confidence).direction
    result = EffortResult(
        spec=spec.without_code() if spec.history is not None or spec.distance.norm in ("learned", "own") else spec,
        findings=(),
        left_out=tuple(_left_out(subjects.dropped, table)),
        notes=(*table.person_notes, *notes),
        backend=table.backend,
        values=tuple(value.record for value in values),
        gaps=tuple(gap.record for gap in gaps),
        curve=tuple(estimate.curve_records(curves)),
        spread=tuple(estimate.effort_spread(table, subjects)),
        specifications=tuple(r for curve in specifications for r in robustness.specification_records(curve, steps)),
        fairest=tuple(r for curve in specifications for r in robustness.fairest_records(curve)),
        flips=tuple(r for curve in specifications for r in robustness.flip_records(curve)),
        direction=direction,
        steps=steps,
        **individual_tables,
    )
    claims = list(make_claims(values, gaps, specifications, spec, direction))
    return Draft(result=result, claims=claims, own=say)


def _require_scores(table: Table) -> None:
    for model in table.models:
        if table.has_numbers(model):
            raise ConfigError(
                "the effort audit compares scores between 0 and 1; model {model!r} holds numbers: leave it out.",
                model=model,
            )
        if not table.has_scores(model):
            raise ConfigError(
                "the effort audit compares scores; model {model!r} has decisions only: leave it out.", model=model
            )
        if table.prediction(model).range != (0.0, 1.0):
            low, high = table.prediction(model).range
            raise ConfigError(
                "the effort audit needs scores between 0 and 1; model {model!r} runs from {low:g} to {high:g}: "
                "rescale it.",
                model=model,
                low=low,
                high=high,
            )
    if not table.models:
        raise ConfigError("the table names no predictions; give `predictions={'model': 'column'}` with scores.")
    require_reference({name: table.cells.joint(columns)[1] for name, columns in table.groupings.items()}, None)


def _left_out(dropped: int, table: Table) -> Iterator[LeftOut]:
    if table.dropped:
        yield LeftOut(n=table.dropped, reason=shared("rows_dropped"))
    if dropped:
        yield LeftOut(n=dropped, reason=say("value_missing"))
