"""Differences between critics: single critics, and kinds of critics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.audits.disagreement.estimate import (
    NO_SPREAD,
    gap_record,
    middle,
    observed_gaps,
    same_gap_metric,
    undefined_gap,
)
from evenhand.audits.disagreement.gather import Panel
from evenhand.audits.disagreement.groups import AnswerSet, resampling_of
from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.metrics import DISAGREEMENT
from evenhand.audits.disagreement.result import (
    CriticGap,
    CriticPairRecord,
    DisagreementGap,
    PairRecord,
    StakeholderGap,
    TruthRecord,
)
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.records import OK
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import data_rng
from evenhand.stats.feedback import (
    INDEFINITE,
    PAIR_METRICS,
    TOLERANT,
    Answers,
    CriticComparison,
    Feedback,
    FeedbackGap,
    FeedbackMetric,
    LikePairs,
    TooFewSharedError,
    compare_critics,
    differences,
    find_like_pairs,
    gap,
    numbers_of,
    rates,
    slacks,
    split_share,
)
from evenhand.stats.intervals import normal_quantile, tail_share
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MOST_CRITICS = 1_000
MOST_DRAWS = 400
_CHUNK_NUMBERS = 4_000_000
_MOST_UNDEFINED = 0.05
_WEIGHTED = shared("no_interval", why=say("weighted"))
_NO_TEST = say("no_test")


# Single critics -------------------------------------------------------------------------------------------------------


def critic_gaps(
    panel: Panel, heard: AnswerSet, metrics: Sequence[FeedbackMetric], spec: DisagreementSpec
) -> list[CriticGap]:
    """Return every critic's gaps between the groups of one grouping."""
    answers = heard.answers
    masses = answers.by_critic()
    rng = data_rng(4, answers.answer, answers.critic)
    limits = None
    if answers.weight is None:
        limits = _critic_limits(masses, answers.feedback, metrics, spec, rng)
    counts = np.bincount(answers.critic, minlength=answers.critics)
    answered = masses.sum(axis=(-1, -2)) > 0
    observed = observed_gaps(masses, answers.feedback, metrics, spec.bounds)
    records = []
    for number, (metric, gaps) in enumerate(observed.items()):
        own_labels = heard.truth_for(metric)
        truth = None if own_labels is None else gap(own_labels.by_critic(), own_labels.feedback, metric).estimate
        for critic in range(answers.critics):
            n = int(counts[critic])
            if answered[critic].all():
                low, high = (np.nan, np.nan) if limits is None else limits[number][:, critic]
                record = gap_record(heard, _gap_of_critic(gaps, critic), n, (float(low), float(high)), spec.bounds)
                true = None if truth is None else finite(truth[critic])
                weighted = limits is None and record.status == NO_SPREAD
                record = replace(record, truth=true, status=_WEIGHTED if weighted else record.status)
            else:
                unseen = heard.groups[int(np.argmin(answered[critic]))]
                record = undefined_gap(heard, metric, n, say("no_case_answered", group=unseen), spec.bounds)
            records.append(_critic_gap(record, panel, int(heard.critics[critic])))
    return records


def _gap_of_critic(gaps: FeedbackGap, critic: int) -> FeedbackGap:
    """Return the gap of one critic."""
    arrays = ("lower", "upper", "separate_lower", "label", "high", "low")
    return replace(gaps, **{name: getattr(gaps, name)[critic] for name in arrays})


def _critic_gap(record: DisagreementGap, panel: Panel, critic: int) -> CriticGap:
    kind = -1 if panel.stakeholder is None else int(panel.stakeholder[critic])
    error = None if record.value is None or record.truth is None else record.value - record.truth
    columns: dict[str, Any] = {name: getattr(record, name) for name in record.columns()}
    columns |= {"stakeholder": None if kind < 0 else panel.stakeholders[kind], "critics": 1}
    return CriticGap(**columns, critic=panel.critics[critic], error=error)


