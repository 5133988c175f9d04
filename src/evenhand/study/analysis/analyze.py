"""The analysis of an effort study: responses and settings in, a result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.study.analysis.correlations import correlation_tables
from evenhand.study.analysis.factors import factor_records
from evenhand.study.analysis.findings import conclusion_notes, make_findings
from evenhand.study.analysis.parts import TARGETS, Part, parts_of
from evenhand.study.analysis.regressions import regression_table
from evenhand.study.analysis.result import StudyResult
from evenhand.study.analysis.serum import bonus_table
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.exclusions import Exclusions, apply_exclusions
from evenhand.study.responses import Responses, read_responses


def analyze(
    responses: Responses | Any,
    *,
    alpha: float = 0.05,
    baseline: str | None = None,
    exclusions: Exclusions | Mapping[str, Any] | None = None,
    serum_weight: float = 1.0,
    bonus_share: float = 0.1,
    bonus_ties: bool = True,
    bonus_answered: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    thresholds: Sequence[Threshold | Mapping[str, Any]] = (),
) -> StudyResult:
    """Analyse an effort study: what people look at when they judge who is alike.

    Everything is computed as published, where each answer counts as a person, and beside it by people: the bootstrap
    resamples people with ranks recomputed, regressions have clustered standard errors and a random intercept.

    Parameters
    ----------
    responses
        The answers; `read_responses` and `read_survey` make them. A file or data frame is read by the former.
    alpha
        Below this a p-value counts as significant where the result says that a conclusion changes.
    baseline
        Condition that the moderation model compares the others with; by default the last by name.
    exclusions
        Rules of who is left out, by default who failed two attention checks; ``{"failed_checks": False}`` keeps all.
    serum_weight, bonus_share, bonus_ties, bonus_answered
        The truth serum's weight of predictions, the share of people who get the bonus, what happens to ties at the
        last place, and the share of their pairs that people must have predicted to be paid.
    confidence, resamples, seed
        Confidence of intervals, bootstrap resamples and their seed.
    thresholds
        Limits for 'effort_weight' and 'correlation_difference', such as ``{"metric": "effort_weight", "min": 0.5}``.

    Returns
    -------
    StudyResult
        Tables `correlations`, `comparisons`, `regressions`, `factors` and `bonus`; `weights` for `eh.effort`.

    Examples
    --------
    >>> import evenhand as eh
    >>> result = eh.study.analyze(eh.study.simulate_responses(40, seed=2), resamples=200)
    >>> sorted(result.weights)
    ['arrests', 'income']
    """
    given = exclusions.model_dump() if isinstance(exclusions, Exclusions) else dict(exclusions or {})
    answers = responses if isinstance(responses, Responses) else read_responses(responses)
    return run(
        answers,
        AnalysisSpec.parse(
            {
                "alpha": alpha,
                "baseline": baseline,
                "exclusions": given,
                "serum_weight": serum_weight,
                "bonus_share": bonus_share,
                "bonus_ties": bonus_ties,
                "bonus_answered": bonus_answered,
                "confidence": confidence,
                "resamples": resamples,
                "seed": seed,
                "thresholds": thresholds,
            },
            "the arguments of analyze()",
        ),
    )


def run(responses: Responses, spec: AnalysisSpec) -> StudyResult:
    """Analyse responses as a spec says."""
    if responses.kind != "effort":
        raise ConfigError(
            "analyze() is for effort studies; for feedback use eh.disagreement(table of the cases, decision='...', "
            "case='item', critic='participant', answer='answer', answers={'data': responses.to_frame()})."
        )
    kept = apply_exclusions(responses, spec.exclusions)
    parts = list(parts_of(kept))
    if not any(len(part.y) for part in parts):
        raise DataError(_nothing(responses, kept))
    _require_conditions(kept, spec)
    correlations, comparisons = correlation_tables(parts, spec)
    regressions = regression_table(parts, spec)
    bonus, serum_notes = bonus_table(kept, spec)
    told = conclusion_notes(comparisons, regressions, spec)
    return StudyResult(
        spec=spec,
        findings=make_findings(correlations, comparisons, regressions, spec),
        left_out=_left_out(kept, parts),
        notes=(*responses.notes, *told, *serum_notes, *_small(parts)),
        backend=responses.backend,
        correlations=correlations,
        comparisons=comparisons,
        regressions=regressions,
        factors=factor_records(kept, spec),
        bonus=bonus,
        conditions=kept.conditions,
        people=len(kept.people["participant"]),
        rows=len(kept.person),
    )


def _require_conditions(kept: Responses, spec: AnalysisSpec) -> None:
    """Refuse a baseline or a threshold for a condition or a target that is not there."""
    if spec.baseline is not None and spec.baseline not in kept.conditions:
        raise ConfigError(f"`baseline` got {spec.baseline!r}; {did_you_mean(spec.baseline, kept.conditions)}")
    for threshold in spec.thresholds:
        for name, value, known in (
            ("grouping", threshold.grouping, kept.conditions),
            ("stratum", threshold.stratum, TARGETS),
        ):
            if value is not None and value not in known:
                raise ConfigError(f"`{name}` of a threshold got {value!r}; {did_you_mean(value, known)}")
        if threshold.model is not None:
            raise ConfigError("a study has no models; leave `model` out of its thresholds.")


def _nothing(responses: Responses, kept: Responses) -> str:
    people, left = len(responses.people["participant"]), len(kept.people["participant"])
    if people and not left:
        return (
            f"all {count(people, 'person', 'people')} are left out by the exclusion rules; nobody is left to analyse."
        )
    return "no answer holds trajectory, aggregate and overall distance; there is nothing to analyse."


def _left_out(kept: Responses, parts: Sequence[Part]) -> tuple[dict[str, Any], ...]:
    gone: list[tuple[str | None, int, str]] = [
        (None, one.people, f"{one.rule}: people who {one.limit} ({count(one.rows, 'answer')})")
        for one in kept.excluded
        if one.people
    ]
    gone += [
        (part.condition, part.gaps, f"answers without both distances and the {part.target} distance")
        for part in parts
        if part.gaps
    ]
    gone += [
        (part.condition, 1, f"one person alone: not in the moderation model of the {part.target} distance")
        for part in parts
        if part.people == 1 and len(kept.conditions) > 1
    ]
    return tuple(
        {
            "model": None,
            "grouping": "condition" if condition is not None else None,
            "group": condition,
            "n": n,
            "reason": reason,
        }
        for condition, n, reason in gone
    )


def _small(parts: Sequence[Part]) -> list[str]:
    few = sorted({part.condition or "the study" for part in parts if part.people < 20})
    return [f"Fewer than 20 people in {', '.join(few)}: intervals by people are rough."] if few else []
