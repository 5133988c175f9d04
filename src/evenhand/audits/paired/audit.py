"""The paired tests: compute a result from a table of answers and settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evenhand.audits.paired.estimate import gap_estimates, placebo_records, value_estimates
from evenhand.audits.paired.findings import make_claims, paired_notes
from evenhand.audits.paired.gather import Answers, gather
from evenhand.audits.paired.messages import say
from evenhand.audits.paired.result import PairedGap, PairedResult, PairedValue
from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import compared_groups
from evenhand.core.progress import step
from evenhand.core.records import OVERALL, LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, require_name
from evenhand.stats.within_units import UnitMeans
from evenhand.table.table import Table


@audit_function(PairedSpec)
def paired(table: Table, **settings: Any) -> PairedResult:
    """Test whether a system answers differently if only the person in the question changes.

    A language model, an employer or a landlord receives the same templates (prompts, CVs, advertisements, flats) with
    names or personas of several groups, each once or several times. Groups are compared within templates.

    Parameters
    ----------
    table
        The data with its groups, one row for each answer.
    {settings}

    Returns
    -------
    PairedResult
        Tables `values`, `gaps` and `placebos`.

    Examples
    --------
    >>> import evenhand as eh
    >>> asked = {"cv": [cv for cv in range(12) for _ in range(2)], "name": ["Emily", "Lakisha"] * 12}
    >>> asked["answer"] = ["invite", "invite", "invite", "reject"] * 6
    >>> result = eh.paired(
    ...     eh.Table(asked, groups="name"), template="cv", answer="answer", positive="invite", favourable="higher"
    ... )
    >>> gap = result.get("gaps", against="worst_pair")
    >>> gap.value, round(gap.p_value, 5), gap.worse_off
    (0.5, 0.03125, 'Lakisha')
    """
    return finalize(run(table, PairedSpec.parse(settings, "the arguments of paired()")))


def run(table: Table, spec: PairedSpec) -> Draft[PairedResult]:
    """Compare the answers of a table under the settings of a spec."""
    require_known(spec.thresholds, groupings=table.groupings)
    if not table.groupings:
        raise ConfigError("paired tests compare groups; name the column of the person's group as `groups`.")
    step("Reading the answers")
    answers = gather(table, spec)
    groupings = compared_groups(
        table, answers.groups, spec.reference, spec.min_count, [answers.template, answers.value]
    )
    values: list[Estimate[PairedValue]] = []
    gaps: list[Estimate[PairedGap]] = []
    everybody = np.zeros_like(answers.template)
    metrics = _chosen_metrics(answers, spec)
    for metric in metrics:
        step(f"Comparing {metric.replace('_', ' ')}")
        value, largest = answers.of(metric), _largest(answers, metric)
        values += value_estimates(
            UnitMeans.build(answers.template, everybody, 1, value, largest), None, [OVERALL], metric, spec
        )
        for grouping in groupings:
            means = UnitMeans.build(answers.template, grouping.code, len(grouping.groups), value, largest)
            values += value_estimates(means, grouping.name, grouping.groups, metric, spec)
            gaps += gap_estimates(means, grouping, metric, spec)
    placebos = placebo_records(answers, metrics[0], _largest(answers, metrics[0]), spec) if answers.placebos else ()
    result = PairedResult(
        spec=spec,
        findings=(),
        left_out=(*_left_out(answers), *(left for grouping in groupings for left in grouping.left_out)),
        notes=(*table.source.notes, *paired_notes(answers, placebos, _cell_sizes(answers), spec)),
        backend=table.backend,
        values=tuple(estimate.record for estimate in values),
        gaps=tuple(estimate.record for estimate in gaps),
        placebos=placebos,
        passes=answers.passes,
    )
    sizes = {grouping.name: len(grouping.groups) for grouping in groupings}
    return Draft(result=result, claims=list(make_claims(gaps, result.values, placebos, sizes, spec)), own=say)


def _chosen_metrics(answers: Answers, spec: PairedSpec) -> tuple[str, ...]:
    """Return the metrics to compute; refuse named metrics that do not apply to the answers."""
    for name in (*(spec.metrics or ()), *(threshold.metric for threshold in spec.thresholds)):
        require_name(name, answers.metrics, "the metric {name!r} does not apply to these answers; {hint}")
    return tuple(name for name in answers.metrics if spec.metrics is None or name in spec.metrics)


def _largest(answers: Answers, metric: str) -> float:
    """Return the largest possible difference between two answers; for numeric answers, the range of the data."""
    return 1.0 if metric != "mean_answer" else float(np.nanmax(answers.value) - np.nanmin(answers.value))


def _cell_sizes(answers: Answers) -> tuple[int, int]:
    """Return the smallest and the largest number of answers for a template and group."""
    cells = np.column_stack([answers.template, *answers.groups.codes.values()])
    sizes = np.unique(cells, axis=0, return_counts=True)[1]
    return int(sizes.min()), int(sizes.max())


def _left_out(answers: Answers) -> Iterator[LeftOut]:
    if answers.dropped:
        yield LeftOut(n=answers.dropped, reason=say("missing_answer"))
