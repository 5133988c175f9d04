"""The disagreement audit: a table and settings in, a result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.audits.disagreement.critics import MOST_CRITICS, alone
from evenhand.audits.disagreement.findings import make_findings
from evenhand.audits.disagreement.gaps import Place, gaps_of, plan_records, undefined_gaps, why_not
from evenhand.audits.disagreement.groups import Grouping, find_groupings, left_out_records, voices_of
from evenhand.audits.disagreement.notes import label_notes, panel_notes
from evenhand.audits.disagreement.notions import notions_for
from evenhand.audits.disagreement.panel import Panel, gather
from evenhand.audits.disagreement.rates import rates_of
from evenhand.audits.disagreement.records import (
    CriticRecord,
    GapRecord,
    PlanRecord,
    RateRecord,
    StakeholderRecord,
    TruthRecord,
)
from evenhand.audits.disagreement.result import DisagreementResult
from evenhand.audits.disagreement.sampling import resampling_of
from evenhand.audits.disagreement.spec import DisagreementSpec, FeedbackTable
from evenhand.audits.disagreement.stakeholders import stakeholder_records
from evenhand.core.progress import step
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, did_you_mean
from evenhand.stats.feedback import Bounds
from evenhand.stats.feedback import FeedbackMetric as Notion
from evenhand.table.roles import Scalar
from evenhand.table.table import Table


def disagreement(
    table: Table,
    *,
    decision: str,
    critic: str | None = None,
    disagree: str | None = None,
    answer: str | None = None,
    direction: str | None = None,
    case: str | None = None,
    stakeholder: str | None = None,
    feedback: FeedbackTable | Mapping[str, Any] | None = None,
    labels: Sequence[Scalar] | None = None,
    ordered: bool | None = None,
    tolerance: int | None = None,
    bounds: Bounds = "sharp",
    truth: str | None = None,
    contradictions: Literal["error", "latest"] = "error",
    answered: str | None = None,
    cases: Literal["sample", "all"] = "sample",
    target_width: float | None = None,
    resamples: int = 1_000,
    confidence: float = 0.95,
    min_count: int = 10,
    seed: int = 0,
    thresholds: Sequence[Threshold | Mapping[str, Any]] = (),
) -> DisagreementResult:
    """Ask what the people affected think of a system's decisions, when all they say is whether they agree.

    The system gives each case a label y; a critic has a label z in mind that nobody sees, and says whether the two are
    the same. From that follow six notions of fairness between groups of cases: three exactly (statistical parity,
    calibration, accuracy equality), and three up to sharp bounds (equal opportunity, predictive equality, overall
    misclassification), which with two labels are exact too.

    Parameters
    ----------
    table
        The data with its groups: one row for each answer; or, with `feedback`, one row for each case and an id role.
    decision
        Column of the label that the system gave. A case has one label.
    critic
        Column that says who answered.
    disagree, answer
        The answer, as one of: a column of yes and no (1 when the critic disagrees), or a column of words: agree and
        disagree, or right, too high and too low.
    direction
        Column beside `disagree` that says which way: too high or too low.
    case
        Column that says which case was answered. Without it each answer counts as a case of its own.
    stakeholder
        Column with the kind of critic, such as patient or surgeon. A critic is of one kind.
    feedback
        The answers as a table of their own: ``{"data": answers, "case": "offer", "critic": "who", "disagree": "no"}``.
    labels, ordered
        All labels that the system can give, lowest first, and whether they have an order; by default those seen, and an
        order when they are numbers. Directions and tolerances need an order.
    tolerance
        A critic agrees when the two labels are at most this many steps apart; by default only when they are the same.
    bounds
        'sharp', or 'published': the looser bounds of the paper, one of which points the wrong way.
    truth
        Column of the critic's own label, where that is known: the true value is then shown beside the bounds.
    contradictions, answered
        What to do when a critic answers a case in two ways: 'error', or 'latest' by the column of times `answered`.
    cases
        Whether the cases are a 'sample' of those that matter, or 'all' of them. Critics are always a sample.
    target_width
        Plan how many more answers would narrow the interval of each gap to this width.
    resamples, confidence, seed
        Of the bootstrap of critics and cases, and of the intervals.
    min_count
        Groups with fewer cases are listed, but left out of gaps.
    thresholds
        Limits, each a mapping such as ``{"metric": "calibration", "max": 0.1}``; `stratum` names a kind of critics.

    Returns
    -------
    DisagreementResult
        Tables `gaps`, `rates`, `critics` (one by one), `stakeholders` (compared), `plan` and `truth`.

    Examples
    --------
    >>> import evenhand as eh
    >>> offers = eh.datasets.make_kidney_offers(400, 80, seed=1)
    >>> table = eh.Table(offers, groups="patient_sex")
    >>> result = eh.disagreement(table, decision="quality", disagree="disagrees", critic="critic", case="offer")
    >>> gap = next(gap for gap in result.gaps if gap.notion == "equal_opportunity" and gap.critic is None)
    >>> gap.kind, round(gap.lower, 2), round(gap.upper, 2)
    ('bounded', 0.0, 0.71)
    """
    return run(
        table,
        DisagreementSpec.parse(
            {
                "decision": decision,
                "critic": critic,
                "disagree": disagree,
                "answer": answer,
                "direction": direction,
                "case": case,
                "stakeholder": stakeholder,
                "feedback": feedback,
                "labels": labels,
                "ordered": ordered,
                "tolerance": tolerance,
                "bounds": bounds,
                "truth": truth,
                "contradictions": contradictions,
                "answered": answered,
                "cases": cases,
                "target_width": target_width,
                "resamples": resamples,
                "confidence": confidence,
                "min_count": min_count,
                "seed": seed,
                "thresholds": thresholds,
            },
            "the arguments of disagreement()",
        ),
    )


@dataclass
class _Found:
    """What has been found so far."""

    gaps: list[GapRecord] = field(default_factory=list)
    of_critics: list[GapRecord] = field(default_factory=list)
    rates: list[RateRecord] = field(default_factory=list)
    critics: list[CriticRecord] = field(default_factory=list)
    stakeholders: list[StakeholderRecord] = field(default_factory=list)
    plan: list[PlanRecord] = field(default_factory=list)
    truth: list[TruthRecord] = field(default_factory=list)
    fewer: dict[str, int] = field(default_factory=dict)
    heard: dict[tuple[str, str | None], int] = field(default_factory=dict)


def run(table: Table, spec: DisagreementSpec) -> DisagreementResult:
    """Audit a table as a spec says."""
    _require_places(table, spec)
    step("Reading the answers")
    panel = gather(table, spec)
    _require_kinds(panel, spec)
    groupings = find_groupings(table, panel, spec)
    notions = notions_for(spec.tolerance)
    found = _Found()
    for number, grouping in enumerate(groupings):
        step(f"Comparing by {grouping.name}")
        _compare(panel, grouping, notions, spec, number, found)
    gaps = (*found.gaps, *found.of_critics)
    return DisagreementResult(
        spec=spec,
        findings=make_findings(found.gaps, found.rates, found.stakeholders, found.heard, spec),
        left_out=tuple(left_out_records(panel, groupings, spec)),
        notes=(
            *table.source.notes,
            *panel_notes(panel, spec, found.gaps, found.fewer),
            *label_notes(found.rates, groupings),
        ),
        backend=table.backend,
        gaps=gaps,
        rates=tuple(found.rates),
        critics=tuple(found.critics),
        stakeholders=tuple(found.stakeholders),
        plan=tuple(found.plan),
        truth=tuple(found.truth),
        labels=panel.labels.names,
        hash=panel.digest(),
    )


def _compare(
    panel: Panel, grouping: Grouping, notions: Sequence[Notion], spec: DisagreementSpec, number: int, found: _Found
) -> None:
    """Add what is found by one grouping: of all critics, of each kind of them, and of each critic."""
    everybody = voices_of(panel, grouping, compared=False)
    voices = voices_of(panel, grouping)
    every_place = Place(grouping.name, everybody.groups, panel.labels.names)
    place = Place(grouping.name, voices.groups, panel.labels.names)
    kinds = range(len(panel.stakeholders)) if panel.stakeholder is not None else ()
    for stream, kind in enumerate((None, *kinds)):
        name = None if kind is None else panel.stakeholders[kind]
        if panel.stakeholder is None or kind is None:
            heard, all_heard = voices, everybody
        else:
            of_kind = panel.stakeholder == kind
            if not of_kind[voices.critics].any():
                continue
            heard, all_heard = voices.of(of_kind), everybody.of(of_kind)
        found.heard[grouping.name, name] = len(heard.critics)
        found.rates += rates_of(all_heard, _named(every_place, name), notions, spec, 1, number, stream)
        why = why_not(heard, grouping, spec.min_count)
        own = _named(place, name)
        if why is not None:
            n = len(heard.answers.answer)
            found.gaps += undefined_gaps(own, notions, n, why, len(panel.labels.names), spec.bounds)
            continue
        records, intervals = gaps_of(heard, own, notions, spec, 2, number, stream)
        found.gaps += records
        if kind is None:
            draws = resampling_of(heard.answers, spec).draws
            if draws < spec.resamples:
                found.fewer[grouping.name] = draws
            found.plan += plan_records(heard, own, intervals, spec)
    if why_not(voices, grouping, spec.min_count) is None:
        found.stakeholders += stakeholder_records(panel, voices, place, spec, 3, number)
        if len(panel.critics) <= MOST_CRITICS:
            single = alone(panel, voices, place, notions, spec, 4, number)
            found.of_critics += single.gaps
            found.critics += single.critics
            found.truth += single.truth


def _named(place: Place, stakeholder: str | None) -> Place:
    return Place(place.grouping, place.groups, place.labels, stakeholder)


def _require_places(table: Table, spec: DisagreementSpec) -> None:
    if not table.groupings:
        raise ConfigError("the table names no groups to compare; give groups=['column', ...].")
    for threshold in spec.thresholds:
        if threshold.grouping is not None and threshold.grouping not in table.groupings:
            hint = did_you_mean(threshold.grouping, table.groupings)
            raise ConfigError(f"`grouping` {threshold.grouping!r} of a threshold is not known; {hint}")
        if threshold.metric not in notions_for(spec.tolerance):
            raise ConfigError(f"the threshold for {threshold.metric!r} needs a `tolerance`; set one, or leave it out.")


def _require_kinds(panel: Panel, spec: DisagreementSpec) -> None:
    for threshold in spec.thresholds:
        if threshold.stratum is not None and threshold.stratum not in panel.stakeholders:
            hint = did_you_mean(threshold.stratum, panel.stakeholders)
            raise ConfigError(
                f"`stratum` {threshold.stratum!r} of a threshold is no kind of critics in `stakeholder`; {hint}"
            )
