"""Every critic's own gaps: how far the people who answered differ among themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.disagreement.gaps import NO_SPREAD, Place, gap_record, observed_gaps, undefined_gaps
from evenhand.audits.disagreement.groups import Voices
from evenhand.audits.disagreement.panel import Panel
from evenhand.audits.disagreement.records import CriticRecord, GapRecord, TruthRecord
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.numbers import finite
from evenhand.stats.feedback import (
    INDEFINITE,
    Bounds,
    Feedback,
    Gap,
    differences,
    gap,
    numbers_of,
    rates,
    same_gap,
    slacks,
)
from evenhand.stats.feedback import FeedbackMetric as Notion
from evenhand.stats.intervals import normal_quantile, tail_share
from evenhand.stats.types import FloatArray

MOST_CRITICS = 1_000
MOST_DRAWS = 400
_CHUNK_NUMBERS = 4_000_000
_MOST_UNDEFINED = 0.05
_WEIGHTED = "no interval: there is none for the weighted answers of one critic"


@dataclass(frozen=True)
class Alone:
    """What the critics see one by one."""

    gaps: tuple[GapRecord, ...]
    critics: tuple[CriticRecord, ...]
    truth: tuple[TruthRecord, ...]


def alone(
    panel: Panel, voices: Voices, place: Place, notions: Sequence[Notion], spec: DisagreementSpec, *stream: int
) -> Alone:
    """Return every critic's gaps on the groups of one grouping."""
    answers = voices.answers
    masses = answers.by_critic()
    rng = np.random.default_rng([spec.seed, *stream])
    limits = None
    if answers.weight is None:
        limits = _critic_limits(masses, answers.feedback, notions, spec, rng)
    complete = masses.sum(axis=(-1, -2)) > 0
    counts = np.bincount(answers.critic, minlength=answers.critics)
    seen = observed_gaps(masses, answers.feedback, notions, spec.bounds)
    gaps: list[GapRecord] = []
    for number, (notion, found) in enumerate(seen.items()):
        own = voices.truth_for(notion)
        truth = None if own is None else gap(own.by_critic(), own.feedback, notion).estimate
        for critic in range(answers.critics):
            where = replace(
                place,
                critic=panel.critics[voices.critics[critic]],
                stakeholder=_kind(panel, int(voices.critics[critic])),
            )
            n = int(counts[critic])
            if not complete[critic].all():
                unseen = place.groups[int(np.argmin(complete[critic]))]
                why = f"this critic answered no case of {unseen}"
                gaps += undefined_gaps(where, [notion], n, why, len(place.labels), spec.bounds)
                continue
            low, high = (np.nan, np.nan) if limits is None else limits[number][:, critic]
            true = None if truth is None else finite(truth[critic])
            record = gap_record(where, _one(found, critic), n, float(low), float(high), true, spec.bounds)
            weighted = limits is None and record.status == NO_SPREAD
            gaps.append(replace(record, status=_WEIGHTED) if weighted else record)
    critics = tuple(_critic_record(record) for record in gaps)
    return Alone(tuple(gaps), critics, tuple(_truth_records(critics, notions)) if voices.truth is not None else ())


def _kind(panel: Panel, critic: int) -> str | None:
    if panel.stakeholder is None or panel.stakeholder[critic] < 0:
        return None
    return panel.stakeholders[int(panel.stakeholder[critic])]


def _one(found: Gap, critic: int) -> Gap:
    """Return the gap of one critic."""
    arrays = {
        name: getattr(found, name)[critic] for name in ("lower", "upper", "separate_lower", "label", "high", "low")
    }
    return replace(found, **arrays)


def _critic_record(record: GapRecord) -> CriticRecord:
    known = record.value is not None and record.truth is not None
    return CriticRecord(
        record.grouping,
        record.notion,
        record.critic or "",
        record.stakeholder,
        record.n,
        record.lower,
        record.upper,
        record.value,
        record.truth,
        (record.value or 0.0) - (record.truth or 0.0) if known else None,
        "ok" if record.value is not None else record.status,
    )


def _truth_records(critics: Sequence[CriticRecord], notions: Sequence[Notion]) -> Iterator[TruthRecord]:
    for notion in notions:
        own = [record for record in critics if record.notion == notion and record.error is not None]
        grouping = critics[0].grouping
        if not own:
            yield TruthRecord(grouping, notion, 0, None, None, None, "undefined: no critic has a gap")
            continue
        errors = [abs(record.error or 0.0) for record in own]
        inside = [(r.lower or 0.0) - 1e-9 <= (r.truth or 0.0) <= (r.upper or 0.0) + 1e-9 for r in own]
        yield TruthRecord(grouping, notion, len(own), float(np.mean(errors)), max(errors), float(np.mean(inside)), "ok")


def _critic_limits(
    masses: FloatArray, feedback: Feedback, notions: Sequence[Notion], spec: DisagreementSpec, rng: np.random.Generator
) -> list[FloatArray]:
    """Return for each notion (2, critics) the limits of every critic's gap over a sample of cases.

    A critic's answers are independent given the critic, so the cases are drawn again by drawing the cells. The limits
    are those of `gap_intervals`, method 'cells', with two simplifications for speed: the two-sided quantile for both
    bounds, which is always enough, and no search for the smallest gap of a pair, so that the low limit may be too low.
    """
    distinct = list(dict.fromkeys(_twin(notion, feedback.labels, spec.bounds) for notion in notions))
    draws = min(spec.resamples, MOST_DRAWS)
    cells = int(np.prod(masses.shape[1:]))
    step = max(1, _CHUNK_NUMBERS // (draws * cells * max(1, masses.shape[1] // 2)))
    found: dict[Notion, list[FloatArray]] = {notion: [] for notion in distinct}
    for start in range(0, len(masses), step):
        part = masses[start : start + step]
        flat = part.reshape(len(part), cells)
        total = flat.sum(axis=1)
        drawn = rng.multinomial(total.astype(np.int64), flat / total[:, np.newaxis], size=(draws, len(part)))
        resampled = drawn.reshape(draws, *part.shape).astype(np.float64)
        for notion in distinct:
            found[notion].append(_limits(part, resampled, feedback, notion, spec))
    every = {notion: np.concatenate(parts, axis=1) for notion, parts in found.items()}
    return [every[_twin(notion, feedback.labels, spec.bounds)] for notion in notions]


def _twin(notion: Notion, labels: int, bounds: Bounds) -> Notion:
    return same_gap(notion, labels) if bounds == "sharp" else notion


def _limits(
    masses: FloatArray, resampled: FloatArray, feedback: Feedback, notion: Notion, spec: DisagreementSpec
) -> FloatArray:
    """Return (2, critics) the limits of one notion's gap; nan where the answers do not vary."""
    with np.errstate(all="ignore"):
        own = rates(masses, feedback, notion, bounds=spec.bounds, closed=True)
        largest, behind = differences(own), numbers_of(masses, feedback, notion)
        above, below = (slacks(own, behind, tail_share(spec.confidence) / n) for n in (1, largest.shape[-1]))
        values = differences(rates(resampled, feedback, notion, bounds=spec.bounds, closed=True))
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
    if spec.bounds == "published" and notion in INDEFINITE:
        low = np.fmax.reduce(np.where(varies, -largest - z * stderr, np.nan), axis=1, initial=-np.inf)
    still = ~sure.any(axis=1) & ~unknown.any(axis=1)
    limits = np.clip(np.stack([low, high]), 0.0, 1.0)
    return np.where(still, np.nan, limits)
