"""The answer in short: at most five sentences, put together from the findings by fixed rules.

Nothing stands here that no finding says. The clearest broken threshold of each audit comes first, then how other models
fare with the same limit, which other limits are not met, which are met, and for which the data cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.audits import REGISTRY
from evenhand.core.findings import Finding
from evenhand.core.thresholds import VERDICTS, Verdict, is_in_points, is_least
from evenhand.messages import Argument, Message
from evenhand.messages.formats import DASH
from evenhand.report.front import alike, rank
from evenhand.report.wording import PageWording, wording

if TYPE_CHECKING:
    from evenhand.after.records import Drift
    from evenhand.run.audit import Audit

MOST_SENTENCES = 5
_NAMED = 4
"""Limits that a sentence names; the others it counts."""


def answer(audit: Audit, spoken: PageWording | None = None) -> list[str]:
    """Return the answer of an audit in at most five sentences; where a gap has drifted, the last one says so."""
    drift = drift_in_short(audit, spoken)
    findings = [_titled(finding, audit) for finding in audit.findings]
    return [*in_short(findings, spoken, MOST_SENTENCES - len(drift)), *drift]


def wording_of_answer(audit: Audit, spoken: PageWording) -> PageWording:
    """Return the words of the answer: those of the page, or English ones where a headline has no translation."""
    return spoken if all(spoken.speaks(finding.headline) for finding in audit.findings) else wording()


def _titled(finding: Finding, audit: Audit) -> Finding:
    """Return a finding that has the title of its metric, as it stands within a sentence."""
    metric = audit.results[finding.audit].spec.known_metrics()[finding.metric]
    told: dict[str, Argument] = {"title": metric.title_in_sentence, **finding.headline.args}
    return replace(finding, headline=Message(finding.headline.id, told))


def in_short(findings: Sequence[Finding], spoken: PageWording | None = None, most: int = MOST_SENTENCES) -> list[str]:
    """Return the answer of findings in at most so many sentences, four or more.

    Without thresholds, the clearest difference of each audit.
    """
    spoken = spoken or wording()
    judged = [finding for finding in rank(findings) if finding.threshold is not None]
    if not judged:
        told = _first_of_each(finding for finding in rank(findings) if finding.value is not None)
        return [spoken.say("no_thresholds", "short"), *map(spoken.headline, told)][:most]
    if len(judged) == 1:
        return _only(judged[0], spoken)
    if (only := _of_one_kind(judged, spoken)) is not None:
        first = [*_first_of_each(finding for finding in judged if finding.value is not None)]
        return [*(_with_limit(finding, spoken) for finding in first[: most - 1]), only]
    return _of_several_kinds(_least_good(judged), spoken, most)


def _of_several_kinds(judged: Sequence[Finding], spoken: PageWording, most: int) -> list[str]:
    """Return the worst finding of as many audits as there is room for, with how other models fare where there is."""
    worst = [*_first_of_each(finding for finding in judged if finding.verdict == "does_not_meet")]
    for number in range(len(worst), 0, -1):
        for with_others in (True, False):
            sentences = _sentences(worst[:number], judged, spoken, with_others=with_others)
            if len(sentences) <= most:
                return sentences
    return _sentences([], judged, spoken, with_others=False)


def _least_good(judged: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each limit and model, in their order: the first, which has the least good verdict."""
    first: dict[object, Finding] = {}
    for finding in judged:
        first.setdefault((alike(finding), finding.model), finding)
    return [*first.values()]


def _only(finding: Finding, spoken: PageWording) -> list[str]:
    """Return the answer of the only threshold."""
    said = {"meets": "only_met", "does_not_meet": "only_broken"}.get(finding.verdict, "only_open")
    known = [] if finding.value is None else [_with_limit(finding, spoken)]
    return [*known, spoken.say(said, "short")]


def _sentences(
    worst: Sequence[Finding], judged: Sequence[Finding], spoken: PageWording, *, with_others: bool
) -> list[str]:
    """Return a sentence for each of the worst, how other models fare with its limit, and one for each verdict left."""
    sentences, named = [], list(worst)
    for finding in worst:
        others = _under_other_models(finding, judged) if with_others else []
        sentences += [_with_limit(finding, spoken), *([_same_limit(others, spoken)] if others else [])]
        named += others
    return [*sentences, *_by_verdict([finding for finding in judged if finding not in named], judged, spoken)]


def _under_other_models(finding: Finding, judged: Iterable[Finding]) -> list[Finding]:
    return [other for other in judged if alike(other) == alike(finding) and other.model != finding.model]


def _by_verdict(left: Sequence[Finding], judged: Sequence[Finding], spoken: PageWording) -> Iterator[str]:
    """Yield a sentence for each verdict that is left."""
    for verdict in _ORDER:
        if same := [finding for finding in left if finding.verdict == verdict]:
            yield _limits_sentence(same, judged, spoken)


_ORDER: tuple[Verdict, ...] = ("does_not_meet", "meets", "insufficient_evidence")


