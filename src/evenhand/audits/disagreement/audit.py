"""The disagreement audit: a table and settings in, a result out."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from evenhand.audits.disagreement.metrics import computed_metrics
from evenhand.audits.disagreement.result import (
    AnswerPlan,
    CriticGap,
    CriticPairRecord,
    DisagreementGap,
    DisagreementResult,
    DisagreementValue,
    PairRecord,
    StakeholderGap,
    TruthRecord,
)
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.progress import step
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError
from evenhand.table.table import Table


@audit_function(DisagreementSpec)
def disagreement(table: Table, **settings: Any) -> DisagreementResult:
    """Ask what the people affected think of a system's decisions, when all they say is whether they agree.

    The system gives each case a label y; a critic has a label z in mind that nobody sees, and says whether the two are
    the same. From that follow six metrics of fairness between groups of cases: three exactly (statistical parity,
    calibration, accuracy equality), and three up to sharp bounds (equal opportunity, predictive equality, overall
    misclassification), which with two labels are exact too.

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


@dataclass(kw_only=True)
class _Tables:
    """The records and estimates so far."""

    values: list[DisagreementValue] = field(default_factory=list)
    gaps: list[Estimate[DisagreementGap]] = field(default_factory=list)
    critics: list[CriticGap] = field(default_factory=list)
    stakeholders: list[Estimate[StakeholderGap]] = field(default_factory=list)
    plan: list[AnswerPlan] = field(default_factory=list)
    truth: list[TruthRecord] = field(default_factory=list)
    pairs: list[PairRecord] = field(default_factory=list)
    critic_pairs: list[CriticPairRecord] = field(default_factory=list)

    def records(self) -> dict[str, Any]:
        """Return the tables of the result, by name."""
        return {
            name: tuple(item.record if isinstance(item, Estimate) else item for item in items)
            for name, items in vars(self).items()
        }


def run(table: Table, spec: DisagreementSpec) -> Draft[DisagreementResult]:
    """Audit a table under the settings of a spec."""
    if not table.groupings:
        raise ConfigError("the table names no groups to compare; give `groups=['column', ...]`.")
    require_known(spec.thresholds, groupings=table.groupings)
    step("Reading the answers")
    panel = gather(table, spec)
    groupings = find_groupings(table, panel, spec.min_count)
    tables = _Tables()
    fewer: dict[str, int] = {}
    for number, grouping in enumerate(groupings):
        step(f"Comparing by {grouping.name}")
        compared = answer_set(panel, grouping)
        _add_records(panel, grouping, compared, spec=spec, number=number, tables=tables)
        draws = resampling_of(compared.answers, spec).draws
        if compared.why_not_compared(spec.min_count) is None and draws < spec.resamples:
            fewer[grouping.name] = draws
    if spec.like is not None:
        step("Comparing pairs of like cases")
        tables.pairs, tables.critic_pairs = pair_records(panel, spec)
    claims, records = list(make_claims(tables.gaps, tables.values, tables.stakeholders, spec)), tables.records()
    notes = (*panel_notes(panel, spec, records["gaps"], fewer), *label_notes(tables.values, groupings))
    result = DisagreementResult(
        spec=spec,
        findings=(),
        left_out=tuple(left_out_records(panel, groupings, spec.min_count)),
        notes=(*table.source.notes, *notes),
        backend=table.backend,
        **records,
        labels=panel.labels.names,
        hash=panel.digest(),
    )
    return Draft(result=result, claims=claims, own=say)


def _add_records(
    panel: Panel, grouping: Grouping, compared: AnswerSet, *, spec: DisagreementSpec, number: int, tables: _Tables
) -> None:
    """Add the records by one grouping: of all critics, of each kind of critics, and of each critic."""
    metrics = computed_metrics(spec.answers.tolerance)
    everybody = compared if all(grouping.compared) else answer_set(panel, grouping, compared=False)
    for stream, stakeholder in enumerate((None, *panel.stakeholders)):
        heard, all_groups = compared, everybody
        if stakeholder is not None:
            of_kind = np.asarray(panel.stakeholder == stream - 1)
            if not of_kind[compared.critics].any():
                continue
            heard, all_groups = compared.of(of_kind, stakeholder), everybody.of(of_kind, stakeholder)
        tables.values += value_records(all_groups, metrics, spec, 1, number, stream)
        gaps, intervals = gap_estimates(heard, metrics, spec, 2, number, stream)
        tables.gaps += gaps
        if stakeholder is None:
            tables.plan += plan_records(heard, intervals, spec)
    if compared.why_not_compared(spec.min_count) is not None:
        return
    tables.stakeholders += stakeholder_gaps(panel, compared, spec, 3, number)
    if len(panel.critics) <= MOST_CRITICS:
        critics = critic_gaps(panel, compared, metrics, spec, 4, number)
        tables.critics += critics
        if compared.truth is not None:
            tables.truth += truth_records(critics, metrics)
