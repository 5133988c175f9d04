"""The answer on the front page: six questions, answered by fixed rules from the results of the run.

The questions are: is there a problem, how big is it, how sure is it, whom does it concern, since when, and what next?
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
    limited_quantity,
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
"""The maximum number of sentences on whether there is a problem."""
_MOST_NAMED = 5
"""The maximum number of other findings listed beside a finding."""
_RATES_OF_CHANGE = ("group_before", "group_since", "reference_before", "reference_since")


@dataclass(frozen=True)
class Row:
    """The answer to one question: lines of text, and the finding, groups or panel to draw.

    `key` is the language-independent name of the question, `marks` is the legend of the chart, and `of_finding` is
    whether the row repeats a finding.
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
    question : the first question, whether there is a problem.
    certainty : the certainty of a problem.
    word : the certainty in one word.
    sentences : the description of the problem, most serious part first.
    rows : the answers to the other questions.
    language : the language code of the texts.
    """

    question: str
    certainty: Certainty
    word: str
    sentences: tuple[str, ...]
    rows: tuple[Row, ...]
    language: str = "en"

    @property
    def in_brief(self) -> tuple[Row, ...]:
        """The rows that add to the sentences and findings."""
        return tuple(row for row in self.rows if not row.of_finding)

    @property
    def text(self) -> str:
        """The certainty and the description of the problem."""
        return f"{self.word}. {' '.join(self.sentences)}"


def answer(audit: Audit, wording: PageWording | None = None) -> Answer:
    """Return the answer of a run in a language, or in English if a headline is not translated."""
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
    """Return the first word of the answer: "depends" if a difference reverses within a factor, else the certainty."""
    if reversal is not None and certainty == "differs":
        return wording.say("depends", "answer", factor=reversal.factor)
    return wording.say(certainty, "answer")


def _pooled(lead: Finding | None, reversal: Reversal | None) -> Finding | None:
    """Return the finding that rows are about: the pooled gap of a reversal in place of the standardised gap."""
    within = lead is not None and lead.stratum == STANDARDISED
    return reversal.finding if within and reversal is not None and reversal.tells(lead) else lead


def _nothing_found(audit: Audit) -> Certainty:
    """Return the certainty of a run without concerns: "not shown" if groups were compared, else "cannot tell"."""
    return "not_shown" if any(map(_was_compared, audit.findings)) else "cannot_tell"


def _was_compared(finding: Finding) -> bool:
    """Return whether a finding has a test or a value; the test of an unconfirmed alternative has no value."""
    return finding.value is not None or finding.p_value is not None


def _sentences(found: Sequence[Concern], audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the first concern of each certainty, without repeating a place, or that nothing was found.

    Legal profiles have their own row.
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
                    *_more_broken(audit, concern, found, wording),
                    *_more_different(concern, found, wording),
                    *_cautions(concern, told, audit, wording),
                ]
            )
    if not found:
        yield from _all_clear(audit, wording)


def _cautions(concern: Concern, told: set[object], audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the limitations of a concern's finding, each sentence only once."""
    for sentence in () if concern.finding is None else cautions(audit, concern.finding, wording):
        if sentence not in told:
            told.add(sentence)
            yield sentence