def truth_records(critics: Sequence[CriticGap], metrics: Sequence[FeedbackMetric]) -> Iterator[TruthRecord]:
    """Yield the estimation errors of single critics' gaps, for one grouping."""
    grouping = critics[0].grouping or ""
    for metric in metrics:
        errors = [(r.error, r.truth, r.lower, r.upper) for r in critics if r.metric == metric and r.error is not None]
        if not errors:
            why = shared("undefined", why=say("no_critic_gap"))
            yield TruthRecord(grouping=grouping, metric=metric, critics=0, status=why)
            continue
        error, truth, lower, upper = np.array(errors, dtype=np.float64).T
        yield TruthRecord(
            grouping=grouping,
            metric=metric,
            critics=len(errors),
            mean_error=float(np.abs(error).mean()),
            worst_error=float(np.abs(error).max()),
            inside=float(((lower - 1e-9 <= truth) & (truth <= upper + 1e-9)).mean()),
        )


def _critic_limits(
    masses: FloatArray,
    feedback: Feedback,
    metrics: Sequence[FeedbackMetric],
    spec: DisagreementSpec,
    rng: np.random.Generator,
) -> list[FloatArray]:
    """Return for each metric the limits (2, critics) of every critic's gap, with cases as a sample.

    A critic's answers are independent, conditional on the critic, so cases are resampled by drawing the cells. The
    limits are the limits of `gap_intervals` (method 'cells') with two simplifications for speed: both bounds use the
    two-sided quantile, which is conservative, and the smallest gap of a pair is not searched for, so the lower limit
    may be too low.
    """
    distinct = list(dict.fromkeys(same_gap_metric(metric, feedback.labels, spec.bounds) for metric in metrics))
    draws = min(spec.resamples, MOST_DRAWS)
    cells = int(np.prod(masses.shape[1:]))
    step = max(1, _CHUNK_NUMBERS // (draws * cells * max(1, masses.shape[1] // 2)))
    parts_of: dict[FeedbackMetric, list[FloatArray]] = {metric: [] for metric in distinct}
    for start in range(0, len(masses), step):
        part = masses[start : start + step]
        flat = part.reshape(len(part), cells)
        total = flat.sum(axis=1)
        drawn = rng.multinomial(total.astype(np.int64), flat / total[:, np.newaxis], size=(draws, len(part)))
        resampled = drawn.reshape(draws, *part.shape).astype(np.float64)
        for metric in distinct:
            parts_of[metric].append(_limits(part, resampled, feedback, metric, spec))
    every = {metric: np.concatenate(parts, axis=1) for metric, parts in parts_of.items()}
    return [every[same_gap_metric(metric, feedback.labels, spec.bounds)] for metric in metrics]


def _limits(
    masses: FloatArray, resampled: FloatArray, feedback: Feedback, metric: FeedbackMetric, spec: DisagreementSpec
) -> FloatArray:
    """Return the limits (2, critics) of one metric's gap; nan where the answers do not vary."""
    with np.errstate(all="ignore"):
        observed = rates(masses, feedback, metric, bounds=spec.bounds, closed=True)
        largest, behind = differences(observed), numbers_of(masses, feedback, metric)
        above, below = (slacks(observed, behind, tail_share(spec.confidence) / n) for n in (1, largest.shape[-1]))
        values = differences(rates(resampled, feedback, metric, bounds=spec.bounds, closed=True))
    unknown = np.isnan(values).mean(axis=0) > _MOST_UNDEFINED
    count = np.maximum((~np.isnan(values)).sum(axis=0), 2)
    mean = np.nansum(values, axis=0) / count
    stderr = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / (count - 1))
    z = normal_quantile(spec.confidence)
    high = np.where(np.isnan(largest), -np.inf, np.where(unknown, 1.0, largest + np.hypot(z * stderr, above))).max(
        axis=1
    )
    varies = (stderr > 0) & ~np.isnan(largest) & ~unknown
    excess = np.where(varies, -(values - largest) / np.where(varies, stderr, 1.0), -np.inf)
    excess = np.where(np.isnan(excess), -np.inf, excess).max(axis=2)
    q = np.quantile(excess, 1.0 - tail_share(spec.confidence), axis=0, method="higher")
    q = np.where(np.isfinite(q), np.maximum(q, 0.0), 0.0)[:, np.newaxis]
    sure = varies | ((below > 0) & ~np.isnan(largest) & ~unknown)
    low = np.where(sure, -largest - np.hypot(q * stderr, below), -np.inf).max(axis=1)
    if spec.bounds == "published" and metric in INDEFINITE:
        low = np.fmax.reduce(np.where(varies, -largest - z * stderr, np.nan), axis=1, initial=-np.inf)
    still = ~sure.any(axis=1) & ~unknown.any(axis=1)
    limits = np.clip(np.stack([low, high]), 0.0, 1.0)
    return np.where(still, np.nan, limits)


