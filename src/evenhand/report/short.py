"""The answer in short: at most six sentences, built from the findings by fixed rules.

Every statement comes from a finding. The clearest broken threshold of each audit comes first, then the other models'
results under the same limit, the other limits that are not met, those that are met, and the undecided ones.
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
from evenhand.report.front import comparison_key, groups_compared, rank
from evenhand.report.wording import PageWording, page_wording

if TYPE_CHECKING:
    from evenhand.after.records import Drift
    from evenhand.run.audit import Audit

MOST_SENTENCES = 6
_MUCH_MISSING = 0.05
"""The share of people of unknown group above which the answer mentions them."""
_NAMED = 4
"""The number of limits that a sentence names; it counts the others."""


def answer(audit: Audit, wording: PageWording | None = None) -> list[str]:
    """Return an audit's answer in at most six sentences, the last on missing groups and on gaps that have drifted."""
    last = [*missing_in_short(audit, wording), *drift_in_short(audit, wording)]
    findings = [_titled(finding, audit) for finding in audit.findings]
    return [*in_short(findings, wording, MOST_SENTENCES - len(last)), *last]


def wording_of_answer(audit: Audit, wording: PageWording) -> PageWording:
    """Return the words of the answer: those of the page, or English ones where a headline has no translation."""
    return wording if all(wording.translates(finding.headline) for finding in audit.findings) else page_wording()


def _titled(finding: Finding, audit: Audit) -> Finding:
    """Return a finding with its metric's title, as written within a sentence."""
    metric = audit.results[finding.audit].spec.known_metrics()[finding.metric]
    arguments: dict[str, Argument] = {"title": metric.title_in_sentence, **finding.headline.args}
    return replace(finding, headline=Message(finding.headline.id, arguments))


def in_short(findings: Sequence[Finding], wording: PageWording | None = None, most: int = MOST_SENTENCES) -> list[str]:
    """Summarise findings in at most the given number of sentences, four or more.

    Without thresholds, the clearest difference of each audit.
    """
    wording = wording or page_wording()
    judged = [finding for finding in rank(findings) if finding.threshold is not None]
    if not judged:
        clearest = _first_of_each(finding for finding in rank(findings) if finding.value is not None)
        return [wording.say("no_thresholds", "short"), *map(wording.headline, clearest)][:most]
    if len(judged) == 1:
        return _single_threshold_answer(judged[0], wording)
    if (only := _uniform_answer(judged, wording)) is not None:
        first = [*_first_of_each(finding for finding in judged if finding.value is not None)]
        return [*(_with_limit(finding, wording) for finding in first[: most - 1]), only]
    return _answer_across_audits(_worst_findings(judged), wording, most)


def _answer_across_audits(judged: Sequence[Finding], wording: PageWording, most: int) -> list[str]:
    """Return the worst findings of as many audits as fit, with other models' results where room is left."""
    worst = [*_first_of_each(finding for finding in judged if finding.verdict == "does_not_meet")]
    for number in range(len(worst), 0, -1):
        for with_others in (True, False):
            sentences = _sentences(worst[:number], judged, wording, with_others=with_others)
            if len(sentences) <= most:
                return sentences
    return _sentences([], judged, wording, with_others=False)


def _worst_findings(judged: Iterable[Finding]) -> list[Finding]:
    """Return, for each limit and model in order, the finding with the worst verdict."""
    first: dict[object, Finding] = {}
    for finding in judged:
        first.setdefault((comparison_key(finding), finding.model), finding)
    return [*first.values()]


def _single_threshold_answer(finding: Finding, wording: PageWording) -> list[str]:
    """Return the answer for a single threshold."""
    sentence_id = {"meets": "only_met", "does_not_meet": "only_broken"}.get(finding.verdict, "only_open")
    details = [] if finding.value is None else [_with_limit(finding, wording)]
    return [*details, _with_omitted(wording.say(sentence_id, "short"), [finding], wording)]


