"""The disagreement audit: compute a result from a table and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from evenhand.audits.disagreement.critics import (
    MOST_CRITICS,
    critic_gaps,
    pair_records,
    stakeholder_gaps,
    truth_records,
)
from evenhand.audits.disagreement.estimate import gap_estimates, plan_records, value_records
from evenhand.audits.disagreement.findings import label_notes, make_claims, panel_notes
from evenhand.audits.disagreement.gather import Panel, gather
from evenhand.audits.disagreement.groups import (
    AnswerSet,
    Grouping,
    answer_set,
    find_groupings,
    left_out_records,
    resampling_of,
)
from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.metrics import METRICS, computed_metrics
from evenhand.audits.disagreement.result import DisagreementGap, DisagreementResult
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.capabilities import Live
from evenhand.core.progress import step
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError
from evenhand.table.table import Table


@audit_function(DisagreementSpec)
def disagreement(table: Table, **settings: Any) -> DisagreementResult:
    """Measure fairness as seen by affected people, who only state whether they agree with decisions.

    The system gives each case a label y. A critic has an unobserved label z in mind, and answers whether the two are
    the same. These answers determine six metrics of fairness between groups of cases: three exactly (statistical
    parity, calibration, accuracy equality), and three up to sharp bounds (equal opportunity, predictive equality,
    overall misclassification), which are exact with two labels.

    Parameters
    ----------
    table
        The data with its groups: one row for each answer; or, where the answers have a table of their own, one row for
        each case and an id role. A case has one label.
    {settings}

    Returns
    -------
    DisagreementResult
        Tables `values`, `gaps`, `critics` (one by one), `stakeholders` (compared), `plan`, `truth` and, with `like`,
        `pairs` and `critic_pairs`.

    Examples
    --------
    >>> import evenhand as eh
    >>> offers = eh.datasets.make_kidney_offers(400, 80, seed=1)
    >>> table = eh.Table(offers, groups="patient_sex")
    >>> result = eh.disagreement(table, decision="quality", disagree="disagrees", critic="critic", case="offer")
    >>> gap = result.get("gaps", metric="equal_opportunity")
    >>> gap.identified, round(gap.lower, 2), round(gap.upper, 2)
    ('bounded', 0.0, 0.71)

    Options of the answers are one object, or a mapping:

    >>> answers = {"labels": [1, 2, 3, 4], "target_width": 0.2}
    >>> result = eh.disagreement(
    ...     table, decision="quality", answer="answer", critic="critic", case="offer", answers=answers
    ... )
    >>> result.get("plan", metric="accuracy_equality", design="new cases").answers
    0
    """
    return finalize(run(table, DisagreementSpec.parse(settings, "the arguments of disagreement()")))


def run(table: Table, spec: DisagreementSpec) -> Draft[DisagreementResult]:
    """Audit a table under the settings of a spec."""
    if not table.groupings:
        raise ConfigError("the table names no groups to compare; give `groups=['column', ...]`.")
    require_known(spec.thresholds, groupings=table.groupings)
    step("Reading the answers")
    panel = gather(table, spec)
    groupings = find_groupings(table, panel, spec.min_count)
    tables: dict[str, list[Any]] = {name: [] for name in DisagreementResult.record_types()}
    fewer: dict[str, int] = {}
    for grouping in groupings:
        step(f"Comparing by {grouping.name}")
        compared = answer_set(panel, grouping)
        for name, records in _records_by_table(panel, grouping, compared, spec):
            tables[name] += records
        draws = resampling_of(compared.answers, spec).draws
        if compared.why_not_compared(spec.min_count) is None and draws < spec.resamples:
            fewer[grouping.name] = draws
    if spec.like is not None:
        step("Comparing pairs of like cases")
        tables["pairs"], tables["critic_pairs"] = pair_records(panel, spec)
    claims = list(make_claims(tables["gaps"], tables["values"], tables["stakeholders"], spec))
    tables |= {name: [estimate.record for estimate in tables[name]] for name in ("gaps", "stakeholders")}
    notes = (*panel_notes(panel, spec, tables["gaps"], fewer), *label_notes(tables["values"], groupings))
    left_out = tuple(left_out_records(panel, groupings, spec.min_count))
    result = DisagreementResult(
        spec=spec,
        findings=(),
        **{name: tuple(records) for name, records in tables.items()} | {"left_out": left_out},
        notes=(*table.source.notes, *notes),
        backend=table.backend,
        labels=panel.labels.names,
        hash=panel.digest(),
    )
    return Draft(result=result, claims=claims, own=say)


def _records_by_table(
    panel: Panel, grouping: Grouping, compared: AnswerSet, spec: DisagreementSpec
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield the records by one grouping for all critics, for each kind of critics, and for each critic."""
    metrics = computed_metrics(spec.answers.tolerance)
    everybody = compared if all(grouping.compared) else answer_set(panel, grouping, compared=False)
    for kind, stakeholder in enumerate((None, *panel.stakeholders)):
        heard, all_groups = compared, everybody
        if stakeholder is not None:
            of_kind = np.asarray(panel.stakeholder == kind - 1)
            if not of_kind[compared.critics].any():
                continue
            heard, all_groups = compared.of(of_kind, stakeholder), everybody.of(of_kind, stakeholder)
        yield "values", value_records(all_groups, metrics, spec)
        gaps, intervals = gap_estimates(heard, metrics, spec)
        yield "gaps", gaps
        if stakeholder is None:
            yield "plan", plan_records(heard, intervals, spec)
    if compared.why_not_compared(spec.min_count) is not None:
        return
    yield "stakeholders", stakeholder_gaps(panel, compared, spec)
    if len(panel.critics) <= MOST_CRITICS:
        critics = critic_gaps(panel, compared, metrics, spec)
        yield "critics", critics
        if compared.truth is not None:
            yield "truth", truth_records(critics, metrics)


class DisagreementLive:
    """Live gaps of the metrics of fairness while answers arrive, without findings and notes."""

    def titles(self) -> list[str]:
        """Return the titles of the headline metrics."""
        return [METRICS[metric].title for metric in computed_metrics(0)]

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterator[tuple[str, DisagreementGap]]:
        """Yield the gaps of every grouping with the titles of their metrics."""
        spec = DisagreementSpec.parse(settings, "the live estimates")
        panel = gather(cases, spec)
        for grouping in find_groupings(cases, panel, spec.min_count):
            gaps, _ = gap_estimates(answer_set(panel, grouping), computed_metrics(0), spec)
            yield from ((METRICS[gap.metric].title, gap) for gap in (e.record for e in gaps) if gap.same_as is None)


LIVE: Live = DisagreementLive()
"""The disagreement audit's live estimates."""