# Kinds of critics -----------------------------------------------------------------------------------------------------


def stakeholder_gaps(panel: Panel, heard: AnswerSet, spec: DisagreementSpec) -> Iterator[Estimate[StakeholderGap]]:
    """Yield the differences between every two kinds of critics by one grouping, with adjusted tests."""
    if panel.stakeholder is None:
        return
    kind = panel.stakeholder[heard.critics]
    present = [code for code in range(len(panel.stakeholders)) if (kind == code).any()]
    gaps: list[Estimate[StakeholderGap]] = []
    for codes in combinations(present, 2):
        names = panel.stakeholders[codes[0]], panel.stakeholders[codes[1]]
        gaps += _pair(heard, kind, codes, names, spec)
    yield from _adjusted(gaps)


def compared_metrics(feedback: Feedback) -> tuple[FeedbackMetric, ...]:
    """Return the metrics with compared gaps: the metrics that the answers determine exactly, without duplicates."""
    if feedback.tolerance:
        return TOLERANT
    exact: tuple[FeedbackMetric, ...] = ("calibration", "accuracy_equality")
    return (*exact, "equal_opportunity") if feedback.labels == 2 else exact


def _pair(
    heard: AnswerSet,
    kind: IntArray,
    codes: tuple[int, int],
    names: tuple[str, str],
    spec: DisagreementSpec,
) -> Iterator[Estimate[StakeholderGap]]:
    plan = resampling_of(heard.answers, spec, 3)
    try:
        comparison = compare_critics(
            heard.answers,
            kind,
            *codes,
            rng=plan.rng,
            metrics=compared_metrics(heard.answers.feedback),
            draws=plan.draws,
            confidence=spec.confidence,
        )
    except TooFewSharedError as error:
        critics, critics_reference = (int((kind == code).sum()) for code in codes)
        why = say("few_shared", cases=error.cases, first=error.critics[0], second=error.critics[1])
        undefined = StakeholderGap(
            grouping=heard.grouping,
            metric=DISAGREEMENT,
            kind="difference",
            against="stakeholder",
            n=0,
            value=None,
            status=shared("undefined", why=why),
            stakeholder=names[0],
            stakeholder_reference=names[1],
            critics=critics,
            critics_reference=critics_reference,
        )
        yield Estimate(undefined, lambda _: undefined)
        return
    comparison_at = cache(comparison.at)
    rates_of = [(DISAGREEMENT, cell) for cell in np.ndindex(comparison.disagreement.lower.shape)]
    gaps_of = [(metric, (number,)) for number, metric in enumerate(comparison.metrics)]
    for metric, cell in (*rates_of, *gaps_of):
        record_at = partial(_stakeholder_gap, heard, comparison_at, names, metric, cell)
        yield Estimate(record_at(spec.confidence), record_at)


def _stakeholder_gap(
    heard: AnswerSet,
    comparison_at: Callable[[float], CriticComparison],
    names: tuple[str, str],
    metric: str,
    cell: tuple[int, ...],
    confidence: float,
) -> StakeholderGap:
    """Return the difference between two kinds of critics in a rate of disagreement or in a gap, at a confidence."""
    comparison, is_rate = comparison_at(confidence), metric == DISAGREEMENT
    values = comparison.disagreement if is_rate else comparison.gaps
    lower, upper, low, high, t, p = (
        finite(getattr(values, name)[cell]) for name in ("lower", "upper", "low", "high", "t", "p")
    )
    value = middle(lower, upper)
    status = OK if p is not None else _NO_TEST
    if value is None:
        status = shared("undefined", why=say("one_silent")) if is_rate else say("undefined_difference")
    return StakeholderGap(
        grouping=heard.grouping,
        group=heard.groups[cell[0]] if is_rate else None,
        metric=metric,
        kind="difference",
        against="stakeholder",
        n=comparison.cases,
        value=value,
        low=None if low is None or p is None else max(low, -1.0),
        high=None if high is None or p is None else min(high, 1.0),
        p_value=p,
        status=status,
        stakeholder=names[0],
        stakeholder_reference=names[1],
        label=heard.labels[cell[1]] if is_rate else None,
        critics=comparison.critics[0],
        critics_reference=comparison.critics[1],
        lower=lower,
        upper=upper,
        statistic=t,
    )


