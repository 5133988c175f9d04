"""The effort audit: a table and settings in, a result out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from evenhand.audits.effort import estimate, imputation, robustness
from evenhand.audits.effort.direction import Counts, DirectionTables, count_all, direction_tables
from evenhand.audits.effort.direction import notes as direction_notes
from evenhand.audits.effort.findings import SENTENCES, make_claims
from evenhand.audits.effort.gather import People, gather
from evenhand.audits.effort.large_table import MOST_IN_MEMORY, Estimates, LargeTable, gather_large
from evenhand.audits.effort.result import EffortGap, EffortResult, EffortValue
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.findings import Claim, ClaimsAt
from evenhand.core.groups import require_reference
from evenhand.core.records import LeftOut
from evenhand.core.result import Draft, settled
from evenhand.core.run import step
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, count
from evenhand.stats.effort import linear_weights
from evenhand.table.frames import build_frame
from evenhand.table.table import Table

FEW = 200
"""People below whom the interval of individual fairness may be too short; see `benchmarks/eaif_coverage.py`."""


@audit_function(EffortSpec)
def effort(table: Table, **settings: Any) -> EffortResult:
    """Ask whether people who worked equally hard from where they started are scored alike.

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
    >>> fairness.pairs, fairness.status
    (124750, 'ok')
    """
    return settled(run(table, EffortSpec.parse(settings, "the arguments of effort()")))


@audit_function(EffortSpec)
def person_scores(table: Table, **settings: Any) -> Any:
    """Return a frame with each person's id, effort and aggregate, to be joined to the data by that id.

    These are rows about people, which the result of the audit does not hold.

    Parameters
    ----------
    table
        The data with its roles; it needs an id, and its predictions are not used.
    {settings}

    Returns
    -------
    data frame
        Of the library that the data came in; ids are text, and not in the order of the rows. Where rates of inertia
        have standard errors, `effort_stderr` is what they make of everybody's effort.

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
        raise ConfigError(f"{table.rows:,} people are not read into memory; take at most {MOST_IN_MEMORY:,}.")
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
    """Audit a table as a spec says."""
    _require_scores(table)
    require_known(spec.thresholds, groupings=table.groupings, models=table.models)
    step("Reading the trajectories")
    if table.rows > MOST_IN_MEMORY:
        large = gather_large(table, spec)
        return _result(table, spec, large, large.fairness(), (), notes=_large_notes(large, spec), steps=spec.trajectory)
    people = gather(table, spec)
    return _of_people(table, people, count_all(table, people, spec), spec)


def _of_people(table: Table, people: People, counts: Counts, spec: EffortSpec) -> Draft[EffortResult]:
    """Audit people in memory; what does not depend on the confidence is given, since limits are asked for again."""
    estimates = estimate.individual_estimates(people, spec), estimate.fairness_curves(people, spec)
    specifications = robustness.explore(table, people, spec, spec.robustness) if spec.robustness is not None else ()
    pairs = tuple(estimate.least_fair_pairs(people, spec))

    def again(confidence: float) -> list[Claim]:
        at = spec.at(confidence)
        fairness = {place: found.at(confidence) for place, found in estimates[0].items()}
        ways = direction_tables(table, people, counts, at)
        return list(make_claims(*_compared(table, people, fairness, ways, at), specifications, at, ways.direction))

    return _result(
        table,
        spec,
        people,
        estimates,
        specifications,
        notes=chain(_people_notes(people, spec), direction_notes(table, people)),
        direction=direction_tables(table, people, counts, spec),
        again=again,
        steps=people.trajectories.steps,
        people=tuple(estimate.least_fair_people(people, estimates[0], spec)),
        pairs=pairs,
        trajectories=tuple(estimate.pair_trajectories(people, pairs)),
    )