def _with_omitted(sentence: str, findings: Sequence[Finding], wording: PageWording) -> str:
    """Return a sentence on limits, and the groups too small to be compared: beside "meets", or that prevent it."""
    reasons = (f.reason for f in findings if f.reason is not None and (f.verdict == "meets" or _is_prevented(f.reason)))
    return " ".join([sentence, *dict.fromkeys(map(wording.message, reasons))])


def _is_prevented(reason: Message) -> bool:
    """Return whether a group too small to be compared is why a verdict is open."""
    why = reason.args.get("text")
    return isinstance(why, Message) and why.id == "core.omitted_break"


def _sentences(
    worst: Sequence[Finding], judged: Sequence[Finding], wording: PageWording, *, with_others: bool
) -> list[str]:
    """Return a sentence for each worst finding, other models under its limit, and each remaining verdict."""
    sentences, named = [], list(worst)
    for finding in worst:
        others = _under_other_models(finding, judged) if with_others else []
        sentences += [_with_limit(finding, wording), *([_same_limit(others, wording)] if others else [])]
        named += others
    return [*sentences, *_by_verdict([finding for finding in judged if finding not in named], judged, wording)]


def _under_other_models(finding: Finding, judged: Iterable[Finding]) -> list[Finding]:
    return [
        other for other in judged if comparison_key(other) == comparison_key(finding) and other.model != finding.model
    ]


def _by_verdict(left: Sequence[Finding], judged: Sequence[Finding], wording: PageWording) -> Iterator[str]:
    """Yield a sentence for each remaining verdict; limits met in spite of a difference have their own."""
    for verdict in _ORDER:
        for different in (False, True) if verdict == "meets" else (None,):
            same = [f for f in left if f.verdict == verdict and different in (None, _is_different(f))]
            if same:
                yield _limits_sentence(same, judged, wording)


def _is_different(finding: Finding) -> bool:
    """Return whether groups differ beyond chance, whatever the verdict."""
    return finding.kind is not None and finding.significance in ("directed", "significant")


_ORDER: tuple[Verdict, ...] = ("does_not_meet", "meets", "insufficient_evidence")


def _uniform_answer(judged: Sequence[Finding], wording: PageWording) -> str | None:
    """Return one sentence if all verdicts are the same."""
    keys = dict(zip(VERDICTS, ("none_meets", "all_open", "all_meet"), strict=False))
    verdicts = {finding.verdict for finding in judged}
    if len(verdicts) != 1:
        return None
    key, different = keys[verdicts.pop()], sum(map(_is_different, judged))
    key = "all_meet_different" if key == "all_meet" and different else key
    return _with_omitted(wording.say(key, "short", number=len(judged), different=different), judged, wording)


def _limits_sentence(findings: Sequence[Finding], judged: Sequence[Finding], wording: PageWording) -> str:
    """Return a sentence on limits that are not met, met or undecided."""
    same: dict[object, list[Finding]] = {}
    for finding in findings:
        same.setdefault(comparison_key(finding), []).append(finding)
    items = [_name_limit(group, judged, wording) for group in same.values()]
    if len(items) > _NAMED:
        items = [*items[: _NAMED - 1], wording.say("more_limits", "short", number=len(items) - _NAMED + 1)]
    met = "met_different" if _is_different(findings[0]) else "met"
    key = {"does_not_meet": "also_broken", "meets": met}.get(findings[0].verdict, "open_limit")
    number = "one" if len(items) == 1 else "several"
    return _with_omitted(wording.say(f"{number}_{key}", "short", what=wording.join(items)), findings, wording)


def _name_limit(findings: Sequence[Finding], judged: Sequence[Finding], wording: PageWording) -> str:
    """Name a limit by its subject, with the limit itself or the models where that is ambiguous."""
    first, what = findings[0], _limit_subject(findings[0], wording)
    others = [
        other
        for other in judged
        if comparison_key(other) != comparison_key(first) and _limit_subject(other, wording) == what
    ]
    every = {other.model for other in judged if other.model and comparison_key(other) == comparison_key(first)}
    models = dict.fromkeys(str(finding.model) for finding in findings if finding.model)
    more = [wording.limit(first)] if others else []
    more += [wording.join(list(models))] if len(models) < len(every) else []
    return f"{what} ({'; '.join(more)})" if more else what