def _adjusted(estimates: list[Estimate[StakeholderGap]]) -> Iterator[Estimate[StakeholderGap]]:
    """Adjust the p-values of all rates together, and of all gaps together, over all pairs of kinds."""
    records = [estimate.record for estimate in estimates]
    is_rate = np.array([record.metric == DISAGREEMENT for record in records], dtype=np.bool_)
    p = np.array([np.nan if record.p_value is None else record.p_value for record in records])
    adjusted = np.full(p.size, np.nan)
    for family in (is_rate, ~is_rate):
        adjusted[family] = adjusted_p(p[family])
    for estimate, value in zip(estimates, adjusted, strict=True):
        yield estimate.map(partial(replace, p_adjusted=finite(value)))


# Pairs of like cases --------------------------------------------------------------------------------------------------


def pair_records(panel: Panel, spec: DisagreementSpec) -> tuple[list[PairRecord], list[CriticPairRecord]]:
    """Return the shares of pairs of like cases for all critics, for each kind of critics, and for each critic."""
    if panel.traits is None or spec.like is None:
        return [], []
    answers = _all_answers(panel, panel.answer, panel.feedback)
    pairs, own_pairs = find_like_pairs(answers, panel.traits, list(spec.like.values())), None
    if panel.truth is not None:
        labelled = _all_answers(panel, panel.truth, Feedback(panel.feedback.labels, "label"))
        own_pairs = find_like_pairs(labelled, panel.traits, list(spec.like.values()))

    def shares(critics: BoolArray) -> list[dict[str, Any]]:
        heard, keep = critics[answers.critic], critics[pairs.critic]
        any_pair = split_share(answers.where(heard)) if heard.any() else float("nan")
        labelled_kept = None if own_pairs is None else own_pairs.where(keep)
        return list(_pair_shares(pairs.where(keep), labelled_kept, any_pair, spec))

    kinds = [np.ones(len(panel.critics), dtype=np.bool_)]
    kinds += [np.asarray(panel.stakeholder == number) for number in range(len(panel.stakeholders))]
    pooled = [
        PairRecord(stakeholder=name, **share)
        for name, chosen in zip((None, *panel.stakeholders), kinds, strict=True)
        for share in shares(chosen)
    ]
    critics = np.unique(pairs.critic).tolist() if len(panel.critics) <= MOST_CRITICS else []
    single = [
        CriticPairRecord(critic=panel.critics[critic], **share)
        for critic in critics
        for share in shares(np.arange(len(panel.critics)) == critic)
    ]
    return pooled, single


def _all_answers(panel: Panel, answer: IntArray, feedback: Feedback) -> Answers:
    """Return all answers of a panel, without groups."""
    one_group = np.zeros(len(panel.cases), dtype=np.int64)
    return Answers(
        critic=panel.critic,
        case=panel.case,
        answer=answer,
        group=one_group,
        label=panel.label,
        groups=1,
        critics=len(panel.critics),
        feedback=feedback,
        weight=panel.weight,
    )


def _pair_shares(
    pairs: LikePairs, own_pairs: LikePairs | None, any_pair: float, spec: DisagreementSpec
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each share of pairs."""
    for metric in PAIR_METRICS:
        share = pairs.share(metric, spec.confidence, cases_are_all=spec.answers.cases == "all")
        lower, upper, low, high = (finite(end) for end in share)
        status = shared("undefined", why=say("no_like_pair"))
        if lower is not None:
            status = OK if low is not None else shared("no_interval", why=say("one_critic"))
        yield {
            "metric": metric,
            "n": len(pairs),
            "critics": pairs.critics,
            "cases": pairs.cases,
            "value": middle(lower, upper),
            "low": low,
            "high": high,
            "lower": lower,
            "upper": upper,
            "truth": None if own_pairs is None else finite(own_pairs.share(metric).lower),
            "any_pair": finite(any_pair) if metric == PAIR_METRICS[0] else None,
            "status": status,
        }
