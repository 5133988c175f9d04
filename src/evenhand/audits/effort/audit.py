"""The effort audit: a table and settings in, a result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evenhand.audits.effort.findings import make_findings
from evenhand.audits.effort.groups import bin_records
from evenhand.audits.effort.individual import (
    difference_records,
    fairness_of,
    individual_records,
    pair_records,
    person_records,
)
from evenhand.audits.effort.people import People, gather
from evenhand.audits.effort.result import EffortResult
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.progress import step
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, count
from evenhand.stats.effort import TrajectoryMeasure
from evenhand.table.keys import column_key
from evenhand.table.table import Table


def effort(
    table: Table,
    *,
    trajectory: Sequence[str],
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
    method
        How pairs are compared; 'auto' chooses by size and says what it chose.
    worst
        How many of the people and pairs treated worst are listed (with an id role only).
    confidence, seed
        Confidence of the intervals, and the seed of what is sampled.
    thresholds
        Limits, each a mapping such as ``{"metric": "eaif", "min": 0.9}``; the other metric is 'effort_parity'.

    Returns
    -------
    EffortResult
        Tables `individual`, `differences`, `bins`, `bin_groups`, `people` and `pairs`.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table(eh.datasets.make_households(500, seed=1), groups="sex", predictions={"m": "risk_xgboost"})
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> result = effort(table, trajectory=years, unit=10_000, scale=200_000)
    >>> result.individual[0].pairs, result.individual[0].status
    (124750, 'ok')
    """
    return run(table, EffortSpec.parse(
        {
            "trajectory": trajectory, "inertia": inertia, "inertia_by": inertia_by, "desirable": desirable,
            "unit": unit,
            "scale": scale, "weights": weights, "times": times, "measure": measure, "width": width,
            "min_count": min_count,
            "method": method, "worst": worst, "confidence": confidence, "seed": seed, "thresholds": thresholds,
        },
        "the arguments of effort()",
    ))  # fmt: skip


def run(table: Table, spec: EffortSpec) -> EffortResult:
    """Audit a table as a spec says."""
    _require_scores(table)
    step("Reading the trajectories")
    people = gather(table, spec)
    found = fairness_of(people, spec)
    bins, bin_groups = [], []
    for model in people.rows.scores:
        for grouping, columns in table.groupings.items():
            step(f"Comparing {grouping} by effort under {model}")
            of_bins, of_groups = bin_records(people, model, grouping, tuple(column_key(c) for c in columns), spec)
            bins += of_bins
            bin_groups += of_groups
    individual = tuple(individual_records(found))
    differences = tuple(difference_records(found, spec))
    return EffortResult(
        spec=spec, findings=make_findings(individual, differences, bins, spec), left_out=_left_out(people, table),
        notes=_notes(people, spec), backend=table.backend, individual=individual, differences=differences,
        bins=tuple(bins), bin_groups=tuple(bin_groups), people=tuple(person_records(people, found, spec)),
        pairs=tuple(pair_records(people, spec)), effort=people.effort, aggregate=people.aggregate, ids=people.rows.ids,
        groups=people.rows.groups,
    )  # fmt: skip


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


def _left_out(people: People, table: Table) -> tuple[dict[str, Any], ...]:
    gone = [
        ("missing outcome or prediction: rows dropped", table.dropped),
        ("missing value in a trajectory", people.dropped),
    ]
    return tuple({"model": None, "grouping": None, "group": None, "n": n, "reason": reason} for reason, n in gone if n)


def _notes(people: People, spec: EffortSpec) -> tuple[str, ...]:
    notes = []
    if len(people.effort) < 50:
        notes.append(
            f"With {count(len(people.effort), 'person', 'people')} the intervals of individual fairness are "
            "too short: in "
            "simulations they cover 88% at 10 people, 90% at 20 and 94% from 50 on."
        )
    if spec.measure == "acceleration" and spec.times is None:
        notes.append(
            f"With equal steps only two of the {len(spec.trajectory)} time steps enter effort: "
            f"{spec.trajectory[1]} and "
            f"{spec.trajectory[-1]}. Whoever picks the window picks the effort: try other windows and measures."
        )
    if people.rows.ids is None and spec.worst:
        notes.append("The people and pairs treated worst are not listed, since the table names no id column.")
    if people.effort.min() == people.effort.max():
        notes.append("All efforts are equal: distances rest on the aggregate alone.")
    return tuple(notes)