def _result(
    table: Table,
    spec: EffortSpec,
    subjects: People | LargeTable,
    estimates: Estimates,
    specifications: tuple[robustness.SpecificationCurve, ...],
    *,
    notes: Iterable[str],
    steps: tuple[str, ...],
    direction: DirectionTables | None = None,
    again: ClaimsAt | None = None,
    **individual_tables: Any,
) -> Draft[EffortResult]:
    fairness, curves = estimates
    ways = direction or DirectionTables()
    values, gaps = _compared(table, subjects, fairness, ways, spec)
    result = EffortResult(
        spec=spec.described() if spec.history is not None or spec.distance.norm in ("learned", "own") else spec,
        findings=(),
        left_out=tuple(_left_out(subjects.dropped, table)),
        notes=(*table.source.notes, *notes),
        backend=table.backend,
        values=values,
        gaps=gaps,
        curve=tuple(estimate.curve_records(curves)),
        spread=tuple(estimate.effort_spread(table, subjects)),
        specifications=tuple(r for curve in specifications for r in robustness.specification_records(curve, steps)),
        fairest=tuple(r for curve in specifications for r in robustness.fairest_records(curve)),
        flips=tuple(r for curve in specifications for r in robustness.flip_records(curve)),
        direction=ways.direction,
        reversals=ways.reversals,
        steps=steps,
        **individual_tables,
    )
    claims = list(make_claims(values, gaps, specifications, spec, ways.direction))
    at = again or (lambda confidence: run(table, spec.at(confidence)).claims)
    return Draft(result=result, claims=claims, at=at, sentences=SENTENCES)


def _compared(
    table: Table, subjects: People | LargeTable, fairness: estimate.Fairness, ways: DirectionTables, spec: EffortSpec
) -> tuple[tuple[EffortValue, ...], tuple[EffortGap, ...]]:
    """Return values and gaps, of individuals and of groups, by limits at the confidence of the settings."""
    values, gaps = estimate.compare_groups(table, subjects, spec)
    individual, between = (*estimate.individual_values(fairness),), (*estimate.model_gaps(fairness, spec), *gaps)
    if isinstance(subjects, People):
        individual, between = imputation.pool(table, subjects, spec, individual, between)
    models = len(between) - len(gaps)
    return (*individual, *ways.values, *values), (*between[:models], *ways.gaps, *between[models:])


def _require_scores(table: Table) -> None:
    for model in table.models:
        if not table.has_scores(model):
            raise ConfigError(f"the effort audit compares scores; model {model!r} has decisions only: leave it out.")
        if table.prediction(model).range != (0.0, 1.0):
            low, high = table.prediction(model).range
            raise ConfigError(
                f"the effort audit needs scores between 0 and 1; model {model!r} runs from {low:g} to "
                f"{high:g}: rescale it."
            )
    if not table.models:
        raise ConfigError("the table names no predictions; give predictions={'model': 'column'} with scores.")
    require_reference({name: table.cells.joint(columns)[1] for name, columns in table.groupings.items()}, None)


def _left_out(dropped: int, table: Table) -> Iterator[LeftOut]:
    if table.dropped:
        yield LeftOut(n=table.dropped, reason="missing outcome or prediction: rows dropped")
    if dropped:
        yield LeftOut(n=dropped, reason="missing value in the trajectory or the inertia")


# Remarks that a reader needs -----------------------------------------------------------------------------------------


def _people_notes(people: People, spec: EffortSpec) -> Iterator[str]:
    """Yield the remarks on people in memory."""
    paths = people.trajectories
    yield from _few(people)
    yield from _two_steps(paths.steps, paths.times, spec)
    yield from _saturated(people)
    if negative := int((paths.values < 0).any(axis=1).sum()):
        yield (
            f"{count(negative, 'person has', 'people have')} a negative value in their trajectory; their aggregate "
            "may be below 0."
        )
    if paths.not_in_table:
        yield f"The history has {paths.not_in_table:,} people who are not among those of the table; they are not used."
    yield from _distance_notes(people, spec)
    if spec.parity_of == "decisions":
        cuts = ", ".join(f"{model} above {cut:g}" for model, cut in people.thresholds.items())
        yield f"Parity by effort is of decisions: a mean score is the share selected ({cuts})."
    if imputation.is_uncertain(spec):
        yield (
            "The rates of inertia are known up to their standard errors. The intervals of individual fairness and of "
            "parity by effort hold that too (multiple imputation of the rates, Rubin's rules); all others take the "
            "rates as given."
        )
    if people.rows.ids is None and spec.worst and spec.individuals:
        yield "The least fair pairs and their people are not listed, since the table names no id column."


