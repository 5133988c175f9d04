"""Live estimates of a running study, for the dashboard.

The estimates are computed as in the analysis (`eh.study.analyze`, `eh.disagreement`) with fewer bootstrap
resamples, so that they keep up; the exclusions of [analysis] are applied first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.core.capabilities import Live
from evenhand.errors import ConfigError, EvenhandError
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.study.analysis.analyze import people_left_out
from evenhand.study.analysis.estimate import BY_PEOPLE, correlation_records
from evenhand.study.analysis.gather import parts_of
from evenhand.study.analysis.regressions import regression_records
from evenhand.study.messages import say
from evenhand.study.responses import Responses, apply_exclusions
from evenhand.study.schema import read_columns
from evenhand.study.server.dashboard import Estimate, Estimator
from evenhand.study.settings import Disagreement
from evenhand.study.spec import StudySpec
from evenhand.table.table import Table

_RESAMPLES = 400
_EFFORT = {
    ("rank_correlation", "trajectory"): ("Overall with trajectory", "correlation"),
    ("rank_correlation", "aggregate"): ("Overall with aggregate", "correlation"),
    ("effort_weight", None): ("Weight of trajectory", "weight"),
}
"""The estimates by metric and factor, each with its label and kind."""
_DIRECTIONS = {"too_high", "too_low"}


def live_estimates(spec: StudySpec) -> Estimator:
    """Return the function that computes a study's live estimates from responses.

    For an effort study: in each condition the rank correlations of the overall distance with the trajectory and the
    aggregate distance, and the weight of trajectory, with intervals by the bootstrap of people. For a disagreement
    study: for each grouping the gaps of the fairness metrics, with their bounds and intervals. A value that cannot be
    estimated yet is None, with the reason in `status`.

    Parameters
    ----------
    spec : the settings of the study.

    Examples
    --------
    >>> import evenhand as eh, tomllib
    >>> from evenhand.study.spec import StudySpec
    >>> spec = StudySpec.parse(tomllib.loads(eh.study.study_template("effort")), "study.toml")
    >>> estimates = live_estimates(spec)(eh.study.simulate_responses(40, seed=1))
    >>> [(one.label, one.group, str(one.status)) for one in estimates][2]
    ('Weight of trajectory', 'income', 'ok')
    """
    if spec.disagreement is None:
        return partial(_effort, spec)
    return partial(_feedback, spec, _cases(spec, spec.disagreement))


def _effort(spec: StudySpec, responses: Responses) -> list[Estimate]:
    kept = apply_exclusions(responses, spec.analysis.exclusions)
    parts = [part for part in parts_of(kept) if part.target == "overall" and len(part.y)]
    few = spec.analysis.model_copy(update={"resamples": min(_RESAMPLES, spec.analysis.resamples)})
    records = (
        [*correlation_records(parts, few)[0], *(weight.record for weight in regression_records(parts, few)[1])]
        if parts
        else []
    )
    by_place = {
        (record.condition, record.metric, record.factor): record
        for record in records
        if record.method == BY_PEOPLE and record.target == "overall"
    }
    estimates = []
    for condition in spec.conditions:
        for (metric, factor), (label, kind) in _EFFORT.items():
            record = by_place.get((condition, metric, factor))
            if record is None:
                estimates.append(_undefined(label, condition, say("no_answers_yet")))
            else:
                estimates.append(
                    Estimate(
                        label=label,
                        group=condition,
                        value=record.value,
                        low=record.low,
                        high=record.high,
                        n=record.n,
                        answers=record.answers,
                        status=record.status,
                        kind=kind,
                    )
                )
    return estimates


def _feedback(spec: StudySpec, cases: Table | None, responses: Responses) -> list[Estimate]:
    asked, live = spec.disagreement, REGISTRY[spec.kind].live
    if asked is None or cases is None or live is None:
        return []
    kept = apply_exclusions(responses, spec.analysis.exclusions)
    try:
        return _gaps(live, asked, cases, kept, spec.analysis.seed)
    except EvenhandError as error:
        why = error.message if len(kept.person) else say("no_answers_yet")
        return [_undefined(title, group, why) for group in asked.groups for title in live.titles()]


def _gaps(live: Live, asked: Disagreement, cases: Table, kept: Responses, seed: int) -> list[Estimate]:
    answer = kept.answers["answer"].astype(str)
    table = {"item": kept.answers["item"], "participant": kept.people["participant"][kept.person]}
    directed = _DIRECTIONS & set(asked.answers) and "disagree" not in asked.answers
    how = {"answer": "answer"} if directed else {"disagree": "disagree"}
    table |= {"answer": answer} if directed else {"disagree": (answer != "agree").astype(np.int64)}
    settings = {
        "decision": asked.decision,
        "critic": "participant",
        "case": "item",
        **how,
        "answers": {"data": table, "labels": asked.labels, "ordered": bool(directed) or None},
        "resamples": _RESAMPLES,
        "seed": seed,
    }
    return [
        Estimate(
            label=title,
            group=gap.grouping,
            value=gap.value,
            low=gap.low,
            high=gap.high,
            lower=gap.lower,
            upper=gap.upper,
            n=gap.critics,
            answers=gap.n,
            status=gap.status,
            kind="gap",
        )
        for title, gap in live.gaps(cases, settings)
    ]


def _cases(spec: StudySpec, asked: Disagreement) -> Table | None:
    """Return the table of cases with groups; None if the study compares no groups."""
    if not asked.groups:
        return None
    columns, _ = read_columns(spec.folder / asked.cases)
    return Table(
        {name: [str(value) for value in columns[name]] if name == asked.id else columns[name] for name in columns},
        groups=list(asked.groups),
        id=asked.id,
    )


def _undefined(label: str, group: str, why: Message) -> Estimate:
    return Estimate(label=label, group=group, status=shared("undefined", why=why))


def audit_study(responses: Responses, spec: StudySpec, by: str | None = None) -> eh.Audit:
    """Analyse a study's answers: the study analysis for 'effort', or the disagreement audit of its cases.

    Parameters
    ----------
    responses, spec : the answers and the study.
    by : the question about people whose answers define the kinds of critics; by default the study's setting.
    """
    about = {"title": spec.words(spec.title), "system": f"the study {spec.name}"}
    if spec.disagreement is None:
        if by is not None:
            raise ConfigError("kinds of critics are compared in a disagreement study; this one is of kind 'effort'.")
        return eh.audit(responses, study=spec.analysis, report=about)
    kept = apply_exclusions(responses, spec.analysis.exclusions)
    table, settings = spec.for_audit(kept, by)
    sections: dict[str, Any] = {spec.kind: settings}
    made = eh.audit(table, report=about, **sections)
    result = made.results[spec.kind]
    told = replace(result, left_out=(*people_left_out(kept), *result.left_out))
    return replace(made, results={**made.results, spec.kind: told})