def _more_broken(audit: Audit, concern: Concern, found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield a sentence that lists the other violated limits, beside a violated limit."""
    broken = [other.finding for other in found if other.finding and other.finding.verdict == "does_not_meet"]
    others = [finding for finding in broken if finding is not concern.finding]
    if concern.finding in broken and others:
        several = len({finding.model for finding in broken}) > 1
        in_order = sorted(others, key=lambda finding: (len(finding.number), finding.number))
        named = [_broken_limit(audit, finding, several, wording) for finding in in_order[:_BROKEN_NAMED]]
        more = [finding.number for finding in in_order[_BROKEN_NAMED:]]
        yield wording.say("more_broken", "answer", n=len(others), findings=(*named, *more))


_BROKEN_NAMED = 3


def _broken_limit(audit: Audit, finding: Finding, several: bool, wording: PageWording) -> str:
    """Return what a violated limit is about, with its model among several, and its number."""
    model = f"{wording.label(finding.model or '')}, " if several else ""
    return f"{model}{limited_quantity(audit, finding, wording, in_sentence=True)} ({finding.number})"


def _more_different(concern: Concern, found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield a sentence that lists the other established differences, beside an established difference."""
    if concern.certainty != "differs" or concern.finding is None:
        return
    different = [other.finding for other in found if other.finding and other.certainty == "differs"]
    if others := [finding for finding in different if finding.number != concern.finding.number]:
        key = "more_different" if len(others) <= _MOST_NAMED else "many_more_different"
        yield wording.say(key, "answer", n=len(others), findings=numbers_of(others))


def _all_clear(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield sentences that nothing was found, and on the size of difference that could have been missed."""
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
    """Return the representative of ranked findings if no difference is established: the potentially largest gap."""
    widest = widest_gap(findings)
    return findings[0] if widest is None else widest.finding


def _lead(found: Sequence[Concern], audit: Audit) -> Finding | None:
    """Return the finding that the rows are about: the first concern's finding, or else the first finding of the run."""
    findings = [concern.finding for concern in found if concern.finding is not None]
    ranked = [f for f in rank(audit.findings) if f.value is not None or "baseline" in f.arguments]
    if found and (drift := found[0].drift) is not None:
        place = (drift.audit, drift.model, drift.grouping, drift.metric)
        findings[:0] = [f for f in ranked if (f.audit, f.model, f.grouping, f.metric) == place]
    return next(iter([*findings, *([] if found else _widest_first(ranked)), *ranked]), None)


def _widest_first(ranked: Sequence[Finding]) -> list[Finding]:
    """Return the representative of findings without established differences, as a list; empty without values."""
    numbers = [finding for finding in ranked if finding.value is not None]
    return [_first(numbers)] if numbers else []


# The rows -------------------------------------------------------------------------------------------------------------


def _rows(
    audit: Audit, found: Sequence[Concern], lead: Finding | None, reversal: Reversal | None, wording: PageWording
) -> Iterator[Row]:
    """Yield a row on doubts about the data, if any, and the answers to all questions after the first."""
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
    """Return the answer to "since when": the first gap that has grown, that none has, or that it was not asked."""
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
    """Return the comparison over time that contains a change."""
    return next(extra for extra in audit.extras if drift in extra.tables.get("drifts", ()))


def _doubts(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the warnings that a row or column may not have the meaning it was taken to have."""
    for result in audit.results.values():
        yield from (wording.message(note) for note in result.notes if note.id in DOUBTS)


def _rows_on(
    audit: Audit, lead: Finding, found: Sequence[Concern], reversal: Reversal | None, wording: PageWording
) -> Iterator[Row]:
    """Yield the size, certainty and groups of a finding; for a change over time, start with its size."""
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
    """Return a sentence with the rates of both groups before and since a change."""
    rates = {name: getattr(drift, name) for name in _RATES_OF_CHANGE}
    return wording.say("rates_since", "answer", group=drift.group, reference=drift.reference, **rates)


def _sure_within(audit: Audit, reversal: Reversal, wording: PageWording) -> Iterator[str]:
    """Yield the interval of the gap within strata, and whether it is established, if there is such a finding."""
    if (finding := _finding_within(audit, reversal)) is not None:
        key = "sure_within" if is_established(finding) else "unsure_within"
        interval = wording.interval(finding)
        yield wording.say(key, "answer", factor=reversal.factor, interval=interval)


def _finding_within(audit: Audit, reversal: Reversal) -> Finding | None:
    """Return the finding on the gap within strata, or None."""
    return next((f for f in audit.findings if f.stratum == STANDARDISED and reversal.tells(f)), None)


def _whom(
    audit: Audit, lead: Finding, first: tuple[str, ...], drawn: Forest | None, wording: PageWording
) -> Iterator[Row]:
    """Yield the row on the groups that a finding concerns: their values, or else the list of compared groups."""
    lines = (*first, *_not_compared(audit, wording))
    if drawn is None:
        lines += tuple(item.in_words(wording) for item in groups_compared(audit) if item.grouping == lead.grouping)
    if lines or drawn:
        marks = "" if drawn is None or drawn.zero is None else wording.say("dashed", "answer")
        yield _row("for_whom", lines, wording, groups=drawn, marks=marks)


def _worst_off(audit: Audit, finding: Finding, reversal: Reversal | None, wording: PageWording) -> Iterator[str]:
    """Yield sentences on the worst-off group (if established) and on whether selection is good for a person."""
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
    """Return the group that a finding names as worse off if that is established, else None."""
    if finding is None or finding.significance != "directed":
        return None
    group = finding.arguments.get("worse_off")
    return group if isinstance(group, str) else None


def _how_big(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield the size of the gap, and its size under other models."""
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
    """Return a sentence with the size of a finding's value."""
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
    """Yield the gaps between groups under the status quo and with an alternative."""
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
    """Return a sentence with the size of a gap, and with its two groups if it has any."""
    if finding.group is None or finding.reference is None:
        return wording.say(key, "answer", gap=gap)
    groups = {name: wording.label(getattr(finding, name)) for name in ("group", "reference")}
    return wording.say(f"{key}_of", "answer", gap=gap, **groups)


def _other_model(finding: Finding, wording: PageWording) -> str:
    key = "other_model" if finding.threshold is not None else "other_model_alone"
    verdict = wording.verdict(finding).lower() if finding.threshold is not None else ""
    return wording.say(key, "answer", model=finding.model, amount=wording.amount(finding), verdict=verdict)


def _how_sure(audit: Audit, finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield sentences with the interval and the reason for the verdict or significance."""
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
    """Return the key of a sentence on an interval, or of the variant for one-sided limits."""
    return key if (finding.bound_low, finding.bound_high) == (None, None) else f"{key}_one_sided"


def _considering(key: str, family: Any, wording: PageWording) -> str:
    """Return a sentence on certainty, with the number of statements in its family."""
    number = None if family is None else family.args["number"].args["n"]
    alone = "_alone" if key != "sure_beyond" and (number or 1) == 1 else ""
    return wording.say(f"{key}{alone}", "answer", number=number)


def _change(audit: Audit, drift: Drift, wording: PageWording) -> str:
    """Return a sentence on the start of a change and its first detection, or that the change is over."""
    span = span_of(audit, drift, wording)
    if span.is_over:
        return wording.say("change_over", "answer", period=span.name)
    period, first = wording.period(drift.changed_from), wording.period(drift.first_period)
    return wording.say("change" if period != first else "change_at_once", "answer", period=period, first=first)


def _change_numbers(drift: Drift) -> dict[str, Any]:
    """Return the size of a change and its limits, as absolute values."""
    ends = sorted(abs(end) for end in (drift.low, drift.high) if end is not None)
    return {"change": abs(drift.change or 0.0), "low": ends[0] if ends else None, "high": ends[-1] if ends else None}


def _not_compared(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield sentences on people not compared: in groups too small for a met limit, or with an unknown group."""
    reasons = (f.reason for f in audit.findings if f.verdict == "meets" and f.reason is not None)
    parts = (part for reason in reasons for part in sentences_of(reason) if part.id == "core.not_compared")
    yield from dict.fromkeys(map(wording.message, parts))
    if missing := much_missing(audit):
        named = [
            wording.say("missing_share", "answer", grouping=item.grouping, share=f"{share:.0%}")
            for item, share in missing
        ]
        yield wording.say("missing", "answer", groups=tuple(named))