def _distance_notes(people: People, spec: EffortSpec) -> Iterator[str]:
    """Tell what a distance makes of the weights."""
    if people.distance.matrix is not None:
        a, b, c = people.distance.matrix
        yield (
            f"The distance was learned from {count(people.judged, 'judged pair')}: its matrix is {a:.3f} for effort, "
            f"{c:.3f} for the aggregate and {b:.3f} for both. It has its own weight of effort, so that `weights` play "
            "no part; how uncertain it is, is not in the intervals."
        )
    elif spec.distance.norm in ("maximum", "own"):
        yield f"The distance {spec.distance.norm!r} does not weigh effort: all `weights` between 0 and 1 are alike."


def _few(people: People) -> Iterator[str]:
    weight = people.rows.weight
    effective = people.n if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
    if effective < FEW:
        weighted = "" if weight is None else f" (as good as {effective:.0f}, for their uneven weights)"
        yield (
            f"With {count(people.n, 'person', 'people')}{weighted} the intervals of individual fairness can be too "
            "short. In simulations they hold the true value as often as they should when unfairness is spread over "
            "many people; where one person in twenty causes nearly all of it, they hold it 70% of the time at 20 "
            "people and 86% at 50 instead of 95%, and the difference of two models 61% and 77%."
        )


def _saturated(people: People) -> Iterator[str]:
    """Tell of units that leave no difference between people."""
    if people.inertia.max() > 1:
        yield f"The inertia runs up to {people.inertia.max():g}; it is meant to be at most 1, so that effort is too."
    share = people.effort / people.inertia
    ends = float(((share < 1e-3) | (share > 1 - 1e-3)).mean())
    if ends > 0.05:
        yield (
            f"{ends:.0%} of people have the lowest or the highest possible effort, so that it hardly tells them apart: "
            "take a larger `unit`."
        )
    if float((np.abs(people.aggregate) > 1 - 1e-3).mean()) > 0.5:
        yield "Most people have the highest possible aggregate, which hardly tells them apart: take a larger `scale`."
    same = [name for name, x in (("efforts", people.effort), ("aggregates", people.aggregate)) if x.min() == x.max()]
    if same:
        yield f"All {' and all '.join(same)} are equal; they play no part in the distance between people."


def _large_notes(large: LargeTable, spec: EffortSpec) -> Iterator[str]:
    """Yield the remarks on people who stayed in the data's engine."""
    yield (
        f"The {large.n:,} people stayed in the data's own engine: it counted those who are alike, or filled a grid "
        "that was corrected on a sample of people. Reversed pairs are not counted, and the least fair pairs and their "
        "people are not listed."
    )
    yield from _two_steps(spec.trajectory, spec.times, spec)


def _two_steps(steps: tuple[str, ...], times: tuple[float, ...] | None, spec: EffortSpec) -> Iterator[str]:
    """Tell when two time steps alone make the effort."""
    weights = linear_weights(spec.measure, len(steps), times)
    if weights is None or (used := np.flatnonzero(np.abs(weights) > 1e-12)).size != 2 or len(steps) < 3:
        return
    yield (
        f"Only two of the {len(steps)} time steps enter effort: {steps[used[0]]} and {steps[used[1]]}. Whoever picks "
        "the window picks the effort; the robustness analysis tries other windows and measures."
    )
