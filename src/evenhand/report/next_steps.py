"""Recommendations of next steps, by fixed rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evenhand.audits import REGISTRY
from evenhand.core.findings import Finding, advice_of
from evenhand.messages import Message
from evenhand.report.concerns import Concern, shown_alternatives
from evenhand.report.front import Compared, groups_compared, limited_quantity, numbers_of
from evenhand.report.reversals import Reversal
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MUCH_MISSING = 0.05
"""The share of people with an unknown group above which the front page mentions them."""


def next_steps(
    audit: Audit, found: Sequence[Concern], reversal: Reversal | None, wording: PageWording
) -> Iterator[str]:
    """Yield the next steps: examine a change, compare within strata, get more data, set a limit, or look for a remedy.

    If all limits are met, the next step is another audit after a change.
    """
    if drift := next((concern.drift for concern in found if concern.drift is not None), None):
        yield wording.say("next_change", "answer", period=wording.period(drift.changed_from))
    yield from _broken(found, wording)
    if reversal is not None:
        yield wording.say("next_within", "answer", factor=reversal.factor)
    yield from _more_data(audit, found, wording)
    yield from _alternatives(audit, wording)
    if not any(finding.threshold is not None for finding in audit.findings):
        yield wording.say("next_limits", "answer")
    if any(concern.certainty in ("yes", "differs") for concern in found):
        yield from _remedies(audit, wording)
    if not found and any(finding.threshold is not None for finding in audit.findings):
        yield wording.say("next_again", "answer")


def _broken(found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield the step to decide about a system that violates its limits."""
    findings = [concern.finding for concern in found if concern.finding is not None]
    if broken := [f for f in findings if f.verdict == "does_not_meet" and not f.is_limit]:
        yield wording.say("next_broken", "answer", n=len(broken), findings=numbers_of(broken))


def _remedies(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the audits for a remedy that were not run."""
    for name, descriptor in REGISTRY.items():
        if descriptor.remedy and name not in audit.results and not _are_numbers(audit):
            loaded = descriptor.messages  # with its words, the question among them
            question = descriptor.question if loaded is None else wording.language.word("section", descriptor.question)
            yield wording.say("next_audit", "answer", question=question, audit=name)


def _are_numbers(audit: Audit) -> bool:
    """Return whether all predictions are numbers, for which no audit looks for a remedy."""
    predictions = audit.config.data.get("predictions") or {}
    return bool(predictions) and all(each["kind"] == "number" for each in predictions.values())


def _alternatives(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the step on the first alternative that an audit for a remedy has shown."""
    if shown := shown_alternatives(audit):
        yield wording.say("next_alternative", "answer", model=shown[0].model, number=shown[0].number)


def _more_data(audit: Audit, found: Sequence[Concern], wording: PageWording) -> Iterator[str]:
    """Yield the number of people needed to decide the first open limit, and the groupings with missing groups."""
    is_open = ("possibly", "cannot_tell")
    open_limits = [each.finding for each in found if each.finding is not None and each.certainty in is_open]
    advised = [(sentence, finding) for finding in open_limits if (sentence := advice_of(finding.reason)) is not None]
    near = [finding for finding in open_limits if finding.value is not None]
    if advised:
        yield _people_needed(audit, *advised[0], wording)
    elif near:
        yield wording.say("next_decide", "answer", number=near[0].number, interval=wording.interval(near[0]))
    if missing := much_missing(audit):
        yield wording.say("next_missing", "answer", groupings=tuple(item.grouping for item, _ in missing))


def _people_needed(audit: Audit, advice: Message, finding: Finding, wording: PageWording) -> str:
    """Return a sentence with the number of people needed to decide a finding."""
    if advice.id == "core.more_needed":
        number = f"{finding.number} ({limited_quantity(audit, finding, wording, in_sentence=True)})"
        return wording.say("next_more", "answer", **advice.args, number=number)
    return f"{wording.message(advice)} ({finding.number})"


def much_missing(audit: Audit) -> list[tuple[Compared, float]]:
    """Return the groupings with a large share of unknown groups, with the share."""
    shares = [(item, item.missing / max(item.people, 1)) for item in groups_compared(audit)]
    return [(item, share) for item, share in shares if share > _MUCH_MISSING]
