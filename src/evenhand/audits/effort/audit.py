"""The effort audit: a table and settings in, a result out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from evenhand.audits.effort.by_effort import compare_groups, spread_records
from evenhand.audits.effort.crowd import MOST_IN_MEMORY, Crowd, gather_crowd
from evenhand.audits.effort.findings import make_findings
from evenhand.audits.effort.individual import (
    Found,
    curve_records,
    difference_records,
    fairness_of,
    individual_records,
    pair_records,
    path_records,
    person_records,
)
from evenhand.audits.effort.notes import crowd_notes, people_notes
from evenhand.audits.effort.people import People, gather
from evenhand.audits.effort.records import CurveRecord
from evenhand.audits.effort.result import EffortResult
from evenhand.audits.effort.robustness.choices import Choices
from evenhand.audits.effort.robustness.explore import Robustness, robustness_of
from evenhand.audits.effort.robustness.findings import robustness_findings
from evenhand.audits.effort.spec import EffortSpec, History
from evenhand.core.progress import step
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, did_you_mean
from evenhand.stats.effort import TrajectoryMeasure
from evenhand.table.table import Table


def effort(
    table: Table,
    *,
    trajectory: Sequence[str] = (),
    history: History | Mapping[str, Any] | None = None,
    inertia: Mapping[str, float] | str | None = None,
    inertia_by: str | None = None,
    desirable: bool = True,
    unit: float = 1.0,
    scale: float = 1.0,
    weights: Sequence[float] = (0.5,),
    times: Sequence[float] | None = None,
    measure: TrajectoryMeasure = "acceleration",
    width: float = 0.1,
    min_count: int = 10,
    robustness: bool | Choices | Mapping[str, Any] = False,
    method: Literal["auto", "strips", "blocks", "grid", "sampled"] = "auto",
    worst: int = 10,
    confidence: float = 0.95,
    seed: int = 0,
    thresholds: Sequence[Threshold | Mapping[str, Any]] = (),
) -> EffortResult:
    """Ask whether people who worked equally hard from where they started are scored alike.

    Effort is E = m sigmoid(A), with m a person's inertia and A the mean acceleration of the cumulative feature; the
    aggregate is S = 2 sigmoid(sum / scale) - 1. Individual fairness compares all pairs of people, group fairness
    the mean scores of groups within bins of effort.

    Parameters
    ----------
    table
        The data with its roles; the predictions must be scores in [0, 1].
    trajectory
        Columns of one feature over time, earliest first; at least three.
    history
        A long table instead of columns, with one row for each person and time:
        ``{"data": incomes, "id": "household", "time": "year", "value": "income"}``. The table needs an id role.
    inertia, inertia_by
        Disadvantage outside a person's control: a column, rates by group of the column `inertia_by` (default race;
        divided by the largest), 'nces-2012' for the published childhood-poverty rates, or none.
    desirable
        Whether more of the feature is better (income) or worse (arrests).
    unit, scale
        The feature's unit for effort, and the divisor of its total for the aggregate.
    weights
        Weights of effort against aggregate in the distance between two people.
    times
        Time stamps of the columns, where they are not equally spaced.
    measure
        How a trajectory is summed up; the paper's is 'acceleration'.
    width, min_count
        Width of the effort bins; groups with fewer people in a bin are left out of its parity.
    robustness
        Whether to recompute everything under other defensible choices (windows, measures, inertia, weights, scales,
        bin widths), to show in what share of them each model is the fairest and which choice changes that. True, or a
        mapping of the choices such as ``{"windows": [["y1", "y3"]], "weights": [0, 0.5, 1]}``.
    method
        How pairs are compared; 'auto' chooses by size and says what it chose.
    worst
        How many of the least fair pairs, and of people by the fairness of their pairs, are listed (with an id role).
    confidence, seed
        Confidence of the intervals, and the seed of what is sampled.
    thresholds
        Limits, each a mapping such as ``{"metric": "eaif", "min": 0.9}``; the other metric is 'effort_parity'.

    Returns
    -------
    EffortResult
        Tables `individual`, `differences`, `curve` (by weight), `bins`, `bin_groups`, `spread` (of effort), and with
        an id role `people`, `pairs` and `paths`; with `robustness` also `specifications`, `fairest` and `flips`.
        `columns()` gives effort and aggregate back.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table(eh.datasets.make_households(500, seed=1), groups="sex", predictions={"m": "risk_xgboost"})
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> result = eh.effort(table, trajectory=years, unit=10_000, scale=200_000)
    >>> result.individual[0].pairs, result.individual[0].status
    (124750, 'ok')
    """
    return run(
        table,
        EffortSpec.parse(
            {
                "trajectory": trajectory,
                "history": history,
                "times": times,
                "measure": measure,
                "desirable": desirable,
                "unit": unit,
                "scale": scale,
                "inertia": inertia,
                "inertia_by": inertia_by,
                "weights": weights,
                "width": width,
                "min_count": min_count,
                "robustness": robustness,
                "method": method,
                "worst": worst,
                "confidence": confidence,
                "seed": seed,
                "thresholds": thresholds,
            },
            "the arguments of effort()",
        ),
    )


def run(table: Table, spec: EffortSpec) -> EffortResult:
    """Audit a table as a spec says."""
    _require_scores(table)
    _require_threshold_places(table, spec)
    step("Reading the trajectories")
    if table.rows > MOST_IN_MEMORY:
        return _run_crowd(table, spec)
    people = gather(table, spec)
    found = fairness_of(people, spec)
    pairs = tuple(pair_records(people, spec))
    robustness = None if spec.robustness is None else robustness_of(table, people, spec, spec.robustness)
    return _result(
        table,
        spec,
        people,
        found,
        tuple(curve_records(people, spec.seed)),
        notes=(*table.source.notes, *people_notes(people, spec)),
        pairs=pairs,
        people=tuple(person_records(people, found, spec)),
        paths=tuple(path_records(people, pairs)),
        effort=people.effort,
        aggregate=people.aggregate,
        ids=people.rows.ids,
        robustness=robustness,
    )


def _run_crowd(table: Table, spec: EffortSpec) -> EffortResult:
    crowd = gather_crowd(table, spec)
    found, curve = crowd.fairness()
    return _result(
        table,
        spec,
        crowd,
        found,
        tuple(curve),
        notes=(*table.source.notes, *crowd_notes(crowd, spec)),
        people=(),
        pairs=(),
        paths=(),
        effort=None,
        aggregate=None,
        ids=None,
    )


def _result(
    table: Table,
    spec: EffortSpec,
    subjects: People | Crowd,
    found: Found,
    curve: tuple[CurveRecord, ...],
    robustness: Robustness | None = None,
    **rest: Any,
) -> EffortResult:
    individual, differences = tuple(individual_records(found)), tuple(difference_records(found, spec))
    bins, bin_groups = compare_groups(table, subjects, spec)
    findings = make_findings(individual, differences, bins, spec)
    if robustness is not None:
        findings = (*findings, *robustness_findings(robustness, differences))
    return EffortResult(
        spec=spec,
        findings=findings,
        robustness=robustness,
        left_out=tuple(_left_out(subjects.dropped, table)),
        backend=table.backend,
        individual=individual,
        differences=differences,
        curve=curve,
        bins=tuple(bins),
        bin_groups=tuple(bin_groups),
        spread=tuple(spread_records(table, subjects)),
        hash=subjects.digest(),
        **rest,
    )


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


def _require_threshold_places(table: Table, spec: EffortSpec) -> None:
    """Refuse a threshold for a model or grouping that the table does not have."""
    for threshold in spec.thresholds:
        for what, name, known in (
            ("model", threshold.model, table.models),
            ("grouping", threshold.grouping, tuple(table.groupings)),
        ):
            if name is not None and name not in known:
                raise ConfigError(f"`{what}` {name!r} of a threshold is not known; {did_you_mean(name, known)}")


def _left_out(dropped: int, table: Table) -> Iterator[dict[str, Any]]:
    gone = [
        ("missing outcome or prediction: rows dropped", table.dropped),
        ("missing value in the trajectory or the inertia", dropped),
    ]
    for reason, n in gone:
        if n:
            yield {"model": None, "grouping": None, "group": None, "n": n, "reason": reason}
