"""The answer on the front page: six questions, answered by rule from what the run found.

Is there a problem, how big, how sure, for whom, since when, and what next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.after.drift_section import drift_panel
from evenhand.after.records import Drift, Extra
from evenhand.audits import REGISTRY
from evenhand.charts import Forest, Panel
from evenhand.core.findings import Finding, sentences_of
from evenhand.core.records import STANDARDISED
from evenhand.messages import Message
from evenhand.messages.formats import show
from evenhand.report.cautions import cautions, could_be_missed, widest_gap
from evenhand.report.concerns import (
    Certainty,
    Concern,
    concerns,
    profile_line,
)
from evenhand.report.drawn_groups import drawn_change, drawn_groups
from evenhand.report.frequencies import speaker_of, status_quo_values, values_compared
from evenhand.report.front import (
    comparison_key,
    groups_compared,
    is_established,
    leaves_pair_open,
    numbers_of,
    rank,
)
from evenhand.report.next_steps import much_missing, next_steps
from evenhand.report.reversals import Reversal, pair_difference, reversal_of
from evenhand.report.spans import span_of
from evenhand.report.wording import PageWording, page_wording
from evenhand.table.repeats import DOUBTS

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

MOST_SENTENCES = 3
"""The most sentences that say whether there is a problem."""
_MOST_NAMED = 5
"""The most other findings that are named beside one."""
_RATES_OF_CHANGE = ("group_before", "group_since", "reference_before", "reference_since")


@dataclass(frozen=True)
class Row:
    """The answer to one question: lines of text, and the finding, the groups or the panel to draw.

    `key` names the question in every language; `marks` says what the marks of the picture mean;
    `of_finding` is whether the row says what a finding says.
    """

    key: str
    question: str
    lines: tuple[str, ...]
    finding: Finding | None = None
    groups: Forest | None = None
    panel: Panel | None = None
    marks: str = ""
    of_finding: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer of a run.

    Parameters
    ----------
    question : is there a problem?
    certainty : whether there is.
    word : the same in a word.
    sentences : what it is, most serious first.
    rows : the other questions that have an answer.
    language : the code of the language it is in.
    """

    question: str
    certainty: Certainty
    word: str
    sentences: tuple[str, ...]
    rows: tuple[Row, ...]
    language: str = "en"

    @property
    def in_brief(self) -> tuple[Row, ...]:
        """The rows that say more than the sentences and the findings do."""
        return tuple(row for row in self.rows if not row.of_finding)

    @property
    def text(self) -> str:
        """Whether there is a problem, and what it is."""
        return f"{self.word}. {' '.join(self.sentences)}"


def answer(audit: Audit, wording: PageWording | None = None) -> Answer:
    """Return the answer of a run in a language; in English where a headline has no translation."""
    if wording is None or not all(wording.translates(finding.headline) for finding in audit.findings):
        wording = page_wording()
    found = concerns(audit, wording)
    reversal = reversal_of(audit, wording)
    certainty: Certainty = found[0].certainty if found else _nothing_found(audit)
    told = [concern for concern in found if reversal is None or not reversal.tells(concern.finding)]
    sentences = [reversal.sentence] if reversal else []
    sentences += _sentences(told, audit, wording) if told or not reversal else ()
    lead = _pooled(_lead(found, audit), reversal)
    return Answer(
        wording.say("is_there", "answer"),
        certainty,
        _word(certainty, reversal, wording),
        tuple(sentences[:MOST_SENTENCES]),
        tuple(_rows(audit, found, lead, reversal, wording)),
        wording.code,
    )


def _word(certainty: Certainty, reversal: Reversal | None, wording: PageWording) -> str:
    """Return the first word of the answer; a difference that reverses within a factor depends on it."""
    if reversal is not None and certainty == "differs":
        return wording.say("depends", "answer", factor=reversal.factor)
    return wording.say(certainty, "answer")


def _pooled(lead: Finding | None, reversal: Reversal | None) -> Finding | None:
    """Return the finding that rows are about: of a reversal the pooled gap, with the one within strata beside it."""
    within = lead is not None and lead.stratum == STANDARDISED
    return reversal.finding if within and reversal is not None and reversal.tells(lead) else lead


