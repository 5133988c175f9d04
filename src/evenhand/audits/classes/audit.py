"""The classes audit: compute a result from a table of classified people and settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.classes.estimate import gap_estimates, value_estimates, with_worse_off
from evenhand.audits.classes.findings import classes_notes, make_claims
from evenhand.audits.classes.gather import Classified, gather
from evenhand.audits.classes.messages import say
from evenhand.audits.classes.metrics import METRICS, ClassMetric
from evenhand.audits.classes.result import ClassesGap, ClassesResult, ClassesValue
from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import ComparedGroups, compared_groups
from evenhand.core.progress import step
from evenhand.core.records import OVERALL, LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, require_name
from evenhand.table.table import Table


@audit_function(ClassesSpec)
def classes(table: Table, **settings: Any) -> ClassesResult:
    """Compare decisions with three or more classes between groups, such as hired, invited and rejected.

    Each class is compared with all other classes: by the share of people assigned to it and, if the right class is
    known, by the share of its members assigned to it. If the classes are ordered, groups are also compared over all
    classes.

    Parameters
    ----------
    table
        The data with its groups, one row for each person.
    {settings}

    Returns
    -------
    ClassesResult
        Tables `values` and `gaps`.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = {"sex": ["F", "M"] * 90, "answer": ["reject", "hire", "invite", "invite", "hire", "hire"] * 30}
    >>> result = eh.classes(eh.Table(people, groups="sex"), decision="answer", order=["reject", "invite", "hire"])
    >>> round(result.get("values", metric="class_rate", label="hire", group="F").value, 3)
    0.333
    >>> result.get("gaps", metric="dominance", against="worst_pair").worse_off
    'F'
    """
    return finalize(run(table, ClassesSpec.parse(settings, "the arguments of classes()")))


def run(table: Table, spec: ClassesSpec) -> Draft[ClassesResult]:
    """Audit the classes of a table under the settings of a spec."""
    if not table.groupings:
        raise ConfigError("the audit of classes compares groups; name their columns as `groups`.")
    require_known(spec.thresholds, groupings=table.groupings)
    step("Counting the classes")
    people = gather(table, spec)
    contents = [people.decision, *([] if people.truth is None else [people.truth])]
    groupings = compared_groups(table, people.groups, spec.reference, spec.min_count, contents)
    values, gaps = _estimates(people, groupings, spec)
    dropped = [LeftOut(n=people.dropped, reason=say("missing_class"))] if people.dropped else []
    result = ClassesResult(
        spec=spec,
        findings=(),
        left_out=(*dropped, *(left for grouping in groupings for left in grouping.left_out)),
        notes=(*table.source.notes, *classes_notes(people, spec)),
        backend=table.backend,
        values=tuple(estimate.record for estimate in values),
        gaps=tuple(estimate.record for estimate in gaps),
        labels=people.labels,
    )
    sizes = {grouping.name: len(grouping.groups) for grouping in groupings}
    return Draft(result=result, claims=list(make_claims(gaps, result.values, sizes)), own=say)


def _estimates(
    people: Classified, groupings: Sequence[ComparedGroups], spec: ClassesSpec
) -> tuple[list[Estimate[ClassesValue]], list[Estimate[ClassesGap]]]:
    """Return the values and the gaps of every metric."""
    everybody = people.counts(np.zeros_like(people.decision), 1)
    values: list[Estimate[ClassesValue]] = []
    gaps: list[Estimate[ClassesGap]] = []
    for metric in _chosen_metrics(people, spec):
        value_of = partial(value_estimates, labels=people.labels, metric=metric, spec=spec)
        if metric.counts is not None:
            values += value_of(everybody, None, (OVERALL,))
        for grouping in groupings:
            counts = people.counts(grouping.code, len(grouping.groups))
            if metric.counts is not None:
                values += value_of(counts, grouping.name, grouping.groups)
            found = gap_estimates(counts, grouping, people.labels, metric, spec)
            gaps += [gap.map(partial(with_worse_off, labels=people.labels, spec=spec)) for gap in found]
    return values, gaps


def _chosen_metrics(people: Classified, spec: ClassesSpec) -> list[ClassMetric]:
    """Return the metrics to compute; refuse a named metric whose required settings are missing."""
    able = {
        name: metric
        for name, metric in METRICS.items()
        if (people.truth is not None or not metric.needs_outcome) and (spec.order is not None or name != "dominance")
    }
    for name in (*(spec.metrics or ()), *(threshold.metric for threshold in spec.thresholds)):
        require_name(name, able, "the metric {name!r} needs `truth` or `order`, which is not set; {hint}")
    return [metric for name, metric in able.items() if spec.metrics is None or name in spec.metrics]