def _limit_subject(finding: Finding, wording: PageWording) -> str:
    """Return a threshold's subject, as written within a sentence."""
    title = wording.metric(str(finding.arguments.get("title") or finding.metric.replace("_", " ")))
    return wording.say("limited_by" if finding.grouping else "limited", "short", title=title, grouping=finding.grouping)


def _first_of_each(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first finding of each audit."""
    audits: set[str] = set()
    for finding in findings:
        if finding.audit not in audits:
            audits.add(finding.audit)
            yield finding


def _with_limit(finding: Finding, wording: PageWording) -> str:
    """Return a headline with the size, the interval and the limit it breaks."""
    size = {"ratio": "size_ratio", "difference": "size_difference"}.get(finding.kind or "", "size_value")
    limit = finding.threshold
    interval = wording.interval(finding)
    least = "_least" if limit is not None and is_least(limit) else ""
    return wording.say(
        f"broken{least}{'_points' if limit is not None and is_in_points(limit) else ''}",
        "short",
        headline=wording.headline(finding).rstrip("."),
        size=wording.say(size, "short", amount=wording.amount(finding)),
        interval=wording.say("no_interval", "short") if interval == DASH else interval,
        limit=wording.limit(finding),
    )


_FARES = {"does_not_meet": ("one_breaks", "several_break"), "meets": ("one_meets", "several_meet")}


def _same_limit(others: Sequence[Finding], wording: PageWording) -> str:
    """Return a sentence on the other models under a limit that one model breaks."""
    models: dict[Verdict, dict[str, None]] = {}
    for other in others:
        models.setdefault(other.verdict, {})[str(other.model)] = None
    parts = []
    for verdict, names in models.items():
        key = _FARES.get(verdict, ("one_open", "several_open"))[len(names) > 1]
        parts.append(wording.say(key, "short", models=wording.join(list(names))))
    return wording.say("same_limit", "short", parts="; ".join(parts))


def missing_in_short(audit: Audit, wording: PageWording | None = None) -> list[str]:
    """Return a sentence on the groupings in which the group of many people is unknown."""
    wording = wording or page_wording()
    items = [
        wording.say("missing_share", "short", grouping=item.grouping, share=wording.number(f"{share:.0%}"))
        for item in groups_compared(audit)
        if (share := item.missing / max(item.people, 1)) > _MUCH_MISSING
    ]
    return [wording.say("missing_groups", "short", groups=wording.join(items))] if items else []


def drift_in_short(audit: Audit, wording: PageWording | None = None) -> list[str]:
    """Return a sentence on the number of drifted gaps and the clearest of them."""
    wording = wording or page_wording()
    drifts = [drift for extra in audit.extras for drift in extra.tables.get("drifts", ())]
    drifted = [drift for drift in drifts if drift.drifted]
    if not drifted:
        return []
    clearest = max(drifted, key=_beyond_zero)
    title = wording.metric(REGISTRY[clearest.audit].metrics[clearest.metric].title_in_sentence)
    words: dict[str, Argument] = {name: getattr(clearest, name) for name in ("grouping", "model")}
    words |= {name: wording.label(getattr(clearest, name)) for name in ("group", "reference")}
    words |= {"number": len(drifted), "total": len(drifts), "title": title, "period": clearest.first_period}
    sentence_id = "only_drifted" if len(drifts) == 1 else "one_drifted"
    return [wording.say(sentence_id if len(drifted) == 1 else "several_drifted", "short", **words)]


def _beyond_zero(drift: Drift) -> float:
    return max(drift.low or 0.0, -(drift.high or 0.0))