def _of_one_kind(judged: Sequence[Finding], spoken: PageWording) -> str | None:
    """Return one sentence on all verdicts where they are alike."""
    keys = dict(zip(VERDICTS, ("none_meets", "all_open", "all_meet"), strict=False))
    verdicts = {finding.verdict for finding in judged}
    return spoken.say(keys[verdicts.pop()], "short", number=len(judged)) if len(verdicts) == 1 else None


def _limits_sentence(findings: Sequence[Finding], judged: Sequence[Finding], spoken: PageWording) -> str:
    """Say of limits that they are not met either, are met or cannot be judged."""
    same: dict[object, list[Finding]] = {}
    for finding in findings:
        same.setdefault(alike(finding), []).append(finding)
    items = [_named(group, judged, spoken) for group in same.values()]
    if len(items) > _NAMED:
        items = [*items[: _NAMED - 1], spoken.say("more_limits", "short", number=len(items) - _NAMED + 1)]
    key = {"does_not_meet": "also_broken", "meets": "met"}.get(findings[0].verdict, "open_limit")
    number = "one" if len(items) == 1 else "several"
    return spoken.say(f"{number}_{key}", "short", what=spoken.join(items))


def _named(findings: Sequence[Finding], judged: Sequence[Finding], spoken: PageWording) -> str:
    """Name a limit: what it is on; of two limits on the same which one, and the models where not all fare alike."""
    first, what = findings[0], _what(findings[0], spoken)
    others = [other for other in judged if alike(other) != alike(first) and _what(other, spoken) == what]
    every = {other.model for other in judged if other.model and alike(other) == alike(first)}
    models = dict.fromkeys(str(finding.model) for finding in findings if finding.model)
    more = [spoken.limit(first)] if others else []
    more += [spoken.join(list(models))] if len(models) < len(every) else []
    return f"{what} ({'; '.join(more)})" if more else what


def _what(finding: Finding, spoken: PageWording) -> str:
    """Return what a threshold limits, within a sentence."""
    title = spoken.metric(str(finding.arguments.get("title") or finding.metric.replace("_", " ")))
    return spoken.say("limited_by" if finding.grouping else "limited", "short", title=title, grouping=finding.grouping)


def _first_of_each(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first finding of each audit."""
    audits: set[str] = set()
    for finding in findings:
        if finding.audit not in audits:
            audits.add(finding.audit)
            yield finding


def _with_limit(finding: Finding, spoken: PageWording) -> str:
    """Return a headline with the size, the interval and the limit that it breaks."""
    size = {"ratio": "size_ratio", "difference": "size_difference"}.get(finding.kind or "", "size_value")
    limit = finding.threshold
    interval = spoken.interval(finding)
    least = "_least" if limit is not None and is_least(limit) else ""
    return spoken.say(
        f"broken{least}{'_points' if limit is not None and is_in_points(limit) else ''}",
        "short",
        headline=spoken.headline(finding).rstrip("."),
        size=spoken.say(size, "short", amount=spoken.amount(finding)),
        interval=spoken.say("no_interval", "short") if interval == DASH else interval,
        limit=spoken.limit(finding),
    )


_FARES = {"does_not_meet": ("one_breaks", "several_break"), "meets": ("one_meets", "several_meet")}


def _same_limit(others: Sequence[Finding], spoken: PageWording) -> str:
    """Say how other models fare with a limit that one does not meet."""
    models: dict[Verdict, dict[str, None]] = {}
    for other in others:
        models.setdefault(other.verdict, {})[str(other.model)] = None
    parts = []
    for verdict, names in models.items():
        key = _FARES.get(verdict, ("one_open", "several_open"))[len(names) > 1]
        parts.append(spoken.say(key, "short", models=spoken.join(list(names))))
    return spoken.say("same_limit", "short", parts="; ".join(parts))


def drift_in_short(audit: Audit, spoken: PageWording | None = None) -> list[str]:
    """Return a sentence on how many gaps have drifted beyond chance, with the one whose limits are farthest from 0."""
    spoken = spoken or wording()
    drifts = [drift for extra in audit.extras for drift in extra.tables.get("drifts", ())]
    drifted = [drift for drift in drifts if drift.drifted]
    if not drifted:
        return []
    clearest = max(drifted, key=_beyond_zero)
    title = spoken.metric(REGISTRY[clearest.audit].metrics[clearest.metric].title_in_sentence)
    words: dict[str, Argument] = {name: getattr(clearest, name) for name in ("grouping", "model")}
    words |= {name: spoken.label(getattr(clearest, name)) for name in ("group", "reference")}
    words |= {"number": len(drifted), "total": len(drifts), "title": title, "period": clearest.first_period}
    one = "only_drifted" if len(drifts) == 1 else "one_drifted"
    return [spoken.say(one if len(drifted) == 1 else "several_drifted", "short", **words)]


def _beyond_zero(drift: Drift) -> float:
    return max(drift.low or 0.0, -(drift.high or 0.0))
