"""The analysis of an effort study, from responses and settings to a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.core.estimates import Estimate
from evenhand.core.records import LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.errors import ConfigError, DataError, problem, require_choice
from evenhand.messages import Message
from evenhand.study.analysis.estimate import bonus_table, correlation_records, factor_records, serum_records
from evenhand.study.analysis.findings import conclusion_notes, make_claims
from evenhand.study.analysis.gather import Part, parts_of, with_adjusted_limits, with_adjusted_p
from evenhand.study.analysis.messages import say
from evenhand.study.analysis.regressions import family_of, regression_records
from evenhand.study.analysis.result import StudyGap, StudyResult, StudyValue
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.messages import say as of_answers
from evenhand.study.responses import Responses, apply_exclusions, read_responses
from evenhand.study.schema import require_known

_FEW = 20
"""With fewer people, person-level intervals are only rough."""


@audit_function(AnalysisSpec)
def analyze(responses: Responses | Any, **settings: Any) -> StudyResult:
    """Analyse an effort study: which distance explains people's judgements of similarity.

    Every estimate is computed as published, treating each answer as a person, and also at person level: the bootstrap
    resamples people with ranks recomputed, regressions have clustered standard errors and a random intercept.

    A threshold limits 'effort_weight', such as ``{"metric": "effort_weight", "min": 0.5}``, or the signed
    'correlation_difference' (trajectory minus aggregate), in all conditions and targets or only in those it names.

    Parameters
    ----------
    responses
        The answers, from `read_responses` or `read_survey`. A file or data frame is read with `read_responses`.
    {settings}

    Returns
    -------
    StudyResult
        Tables `values`, `gaps`, `regressions`, `truth_serum` and `bonus`; `weights` for `eh.effort`.

    Examples
    --------
    >>> import evenhand as eh
    >>> result = eh.study.analyze(eh.study.simulate_responses(40, seed=2), resamples=200)
    >>> sorted(result.weights)
    ['arrests', 'income']
    """
    spec = AnalysisSpec.parse(settings, "the arguments of analyze()")
    return finalize(run(responses if isinstance(responses, Responses) else read_responses(responses), spec))


def run(responses: Responses, spec: AnalysisSpec) -> Draft[StudyResult]:
    """Analyse responses according to a spec."""
    if responses.kind != "effort":
        raise ConfigError(
            "analyze() is for effort studies; for feedback use eh.disagreement(table of the cases, decision='...', "
            "case='item', critic='participant', answer='answer', answers={'data': responses.to_frame()})."
        )
    kept = apply_exclusions(responses, spec.exclusions)
    parts = list(parts_of(kept))
    if not any(len(part.y) for part in parts):
        raise DataError(_nothing_to_analyse(responses, kept))
    _require_conditions(responses, kept, spec)
    correlations, comparisons = correlation_records(parts, spec)
    fitted, weights = regression_records(parts, spec)
    shares, share_gaps = factor_records(kept, spec)
    of_values = with_adjusted_limits([*map(Estimate, correlations), *weights, *map(Estimate, shares)], _family)
    of_gaps = with_adjusted_limits([*comparisons, *map(Estimate, share_gaps)], _family)
    gaps = tuple(estimate.record for estimate in of_gaps)
    regressions = with_adjusted_p(fitted, family_of)
    bonus, serum_notes = bonus_table(kept, spec)
    result = StudyResult(
        spec=spec,
        findings=(),
        left_out=tuple(_left_out(kept, parts)),
        notes=(*responses.notes, *conclusion_notes(gaps, regressions, spec), *serum_notes, *_few_people(parts)),
        backend=responses.backend,
        values=tuple(estimate.record for estimate in of_values),
        gaps=gaps,
        regressions=regressions,
        truth_serum=tuple(serum_records(bonus)),
        bonus=bonus,
        conditions=kept.conditions,
        people=len(kept.people["participant"]),
        answers=len(kept.person),
    )
    return Draft(result=result, claims=list(make_claims(of_values, of_gaps, spec)), own=say)


def _family(record: StudyValue | StudyGap) -> tuple[str, str]:
    return record.metric, record.method


def _require_conditions(responses: Responses, kept: Responses, spec: AnalysisSpec) -> None:
    """Raise for a baseline without remaining people, or a threshold for an unknown condition."""
    if spec.baseline is not None:
        require_choice("baseline", spec.baseline, kept.conditions)
    named = [threshold.condition for threshold in spec.thresholds if threshold.condition is not None]
    require_known(named, responses.conditions, "`condition` {name} of a threshold is not known")


def _nothing_to_analyse(responses: Responses, kept: Responses) -> Message:
    people, left = len(responses.people["participant"]), len(kept.people["participant"])
    if people and not left:
        return problem(
            "all {people:count} people are left out by the exclusion rules; nobody is left to analyse.", people=people
        )
    return problem(
        "no answer has all three distances (trajectory, aggregate and overall); there is nothing to analyse."
    )


def people_left_out(kept: Responses) -> Iterator[LeftOut]:
    """Yield the people left out by exclusion rules, with the reason."""
    for rule in kept.excluded:
        if rule.people:
            answers = of_answers("answers", n=rule.rows)
            yield LeftOut(
                n=rule.people, reason=of_answers("people_who", rule=rule.rule, limit=rule.limit, answers=answers)
            )


def _left_out(kept: Responses, parts: Sequence[Part]) -> Iterator[LeftOut]:
    yield from people_left_out(kept)
    for part in parts:
        if part.incomplete:
            reason = say("incomplete_answers", target=part.target)
            yield LeftOut(grouping="condition", group=part.condition, n=part.incomplete, reason=reason)
    for part in parts:
        if part.people == 1 and len(kept.conditions) > 1:
            reason = say("alone", target=part.target)
            yield LeftOut(grouping="condition", group=part.condition, n=1, reason=reason)


def _few_people(parts: Sequence[Part]) -> Iterator[Message]:
    few = sorted({part.condition for part in parts if part.people < _FEW})
    places = tuple(say("condition", condition=name) if name else say("the_study") for name in few)
    if places:
        yield say("rough", least=_FEW, places=places)