def _nothing_found(audit: Audit) -> Certainty:
    """Return whether a run without concerns compared anything."""
    return "not_shown" if any(map(_was_compared, audit.findings)) else "cannot_tell"


def _was_compared(finding: Finding) -> bool:
    """Tell whether something was tested; the test of an alternative that is not shown has no number beside it."""
    return finding.value is not None or finding.p_value is not None


def _sentences(found: Sequence[Concern], audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the first concern of each certainty, each place once, or that nothing was found.

    Rules have a row of their own.
    """
    told = set[object]()
    for concern in found:
        is_rule = concern.finding is None and concern.drift is None
        source = (concern.certainty, concern.drift is None)
        if told.isdisjoint({source, concern.place}) and not (is_rule and told):
            told |= {source} if concern.place is None else {source, concern.place}
            sentence = concern.sentence if concern.finding is None else f"{concern.sentence} ({concern.finding.number})"
            yield " ".join(
                [
                    sentence,
                    *_more_broken(concern, found, wording),
                    *_more_different(concern, found, wording),
                    *_cautions(concern, told, audit, wording),
                ]
            )
    if not found:
        yield from _all_clear(audit, wording)


def _cautions(concern: Concern, told: set[object], audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield what a concern does not show, each sentence once."""
    for sentence in () if concern.finding is None else cautions(audit, concern.finding, wording):
        if sentence not in told:
            told.add(sentence)
            yield sentence


def _more_broken(concern: Concern, found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield beside a limit that is not met which others are not met either."""
    broken = [other.finding for other in found if other.finding and other.finding.verdict == "does_not_meet"]
    others = [finding for finding in broken if finding is not concern.finding]
    if concern.finding in broken and others:
        yield wording.say("more_broken", "answer", n=len(others), findings=numbers_of(others))


def _more_different(concern: Concern, found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield beside an established difference which others are as well."""
    if concern.certainty != "differs" or concern.finding is None:
        return
    different = [other.finding for other in found if other.finding and other.certainty == "differs"]
    if others := [finding for finding in different if finding.number != concern.finding.number]:
        key = "more_different" if len(others) <= _MOST_NAMED else "many_more_different"
        yield wording.say(key, "answer", n=len(others), findings=numbers_of(others))


def _all_clear(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield that nothing was found, and how large a difference could have been missed."""
    compared = [f for f in rank(audit.findings) if f.value is not None]
    judged = [finding for finding in compared if finding.threshold is not None]
    if not compared:
        tested = next(filter(_was_compared, audit.findings), None)
        yield wording.say("nothing_judged", "answer") if tested is None else wording.headline(tested)
        return
    key = "none_established" if not judged else "one_met" if len(judged) == 1 else "all_met"
    yield wording.say(key, "answer", number=len(judged))
    told = " ".join((*could_be_missed(audit, compared, wording), *cautions(audit, _first(compared), wording)))
    if told:
        yield told


def _first(findings: Sequence[Finding]) -> Finding:
    """Return the finding that stands for ranked ones of which none is established: the gap that may be the largest."""
    widest = widest_gap(findings)
    return findings[0] if widest is None else widest.finding


def _lead(found: Sequence[Concern], audit: Audit) -> Finding | None:
    """Return the finding that the rows are about: that of the first concern, or the first of the run."""
    findings = [concern.finding for concern in found if concern.finding is not None]
    ranked = [f for f in rank(audit.findings) if f.value is not None or "baseline" in f.arguments]
    if found and (drift := found[0].drift) is not None:
        place = (drift.audit, drift.model, drift.grouping, drift.metric)
        findings[:0] = [f for f in ranked if (f.audit, f.model, f.grouping, f.metric) == place]
    return next(iter([*findings, *([] if found else _widest_first(ranked)), *ranked]), None)


def _widest_first(ranked: Sequence[Finding]) -> list[Finding]:
    """Return the finding that stands for those of which none is established, if one has a number."""
    numbers = [finding for finding in ranked if finding.value is not None]
    return [_first(numbers)] if numbers else []


# The rows -------------------------------------------------------------------------------------------------------------


def _rows(
    audit: Audit, found: Sequence[Concern], lead: Finding | None, reversal: Reversal | None, wording: PageWording
) -> Iterator[Row]:
    """Yield a doubt about the data, if there is one, and the answers to the questions below the first."""
    if doubts := tuple(dict.fromkeys(_doubts(audit, wording))):
        yield _row("check_first", doubts, wording)
    if lead is not None:
        yield from _rows_on(audit, lead, found, reversal, wording)
    yield _since_when(audit, found, wording)
    if law := tuple(filter(None, (profile_line(profile, wording) for profile in audit.profiles))):
        yield _row("law", law, wording)
    if steps := tuple(next_steps(audit, found, reversal, wording)):
        yield _row("next", steps, wording)


def _row(key: str, lines: tuple[str, ...], wording: PageWording, **more: Any) -> Row:
    """Return the answer to a question."""
    return Row(key, wording.say(key, "answer"), lines, **more)


def _since_when(audit: Audit, found: Sequence[Concern], wording: PageWording) -> Row:
    """Return since when the first gap that has grown is another one, or that none has, or that this was not asked."""
    drifts = [drift for extra in audit.extras for drift in extra.tables.get("drifts", ())]
    if drift := next((concern.drift for concern in found if concern.drift is not None), None):
        title = wording.metric(REGISTRY[drift.audit].metrics[drift.metric].title_in_sentence)
        words = {"title": title, "group": drift.group, "reference": drift.reference}
        panel = drift_panel(_extra_of(audit, drift), drift)
        panel = replace(
            panel, title=wording.say("drift_title", "answer", **words), y="", mean=wording.say("mean", "answer")
        )
        marks = wording.say("drift_marks", "answer")
        return _row("since_when", (_change(audit, drift, wording),), wording, panel=panel, marks=marks)
    key = "no_change" if drifts else "not_over_time"
    return _row("since_when", (wording.say(key, "answer"),), wording, of_finding=True)


def _extra_of(audit: Audit, drift: Drift) -> Extra:
    """Return the comparison over time that a change is from."""
    return next(extra for extra in audit.extras if drift in extra.tables.get("drifts", ()))


def _doubts(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the warnings that a row or a column may not be what it is taken for."""
    for result in audit.results.values():
        yield from (wording.message(note) for note in result.notes if note.id in DOUBTS)


def _rows_on(
    audit: Audit, lead: Finding, found: Sequence[Concern], reversal: Reversal | None, wording: PageWording
) -> Iterator[Row]:
    """Yield how big and how sure a finding is, and whom it concerns; of a change first how big it is."""
    sizes, doubts = tuple(_how_big(audit, lead, wording)), tuple(_how_sure(audit, lead, wording))
    shown: Finding | None = lead
    drawn = drawn_groups(audit, lead, reversal, wording)
    whom: tuple[str, ...] = ()
    if found and (drift := found[0].drift) is not None:
        span, numbers = span_of(audit, drift, wording), _change_numbers(drift)
        key, period = ("during", span.name) if span.is_over else ("since", wording.period(drift.changed_from))
        sizes = (wording.say(f"size_{key}", "answer", since=abs(drift.since or 0.0), period=period),)
        sizes += (_rates_of_change(drift, wording),) if drift.group_since is not None else ()
        confidence = _extra_of(audit, drift).settings["confidence"]
        doubts = (wording.say("change_sure", "answer", **numbers, confidence=confidence),)
        change = drawn_change(drift, wording.say(f"series_{key}", "answer", period=period), wording)
        shown, drawn = None, change or drawn
        whom = () if change is not None or drawn is None else (wording.say("all_periods", "answer"),)
    if reversal is not None and reversal.adjusted is not None:
        sizes = (*sizes, wording.say("size_within", "answer", gap=abs(reversal.adjusted), factor=reversal.factor))
        doubts = (*doubts, *_sure_within(audit, reversal, wording))
    yield _row("how_big", sizes, wording, of_finding=True)
    yield _row("how_sure", doubts, wording, finding=shown, of_finding=True)
    yield from _whom(audit, lead, (*_worst_off(audit, lead, reversal, wording), *whom), drawn, wording)


def _rates_of_change(drift: Drift, wording: PageWording) -> str:
    """Return the rates of both groups since a change, and before."""
    rates = {name: getattr(drift, name) for name in _RATES_OF_CHANGE}
    return wording.say("rates_since", "answer", group=drift.group, reference=drift.reference, **rates)


def _sure_within(audit: Audit, reversal: Reversal, wording: PageWording) -> Iterator[str]:
    """Yield the interval of the gap within strata, and whether it is established, where it is a finding."""
    if (finding := _finding_within(audit, reversal)) is not None:
        key = "sure_within" if is_established(finding) else "unsure_within"
        interval = wording.interval(finding)
        yield wording.say(key, "answer", factor=reversal.factor, interval=interval)


def _finding_within(audit: Audit, reversal: Reversal) -> Finding | None:
    """Return the finding on the gap within strata, if there is one."""
    return next((f for f in audit.findings if f.stratum == STANDARDISED and reversal.tells(f)), None)


def _whom(
    audit: Audit, lead: Finding, first: tuple[str, ...], drawn: Forest | None, wording: PageWording
) -> Iterator[Row]:
    """Yield whom a finding concerns: the values of the groups, or where there are none, who was compared."""
    lines = (*first, *_not_compared(audit, wording))
    if drawn is None:
        lines += tuple(item.in_words(wording) for item in groups_compared(audit) if item.grouping == lead.grouping)
    if lines or drawn:
        marks = "" if drawn is None or drawn.zero is None else wording.say("dashed", "answer")
        yield _row("for_whom", lines, wording, groups=drawn, marks=marks)


def _worst_off(audit: Audit, finding: Finding, reversal: Reversal | None, wording: PageWording) -> Iterator[str]:
    """Yield who is worst off, where that is established, and whether being selected is good for the person."""
    served = finding.arguments.get("served")
    if isinstance(served, Message):
        yield wording.message(served)
    prediction = audit.config.data.get("predictions", {}).get(finding.model, {})
    side = {"selected": "good", "not_selected": "bad"}.get(prediction.get("favourable"))
    words = {"model": speaker_of(audit, finding.model or ""), "verb": prediction.get("selected_word", "selects")}
    if side is not None:
        yield wording.say(f"selected_is_{side}", "answer", **words)
    group = _named_worse_off(finding)
    within = None if reversal is None else _named_worse_off(_finding_within(audit, reversal))
    if group is not None and reversal is None:
        yield wording.say("worst_off", "answer", group=group)
    elif group is not None and within is not None and reversal is not None:
        yield wording.say("worst_off_both", "answer", group=group, within=within, factor=reversal.factor)


def _named_worse_off(finding: Finding | None) -> str | None:
    """Return the group that a finding names as worse off, if that is established."""
    if finding is None or finding.significance != "directed":
        return None
    group = finding.arguments.get("worse_off")
    return group if isinstance(group, str) else None


def _how_big(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield the size of the gap, and the same of other models."""
    both = tuple(_gaps_of_both(audit, finding, wording))
    yield from both
    if finding.value is None:
        return
    if not both:
        yield _size(finding, wording)
    others = [
        _other_model(other, wording)
        for other in audit.findings
        if comparison_key(other) == comparison_key(finding) and other.model != finding.model and other.value is not None
    ]
    if others:
        yield wording.say("other_models", "answer", models=tuple(others))


def _size(finding: Finding, wording: PageWording) -> str:
    """Return the size of what a finding states."""
    if finding.is_limit:
        return wording.say("improvement", "answer", amount=wording.interval(finding))
    if finding.lower is not None and finding.upper is not None:
        return wording.say("gap_within", "answer", amount=wording.amount(finding))
    if finding.kind == "ratio":
        return _between("ratio", finding, finding.value, wording)
    if finding.kind is not None:
        key = "gap_points" if finding.style.endswith("points") else "gap"
        return _between(key, finding, abs(finding.value or 0.0), wording)
    return wording.say("value_is", "answer", value=finding.value, unit=finding.style)


def _gaps_of_both(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield how far groups are apart under the status quo, and with an alternative."""
    both = status_quo_values(audit, finding), values_compared(audit, finding, finding.model or "")
    if both[0] is None or both[1] is None:
        return
    old, new = (abs(gap) for groups in both if groups and (gap := pair_difference(groups, both[0].pair)) is not None)
    style = both[0].metric.style("difference")
    higher, lower = both[0].pair
    words = {"old": show(old, style), "new": show(new, style), "model": finding.model}
    unit = "points" if style == "points" else "amount"
    yield wording.say(f"gaps_of_both_{unit}", "answer", group=higher, reference=lower, **words)


def _between(key: str, finding: Finding, gap: float | None, wording: PageWording) -> str:
    """Return the size of a gap, with its two groups where it is one of groups."""
    if finding.group is None or finding.reference is None:
        return wording.say(key, "answer", gap=gap)
    groups = {name: wording.label(getattr(finding, name)) for name in ("group", "reference")}
    return wording.say(f"{key}_of", "answer", gap=gap, **groups)


def _other_model(finding: Finding, wording: PageWording) -> str:
    key = "other_model" if finding.threshold is not None else "other_model_alone"
    verdict = wording.verdict(finding).lower() if finding.threshold is not None else ""
    return wording.say(key, "answer", model=finding.model, amount=wording.amount(finding), verdict=verdict)


def _how_sure(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield the interval, and what decided."""
    confidence = 1.0 - audit.results[finding.audit].spec.finding_alpha
    amount, interval = wording.amount(finding), wording.interval(finding)
    if finding.value is not None:
        key = "interval_alone" if finding.is_limit else _one_sided("interval", finding)
        yield wording.say(key, "answer", amount=amount, confidence=confidence, interval=interval)
    if finding.verdict == "does_not_meet":
        yield _considering("sure_broken", finding.verdict_family, wording)
    elif finding.verdict == "not_confirmed":
        yield _considering("sure_beyond", finding.verdict_family, wording)
    elif finding.reason is not None:
        yield wording.message(finding.reason)
    elif is_established(finding):
        key = "sure_some" if leaves_pair_open(finding) else "sure_established"
        yield _considering(key, finding.family, wording)
    elif finding.is_limit and finding.significance == "significant":
        yield _considering("sure_improved", finding.family, wording)


def _one_sided(key: str, finding: Finding) -> str:
    """Return the key of a sentence on an interval, or on one-sided limits."""
    return key if (finding.bound_low, finding.bound_high) == (None, None) else f"{key}_one_sided"


def _considering(key: str, family: Any, wording: PageWording) -> str:
    """Return a sentence on certainty with the number of statements it holds for together."""
    number = None if family is None else family.args["number"].args["n"]
    alone = "_alone" if key != "sure_beyond" and (number or 1) == 1 else ""
    return wording.say(f"{key}{alone}", "answer", number=number)


def _change(audit: Audit, drift: Drift, wording: PageWording) -> str:
    """Return since when a gap is another one, and when that was first shown; or that it is no longer shown."""
    span = span_of(audit, drift, wording)
    if span.is_over:
        return wording.say("change_over", "answer", period=span.name)
    period, first = wording.period(drift.changed_from), wording.period(drift.first_period)
    return wording.say("change" if period != first else "change_at_once", "answer", period=period, first=first)


def _change_numbers(drift: Drift) -> dict[str, Any]:
    """Return the size of a change and its limits, without a sign."""
    ends = sorted(abs(end) for end in (drift.low, drift.high) if end is not None)
    return {"change": abs(drift.change or 0.0), "low": ends[0] if ends else None, "high": ends[-1] if ends else None}


def _not_compared(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield who is in no comparison: groups too small beside a limit that is met, and people of unknown group."""
    reasons = (f.reason for f in audit.findings if f.verdict == "meets" and f.reason is not None)
    parts = (part for reason in reasons for part in sentences_of(reason) if part.id == "core.not_compared")
    yield from dict.fromkeys(map(wording.message, parts))
    if missing := much_missing(audit):
        named = [
            wording.say("missing_share", "answer", grouping=item.grouping, share=f"{share:.0%}")
            for item, share in missing
        ]
        yield wording.say("missing", "answer", groups=tuple(named))
